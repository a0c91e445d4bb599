"""Runs an answer as the program of simulated ranks, and records results, messages, bytes and virtual seconds.

The simulation runs in the check's process. Each rank of the answer runs in a process of its own (`rank_process.py`),
which has the arguments of this rank only, and requests each communicator call. So messages, bytes and virtual seconds
are counted by the check, where an answer cannot change them. The check itself can play some of the ranks
(`played_rank.py`): the workers of an answer that is a server, or the server of an answer that is a worker.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from course.judging.process.student_session import StudentSession
from course.judging.ranks import carried
from course.judging.ranks.collectives import Collective, collectives_of
from course.judging.ranks.forked_ranks import AnswerError, forked_ranks
from course.judging.ranks.played_rank import PlayedRank, Program
from course.judging.ranks.served_rank import AnswerRaised, ServedRank
from course.judging.ranks.student_frames import StudentLines
from course.judging.wrong import Wrong
from course.sandbox.errors.student_error import described, root_cause
from minidl import cluster
from minidl.cluster import Event

MOST_RANKS = 64


@dataclass(frozen=True)
class RankRun:
    """A run of an answer on simulated ranks.

    One item per rank
        results     what the function returned
        arguments   its arguments after it returned, without the communicator, for functions that work in place
        traffic     for the name of each communicator call: messages and bytes that the rank sent in all such calls
        heard_of    the ranks from which a chain of messages came to this one, itself included; see `carried.py`
        received    bytes that it received
        unfinished  the number of calls that it began, such as isend, and had not waited for when its function returned
        collectives the collectives in which it sent or received, in the order of its calls; see `collectives.py`

    Of the whole run
        seconds     virtual seconds
        sends       every message, in order of time: (source, destination, bytes, time of posting, time at which the
                    sender could go on); the last two are equal for an eager message
        events      the other events of the trace, in order of time: (rank, kind, start, end, bytes, peer, label,
                    operation), as in `cluster.Event`; the kind is "compute", "receive", "reduce" or "wait"
    """

    results: list[Any]
    arguments: list[tuple[Any, ...]]
    traffic: list[dict[str, tuple[int, int]]]
    seconds: float
    sends: list[tuple[int, int, int, float, float]]
    events: list[tuple[int, str, float, float, int, int, str, str]]
    heard_of: list[frozenset[int]]
    received: list[int]
    collectives: list[list[Collective]] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)

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


def could_have_carried(run: RankRun, what: str, rank: int, sources: Iterable[int], nbytes: int) -> None:
    """Raise Wrong unless messages could have carried `what` to a rank.

    That takes a chain of messages from each rank in `sources`, and at least `nbytes` received: 8 n bytes for a sum of n
    float64 numbers.
    """
    cause = "What a rank knows of another has to come by messages."
    for source in sorted(set(sources) - run.heard_of[rank]):
        raise Wrong(
            f"{what} cannot be known on rank {rank}: no message from rank {source} could have reached it.", cause
        )
    if run.received[rank] < nbytes:
        raise Wrong(
            f"{what} cannot be known on rank {rank}: {run.received[rank]} bytes came to it, {nbytes} are needed.", cause
        )


def run(
    session: StudentSession,
    name: str,
    arguments: list[tuple[Any, ...]],
    network: Any = None,
    *,
    starts: list[float] | None = None,
    node: cluster.Node | None = None,
    seed: int = 0,
    played: Mapping[int, Program] | None = None,
    **options: Any,
) -> RankRun:
    """Run the session's function `name(comm, *arguments[rank])` on every rank.

    Parameters
        played    the check's own programs for some ranks, which play these instead of the answer
        starts    virtual second at which each rank begins; default 0
        node      model for the time of minidl's kernels; default: they take no time
        seed      seed of the ranks' `comm.rng`
        options   further options of `cluster.launch`

    Raises AnswerError, Died or TooLong, and Wrong if a program of the check does.
    """
    if len(arguments) > MOST_RANKS:
        raise ValueError(f"a check runs at most {MOST_RANKS} ranks, got {len(arguments)}")
    size = len(arguments)
    simulation = cluster.Simulation(network=network, node=node)
    with forked_ranks(session, size) as forked:
        lines = StudentLines(session.sources)  # the process is there by now: loading it has filled the sources
        ranks: list[ServedRank | PlayedRank] = [
            PlayedRank(rank, played[rank])
            if played and rank in played
            else ServedRank(forked, name, rank, size, lines, own, simulation, starts[rank] if starts else 0.0, seed)
            for rank, own in enumerate(arguments)
        ]
        try:
            with playing(ranks) as number:
                done = cluster.launch(play, args=(number,), nodes=size, on=simulation, seed=seed, **options)
        except cluster.ClusterError as error:
            if forked.ended is not None:
                raise forked.ended from None
            if isinstance(wrong := root_cause(error), Wrong):
                raise wrong from None
            raise AnswerError(error_of(error, ranks, lines)) from None
        finally:
            session.output.note("".join(printed_lines(rank.rank, rank.printed) for rank in ranks))
    events = sorted(done.trace.events, key=lambda event: (event.end, event.rank))
    ledger = done.trace.ledger()
    return RankRun(
        results=[rank.returned[0] for rank in ranks],
        arguments=[rank.returned[1] for rank in ranks],
        traffic=[{name: (traffic.messages, traffic.nbytes) for name, traffic in row.items()} for row in ledger],
        seconds=done.seconds,
        sends=sends_of(events),
        events=[event[:8] for event in events if event.kind != "send" and is_something(event)],
        heard_of=[frozenset(range(size))] * size if done.trace.dropped else carried.heard_of(done.trace.events, size),
        received=[sum(traffic.nbytes_received for traffic in row.values()) for row in ledger],
        collectives=collectives_of(done.trace.events, size),
        unfinished=[rank.unfinished for rank in ranks],
    )


def error_of(error: cluster.ClusterError, ranks: list[ServedRank | PlayedRank], lines: StudentLines) -> dict[str, Any]:
    """The description of a failed run: the error that a rank raised, or the deadlock."""
    if isinstance(root_cause(error), AnswerRaised) and error.rank is not None:
        return {**ranks[error.rank].raised, "rank": error.rank}
    return described(error, lines)


_numbers = itertools.count()
_playing: dict[int, list[ServedRank | PlayedRank]] = {}


@contextmanager
def playing(ranks: list[ServedRank | PlayedRank]) -> Iterator[int]:
    """A number by which `play` finds the ranks: `launch` copies its arguments, and ranks cannot be copied."""
    number = next(_numbers)
    _playing[number] = ranks
    try:
        yield number
    finally:
        del _playing[number]


def play(comm: cluster.Communicator, number: int) -> None:
    """The program of each simulated rank."""
    _playing[number][comm.rank].play(comm)


def printed_lines(rank: int, printed: str) -> str:
    """What a rank printed, as `launch` shows it."""
    return "".join(f"[rank {rank}] {line}\n" for line in printed.splitlines())


def is_something(event: Event) -> bool:
    """Whether an event took time or moved data: between two calls the trace has compute events of no time."""
    return event.kind != "compute" or event.end > event.start


def sends_of(events: Iterable[Event]) -> list[tuple[int, int, int, float, float]]:
    """The messages sent. A message that is not eager has two events in the trace: posted, and taken."""
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
