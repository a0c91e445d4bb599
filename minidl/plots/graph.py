"""A computation graph: one box per node with its value and gradient, arrows with local gradients from its parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAF, MADE, CURRENT = "#E8E8E8", "#FFFFFF", "#FCE8C3"
GRADIENT = "#A33C00"  # vermilion, dark enough to be legible on both
WIDTH, HEIGHT = 0.62, 0.62  # of a box; columns and rows are 1 apart
SHORT = 10  # letters of a name that fit into a box at full size
LABEL = 0.62  # where on an arrow its local gradient is written, as a share of its length


@dataclass(frozen=True)
class Box:
    """A node of the graph.

    Parameters
        name        text such as "s = x + y"
        value       its value
        gradient    its gradient; None: not known yet
        parents     indices of its parents in the list of boxes; a parent given twice gets two arrows
        slopes      local gradient with respect to each parent, written on its arrow; empty: none are written
        is_current  True for the node that a walk has reached: its box and its arrows stand out
    """

    name: str
    value: float
    gradient: float | None = None
    parents: tuple[int, ...] = ()
    slopes: tuple[float, ...] = ()
    is_current: bool = False


@style.applied()
def draw(boxes: Sequence[Box], *, source: str, title: str = "", note: str = "") -> Figure:
    """Draw a graph from left (leaves, grey) to right and return the figure.

    Parameters
        boxes     nodes; parents before their children
        source    "measured", "simulated" or "formula"
        title     text above the graph
        note      text after the source

    Raises ValueError for a parent that does not come before its child.

    >>> figure = draw([Box("x", 3.0, 6.0), Box("f = x * x", 9.0, 1.0, (0, 0))], source="measured")
    """
    places = positions(boxes)
    columns, rows = (1 + max(place[i] for place in places) - min(place[i] for place in places) for i in (0, 1))
    figure, (axes,) = style.new_figure(max(4.0, 1.75 * columns), max(1.6, 0.95 * rows + 0.6))
    draw_on(axes, boxes)
    if title:
        axes.set_title(title)
    style.label_source(figure, source, note)
    return figure


def draw_on(axes: Axes, boxes: Sequence[Box]) -> None:
    """Draw a graph on axes of your own, for example one frame of a walk."""
    from matplotlib.patches import FancyBboxPatch

    places = positions(boxes)
    for box, (x, y) in zip(boxes, places, strict=True):
        colour = CURRENT if box.is_current else MADE if box.parents else LEAF
        corner = x - WIDTH / 2, y - HEIGHT / 2
        outline = "round,pad=0,rounding_size=0.08"
        edge, line = ("black", 2.0) if box.is_current else ("0.3", 1.0)
        patch = FancyBboxPatch(
            corner, WIDTH, HEIGHT, outline, facecolor=colour, edgecolor=edge, linewidth=line, zorder=2
        )
        axes.add_patch(patch)
        size = 9.0 if len(box.name) <= SHORT else 7.5
        axes.text(x, y + 0.19, box.name, ha="center", va="center", fontsize=size, fontweight="bold", zorder=3)
        axes.text(x, y, f"value {box.value:.4g}", ha="center", va="center", fontsize=8.5, zorder=3)
        gradient = "gradient ?" if box.gradient is None else f"gradient {box.gradient:.4g}"
        axes.text(x, y - 0.19, gradient, ha="center", va="center", fontsize=8.5, color=GRADIENT, zorder=3)
        _draw_arrows(axes, box, (x, y), [places[parent] for parent in box.parents])
    axes.set_xlim(min(x for x, _ in places) - 0.5, max(x for x, _ in places) + 0.5)
    axes.set_ylim(min(y for _, y in places) - 0.55, max(y for _, y in places) + 0.55)
    axes.set_axis_off()


def _draw_arrows(axes: Axes, box: Box, place: tuple[float, float], parents: Sequence[tuple[float, float]]) -> None:
    """Draw an arrow from each parent to the box, with its local gradient near the parent."""
    from matplotlib.patches import FancyArrowPatch

    x, y = place
    for parent in dict.fromkeys(parents):
        uses = [use for use, other in enumerate(parents) if other == parent]
        for use, bend in zip(uses, bends(len(uses), x - parent[0]), strict=True):
            start, end = (parent[0] + WIDTH / 2, parent[1]), (x - WIDTH / 2, y)
            arrow = FancyArrowPatch(
                start, end, connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
                mutation_scale=11, color=GRADIENT if box.is_current else style.SERIES[0],
                linewidth=2.0 if box.is_current else 1.2, shrinkA=0, shrinkB=0, zorder=1,
            )  # fmt: skip
            axes.add_patch(arrow)
            if box.slopes:
                across, up = end[0] - start[0], end[1] - start[1]
                middle = start[0] + LABEL * across + bend * up, start[1] + LABEL * up - bend * across
                axes.text(
                    *middle, f"{box.slopes[use]:.4g}", ha="center", va="center", fontsize=8, color=GRADIENT, zorder=4,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
                )  # fmt: skip


def bends(count: int, distance: float) -> list[float]:
    """Return the bend of each of `count` arrows between two boxes; a single arrow over several columns is bent too."""
    if count > 1:
        return [0.35 * (2 * i / (count - 1) - 1) for i in range(count)]
    return [0.0 if distance <= 1 else 0.12]


def positions(boxes: Sequence[Box]) -> list[tuple[float, float]]:
    """Return the centre of each box: results right of all their parents, leaves just left of their first use.

    >>> positions([Box("a", 1.0), Box("b", 1.0), Box("a + b", 2.0, None, (0, 1))])
    [(0, 0.5), (0, -0.5), (1, 0.0)]
    """
    columns = [0] * len(boxes)
    for index, box in enumerate(boxes):
        if any(not 0 <= parent < index for parent in box.parents):
            raise ValueError(f"the parents of box {index} ({box.name}) must come before it, got {box.parents}")
        columns[index] = max((columns[parent] + 1 for parent in box.parents), default=0)
    for index, box in enumerate(boxes):
        uses = [columns[child] for child, other in enumerate(boxes) if index in other.parents]
        if not box.parents and uses:
            columns[index] = min(uses) - 1
    heights: dict[int, float] = {}
    for column in sorted(set(columns)):
        members = [index for index in range(len(boxes)) if columns[index] == column]
        members.sort(key=lambda index: -_height_of_parents(boxes[index], heights))
        middle = sum(_height_of_parents(boxes[index], heights) for index in members) / len(members)
        heights |= {index: middle + (len(members) - 1) / 2 - row for row, index in enumerate(members)}
    return [(columns[index], heights[index]) for index in range(len(boxes))]


def _height_of_parents(box: Box, heights: dict[int, float]) -> float:
    """Return the mean height of a box's parents, 0 without parents."""
    known = [heights[parent] for parent in box.parents]
    return sum(known) / len(known) if known else 0.0
