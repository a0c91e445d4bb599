"""Running an answer as the program of simulated nodes, and what is seen of it: results, messages, bytes, time."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course.checking import plain_data

if TYPE_CHECKING:
    from minidl.cluster import Event


@dataclass(frozen=True)
class RankRun:
    """A run of an answer on simulated ranks; each list but the last two has an item a rank.

    results: what the function returned. arguments: its arguments (without the communicator) as they were when it had
    returned, for what is done in place. traffic: by the name of each communicator call that the rank made, the
    messages and bytes that it sent in all calls of that name. seconds: virtual, of the whole run.

    sends: every message, in order of time: (source, destination, bytes, when it was posted, when the sender was free
    to go on with what waits for it); the last two are equal for a message that went out eagerly. events: all that the
    trace has but messages sent, in order of time: (rank, kind, start, end, bytes, peer, label, operation), as in
    `cluster.Event`; the kind is "compute", "receive", "reduce" or "wait".
    """

    results: list[Any]
    arguments: list[tuple[Any, ...]]
    traffic: list[dict[str, tuple[int, int]]]
    seconds: float
    sends: list[tuple[int, int, int, float, float]]
    events: list[tuple[int, str, float, float, int, int, str, str]]

    @property
    def messages(self) -> list[int]:
        """The messages that each rank sent."""
        return [sum(messages for messages, _ in row.values()) for row in self.traffic]

    @property
    def nbytes(self) -> list[int]:
        """The bytes that each rank sent."""
        return [sum(nbytes for _, nbytes in row.values()) for row in self.traffic]

    @property
    def operations(self) -> list[list[str]]:
        """The names of the communicator calls that each rank made, sorted."""
        return [sorted(row) for row in self.traffic]

    def destinations(self, rank: int) -> set[int]:
        """The ranks to which a rank sent anything."""
        return {send[1] for send in self.sends if send[0] == rank}


def run(
    function: Callable[..., Any], arguments: list[tuple[Any, ...]], network: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """In the student's process: run `function(comm, *arguments[rank])` on every rank; the fields of a RankRun.

    options: `starts`, of each rank the virtual second at which it begins (0 without it); others are for `launch`.
    """
    from minidl import cluster

    def program(comm: cluster.Communicator) -> bytes:
        own = copy.deepcopy(arguments[comm.rank])  # arrays that came as one for several ranks are each rank's own
        if starts:
            comm.compute(seconds=starts[comm.rank])
        return plain_data.dumps((function(comm, *own), own))  # of whatever type: the check says what is wrong with it

    starts = options.pop("starts", None)
    done = cluster.launch(program, nodes=len(arguments), on="simulation", network=network, **options)
    events = sorted(done.trace.events, key=lambda event: (event.end, event.rank))
    results = [plain_data.loads(result) for result in done.results]
    return {
        "results": [result for result, _ in results],
        "arguments": [own for _, own in results],
        "traffic": [
            {operation: (traffic.messages, traffic.nbytes) for operation, traffic in row.items()}
            for row in done.trace.ledger()
        ],
        "seconds": done.seconds,
        "sends": sends_of(events),
        "events": [tuple(event[:8]) for event in events if event.kind != "send" and is_something(event)],
    }


def is_something(event: Event) -> bool:
    """Whether an event took time or moved anything: the trace also has compute of no time, between two calls."""
    return event.kind != "compute" or event.end > event.start


def sends_of(events: Iterable[Event]) -> list[tuple[int, int, int, float, float]]:
    """The messages sent; one that is not eager has two events in the trace: when it was posted, when it was taken."""
    posted = []
    taken: dict[tuple[int, int, float | None], list[float]] = defaultdict(list)
    for event in events:
        if event.kind == "send" and event.peer_posted is None:
            posted.append(event)
        elif event.kind == "send":
            taken[event.rank, event.peer, event.posted].append(event.end)
    sends = []
    for event in posted:
        ends = taken[event.rank, event.peer, event.posted]
        sends.append((event.rank, event.peer, event.nbytes, event.start, ends.pop(0) if ends else event.end))
    return sends
