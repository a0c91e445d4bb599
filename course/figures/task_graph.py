"""The tasks of a step and what each waits for: the graph, laid out in time, as if every task had a machine.

The tasks are those of `minidl.dependency_graph`, for a step whose images have separate forward passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from course.figures.greedy_schedule import Pieces
from minidl.plots import style
from minidl.tensor.dependency_graph import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW_INCHES = 0.44
BAR = 0.34  # height of a bar; rows are 1 apart
CRITICAL = "#000000"
COLOURS = {"forward": "#56B4E9", "backward": style.ACTIVITY["compute"], "sum": style.ACTIVITY["reduce"]}


class StepGraph(NamedTuple):
    """A step as a graph.

    pieces   for each task its time, and the tasks whose results it needs
    kinds    for each task "forward", "backward" or "sum"
    rows     for each task the height at which it is drawn: its image; sums stand at their first image or just below
    """

    pieces: Pieces
    kinds: dict[str, str]
    rows: dict[str, float]


def added_in_pairs(tasks: Mapping[str, Task], flops_per_unit: float) -> StepGraph:
    """The graph with every sum of k gradients cut into k - 1 additions, in a tree of pairs.

    flops_per_unit: of the times.
    """
    pieces: dict[str, tuple[float, Sequence[str]]] = {}
    kinds: dict[str, str] = {}
    rows: dict[str, float] = {}
    image, largest = -1, max(task.flops for task in tasks.values() if task.kind == "sum")
    for name, task in tasks.items():
        time = task.flops / flops_per_unit
        if task.kind == "sum":
            waiting, below = sorted(task.needs, key=lambda need: rows[need]), 0.0 if task.flops == largest else 0.4
            while len(waiting) > 1:
                a, b, *waiting = waiting  # the first two; their sum goes to the end
                pair = f"{a} + {b}"
                pieces[pair], kinds[pair] = (time / (len(task.needs) - 1), (a, b)), task.kind
                rows[pair] = int(min(rows[a], rows[b])) + below
                waiting.append(pair)
        else:
            image += task.kind == "forward" and not task.needs
            pieces[name], kinds[name] = (time, task.needs), task.kind
            rows[name] = image if task.kind == "forward" else rows[task.needs[0]]
    return StepGraph(pieces, kinds, rows)


class Span(NamedTuple):
    """The earliest start and end of a task."""

    start: float
    end: float


def earliest(pieces: Pieces) -> dict[str, Span]:
    """Each task as early as its needs allow; tasks come after those that they need. The last end is the depth.

    >>> earliest({"a": (1.0, []), "b": (2.0, []), "a + b": (0.5, ["a", "b"])})["a + b"]
    Span(start=2.0, end=2.5)
    """
    spans: dict[str, Span] = {}
    for name, (time, needs) in pieces.items():
        start = max((spans[need].end for need in needs), default=0.0)
        spans[name] = Span(start, start + time)
    return spans


def critical_path(pieces: Pieces) -> list[str]:
    """The longest chain of tasks, from its first to its last."""
    spans = earliest(pieces)
    chain = [max(spans, key=lambda name: spans[name].end)]
    while needs := pieces[chain[-1]][1]:
        chain.append(max(needs, key=lambda name: spans[name].end))
    return chain[::-1]


@style.applied()
def draw(graph: StepGraph, unit: str) -> Figure:
    """Draw a bar for each task, with an arrow from each of its needs in another row; the critical path is framed.

    unit: of the times.
    """
    from matplotlib.patches import Patch, Rectangle

    pieces, kinds, rows = graph
    spans, critical = earliest(pieces), critical_path(pieces)
    end = max(span.end for span in spans.values())
    figure, (axes,) = style.new_figure(9.0, 1.3 + ROW_INCHES * (max(rows.values()) - min(rows.values()) + 1))
    for name, (start, stop) in spans.items():
        is_critical = name in critical
        width = max(stop - start, 0.003 * end)  # a task of a few operations stays visible
        edge, line = (CRITICAL, 1.6) if is_critical else ("white", 0.6)
        place, colour = (start, rows[name] - BAR / 2), COLOURS[kinds[name]]
        order = 3 if is_critical else 2
        axes.add_patch(Rectangle(place, width, BAR, facecolor=colour, edgecolor=edge, linewidth=line, zorder=order))
        for need in pieces[name][1]:
            if rows[need] != rows[name]:
                side = BAR / 2 if rows[need] > rows[name] else -BAR / 2
                arrow = {"arrowstyle": "-|>", "color": "0.35", "shrinkA": 0, "shrinkB": 0, "linewidth": 0.9}
                axes.annotate("", (start, rows[name] + side), (start, rows[need]), zorder=4, arrowprops=arrow)
    axes.set(xlim=(-0.01 * end, 1.01 * end), ylim=(max(rows.values()) + 0.6, min(rows.values()) - 0.6))
    axes.set_xlabel(f"time on as many machines as can be of use ({unit})")
    axes.spines["left"].set_visible(False)
    images = sorted({row for row in rows.values() if row == int(row)})
    axes.set_yticks(images, [f"image {row:.0f}" for row in images])
    axes.tick_params(axis="y", length=0)
    patches = [Patch(facecolor=colour, label=kind, **style.BORDER) for kind, colour in COLOURS.items()]
    patches.append(Patch(facecolor="white", edgecolor=CRITICAL, linewidth=2.0, label="critical path"))
    figure.legend(handles=patches, loc="outside upper right", ncols=4, fontsize=8)
    style.label_source(figure, "formula", "operations counted on the tape")
    return figure
