"""Runs of `downpour_worker` with a server of the check, and the requests that the worker must make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.checks.asynchrony.requests import ADD, AT_ONCE, DONE, GET, NAMES, PUT, Array, PlayedServer, idle
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun
from course.plural import counted
from course.probes.asynchrony import Pulls
from minidl.random import Purpose, stream

LR = 0.125

FIRST_PUSH = "The first ADD comes after step n_push - 1, and not after step 0."


@dataclass(frozen=True)
class Downpoured:
    """A run of `downpour_worker` on every worker."""

    settings: tuple[int, int, int]
    targets: list[Array]
    server: PlayedServer
    run: RankRun

    def called(self, worker: int) -> str:
        steps, n_fetch, n_push = self.settings
        return f"downpour_worker on worker {worker}, steps={steps}, n_fetch={n_fetch}, n_push={n_push}"

    def requests(self, worker: int) -> list[tuple[float, Array]]:
        return [(kind, values) for source, kind, values in self.server.requests if source == worker]


def downpoured(answer: Answer, seed: int, workers: int, n: int, steps: int, n_fetch: int, n_push: int) -> Downpoured:
    """Run `downpour_worker` on each worker, with targets of its own; a single step that is left changes nothing."""
    rng = stream(Purpose.MANUAL, seed, "downpour", workers, n, steps, n_fetch, n_push)
    weights = rng.integers(-9, 10, n).astype(float)
    targets = [rng.integers(-9, 10, (steps, n)).astype(float) for _ in range(workers)]
    if steps == 1 < n_push:
        targets = [weights[None]] * workers
    server = PlayedServer(weights, workers)
    arguments: list[tuple[Any, ...]] = [(Pulls(own), steps, LR, n_fetch, n_push, workers) for own in targets]
    run = answer.on_ranks([*arguments, (), ()], AT_ONCE, played={workers: server.play, workers + 1: idle})
    return Downpoured((steps, n_fetch, n_push), targets, server, run)


def plan(steps: int, n_fetch: int, n_push: int, first_push: int | None = None) -> list[float]:
    """The kinds of the requests of a worker, in order; the first push is after step n_push - 1, or `first_push`."""
    last = n_push - 1 if first_push is None else first_push
    kinds = []
    for step in range(steps):
        if step % n_fetch == 0:
            kinds.append(GET)
        if step % n_push == last or step + 1 == steps:
            kinds.append(ADD)
    return [*kinds, DONE]


def compare_serial(one: Downpoured) -> None:
    """Raise Wrong unless one worker with n_fetch = n_push = 1 made the steps of SGD."""
    weights = one.server.shard
    for target in one.targets[0]:
        weights = weights - LR * (weights - target)
    got = one.run.results[1]
    start, (first, *_) = one.server.shard, one.targets[0]
    mistakes = {
        "These are the initial weights: nothing was added to them.": start,
        "Steps that were pushed are pushed again: after an ADD, accumulate anew from zero.": never_cleared(one),
        "The weights went up the slope: lr * gradient is to be subtracted, so -lr * gradient is added.": ascent(one),
        "The gradients were added without -lr.": without_rate(one),
        "This is after the first step.": start - LR * (start - first),
    }
    expect.array(got, weights, f"the server's weights after {one.called(0)}, against SGD", atol=1e-9, mistakes=mistakes)


def never_cleared(one: Downpoured) -> Array:
    """The weights if each push has all steps so far."""
    weights, accumulated = one.server.shard, np.zeros_like(one.server.shard)
    for target in one.targets[0]:
        accumulated = accumulated - LR * (weights - target)
        weights = weights + accumulated
    return weights


def ascent(one: Downpoured) -> Array:
    """The weights of SGD with the wrong sign."""
    weights = one.server.shard
    for target in one.targets[0]:
        weights = weights + LR * (weights - target)
    return weights


def without_rate(one: Downpoured) -> Array:
    """The weights if gradients are added as they are."""
    weights = one.server.shard
    for target in one.targets[0]:
        weights = weights + (weights - target)
    return weights


def compare_requests(one: Downpoured) -> None:
    """Raise Wrong unless each worker fetched and pushed as often as it should, each at its step."""
    steps, n_fetch, n_push = one.settings
    want = plan(*one.settings)
    for worker in range(len(one.targets)):
        kinds = [kind for kind, _ in one.requests(worker)]
        called = one.called(worker)
        for kind, name, period in ((GET, "GET", n_fetch), (ADD, "ADD", n_push)):
            needed = -(-steps // period)
            expect.true(
                kinds.count(kind) == needed,
                f"{called}: {counted(kinds.count(kind), name)}, expected {needed}.",
                "PUT replaces what the others have added meanwhile: ADD the changes."
                if kind == ADD and PUT in kinds
                else FIRST_PUSH
                if kinds == plan(*one.settings, first_push=0)
                else cause_of_count(kind, kinds.count(kind), one.settings),
            )
        first = next((i for i, (a, b) in enumerate(zip(kinds, want, strict=False)) if a != b), None)
        if first is not None or len(kinds) != len(want):
            place = first if first is not None else min(len(kinds), len(want))
            raise Wrong(
                f"{called}: expected {listed(want, place)}, got {listed(kinds, place)}.",
                FIRST_PUSH
                if kinds == plan(*one.settings, first_push=0)
                else "A step begins with its GET and ends with its ADD; the GET of step 0 is the first request."
                if sorted(kinds) == sorted(want)
                else "",
            )


def cause_of_count(kind: float, count: int, settings: tuple[int, int, int]) -> str:
    """The likely cause of a wrong number of requests."""
    steps, n_fetch, n_push = settings
    period = n_fetch if kind == GET else n_push
    if kind == ADD and count == steps // period:
        return f"Not pushed: the last {counted(steps % period, 'step')}. What remains goes at the end."
    if kind == ADD and count == steps // period + 1:
        return "There is no remainder here: every step was pushed already."
    if count == steps:
        return f"One in each step; expected one in {period} steps."
    return ""


def listed(kinds: Sequence[float], place: int) -> str:
    """The kinds up to one after `place`."""
    names = [NAMES[kind] for kind in kinds[: place + 1]]
    return f"{', '.join(names) or 'nothing'}{' …' if len(kinds) > place + 1 else ''}"


def compare_pushes(one: Downpoured) -> None:
    """Raise Wrong unless each ADD has the steps since the last one, each once, at the worker's own weights."""
    steps, _, n_push = one.settings
    for worker, targets in enumerate(one.targets):
        pushes = [values for kind, values in one.requests(worker) if kind == ADD]
        fetched = one.server.replies.get(worker, [])
        right, local = pushes_by(targets, fetched, one.settings)
        stale, _ = pushes_by(targets, fetched, one.settings, is_local=False)
        total = list(np.cumsum(right, axis=0)) if right else []
        for number, want in enumerate(right):
            called = f"{one.called(worker)}: what ADD {number + 1} of {len(right)} adds"
            if number >= len(pushes):
                raise Wrong(f"{called}: it never came.", "The steps after the last full n_push go at the end.")
            mistakes = {
                "The gradients of earlier ADDs are in it once more: begin anew after each push.": total[number],
                "The worker computes at the weights of its last GET only; between two GETs it makes its own "
                "steps.": stale[number],
                "Only the last step is in it; all since the last push are to be.": last_steps(
                    targets, fetched, one.settings
                )[number],
                "The sign is wrong: -lr * gradient is added.": -want,
                "It is the sum of the gradients; the server adds what it gets, so send -lr times it.": -want / LR,
                "The learning rate is missing.": want / LR,
                "The mean over the steps is pushed, and not their sum.": want / n_push,
            }
            mistakes |= (
                {
                    "The pushes are after steps 0, n_push, …: one of them has too few steps.": early(
                        targets, fetched, one.settings
                    )[number]
                }
                if steps > 1
                else {}
            )
            expect.array(pushes[number], want, called, atol=1e-9, mistakes=mistakes)
        called = f"{one.called(worker)}: the returned weights"
        mistakes = {"These are those of the last GET, without the steps since.": fetched[-1]} if fetched else {}
        expect.array(one.run.results[worker], local, called, atol=1e-9, mistakes=mistakes)


