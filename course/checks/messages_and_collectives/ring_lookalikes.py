"""All-reduces that are a ring, and others that look like one: the messages that each of them sends.

All but two of them return the right sum (`tests/course/checks/test_ring_lookalikes.py`). Their messages come from a
simulated run. Those of `near_rings.py` violate one condition, on one or two ranks only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from course.checks.messages_and_collectives import near_rings
from course.checks.messages_and_collectives.rank_messages import ITEMSIZE
from course.judging import Answer, expect
from minidl import cluster

Send = tuple[int, int, int]
"""(source, destination, bytes)"""

SPLIT = "split"


def ring(comm: cluster.Communicator, x: np.ndarray) -> None:
    comm.all_reduce(x, algorithm="ring")


def ring_to_the_left(comm: cluster.Communicator, x: np.ndarray) -> None:
    comm.split(0, key=-comm.rank).all_reduce(x, algorithm="ring")


def ring_in_another_order(comm: cluster.Communicator, x: np.ndarray) -> None:
    """Round 0, 2, 4, ... and then the odd ranks."""
    comm.split(0, key=comm.rank // 2 + comm.size * (comm.rank % 2)).all_reduce(x, algorithm="ring")


def parameter_server(comm: cluster.Communicator, x: np.ndarray) -> None:
    comm.all_reduce(x, algorithm="parameter_server")


def whole_vectors_twice_round(comm: cluster.Communicator, x: np.ndarray) -> None:
    """Everyone's whole vector goes round, then the sums do: 2(p - 1) times n elements a rank."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    passing = x.copy()
    for _ in range(comm.size - 1):
        passing = comm.sendrecv(passing, right, left)
        x += passing
    for _ in range(comm.size - 1):
        x[...] = comm.sendrecv(x, right, left)


def chunks_in_halves(comm: cluster.Communicator, x: np.ndarray) -> None:
    """One ring, but twice as many messages: the ring all-reduce of one half of the vector, then of the other."""
    for half in np.array_split(x, 2):
        comm.all_reduce(half, algorithm="ring")


def rest_in_one_chunk(comm: cluster.Communicator, x: np.ndarray) -> None:
    """A ring whose last chunk has all that n // p leaves over."""
    p, even = comm.size, len(x) // comm.size
    round_a_ring(comm, [x[i * even : (i + 1) * even if i < p - 1 else len(x)] for i in range(p)], back=1)


def there_and_back(comm: cluster.Communicator, x: np.ndarray) -> None:
    """The reduce-scatter goes to the right, the all-gather to the left."""
    round_a_ring(comm, np.array_split(x, comm.size), back=-1)


def round_a_ring(comm: cluster.Communicator, chunks: list[np.ndarray], back: int) -> None:
    """A ring all-reduce of views; the all-gather goes to the right if `back` is 1, to the left if it is -1."""
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    for step in range(p - 1):
        chunks[(me - 2 - step) % p][...] += comm.sendrecv(chunks[(me - 1 - step) % p], right, left)
    for step in range(p - 1):
        passed = chunks[(me - back * step) % p]
        chunks[(me - back * (step + 1)) % p][...] = comm.sendrecv(passed, (me + back) % p, (me - back) % p)


def pairwise(comm: cluster.Communicator, x: np.ndarray) -> None:
    """The ring's messages and bytes, but every chunk is sent straight to the rank that adds it up."""
    comm.all_reduce(x, algorithm="ordered")


def rabenseifner(comm: cluster.Communicator, x: np.ndarray) -> None:
    comm.all_reduce(x, algorithm="rabenseifner")


def hierarchical(comm: cluster.Communicator, x: np.ndarray) -> None:
    comm.all_reduce(x, algorithm="hierarchical")


class Lookalike(NamedTuple):
    """A program, whether it is a ring all-reduce, what it is in words, and whether every rank ends with the sum."""

    program: Callable[[cluster.Communicator, np.ndarray], None]
    is_ring: bool
    words: str
    sums: bool = True


