"""Running an answer as the program of simulated nodes, and what is seen of it: results, messages, bytes, time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RankRun:
    """A run of an answer on simulated ranks; each list has an item a rank.

    results: what the function returned. messages, nbytes: that the rank sent. operations: the names of the
    communicator calls it made, sorted. seconds: virtual, of the whole run. sends: of each message that was sent, in
    order of time: (source, destination, bytes, start, end).
    """

    results: list[Any]
    messages: list[int]
    nbytes: list[int]
    operations: list[list[str]]
    seconds: float
    sends: list[tuple[int, int, int, float, float]]


def run(
    function: Callable[..., Any], arguments: list[tuple[Any, ...]], network: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """In the student's process: run `function(comm, *arguments[rank])` on every rank; the fields of a RankRun."""
    from minidl import cluster

    def program(comm: cluster.Communicator) -> Any:
        return function(comm, *arguments[comm.rank])

    done = cluster.launch(program, nodes=len(arguments), on="simulation", network=network, **options)
    ledger = done.trace.ledger()
    sends = [
        (event.rank, event.peer, event.nbytes, event.start, event.end)
        for event in done.trace.events
        if event.kind == "send"
    ]
    return {
        "results": done.results,
        "messages": [sum(traffic.messages for traffic in row.values()) for row in ledger],
        "nbytes": [sum(traffic.nbytes for traffic in row.values()) for row in ledger],
        "operations": [sorted(row) for row in ledger],
        "seconds": done.seconds,
        "sends": sorted(sends, key=lambda send: (send[3], send[0])),
    }
