"""The compiled conversions between float32 and float16 equal numpy's to the bit."""

from collections.abc import Callable

import numpy as np
import pytest

from minidl import kernels
from minidl.kernels.jit.float16 import to_float16, to_float32
from minidl.kernels.sixteen_bit import cast

ALL = np.arange(2**16, dtype=np.uint16).view(np.float16)


def assert_same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    numbers = ~np.isnan(expected)
    unsigned = np.uint16 if expected.dtype == np.float16 else np.uint32
    np.testing.assert_array_equal(found[numbers].view(unsigned), expected[numbers].view(unsigned))
    assert np.isnan(found[~numbers]).all()


def test_every_float16_becomes_the_same_float32() -> None:
    assert_same_bits(to_float32(ALL), ALL.astype(np.float32))


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


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize(
    "layout", [lambda x: x, lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x[0, 0], lambda x: x[:0]]
)
def test_any_layout_is_cast(layout: Callable[[np.ndarray], np.ndarray], kernel: str) -> None:
    x = layout(np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32))
    with kernels.use(kernel):
        half = cast(x, np.dtype(np.float16))
        np.testing.assert_array_equal(half, x.astype(np.float16))
        np.testing.assert_array_equal(cast(half, np.dtype(np.float32)), half.astype(np.float32))
    assert (half.dtype, half.shape) == (np.float16, x.shape)
