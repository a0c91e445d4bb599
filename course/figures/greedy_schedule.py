"""List scheduling: no machine is idle while a task is ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Pieces = Mapping[str, tuple[float, Sequence[str]]]
"""A dependency graph: for each task its time, and the tasks whose results it needs."""


class Done(NamedTuple):
    """A scheduled task: its machine, start and end."""

    machine: int
    name: str
    start: float
    end: float


def greedy_schedule(pieces: Pieces, machines: int) -> list[Done]:
    """The tasks in the order in which they start; if several are ready, the first in `pieces` starts.

    With work W (sum of all times) and depth D (longest path), it takes at most W/p + D on p machines.

    Errors: ValueError for no machines, or for tasks that wait for each other or for unknown tasks.

    Source: Graham, Bounds for certain multiprocessing anomalies (1966).

    >>> greedy_schedule({"a": (1.0, []), "b": (2.0, []), "a + b": (0.5, ["a", "b"])}, machines=2)[-1]
    Done(machine=0, name='a + b', start=2.0, end=2.5)
    """
    if machines < 1:
        raise ValueError(f"a schedule needs at least one machine, got {machines}")
    free = [0.0] * machines
    ends: dict[str, float] = {}
    waiting = dict(pieces)
    schedule = []
    while waiting:
        ready = {
            name: max((ends[need] for need in needs), default=0.0)
            for name, (_, needs) in waiting.items()
            if all(need in ends for need in needs)
        }
        if not ready:
            raise ValueError(f"none of these can ever begin: {', '.join(waiting)}")
        name = min(ready, key=lambda name: max(ready[name], min(free)))
        start = max(ready[name], min(free))
        machine = next(machine for machine, since in enumerate(free) if since <= start)
        free[machine] = ends[name] = start + waiting.pop(name)[0]
        schedule.append(Done(machine, name, start, ends[name]))
    return schedule
