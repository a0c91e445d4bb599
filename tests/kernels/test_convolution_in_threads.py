"""Convolution, compiled, gives the same bits in any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidl.kernels import jit, parallel_for
from minidl.kernels.jit import convolution_by_sliding

pytestmark = pytest.mark.timeout(300)

# images, channels, side, filters, window, stride, padding, dilation, groups
CASES = {
    "few filters": (13, 3, 13, 6, 3, 1, 1, 1, 1),
    "many filters, an odd number": (9, 8, 8, 37, 3, 1, 1, 1, 1),
    "large images, several tiles each": (3, 2, 70, 8, 5, 1, 2, 1, 1),
    "one image": (1, 4, 12, 16, 3, 1, 0, 1, 1),
    "stride": (7, 8, 9, 12, 3, 2, 1, 1, 1),
    "stride and dilation": (5, 4, 17, 9, 3, 3, 2, 2, 1),
    "groups": (4, 8, 9, 12, 3, 2, 1, 1, 2),
    "a filter for each channel": (6, 5, 8, 5, 3, 1, 1, 1, 5),
    "windows of one pixel": (5, 8, 9, 12, 1, 2, 0, 1, 1),
    "by product": (3, 4, 9, 128, 3, 1, 1, 1, 1),
}


def results(case: tuple[int, ...], dtype: str) -> list[Any]:
    n, channels, side, filters, window, stride, padding, dilation, groups = case
    generator = np.random.default_rng(0)
    x = generator.standard_normal((n, channels, side, side)).astype(dtype)
    weight = generator.standard_normal((filters, channels // groups, window, window)).astype(dtype)
    bias = generator.standard_normal(filters).astype(dtype)
    how = (stride, stride), (padding, padding), (dilation, dilation), groups
    out = jit.conv2d(x, weight, bias, *how)
    g = generator.standard_normal(out.shape).astype(dtype)
    return [
        out,
        jit.conv2d_backward_input(g, weight, x.shape, *how),
        jit.conv2d_backward_weight(g, x, weight.shape, *how),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_convolution_has_the_same_bits_in_any_number_of_threads(
    case: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_by_sliding, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(parallel_for, "threads", lambda: 1)
    expected = results(case, dtype)
    for threads in (2, 3, 7):
        monkeypatch.setattr(parallel_for, "threads", lambda threads=threads: threads)
        for one, other in zip(expected, results(case, dtype), strict=True):
            np.testing.assert_array_equal(one, other)
