"""The compiled conversions between float32 and 16 bits equal numpy's and ml_dtypes' to the bit."""

import itertools

import numpy as np
import pytest
from ml_dtypes import bfloat16

from minidl import Tensor, kernels
from minidl.kernels.jit import conversions
from minidl.kernels.jit.conversions import from_float16, to_float16

ALL = np.arange(2**16, dtype=np.uint16).view(np.float16)


def assert_same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    numbers = ~np.isnan(expected)
    unsigned = np.uint16 if expected.dtype == np.float16 else np.uint32
    np.testing.assert_array_equal(found[numbers].view(unsigned), expected[numbers].view(unsigned))
    assert np.isnan(found[~numbers]).all()


@pytest.fixture(params=["by the instruction", "without it"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without it":
        monkeypatch.setattr(conversions, "HAS_INSTRUCTION", False)
    elif not conversions.HAS_INSTRUCTION:
        pytest.skip("this processor has no instruction for it")


def test_bfloat16_and_float32_are_converted_as_ml_dtypes_does() -> None:
    every = np.arange(2**16, dtype=np.uint16)
    found, expected = conversions.from_bfloat16(every.view(bfloat16)), every.view(bfloat16).astype(np.float32)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
    anything = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    ties = (every.astype(np.uint32) << 16 | 0x8000).view(np.float32)
    with np.errstate(all="ignore"):
        for x in (anything, ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(np.inf))):
            found, expected = conversions.to_bfloat16(x), x.astype(bfloat16)
            numbers = ~np.isnan(x)
            np.testing.assert_array_equal(found[numbers].view(np.uint16), expected[numbers].view(np.uint16))
            assert np.isnan(found[~numbers].astype(np.float32)).all()


def test_a_conversion_of_any_layout_keeps_values_shape_and_the_gradients_type() -> None:
    x = np.random.default_rng(0).standard_normal((30, 20)).astype(np.float32)
    for dtype, kernel, array in itertools.product(
        ("float16", "bfloat16"), ("numpy", "numba"), (x, x.T, x[::2, ::-3], x[0, 0], x[:0])
    ):
        with kernels.use(kernel):
            tensor = Tensor(array, requires_grad=True)
            lower = tensor.to(np.dtype(dtype))
            assert (lower.dtype, lower.shape) == (dtype, array.shape)
            np.testing.assert_array_equal(lower.numpy(), array.astype(dtype))
            np.testing.assert_array_equal(lower.float().numpy(), array.astype(dtype).astype(np.float32))
            lower.sum().backward()
            assert tensor.grad.dtype == np.float32


def test_every_float16_becomes_the_same_float32() -> None:
    assert_same_bits(from_float16(ALL), ALL.astype(np.float32))


def test_float32_is_rounded_as_numpy_rounds_ties_and_subnormals_too() -> None:
    finite = np.sort(ALL[np.isfinite(ALL)].astype(np.float32))
    ties = (finite[:-1] + finite[1:]) / 2
    beyond = np.array([65504, 65519, 65520, 65536, 1e30, np.inf, np.nan, 2.0**-25, 2.0**-26, 1e-45], np.float32)
    points = np.concatenate([finite, ties, beyond, -beyond])
    with np.errstate(all="ignore"):
        for x in (points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf))):
            assert_same_bits(to_float16(x), x.astype(np.float16))
        anything = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
        assert_same_bits(to_float16(anything), anything.astype(np.float16))
