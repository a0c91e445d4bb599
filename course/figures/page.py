"""Texts with computed numbers, tables, and pictures with a description, for a lecture's notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from IPython.display import Markdown, display
from matplotlib.figure import Figure


def say(text: str) -> None:
    """Show a text in Markdown."""
    display(Markdown(text))


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], note: str) -> None:
    """Show rows under a heading; note: the source of the numbers. Errors: ValueError for rows of different lengths."""
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"{len(head)} columns, but {len(row)} values in the row of {row[0]!r}")
    lines = [head, ["---"] * len(head), *rows]
    say("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + f"\n\n*{note}*")


def see(figure: Figure, words: str) -> None:
    """Show a picture, and under it what to see in it."""
    display(figure)
    in_words(words)


def in_words(text: str) -> None:
    """Say what to see in the picture above. Errors: ValueError for a text with the "In words" that is added here."""
    if text.lower().startswith("in words"):
        raise ValueError(f"the text is shown behind 'In words:', so it must not begin so itself: {text!r}")
    say(f"*In words: {text}*")
