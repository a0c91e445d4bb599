"""The errata of chapter 07 in course/errata.md: what is right instead."""

from __future__ import annotations

import numpy as np
import pytest

WORKERS = 4


def after_pulls(*, eta: float, rho: float, new_weights: bool = False, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the workers and the centre (last), before and after 100 rounds without gradients, in round robin."""
    state = np.random.default_rng(0).standard_normal(WORKERS + 1)
    before = state.copy()
    for t in range(1, 100 * WORKERS + 1):
        worker = t % WORKERS - first
        if worker >= 0:  # the worker numbered 0 does not exist where numbers begin with 1
            pull = eta * rho * (state[worker] - state[-1])
            state[worker] -= pull
            state[-1] += eta * rho * (state[worker] - state[-1]) if new_weights else pull
    return before, state


@pytest.mark.parametrize("new_weights", [False, True])
def test_elastic_pulls_are_conserved_only_if_the_centre_moves_by_the_weights_before_the_update(
    new_weights: bool,
) -> None:
    before, after = after_pulls(eta=0.1, rho=2.0, new_weights=new_weights)
    np.testing.assert_allclose(after, after.mean(), rtol=1e-9)  # either way they agree in the end
    assert (abs(after.sum() - before.sum()) < 1e-12) is not new_weights


def test_in_elastic_averaging_a_worker_that_is_numbered_g_never_moves() -> None:
    before, after = after_pulls(eta=0.1, rho=2.0, first=1)
    assert after[WORKERS - 1] == before[WORKERS - 1]
    assert all(after[: WORKERS - 1] != before[: WORKERS - 1])


def test_the_elastic_pull_is_eta_times_rho_so_without_a_rate_nothing_moves() -> None:
    np.testing.assert_array_equal(*after_pulls(eta=0.0, rho=2.0))
    np.testing.assert_allclose(after_pulls(eta=0.1, rho=2.0)[1], after_pulls(eta=0.2, rho=1.0)[1])
