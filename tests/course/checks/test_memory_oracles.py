"""The right values of chapter 13's checks are those of papers, of the library, of closed forms and of brute force."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from course.checks.memory import kept_inputs, node_bytes, unit_schedules
from course.checks.memory.unit_schedules import Clock, Seconds
from course.probes.memory import Update
from minidl import nn, optim
from minidl.cluster import launch
from minidl.random import Purpose, stream
from tests.tiers import exhaustively


def test_the_bytes_of_a_model_of_7_5_billion_weights_on_64_ranks_are_those_of_the_paper() -> None:
    gigabytes = [node_bytes.nbytes(7_500_000_000, 64, stage, True, 0) / 1e9 for stage in node_bytes.STAGES]
    assert gigabytes == pytest.approx([120, 31.4, 16.6, 1.88], rel=3e-3)


@pytest.mark.parametrize(("P", "N"), [(23, 4), (3, 5), (37, 6)])
@pytest.mark.parametrize("stage", [2, 3])
@pytest.mark.timeout(300)
def test_the_numbers_sent_are_those_of_the_collectives(P: int, N: int, stage: int) -> None:
    def step(comm: Any, total: int, gathers: int) -> int:
        own = comm.reduce_scatter(np.ones(total))
        for _ in range(gathers):
            comm.all_gather(own)
        return comm.bytes_sent // 8

    sent = launch(step, args=(P, 1 + (stage == 3)), nodes=N, on="simulation")
    assert sent.results == [node_bytes.sent(P, N, stage, r) for r in range(N)]


@pytest.mark.parametrize("kind", ["momentum", "Adam"])
def test_the_updates_of_the_steps_are_those_of_the_library(kind: str) -> None:
    rng = stream(Purpose.MANUAL, 3, "updates")
    w, state, update = rng.normal(size=7), None, Update(kind)
    parameter = nn.Parameter(w.copy())
    sgd = optim.SGD([parameter], lr=0.1, momentum=0.9)
    optimizer = sgd if kind == "momentum" else optim.Adam([parameter], lr=0.1, betas=(0.9, 0.99), eps=0.1)
    for _ in range(3):
        g = rng.normal(size=7)
        w, state = update(w, g, state)
        parameter.grad = g
        optimizer.step()
        np.testing.assert_allclose(w, parameter.data, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
def test_the_best_checkpoints_are_those_of_trying_all(n: int) -> None:
    for seed in range(6):
        sizes = kept_inputs.drawn(n, seed)
        tried = (kept_inputs.peak(sizes, [0, *keep]) for k in range(n) for keep in combinations(range(1, n), k))
        assert kept_inputs.peak(sizes, kept_inputs.best(sizes)) == min(tried)


def test_equal_inputs_need_two_square_roots_of_n() -> None:
    squares = [16, 36, 64]
    assert [kept_inputs.least_of_equal(n) for n in squares] == [8, 12, 16]
    for n in (16, 36, 7, 11, 40):
        assert kept_inputs.peak([1] * n, kept_inputs.best([1] * n)) == kept_inputs.least_of_equal(n)


def following(held: dict[int, str], computed: int, sent: int, n: int, places: int) -> Iterator[str]:
    """The actions that may come next in a list."""
    if computed < 2 * n:
        i = computed if computed < n else 2 * n - 1 - computed
        if held.get(i) == "weights":
            yield f"{'F' if computed < n else 'B'}{i}"
    for i in range(n):
        if i in held:
            yield f"-{i}" if held[i] == "weights" else f"G{i}"
        elif len(held) < places and i < max(n, 2 * n - computed):
            yield f"+{i}"


def is_faster_possible(n: int, places: int, seconds: Seconds, than: float) -> bool:
    """Whether any list of actions, with any number of fetches, takes less time: by trying all, cut off by a bound."""
    link, forward, backward = seconds
    work = [*forward, *backward[::-1]]
    seen, stack = set(), [((), 0, 0, Clock(seconds))]
    while stack:
        items, computed, sent, clock = stack.pop()
        held = dict(items)
        if sent == n:
            return True
        for action in following(held, computed, sent, n, places):
            kind, i = action[0], int(action[1:])
            new = Clock(seconds, clock.fetched, clock.computed, clock.sent, clock.freed, dict(clock.units))
            new.do(action)
            done = computed + (kind in "FB")
            if max(new.computed + sum(work[done:]) + link * (done < 2 * n), new.sent, new.fetched) >= than - 1e-9:
                continue
            after = {**held, i: "gradient" if kind == "B" else "weights"}
            if kind in "-G":
                del after[i]
            ready = tuple(sorted((unit, new.units[unit]) for unit in after))
            state = (tuple(sorted(after.items())), done, sent + (kind == "G"), new.fetched, new.computed, new.sent,
                     new.freed, ready)  # fmt: skip
            if state not in seen:
                seen.add(state)
                stack.append((state[0], done, state[2], new))
    return False


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("n", "places"), [(1, 1), (2, 1), (2, 2), (3, 2), *exhaustively((4, 2))])
def test_no_list_of_actions_takes_less_time_than_the_best_one(n: int, places: int) -> None:
    for seconds in unit_schedules.times(n):
        took = unit_schedules.makespan(unit_schedules.best(n, places), seconds)
        assert not is_faster_possible(n, places, seconds, took)
        assert is_faster_possible(n, places, seconds, took + 0.125)
