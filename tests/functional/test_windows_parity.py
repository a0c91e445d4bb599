"""Convolution and pooling equal PyTorch's at their edges: numbers that are not finite, ties, any geometry."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minidl import Tensor, functional, kernels

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")
from tests.functional import dressed_torch  # noqa: E402  (imports torch)
from tests.functional.test_functional_parity import assert_equal_to_torch  # noqa: E402

KERNELS = pytest.mark.parametrize("kernel", ["numpy", "numba"])


def assert_same(function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """The result and all gradients are PyTorch's, with the same numbers that are not finite."""
    random = np.random.default_rng(1)
    ours, theirs = [Tensor(a, True) for a in arrays], [torch.tensor(a, requires_grad=True) for a in arrays]
    with np.errstate(invalid="ignore"):
        out, expected = function(functional, *ours), function(dressed_torch, *theirs)
        g = random.standard_normal(out.shape).astype(np.float32)
        out.backward(g)
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-4)
    for mine, peer in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad, peer.grad.numpy(), rtol=1e-4, atol=1e-4)


SPECIAL = {
    "not finite": np.array([np.nan, np.inf, -np.inf, 1, 2, 2, 0], np.float32),
    "minus infinity": np.array([-np.inf, -np.inf, -np.inf, 1], np.float32),
    "not a number": np.array([np.nan, np.nan, 1], np.float32),
}


@KERNELS
@pytest.mark.parametrize("kind", SPECIAL)
def test_pooling_of_special_numbers(kind: str, kernel: str) -> None:
    x = np.random.default_rng(0).choice(SPECIAL[kind], (2, 2, 7, 8))
    with kernels.use(kernel):
        for window, stride, padding, dilation, ceil in itertools.product((2, 3), (1, 2, 3), (0, 1), (1, 2), (0, 1)):
            sliding = window, stride, padding, dilation, bool(ceil)
            assert_same(lambda F, x, sliding=sliding: F.max_pool2d(x, *sliding), x)
            if dilation == 1:
                sliding = window, stride, padding, bool(ceil)
                assert_same(lambda F, x, sliding=sliding: F.avg_pool2d(x, *sliding), x)
        assert_same(lambda F, x: F.adaptive_max_pool2d(x, (3, 5)), x)
        assert_same(lambda F, x: F.adaptive_avg_pool2d(x, (3, 5)), x)


@KERNELS
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_convolution_of_an_image_with_a_special_pixel(special: float, kernel: str) -> None:
    random = np.random.default_rng(0)
    with kernels.use(kernel):
        for window, stride, padding, dilation, groups, filters in (
            *((3, 1, 1, 1, 1, 5), (3, 2, 1, 1, 1, 5), (3, 1, 1, 2, 2, 6), (1, 1, 0, 1, 1, 3), (1, 2, 0, 1, 1, 3)),
            *((2, 2, 0, 1, 1, 64), (3, 2, 1, 1, 1, 64), (3, 1, 1, 1, 4, 4), (5, 1, 2, 1, 1, 4), (3, 3, 0, 1, 1, 2)),
        ):
            for place in ((0, 0), (0, 7), (6, 0), (3, 4)):
                x = random.standard_normal((2, 4, 7, 8)).astype(np.float32)
                x[(1, 2, *place)] = special
                weight = random.standard_normal((filters, 4 // groups, window, window)).astype(np.float32)
                geometry = stride, padding, dilation, groups
                assert_same(lambda F, x, w, geometry=geometry: F.conv2d(x, w, None, *geometry), x, weight)


@KERNELS
def test_max_pooling_returns_pytorchs_indices(kernel: str) -> None:
    x = np.random.default_rng(0).integers(0, 3, (2, 3, 7, 8)).astype(np.float32)
    with kernels.use(kernel):
        for arguments in ((2,), (3, 2, 1), (2, 1, 1, 2), (3, 2, 1, 1, True)):
            _, found = functional.max_pool2d(x, *arguments, return_indices=True)
            _, expected = torch.nn.functional.max_pool2d(torch.tensor(x), *arguments, return_indices=True)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found.numpy(), expected.numpy())


PAIR = st.tuples(*[st.integers(1, 3)] * 2)


@settings(max_examples=60)
@given(
    n=st.integers(0, 3),
    groups=st.integers(1, 3),
    channels=st.integers(1, 3),
    filters=st.sampled_from([1, 2, 5, 48]),
    image=st.tuples(*[st.integers(1, 9)] * 2),
    window=st.tuples(*[st.integers(1, 4)] * 2),
    stride=PAIR,
    padding=st.one_of(st.tuples(*[st.integers(0, 3)] * 2), st.sampled_from(["same", "valid"])),
    dilation=PAIR,
    dtype=st.sampled_from(["float32", "float64"]),
    kernel=st.sampled_from(["numpy", "numba"]),
)
def test_convolution_in_groups_of_any_geometry(
    n: int, groups: int, channels: int, filters: int, image: Any, window: Any, stride: Any, padding: Any,
    dilation: Any, dtype: str, kernel: str,
) -> None:  # fmt: skip
    stride = (1, 1) if padding == "same" else stride
    zeros = {"same": (9, 9), "valid": (0, 0)}.get(padding, padding) if isinstance(padding, str) else padding
    assume(all(image[d] + 2 * zeros[d] > dilation[d] * (window[d] - 1) for d in (0, 1)))
    random = np.random.default_rng(0)
    shapes = (n, groups * channels, *image), (groups * filters, channels, *window), (groups * filters,)
    arrays = [random.uniform(0.5, 2.0, shape).astype(dtype) for shape in shapes]
    with kernels.use(kernel):
        assert_equal_to_torch(
            lambda F, x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), arrays, [True] * 3, dtype
        )


@settings(max_examples=100)
@given(
    image=st.tuples(*[st.integers(1, 9)] * 2),
    window=st.tuples(*[st.integers(1, 7)] * 2),
    stride=PAIR,
    padding=st.tuples(*[st.integers(0, 3)] * 2),
    dilation=PAIR,
    ceil_mode=st.booleans(),
    include=st.booleans(),
    kernel=st.sampled_from(["numpy", "numba"]),
)
def test_pooling_of_any_kind_and_geometry(
    image: Any, window: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, include: bool, kernel: str
) -> None:
    assume(all(2 * padding[d] <= window[d] for d in (0, 1)))
    assume(all(image[d] + 2 * padding[d] > window[d] - 1 for d in (0, 1)))
    x = np.random.default_rng(0).integers(0, 9, (2, 2, *image)).astype("float64")
    with kernels.use(kernel):
        assert_equal_to_torch(
            lambda F, x: F.avg_pool2d(x, window, stride, padding, ceil_mode, include), [x], [True], "float64"
        )
        assert_equal_to_torch(lambda F, x: F.adaptive_max_pool2d(x, window), [x], [True], "float64")
        assume(all(image[d] + 2 * padding[d] > dilation[d] * (window[d] - 1) for d in (0, 1)))
        assume(all(image[d] >= dilation[d] for d in (0, 1)))  # else a window may see nothing but padding
        assert_equal_to_torch(
            lambda F, x: F.max_pool2d(x, window, stride, padding, dilation, ceil_mode), [x], [True], "float64"
        )
