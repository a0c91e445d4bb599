"""Runs an answer's server with scripted workers, and compares its replies and values with the right ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from course.checks.asynchrony.requests import ADD, AT_ONCE, DONE, GET, ITEMSIZE, NAMES, PUT, Array, idle, request
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun
from course.plural import counted
from minidl.cluster import Communicator
from minidl.random import Purpose, stream

A_LITTLE = 2.0**-30
"""Added to the whole numbers that workers send: float32 loses it, float64 adds it exactly in any order."""

FLOAT32 = "The values went through float32, which has 7 digits; all arrays are float64."


@dataclass(frozen=True)
class Asked:
    """A worker's request: its kind and values, and `at`, the time in seconds at which it is sent."""

    at: float
    worker: int
    kind: float
    values: Array


@dataclass(frozen=True)
class Served:
    """A run of `serve`: the initial shard, the requests in order of time, and what the ranks returned."""

    shard: Array
    workers: int
    requests: list[Asked]
    run: RankRun
    called: str

    def replies(self) -> list[tuple[Asked, float, Any]]:
        """Each GET, the time in seconds of its reply, and the reply."""
        left = {worker: iter(self.run.results[worker]) for worker in range(self.workers)}
        return [(asked, *next(left[asked.worker])) for asked in self.requests if asked.kind == GET]


def script(seed: int, workers: int, n: int, each: int, kinds: Sequence[float]) -> list[Asked]:
    """The requests of all workers, one per second: `each` per worker, the last one a GET, and then its DONE.

    The kinds alternate, and two of three PUTs have the same values. Worker 0 is done first and worker 1 last; the other
    requests have a random order.
    """
    rng = stream(Purpose.MANUAL, seed, "requests to a server", workers, n, each)
    numbers = partial(with_small_end, rng, n)
    turns = list(rng.permutation(np.repeat(np.arange(workers), each)))
    if workers > 1 and each:
        first, *others = [turn for turn in turns if turn != 0]
        if 1 in others:  # and worker 1 is done last
            others.remove(1)
            others.append(1)
        turns = [first, *[0] * each, *others]
    found: list[Asked] = []
    left, puts, again = [each] * workers, 0, numbers() + A_LITTLE
    for turn, worker in enumerate(map(int, turns)):
        kind = GET if left[worker] == 1 and GET in kinds else kinds[turn % len(kinds)]
        values = numbers() + A_LITTLE if kind in (ADD, PUT) else np.zeros(0)
        if kind == PUT:
            puts += 1
            values = values if puts % 3 == 0 else again
        found.append(Asked(len(found) + 1.0, worker, kind, values))
        left[worker] -= 1
        if not left[worker]:
            found.append(Asked(len(found) + 1.0, worker, DONE, np.zeros(0)))
    for worker in range(workers) if not each else ():
        found.append(Asked(len(found) + 1.0, worker, DONE, np.zeros(0)))
    return found


def with_small_end(rng: np.random.Generator, n: int) -> Array:
    """n random whole numbers, the last one 0 if n > 1: sums of A_LITTLE alone stay tiny, and must not be lost."""
    numbers = rng.integers(-9, 10, n).astype(float)
    numbers[1:][-1:] = 0
    return numbers


def worker_of(requests: Sequence[Asked], server: int) -> Callable[[Communicator], list[tuple[float, Any]]]:
    """The program of a worker: it sends its requests at their times, and returns time and reply of each GET."""

    def play(comm: Communicator) -> list[tuple[float, Any]]:
        replies = []
        for asked in requests:
            if asked.worker == comm.rank:
                comm.compute(seconds=max(0.0, asked.at - comm.now()))
                comm.send(request(asked.kind, asked.values), server)
                if asked.kind == GET:
                    reply = comm.recv(server)
                    replies.append((comm.now(), reply))
        return replies

    return play


def served(answer: Answer, seed: int, workers: int, n: int, each: int, kinds: Sequence[float]) -> Served:
    """Run `serve` on a shard of n values, with `each` requests per worker."""
    requests = script(seed, workers, n, each, kinds)
    shard = with_small_end(stream(Purpose.MANUAL, seed, "a shard", n), n)
    played = {worker: worker_of(requests, workers) for worker in range(workers)} | {workers + 1: idle}
    run = answer.on_ranks([()] * workers + [(shard, workers), ()], AT_ONCE, may_change=[0], played=played)
    called = f"serve(comm, shard, {workers}), shard of {counted(n, 'value')}"
    return Served(shard, workers, requests, run, called)


def replayed(shard: Array, requests: Sequence[Asked]) -> tuple[list[Array], Array]:
    """The right replies to the GETs and the final values, if requests are handled in this order."""
    values, replies = shard.copy(), []
    for asked in requests:
        if asked.kind == GET:
            replies.append(values.copy())
        elif asked.kind == PUT:
            values = asked.values.copy()
        elif asked.kind == ADD:
            values = values + asked.values
    return replies, values


def in_float32(one: Served) -> tuple[list[Array], Array]:
    """The replies and the final values of a server that computes in float32."""
    requests = [replace(each, values=each.values.astype(np.float32)) for each in one.requests]
    replies, end = replayed(one.shard.astype(np.float32), requests)
    return [reply.astype(float) for reply in replies], end.astype(float)


