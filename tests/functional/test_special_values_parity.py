"""Signed zeros, denormals, infinities, not-a-numbers and huge numbers: values and gradients are PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, functional, kernels
from tests.together import naming

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")
from tests.functional import dressed_torch  # noqa: E402  (imports torch)

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy says where nan and inf arise
    pytest.mark.parametrize("kernel", ["numpy", "numba"]),
    pytest.mark.parametrize("dtype", ["float32", "float64"]),
]

POSITIVE = (0.0, 1.0, 0.5, 2.0, 3.0, 5.0, 20.0, 50.0, 87.0, 104.0, 709.0, 745.0, 1e10, 1e30, 1e-30, 1e-40, 1e-310)
SPECIAL = [np.nan, np.inf, -np.inf, *POSITIVE, *(-x for x in POSITIVE)]
FEWER = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, -7.0, 1e30, -1e30, 1e-30]
ERROR = {"float32": 3e-6, "float64": 1e-13}  # relative
SMALLEST = {"float32": 1e-44, "float64": 1e-307}  # PyTorch's float64 exp has no denormal results


def run(function: Callable[..., Any], F: Any, make: Callable[..., Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The result, and the gradients of its sum."""
    operands = [make(array) for array in arrays]
    out = function(F, *operands)
    out.backward(make(np.ones(tuple(out.shape), arrays[0].dtype)))
    return [np.asarray(part) for part in (out.detach(), *(operand.grad for operand in operands))]


def assert_same(function: Callable[..., Any], arrays: list[np.ndarray], atol: float = 0.0, zeros: bool = False) -> None:
    dtype = arrays[0].dtype.name
    ours = run(function, functional, lambda a: Tensor(a.copy(), requires_grad=True), arrays)
    theirs = run(function, dressed_torch, lambda a: torch.tensor(a, requires_grad=True), arrays)
    for what, found, expected in zip(("value", "gradient", "second gradient"), ours, theirs, strict=False):
        np.testing.assert_allclose(found, expected, rtol=ERROR[dtype], atol=max(atol, SMALLEST[dtype]), err_msg=what)
        if zeros:  # their signs too
            both = (found == 0) & (expected == 0)
            np.testing.assert_array_equal(np.signbit(found)[both], np.signbit(expected)[both], err_msg=what)


# name -> the function, and the absolute error that PyTorch's own cancellation asks for, in units of the last place of 1
FUNCTIONS: dict[str, tuple[Callable[..., Any], float]] = {
    **{name: (lambda F, a, name=name: getattr(F, name)(a), 0) for name in ("exp", "log", "sqrt", "abs", "neg")},
    **{name: (lambda F, a, name=name: getattr(F, name)(a), 0) for name in ("relu", "softplus", "logsigmoid")},
    "sigmoid": (lambda F, a: F.sigmoid(a), 1),  # its derivative has 1 - out
    "tanh": (lambda F, a: F.tanh(a), 1),
    "1 / a": (lambda F, a: 1 / a, 0),
    "a / 3": (lambda F, a: a / 3, 0),
}


def test_functions_of_special_numbers(dtype: str, kernel: str) -> None:
    for name, (function, units) in FUNCTIONS.items():
        with kernels.use(kernel), naming(name):
            assert_same(function, [np.array(SPECIAL, dtype=dtype)], units * np.finfo(dtype).eps)


def test_gelu_of_special_numbers(dtype: str, kernel: str) -> None:
    """PyTorch's cancels below 0, and in float32 gives nan at infinity."""
    x = np.array([value for value in SPECIAL if value != np.inf], dtype=dtype)
    with kernels.use(kernel):
        assert_same(lambda F, a: F.gelu(a), [x], atol=np.finfo(dtype).eps * 50)
        assert functional.gelu(np.array([np.inf], dtype=dtype)).item() == np.inf


def test_powers_of_special_numbers(dtype: str, kernel: str) -> None:
    infinite = (np.inf, -np.inf, np.nan)
    with kernels.use(kernel):
        for exponent in (0, 1, 2, 3, 4, 7, -1, -2, -3, 0.5, -0.5, 1.5, -2.5, 1 / 3, *infinite):
            with naming(f"a**{exponent}"):
                assert_same(lambda F, a, e=exponent: a**e, [np.array(SPECIAL, dtype=dtype)], zeros=True)
        for base in (0.0, -0.0, 1.0, 2.5, 0.5, -2.0, *infinite):
            with naming(f"{base}**a"):
                assert_same(lambda F, a, b=base: b**a, [np.array(SPECIAL, dtype=dtype)], zeros=True)


def test_operations_on_all_pairs(dtype: str, kernel: str) -> None:
    a, b = np.array(list(itertools.product(FEWER, FEWER)), dtype=dtype).T.copy()
    for operation in ("pow", "add", "sub", "mul", "div"):
        with kernels.use(kernel), naming(operation):
            assert_same(lambda F, a, b, name=operation: getattr(F, name)(a, b), [a, b], zeros=operation != "sub")


ROWS = [
    [0.0, -0.0, 1.0, 2.0],
    [1e30, -1e30, 0.0, 1.0],
    [88.0, -88.0, 104.0, -104.0],
    [-np.inf, 0.0, 1.0, -np.inf],
    [-np.inf] * 4,
    [np.inf, 0.0, 1.0, 2.0],
    [np.nan, 0.0, 1.0, 2.0],
    [0.0, 1.0, 2.0, np.nan],
]


def test_softmax_of_special_rows(dtype: str, kernel: str) -> None:
    x = np.array([ROWS, ROWS[::-1]], dtype=dtype)
    for name, axis, array in itertools.product(("softmax", "log_softmax"), (0, 1, 2), (x, x[:, :, :1].copy())):
        with kernels.use(kernel), naming(f"{name}, axis {axis}"):
            assert_same(lambda F, a, name=name, axis=axis: getattr(F, name)(a, axis), [array], np.finfo(dtype).eps)


def test_cross_entropy_of_special_rows(dtype: str, kernel: str) -> None:
    x, labels = np.array(ROWS, dtype=dtype), [3, 1, 2, 0, 0, 0, 1, 1]
    with kernels.use(kernel):
        for row, label in zip(x, labels, strict=True):
            y = {functional: [label], dressed_torch: torch.tensor([label])}
            assert_same(lambda F, a, y=y: F.cross_entropy(a, y[F]), [row[None]], np.finfo(dtype).eps)


def test_binary_cross_entropy_of_special_numbers(dtype: str, kernel: str) -> None:
    x = np.array([value for value in SPECIAL if np.isfinite(value)], dtype=dtype)
    with kernels.use(kernel):
        for target in (0.0, 0.25, 1.0):
            y = np.full_like(x, target)
            eps = np.finfo(dtype).eps * 100  # PyTorch's cancels: (1 - y) x - log(sigmoid(x))
            assert_same(
                lambda F, a, b: F.binary_cross_entropy_with_logits(a, b), [x[np.abs(x) < 800], y[np.abs(x) < 800]], eps
            )
