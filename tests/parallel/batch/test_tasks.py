"""Tiny tasks and backup tasks: when all are done, and what is left when workers fail."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import cluster
from minidl.parallel.batch import Coordinator, work

pytestmark = pytest.mark.timeout(300)


def launched(seconds, workers, backups=True, factor=1.0, on="simulation", rounds=1, **terms):
    """Rank 0 to workers - 1 do tasks of these times, rank 0 `factor` times as slowly; when each round is done."""
    count = len(seconds)

    def do(comm, task):
        comm.compute(seconds=seconds[task % count])
        return task, seconds[task % count] / 3

    def program(comm):
        if comm.rank < workers:
            work(comm, workers, lambda task: do(comm, task))
            return None
        coordinator, ended = Coordinator(comm, range(workers), backups), []
        for number in range(rounds):
            results = coordinator.run(range(number * count, (number + 1) * count))
            assert results == [(number * count + i, each / 3) for i, each in enumerate(seconds)]
            ended.append(comm.now())
        coordinator.close()
        return ended

    faults = terms.pop("faults", cluster.FaultPlan()).slow(0, factor)
    return cluster.launch(program, nodes=workers + 1, on=on, faults=faults, **terms)


def list_schedule(seconds, workers, factor):
    """When greedy list scheduling ends: the next task goes to whoever is free first."""
    free = [(0.0, worker) for worker in range(workers)]
    end = 0.0
    for each in seconds:
        now, worker = heapq.heappop(free)
        now += each * (factor if worker == 0 else 1)
        heapq.heappush(free, (now, worker))
        end = max(end, now)
    return end


@settings(max_examples=15)
@given(seed=st.integers(0, 2**31), workers=st.integers(1, 6), count=st.integers(1, 19), factor=st.floats(1, 9))
def test_all_is_done_when_list_scheduling_says_and_backups_only_make_that_earlier(seed, workers, count, factor):
    seconds = np.random.default_rng(seed).exponential(size=count)
    [plain] = launched(seconds, workers, False, factor).results[-1]
    assert plain == pytest.approx(list_schedule(seconds, workers, factor), rel=1e-12)
    [even] = launched(seconds, workers, False).results[-1]
    assert even <= sum(seconds) / workers + max(seconds) + 1e-12
    [backed] = launched(seconds, workers, True, factor).results[-1]
    assert backed <= plain + 1e-12


def test_with_a_straggler_backups_cut_the_tail_and_rounds_that_follow_count_each_task_once():
    seconds, factor = np.full(23, 0.7), 10.0
    plain = launched(seconds, 4, False, factor, rounds=3).results[-1]
    backed = launched(seconds, 4, True, factor, rounds=3).results[-1]
    assert plain[0] == pytest.approx(10 * 0.7)  # the straggler's only task
    assert backed[0] == pytest.approx(8 * 0.7)  # 22 tasks of three workers, and a backup of the straggler's
    assert backed[2] < plain[2]


@pytest.mark.parametrize("on", ["simulation", "processes"])
@pytest.mark.parametrize("backups", [True, False])
def test_the_tasks_of_a_worker_that_dies_are_done_by_the_others(on, backups):
    seconds = np.full(7, 1e-3)
    faults = cluster.FaultPlan().kill(1, at=("isend", 2))  # instead of its first result
    run = launched(seconds, 3, backups, on=on, rounds=2, faults=faults, on_failure="continue", timeout=120)
    assert list(run.failures) == [1]
    assert len(run.results[-1]) == 2


def test_without_workers_the_run_ends_by_the_error_of_the_first():
    faults = cluster.FaultPlan().kill(0, at=("isend", 2)).kill(1, at=("isend", 2))
    with pytest.raises(cluster.RankFailed):
        launched(np.ones(5), 2, faults=faults, on_failure="raise")
    run = launched(np.ones(5), 2, faults=faults, on_failure="continue")
    assert set(run.failures) == {0, 1, 2}
