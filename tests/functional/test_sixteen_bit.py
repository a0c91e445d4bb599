"""Every operation takes numbers in 16 bits, and is as exact as one rounding allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidl import Tensor, functional, kernels, manual_seed
from tests.functional.cases import CASES, Case

ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3e38}


def sixteen_bit(name: str) -> Any:
    return np.float16 if name == "float16" else pytest.importorskip("ml_dtypes").bfloat16


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
def test_the_squares_of_a_normalisation_do_not_overflow_float16(kernel: str) -> None:
    x = np.linspace(-60000, 60000, 16, dtype=np.float16)[None]
    with kernels.use(kernel):
        out = functional.layer_norm(x, np.ones(16, np.float32)).data
    assert out.dtype == np.float16
    np.testing.assert_allclose(out.astype(float).std(), 1, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("operation", ["var", "std", "smooth_l1_loss", "huber_loss"])
def test_a_result_in_16_bits_has_the_type_of_its_operand(operation: str, dtype: str) -> None:
    function = getattr(functional, operation)
    x = Tensor(np.arange(6.0).reshape(2, 3).astype(sixteen_bit(dtype)), requires_grad=True)
    losses = [{"reduction": reduction} for reduction in ("none", "sum", "mean")]
    for settings in losses if operation.endswith("loss") else [{}, {"dim": 1}]:
        out = (
            function(x, Tensor(np.zeros_like(x.data)), **settings)
            if "reduction" in settings
            else function(x, **settings)
        )
        assert out.dtype == x.dtype
        out.sum().backward()
        assert x.grad.dtype == x.dtype


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_the_squares_of_a_variance_do_not_overflow_float16(kernel: str) -> None:
    x = np.zeros(1000, np.float16)
    x[0] = 300  # its square is above 65504, the variance 90
    with kernels.use(kernel):
        one, other = Tensor(x, requires_grad=True), Tensor(x, requires_grad=True)
        assert one.var().item() == pytest.approx(90, rel=1e-3)
        assert one.std().item() == pytest.approx(90**0.5, rel=1e-3)
        one.var().backward()
        other.std().backward()
    wide = x.astype(np.float64)
    np.testing.assert_allclose(one.grad, 2 * (wide - wide.mean()) / 999, rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(other.grad, (wide - wide.mean()) / 999 / wide.std(ddof=1), rtol=2e-3, atol=1e-6)
