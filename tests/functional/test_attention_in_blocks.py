"""Attention in blocks equals attention with the whole matrix of probabilities, in less memory.

Blocks of 5 queries and 7 keys, so that small matrices have many.
"""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, kernels, manual_seed
from minidl import functional as F
from minidl.functional import attention, attention_in_blocks
from minidl.kept_arrays import kept_bytes
from tests.together import naming

KERNELS = pytest.mark.parametrize("kernel", ["numpy", "numba"])
NEVER = 10**12

SHAPES = {
    "several blocks": ((2, 3), 20, 21, 4, 3),
    "sizes that the blocks do not divide": ((2,), 13, 23, 4, 4),
    "more queries than keys": ((1, 2), 23, 9, 3, 5),
    "matrices": ((), 16, 16, 4, 4),
    "one query": ((2, 2), 1, 40, 4, 4),
    "one block": ((2, 2), 4, 4, 4, 4),
    "no samples": ((0, 2), 16, 16, 4, 4),
}
MASKS: dict[str, Callable[[np.random.Generator, int, int], Any]] = {
    "no mask": lambda random, t, s: None,
    "booleans": lambda random, t, s: random.random((t, s)) > 0.4,
    "numbers": lambda random, t, s: random.standard_normal((t, s)),
    "the same keys for all": lambda random, t, s: random.random(s) > 0.4,
    "every second query sees nothing": lambda random, t, s: np.repeat(np.arange(t)[:, None] % 2 == 1, s, axis=1),
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_in_blocks, "QUERIES", 5)
    monkeypatch.setattr(attention_in_blocks, "KEYS", 7)
    monkeypatch.setattr(attention, "LONG", 0)


def drawn(*shapes: tuple[int, ...], dtype: str = "float64") -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


def operands(lead: tuple[int, ...], t: int, s: int, d: int, e: int, dtype: str = "float64") -> list[np.ndarray]:
    """Queries, keys and values."""
    return drawn((*lead, t, d), (*lead, s, d), (*lead, s, e), dtype=dtype)


def results(arrays: list[np.ndarray], *options: Any, seed: np.ndarray | None = None, **named: Any) -> list[np.ndarray]:
    """The output and the gradients of queries, keys and values."""
    tensors = [Tensor(array, requires_grad=True) for array in arrays]
    out = F.scaled_dot_product_attention(*tensors, *options, **named)
    out.backward(np.cos(np.arange(out.data.size)).reshape(out.shape).astype(out.dtype) if seed is None else seed)
    gradients = [tensor.grad for tensor in tensors]
    return [out.numpy(), *[gradient for gradient in gradients if gradient is not None]]


@KERNELS
def test_equals_attention_with_the_whole_matrix(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for (what, shape), (kind, make), is_causal in itertools.product(SHAPES.items(), MASKS.items(), (False, True)):
        arrays, mask = operands(*shape), make(np.random.default_rng(1), *shape[1:3])
        with kernels.use(kernel), naming(f"{what}, {kind}, is_causal={is_causal}"):
            monkeypatch.setattr(attention, "LONG", 0)
            found = results(arrays, mask, is_causal=is_causal)
            monkeypatch.setattr(attention, "LONG", NEVER)
            for mine, whole in zip(found, results(arrays, mask, is_causal=is_causal), strict=True):
                assert mine.shape == whole.shape
                np.testing.assert_allclose(mine, whole, rtol=1e-12, atol=1e-12)


@KERNELS
def test_scores_of_any_size_neither_overflow_nor_hide_what_is_not_a_number(kernel: str) -> None:
    q, k, v = operands((), 20, 20, 4, 3, dtype="float32")
    with kernels.use(kernel):
        for array in results([1e3 * q, 1e3 * k, v]):
            assert np.isfinite(array).all()
        k[12, 0] = np.nan
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
        assert np.isfinite(out[:12]).all()
        assert np.isnan(out[12:]).all()


def test_dropout_drops_the_same_weights_whatever_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, found = operands((2,), 20, 21, 4, 3), []
    for long in (0, NEVER):
        monkeypatch.setattr(attention, "LONG", long)
        manual_seed(3)
        found.append(results(arrays, dropout_p=0.5))
    for first, second in zip(*found, strict=True):
        np.testing.assert_array_equal(first, second)


def test_overwriting_a_mask_or_the_output_before_backward_raises() -> None:
    for position in (0, 1):
        q, k, v = (Tensor(array, requires_grad=True) for array in operands((2,), 20, 21, 4, 3))
        mask = Tensor(np.zeros((20, 21)))
        out = F.scaled_dot_product_attention(q, k, v, mask)
        written = (mask, out)[position]
        written.copy_(written.numpy())
        with pytest.raises(RuntimeError, match="overwritten in place"):
            out.backward(np.ones(out.shape))


# ---- memory and work ----


def test_the_output_and_one_number_a_query_are_kept() -> None:
    arrays = operands((2, 3), 20, 21, 4, 3)
    tensors = [Tensor(array, requires_grad=True) for array in arrays]
    out = F.scaled_dot_product_attention(*tensors)
    assert kept_bytes([out], tensors) == 8 * 2 * 3 * 20 * (3 + 1)


def test_the_output_has_the_queries_order_in_memory() -> None:
    """Joining the heads, after a transposition, copies nothing."""
    together = drawn((2, 20, 3, 4, 5))[0].transpose(2, 0, 3, 1, 4)  # (3, n, heads, t, d)
    joined = F.scaled_dot_product_attention(*together).transpose(1, 2)
    assert joined.data.flags.c_contiguous


def test_memory_grows_with_the_length_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_in_blocks, "QUERIES", 32)
    monkeypatch.setattr(attention_in_blocks, "KEYS", 32)

    def peak(t: int) -> int:
        """Of the bytes that forward and backward allocate."""
        q, k, v = (Tensor(array, requires_grad=True) for array in operands((), t, t, 4, 4))
        gc.collect()
        tracemalloc.start()
        try:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            out.backward(np.ones(out.shape))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with kernels.use("numpy"):
        peak(32)  # imports, caches
        assert peak(512) < 2.1 * peak(256)
        assert peak(512) < 512 * 512 * 8  # one matrix of scores
        monkeypatch.setattr(attention, "LONG", NEVER)
        assert peak(512) > 3.5 * peak(256)


@KERNELS
def test_work_is_counted_block_by_block_with_the_scores_twice(kernel: str) -> None:
    n, t, s, d, e = 2, 20, 21, 4, 3
    q, k, v = (Tensor(array, requires_grad=True) for array in operands((n,), t, s, d, e))

    def flops(scores: int, is_causal: bool) -> tuple[int, int]:
        with kernels.counted() as forward:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        with kernels.counted() as backward:
            out.backward(np.ones(out.shape))
        assert forward.flops == (2 * d + 4 + 2 * e) * n * scores
        return backward.flops, (3 * 2 * d + 4 + 2 * 2 * e) * n * scores

    with kernels.use(kernel):
        found, expected = flops(t * s, is_causal=False)
        assert found == expected
        q.grad = k.grad = v.grad = None
        # queries 0 to 4, 5 to 9, 10 to 14 and 15 to 19; keys 0 to 6, 7 to 13, 14 to 20
        found, expected = flops(5 * (7 + 14 + 21 + 21), is_causal=True)
        assert found == expected


def test_short_sequences_keep_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for t in (64, 256):
        q, k, v = (Tensor(array, requires_grad=True) for array in operands((), t, t, 4, 4))
        assert kept_bytes([F.scaled_dot_product_attention(q, k, v)], [q, k, v]) == 8 * (t * t + t * 4)
