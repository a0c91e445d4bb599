"""The fault record of a run: which nodes died and what that cost, and for whom the others waited.

Ranks are numbered anew after a restart. Here nodes keep the number with which they began, and one that joins gets the
next. The numbers follow from the restarts, and the seconds from the traces of the launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.trace.trace import Trace
from minidl.parallel.run.elastic_restart import Restart


@dataclass(frozen=True)
class Death:
    """The end of one node in a run that went on without it.

    node        its number
    seconds     when, on the axis of `report.history`; None if nobody knows. For a run without `elastic`, evaluation and
                the building of the model count, too
    why         the first line of the error
    steps_lost  updates of the furthest survivor that were done again; None if no node survived
    """

    node: int
    seconds: float | None
    why: str
    steps_lost: int | None = 0


def launches_of(nodes: int, servers: int, restarts: Sequence[Restart], replaces: bool) -> list[list[int]]:
    """For each launch, by rank, the numbers of its nodes, then of its servers.

    Parameters
        nodes     number of nodes of the last launch
        restarts  between the launches
        replaces  whether new nodes take the ranks of the dead; else they come last
    """
    at_first = restarts[0].nodes - restarts[0].joined + len(restarts[0].died) if restarts else nodes
    numbers = [list(range(at_first + servers))]
    new = count(at_first)  # no run has both servers and restarts
    for restart in restarts:
        if replaces:
            numbers.append([next(new) if rank in restart.died else node for rank, node in enumerate(numbers[-1])])
        else:
            left = [node for rank, node in enumerate(numbers[-1]) if rank not in restart.died]
            numbers.append([*left, *(next(new) for _ in range(restart.joined))])
    return numbers


def deaths_of(
    launches: Sequence[Sequence[int]], restarts: Sequence[Restart], failures: dict[int, ClusterError]
) -> list[Death]:
    """The deaths that restarts followed, then those in the last launch."""
    deaths = [
        Death(numbers[rank], restart.seconds, why, restart.steps_lost)
        for numbers, restart in zip(launches, restarts, strict=False)
        for rank, why in restart.died.items()
    ]
    before = restarts[-1].seconds if restarts else 0.0
    for rank, error in failures.items():
        seconds = None if error.seconds is None else before + error.seconds
        deaths.append(Death(launches[-1][rank], seconds, str(error).partition("\n")[0]))
    return deaths


def waited_for(launches: Sequence[Sequence[int]], traces: Sequence[Trace]) -> dict[int, float]:
    """By number: the seconds that others waited because of this node or server, as `Trace.waited_for` has them."""
    seconds: dict[int, float] = {}
    for numbers, trace in zip(launches, traces, strict=True):
        for node, waited in zip(numbers, trace.waited_for(), strict=True):
            seconds[node] = seconds.get(node, 0.0) + waited
    return seconds
