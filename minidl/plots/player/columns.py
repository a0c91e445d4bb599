"""The events of a run as columns of whole numbers, which the page compresses.

Each track (a rank, or a lane of it) is stored once, however many ranks are alike: peers and causes are relative to the
track, so that the 1,024 ranks of a ring can share one copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import frexp, isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

PRECISION = 40  # bits: times are exact to the run's end / 2**40, which is below 1e-12 of it
NOBODY, HOST = -1, -2  # peers that are no rank
COLUMNS = (
    "gap", "duration", "kind", "label", "operation", "axis", "call", "bytes", "peer", "cause row", "cause", "ready",
)  # fmt: skip
"""The columns of a run in the order of the file, each of all its tracks.

gap        ticks from the end of the event before
duration   ticks
kind       index into the kinds of the page
label, operation, axis   indices into its strings
peer       0: none, 1: the host; else 2 + the distance to the peer, modulo the number of ranks
cause row  0: none; else 1 + the distance to the row of the cause, modulo the number of rows
cause      number of the cause in its row, less the number of the event in its own
ready      ticks from the event's start to the moment at which both sides of a message were ready
"""


VISIBLE = 5  # the first columns: ranks that agree in them are drawn as one


class Played(NamedTuple):
    """An event of the player: what happens on a rank between two times.

    cause    position, among the events that are played, of the one for which this one waited, or which is the other
             end of its message; -1: none
    ready    for a message, the time at which both sides were ready; otherwise the start
    """

    rank: int
    kind: str
    start: float
    end: float
    nbytes: int = 0
    peer: int = NOBODY
    label: str = ""
    operation: str = ""
    call: int = 0
    lane: int = 0
    axis: str = ""
    cause: int = -1
    ready: float = 0.0


@dataclass(frozen=True)
class Run:
    """One run of the page.

    Parameters
        events   in any order; `cause` is a position in this list
        ranks    number of ranks
        source   "measured", "simulated" or "formula"
        title    heading of its rows
        note     what is missing
        unit     "s", or "units" for times that are relative to each other only
        row      what a row is called: "rank" or "stage"
        path     the critical path: rank, lane, start and end of each of its intervals, in order of time
        summary  the critical path in words
    """

    events: Sequence[Played]
    ranks: int
    source: str
    title: str = ""
    note: str = ""
    unit: str = "s"
    row: str = "rank"
    path: Sequence[tuple[int, int, float, float]] = field(default=(), repr=False)
    summary: str = ""


def pack(run: Run, kinds: Mapping[str, int], strings: dict[str, int]) -> tuple[dict[str, Any], list[bytes]]:
    """Return the description of a run, as JSON takes it, and the bytes of its columns and of its critical path.

    Parameters
        kinds    index of each kind
        strings  index of each string; new ones are added

    Raises
        ValueError  a time is infinite or no number, an event ends before it starts, or a rank does not exist
    """
    for number, (rank, kind, start, last, *_) in enumerate(run.events):
        if not (isfinite(last) and 0 <= start <= last and 0 <= rank < run.ranks):
            raise ValueError(
                f"the player needs events that start at 0 or later, end at a finite time, and are of a {run.row} below "
                f"{run.ranks}, got {start} to {last} for event {number}, {kind!r} of {run.row} {rank}"
            )
    end = max((event.end for event in run.events), default=0.0)
    tick = 2.0 ** max(frexp(end)[1] - PRECISION, -1000)
    columns, order = _sorted(run, tick, kinds, strings)
    tracks = sorted({(rank, 0) for rank in range(run.ranks)} | {(event.rank, event.lane) for event in run.events})
    row = np.searchsorted(np.array(tracks) @ [1 << 32, 1], columns["rank"] * (1 << 32) + columns["lane"])
    first = np.searchsorted(row, np.arange(len(tracks) + 1))
    table = _relative(columns, row, first, order, run.ranks)

    known: dict[bytes, int] = {}  # tracks, and what they look like
    looks: dict[bytes, int] = {}
    rows: list[list[int]] = []
    different: list[Integers] = []
    for number, (rank, lane) in enumerate(tracks):
        own = table[:, first[number] : first[number + 1]]
        track = known.setdefault(own.tobytes(), len(different))
        if track == len(different):
            different.append(own)
        rows.append([rank, lane, track, looks.setdefault(own[:VISIBLE].tobytes(), len(looks))])
    places = {track: number for number, track in enumerate(tracks)}
    path = [(places[part[:2]], *part[2:]) for part in run.path if part[:2] in places and part[2] <= end]
    ticks = np.rint(np.array(path).reshape(-1, 3).T / [[1], [tick], [tick]]).astype(np.int64)
    narrow = [_narrow(column) for column in (*np.concatenate(different, axis=1), *np.diff(ticks, prepend=0))]
    described = {name: getattr(run, name) for name in ("ranks", "source", "title", "note", "unit", "row")}
    described |= {"end": end, "tick": tick, "rows": rows, "tracks": [own.shape[1] for own in different]}
    described |= {"path": len(path), "widths": [column.itemsize for column in narrow]}
    return described, [column.tobytes() for column in narrow]


def _sorted(
    run: Run, tick: float, kinds: Mapping[str, int], strings: dict[str, int]
) -> tuple[dict[str, Integers], Integers]:
    """The fields of the events as numbers, ordered by rank, lane and start; and the places in which they were."""
    given = dict(zip(Played._fields, zip(*run.events, strict=True) if run.events else repeat(()), strict=False))
    numbers = {name: np.array(given[name], np.int64) for name in ("rank", "lane", "nbytes", "peer", "call", "cause")}
    for name in ("label", "operation", "axis"):
        numbers[name] = np.array([strings.setdefault(text, len(strings)) for text in given[name]], np.int64)
    numbers["kind"] = np.array([kinds[kind] for kind in given["kind"]], np.int64)
    for name in ("start", "end", "ready"):
        numbers[name] = np.rint(np.array(given[name], np.float64) / tick).astype(np.int64)
    order = np.lexsort((np.arange(len(run.events)), numbers["start"], numbers["lane"], numbers["rank"]))
    return {name: column[order] for name, column in numbers.items()}, order


def _relative(columns: Mapping[str, Integers], row: Integers, first: Integers, order: Integers, ranks: int) -> Integers:
    """The columns as the file has them, one below the other: the same numbers for ranks that are alike."""
    count, rows = len(row), len(first) - 1
    position = np.arange(count) - first[row]  # of each event in its row
    before = np.concatenate([[0], columns["end"][:-1]])[:count] * (position > 0)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)  # where an event of the run has come to stand
    is_caused = columns["cause"] >= 0
    cause = place[columns["cause"]] if count else place
    peer = columns["peer"]
    relative = {
        **{name: columns[name] for name in ("kind", "label", "operation", "axis", "call")},
        "gap": columns["start"] - before,
        "duration": columns["end"] - columns["start"],
        "bytes": columns["nbytes"],
        "peer": np.where(peer >= 0, 2 + (peer - columns["rank"]) % ranks, np.where(peer == HOST, 1, 0)),
        "cause row": np.where(is_caused, 1 + (row[cause] - row) % rows, 0),
        "cause": np.where(is_caused, position[cause] - position, 0),
        "ready": columns["ready"] - columns["start"],
    }
    return np.stack([relative[name] for name in COLUMNS])


def _narrow(numbers: Integers) -> npt.NDArray[Any]:
    """Whole numbers in the narrowest type that holds them: of 1, 2 or 4 bytes, or as floating-point numbers of 8."""
    narrow = (numbers.astype(kind) for kind in ("<i1", "<i2", "<i4"))
    return next((each for each in narrow if np.array_equal(each, numbers)), numbers.astype("<f8"))
