"""The right values of chapter 15's checks are those of matrices, of a search, and of simulated failures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from course.checks.faults_and_batch_methods import killed_runs, portion_orders, save_intervals, sharded_vectors
from course.probes.faults_and_batch_methods import Shard, Storage, Workers
from minidl.random import Purpose, stream
from tests.tiers import exhaustively


@pytest.mark.parametrize("seed", [0, *exhaustively(1, 2, 3)])
def test_two_loops_multiply_the_gradient_by_the_inverse_hessian_of_bfgs(seed: int) -> None:
    rng = stream(Purpose.MANUAL, seed, "pairs of BFGS")
    n = 7
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    hessian = basis * np.exp(rng.uniform(-1, 1, n)) @ basis.T
    for m in (0, 1, 2, 5):
        g, steps = rng.normal(size=n), rng.normal(size=(m, n))
        pairs = [(s, hessian @ s) for s in steps]
        inverse = np.eye(n) * (pairs[-1][0] @ pairs[-1][1] / (pairs[-1][1] @ pairs[-1][1]) if pairs else 1.0)
        for s, y in pairs:  # Nocedal and Wright, equation 7.16
            v = np.eye(n) - np.outer(y, s) / (s @ y)
            inverse = v.T @ inverse @ v + np.outer(s, s) / (s @ y)
        np.testing.assert_allclose(sharded_vectors.two_loops(g, pairs), -inverse @ g, rtol=1e-10)


def test_a_shard_of_no_elements_adds_nothing_and_takes_every_command() -> None:
    shard = Shard(g=np.zeros(0), d=np.zeros(0))
    shard.copy("g", "d")
    shard.axpy(-1.3, "g", "d")
    shard.scale(np.float64(0.7), "d")
    assert shard.dot("g", "d") == 0.0
    with pytest.raises(ValueError, match="no vector s0; it has g, d"):
        shard.dot("s0", "g")


@pytest.mark.parametrize("seed", [5, *exhaustively(6, 7, 8, 9)])
def test_portions_end_within_the_bound_of_list_scheduling_and_copies_make_a_straggler_cheaper(seed: int) -> None:
    rng = stream(Purpose.MANUAL, seed, "list schedule")
    n, p = 37, 5
    work = rng.uniform(0.6, 1.7, n)
    equal = Workers(np.tile(work, (p, 1)).tolist(), [np.ones(1)] * n)
    portion_orders.played(equal, portion_orders.fewest)
    assert work.sum() / p <= equal.clock <= work.sum() / p + work.max()
    slow = np.tile(work, (p, 1))
    slow[2] *= 30
    with_copies, without = (Workers(slow.tolist(), [np.ones(1)] * n) for _ in range(2))
    portion_orders.played(with_copies, portion_orders.fewest)
    portion_orders.played(without, lambda *both: next(iter(portion_orders.mistaken(*both).values())))
    assert set(with_copies.returned) == set(without.returned) == set(range(n))
    assert with_copies.clock < work.sum() / (p - 1) + 2 * work.max() < without.clock


@pytest.mark.parametrize("seed", [11, *exhaustively(12, 13)])
def test_a_job_that_is_simulated_with_failures_has_the_goodput_of_the_formula(seed: int) -> None:
    rng = stream(Purpose.MANUAL, seed, "failures")
    for M, tau, write, restart in ((1.0, 0.4, 0.13, 0.21), (7.3, 9.1, 2.2, 0.0), (1.0, 0.83, 0.9, 0.6)):
        seconds = np.array([interval_with_failures(rng, M, tau + write, restart) for _ in range(6_000)])
        error = seconds.std() / math.sqrt(seconds.size)
        want = tau / save_intervals.goodput(tau, M, write, restart)
        assert abs(seconds.mean() - want) < 4 * error < 0.1 * want


def interval_with_failures(rng: np.random.Generator, M: float, length: float, restart: float) -> float:
    """The seconds until `length` seconds without a failure have passed, with a restart after each failure."""
    took = 0.0
    while (failure := rng.exponential(M)) < length:
        took += failure
        while (failure := rng.exponential(M)) < restart:
            took += failure
        took += restart
    return took + length


@pytest.mark.parametrize("write", [1e-5, 0.004, 0.37, 1.0, 2.9])
def test_the_best_interval_is_that_of_a_fine_search(write: float) -> None:
    M = 41.7
    taus = np.geomspace(1e-3, 1.0, 40_001) * M
    found = max(save_intervals.goodput(float(tau), M, write * M, 0.2 * M) for tau in taus)
    best = save_intervals.goodput(save_intervals.best(M, write * M), M, write * M, 0.2 * M)
    assert found <= best * (1 + 1e-12)
    assert best == pytest.approx(found, rel=1e-6)


def test_a_kill_in_the_middle_of_a_write_leaves_an_incomplete_file_and_ends_all_operations() -> None:
    storage = Storage()
    storage.write("a", [1, np.array([0.3])])
    life = killed_runs.Life(storage, at=1, is_inside=True)
    assert life.names() == ["a"]
    for _ in range(2):
        with pytest.raises(killed_runs.Killed):
            life.write("a", 2)
    with pytest.raises(ValueError, match="'a' is incomplete"):
        killed_runs.Life(storage).read("a")
    with pytest.raises(FileNotFoundError, match="no file b"):
        killed_runs.Life(storage).rename("b", "a")
    before = killed_runs.Life(storage, at=0)
    with pytest.raises(killed_runs.Killed):
        before.rename("a", "b")
    assert storage.names() == ["a"]
