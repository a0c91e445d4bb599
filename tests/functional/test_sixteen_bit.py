"""Every operation takes numbers in 16 bits, and is as exact as one rounding allows."""

from __future__ import annotations

import itertools
import operator
import warnings
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from minidl import Tensor, functional, kernels, manual_seed
from tests.functional.cases import CASES, Case
from tests.tiers import exhaustively
from tests.together import naming

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


@pytest.mark.parametrize(("name", "kernel"), [("bfloat16", "numba"), *exhaustively(("float16", "numpy"))])
def test_an_operation_on_sixteen_bits_is_within_a_few_roundings_of_float64(name: str, kernel: str) -> None:
    """Within 16 roundings of the largest number, wherever the type reaches; or it refuses the type by its name."""
    dtype = sixteen_bit(name)
    for case in (case for case in CASES if case.smooth):
        arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in case.arrays()]
        with naming(case), kernels.use(kernel), np.errstate(all="ignore"):
            expected = run(case, [np.asarray(a, np.float64) if a.dtype == dtype else a for a in arrays])
            try:
                found = run(case, arrays)
            except TypeError as refusal:
                assert name in str(refusal)  # noqa: PT017
                continue
            for mine, exact in zip(found, expected, strict=True):
                reached = np.abs(exact) < LARGEST[name]
                scale = max(1.0, float(np.abs(exact[reached]).max())) if reached.any() else 1.0
                np.testing.assert_allclose(mine[reached], exact[reached], rtol=0, atol=16 * ROUNDING[name] * scale)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_products_and_gradients_of_what_is_repeated_are_summed_in_float32_and_rounded_once(kernel: str) -> None:
    """4096 ones: float16 would stop adding at 2048, where 2048 + 1 rounds to 2048, bfloat16 at 256."""
    for name in ROUNDING:
        ones = np.ones((1, 4096), sixteen_bit(name))
        bias, repeated = (Tensor(np.zeros(1, ones.dtype), requires_grad=True) for _ in range(2))
        with kernels.use(kernel), naming(name):
            out = functional.linear(ones, ones)
            assert (out.item(), out.dtype) == (4096.0, ones.dtype)
            assert (Tensor(ones) @ Tensor(ones.T)).item() == 4096.0
            functional.linear(ones.T, ones[:, :1], bias).sum().backward()
            (Tensor(ones.T) + repeated).backward(ones.T)
            assert bias.grad.tolist() == repeated.grad.tolist() == [4096.0]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_a_number_beyond_the_range_of_a_type_becomes_infinity_without_a_warning(kernel: str) -> None:
    """As in PyTorch; numpy's cast warns."""
    large = Tensor(np.array([1e300, -1e300, 1.0]))
    with kernels.use(kernel), warnings.catch_warnings():
        warnings.simplefilter("error")
        for narrow in (large.float(), large.half(), large.float().half(), large.astype(bfloat16).half()):
            assert narrow.data.astype(float).tolist() == [np.inf, -np.inf, 1.0]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_squares_do_not_overflow_float16(kernel: str) -> None:
    x = np.linspace(-60000, 60000, 16, dtype=np.float16)[None]
    wide = np.zeros(1000, np.float16)
    wide[0] = 300  # its square is above 65504, the variance 90
    one, other = Tensor(wide, requires_grad=True), Tensor(wide, requires_grad=True)
    with kernels.use(kernel):
        out = functional.layer_norm(x, np.ones(16, np.float32)).data
        assert one.var().item() == pytest.approx(90, rel=1e-3)
        assert one.std().item() == pytest.approx(90**0.5, rel=1e-3)
        one.var().backward()
        other.std().backward()
    assert out.dtype == np.float16
    np.testing.assert_allclose(out.astype(float).std(), 1, atol=1e-3)
    wide = wide.astype(np.float64)
    np.testing.assert_allclose(one.grad, 2 * (wide - wide.mean()) / 999, rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(other.grad, (wide - wide.mean()) / 999 / wide.std(ddof=1), rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("name", ROUNDING)
def test_a_result_in_16_bits_has_the_type_of_its_operand(name: str) -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3).astype(sixteen_bit(name)), requires_grad=True)
    zeros = Tensor(np.zeros_like(x.data))
    for out in (
        *(function(x, **axis) for function in (functional.var, functional.std) for axis in ({}, {"dim": 1})),
        *(functional.l1_loss(x, zeros, reduction) for reduction in ("none", "sum", "mean")),
        functional.index_add(x, 0, np.array([1]), x.detach()[:1], alpha=0.5),
        x.clamp(0, 1),
        x.clamp(max=1),
    ):
        assert out.dtype == x.dtype
        x.grad = None
        out.sum().backward()
        assert x.grad.dtype == x.dtype
    assert [x.clamp(*bounds).tolist()[0] for bounds in ((0.5, 1), (1, None), (None, 1))] == [
        [0.5, 1, 1], [1, 1, 2], [0, 1, 1]
    ]  # fmt: skip


