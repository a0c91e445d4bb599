"""The formulas by which the reproduction of backup workers and eager SGD judges the time of an update."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.reproductions.backup_workers import finishing, together
from minidl.parallel import EagerSGD


def simulated(needed: int, workers: int, updates: int) -> float:
    """Mean time of an update by the first `needed` fresh gradients, each worker finishing what it began."""
    rng, now, version = np.random.default_rng(0), 0.0, 0
    ready, began_with = rng.exponential(size=workers), np.zeros(workers, int)
    waiting: list[int] = []
    while version < updates:
        worker = int(ready.argmin())
        now, ready[worker] = ready[worker], np.inf
        beginners = [worker]
        if began_with[worker] == version:
            waiting.append(worker)
            beginners = []
        if len(waiting) == needed:
            version += 1
            beginners, waiting = waiting, []
        for beginner in beginners:
            ready[beginner], began_with[beginner] = now + rng.exponential(), version
    return now / updates


@pytest.mark.parametrize(("needed", "workers", "published"), [(8, 8, 2.718), (8, 9, 1.829), (8, 10, 1.429)])
def test_the_time_of_workers_that_begin_together_is_a_difference_of_harmonic_numbers(
    needed: int, workers: int, published: float
) -> None:
    assert together(needed, workers) == pytest.approx(published, abs=5e-4)


@pytest.mark.parametrize(("needed", "workers"), [(8, 8), (8, 9), (8, 10), (4, 8)])
def test_the_time_of_workers_that_finish_what_they_began_is_that_of_a_plain_event_simulation(
    needed: int, workers: int
) -> None:
    assert finishing(needed, workers) == pytest.approx(simulated(needed, workers, 10_000), rel=0.02)


def test_an_eager_majority_that_did_not_count_late_gradients_would_be_far_off_the_formula() -> None:
    needed = EagerSGD("majority").needed(8)
    assert together(needed, 8) == pytest.approx(0.635, abs=5e-4)
    assert finishing(needed, 8) / together(needed, 8) > 1.6
