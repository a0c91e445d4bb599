"""Every operation equals PyTorch's, forward and backward, in float32 and float64, with both kernels."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import Tensor, functional, kernels
from tests.functional.cases import CASES, Case, of_each_operation
from tests.together import naming

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


@pytest.mark.parametrize("cases", of_each_operation([case for case in CASES if case.peer]))
def test_equals_pytorch(cases: list[Case]) -> None:
    for case, kernel, dtype in itertools.product(cases, ("numpy", "numba"), ("float32", "float64")):
        with kernels.use(kernel), naming(f"{case}, {kernel}, {dtype}"):
            assert_equal_to_torch(case.function, case.arrays(dtype), case.differentiable, dtype)


# ---- random shapes ----

random_shapes = settings(max_examples=40)
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
