"""What a lecture shows: a text whose numbers were computed, a table, and a picture with the same in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from IPython.display import Markdown, display
from matplotlib.figure import Figure


def say(text: str) -> None:
    """Show a text in Markdown."""
    display(Markdown(text))


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], note: str) -> None:
    """Show rows under a heading, and under them where their numbers come from. Errors: ValueError for a ragged row."""
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"{len(head)} columns, but {len(row)} values in the row of {row[0]!r}")
    lines = [head, ["---"] * len(head), *rows]
    say("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + f"\n\n*{note}*")


def see(figure: Figure, words: str) -> None:
    """Show a picture and, under it in words, what there is to be seen."""
    display(figure, Markdown(f"*In words: {words}*"))
