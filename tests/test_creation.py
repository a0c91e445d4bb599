"""Tensors of a given shape."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl import Tensor, kernels
from tests.kernels import stand_in
from tests.together import assert_refused


def test_shapes_are_numbers_or_a_tuple_and_the_type_is_float32() -> None:
    for make in (minidl.zeros, minidl.ones, minidl.randn, minidl.rand):
        for tensor in (make(2, 3), make((2, 3))):
            assert (tensor.shape, tensor.dtype) == ((2, 3), np.float32)
        assert make(2, dtype=np.float64, requires_grad=True).requires_grad
        assert make().shape == ()
    assert minidl.full((2,), 0.5).tolist() == [0.5, 0.5]
    assert minidl.eye(2).tolist() == [[1, 0], [0, 1]]
    assert minidl.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_random_numbers_from_0_to_1_are_below_1_in_every_type_and_follow_the_seed() -> None:
    for dtype in ("float16", "bfloat16", "float32"):
        minidl.manual_seed(0)
        numbers = minidl.rand(10_000, dtype=np.dtype(dtype)).numpy()
        assert numbers.dtype == dtype
        assert 0 <= numbers.min() < numbers.max() < 1
        assert numbers.astype(float).mean() == pytest.approx(0.5, abs=0.02)
    for draw in (lambda: minidl.randn(1000), lambda: minidl.rand(1000), lambda: minidl.randint(0, 9, 99)):
        drawn = []
        for seed in (1, 1, 2):
            minidl.manual_seed(seed)
            drawn.append(draw().tolist())
        assert drawn[0] == drawn[1] != drawn[2]


def test_arange_counts_in_integers_or_in_float32() -> None:
    assert (minidl.arange(3).tolist(), minidl.arange(3).dtype) == ([0, 1, 2], np.int64)
    assert minidl.arange(1, 7, 2).tolist() == [1, 3, 5]
    assert (minidl.arange(0, 1, 0.5).tolist(), minidl.arange(0, 1, 0.5).dtype) == ([0.0, 0.5], np.float32)


def test_like_takes_shape_and_type() -> None:
    x = Tensor(np.ones((2, 3)))
    for make in (minidl.zeros_like, minidl.ones_like, minidl.randn_like):
        assert (make(x).shape, make(x).dtype) == ((2, 3), np.float64)


def test_a_length_or_a_bound_that_is_no_number_is_named() -> None:
    whole = "each length must be a whole number of at least 0, got"
    assert_refused(
        [
            (lambda: minidl.zeros(-1), ValueError, "zeros: each length must be at least 0, got -1"),
            (lambda: minidl.ones(2, 2.0), TypeError, f"ones: {whole} 2.0 .*: write 2"),
            (lambda: minidl.full((2.5,), 1.0), TypeError, f"full: {whole}"),
            (lambda: minidl.randn(2.5), TypeError, f"randn: {whole} 2.5"),
            (lambda: minidl.rand((2, None)), TypeError, f"rand: {whole} None"),
            (lambda: minidl.randint(0, 3, (2.5,)), TypeError, f"randint: {whole}"),
            (lambda: minidl.eye(2.5), TypeError, "eye: n must be a whole number"),
            (lambda: minidl.arange(0, 5, 0), ValueError, "arange: step must not be 0"),
            (lambda: minidl.arange("a"), TypeError, "arange: end must be a number, got 'a'"),
            (lambda: minidl.arange(0.0, float("nan")), ValueError, "arange: end must be finite, got nan"),
        ]
    )


def test_lengths_and_bounds_may_be_numpys_integers_and_tensors_of_one() -> None:
    two = np.int64(2)
    assert minidl.zeros(two, np.array(3)).shape == (2, 3)
    assert minidl.full(two, 1.0).shape == (2,)
    for end in (two, np.array(2), Tensor(np.array(2))):
        assert (minidl.arange(end).tolist(), minidl.arange(end).dtype) == ([0, 1], np.int64)


def test_they_lie_where_the_kernels_compute() -> None:
    with stand_in.installed() as cupy, kernels.use("cupy"):
        for tensor in (minidl.zeros(2), minidl.ones(2), minidl.randn(2), minidl.arange(2), minidl.eye(2)):
            assert isinstance(tensor.data, cupy.ndarray)
