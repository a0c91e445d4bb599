"""The right values of chapter 09's checks are those of the library's compressors and of closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from course.checks.gradient_compression import (
    corrected_velocities,
    random_levels,
    sent_entries,
    sparse_rounds,
    velocity_steps,
)
from course.judging.ranks.rank_run import RankRun
from minidl import cluster, compress


def test_what_is_sent_and_kept_is_that_of_a_threshold_with_error_feedback() -> None:
    theirs = compress.ErrorFeedback(compress.Threshold(1.0))
    residual = np.zeros(40, np.float32)
    for gradient in sent_entries.gradients_of(40, 8, seed=5):
        indices, values, residual = sent_entries.sent(gradient, residual, 1.0)
        dense = np.zeros(40, np.float32)
        dense[indices] = values
        assert np.array_equal(theirs.decode(theirs.encode(gradient)), dense)
        assert np.array_equal(theirs.residual, residual)


@pytest.mark.parametrize("masking", [False, True])
def test_entries_with_momentum_correction_are_those_of_dgc(masking: bool) -> None:
    n, k, m = 20, 3, 0.8
    theirs = compress.DGC(k / n, momentum=m, warmup=(), masking=masking)
    rng, velocity, waiting = np.random.default_rng(0), np.zeros(n), np.zeros(n)
    for _ in range(12):
        gradient = rng.normal(size=n)
        after = velocity_steps.Step(gradient, velocity, waiting, m, k, masking).after()
        velocity, waiting = after.velocity, after.waiting
        dense = np.zeros(n)
        dense[after.indices] = after.values
        assert theirs.decode(theirs.encode(gradient)) == pytest.approx(dense, rel=1e-12)


@pytest.mark.parametrize(("m", "steps"), [(0.0, 4), (0.5, 1), (0.9, 10), (0.99, 50)])
def test_a_constant_gradient_moves_as_far_as_the_closed_form_says(m: float, steps: int) -> None:
    u = moved = 0.0
    for _ in range(steps):
        u = m * u + 1
        moved += u
    assert corrected_velocities.dense_displacement(m, steps) == pytest.approx(moved, rel=1e-10)
    if (m, steps) == (0.9, 10):
        assert moved == pytest.approx(41.381, abs=5e-4)


def test_levels_are_right_on_average_and_within_the_bounds_of_qsgd() -> None:
    x, s, _ = random_levels.numbers((30, 3), seed=1)
    uniform = np.random.default_rng(2).random((20_000, 30))
    meant = random_levels.norm_of(x) / s * np.array([random_levels.levels_of(x, s, each) for each in uniform])
    deviation = meant.std(axis=0) / np.sqrt(len(uniform))
    assert (np.abs(meant.mean(axis=0) - x) < 5 * deviation + 1e-12).all()
    squared = ((meant - x) ** 2).sum(axis=1).mean() / random_levels.norm_of(x) ** 2
    assert squared < min(30 / s**2, np.sqrt(30) / s)


def test_the_bytes_of_each_round_are_those_that_recursive_doubling_sends() -> None:
    n, p, k = 64, 8, 4
    rng = np.random.default_rng(3)
    indices = [rng.permutation(n)[:k] for _ in range(p)]
    values = [np.ones(k, np.float32) for _ in range(p)]

    def program(comm: cluster.Communicator) -> np.ndarray:
        dense = np.zeros(n, np.float32)
        dense[indices[comm.rank]] = values[comm.rank]
        compressor = compress.Threshold(0.0, all_reduce="recursive_doubling")
        result: np.ndarray = compressor.begin_all_reduce(dense, comm)()
        return result

    run = cluster.launch(program, nodes=p, on="simulation")
    one = sparse_rounds.Sum(n, indices, values, RankRun([], [], [], 0.0, [], [], [], []))
    assert np.array_equal(run.results[0], sparse_rounds.dense_sum(one, np.add.at))
    for rank, traffic in enumerate(run.trace.ledger()):
        assert sum(row.nbytes for row in traffic.values()) == sum(nbytes for _, nbytes in one.expected(rank))
