"""Two bytes a number: rounding, ranges, and what fp16 loses."""

import warnings
from itertools import product

import numpy as np
import pytest
from ml_dtypes import bfloat16

from minidl.compress import Half
from tests.together import naming


def through(format: str, array: np.ndarray) -> np.ndarray:
    message = Half(format).encode(array)
    assert message.nbytes == 2 * array.size
    return Half(format).decode(message)


def test_what_comes_back_has_the_shape_and_the_dtype():
    for dtype, shape, format in product(["float16", "float32", "float64"], [(0,), (), (3, 4)], ["fp16", "bf16"]):
        with naming(dtype, shape, format):
            array = np.ones(shape, dtype)
            back = through(format, array)
            assert (back.shape, back.dtype) == (shape, array.dtype)
            assert (back == array).all()


def test_the_relative_error_is_half_a_step_at_most():
    x = np.random.default_rng(0).normal(size=10_000)
    assert np.abs(through("bf16", x) / x - 1).max() < 2.0**-8 * 1.001
    usual = x[np.abs(x) > 6.2e-5]
    assert np.abs(through("fp16", usual) / usual - 1).max() < 2.0**-11 * 1.001


def test_fp16_loses_small_gradients_and_bf16_does_not():
    tiny = np.array([2.9e-8, -1e-8, 1e-30], "float32")
    assert not through("fp16", tiny).any()
    assert np.abs(through("bf16", tiny) / tiny - 1).max() < 2.0**-8
    assert through("fp16", np.array([6e-8], "float32")).any()


def test_fp16_ends_at_65504():
    x = np.array([65504, 65519, 65520, -1e6], "float32")
    assert through("fp16", x).tolist() == [65504, 65504, np.inf, -np.inf]
    assert np.isfinite(through("bf16", x)).all()


def test_infinities_and_nan_are_kept():
    for format in ["fp16", "bf16"]:
        with naming(format):
            odd = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32).view(
                np.float32
            )  # NaN that rounding would ruin
            x = np.concatenate([np.array([np.inf, -np.inf, 0.0, -0.0], "float32"), odd])
            back = through(format, x)
            np.testing.assert_array_equal(back, x)
            assert np.signbit(back[3])


def test_float64_beyond_the_range_becomes_an_infinity_without_a_warning():
    for format in ["fp16", "bf16"]:
        with naming(format), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert Half(format).decode(Half(format).encode(np.array([1e300, -1e300]))).tolist() == [np.inf, -np.inf]


def test_an_unknown_format_and_numbers_of_other_types_are_refused():
    with pytest.raises(ValueError, match="Half: format must be 'fp16' or 'bf16', got 'int8'"):
        Half("int8")
    with pytest.raises(ValueError, match="Half compresses floating-point numbers, not int64"):
        Half().encode(np.arange(3))
    with pytest.raises(ValueError, match=r"not bfloat16: keep the weights in float32, with amp.autocast"):
        Half("bf16").encode(np.ones(3, np.dtype(bfloat16)))
