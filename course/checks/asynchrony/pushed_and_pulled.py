"""Runs of `push_pull` with servers of the check: results, messages and bytes by server, and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from course.checks.asynchrony.requests import (
    A_MOMENT,
    ADD,
    AT_ONCE,
    GET,
    ITEMSIZE,
    NAMES,
    PUT,
    Array,
    PlayedServer,
)
from course.judging import Answer, Wrong, expect
from course.judging.ranks.played_rank import Program
from course.judging.ranks.rank_run import RankRun
from course.plural import counted
from minidl.random import Purpose, stream


@dataclass(frozen=True)
class Pushed:
    """A run of `push_pull` on every worker."""

    deltas: list[Array]
    servers: list[PlayedServer]
    ranks: list[int]
    run: RankRun
    called: str


def pushed(answer: Answer, seed: int, workers: int, servers: int, n: int, *, is_timed: bool = False) -> Pushed:
    """Run `push_pull` on each worker; the first servers are the slowest to answer, but if timed all take a second.

    The servers' ranks are not in ascending order: an answer has to use the list.
    """
    rng = stream(Purpose.MANUAL, seed, "push and pull", workers, servers, n)
    scale = np.where(np.arange(n) == 1, 3e-7, 1.0)  # a weight that is much smaller than the others
    weights, deltas = scale * rng.normal(size=n), list(scale * rng.normal(size=(workers, n)))
    ranks = list(range(workers, workers + servers))
    ranks = [*ranks[1:], ranks[0]]
    played = [
        PlayedServer(shard, workers, thinks=1.0 if is_timed else float(servers - k))
        for k, shard in enumerate(np.array_split(weights, servers))
    ]

    def is_asked(server: PlayedServer) -> bool:
        kinds = [kind for _, kind, _ in server.requests]
        return min(kinds.count(GET), kinds.count(ADD) + kinds.count(PUT)) < workers

    def program(server: PlayedServer) -> Program:
        return lambda comm: server.serve(comm, lambda: is_asked(server))

    run = answer.on_ranks(
        [(delta, list(ranks)) for delta in deltas] + [()] * servers,
        AT_ONCE,
        played={rank: program(server) for rank, server in zip(ranks, played, strict=True)},
    )
    called = f"push_pull(comm, delta, servers), {counted(n, 'weight')} on {counted(servers, 'server')}"
    return Pushed(deltas, played, ranks, run, called)


def compare_weights(one: Pushed) -> None:
    """Raise Wrong unless each worker's delta was added once, and each got the weights after its own."""
    for worker, delta in enumerate(one.deltas):
        called = f"{one.called}, on worker {worker}"
        for number, server in enumerate(one.servers):
            kinds = [kind for source, kind, _ in server.requests if source == worker]
            if kinds[:2] != [ADD, GET]:
                came = ", then ".join(NAMES[kind] for kind in kinds) or "nothing"
                raise Wrong(
                    f"{called}: server {number} got {came}; expected ADD, then GET.",
                    "The weights that come back are to contain delta."
                    if kinds == [GET, ADD]
                    else "What is PUT replaces what other workers have added meanwhile: ADD keeps both."
                    if kinds and len(kinds) == 2
                    else "",
                )
            (values,) = (values for source, kind, values in server.requests if source == worker and kind == ADD)
            part = np.array_split(delta, len(one.servers))[number]
            mistakes = {
                "That is the negative: the caller has given the change itself.": -part,
                "The parts went to the servers in another order.": np.array_split(delta, len(one.servers))[-1 - number],
            }
            expect.array(values, part, f"{called}: what server {number} was to add", atol=0.0, mistakes=mistakes)
        want = np.concatenate([server.replies[worker][0] for server in one.servers])
        mistakes = {
            "The parts are in the order in which the replies came; servers[k] has part k.": np.concatenate(
                [server.replies[worker][0] for server in reversed(one.servers)]
            ),
            "That is delta.": delta,
            "delta was added once more here: the replies contain it.": want + delta,
        }
        expect.array(one.run.results[worker], want, called, atol=0.0, mistakes=mistakes, dtype=np.float64)


def compare_traffic(one: Pushed) -> None:
    """Raise Wrong unless each server got an ADD with its part, and a GET, from each worker."""
    workers = len(one.deltas)
    for worker in range(workers):
        for number, server in enumerate(one.servers):
            sent = [send[2] for send in one.run.sends if send[:2] == (worker, one.ranks[number])]
            called = f"{one.called}: worker {worker} to server {number}"
            expect.true(
                len(sent) == 2,
                f"{called}: {counted(len(sent), 'message')}, 2 needed.",
                "An ADD and a GET to each server, and nothing else.",
            )
            most = (2 + server.shard.size) * ITEMSIZE
            expect.true(
                sum(sent) == most,
                f"{called}: {sum(sent)} bytes, {most} needed: {counted(server.shard.size, 'value')} and two kinds, of "
                f"{ITEMSIZE} bytes each.",
                "Every server gets its own part of delta, and no other." if sum(sent) > most else "",
            )
        others = {send[1] for send in one.run.sends if send[0] == worker} - set(range(workers, len(one.run.results)))
        expect.true(not others, f"{one.called}: worker {worker} sent to rank {min(others, default=0)}, no server.")


def compare_seconds(one: Pushed) -> None:
    """Raise Wrong unless a lone worker waited no longer than one server needs."""
    expect.true(
        one.run.seconds <= 1 + A_MOMENT,
        f"{one.called} took {one.run.seconds:g} s; expected 1 s, in which each server prepares its reply.",
        "Send all requests before you wait for the first reply; then the servers work at the same time.",
    )
