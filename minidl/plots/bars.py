"""Where the bars of a timeline lie: a track for each rank, halves of it where a rank does two things at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

HEIGHT = 0.8  # of a rank's bar, of the distance between two ranks
BESIDE = 0.32  # the part of it that goes to what runs beside the program, if anything does
COLUMNS = 600  # where a track has more bars than that, each column shows the shares of its time
ROOM_FOR_A_GAP = 0.006  # of the picture's width: messages as long as that are told apart
NEAR = 0.001  # of it: what lies between two messages cannot be seen
LABELLED = ("compute", "reduce", "send", "receive")  # bars without a message are told apart by their labels
UPWARDS = ("compute", "receive", "send", "reduce", "wait")  # in a column; sends above receives, as in halves

Polygons = dict[str, list[npt.NDArray[np.float64]]]


class Bar(NamedTuple):
    """What a rank does from `start` to `end` (seconds).

    lane: 0 is the rank's program, 1 ... what runs beside it. label: written into the bar if there is room; after a
    newline, what may be left out. half: "upper" or "lower" where the rank does something else at once, in the other
    half. message: of a send or a receive, which one it is, so that two messages are told apart.
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
    """Where the tracks lie: a rank's program above, the lanes beside it below, thinner."""

    lanes: int

    def extent(self, rank: int, lane: int, half: str = "") -> tuple[float, float]:
        """The upper and the lower edge of a track, or of a half of it (the axis points down)."""
        top, beside = rank - HEIGHT / 2, BESIDE if self.lanes else 0.0
        bottom = top + HEIGHT - beside
        if lane:
            height = beside / self.lanes
            top, bottom = bottom + (lane - 1 + 0.15) * height, bottom + lane * height
        middle = (top + bottom) / 2
        return middle if half == "lower" else top, middle if half == "upper" else bottom


def polygons(track: Sequence[Bar], geometry: Geometry, start: float, end: float) -> Polygons:
    """The shapes of one track, by kind; stacked columns where it has more bars than can be told apart."""
    if len(track) > COLUMNS:
        return _stack(track, geometry, start, end)
    shapes: Polygons = {}
    for bar in track:
        top, bottom = geometry.extent(bar.rank, bar.lane, bar.half)
        corners = [(bar.start, top), (bar.start, bottom), (bar.end, bottom), (bar.end, top)]
        shapes.setdefault(bar.kind, []).append(np.array(corners))
    return shapes


def _stack(track: Sequence[Bar], geometry: Geometry, start: float, end: float) -> Polygons:
    """Divide the track into columns and each column by the shares of its time, so that areas stay true."""
    top, bottom = geometry.extent(track[0].rank, track[0].lane)
    edges = np.linspace(start, end, COLUMNS + 1)
    base = np.full(COLUMNS, bottom)
    shapes: Polygons = {}
    for kind in UPWARDS:
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
    """The bars of that kind, those of one message together."""
    bars = (bar for bar in track if bar.kind == kind and bar.message is not None)
    return [list(group) for _, group in groupby(bars, key=lambda bar: bar.message)]


def gaps(track: Sequence[Bar], geometry: Geometry, width: float) -> Iterator[npt.NDArray[np.float64]]:
    """Lines between bars of one colour that follow each other at once, where they are two messages or have two labels.

    width: the seconds that the picture shows. Bars that are too short for a line of their own count as part of the bar
    before.
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
