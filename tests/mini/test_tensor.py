"""The tape of the core: every rule against the workshop's operation, which tests/functional proves."""

import numpy as np
import pytest

from minidl import Tensor as WorkshopTensor
from minidl import functional as F
from minidl.mini import tensor as core
from minidl.mini.tensor import Tensor

rng = np.random.default_rng(7)
X = rng.normal(1.3, 2.1, (3, 4, 5))
OTHER = rng.normal(0.2, 1.7, (4, 1))
RIGHT = rng.normal(0.0, 1.1, (5, 6))
LABELS = rng.integers(0, 5, (3, 4))
INDEX = np.array([[2, 0], [2, 1], [2, 2]])  # names entry 2 four times

RULES = {
    "add": (core.add, [X, OTHER], {}, lambda x, y: x + y),
    "multiply": (core.multiply, [X, OTHER], {}, lambda x, y: x * y),
    "matmul": (core.matmul, [X, RIGHT], {}, lambda x, y: x @ y),
    "relu": (core.relu, [X], {}, F.relu),
    "softmax": (core.softmax, [X], {}, lambda x: F.softmax(x, -1)),
    "reshape": (core.reshape, [X], {"shape": (12, 5)}, lambda x: x.reshape(12, 5)),
    "swapaxes": (core.swapaxes, [X], {"axes": (0, 2)}, lambda x: x.transpose(0, 2)),
    "take": (core.take, [X], {"index": INDEX}, lambda x: x[INDEX]),
    "normalize": (core.normalize, [X], {}, lambda x: F.layer_norm(x, WorkshopTensor(np.ones(5)), None)),
    "gelu": (lambda x: x * core.normal_cdf(x), [X], {}, F.gelu),
    "cross_entropy": (
        core.cross_entropy,
        [X],
        {"labels": LABELS, "count": 12},
        lambda x: F.cross_entropy(x.reshape(12, 5), LABELS.reshape(-1)),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_the_value_and_the_gradients_of_the_workshop(name):
    operation, arrays, settings, workshop = RULES[name]
    ours, theirs = [Tensor(x) for x in arrays], [WorkshopTensor(x, requires_grad=True) for x in arrays]
    result, expected = operation(*ours, **settings), workshop(*theirs)
    np.testing.assert_allclose(result.data, expected.numpy(), rtol=1e-12, atol=1e-13)
    g = rng.normal(size=result.data.shape)
    result.backward(g)
    expected.backward(g)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.grad, y.grad, rtol=1e-10, atol=1e-12)


def test_a_tensor_with_many_uses_gets_the_sum_whatever_the_order_in_which_they_were_found():
    x = Tensor(rng.normal(size=3))
    early = x * 1.5
    late = early * early + early  # early has three uses, at two depths
    (late * x + early).backward(np.ones(3))
    value = x.data
    np.testing.assert_allclose(x.grad, 3 * 2.25 * value**2 + 2 * 1.5 * value + 1.5, rtol=1e-12)


def test_a_chain_of_5000_operations_needs_no_recursion():
    x = y = Tensor(np.array(1.7))
    for _ in range(5000):
        y = y * 1.0001 + y * 0.0
    y.backward()
    assert x.grad == pytest.approx(1.0001**5000, rel=1e-9)


def test_float32_stays_float32():
    x = Tensor(np.float32(1.3) * np.ones((2, 3), np.float32))
    y = core.softmax(x * 0.3 + 1.1)
    y.backward(np.ones((2, 3)))
    assert y.data.dtype == x.grad.dtype == np.float32


def test_a_difference_has_the_gradients_1_and_minus_1():
    x, y = Tensor(X), Tensor(OTHER)
    result = x - y
    np.testing.assert_array_equal(result.data, X - OTHER)
    result.backward(np.ones_like(X))
    np.testing.assert_array_equal(x.grad, np.ones_like(X))
    np.testing.assert_array_equal(y.grad, np.full_like(OTHER, -15))


def test_large_scores_do_not_overflow():
    x = Tensor(np.array([[1003.0, 1000.0, -1000.0]]))
    expected = [[1 / (1 + np.exp(-3)), 1 / (1 + np.exp(3)), 0]]
    np.testing.assert_allclose(core.softmax(x).data, expected)
    np.testing.assert_allclose(core.cross_entropy(x, labels=np.array([0]), count=1).data, np.log1p(np.exp(-3)))


def test_relu_has_the_gradient_0_at_0():
    x = Tensor(np.array([-1.5, 0.0, 0.7]))
    core.relu(x).backward(np.ones(3))
    np.testing.assert_array_equal(x.grad, [0, 0, 1])


def test_only_leaves_keep_their_gradients():
    x = Tensor(X)
    inner = x * 2.0
    result = inner + 1.0
    result.backward(X)
    assert inner.grad is result.grad is None
    np.testing.assert_array_equal(x.grad, 2 * X)


def test_gradients_of_chosen_entries_have_the_type_of_the_whole():
    x = Tensor(X.astype(np.float32))
    x[INDEX].backward(np.ones((*INDEX.shape, *X.shape[1:])))
    assert x.grad.dtype == np.float32
