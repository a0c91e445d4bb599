"""Ranks in a grid: which of them form a group, and who broadcasts to whom in a step of SUMMA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE = 0.9  # of a rank's square, where neighbours are one apart
GAP = 0.6  # more between two blocks
SPREAD = 1.5  # from rank to rank, where arrows are drawn between them


def draw_groups(axes: Axes, shape: tuple[int, int, int], names: Sequence[str], groups: Sequence[Sequence[int]]) -> None:
    """Draw a mesh of three axes as blocks side by side, one for each coordinate along the first axis.

    names: of the three axes. groups: lists of ranks; each gets a colour of its own, up to seven.
    """
    blocks, rows, columns = shape
    coordinates = {rank: np.unravel_index(rank, shape) for rank in range(blocks * rows * columns)}
    for colour, group in zip(style.SERIES, groups, strict=False):
        for block, row, column in (coordinates[rank] for rank in group):
            _square(axes, _left(block, columns) + column, row, colour)
    for rank, (block, row, column) in coordinates.items():
        axes.text(_left(block, columns) + column, row, str(rank), ha="center", va="center", fontsize=11)
    for block in range(blocks):
        left = _left(block, columns)
        axes.text(left + (columns - 1) / 2, -0.75, f"{names[0]} = {block}", ha="center", fontsize=8)
        for column in range(columns):
            axes.text(left + column, rows - 0.2, f"{names[2]} = {column}", ha="center", fontsize=8)
    for row in range(rows):
        axes.text(-0.65, row, f"{names[1]} = {row}", ha="right", va="center", fontsize=8)
    axes.set(xlim=(-1.8, _left(blocks, columns) - GAP), ylim=(rows + 0.1, -1.1))
    axes.axis("off")


def draw_broadcasts(axes: Axes, shape: tuple[int, int], column: int, row: int) -> None:
    """Draw the messages of a step of SUMMA: this column sends along the rows, this row along the columns."""
    from matplotlib.lines import Line2D

    rows, columns = shape
    for i, j in np.ndindex(rows, columns):
        _square(axes, SPREAD * j, SPREAD * i, style.SERIES[0] if j == column else "white")
        axes.text(SPREAD * j, SPREAD * i, str(i * columns + j), ha="center", va="center")
        if j != column:
            _arrow(axes, (column, i), (j, i), (0.0, 0.25), style.SERIES[0], bend=0.15 if j > column else -0.15)
        if i != row:
            _arrow(axes, (j, row), (j, i), (0.3, 0.0), style.SERIES[1], bend=0.0)
    axes.set(xlim=(-0.8, SPREAD * columns - 0.4), ylim=(SPREAD * rows - 0.4, -0.8))
    axes.axis("off")
    strips = [Line2D([], [], color=style.SERIES[number], label=f"strip of {name}") for number, name in enumerate("XW")]
    axes.legend(handles=strips, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, fontsize=8)


def _left(block: int, columns: int) -> float:
    return block * (columns + GAP)


def _square(axes: Axes, x: float, y: float, colour: str) -> None:
    from matplotlib.patches import Rectangle

    corner = x - SIDE / 2, y - SIDE / 2
    axes.add_patch(Rectangle(corner, SIDE, SIDE, facecolor=colour, alpha=0.45, **style.BORDER))


def _arrow(
    axes: Axes, start: tuple[int, int], end: tuple[int, int], shift: tuple[float, float], colour: str, bend: float
) -> None:
    source, target = ((SPREAD * x + shift[0], SPREAD * y + shift[1]) for x, y in (start, end))
    look = {"arrowstyle": "->", "color": colour, "shrinkA": 10, "shrinkB": 10}
    axes.annotate("", target, source, arrowprops={**look, "connectionstyle": f"arc3,rad={bend}"})
