"""Orders in which workers read and write shared counters, and how many of the increments are lost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from course.judging import Answer, expect
from course.plural import counted
from minidl.random import Purpose, stream

Event = tuple[int, str, int]
Case = tuple[str, int, int, int]
"""The kind of interleaving, workers, increments of each worker, cells."""


def interleaving(kind: str, workers: int, each: int, cells: int, seed: int) -> list[Event]:
    """A list of events of that kind, in which every worker makes `each` increments.

    "locked"     every read is followed by its write
    "apart"      reads and writes of different workers interleave, in cells of their own
    "racing"     any order
    "at_once"    all read, then all write, again and again
    "all_cells"  increments of cell 0 with a lock; then all workers read all cells, and all write all cells
    "late"       worker 0 reads first and writes last, and the others work in between
    "falling"    as "late", but workers 0 and 1 read first; in the end a write makes the counter fall, worker 2, which
                 has read it before, raises it again, and a second late write makes it fall again
    """
    rng = stream(Purpose.MANUAL, seed, "interleaving", kind, workers, each, cells)
    if kind == "apart":
        left = [[(worker, action, worker) for _ in range(each) for action in ("read", "write")]
                for worker in range(workers)]  # fmt: skip
        return shuffled_together(left, rng)
    chosen = [[int(cell) for cell in rng.integers(0, cells, each)] for _ in range(workers)]
    pairs = [[[(worker, "read", cell), (worker, "write", cell)] for cell in chosen[worker]]
             for worker in range(workers)]  # fmt: skip
    if kind == "locked":
        order = rng.permutation([worker for worker in range(workers) for _ in range(each)])
        return [event for worker in order for event in pairs[int(worker)].pop(0)]
    if kind == "at_once":
        return [pairs[worker][i][half] for i in range(each) for half in (0, 1) for worker in range(workers)]
    if kind == "all_cells":
        before = [(worker, action, 0) for worker in range(workers) for _ in range(each) for action in ("read", "write")]
        return before + [(worker, action, cell) for action in ("read", "write")
                         for worker in range(workers) for cell in range(cells)]  # fmt: skip
    if kind == "late":
        (first, last), cell = pairs[0][0], chosen[0][0]
        others = [(worker, action, cell) for worker in range(1, workers) for _ in range(each)
                  for action in ("read", "write")]  # fmt: skip
        return [first, *others, last]
    if kind == "falling":
        cell = chosen[0][0]
        late = [(worker, action, cell) for worker, action in ((0, "write"), (2, "write"), (1, "write"))]
        others = [(2, action, cell) for _ in range(each) for action in ("read", "write")]
        return [(0, "read", cell), (1, "read", cell), *others, (2, "read", cell), *late]
    return shuffled_together([[event for pair in own for event in pair] for own in pairs], rng)


def far_apart(events: Sequence[Event]) -> list[Event]:
    """The same events with cells that are not numbered from 0 on: cell 0 stays, and 1, 2, … are 1000, 2000, …"""
    return [(worker, action, 1000 * cell) for worker, action, cell in events]


def shuffled_together(left: list[list[Event]], rng: np.random.Generator) -> list[Event]:
    """The workers' events in a random order in which each worker's own order stays."""
    order = rng.permutation([worker for worker, own in enumerate(left) for _ in own])
    queues = [iter(own) for own in left]
    return [next(queues[int(worker)]) for worker in order]


def lost(events: Sequence[Event]) -> int:
    """The increments that are missing in the end."""
    counters: dict[int, int] = {}
    seen: dict[tuple[int, int], int] = {}
    writes = 0
    for worker, action, cell in events:
        if action == "read":
            seen[worker, cell] = counters.get(cell, 0)
        else:
            counters[cell] = seen[worker, cell] + 1
            writes += 1
    return writes - sum(counters.values())


def stale_writes(events: Sequence[Event]) -> int:
    """The writes between which and their reads another worker wrote the cell."""
    written: dict[int, int] = {}
    seen: dict[tuple[int, int], int] = {}
    count = 0
    for worker, action, cell in events:
        if action == "read":
            seen[worker, cell] = written.get(cell, 0)
        else:
            count += written.get(cell, 0) != seen[worker, cell]
            written[cell] = written.get(cell, 0) + 1
    return count


def as_one_cell(events: Sequence[Event]) -> int:
    """The lost increments if all events were of one cell."""
    return lost([(worker, action, 0) for worker, action, _ in events])


def switches(events: Sequence[Event]) -> int:
    """The reads that are not directly followed by the write of the same worker."""
    return sum(one[1] == "read" and (other[0] != one[0] or other[1] != "write") for one, other in pairwise(events))


def judge(answer: Answer, cases: Sequence[Case], seed: int) -> None:
    """Compare the answer for each interleaving."""
    for kind, workers, each, cells in cases:
        events = far_apart(interleaving(kind, workers, each, cells, seed))
        want, got = lost(events), answer(events)
        writes = sum(action == "write" for _, action, _ in events)
        expect.number(got, want, title(kind, events, workers), atol=0.0, mistakes=mistakes(events, writes))


def mistakes(events: Sequence[Event], writes: int) -> dict[str, int]:
    """What known mistakes give."""
    want = lost(events)
    found = {
        "These are the writes that overwrite another worker's. A write that is late by several loses several.": (
            stale_writes(events)
        ),
        "The cells are counted as one: an update of another cell loses nothing.": as_one_cell(events),
        "Other workers may come between a read and its write without loss: in other cells, or reading only.": switches(
            events
        ),
        "That is the number of increments that are not lost.": writes - want,
        "Every increment is counted.": writes,
        "Something is lost here: two workers read the same value, and both write it plus one.": 0,
    }
    return {sentence: number for sentence, number in found.items() if number != want}


def title(kind: str, events: Sequence[Event], workers: int) -> str:
    """The call, with the beginning of the events."""
    first = ", ".join(f"({worker}, {action!r}, {cell})" for worker, action, cell in events[:4])
    more = ", …" if len(events) > 4 else ""
    return f"lost_updates([{first}{more}]), {counted(len(events), 'event')} of {counted(workers, 'worker')} ({kind})"