PROGRAMS = {
    "ring": Lookalike(ring, True, "a ring"),
    "ring_to_the_left": Lookalike(ring_to_the_left, True, "a ring in which rank r sends to rank r - 1"),
    "ring_in_another_order": Lookalike(ring_in_another_order, True, "a ring in which the ranks stand in another order"),
    "parameter_server": Lookalike(parameter_server, False, "a parameter server: everything goes through rank 0"),
    "whole_vectors_twice_round": Lookalike(
        whole_vectors_twice_round, False, "whole vectors that go round instead of chunks"
    ),
    "chunks_in_halves": Lookalike(chunks_in_halves, False, "a ring in which every chunk goes in two messages"),
    "rest_in_one_chunk": Lookalike(
        rest_in_one_chunk, False, "a ring in which the last chunk has all that n // p leaves over"
    ),
    "there_and_back": Lookalike(
        there_and_back, False, "chunks that go to the right to be added and to the left to be handed out"
    ),
    "pairwise": Lookalike(pairwise, False, "chunks that are sent straight to the rank that adds them up"),
    "rabenseifner": Lookalike(rabenseifner, False, "Rabenseifner's algorithm: halving, then doubling"),
    "hierarchical": Lookalike(hierarchical, False, "small rings within groups and between them"),
    "one_chunk_in_two": Lookalike(
        near_rings.one_chunk_in_two, False, "a ring in which one rank sends one chunk in two messages"
    ),
    "one_more_one_fewer": Lookalike(
        near_rings.one_more_one_fewer, False, "a ring in which one rank sends a message more, and another one fewer"
    ),
    "one_fewer": Lookalike(near_rings.one_fewer, False, "a ring in which one rank does not send an empty chunk"),
    "last_messages_swapped": Lookalike(
        near_rings.last_messages_swapped, False, "a ring in which two ranks swap the destinations of their last message"
    ),
    "one_long_message": Lookalike(near_rings.one_long_message, False, "a ring in which one message is too long"),
    "two_rings": Lookalike(near_rings.two_rings, False, "two rings, each of half the ranks", sums=False),
    "one_behind_the_ring": Lookalike(
        near_rings.one_behind_the_ring, False, "a ring of all ranks but 0, which sends into it", sums=False
    ),
}

Trace = tuple[str, int, int]
"""A name in PROGRAMS, ranks, elements."""

TRACES: Sequence[Sequence[Trace]] = (
    (
        ("ring", 4, 8),
        ("parameter_server", 4, 8),
        ("whole_vectors_twice_round", 4, 8),
        ("chunks_in_halves", 4, 8),
        ("one_chunk_in_two", 4, 8),
        ("one_fewer", 4, 3),
    ),
    (("ring", 3, 10), ("rest_in_one_chunk", 3, 11), ("one_long_message", 4, 8), ("ring", 2, 6), ("ring", 5, 3)),
    (("ring_to_the_left", 5, 15), ("pairwise", 5, 15), ("there_and_back", 5, 15), ("last_messages_swapped", 5, 15)),
    (
        ("ring_in_another_order", 5, 10),
        ("one_more_one_fewer", 4, 3),
        ("two_rings", 4, 8),
        ("one_behind_the_ring", 4, 8),
    ),
)
"""In groups: who looks at two of the three conditions only loses two groups, whichever the third is."""


@lru_cache
def run(name: str, p: int, n: int) -> tuple[list[Send], list[Any]]:
    """The messages of the program `name` among p ranks with n float64 elements, in order of time, and its results."""
    program = PROGRAMS[name].program

    def summing(comm: cluster.Communicator) -> np.ndarray:
        x = np.arange(n, dtype=float) + comm.rank
        program(comm, x)
        return x

    done = cluster.launch(summing, nodes=p, on="simulation", network=cluster.Network(1e-6, 1e-9))
    handed_over = [
        event
        for event in done.trace.events
        if event.kind == "send" and event.operation != SPLIT and event.peer_posted is None
    ]
    handed_over.sort(key=lambda event: (event.start, event.rank))
    return [(event.rank, event.peer, event.nbytes) for event in handed_over], done.results


def broken_conditions(sends: list[Send], p: int, n: int) -> list[int]:
    """The numbers of the conditions in the exercise's text that these messages do not fulfil."""
    count = Counter(source for source, _, _ in sends)
    arrows = {(source, destination) for source, destination, _ in sends}
    rank, visited = 0, []
    for _ in range(p):
        rank = dict(arrows).get(rank, rank)
        visited.append(rank)
    longest = -(-n // p) * ITEMSIZE
    conditions = {
        1: all(count[rank] == 2 * (p - 1) for rank in range(p)),
        2: len(arrows) == p and len(set(visited)) == p and rank == 0,
        3: all(nbytes <= longest for _, _, nbytes in sends),
    }
    return [number for number, holds in conditions.items() if not holds]


def judge(answer: Answer, name: str, p: int, n: int) -> None:
    """The answer is whether this program is a ring all-reduce."""
    sends, _ = run(name, p, n)
    broken = broken_conditions(sends, p, n)
    beginning = ", ".join(map(str, sends[:6])) + (", …" if len(sends) > 6 else "")
    called = f"is_ring(sends, p={p}, nbytes={n * ITEMSIZE}) for {PROGRAMS[name].words} (sends: {beginning})"
    why = f"Condition {broken[0]} of the text does not hold here." if broken else "All three conditions hold here."
    expect.same(answer(sends, p, n * ITEMSIZE), not broken, called, mistakes={why: bool(broken)})