LOSSES = "mse_loss l1_loss binary_cross_entropy_with_logits"


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_a_loss_over_many_numbers_is_rounded_once(kernel: str) -> None:
    """bfloat16 stops adding at 256, where 256 + 1 rounds to 256: the mean of 3000 ones would be 0.085."""
    for loss, name, reduction in itertools.product(LOSSES.split(), ROUNDING, ("mean", "sum")):
        dtype = sixteen_bit(name)
        x, y = Tensor(np.full(3000, 2.0, dtype), requires_grad=True), np.ones(3000, dtype)
        with kernels.use(kernel), naming(f"{loss}, {name}, {reduction}"):
            expected = getattr(functional, loss)(np.full(3000, 2.0), np.ones(3000), reduction=reduction).item()
            found = getattr(functional, loss)(x, y, reduction=reduction)
            found.backward()
            assert found.dtype == x.grad.dtype == dtype
            assert found.item() == pytest.approx(expected, rel=2 * ROUNDING[name])


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("name", ROUNDING)
def test_statistics_of_sixteen_bits_neither_overflow_on_the_way_nor_drift(name: str, kernel: str) -> None:
    dtype = sixteen_bit(name)
    with kernels.use(kernel):
        for found, expected in (
            (functional.norm(np.full(4, 300, dtype)), 600.0),  # 300**2 is more than float16 holds
            (functional.var(np.tile(np.array([-1, 1], dtype), 100_000), correction=0), 1.0),  # and so are 200,000 ones
            (functional.std(np.tile(np.array([-1, 1], dtype), 100_000), correction=0), 1.0),
            (functional.cumsum(np.ones(4096, dtype), 0)[-1], 4096.0),
            (functional.prod(np.array([300, 300, 0.001, 1], dtype)), 90.0),
        ):
            assert found.dtype == dtype
            assert found.item() == pytest.approx(expected, rel=3 * ROUNDING[name])


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("name", ROUNDING)
def test_cross_entropy_of_more_samples_than_float16_counts(name: str, kernel: str) -> None:
    """Its losses are float32 in every case, and the gradient of each is 1 / n of one sample's, to one rounding."""
    n = 70_000
    for settings in ({}, {"weight": [1.0, 1.0]}, {"ignore_index": 1}, {"label_smoothing": 0.5}):
        z, labels = Tensor(np.zeros((n, 2), sixteen_bit(name)), requires_grad=True), np.zeros(n, int)
        with kernels.use(kernel), naming(settings):
            loss = functional.cross_entropy(z, labels, **settings)
            loss.backward(65536.0)
            smoothing = settings.get("label_smoothing", 0)
            assert loss.dtype == np.float32
            assert loss.item() == pytest.approx(np.log(2), rel=1e-6)
            assert float(z.grad[9, 1]) == pytest.approx((0.5 - smoothing / 2) * 65536 / n, rel=2 * ROUNDING[name])


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("name", ROUNDING)
def test_the_weights_of_a_normalisation_have_gradients_beyond_the_range_of_float16(name: str, kernel: str) -> None:
    """2,048 gradients of 100 add up to 204,800; the largest float16 is 65,504."""
    x = np.random.default_rng(0).normal(size=(512, 4, 4)).astype(sixteen_bit(name))
    for normalise in (
        lambda weight, bias: functional.batch_norm(x, None, None, weight, bias, training=True),
        lambda weight, bias: functional.group_norm(x, 2, weight, bias),
        lambda weight, bias: functional.layer_norm(x, weight, bias),
    ):
        weight, bias = (Tensor(np.ones(4, np.float32), requires_grad=True) for _ in range(2))
        with kernels.use(kernel):
            out = normalise(weight, bias)
            out.backward(np.full(out.shape, 100, x.dtype))
        assert bias.grad.tolist() == [204800.0] * 4
        assert (out.dtype, weight.grad.dtype) == (x.dtype, np.float32)


@pytest.mark.parametrize("name", ROUNDING)
def test_large_arrays_have_the_bits_of_numpys_arithmetic(name: str) -> None:
    """They are computed in float32; so are their gradients, and the sums of gradients where paths meet."""
    for shapes in (((100, 100), (100, 100)), ((200, 60), (1, 60)), ((100, 90), ())):
        generator = np.random.default_rng(0)
        x, y = (np.asarray(generator.normal(size=shape) * 200, sixteen_bit(name)) for shape in shapes)  # some overflow
        for operation in (operator.add, operator.sub, operator.mul, operator.truediv):
            with np.errstate(all="ignore"):
                expected, found = operation(x, y), operation(Tensor(x), Tensor(y)).data
            np.testing.assert_array_equal(found.view(np.uint16), np.asarray(expected).view(np.uint16))
        a, b = Tensor(x, requires_grad=True), Tensor(y)
        (a * b + a * 0.5).backward(np.ones(expected.shape, x.dtype))
        if x.shape == expected.shape:
            sums = np.broadcast_to(y, x.shape) + np.full_like(x, 0.5)
            np.testing.assert_array_equal(a.grad.view(np.uint16), sums.view(np.uint16))
        assert a.grad.dtype == x.dtype


@pytest.mark.parametrize("name", ROUNDING)
def test_an_operation_on_one_large_array_is_computed_in_float32_and_rounded_once(name: str) -> None:
    generator, dtype = np.random.default_rng(0), sixteen_bit(name)
    x, g = generator.uniform(0.5, 3, (100, 100)).astype(dtype), generator.normal(size=(100, 100)).astype(dtype)
    for operation in ("neg", "abs", "square", "sqrt", "exp", "log", "sin", "cos"):
        found, exact = Tensor(x, requires_grad=True), Tensor(x.astype(np.float32), requires_grad=True)
        out, wide = getattr(functional, operation)(found), getattr(functional, operation)(exact)
        out.backward(g)
        np.testing.assert_array_equal(out.data.view(np.uint16), wide.data.astype(dtype).view(np.uint16), operation)
        if operation not in ("sqrt", "exp"):  # whose gradient reads the result, which is kept in 16 bits
            wide.backward(g.astype(np.float32))
            np.testing.assert_array_equal(found.grad, exact.grad.astype(dtype), operation)
        assert out.dtype == found.grad.dtype == dtype
