"""Runs of `gossip` on a graph: the mixed arrays, and the messages between neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from course.checks.averaging.graphs import Array, Graph, drawn_weights, factor
from course.checks.averaging.machines import scales
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun
from course.plural import counted
from minidl.cluster import Network
from minidl.random import Purpose, stream

Case = tuple[Graph, int, int]
"""(graph, n, steps)"""

A_SECOND_A_MESSAGE = Network(alpha=1.0, beta=0.0)
"""On this network the seconds of a run are its rounds of messages."""

ROUNDING = 1e-9


@dataclass
class Gossiped:
    """A run of `gossip`; one that raises is made again by the next part that asks for it."""

    answer: Answer
    graph: Graph
    w: Array
    x: Array
    steps: int
    in_rounds: bool = False

    @cached_property
    def run(self) -> RankRun:
        network = A_SECOND_A_MESSAGE if self.in_rounds else None
        return self.answer.on_ranks(
            [(x, weights, self.steps) for x, weights in zip(self.x, self.weights, strict=True)], network
        )

    @property
    def weights(self) -> list[dict[int, float]]:
        """Each machine's row of the mixing matrix, without zeros."""
        return [{int(j): float(row[j]) for j in np.flatnonzero(row)} for row in self.w]

    def called(self, rank: int) -> str:
        kind, p = self.graph
        return f"gossip on rank {rank} of a {kind} graph of {p}, {counted(self.x.shape[1], 'word')}, steps={self.steps}"


def gossiped(answer: Answer, case: Case, seed: int, in_rounds: bool = False) -> Gossiped:
    """`gossip` on a graph whose pairs have different weights."""
    graph, n, steps = case
    graph = (graph[0], graph[1])
    x = scales(n) * stream(Purpose.MANUAL, seed, "numbers to mix", *graph, n).normal(size=(graph[1], n))
    return Gossiped(answer, graph, drawn_weights(graph, seed), x, steps, in_rounds)


def one_after_the_other(w: Array, x: Array, steps: int) -> Array:
    """What is mixed if machines use their neighbours' new values as soon as they are there."""
    x = x.copy()
    for _ in range(steps):
        for i in range(len(x)):
            x[i] = w[i] @ x
    return x


def mixed(one: Gossiped) -> Array:
    """The right arrays of all machines."""
    return np.asarray(np.linalg.matrix_power(one.w, one.steps) @ one.x)


def compare_mixed(one: Gossiped) -> None:
    """Raise Wrong unless each machine has its row of W^steps x."""
    w, p, power = one.w, len(one.w), np.linalg.matrix_power
    want = mixed(one)
    alike = (w > 0) / (w > 0).sum(axis=1, keepdims=True)
    others = w - np.diag(w.diagonal())
    slips = {
        "This is the mean of all machines. They are still apart: gossip has not reached it.": np.tile(
            one.x.mean(axis=0), (p, 1)
        ),
        "The weights are not used: this is the plain mean of a machine and its neighbours.": power(alike, one.steps)
        @ one.x,
        "The machine's own number is missing.": power(others, one.steps) @ one.x,
        "These are sums without weights.": power((w > 0).astype(float), one.steps) @ one.x,
        "All values are of the step before: no machine uses what a neighbour has already mixed.": one_after_the_other(
            w, one.x, one.steps
        ),
        "These are the numbers of the beginning.": one.x,
        "One step is missing.": power(w, max(0, one.steps - 1)) @ one.x,
        "There is one step too many.": power(w, one.steps + 1) @ one.x,
        "The numbers of the beginning are sent in each step; after a step, send what was mixed.": stuck(one),
    }
    for rank in range(p):
        mistakes = {k: v[rank] for k, v in slips.items() if not np.allclose(v[rank], want[rank])}
        expect.array(
            one.run.results[rank],
            want[rank],
            one.called(rank),
            rtol=ROUNDING,
            atol=ROUNDING,
            mistakes=mistakes,
            dtype=np.float64,
        )


