"""An operation of one's own: a function on arrays and its vector-Jacobian product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from minidl import Tensor, gradcheck, kernels, operation
from minidl.functional.operation import Operation
from tests.kernels import stand_in
from tests.together import assert_refused


@pytest.fixture(params=["numpy", "numba"], autouse=True)
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    with kernels.use(request.param):
        yield request.param


def scaled_product() -> Operation:
    """scale * x @ w, by the kernels' matrix product."""

    @operation
    def product(x, w, scale=1.0):
        return scale * kernels.current().matmul(x, w)

    @product.vjp
    def product_vjp(g, out, x, w, scale=1.0):
        matmul = kernels.current().matmul
        return scale * matmul(g, w.T), scale * matmul(x.T, g)

    return product


def test_its_gradient_equals_finite_differences_and_that_of_the_same_operations() -> None:
    random = np.random.default_rng(0)
    x, w = random.standard_normal((3, 4)), random.standard_normal((4, 2))
    product = scaled_product()
    assert gradcheck(lambda x, w: product(x, w, scale=0.5), [x, w])
    mine, peer = ([Tensor(a, requires_grad=True) for a in (x, w)] for _ in range(2))
    product(*mine, scale=0.5).sum().backward()
    (0.5 * (peer[0] @ peer[1])).sum().backward()
    for one, other in zip(mine, peer, strict=True):
        np.testing.assert_allclose(one.grad, other.grad)


def test_only_the_gradients_that_are_needed_are_asked_of_it() -> None:
    x, first = Tensor(np.ones((2, 2)), requires_grad=True), operation(lambda x, y: 2 * x + 0 * y)
    first.vjp(lambda g, out, x, y: (2 * g, None))
    for product in (scaled_product(), first):
        x.grad = None
        product(x, np.ones((2, 2))).sum().backward()
        np.testing.assert_array_equal(x.grad, np.full((2, 2), 2.0))


def test_its_kernels_count_themselves_and_the_rest_is_counted_elementwise() -> None:
    def twice(x):
        """2 x."""
        return 2 * x

    doubled = operation(twice)
    doubled.vjp(lambda g, out, x: 2 * g)
    assert (doubled.__name__, doubled.__doc__, repr(doubled)) == ("twice", "2 x.", "<operation twice>")
    x = Tensor(np.ones((3, 4)), requires_grad=True)
    with kernels.counted() as work:
        scaled_product()(x, np.ones((4, 2))).sum()
    assert work.flops == 2 * 3 * 4 * 2 + 3 * 2
    with kernels.counted() as work:
        out = doubled(x)
        assert work.flops == 12
        out.backward(np.ones((3, 4)))
    assert work.flops == 24


def test_it_may_give_back_its_input_or_g_and_no_memory_is_shared() -> None:
    same, keeps, plus = operation(lambda x: x), operation(lambda x: x.sum()), operation(lambda x, y: x + y)
    same.vjp(lambda g, out, x: g)
    keeps.vjp(lambda g, out, x: x)
    plus.vjp(lambda g, out, x, y: (both := g * np.ones(2), both))  # float64
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0], requires_grad=True)
    out = same(x)
    assert not np.shares_memory(out.data, x.data)
    out.sum().backward()
    x.grad += 1  # writable, and nobody else's
    np.testing.assert_array_equal(x.grad, [2.0, 2.0])
    keeps(y).backward()
    assert not np.shares_memory(y.grad, y.data)
    x.grad = y.grad = None
    plus(x, y).sum().backward()
    x.grad *= 5
    assert (y.grad.tolist(), y.grad.dtype) == ([1.0, 1.0], np.float32)


def test_writing_into_an_operand_before_backward_is_noticed() -> None:
    x = Tensor(np.ones((2, 2)), requires_grad=True)
    out = scaled_product()(x, x)
    x.copy_(np.zeros((2, 2)))
    with pytest.raises(RuntimeError, match="overwritten in place"):
        out.sum().backward()


def scale(x, y=2.0):
    return x * y


def wrong(forward: object, vjp: object) -> Tensor:
    """An operation with this gradient, applied to a matrix and walked back."""
    named = operation(forward)
    if vjp is not None:
        named.vjp(vjp)
    named(Tensor(np.ones((2, 3)), requires_grad=True)).sum().backward()


def test_an_error_in_an_operation_names_it_and_what_was_expected() -> None:
    shape = r"operation scale returned a gradient of shape \(3,\) for operand 0 of shape \(2, 3\): sum over"
    assert_refused(
        [
            (lambda: wrong(scale, lambda g, out, x: (g, g)), ValueError, "scale.*its 1 operands, and returned 2"),
            (lambda: wrong(scale, lambda g, out, x: g.sum(axis=0)), ValueError, shape),
            (lambda: wrong(scale, lambda g, out, x: None), TypeError, "scale.*operand 0.*not NoneType"),
            (lambda: wrong(lambda x: Tensor(x), None), TypeError, "must return an array, not Tensor"),
            (lambda: wrong(scale, None), RuntimeError, r"scale has no gradient: .* @scale\.vjp"),
            (lambda: wrong(scale, lambda g, out, x: g.__imul__(2)), ValueError, "read-only"),
        ]
    )


def test_it_runs_on_an_array_module_that_is_not_numpys() -> None:
    with stand_in.installed(), kernels.use("cupy"):
        x = Tensor(np.ones((2, 2)), requires_grad=True)
        scaled_product()(x, Tensor(np.ones((2, 2)))).sum().backward()
        np.testing.assert_array_equal(x.grad.get(), np.full((2, 2), 2.0))


# ---- gradcheck ----


def test_gradcheck_finds_a_wrong_gradient_and_names_the_input() -> None:
    off = operation(lambda x, y: x * y)
    off.vjp(lambda g, out, x, y: (g * y, 1.0001 * g * x))
    with pytest.raises(AssertionError, match=r"input 1 of shape \(3,\): .* backward gives .* finite differences"):
        gradcheck(off, [np.array([1.0, 2.0, 3.0]), np.array([2.0, -1.0, 0.5])])


def test_gradcheck_refuses_float32_and_leaves_integers_alone() -> None:
    with pytest.raises(TypeError, match="input 0 is float32, and differences need float64"):
        gradcheck(lambda x: x * 2, [np.ones(2, np.float32)])
    assert gradcheck(lambda x, i: x[i], [np.ones(3), np.array([0, 2])])
