"""F.batch_norm with a reducer, which joins the statistics of several nodes."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor
from minidl import functional as F
from minidl.kernels import Array


class Twice:
    """A minibatch on two nodes that hold the same samples; this one's statistics and sums stand for both."""

    counts = True

    def join(self, count: int, mean: Array, var: Array) -> tuple[int, Array, Array]:
        return 2 * count, mean, var

    def total(self, sums: np.ndarray) -> np.ndarray:
        return 2 * sums


def leaves(n: int) -> list[Tensor]:
    random = np.random.default_rng(0)
    return [Tensor(random.standard_normal(shape), requires_grad=True) for shape in ((n, 3, 2, 2), (3,), (3,))]


def test_a_minibatch_on_two_nodes_is_normalised_as_on_one() -> None:
    half, whole = leaves(4), leaves(4)
    statistics = [np.zeros(3), np.ones(3)], [np.zeros(3), np.ones(3)]
    g = np.random.default_rng(1).standard_normal((4, 3, 2, 2))
    out = F.batch_norm(half[0], *statistics[0], half[1], half[2], training=True, reducer=Twice())
    out.backward(g)
    both = F.batch_norm(F.cat([whole[0], whole[0].detach()]), *statistics[1], whole[1], whole[2], training=True)
    both.backward(np.concatenate([g, g]))
    np.testing.assert_allclose(out.data, both.data[:4], rtol=1e-12)
    np.testing.assert_allclose(statistics[0], statistics[1], rtol=1e-12)
    np.testing.assert_allclose(half[0].grad, whole[0].grad, rtol=1e-10, atol=1e-14)
    for mine, other in zip(half[1:], whole[1:], strict=True):
        np.testing.assert_allclose(2 * mine.grad, other.grad, rtol=1e-12)


def test_whether_a_single_value_a_channel_is_too_few_depends_on_all_nodes() -> None:
    x = Tensor(np.ones((1, 3)))
    with pytest.raises(ValueError, match="needs more than one value per channel"):
        F.batch_norm(x, None, None, training=True)
    np.testing.assert_array_equal(F.batch_norm(x, None, None, training=True, reducer=Twice()).data, np.zeros((1, 3)))


def test_the_sums_of_other_nodes_reach_only_the_samples_that_count() -> None:
    class WithOthers(Twice):
        def total(self, sums: np.ndarray) -> np.ndarray:
            return sums + 1.0

    for counts in (True, False):
        reducer = WithOthers()
        reducer.counts = counts
        x, weight, bias = leaves(4)
        F.batch_norm(x, None, None, weight, bias, training=True, reducer=reducer).backward(np.zeros((4, 3, 2, 2)))
        assert (x.grad != 0).any() == counts


def test_evaluation_and_its_gradient_use_the_running_statistics_of_the_forward_pass_alone() -> None:
    """Training may move them between forward and backward."""
    results = []
    for moved, reducer in ((0.0, None), (1.0, Twice())):
        x, weight, bias = leaves(4)
        mean, var = np.ones(3), np.full(3, 2.0)
        out = F.batch_norm(x, mean, var, weight, bias, reducer=reducer)
        assert (mean.tolist(), var.tolist()) == ([1.0] * 3, [2.0] * 3)
        mean += moved
        var += moved
        out.backward(np.arange(48.0).reshape(4, 3, 2, 2))
        results.append([out.data, x.grad, weight.grad, bias.grad])
    for before, after in zip(*results, strict=True):
        np.testing.assert_array_equal(before, after)
