"""Compiled kernels give the same bits in any number of threads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl.kernels import jit, parallel_for
from minidl.kernels.reference.windows import sliding_windows
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

# images, channels, side, filters, window, stride, padding, dilation, groups
CONVOLUTIONS = {
    "few filters": (13, 3, 13, 6, 3, 1, 1, 1, 1),
    "many filters, an odd number": (9, 8, 8, 37, 3, 1, 1, 1, 1),
    "large images, several tiles each": (3, 2, 70, 8, 5, 1, 2, 1, 1),
    "one image": (1, 4, 12, 16, 3, 1, 0, 1, 1),
    "stride": (7, 8, 9, 12, 3, 2, 1, 1, 1),
    "stride and dilation": (5, 4, 17, 9, 3, 3, 2, 2, 1),
    "groups": (4, 8, 9, 12, 3, 2, 1, 1, 2),
    "a filter for each channel": (6, 5, 8, 5, 3, 1, 1, 1, 5),
}


def convolution(name: str, dtype: str) -> list[Any]:
    n, channels, side, filters, window, stride, padding, dilation, groups = CONVOLUTIONS[name]
    generator = np.random.default_rng(0)
    x = generator.standard_normal((n, channels, side, side)).astype(dtype)
    weight = generator.standard_normal((filters, channels // groups, window, window)).astype(dtype)
    bias = generator.standard_normal(filters).astype(dtype)
    how = (stride, stride), (padding, padding), (dilation, dilation), groups
    out = jit.conv2d(x, weight, bias, *how)
    g = generator.standard_normal(out.shape).astype(dtype)
    gradient = jit.conv2d_backward_input(g, weight, x.shape, *how)
    return [out, gradient, jit.conv2d_backward_weight(g, x, weight.shape, *how)]


def batch_normalization(name: str, dtype: str) -> list[Any]:
    generator = np.random.default_rng(0)
    x, g = (generator.standard_normal((5, 7, 9, 13)).astype(dtype) for _ in range(2))
    weight, bias = (generator.standard_normal(7).astype(dtype) for _ in range(2))
    mean, var = jit.channel_statistics(x)
    out, inverse_std = jit.batch_norm(x, mean, var, weight, bias, 1e-5)
    return [mean, var, out, *jit.batch_norm_backward(g, x, mean, inverse_std, weight, True)]


def elementwise(name: str, dtype: str) -> list[Any]:
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal(5000).astype(dtype) for _ in range(2))
    return [jit.relu(x), jit.relu_backward(x, y), jit.gelu(x), jit.gelu_backward(x, y), jit.sigmoid(x)]


def pooled(name: str, dtype: str) -> list[Any]:
    x = np.random.default_rng(0).standard_normal((5, 3, 12, 12)).astype(dtype)
    results = []
    for windows in ([sliding_windows(12, *sizes)] * 2 for sizes in ((2, 2, 0), (3, 2, 1), (12, 12, 0))):
        out, position = jit.max_pool2d(x, *windows)
        mean = jit.avg_pool2d(x, *windows)
        results += [out, position, jit.max_pool2d_backward(out, position, x.shape), mean]
        results.append(jit.avg_pool2d_backward(mean, x.shape, *windows))
    return results


def attention(name: str, dtype: str) -> list[Any]:
    generator = np.random.default_rng(0)
    q, k, v = generator.standard_normal((3, 5, 17, 3, 7)).astype(dtype).swapaxes(2, 3)
    scores = jit.matmul(q, k.swapaxes(-1, -2))
    probabilities = jit.attention_softmax(scores.copy(), 0.3, True)
    gradient = jit.attention_softmax_backward(scores, probabilities, 0.3)
    return [scores, probabilities, gradient, jit.matmul(probabilities, v, q)]


def layer_normalization(name: str, dtype: str) -> list[Any]:
    generator = np.random.default_rng(0)
    x, g = generator.standard_normal((2, 700, 67)).astype(dtype)
    weight, bias = generator.standard_normal((2, 67)).astype(dtype)
    out, mean, inverse_std = jit.layer_norm(x, weight, bias, 1e-5)
    return [out, *jit.layer_norm_backward(g, x, mean, inverse_std, weight)]


def updates(name: str, dtype: str) -> list[Any]:
    p, g, mean, squares, velocity = np.random.default_rng(0).standard_normal((5, 61, 83)).astype(dtype)
    jit.adam(p, g, mean, squares * squares, 3, 0.1, 0.9, 0.999, 1e-8, 0.01, False)
    jit.sgd(p, g, velocity, 0.1, 0.9, 0.0, 0.01, True)
    return [p, mean, velocity]


CASES: dict[str, Callable[[str, str], list[Any]]] = {
    **dict.fromkeys(CONVOLUTIONS, convolution),
    "batch norm": batch_normalization,
    "elementwise": elementwise,
    "attention": attention,
    "layer norm": layer_normalization,
    "updates": updates,
    "pooling": pooled,
}


@pytest.mark.parametrize("dtype", ["float32", *exhaustively("float64")])
def test_a_kernel_gives_the_same_bits_in_any_number_of_threads(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_layers = "batch_norm", "convolution_by_sliding", "layer_norm", "pooling", "products", "softmax"
    for module in (*of_layers, "memory_order", "updates"):
        monkeypatch.setattr(sys.modules[f"minidl.kernels.jit.{module}"], "WORTH_A_THREAD", 1)
    for name, compute in CASES.items():
        asked, results = set(), {}
        for threads in (1, 2, 3, 7):
            monkeypatch.setattr(parallel_for, "threads", lambda n=threads, asked=asked: asked.add(n) or n)
            results[threads] = compute(name, dtype)
        assert asked == {1, 2, 3, 7}, name
        for threads in (2, 3, 7):
            for one, other in zip(results[1], results[threads], strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{name}, {threads} threads")


def test_a_kernel_that_takes_longer_for_each_number_shares_out_smaller_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    x, heads = np.zeros(1 << 18, np.float32), np.zeros((64, 64, 32), np.float32)
    kernels: dict[str, Callable[[], Any]] = {
        "relu": lambda: jit.relu(x),
        "gelu": lambda: jit.gelu(x),
        "gelu_backward": lambda: jit.gelu_backward(x, x),
        "heads of attention": lambda: jit.matmul(heads, heads.swapaxes(1, 2)),
    }
    for name, kernel in kernels.items():
        monkeypatch.setattr(parallel_for, "threads", lambda name=name: asked.append(name) or 2)
        kernel()
    assert asked == ["gelu", "gelu_backward", "heads of attention"]
