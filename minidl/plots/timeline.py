"""Gantt chart of a run: one row per rank, time to the right, coloured by activity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from minidl.plots import bars, style
from minidl.plots.bars import Bar, Geometry, Polygons

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = tuple[int, str, float, float, str] | tuple[int, str, float, float, str, int] | Bar
"""Rank, activity, start and end in seconds, label, lane (default 0): see `Bar`."""

Span = tuple[int, int, float, float]  # rank, lane, start and end in seconds

LABEL_WIDTH = 0.012  # share of the picture's width for each letter of a compute bar's label
MESSAGE_WIDTH = 0.006  # the same for the smaller letters of a message's label
ROW_HEIGHT = 0.36  # inches between two ranks
MESSAGE_HEIGHT = 0.122  # inches for each line of a message's label
HEADING = 105  # characters of a line above a run: more are wider than the picture
UNLABELLED = ("send", "receive", "reduce", "wait", "fault")  # messages have labels of their own
HAIR = 1e-9  # share of the picture's width: shorter bars come from rounding and are not drawn
MOST_ROWS = 24  # ranks in a picture's height: more are drawn closer together
MANY_RANKS = 16  # above, there is no room for labels


@dataclass(frozen=True)
class Panel:
    """One run.

    Parameters
        rows       activities of the ranks
        ranks      number of ranks
        source     "measured", "simulated" or "formula"
        title      text above the chart
        note       text after the source
        outline    spans `(rank, lane, start, end)` that get a frame
        colours    colour of each activity
    """

    rows: Sequence[Row]
    ranks: int
    source: str
    title: str = ""
    note: str = ""
    outline: Sequence[Span] = ()
    colours: Mapping[str, str] = field(default_factory=lambda: style.ACTIVITY)

    @property
    def end(self) -> float:
        """Return the end of the last row in seconds."""
        return max((row[3] for row in self.rows), default=0.0)


def draw(
    rows: Iterable[Row],
    *,
    ranks: int,
    source: str,
    start: float = 0.0,
    end: float | None = None,
    title: str = "",
    note: str = "",
    outline: Sequence[Span] = (),
) -> Figure:
    """Draw the chart of one run and return the figure.

    Parameters
        rows          tuples `(rank, activity, start, end, label[, lane])` in seconds; activity is "compute", "send",
                      "receive", "reduce" or "wait", or "fault" for a moment
        ranks         number of ranks; legible from 2 to 64
        source        "measured", "simulated" or "formula"
        start, end    interval to show, in seconds; default from 0 to the end of the last row
        title         text above the chart
        note          text after the source
        outline       spans `(rank, lane, start, end)` that get a frame: the critical path

    >>> figure = draw([(0, "compute", 0.0, 1.0, "forward"), (1, "wait", 0.0, 0.5, "")], ranks=2, source="measured")
    """
    return compare([Panel(list(rows), ranks, source, title, note, outline)], start, end)


@style.applied()
def compare(
    panels: Sequence[Panel],
    start: float = 0.0,
    end: float | None = None,
    row_height: float = ROW_HEIGHT,
    own_axes: bool = False,
) -> Figure:
    """Draw several runs one above the other, with one time axis and one legend, and return the figure.

    Parameters
        panels        one run each
        start, end    interval to show, in seconds; default from 0 to the end of the longest run
        row_height    inches between two ranks; 0.17 for small charts that show the shape only
        own_axes      give each run a time axis of its own, so that a short one can be read below a long one

    >>> rows = [(0, "compute", 0.0, 1.0, "forward")]
    >>> figure = compare([Panel(rows, 1, "measured"), Panel(rows, 1, "simulated")])
    """
    longest = max(panel.end for panel in panels) if end is None else end
    heights = [row_height * min(max(panel.ranks, 2), MOST_ROWS) for panel in panels]
    height = 1.0 + (0.75 if own_axes else 0.45) * len(panels) + sum(heights)
    figure, all_axes = style.new_figure(9.0, height, heights=heights, sharex=not own_axes)
    is_dense = False
    for axes, panel in zip(all_axes, panels, strict=True):
        last = panel.end if own_axes and end is None else longest
        if last <= start:
            last = start + 1.0
        factor, unit = style.time_unit(last - start)
        is_dense |= _draw_panel(axes, panel, start, last, factor, MESSAGE_HEIGHT / row_height)
        if len(panels) > 1:
            axes.set_title(
                style.in_lines(_heading(panel, factor, unit, is_cut=end is not None and panel.end >= end), HEADING),
                fontsize=9,
            )
        if own_axes or axes is all_axes[-1]:
            margin = 0.003 * (last - start) if any(panel.outline for panel in panels) else 0.0  # for the frame's lines
            axes.set_xlim((start - margin) * factor, (last + margin) * factor)
            axes.set_xlabel(f"time ({unit})")
    _legend(figure, panels, HAIR * (longest - start))
    if len(panels) == 1 and panels[0].title:
        figure.suptitle(style.in_lines(panels[0].title, HEADING), x=0.01, ha="left", fontsize=10, fontweight="bold")
    hint = "where bars are too many to tell apart, colours are stacked by their share of the time" if is_dense else ""
    axes_hint = "each run has a time axis of its own" if own_axes and len(panels) > 1 else ""
    notes = [panels[0].note, hint] if len(panels) == 1 else [axes_hint, hint]
    sources = list(dict.fromkeys(panel.source for panel in panels))
    style.label_source(figure, sources, "; ".join(note for note in notes if note))
    return figure


def _draw_panel(axes: Axes, panel: Panel, start: float, end: float, factor: float, line_height: float) -> bool:
    """Draw one run; return whether a track had too many bars to be drawn one by one."""
    tracks: dict[tuple[int, int], list[Bar]] = {}
    for bar in (row if isinstance(row, Bar) else Bar(*row) for row in panel.rows):
        if bar.start <= end and bar.end >= start and bar.end - bar.start > HAIR * (end - start):
            tracks.setdefault((bar.rank, bar.lane), []).append(bar)
    tracks = {key: bars.merged(track, HAIR * (end - start)) for key, track in tracks.items()}
    geometry = Geometry(max((lane for _, lane in tracks), default=0))
    polygons: Polygons = {kind: [] for kind in panel.colours}
    lines: list[npt.NDArray[np.float64]] = []
    for track in tracks.values():
        for kind, shapes in bars.polygons(track, geometry, start, end).items():
            polygons[kind] += shapes
        lines += bars.gaps(track, geometry, end - start)
    _fill(axes, polygons, panel.colours, lines, factor)
    for track in tracks.values():
        if panel.ranks <= MOST_ROWS:  # of thinner bars little but the borders would be seen
            _borders(axes, track, geometry, end - start, factor)
    if panel.ranks <= MANY_RANKS:
        for (_, lane), track in tracks.items():
            if lane == 0:
                _label_work(axes, track, geometry, start, end, factor)
                _label_messages(axes, track, geometry, start, end, factor, line_height)
    _outline(axes, panel.outline, geometry, factor)
    _mark_faults(axes, panel, geometry, start, end, factor)
    axes.set_ylim(panel.ranks - 0.4, -0.6)
    step = max(1, panel.ranks // 16)
    axes.set_yticks(range(0, panel.ranks, step), [f"rank {rank}" for rank in range(0, panel.ranks, step)])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return any(len(track) > bars.COLUMNS for track in tracks.values())


def _fill(
    axes: Axes,
    polygons: Polygons,
    colours: Mapping[str, str],
    gaps: Sequence[npt.NDArray[np.float64]],
    factor: float,
) -> None:
    """Draw the polygons of each colour as one collection: a trace has thousands."""
    from matplotlib.collections import LineCollection, PolyCollection

    for kind, shapes in polygons.items():
        axes.add_collection(
            PolyCollection([shape * (factor, 1) for shape in shapes], facecolor=colours[kind], linewidth=0)
        )
    paths = [line * (factor, 1) for line in gaps]
    axes.add_collection(LineCollection(paths, colors="white", linewidths=0.7, capstyle="butt"))


def _borders(axes: Axes, track: Sequence[Bar], geometry: Geometry, width: float, factor: float) -> None:
    """Draw a border around each stretch of one activity; `width` is the duration of the picture in seconds."""
    from matplotlib.collections import PolyCollection

    runs = bars.polygons(bars.runs(track, width), geometry, 0.0, width)
    shapes = [shape * (factor, 1) for shapes in runs.values() for shape in shapes]
    axes.add_collection(PolyCollection(shapes, facecolor="none", **style.BORDER))


def _label_work(axes: Axes, track: Sequence[Bar], geometry: Geometry, start: float, end: float, factor: float) -> None:
    """Write the labels that fit: of computing, and of operations along an axis."""
    for bar in track:
        first, last = max(bar.start, start), min(bar.end, end)
        if bar.kind not in UNLABELLED and bar.label and last - first > LABEL_WIDTH * len(bar.label) * (end - start):
            place = (first + last) / 2 * factor, sum(geometry.extent(bar.rank, 0)) / 2
            axes.text(*place, bar.label, ha="center", va="center", color="white", fontsize=7, clip_on=True)


def _label_messages(
    axes: Axes,
    track: Sequence[Bar],
    geometry: Geometry,
    start: float,
    end: float,
    factor: float,
    line_height: float,
) -> None:
    """Write the peer and the bytes of messages that are wide enough.

    `line_height` is the height of a line as a share of the distance between two ranks.
    """
    if len(track) > bars.COLUMNS:
        return
    for kind, colour in (("send", "white"), ("receive", "black")):
        for message in bars.messages(track, kind):
            bar = max(message, key=lambda bar: min(bar.end, end) - max(bar.start, start))
            first, last = max(bar.start, start), min(bar.end, end)
            top, bottom = geometry.extent(bar.rank, bar.lane, bar.half)
            peer, _, nbytes = bar.label.partition("\n")
            for text in (f"{peer}, {nbytes}", bar.label, peer) if nbytes else (peer,):
                lines = text.split("\n")
                width = MESSAGE_WIDTH * (max(map(len, lines)) + 0.8) * (end - start)
                if width <= last - first and line_height * len(lines) <= bottom - top:
                    place = (first + last) / 2 * factor, (top + bottom) / 2
                    written = axes.text(*place, text, ha="center", va="center", color=colour, fontsize=6, clip_on=True)
                    written.set_in_layout(False)
                    break


def _outline(axes: Axes, spans: Sequence[Span], geometry: Geometry, factor: float) -> None:
    """Frame the spans, and connect successive ones on different tracks."""
    from matplotlib.collections import LineCollection

    merged: list[Span] = []
    for rank, lane, first, last in spans:
        if merged and merged[-1][:2] == (rank, lane) and merged[-1][3] == first:
            merged[-1] = (rank, lane, merged[-1][2], last)
        else:
            merged.append((rank, lane, first, last))
    lines = []
    for rank, lane, first, last in merged:
        low, high = geometry.extent(rank, lane)
        lines.append([(first, low), (last, low), (last, high), (first, high), (first, low)])
    for (rank, lane, _, last), (next_rank, next_lane, *_) in pairwise(merged):
        edges = geometry.extent(rank, lane) + geometry.extent(next_rank, next_lane)
        lines.append([(last, sorted(edges)[1]), (last, sorted(edges)[2])])
    paths = [np.array(line) * (factor, 1) for line in lines]
    axes.add_collection(LineCollection(paths, colors="white", linewidths=3.0, zorder=3, capstyle="projecting"))
    axes.add_collection(LineCollection(paths, colors="black", linewidths=1.2, zorder=4, capstyle="projecting"))


def _mark_faults(axes: Axes, panel: Panel, geometry: Geometry, start: float, end: float, factor: float) -> None:
    """Mark each planned fault by a cross and its label."""
    for rank, kind, first, _, label, *_ in panel.rows:
        if kind == "fault" and start <= first <= end:
            place = first * factor, sum(geometry.extent(rank, 0)) / 2
            axes.plot(*place, marker="X", markersize=8, color=style.FAULT, markeredgecolor="black", zorder=5)
            if panel.ranks <= MANY_RANKS:
                box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}
                text = axes.annotate(
                    label, place, (7, 0), textcoords="offset points", va="center", fontsize=7, bbox=box
                )
                text.set_zorder(6)


def _legend(figure: Figure, panels: Sequence[Panel], shortest: float) -> None:
    """Draw the legend: the activities that last longer than `shortest` seconds, the critical path and faults."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    kinds = {row[1] for panel in panels for row in panel.rows if row[3] - row[2] > shortest}
    colours = {kind: colour for panel in panels for kind, colour in panel.colours.items()}
    entries: list[Patch | Line2D] = [
        Patch(facecolor=colour, label=kind, **style.BORDER) for kind, colour in colours.items() if kind in kinds
    ]
    if any(panel.outline for panel in panels):
        entries.append(Patch(facecolor="white", edgecolor="black", linewidth=1.2, label="critical path"))
    if any(row[1] == "fault" for panel in panels for row in panel.rows):
        mark = {"marker": "X", "color": style.FAULT, "markeredgecolor": "black", "linestyle": ""}
        entries.append(Line2D([], [], label="fault", **mark))  # type: ignore[arg-type]
    figure.legend(
        handles=entries,
        loc="outside upper right",
        ncols=max(len(entries), 1),
        handlelength=1.2,
        columnspacing=1.4,
        fontsize=8,
    )


def _heading(panel: Panel, factor: float, unit: str, is_cut: bool) -> str:
    """Return the text above one of several runs; the bars of one that is cut off do not tell how long it lasted."""
    lasts = panel.end * factor
    parts = [f"{panel.source}: {panel.title}" if panel.title else panel.source]
    if not is_cut:
        parts.append(f"{lasts:.3g} {unit}" if lasts < 1000 else f"{lasts:.0f} {unit}")
    return ", ".join([*parts, panel.note] if panel.note else parts)