def stuck(one: Gossiped) -> Array:
    """What is mixed if the neighbours' numbers are always those of the beginning."""
    others = (one.w - np.diag(one.w.diagonal())) @ one.x
    x = one.x
    for _ in range(one.steps):
        x = one.w.diagonal()[:, None] * x + others
    return np.asarray(x)


def compare_consensus(one: Gossiped) -> None:
    """Raise Wrong unless the mean stayed, and the distance to it shrank at least by the consensus factor each step."""
    compare_mixed(one)
    ends, mean = np.array(one.run.results), one.x.mean(axis=0)
    called = f"gossip on a {one.graph[0]} graph of {one.graph[1]}, steps={one.steps}"
    expect.array(ends.mean(axis=0), mean, f"{called}: the mean of all machines", rtol=ROUNDING, atol=ROUNDING)
    left, began = np.linalg.norm(ends - mean), np.linalg.norm(one.x - mean)
    most = factor(one.w) ** one.steps * began
    expect.true(
        left <= most + ROUNDING,
        f"{called}: expected a distance to the mean of at most {most:.6g}, the consensus factor to the power steps "
        f"times that of the beginning, got {left:.6g}.",
    )


def compare_messages(one: Gossiped) -> None:
    """Raise Wrong unless each machine sent its neighbours one message of n words in each step."""
    n = one.x.shape[1]
    for rank, weights in enumerate(one.weights):
        near = sorted(set(weights) - {rank})
        called = one.called(rank)
        names = [
            name for name in one.run.operations[rank] if name not in ("send", "isend", "sendrecv", "recv", "irecv")
        ]
        expect.true(
            not names,
            f"{called}: expected messages between neighbours only, got comm.{names[0] if names else ''}.",
            "A collective brings together machines that are no neighbours.",
        )
        for other in range(len(one.weights)):
            sent = [send for send in one.run.sends if send[:2] == (rank, other)]
            wanted = one.steps if other in near else 0
            if len(sent) != wanted:
                raise Wrong(
                    f"{called}: expected {counted(wanted, 'message')} to rank {other}, got {len(sent)}.",
                    "A message goes to neighbours only: weights has no entry for this rank."
                    if other not in near and other != rank else
                    "A machine knows its own number." if other == rank else
                    "Each step has one message to each neighbour.",
                )  # fmt: skip
            for send in sent:
                expect.true(
                    send[2] == 8 * n,
                    f"{called}: a message to rank {other} has {send[2]} bytes; {counted(n, 'word')} have {8 * n}.",
                    "A message is the machine's array x, once mixed the mixed one, and nothing else.",
                )


def compare_waited(one: Gossiped) -> None:
    """Raise Wrong unless each machine waited for the end of its sends."""
    for rank, left in enumerate(one.run.unfinished):
        expect.true(
            not left,
            f"{one.called(rank)}: returned without waiting for the end of {counted(left, 'call')} of isend or irecv.",
            "isend only begins to send: keep what it returns, and call .wait() of it before the next step, which sends "
            "another array.",
        )


def compare_rounds(one: Gossiped) -> None:
    """Raise Wrong unless all pairs of neighbours exchange their messages at the same time.

    A message takes a second, and a machine sends and receives one at a time. In whatever order a machine sends its
    messages of a step, they are there after twice as many seconds as it has neighbours. A machine that waits before it
    sends makes a chain of waiting machines, as long as the ring.
    """
    compare_mixed(one)
    most = 2 * one.steps * (max(map(len, one.weights)) - 1)
    expect.true(
        one.run.seconds <= most + 1e-6,
        f"{one.called(0)}: a message takes a second; expected at most {most} s, got {one.run.seconds:g} s.",
        "A machine that waits for a message before it sends its own holds up its neighbours, and these theirs: send "
        "to all neighbours first, by comm.isend.",
    )
