"""The checks of chapter 06: asynchrony and parameter servers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from course.checks.asynchrony import (
    downpour_runs,
    gate_times,
    hidden_clusters,
    interleavings,
    locked_steps,
    pushed_and_pulled,
    served_scripts,
)
from course.checks.asynchrony.gate_timeline import timeline
from course.checks.asynchrony.requests import ADD, GET, PUT
from course.checks.library_versions import BUILDS
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("06_asynchrony", BUILDS["06_asynchrony"])
hint = chapter.hint
__all__ = [
    "chapter", "choose", "downpour_worker", "hint", "locked_step", "lost_updates", "push_pull", "serve", "ssp_gate",
    "timeline",
]  # fmt: skip

Three = tuple[int, int, int]
"""Workers, weights, requests of each; or workers, servers, weights; or workers, steps, bound."""


@chapter.exercise(
    points=3,
    hints=[
        "One loop: receive a request from anyone, do what it says, until all workers have sent DONE. How does the "
        "server know when that is?",
        "message = comm.recv(ANY); then message[0] is the kind, message[1:] are the values, and comm.last_source is "
        "the worker. Count the DONEs.",
        "Begin with a copy, so that the caller's shard stays as it is. PUT and ADD change it, GET sends it to the "
        "worker that asked.",
    ],
)
def serve(
    answer: Answer,
    part: Part,
    *,
    alone: Sequence[Three] = ((1, 3, 9), (1, 0, 2), (1, 1, 0)),
    sums: Sequence[Three] = ((3, 4, 5), (2, 0, 3), (4, 2, 4)),
    mixed: Sequence[Three] = ((3, 3, 5), (2, 4, 6), (5, 1, 3)),
    seed: int = 0,
) -> None:
    """GET, PUT and ADD in order of arrival; half of it is for who is waited for, and for one message for each GET."""
    everything = (ADD, GET, PUT, ADD, ADD, PUT, GET)
    with part(0.5, "one worker: GET, PUT and ADD"):
        served_scripts.judge(
            answer, seed, alone, served_scripts.compare_replies, served_scripts.compare_end, kinds=everything
        )
    with part(1, "several workers: the sum of all ADDs, until the last worker is done"):
        served_scripts.judge(answer, seed, sums, served_scripts.compare_end, kinds=(ADD,))
    with part(1, "in order of arrival, without waiting for a particular worker"):
        served_scripts.judge(
            answer, seed, mixed, served_scripts.compare_times, served_scripts.compare_replies,
            served_scripts.compare_end, kinds=everything,
        )  # fmt: skip
    with part(0.5, "one message for each GET, and the caller's shard unchanged"):
        served_scripts.judge(answer, seed, mixed, served_scripts.compare_traffic, kinds=(GET, ADD))


@chapter.exercise(
    points=2,
    hints=[
        "np.array_split(delta, len(servers)) has one part for each server, and works for any length.",
        "To each server go two requests: request(ADD, part), then request(GET). Send them to all servers first; only "
        "then receive.",
        "comm.recv(server) waits for the reply of this server, whichever comes first: so each reply can be put where "
        "its part belongs.",
    ],
)
def push_pull(
    answer: Answer,
    part: Part,
    *,
    sizes: Sequence[Three] = ((1, 1, 4), (2, 3, 1102), (3, 2, 5), (1, 4, 2), (2, 2, 0)),
    lone: Sequence[tuple[int, int]] = ((4, 9), (1, 3), (3, 3)),
    seed: int = 0,
) -> None:
    """Each server adds its part, and the weights come back; half of it is for messages, bytes and time."""

    @cache
    def run(workers: int, servers: int, n: int) -> pushed_and_pulled.Pushed:
        return pushed_and_pulled.pushed(answer, seed, workers, servers, n)

    with part(1, "delta is added once, and the weights after that are returned"):
        for size in sizes:
            pushed_and_pulled.compare_weights(run(*size))
    with part(0.5, "two messages to each server, with its own part only"):
        for size in sizes:
            pushed_and_pulled.compare_traffic(run(*size))
    with part(0.5, "all servers work at the same time"):
        for servers, n in lone:
            pushed_and_pulled.compare_seconds(pushed_and_pulled.pushed(answer, seed, 1, servers, n, is_timed=True))


@chapter.exercise(
    points=3,
    hints=[
        "Two arrays are needed: the worker's own weights, and what it has changed since its last push. A step changes "
        "both by -lr * gradient.",
        "A step: if step % n_fetch == 0, GET the weights. Then the gradient at these, and its two changes. Then, if "
        "(step + 1) % n_push == 0, ADD what has accumulated, and begin again with zeros.",
        "After the loop there may be a remainder: ADD it if steps % n_push is not 0. The last request is DONE.",
    ],
)
def downpour_worker(
    answer: Answer,
    part: Part,
    *,
    serial: Sequence[tuple[int, int]] = ((3, 4), (1, 1), (2, 7)),
    periods: Sequence[tuple[int, int, int, int]] = ((1, 7, 3, 2), (2, 8, 2, 4), (3, 5, 4, 3), (2, 3, 1, 5)),
    seed: int = 0,
) -> None:
    """One worker that fetches and pushes in every step is SGD; two thirds are for what is sent, when and how often."""

    @cache
    def run(workers: int, steps: int, n_fetch: int, n_push: int) -> downpour_runs.Downpoured:
        return downpour_runs.downpoured(answer, seed, workers, 3, steps, n_fetch, n_push)

    @cache
    def alone(n: int, steps: int) -> downpour_runs.Downpoured:
        return downpour_runs.downpoured(answer, seed, 1, n, steps, 1, 1)

    with part(1, "one worker, n_fetch = n_push = 1: SGD"):
        for case in serial:
            downpour_runs.compare_serial(alone(*case))
    with part(1, "a GET every n_fetch steps, an ADD every n_push, the remainder, DONE"):
        for case in periods:
            downpour_runs.compare_requests(run(*case))
    with part(1, "every step is pushed exactly once, and made locally too"):
        for one in [*(run(*case) for case in periods), *(alone(*case) for case in serial)]:
            downpour_runs.compare_pushes(one)


@chapter.exercise(
    points=4,
    hints=[
        "Keep the clock of each worker: the steps that it has finished. When a CLOCK comes, that worker waits; it may "
        "go on if its clock is at most `bound` more than the smallest clock of the workers that have not finished.",
        "Every CLOCK and every DONE can raise the smallest clock, and so release workers that wait already: after each "
        "request go through all that wait.",
        "clocks = {worker: 0 for worker in range(workers)}; DONE removes a worker from it, so that it holds nobody "
        "back. The loop goes on while clocks is not empty.",
    ],
)
def ssp_gate(
    answer: Answer,
    part: Part,
    *,
    random: Sequence[Three] = ((4, 7, 2), (3, 8, 1), (3, 5, 0), (1, 3, 0)),
    persistent: Sequence[Three] = ((3, 9, 2), (4, 7, 1), (2, 6, 3)),
    ahead: Sequence[Three] = ((2, 15, 11),),
    leaving: Sequence[Three] = ((3, 8, 1), (2, 6, 0)),
    seed: int = 0,
) -> None:
    """Nobody too far ahead, nobody held back longer than necessary: half of it is for the times of the closed form."""

    @cache
    def run(drawn: gate_times.Drawn, workers: int, steps: int, bound: int) -> gate_times.Gated:
        return gate_times.gated(answer, bound, drawn(seed, workers, steps))

    cases = [(gate_times.random_stragglers, *case) for case in random]
    cases += [(gate_times.persistent_straggler, *case) for case in persistent]
    with part(1, "no step begins more than `bound` ahead of the slowest worker"):
        for case in cases:
            gate_times.compare_bound(run(*case))
    with part(2, "every step begins as soon as the bound allows it, and not before"):
        for case in cases:
            gate_times.compare_waiting(run(*case))
            gate_times.compare_bound(run(*case))
    with part(0.5, "a worker that has finished holds nobody back; the bound holds for the others"):
        early = [
            (drawn, *left) for left in leaving for drawn in (gate_times.one_ends_early, gate_times.fast_one_ends_early)
        ]
        for case in [*early, *((gate_times.far_ahead, *case) for case in ahead)]:
            gate_times.compare_waiting(run(*case))
            gate_times.compare_bound(run(*case))
    with part(0.5, "one reply for each CLOCK, and no other message"):
        for case in cases:
            gate_times.compare_replies(run(*case))


@chapter.exercise(
    points=1,
    hints=[
        "Play the events: a counter for each cell, and for each worker and cell the value that it read last.",
        "A write sets the counter to what this worker read from this cell, plus one: so it may fall. How many "
        "increments are left in the end?",
    ],
)
def lost_updates(
    answer: Answer,
    part: Part,
    *,
    harmless: Sequence[interleavings.Case] = (("locked", 3, 4, 2), ("apart", 3, 3, 3), ("locked", 1, 2, 1)),
    racing: Sequence[interleavings.Case] = (
        ("at_once", 2, 3, 1), ("late", 3, 2, 1), ("racing", 3, 5, 2), ("racing", 4, 6, 5), ("all_cells", 2, 3, 2),
        ("falling", 3, 2, 1),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """No false alarm, and the exact number in races: of one cell, of several, of a write that is late by many."""
    with part(0.5, "nothing is lost: with a lock, or in different cells"):
        interleavings.judge(answer, harmless, seed)
        interleavings.judge(answer, racing[:1], seed)  # or 0 for everything would do
    with part(0.5, "what is lost in races"):
        interleavings.judge(answer, racing, seed)
        interleavings.judge(answer, harmless[1:2], seed)


@chapter.exercise(
    points=2,
    hints=[
        "Only reading and writing the shared weights need the lock. What takes long, and does not touch them?",
        "Read the weights without the lock, and compute the gradient of these: it may be stale, that is what "
        "asynchronous means. Then, under the lock, read the weights as they are now, and write them with the step.",
    ],
)
def locked_step(answer: Answer, part: Part, *, sizes: Sequence[int] = (3, 1), seed: int = 0) -> None:
    """No update of others is lost though they come whenever the lock is free; half of it is for how long it is held."""
    with part(1, "no update is lost"):
        locked_steps.judge(answer, sizes, seed, locked_steps.compare_weights)
    with part(1, "the lock is held for one read and one write"):
        locked_steps.judge(answer, sizes, seed, locked_steps.compare_lock)


@chapter.exercise(
    points=3,
    hints=[
        "The time to the target is gradients needed / gradients a second. Learning a second = learning a sample times "
        "samples a second.",
        "Synchronous: p gradients in E[longest of p] + 2 (p - 1) (alpha + nbytes / p * beta). With delays of "
        "probability q, nobody of p is delayed with probability (1 - q)^p. Worker 0 alone may be the longest.",
        "Asynchronous: a worker makes 1 / (its mean seconds + x) gradients a second, x = 2 (alpha + nbytes * beta); "
        "add them up. The server serves one at a time: all together at most 1 / x.",
        "Asynchronous training needs 1 + penalty (p - 1) times as many gradients. Choose the shorter time.",
    ],
)
def choose(answer: Answer, part: Part, *, seed: int = 0) -> None:
    """Both times within 5 %, and a choice that takes at most 10 % longer than the better one, on every cluster."""
    predictions = hidden_clusters.predictions(answer, seed)
    for group, title in (
        ("network", "slow networks: the server, and the all-reduce"),
        ("stragglers", "stragglers: random ones, and a persistent one"),
        ("staleness", "stale gradients: more of them are needed"),
    ):
        with part(1, title):
            hidden_clusters.judge(predictions, group, seed)
