"""Timeline of a pipeline: a row per stage, a box with the micro-batch's number per action; and curves of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

ROW_HEIGHT = 0.3  # inches of a stage's row
MEMORY_HEIGHT = 1.1  # inches of a memory curve
MOST_ROWS_HEIGHT = 8.0  # inches of all rows of one panel
DIGIT_WIDTH = 0.62  # of a digit, as a share of the size of its letters
LARGEST, SMALLEST = 8.0, 4.5  # size of the numbers in points
LIGHTER = 0.55  # how far the boxes of a stage's last chunk are mixed with white
NARROW = 0.03  # inches; narrower boxes are not rounded to whole pixels, which would distort the picture
MOST_CURVES = len(style.SERIES)
MOST_COLUMNS = 3  # of the legend of a small picture
BELOW_LABEL = 5.5  # of the same legend, below the axis: space for ticks and a label of two lines, in letter sizes
TWO_COUNTS = "F to I: activations for the input gradient; F to W: what the weight gradient still needs"


class Box(NamedTuple):
    """An action of a stage.

    Parameters
        stage       row of the picture
        activity    one of `style.PIPELINE`
        number      number of the micro-batch
        chunk       number of the chunk within its stage, from 0; later ones are lighter
        start, end  times in any unit
    """

    stage: int
    activity: str
    number: int
    chunk: int
    start: float
    end: float


@dataclass(frozen=True)
class Panel:
    """One timeline.

    Parameters
        boxes   the actions of all stages
        rows    for each stage, start and end of its grey row: it is idle where no box covers the row
        source  "measured", "simulated" or "formula"
        unit    unit of time: "s" for seconds, or the name of another
        title   text above the rows
        memory  maps what is counted to a curve for each stage: pairs (time of a change, number from then on);
                empty: no curves are drawn
    """

    boxes: Sequence[Box]
    rows: Sequence[tuple[float, float]]
    source: str
    unit: str
    title: str = ""
    memory: Mapping[str, Sequence[Sequence[tuple[float, float]]]] = field(default_factory=dict)

    @property
    def stages(self) -> int:
        return len(self.rows)

    @property
    def end(self) -> float:
        """Return the end of the last action."""
        return max((box.end for box in self.boxes), default=0.0)


@style.applied()
def draw(panels: Sequence[Panel]) -> Figure:
    """Draw timelines one above the other on one time axis, and return the figure.

    Parameters
        panels  timelines with the same unit of time

    Raises
        ValueError  panels with different units

    >>> boxes = [Box(0, "forward", 0, 0, 0.0, 1.0), Box(1, "forward", 0, 0, 1.0, 2.0)]
    >>> figure = draw([Panel(boxes, rows=[(0.0, 2.0)] * 2, source="simulated", unit="units")])
    """
    if len(units := {panel.unit for panel in panels}) > 1:
        raise ValueError(f"panels on one time axis have one unit of time, got {' and '.join(sorted(units))}")
    heights: list[float] = []
    for panel in panels:
        heights.append(min(ROW_HEIGHT * panel.stages, MOST_ROWS_HEIGHT))
        heights += [MEMORY_HEIGHT] * len(panel.memory)
    figure, axes = style.new_figure(9.0, 0.9 + 0.3 * len(heights) + sum(heights), heights=heights, sharex=True)
    end = max(panel.end for panel in panels) or 1.0
    unit = panels[0].unit
    factor, unit = style.time_unit(end) if unit == "s" else (1.0, unit)
    rest = iter(axes)
    for panel in panels:
        _draw_rows(next(rest), panel, factor, end, figure.get_figwidth())
        for kept, curves in panel.memory.items():
            _draw_memory(next(rest), curves, panel.end * factor, factor, kept)
    axes[-1].set_xlim(0, end * factor)
    axes[-1].set_xlabel(f"time ({unit})")
    _legend(figure, panels)
    has_chunks = any(box.chunk for panel in panels for box in panel.boxes)
    has_two = any(len(panel.memory) > 1 for panel in panels)
    notes = ["lighter boxes: later chunks of a stage"] * has_chunks + [TWO_COUNTS] * has_two
    style.label_source(figure, list(dict.fromkeys(panel.source for panel in panels)), "; ".join(notes))
    return figure


def draw_rows(axes: Axes, panel: Panel) -> None:
    """Draw one timeline without its memory on given axes, as for one of several small pictures.

    >>> figure, [axes] = style.new_figure(4, 2)
    >>> draw_rows(axes, Panel([Box(0, "forward", 0, 0, 0.0, 1.0)], [(0.0, 1.0)], source="simulated", unit="units"))
    """
    end = panel.end or 1.0
    factor, unit = style.time_unit(end) if panel.unit == "s" else (1.0, panel.unit)
    figure = axes.get_figure(root=True)
    assert figure is not None
    _draw_rows(axes, panel, factor, end, figure.get_figwidth() * axes.get_position().width)
    axes.set_xlim(0, end * factor)
    axes.set_xlabel(f"time ({unit})")
    entries = _entries([panel])
    columns = len(entries) if len(entries) <= MOST_COLUMNS else 2
    axes.legend(handles=entries, ncols=columns, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 0.0),
                borderaxespad=BELOW_LABEL)  # fmt: skip


def _draw_rows(axes: Axes, panel: Panel, factor: float, end: float, width: float) -> None:
    """Draw the boxes on grey rows: what is not covered is idle."""
    from matplotlib.collections import PolyCollection

    idle = style.PIPELINE["idle"]
    for stage, (first, last) in enumerate(panel.rows):
        axes.add_collection(PolyCollection([_corners(stage, first, last, factor)], facecolor=idle, linewidth=0))
    drawn = [box for box in panel.boxes if box.end > box.start]
    narrowest = min((box.end - box.start for box in drawn if box.activity != "update"), default=end)
    inches = 0.85 * width * narrowest / end  # the axes take about that share of the figure
    border = min(0.5, 4 * inches) if inches >= NARROW else 0.0
    chunks = 1 + max((box.chunk for box in panel.boxes), default=0)
    looks = {(box.activity, box.chunk) for box in drawn}
    colour_of = {look: _colour(*look, chunks) for look in looks}
    colours = [colour_of[box.activity, box.chunk] for box in drawn]
    shapes = [_corners(box.stage, box.start, box.end, factor) for box in drawn]
    snap = False if inches < NARROW else None
    axes.add_collection(PolyCollection(shapes, facecolor=colours, edgecolor="white", linewidth=border, snap=snap))
    digits = max((len(str(box.number)) for box in drawn), default=1)
    row = min(ROW_HEIGHT, MOST_ROWS_HEIGHT / panel.stages)
    size = min(LARGEST, 72 * 0.7 * row, 72 * 0.9 * inches / (DIGIT_WIDTH * digits))
    if size >= SMALLEST:
        for box, colour in zip(drawn, colours, strict=True):
            place = (box.start + box.end) / 2 * factor, box.stage
            ink = "white" if _luminance(colour) < 0.5 else "black"
            text = axes.text(*place, str(box.number), ha="center", va="center_baseline", color=ink, fontsize=size)
            text.set_in_layout(False)
    axes.set_ylim(panel.stages - 0.45, -0.55)
    step = max(1, panel.stages // 16)
    rows = range(0, panel.stages, step)
    axes.set_yticks(rows, [f"stage {stage}" for stage in rows])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_title(panel.title, fontsize=9)


def _corners(stage: int, start: float, end: float, factor: float) -> Any:
    top, bottom = stage - 0.44, stage + 0.44
    return np.array([(start, top), (end, top), (end, bottom), (start, bottom)]) * (factor, 1)


def _colour(activity: str, chunk: int, chunks: int) -> Any:
    """The colour of the kind of action, mixed with white for later chunks."""
    from matplotlib.colors import to_rgb

    white = LIGHTER * chunk / max(chunks - 1, 1)
    return tuple((1 - white) * np.array(to_rgb(style.PIPELINE[activity])) + white)


def _luminance(colour: Any) -> float:
    """How bright the colour looks, from 0 to 1."""
    return float(np.dot(colour, (0.299, 0.587, 0.114)))


def _draw_memory(
    axes: Axes, curves: Sequence[Sequence[tuple[float, float]]], end: float, factor: float, kept: str
) -> None:
    """Draw each stage's memory as steps; if there are many stages, the first and the last stand out."""
    from matplotlib.ticker import MaxNLocator

    last = len(curves) - 1
    is_few = last < MOST_CURVES
    for stage, curve in enumerate(curves):
        times = [moment * factor for moment, _ in curve] + [end]
        values = [value for _, value in curve] + [curve[-1][1]]
        look: dict[str, Any] = {"color": "0.75", "linewidth": 0.6}
        if is_few or stage in (0, last):
            number = stage if is_few else min(stage, 1)
            look = {"color": style.SERIES[number], "linestyle": style.DASHES[number], "linewidth": 1.3, "zorder": 3}
            look["label"] = f"stage {stage}"
        axes.step(times, values, where="post", **look)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.12)
    axes.set_ylabel(f"micro-batches\n{kept}")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=8, handlelength=2.2)


def _entries(panels: Sequence[Panel]) -> list[Patch]:
    """The legend: a patch for each activity that is drawn."""
    from matplotlib.patches import Patch

    kinds = {box.activity for panel in panels for box in panel.boxes if box.end > box.start} | {"idle"}
    return [Patch(facecolor=colour, label=name) for name, colour in style.PIPELINE.items() if name in kinds]


def _legend(figure: Figure, panels: Sequence[Panel]) -> None:
    entries = _entries(panels)
    figure.legend(
        handles=entries, loc="outside upper right", ncols=len(entries), handlelength=1.2, columnspacing=1.4, fontsize=8
    )
