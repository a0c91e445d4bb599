"""Logistic regression on sparse rows: the gradient is the loss's, and what a row does not have is left alone."""

import numpy as np
import pytest

from minidl import cluster, data
from minidl.kernels import jit, reference

both = pytest.mark.parametrize("kernels", [reference, jit], ids=["numpy", "numba"])


def rows(n: int = 6, features: int = 10, nonzeros: int = 3):
    random = np.random.default_rng(3)
    columns = np.concatenate([random.permutation(features)[:nonzeros] for _ in range(n)]).astype(np.int32)
    starts = np.arange(0, n * nonzeros + 1, nonzeros)
    labels = random.choice([-1.0, 1.0], n)
    return random.standard_normal(features), random.standard_normal(n * nonzeros), columns, starts, labels


@both
def test_a_step_goes_along_the_numerical_gradient_of_the_loss(kernels):
    weights, values, columns, starts, labels = rows(n=1)

    def loss(w):
        return kernels.sparse_logistic_epoch(w.copy(), values, columns, starts, labels, 0.0)

    after = weights.copy()
    kernels.sparse_logistic_epoch(after, values, columns, starts, labels, 0.5)
    gradient = [(loss(weights + 1e-6 * e) - loss(weights - 1e-6 * e)) / 2e-6 for e in np.eye(10)]
    np.testing.assert_allclose((weights - after) / 0.5, gradient, atol=1e-8)
    assert np.count_nonzero(weights != after) == 3


@both
def test_the_loss_is_that_of_the_dense_formula_also_in_pieces_and_a_rate_of_zero_changes_nothing(kernels):
    weights, values, columns, starts, labels = rows()
    dense = np.zeros((6, 10))
    dense[np.repeat(np.arange(6), 3), columns] = values
    before = weights.copy()
    loss = kernels.sparse_logistic_epoch(weights, values, columns, starts, labels, 0.0)
    assert loss == pytest.approx(np.logaddexp(0, -labels * (dense @ weights)).sum(), rel=1e-12)
    assert (weights == before).all()
    whole, pieces = weights.copy(), weights.copy()
    loss = kernels.sparse_logistic_epoch(whole, values, columns, starts, labels, 0.5)
    losses = [
        kernels.sparse_logistic_epoch(pieces, values, columns, starts[a : b + 1], labels[a:b], 0.5)
        for a, b in ((0, 2), (2, 2), (2, 6))
    ]
    assert (whole == pieces).all()
    assert losses[1] == 0.0
    assert sum(losses) == pytest.approx(loss, rel=1e-12)


@both
def test_large_margins_do_not_overflow(kernels):
    weights, values = np.array([1e6]), np.array([1.0, 1.0])
    columns, starts = np.zeros(2, np.int32), np.array([0, 1, 2])
    with np.errstate(all="raise", under="ignore"):
        loss = kernels.sparse_logistic_epoch(weights, values, columns, starts, np.array([1.0, -1.0]), 0.5)
    assert loss == 1e6
    assert weights[0] == 1e6 - 0.5


def hogwild(comm, rows, lr):
    """Three passes of this process over its part of the rows, on weights that all share; the mean loss in the end."""
    weights = comm.shared_array("weights", rows.features)
    first, last = np.linspace(0, len(rows), comm.size + 1).astype(int)[comm.rank :][:2]
    for _ in range(3):
        of = (rows.values, rows.columns, rows.starts[first : last + 1], rows.labels[first:last])
        jit.sparse_logistic_epoch(weights, *of, lr)
    comm.barrier()
    return jit.sparse_logistic_epoch(weights, rows.values, rows.columns, rows.starts, rows.labels, 0.0) / len(rows)


@pytest.mark.timeout(300)
def test_two_processes_without_a_lock_learn_as_one_does():
    rows = data.sparse_rows(n=20_000, features=4_000, nonzeros=10)
    one, two = (cluster.launch(hogwild, (rows, 0.05), nodes=n).results[0] for n in (1, 2))
    assert one < 0.5  # log 2 = 0.69 before
    assert two == pytest.approx(one, rel=0.05)
