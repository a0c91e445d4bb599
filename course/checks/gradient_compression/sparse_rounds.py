"""Runs of `sparse_sum`: the sums, the bytes of every round, where it switches, and known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.judging.ranks.collectives import POINT_TO_POINT
from course.judging.ranks.rank_run import RankRun
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int]
"""(p, n, k)"""


@dataclass(frozen=True)
class Sum:
    """The sparse vectors of all ranks, and the answer's run."""

    n: int
    indices: list[Array]
    values: list[Array]
    run: RankRun

    @property
    def p(self) -> int:
        return len(self.indices)

    @property
    def rounds(self) -> int:
        return self.p.bit_length() - 1

    def called(self, rank: int) -> str:
        return f"sparse_sum on rank {rank} of {self.p}, n={self.n}, {len(self.indices[rank])} entries here"

    def partial(self, rank: int, number: int) -> Array:
        """The sum that a rank has before a round, as a dense vector."""
        together = 2**number
        first = rank // together * together
        total = np.zeros(self.n, np.float32)
        for other in range(first, first + together):
            np.add.at(total, self.indices[other], self.values[other])
        return total

    def held(self, rank: int, number: int) -> int:
        """Different entries that a rank has before a round."""
        return int(np.count_nonzero(self.partial(rank, number)))

    def of_partners(self, rank: int) -> Array:
        """The sum of the rank's own vector and those of its partners alone."""
        total = self.partial(rank, 0)
        for i in range(self.rounds):
            total = total + self.partial(rank ^ 2**i, 0)
        return total

    def expected(self, rank: int) -> list[tuple[int, int]]:
        """The partner and the bytes of each round."""
        return [(rank ^ 2**i, min(8 * self.held(rank, i), 4 * self.n)) for i in range(self.rounds)]

    def sent(self, rank: int) -> list[tuple[int, int]]:
        """The receiver and the bytes of each message that the rank sent, in order."""
        return [(send[1], send[2]) for send in self.run.sends if send[0] == rank]


def run(answer: Answer, n: int, indices: list[Array], values: list[Array]) -> Sum:
    """Let the answer add up these vectors."""
    arguments = [(those.copy(), each.copy(), n) for those, each in zip(indices, values, strict=True)]
    return Sum(n, indices, values, answer.on_ranks(arguments))


def drawn(answer: Answer, case: Case, seed: int, kind: str = "random") -> Sum:
    """Random entries; kind: "same" for one set on all ranks, "disjoint" for sets without a common entry."""
    p, n, k = case
    rng = stream(Purpose.MANUAL, seed, "sparse vectors", kind, *case)
    order = rng.permutation(n)
    chosen = {
        "random": lambda rank: rng.permutation(n)[:k],
        "same": lambda rank: order[:k],
        "disjoint": lambda rank: order[rank * k : (rank + 1) * k],
    }[kind]
    indices = [chosen(rank) for rank in range(p)]
    signs = rng.choice([-1, 1], n)  # of all ranks, so that no sum is 0
    values = [signs[those] * rng.integers(1, 9, len(those)).astype(np.float32) / 4 for those in indices]
    sizes = 2.0 ** np.where(np.arange(n) % 4 == 3, -24, 0)  # small is not 0
    values = [(each * sizes[those]).astype(np.float32) for those, each in zip(indices, values, strict=True)]
    return run(answer, n, indices, values)


def uneven(answer: Answer) -> list[Sum]:
    """Ranks without entries, one of them alone, with all, and vectors of one entry or two, as many as rows of pairs."""
    none, one, every = np.zeros(0, np.int64), np.array([1]), np.arange(4)
    made = []
    for n, sets in (
        (4, [none, one, none, every]),
        (6, [none, none]),
        (6, [none]),
        (1, [np.array([0]), np.array([0])]),
        (2, [one, one]),
    ):
        values = [np.arange(1.0, 1 + len(those)).astype(np.float32) for those in sets]
        made.append(run(answer, n, list(sets), values))
    return made


def dense_sum(one: Sum, add: Callable[[Array, Array, Array], None]) -> Array:
    """All vectors written into one by `add(total, indices, values)`, rank by rank."""
    total = np.zeros(one.n, np.float32)
    for those, each in zip(one.indices, one.values, strict=True):
        add(total, those, each)
    return total


def overwrite(total: Array, indices: Array, values: Array) -> None:
    total[indices] = values


