"""Two layers that several machines divide, drawn as matrices in the colours of the machines that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVERYWHERE = "#D9D9D9"  # light grey: every machine has all of it
HEIGHT = {"x": 0.5, "A": 1.0, "u": 0.5, "B": 2.0, "y": 0.5}
WIDTH = {"x": 1.0, "A": 2.0, "u": 2.0, "B": 1.0, "y": 1.0}
GAP = 0.75
LABEL = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}


def draw(axes: Axes, p: int, split: Mapping[str, str], messages: Sequence[tuple[str, str, str]], words: str) -> None:
    """Draw x A = u, u B = y as matrices, with the messages at the activations.

    Parameters
        p         machines, one colour each
        split     by matrix, "x", "A", "u", "B" or "y": "columns", "rows", or "" where every machine has all of it
        messages  (direction, activation, operation), such as ("forward", "y", "all-reduce")
        words     text below
    """
    left = 0.0
    for name in HEIGHT:
        _matrix(axes, left, name, p, split[name])
        middle = left + WIDTH[name] / 2
        for direction, activation, operation in messages:
            if activation == name:
                place, arrow = (1.3, "→") if direction == "forward" else (-1.3, "←")
                axes.text(middle, place, f"{arrow} {direction}\n{operation}", ha="center", va="center", fontsize=7)
                axes.plot([middle, middle], [0.3 * place, 0.75 * place], color="0.3", linewidth=0.8)
        left += WIDTH[name] + GAP
        if name != "y":
            axes.text(left - GAP / 2, 0, "=" if name in "AB" else "·", ha="center", va="center")
    axes.text(0, -2.0, words, fontsize=7.5, va="top")
    axes.set(xlim=(-0.1, left - GAP + 0.1), ylim=(-3.0, 1.7))
    axes.axis("off")


def _matrix(axes: Axes, left: float, name: str, p: int, way: str) -> None:
    """One matrix, its middle at height 0, as strips of the machines' colours."""
    from matplotlib.patches import Rectangle

    width, height = WIDTH[name], HEIGHT[name]
    for rank in range(p if way else 1):
        colour = style.SERIES[rank % len(style.SERIES)] if way else EVERYWHERE
        corner, size = (left, -height / 2), (width, height)
        if way == "columns":
            corner, size = (left + rank * width / p, -height / 2), (width / p, height)
        elif way == "rows":
            corner, size = (left, height / 2 - (rank + 1) * height / p), (width, height / p)
        axes.add_patch(Rectangle(corner, *size, facecolor=colour, **style.BORDER))
    axes.text(left + width / 2, 0, name, ha="center", va="center", fontsize=10, fontstyle="italic", bbox=LABEL)