def steps_by(
    targets: Array, fetched: Sequence[Array], settings: tuple[int, int, int], is_local: bool = True
) -> tuple[list[Array], Array]:
    """-lr * gradient of every step, from the weights that the server sent, and the worker's weights in the end."""
    steps, n_fetch, _ = settings
    changes: list[Array] = []
    weights = fetched[0]
    at = weights
    for step in range(steps):
        if step % n_fetch == 0:
            weights = at = fetched[min(step // n_fetch, len(fetched) - 1)]
        change = -LR * ((weights if is_local else at) - targets[step])
        changes.append(change)
        weights = weights + change
    return changes, weights


def pushes_by(
    targets: Array, fetched: Sequence[Array], settings: tuple[int, int, int], is_local: bool = True
) -> tuple[list[Array], Array]:
    """What each ADD must add, and the worker's weights in the end."""
    if not fetched:
        raise Wrong("The worker never sent GET.", "It needs weights before its first step.")
    changes, weights = steps_by(targets, fetched, settings, is_local)
    n_push = settings[2]
    return [np.sum(changes[i : i + n_push], axis=0) for i in range(0, len(changes), n_push)], weights


def last_steps(targets: Array, fetched: Sequence[Array], settings: tuple[int, int, int]) -> list[Array]:
    """What is pushed if only the last step before each push is in it."""
    changes, _ = steps_by(targets, fetched, settings)
    n_push = settings[2]
    return [changes[min(i + n_push, len(changes)) - 1] for i in range(0, len(changes), n_push)]


def early(targets: Array, fetched: Sequence[Array], settings: tuple[int, int, int]) -> list[Array]:
    """What is pushed after steps 0, n_push, 2 n_push …"""
    changes, _ = steps_by(targets, fetched, settings)
    n_push = settings[2]
    ends = list(range(0, len(changes), n_push))
    return [np.sum(changes[max(0, end - n_push + 1) : end + 1], axis=0) for end in ends]
