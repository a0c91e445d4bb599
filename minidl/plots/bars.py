"""The geometry of a timeline's bars: a track per rank, split in halves while a rank does two things at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

HEIGHT = 0.8  # height of a rank's bar, as a share of the distance between two ranks
LANES = 0.32  # share of that height for the lanes of concurrent activities, if there are any
COLUMNS = 600  # a track with more bars is drawn in this many columns, each with the shares of its time
ROOM_FOR_A_GAP = 0.006  # share of the picture's width: messages of at least this length are separated by a line
ROOM_FOR_A_BORDER = 0.002  # share of the picture's width: shorter stretches of one activity have no border
NEAR = 0.001  # share of the picture's width: a shorter gap between two messages is invisible
LABELLED = ("compute", "reduce", "send", "receive")  # adjacent bars are separated if labels differ
UPWARDS = ("compute", "receive", "send", "reduce", "wait")  # from bottom to top; sends above receives, as in halves

Polygons = dict[str, list[npt.NDArray[np.float64]]]


class Bar(NamedTuple):
    """One activity of a rank.

    Parameters
        rank          the rank
        kind          "compute", "send", "receive", "reduce", "wait" or "fault"; or the axis of a mesh
        start, end    times in seconds
        label         text in the bar, if there is room; the text after a newline is optional
        lane          0: the rank's program; 1, 2, ...: activities that run concurrently with it
        half          "upper" or "lower" while the other half shows a simultaneous activity; "": full height
        message       identity of the message that is sent or received, to separate messages
    """

    rank: int
    kind: str
    start: float
    end: float
    label: str = ""
    lane: int = 0
    half: str = ""
    message: Hashable = None


@dataclass(frozen=True)
class Geometry:
    """Positions of the tracks: a rank's program above, the thinner lanes of concurrent activities below."""

    lanes: int

    def extent(self, rank: int, lane: int, half: str = "") -> tuple[float, float]:
        """Return the upper and the lower edge of a track or of its half; the axis points down."""
        top, below = rank - HEIGHT / 2, LANES if self.lanes else 0.0
        bottom = top + HEIGHT - below
        if lane:
            height = below / self.lanes
            top, bottom = bottom + (lane - 1 + 0.15) * height, bottom + lane * height
        middle = (top + bottom) / 2
        return middle if half == "lower" else top, middle if half == "upper" else bottom


def merged(track: Sequence[Bar], tolerance: float) -> list[Bar]:
    """Join bars that touch and are the same activity, such as the forward passes of successive layers.

    `tolerance` is the longest gap, in seconds, between bars that touch.
    """
    joined: list[Bar] = []
    latest: dict[tuple[str, str], int] = {}  # (kind, half) -> index of the last bar
    for bar in track:
        place = latest.get((bar.kind, bar.half))
        if place is not None:
            before = joined[place]
            is_same = (before.label, before.message) == (bar.label, bar.message)
            if is_same and abs(bar.start - before.end) <= tolerance:
                joined[place] = before._replace(end=bar.end)
                continue
        latest[bar.kind, bar.half] = len(joined)
        joined.append(bar)
    return joined


def runs(track: Sequence[Bar], width: float) -> list[Bar]:
    """Return the stretches of one activity that are wide enough for a border.

    `width` is the duration of the picture in seconds.
    """
    if len(track) > COLUMNS:
        return []
    anonymous = [bar._replace(label="", message=None) for bar in track]
    return [run for run in merged(anonymous, NEAR * width) if run.end - run.start >= ROOM_FOR_A_BORDER * width]


def polygons(track: Sequence[Bar], geometry: Geometry, start: float, end: float) -> Polygons:
    """Return the shapes of one track by kind; a track with too many bars becomes stacked columns."""
    if len(track) > COLUMNS:
        return _stack(track, geometry, start, end)
    shapes: Polygons = {}
    for bar in track:
        top, bottom = geometry.extent(bar.rank, bar.lane, bar.half)
        corners = [(bar.start, top), (bar.start, bottom), (bar.end, bottom), (bar.end, top)]
        shapes.setdefault(bar.kind, []).append(np.array(corners))
    return shapes


def _stack(track: Sequence[Bar], geometry: Geometry, start: float, end: float) -> Polygons:
    """Divide the track into columns and each column by the shares of its time: areas stay correct."""
    top, bottom = geometry.extent(track[0].rank, track[0].lane)
    edges = np.linspace(start, end, COLUMNS + 1)
    base = np.full(COLUMNS, bottom)
    shapes: Polygons = {}
    kinds = {bar.kind for bar in track}
    for kind in (*UPWARDS, *sorted(kinds.difference(UPWARDS))):
        bars = [(bar.start, bar.end, 0.5 if bar.half else 1.0) for bar in track if bar.kind == kind]
        if not bars:
            continue
        first, last, height = np.array(bars, dtype=np.float64).T
        spent = np.cumsum((last - first) * height)
        before = np.stack([np.concatenate([[0.0], spent[:-1]]), spent], 1).reshape(-1)  # at each start and end
        moments = np.stack([first, last], 1).reshape(-1)
        shares = np.diff(np.interp(edges, moments, before)) / (edges[1] - edges[0])
        roof = base - shares * (bottom - top)
        there = np.stack([np.repeat(edges, 2)[1:-1], np.repeat(roof, 2)], 1)
        back = np.stack([np.repeat(edges, 2)[1:-1], np.repeat(base, 2)], 1)[::-1]
        shapes[kind] = [np.concatenate([there, back])]
        base = roof
    return shapes


def messages(track: Sequence[Bar], kind: str) -> list[list[Bar]]:
    """Return the bars of `kind`, grouped by message."""
    bars = (bar for bar in track if bar.kind == kind and bar.message is not None)
    return [list(group) for _, group in groupby(bars, key=lambda bar: bar.message)]


def gaps(track: Sequence[Bar], geometry: Geometry, width: float) -> Iterator[npt.NDArray[np.float64]]:
    """Yield lines between adjacent bars of one colour that have different messages or labels.

    `width` is the duration of the picture in seconds. A bar that is too short for a line is merged with the previous
    one.
    """
    if len(track) > COLUMNS:
        return
    blocks = [[[bar] for bar in track if bar.kind == kind and bar.message is None] for kind in LABELLED]
    for runs in (messages(track, "send"), messages(track, "receive"), *blocks):
        begin = runs[0][0].start if runs else 0.0
        for before, after in pairwise(runs):
            first, last = before[-1], after[0]
            edge, length = last.start, after[-1].end - last.start
            if edge - first.end >= NEAR * width:
                begin = edge
            elif _is_other(first, last) and min(edge - begin, length) >= ROOM_FOR_A_GAP * width:
                top, bottom = geometry.extent(last.rank, last.lane, last.half)
                yield np.array([(edge, top), (edge, bottom)])
                begin = edge


def _is_other(before: Bar, after: Bar) -> bool:
    return before.label != after.label if after.message is None else before.message != after.message
