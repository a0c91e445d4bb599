"""The collectives as data, `rounds.py`, are the collectives as functions: the same messages in the same order and bits.

Each rank of a network that buffers nothing writes down what it sends, receives and reduces: once as the function says,
once as the rounds say. What a simulation of all ranks at once makes of the rounds is compared, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from minidl.cluster import collectives
from minidl.cluster.collectives import rounds
from minidl.cluster.collectives.partition import split
from minidl.cluster.collectives.rounds import AllReduce, Reduces
from minidl.cluster.engines.simulation.batched import values
from minidl.cluster.engines.simulation.batched.values import all_reduced
from tests.cluster import rendezvous
from tests.tiers import exhaustively

of_few_ranks_and_of_every_number = pytest.mark.parametrize(
    "sizes", [(1, 2, 3, 4, 5, 7, 8, 9, 17), *exhaustively(((6, *range(10, 17), 64),))], ids=["few", "the others"]
)


class Observed:
    """A rank of the network that writes down its messages and reductions, with peers as numbers in the whole run."""

    def __init__(self, rank: rendezvous.Rank, log: list[Any]) -> None:
        self.on, self.log, self.rank, self.size = rank, log, rank.rank, rank.size

    def send(self, x: Any, dst: int) -> None:
        self.log.append(("send", self.on.ranks[dst], x.tobytes()))
        self.on.send(x, dst)

    def recv(self, src: int, *, out: Any = None) -> Any:
        x = self.on.recv(src, out=out)
        self.log.append(("receive", self.on.ranks[src], x.tobytes()))
        return x

    def sendrecv(self, x: Any, dst: int, src: int, *, out: Any = None) -> Any:
        sent, received = x.tobytes(), self.on.sendrecv(x, dst, src, out=out)
        self.log.append(("sendrecv", self.on.ranks[dst], sent, self.on.ranks[src], received.tobytes()))
        return received

    def reduce_into(self, a: Any, b: Any, op: str) -> None:
        self.on.reduce_into(a, b, op)
        self.log.append(("reduce", a.tobytes()))

    def among(self, ranks: Any) -> Observed:
        return Observed(self.on.among(ranks), self.log)


def executed(comm: Observed, description: AllReduce, x: Any, op: str) -> None:
    """Do what the rounds say for one rank, on messages."""
    chunks = [x[start:end] for start, end in description.bounds]
    kept = {comm.rank: chunks[comm.rank % len(chunks)].copy()}
    for each in description.rounds:
        src, dst, chunk, reduces = each
        to, of = np.flatnonzero(src == comm.rank), np.flatnonzero(dst == comm.rank)
        assert len(of) <= 1
        if reduces is Reduces.KEPT:
            total = kept[0]
            comm.reduce_into(total, kept[src[of[0]]], op)
            chunks[chunk[of[0]]][...] = total
            continue
        assert len(to) <= 1
        if len(to) and len(of):
            received = comm.sendrecv(chunks[chunk[to[0]]], dst[to[0]], src[of[0]])
        elif len(to):
            comm.send(chunks[chunk[to[0]]], dst[to[0]])
        elif len(of):
            received = comm.recv(src[of[0]])
        if len(of) and reduces is Reduces.LATER:
            kept[src[of[0]]] = received
        elif len(of):
            own = chunks[chunk[of[0]]]
            if reduces.is_reduction:
                a, b = (own, received) if each.operands[0][of[0]] == comm.rank else (received, own)
                comm.reduce_into(a, b, op)
                received = a
            own[...] = received


def logs(p: int, program: Callable[[Observed, Any], Any], arrays: list[Any]) -> list[Any]:
    """What every rank writes down, and the bits that it has at last."""

    def observed(rank: rendezvous.Rank) -> Any:
        comm, x = Observed(rank, []), arrays[rank.rank].copy()
        program(comm, x)
        return comm.log, x.tobytes()

    return rendezvous.run(p, observed).results


def vectors(p: int, n: int) -> list[Any]:
    """With zeros of both signs, whose maximum depends on the order."""
    rng = np.random.default_rng((p, n))
    return [(100 * rng.normal(size=n) * rng.choice([0, 1], n)).astype("float32") for _ in range(p)]


def options_of(name: str, p: int) -> list[dict[str, int]]:
    if name == "hierarchical":
        return [{}, {"per_group": 1}, {"per_group": 4 if p % 4 == 0 else p}]
    return [{}, {"segments": 120}] if name == "pipelined_chain" else [{}]


@of_few_ranks_and_of_every_number
@pytest.mark.parametrize("name", collectives.ALL_REDUCE)
@pytest.mark.parametrize(
    ("n", "op"), [(101, "max"), *exhaustively((101, "sum"), (0, "sum"), (3, "max"), (1000, "prod"))]
)
def test_the_rounds_of_an_all_reduce_are_the_messages_of_its_function(
    name: str, n: int, op: str, sizes: tuple[int, ...]
) -> None:
    for p in sizes:
        arrays = vectors(p, n)
        for options in options_of(name, p):
            function = partial(collectives.ALL_REDUCE[name], op=op, **options)
            expected = logs(p, function, arrays)

            def as_data(comm: Observed, x: Any) -> None:
                executed(comm, rounds.all_reduce(name, p, n, x.itemsize, **options), x, op)  # noqa: B023

            assert logs(p, as_data, arrays) == expected, f"{p} ranks, {options}"
            ufunc, bits = rendezvous.REDUCE[op], {bits for _, bits in expected}
            assert {all_reduced(name, arrays, ufunc, **options).tobytes()} == bits, f"{p} ranks, {options}"
            one_by_one = rounds.all_reduce(name, p, n, arrays[0].itemsize, **options)
            assert {values.executed(one_by_one, arrays, ufunc).tobytes()} == bits, f"{p} ranks, {options}"


OTHERS: dict[str, tuple[Callable[[Observed, Any], Any], Callable[[int], AllReduce]]] = {
    "reduce_scatter_ring": (
        collectives.reduce_scatter_ring,
        lambda p: AllReduce(rounds.divided(101, p), rounds.reduce_scatter_ring(np.arange(p), np.arange(p))),
    ),
    "all_gather_ring": (
        lambda comm, x: collectives.all_gather_ring(comm, split(x, comm.size)[comm.rank]),
        lambda p: AllReduce(rounds.divided(101, p), rounds.all_gather_ring(np.arange(p), np.arange(p))),
    ),
    "all_to_all_pairwise": (
        lambda comm, x: collectives.all_to_all_pairwise(comm, split(x, comm.size)),
        lambda p: AllReduce(rounds.divided(101, p), rounds.all_to_all_pairwise(p)),
    ),
    "barrier_dissemination": (
        lambda comm, x: collectives.barrier_dissemination(comm),
        lambda p: AllReduce(rounds.divided(0, 1), rounds.barrier_dissemination(p)),
    ),
    "reduce_tree": (collectives.reduce_tree, lambda p: AllReduce(rounds.divided(101, 1), rounds.reduce_tree(p))),
    "broadcast_tree": (
        collectives.broadcast_tree,
        lambda p: AllReduce(rounds.divided(101, 1), rounds.broadcast_tree(p)),
    ),
}


@of_few_ranks_and_of_every_number
@pytest.mark.parametrize("name", OTHERS)
def test_the_rounds_of_another_collective_are_the_messages_of_its_function(name: str, sizes: tuple[int, ...]) -> None:
    function, description = OTHERS[name]
    for p in sizes:
        arrays = vectors(p, 101)
        by_function = logs(p, function, arrays)
        by_rounds = logs(p, lambda comm, x: executed(comm, description(p), x, "sum"), arrays)  # noqa: B023
        assert [log for log, _ in by_rounds] == [log for log, _ in by_function], f"{p} ranks"
