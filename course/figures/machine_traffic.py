"""Machines in racks, with a line for each pair that talks, as wide as what it sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 9.0  # points, of the line of the pair that sends most
MARGIN = 0.45  # of a rack around its machines
BETWEEN = 1.6  # racks


def draw(axes: Axes, per_rack: int, words: Mapping[tuple[int, int, str], float], most: float) -> None:
    """Draw the machines, the racks around them, and the traffic to scale.

    Parameters
        per_rack  machines of a rack: consecutive ranks
        words     by (rank, other rank, axis): what the pair sends, both ways together
        most      what the widest line stands for; the pictures that are compared have the same
    """
    from matplotlib.patches import Circle, FancyArrowPatch, Patch, Rectangle

    ranks = 1 + max(rank for pair in words for rank in pair[:2])
    columns = max(per_rack // 2, 1)
    place = {}
    for rank in range(ranks):
        rack, number = divmod(rank, per_rack)
        place[rank] = rack * (columns - 1 + BETWEEN) + number % columns, float(number // columns)
    for first in range(0, ranks, per_rack):
        left, height = place[first][0] - MARGIN, (per_rack - 1) // columns + 2 * MARGIN
        look = {"facecolor": "0.95", "edgecolor": "0.6", "linewidth": 0.8, "zorder": 0}
        axes.add_patch(Rectangle((left, -MARGIN), columns - 1 + 2 * MARGIN, height, **look))
    used = sorted({axis for _, _, axis in words})
    colours = style.axis_colours(used)
    for (rank, other, axis), count in words.items():
        look = {"color": colours[axis], "linewidth": max(WIDEST * count / most, 0.4), "arrowstyle": "-", "zorder": 1}
        is_near = abs(place[rank][0] - place[other][0]) <= 1 and abs(place[rank][1] - place[other][1]) <= 1
        bend = "arc3,rad=0" if is_near else "arc3,rad=0.22"
        axes.add_patch(FancyArrowPatch(place[rank], place[other], connectionstyle=bend, shrinkA=0, shrinkB=0, **look))
    for rank, (x, y) in place.items():
        axes.add_patch(Circle((x, y), 0.17, facecolor="white", edgecolor="0.3", linewidth=0.8, zorder=2))
        axes.text(x, y, str(rank), ha="center", va="center", fontsize=8, zorder=3)
    right = max(x for x, _ in place.values())
    axes.set(xlim=(-0.6, right + 0.6), ylim=(max(y for _, y in place.values()) + 0.9, -0.6), aspect="equal")
    axes.set(xticks=[], yticks=[])
    entries = [Patch(color=colours[axis], label=axis) for axis in used]
    axes.legend(handles=entries, loc="lower center", ncols=len(used), fontsize=8)
    for spine in axes.spines.values():
        spine.set_visible(False)