def mistaken_kinds(one: Served, requests: Sequence[Asked]) -> dict[str, Array]:
    """The values after these requests if ADD and PUT are confused, by the explanation of each mistake."""
    as_put = [replace(each, kind=PUT if each.kind == ADD else each.kind) for each in requests]
    as_add = [replace(each, kind=ADD if each.kind == PUT else each.kind) for each in requests]
    sentences = (
        "ADD was treated like PUT: an update that replaces the values loses those of the other workers.",
        "PUT was treated like ADD: after PUT the values are those that came.",
    )
    return {sentence: replayed(one.shard, each)[1] for sentence, each in zip(sentences, (as_put, as_add), strict=True)}


def end_mistakes(one: Served) -> dict[str, Array]:
    """The final values that known mistakes give, by the explanation of each."""
    first_done = next((i for i, asked in enumerate(one.requests) if asked.kind == DONE), 0)
    ended = replayed(one.shard, one.requests[:first_done])[1]
    return {
        "The server ended with the first worker that was done; the others were still at work.": ended,
        **mistaken_kinds(one, one.requests),
        "These are the initial values.": one.shard,
        "The initial values are missing: the sum starts with the shard.": replayed(one.shard, one.requests)[1]
        - one.shard,
        FLOAT32: in_float32(one)[1],
    }


def compare_end(one: Served) -> None:
    """Raise Wrong unless the server returned the values after all requests."""
    got = one.run.results[one.workers]
    _, want = replayed(one.shard, one.requests)
    counts = ", ".join(
        counted(sum(asked.kind == kind for asked in one.requests), NAMES[kind])
        for kind in (ADD, PUT, GET)
        if any(asked.kind == kind for asked in one.requests)
    )
    called = f"{one.called}, after {counts or 'no request'}"
    expect.array(got, want, called, rtol=0.0, atol=0.0, mistakes=end_mistakes(one), dtype=np.float64)


def compare_replies(one: Served) -> None:
    """Raise Wrong unless the reply to each GET has the values after all earlier requests."""
    compare_messages(one)
    wanted, _ = replayed(one.shard, one.requests)
    for (asked, _, got), want, rounded in zip(one.replies(), wanted, in_float32(one)[0], strict=True):
        called = f"{one.called}: the reply to GET of worker {asked.worker} at {asked.at:g} s"
        own = [other for other in one.requests if other.worker == asked.worker and other.at < asked.at]
        before = [other for other in one.requests if other.at < asked.at]
        mistakes = {
            **mistaken_kinds(one, before),
            "These are the initial values.": one.shard,
            "The requests of the other workers are missing, although they came before.": replayed(one.shard, own)[1],
            "These are the values after all requests; a GET gets the values of its moment.": replayed(
                one.shard, one.requests
            )[1],
            "The reply is the array of values, without a kind.": request(GET, want),
            FLOAT32: rounded,
        }
        told = {sentence: array for sentence, array in mistakes.items() if not np.array_equal(array, want)}
        expect.array(got, want, called, rtol=0.0, atol=0.0, mistakes=told, dtype=np.float64)


def compare_times(one: Served) -> None:
    """Raise Wrong unless each GET was answered at the time at which it arrived."""
    for asked, at, _ in one.replies():
        if at > asked.at:
            raise Wrong(
                f"{one.called}: worker {asked.worker} sent GET at {asked.at:g} s, and got the reply at {at:g} s; "
                "messages take no time here.",
                "The server was waiting for another worker. comm.recv(ANY) takes the request that comes first, and "
                "comm.last_source says whose it is.",
            )


def compare_messages(one: Served) -> None:
    """Raise Wrong unless the server sent one message for each GET."""
    for worker in range(one.workers):
        sent = sum(send[:2] == (one.workers, worker) for send in one.run.sends)
        gets = sum(asked.worker == worker and asked.kind == GET for asked in one.requests)
        no_gets = sum(asked.worker == worker and asked.kind != GET for asked in one.requests)
        expect.true(
            sent == gets,
            f"{one.called}: the server sent {counted(sent, 'message')} to worker {worker}, which sent "
            f"{counted(gets, 'GET')}.",
            "ADD, PUT and DONE have no reply: nobody receives it."
            if sent <= gets + no_gets
            else "New values go only to the worker that asks for them.",
        )


def compare_traffic(one: Served) -> None:
    """Raise Wrong unless each GET had one reply with nothing but the values, and the caller's shard is unchanged."""
    compare_messages(one)
    for source, worker, nbytes, *_ in one.run.sends:
        if source == one.workers:
            expect.true(
                nbytes == one.shard.size * ITEMSIZE,
                f"{one.called}: a reply to worker {worker} has {nbytes} bytes; {counted(one.shard.size, 'value')} of "
                f"float64 have {one.shard.size * ITEMSIZE}.",
                "The reply is the array of values, and nothing else.",
            )
    after = one.run.arguments[one.workers][0]
    expect.same_bits(
        after,
        one.shard,
        f"{one.called}: the caller's shard afterwards",
        {"values += … changes the array itself.": after},
    )


def judge(answer: Answer, seed: int, cases: Sequence[Any], *compare: Callable[[Served], None], kinds: Any) -> None:
    """Run each case (workers, n, requests per worker), and make each comparison."""
    for workers, n, each in cases:
        one = served(answer, seed, workers, n, each, kinds)
        for compared in compare:
            compared(one)
