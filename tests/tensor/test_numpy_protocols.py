"""A tensor beside numpy: operators keep the tape, and no function of numpy drops a gradient silently."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

from minidl import Tensor, kernels, no_grad
from minidl import functional as F
from minidl.tensor.numpy_protocols import INSTEAD
from tests.kernels import stand_in
from tests.together import assert_refused, naming


def leaf(*values: float) -> Tensor:
    return Tensor(np.array(values), requires_grad=True)


def test_an_operator_with_an_array_or_a_numpy_number_on_the_left_keeps_the_tape() -> None:
    symbols = (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul)
    for symbol, left in itertools.product(symbols, (np.array([3.0, 2.0]), np.float32(3), np.float64(2), np.array(2.0))):
        if symbol is operator.matmul and np.ndim(left) == 0:
            continue
        with naming(f"{symbol.__name__} of {left!r}"):
            x, peer = leaf(1.0, 2.0), leaf(1.0, 2.0)
            out, expected = symbol(left, x), symbol(Tensor(np.asarray(left, float)), peer)
            assert isinstance(out, Tensor)
            np.testing.assert_allclose(out.numpy(), symbol(left, x.numpy()))
            out.sum().backward()
            expected.sum().backward()
            np.testing.assert_allclose(x.grad, peer.grad)


def test_an_array_compared_with_a_tensor_gives_a_tensor_of_booleans() -> None:
    x, array = leaf(1.0, 2.0), np.array([1.0, 3.0])
    for out, expected in (
        (array == x, [True, False]),
        (array != x, [False, True]),
        (array > x, [False, True]),
        (np.float64(1.0) == x, [True, False]),
        (np.float64(2) < x, [False, False]),
        (x <= Tensor(1.0), [True, False]),
        (x > array[:1], [False, True]),
        (x == array, [True, False]),
    ):
        assert isinstance(out, Tensor)
        np.testing.assert_array_equal(out.numpy(), expected)


def test_a_numpy_function_that_would_drop_the_gradient_is_refused_and_says_what_to_type() -> None:
    x = leaf(1.0, 2.0)
    for function, typed in (
        (lambda: np.exp(x), r"np\.exp would drop.* type x\.exp\(\) "),
        (lambda: np.concatenate([np.zeros(2), x]), r"type F\.cat\(\[\.\.\.\]\)"),
        (lambda: np.where(x > 0, x, 0), r"type F\.where\(condition, a, b\)"),
        (lambda: np.linalg.norm(x), r"np\.linalg\.norm would drop.* type x\.norm\(\) "),
        (lambda: np.add.reduce(x), r"np\.add would drop"),
        (lambda: np.arctan(x), "operations of minidl.functional"),
        (lambda: np.asarray(x), r"\.detach\(\)\.numpy\(\) for the array"),
        (lambda: np.mean([x.sum(), x.sum()]), r"\.item\(\) for a number"),
        (lambda: np.zeros(2).__iadd__(x), "into an array would drop the gradient.*total = total"),
        (lambda: np.zeros(2).__setitem__(slice(2), x), r"\.item\(\) for a number"),
        (lambda: Tensor([x, x]), r"F\.stack\(\[\.\.\.\]\)"),
    ):
        assert_refused([(function, TypeError, typed)])


def test_what_is_typed_instead_of_a_numpy_function_keeps_the_gradient() -> None:
    for name, instead in INSTEAD.items():
        x = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
        vector = x[0] if name in ("outer", "dot", "inner") else x
        names = {"F": F, "x": x, "a": vector, "b": vector, "condition": x > 1}
        out = eval(instead.replace("[...]", "[x, x]"), names)
        out = out[0] if isinstance(out, tuple) else out
        out.sum().backward()
        assert x.grad is not None, name


def test_numpy_functions_take_tensors_where_no_gradient_is_recorded_or_none_is_lost() -> None:
    x, total = leaf(1.0, 4.0), np.zeros(2)
    with no_grad():
        np.testing.assert_array_equal(np.sqrt(x), [1.0, 2.0])
        np.testing.assert_array_equal(np.concatenate([x, x]), [1.0, 4.0, 1.0, 4.0])
        assert np.add.reduce(x) == 5.0
        assert np.asarray(x) is x.data
        total += x
    assert (type(total), total.tolist()) == (np.ndarray, [1.0, 4.0])
    np.testing.assert_array_equal(np.where(x.detach() > 2, x.detach(), 0), [0.0, 4.0])
    assert np.isfinite(x).all()
    assert np.zeros_like(x).shape == np.shape(x) == (2,)
    assert np.argmax(x) == 1
    assert np.allclose(x, [1.0, 4.0])


def test_an_array_on_the_gpu_times_a_tensor_keeps_the_tape() -> None:
    """CuPy's operators hand over to `__cupy_override_elementwise_kernel__`, with the kernel's name."""
    with stand_in.installed() as cupy, kernels.use("cupy"):
        x = Tensor(np.array([1.0, 2.0]), requires_grad=True)

        class Kernel:
            name = "cupy_multiply"

        out = x.__cupy_override_elementwise_kernel__(Kernel, cupy.asarray(np.array([3.0, 4.0])), x)
        out.sum().backward()
        np.testing.assert_array_equal(x.grad.get(), [3.0, 4.0])
        Kernel.name = "cupy_exp"
        with pytest.raises(TypeError, match=r"cupy\.exp takes arrays, not tensors: type x\.exp\(\)"):
            x.__cupy_override_elementwise_kernel__(Kernel, x)
