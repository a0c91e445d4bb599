"""Every operation equals PyTorch's, forward and backward, in float32 and float64, with both kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minidl import Tensor, functional, kernels
from tests.functional.cases import CASES, Case

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")
from tests.functional import dressed_torch  # noqa: E402  (imports torch)

TOLERANCE = {"float64": 1e-10, "float32": 2e-5}


def assert_equal_to_torch(
    function: Callable[..., Any], arrays: list[np.ndarray], differentiable: list[bool], dtype: str
) -> None:
    """Run `function(F, *tensors)` on both and compare the result and all gradients, relative to the largest number."""
    ours = [Tensor(a, requires_grad=d) for a, d in zip(arrays, differentiable, strict=True)]
    theirs = [torch.tensor(a, requires_grad=d) for a, d in zip(arrays, differentiable, strict=True)]
    out, expected = function(functional, *ours), function(dressed_torch, *theirs)
    assert out.shape == tuple(expected.shape)
    assert_close(out.numpy(), expected.detach().numpy(), dtype, "the result")
    seed = np.asarray(np.random.default_rng(1).standard_normal(out.shape), dtype=dtype)
    out.backward(seed)
    expected.backward(torch.tensor(seed))
    for position, (mine, peer) in enumerate(zip(ours, theirs, strict=True)):
        if mine.requires_grad:
            assert_close(mine.grad, peer.grad.numpy(), dtype, f"the gradient of operand {position}")


def assert_close(found: np.ndarray, expected: np.ndarray, dtype: str, what: str) -> None:
    assert found.dtype == expected.dtype == dtype, what
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale, err_msg=what)


PEERS = [case for case in CASES if case.peer]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", PEERS, ids=repr)
def test_equals_pytorch(case: Case, dtype: str, kernel: str) -> None:
    with kernels.use(kernel):
        assert_equal_to_torch(case.function, case.arrays(dtype), case.differentiable, dtype)


# ---- random shapes ----

random_shapes = settings(max_examples=60, deadline=None, derandomize=True)
KERNELS = st.sampled_from(["numpy", "numba"])
DTYPES = st.sampled_from(["float32", "float64"])


def draw(seed: int, dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [np.asarray(random.uniform(0.5, 2.0, shape), dtype=dtype) for shape in shapes]


@random_shapes
@given(
    shapes=arrays_of.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=4, max_dims=4),
    operation=st.sampled_from(["add", "sub", "mul", "div", "pow"]),
    dtype=DTYPES,
    kernel=KERNELS,
    seed=st.integers(0, 2**16),
)
def test_broadcasting_of_any_two_shapes(shapes: Any, operation: str, dtype: str, kernel: str, seed: int) -> None:
    with kernels.use(kernel):
        operands = draw(seed, dtype, *shapes.input_shapes)
        assert_equal_to_torch(lambda F, a, b: getattr(F, operation)(a, b), operands, [True, True], dtype)


@random_shapes
@given(
    shapes=arrays_of.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_side=3, max_dims=3),
    seed=st.integers(0, 2**16),
)
def test_where_of_any_three_shapes(shapes: Any, seed: int) -> None:
    condition, a, b = draw(seed, "float64", *shapes.input_shapes)
    assert_equal_to_torch(
        lambda F, c, a, b: F.where(c, a, b), [np.asarray(condition > 1.2), a, b], [False, True, True], "float64"
    )


@random_shapes
@given(
    batch=arrays_of.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=2),
    sizes=st.tuples(*[st.integers(0, 4)] * 3),
    dtype=DTYPES,
    seed=st.integers(0, 2**16),
)
def test_matmul_of_any_batches(batch: Any, sizes: tuple[int, int, int], dtype: str, seed: int) -> None:
    n, k, m = sizes
    first, second = batch.input_shapes
    operands = draw(seed, dtype, (*first, n, k), (*second, k, m))
    assert_equal_to_torch(lambda F, a, b: F.matmul(a, b), operands, [True, True], dtype)


@random_shapes
@given(
    shape=arrays_of.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4),
    operation=st.sampled_from(["sum", "mean", "max", "min"]),
    keepdims=st.booleans(),
    data=st.data(),
    seed=st.integers(0, 2**16),
)
def test_reductions_over_any_axes(shape: Any, operation: str, keepdims: bool, data: Any, seed: int) -> None:
    axes = data.draw(arrays_of.valid_tuple_axes(len(shape), min_size=1))
    assert_equal_to_torch(
        lambda F, a: getattr(F, operation)(a, axis=axes, keepdims=keepdims),
        draw(seed, "float64", shape),
        [True],
        "float64",
    )


@random_shapes
@given(
    n=st.integers(0, 3),
    channels=st.integers(1, 3),
    filters=st.integers(1, 3),
    image=st.tuples(*[st.integers(1, 8)] * 2),
    window=st.tuples(*[st.integers(1, 4)] * 2),
    stride=st.tuples(*[st.integers(1, 4)] * 2),
    padding=st.tuples(*[st.integers(0, 3)] * 2),
    dtype=DTYPES,
    kernel=KERNELS,
    seed=st.integers(0, 2**16),
)
def test_convolution_of_any_geometry(
    n: int, channels: int, filters: int, image: Any, window: Any, stride: Any, padding: Any, dtype: str, kernel: str,
    seed: int,
) -> None:  # fmt: skip
    assume(all(image[d] + 2 * padding[d] >= window[d] for d in (0, 1)))
    operands = draw(seed, dtype, (n, channels, *image), (filters, channels, *window), (filters,))
    with kernels.use(kernel):
        assert_equal_to_torch(
            lambda F, x, w, b: F.conv2d(x, w, b, stride, padding), operands, [True, True, True], dtype
        )


@random_shapes
@given(
    operation=st.sampled_from(["max_pool2d", "avg_pool2d"]),
    n=st.integers(0, 2),
    image=st.tuples(*[st.integers(1, 8)] * 2),
    window=st.tuples(*[st.integers(1, 4)] * 2),
    stride=st.tuples(*[st.integers(1, 4)] * 2),
    padding=st.tuples(*[st.integers(0, 2)] * 2),
    ties=st.booleans(),
    dtype=DTYPES,
    kernel=KERNELS,
    seed=st.integers(0, 2**16),
)
def test_pooling_of_any_geometry(
    operation: str, n: int, image: Any, window: Any, stride: Any, padding: Any, ties: bool, dtype: str, kernel: str,
    seed: int,
) -> None:  # fmt: skip
    assume(all(image[d] + 2 * padding[d] >= window[d] and 2 * padding[d] <= window[d] for d in (0, 1)))
    (x,) = draw(seed, dtype, (n, 2, *image))
    x = np.round(x) if ties else x
    with kernels.use(kernel):
        assert_equal_to_torch(lambda F, x: getattr(F, operation)(x, window, stride, padding), [x], [True], dtype)


@random_shapes
@given(
    shape=arrays_of.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=4),
    data=st.data(),
    seed=st.integers(0, 2**16),
)
def test_basic_indexing_of_any_kind(shape: Any, data: Any, seed: int) -> None:
    index = data.draw(arrays_of.basic_indices(shape, allow_newaxis=True))
    items = index if isinstance(index, tuple) else (index,)
    assume(not any(isinstance(item, slice) and (item.step or 1) < 0 for item in items))  # PyTorch has none
    assert_equal_to_torch(lambda F, a: F.getitem(a, index) * 1, draw(seed, "float64", shape), [True], "float64")


def test_pytorchs_running_statistics_are_ours() -> None:
    random = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        mean, var = np.zeros(3, dtype), np.ones(3, dtype)
        peers = torch.tensor(mean), torch.tensor(var)
        for _ in range(5):
            x = (random.standard_normal((4, 3, 2, 5)) * 3 + 1).astype(dtype)
            functional.batch_norm(Tensor(x), mean, var, training=True, momentum=0.3)
            torch.nn.functional.batch_norm(torch.tensor(x), *peers, training=True, momentum=0.3)
        assert_close(mean, peers[0].numpy(), dtype, "running mean")
        assert_close(var, peers[1].numpy(), dtype, "running variance")
