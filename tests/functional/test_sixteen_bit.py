"""Every operation takes numbers in 16 bits, and is as exact as one rounding allows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from minidl import Tensor, functional, kernels, manual_seed
from tests.functional.cases import CASES, Case

ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3e38}


def sixteen_bit(name: str) -> Any:
    return np.float16 if name == "float16" else bfloat16


def run(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The result, and the gradients for a gradient of ones, as float64."""
    manual_seed(0)  # dropout drops the same every time
    tensors = [Tensor(a) for a in arrays]
    for tensor, differentiable in zip(tensors, case.differentiable, strict=True):
        tensor.requires_grad = differentiable
    out = case.function(functional, *tensors)
    out.backward(np.ones(out.shape, out.dtype))
    gradients = [tensor.grad for tensor in tensors if tensor.requires_grad]
    return [np.asarray(array, np.float64) for array in (out.data, *gradients)]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("name", ROUNDING)
@pytest.mark.parametrize("case", [case for case in CASES if case.smooth], ids=repr)
def test_an_operation_on_sixteen_bits_is_within_a_few_roundings_of_float64(case: Case, name: str, kernel: str) -> None:
    """Within 16 roundings of the largest number, wherever the type reaches; or it refuses the type by its name."""
    dtype = sixteen_bit(name)
    arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in case.arrays()]
    with kernels.use(kernel), np.errstate(all="ignore"):
        expected = run(case, [np.asarray(a, np.float64) if a.dtype == dtype else a for a in arrays])
        try:
            found = run(case, arrays)
        except TypeError as refusal:
            assert name in str(refusal)  # noqa: PT017
            return
    for mine, exact in zip(found, expected, strict=True):
        reached = np.abs(exact) < LARGEST[name]
        scale = max(1.0, float(np.abs(exact[reached]).max())) if reached.any() else 1.0
        np.testing.assert_allclose(mine[reached], exact[reached], rtol=0, atol=16 * ROUNDING[name] * scale)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_a_product_is_summed_in_float32_and_rounded_once(kernel: str) -> None:
    """4096 ones: float16 would stop adding at 2048, where 2048 + 1 rounds to 2048."""
    with kernels.use(kernel):
        ones = np.ones((1, 4096), np.float16)
        out = functional.linear(ones, ones)
        assert (out.item(), out.dtype) == (4096.0, np.float16)
        assert (Tensor(ones) @ Tensor(ones.T)).item() == 4096.0
        bias = Tensor(np.zeros(1, np.float16), requires_grad=True)
        functional.linear(np.ones((4096, 1), np.float16), np.ones((1, 1), np.float16), bias).sum().backward()
        assert bias.grad.tolist() == [4096.0]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_a_number_beyond_the_range_of_a_type_becomes_infinity_without_a_warning(kernel: str) -> None:
    """As in PyTorch; numpy's cast warns."""
    large = Tensor(np.array([1e300, -1e300, 1.0]))
    with kernels.use(kernel), warnings.catch_warnings():
        warnings.simplefilter("error")
        for narrow in (large.float(), large.half(), large.float().half(), large.astype(bfloat16).half()):
            assert narrow.data.astype(float).tolist() == [np.inf, -np.inf, 1.0]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_the_squares_of_a_normalisation_do_not_overflow_float16(kernel: str) -> None:
    x = np.linspace(-60000, 60000, 16, dtype=np.float16)[None]
    with kernels.use(kernel):
        out = functional.layer_norm(x, np.ones(16, np.float32)).data
    assert out.dtype == np.float16
    np.testing.assert_allclose(out.astype(float).std(), 1, atol=1e-3)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("name", ROUNDING)
@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
def test_the_weights_of_a_normalisation_have_gradients_beyond_the_range_of_float16(
    norm: str, name: str, kernel: str
) -> None:
    """2,048 gradients of 100 add up to 204,800; the largest float16 is 65,504."""
    x = np.random.default_rng(0).normal(size=(512, 4, 4)).astype(sixteen_bit(name))
    weight, bias = (Tensor(np.ones(4, np.float32), requires_grad=True) for _ in range(2))
    with kernels.use(kernel):
        out = {
            "batch": lambda: functional.batch_norm(x, None, None, weight, bias, training=True),
            "group": lambda: functional.group_norm(x, 2, weight, bias),
            "layer": lambda: functional.layer_norm(x, weight, bias),
        }[norm]()
        out.backward(np.full(out.shape, 100, x.dtype))
    assert bias.grad.tolist() == [204800.0] * 4
    assert (out.dtype, weight.grad.dtype) == (x.dtype, np.float32)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("name", ROUNDING)
def test_the_gradient_of_a_broadcast_operand_is_summed_in_float32(name: str, kernel: str) -> None:
    """bfloat16 would stop adding at 256, float16 at 2048: there the next number is 2 larger, and adding 1 is lost."""
    bias = Tensor(np.zeros(3, sixteen_bit(name)), requires_grad=True)
    with kernels.use(kernel):
        (Tensor(np.ones((4096, 3), bias.dtype)) + bias).backward(np.ones((4096, 3), bias.dtype))
    assert bias.grad.tolist() == [4096.0] * 3