def compare_sums(one: Sum) -> None:
    """Raise Wrong unless every rank has the sum, the same to the bit."""
    want = dense_sum(one, np.add.at)
    for rank in range(one.p):
        own = np.zeros(one.n, np.float32)
        own[one.indices[rank]] = one.values[rank]
        slips = {
            "This is the rank's own vector: what came was not added.": own,
            "Entries of several ranks were overwritten instead of added up.": dense_sum(one, overwrite),
            "The sum was divided by p: the sum is wanted, not the mean.": want / one.p,
            "The first round alone was made.": one.partial(rank, min(1, one.rounds)),
            "Only a rank's own entries were sent on: send the sum of what it has so far.": one.of_partners(rank),
        }
        slips = {sentence: value for sentence, value in slips.items() if not np.array_equal(value, want)}
        called = one.called(rank)
        expect.array(one.run.results[rank], want, called, atol=0.0, mistakes=slips, dtype=np.float32)
    first = one.run.results[0]
    for rank in range(1, one.p):
        expect.same_bits(one.run.results[rank], first, f"{one.called(rank)}: compared with rank 0")


def compare_partners(one: Sum) -> None:
    """Raise Wrong unless each rank sent one message in each round, to the right partner."""
    for rank in range(one.p):
        called = one.called(rank)
        others = [name for name in one.run.operations[rank] if name not in POINT_TO_POINT]
        if others:
            cause = {
                "all_gather": "That sends the entries of every rank p - 1 times, however many they have in common.",
                "all_reduce": "That sends whole vectors, however few entries they have.",
            }.get(others[0], "")
            raise Wrong(f"{called}: expected messages to one partner a round, got comm.{others[0]}.", cause)
        want, got = [to for to, _ in one.expected(rank)], [to for to, _ in one.sent(rank)]
        if got != want:
            causes = [
                (not got, "Nothing was sent."),
                (len(got) == 2 * len(want), "Are indices and values sent in two messages? `pairs` makes one of them."),
                (got == want[::-1], "The rounds are in the other order: the first partner is comm.rank ^ 1."),
                (len(got) == one.p - 1, "Each rank sends to all others: p - 1 messages instead of log2(p)."),
            ]
            raise Wrong(
                f"{called}: expected a message to each of the ranks {want} in turn, got {got}.",
                next((sentence for holds, sentence in causes if holds), ""),
            )


BORDERS = ((8, 4), (9, 4), (101, 50))
"""(n, j): the entries of a rank just where pairs have as many bytes as the vector, and just below."""


def judge_border(answer: Answer, n: int, j: int) -> None:
    """Raise Wrong unless the first of two ranks, with j entries of n, sends the right one of the two kinds.

    The check plays the second rank: at the border both kinds have the same number of bytes.
    """
    indices, values = np.arange(n - 1, n - 1 - j, -1), np.ones(j, np.float32)
    theirs = np.array([[0], np.ones(1, np.float32).view(np.int32)], np.int32)
    run = answer.on_ranks([(indices, values, n), ()], played={1: lambda comm: comm.sendrecv(theirs, 0, 0)})
    came, is_sparse = run.results[1], 8 * j < 4 * n
    is_right = isinstance(came, np.ndarray) and came.dtype == (np.int32 if is_sparse else np.float32)
    if not is_right:
        kind = "a message of entries" if is_sparse else "the float32 array of all entries"
        got = f"an array of {came.dtype}" if isinstance(came, np.ndarray) else "another object"
        raise Wrong(
            f"sparse_sum on rank 0 of 2, n={n}, {j} entries here: expected {kind}, got {got}.",
            f"Entries are sent if 8 j < 4 n; here 8 j = {8 * j} and 4 n = {4 * n}.",
        )


def compare_bytes(one: Sum) -> None:
    """Raise Wrong unless every message has the bytes of its entries, or of the whole vector if these are no more."""
    compare_partners(one)
    for rank in range(one.p):
        for number, ((_, want), (_, got)) in enumerate(zip(one.expected(rank), one.sent(rank), strict=True)):
            held = one.held(rank, number)
            if got == want:
                continue
            own = len(one.indices[rank])
            added = sum(len(one.indices[other]) for other in range(one.p) if other // 2**number == rank // 2**number)
            causes = [
                (got == 8 * held, "Pairs are sent although they are no fewer bytes than the whole vector."),
                (got == 4 * one.n, "The whole vector is sent although pairs would be fewer bytes."),
                (got == 8 * own, "Only the rank's own entries are sent on; send the sum of what it has so far."),
                (got == 8 * added, "The same entry is sent several times: add up equal indices before the next round."),
                (got == 12 * held, "An entry has 8 bytes: int32 and float32, not int64 or float64."),
                (got == 16 * held, "An entry has 8 bytes: int32 and float32, not int64 and float64."),
                (got == 8 * one.n, "The whole vector is sent in float64; float32 has half as many bytes."),
            ]
            raise Wrong(
                f"{one.called(rank)}, round {number}: it has {held} different entries, expected a message of {want} "
                f"bytes, got {got}.",
                " Or: ".join(sentence for holds, sentence in causes if holds),  # their bytes may be equal
            )
