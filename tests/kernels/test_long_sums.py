"""Sums of many numbers keep their digits: over any axis, in any layout, with both kernels and in every type."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minidl import Tensor, kernels, nn
from minidl import functional as F
from minidl.kernels import jit, reference
from tests.functional.cases import LAYOUTS
from tests.tiers import exhaustively

ROWS = 1_000_000
ERROR = {"float16": 1e-3, "float32": 4e-7, "float64": 1e-10}  # relative
TENTH = np.float32(0.1)
SUM = ROWS * float(TENTH)


@pytest.fixture(params=[reference, jit], ids=["numpy", "numba"], autouse=True)
def module(request: pytest.FixtureRequest) -> Iterator[Any]:
    with kernels.use("numpy" if request.param is reference else "numba"):
        yield request.param


def rows(width: int, value: Any = TENTH, count: int = ROWS) -> np.ndarray:
    return np.full((count, width), value)


def test_a_million_rows_are_added_to_the_last_digits() -> None:
    for width in (1, 2, 7):
        x = rows(width)
        np.testing.assert_allclose(F.sum(x, 0).numpy(), SUM, rtol=ERROR["float32"])
        np.testing.assert_allclose(F.mean(x, 0).numpy(), float(TENTH), rtol=ERROR["float32"])
        np.testing.assert_allclose(F.sum(x).numpy(), SUM * width, rtol=ERROR["float32"])
        np.testing.assert_allclose(F.sum(x.T, 1).numpy(), SUM, rtol=ERROR["float32"])
        np.testing.assert_allclose(F.sum(np.ascontiguousarray(x.T), 1).numpy(), SUM, rtol=ERROR["float32"])
    np.testing.assert_allclose(F.sum(rows(100, count=ROWS // 10), 0).numpy(), SUM / 10, rtol=ERROR["float32"])
    for dtype in ("float16", "float64"):
        value = np.dtype(dtype).type(0.01)
        x = rows(2, value)
        np.testing.assert_allclose(F.sum(x, 0).numpy(), ROWS * float(value), rtol=ERROR[dtype])
        np.testing.assert_allclose(F.mean(x, 0).numpy(), float(value), rtol=ERROR[dtype])
    assert F.mean(rows(1, np.float16(2.0)), 0).item() == 2.0  # whose sum overflows


def test_running_sums_of_a_million_numbers_end_at_the_last_digits_and_so_does_their_gradient() -> None:
    x = Tensor(rows(2), requires_grad=True)
    sums = F.cumsum(x, 0)
    np.testing.assert_allclose(sums.numpy()[-1], SUM, rtol=ERROR["float32"])
    sums.backward(rows(2))
    np.testing.assert_allclose(x.grad[0], SUM, rtol=ERROR["float32"])


def test_the_gradients_of_a_weight_and_a_bias_that_a_million_rows_share() -> None:
    for inputs, outputs in ((7, 1), (1, 3)):
        weight, bias = (Tensor(np.zeros(s, np.float32), requires_grad=True) for s in ((outputs, inputs), outputs))
        F.linear(np.ones((ROWS, inputs), np.float32), weight, bias).backward(rows(outputs))
        np.testing.assert_allclose(weight.grad, SUM, rtol=3e-5)  # PyTorch: 1e-2 with one input or output
        np.testing.assert_allclose(bias.grad, SUM, rtol=ERROR["float32"])
    scale, bias = (Tensor(np.zeros(3, np.float32), requires_grad=True) for _ in range(2))
    F.add(F.mul(np.ones((ROWS, 1), np.float32), scale), bias).backward(rows(3))  # broadcast
    np.testing.assert_allclose(bias.grad, SUM, rtol=ERROR["float32"])
    np.testing.assert_allclose(scale.grad, SUM, rtol=ERROR["float32"])
    image = rows(1000, count=1000)[None, None]
    for out in (F.adaptive_avg_pool2d(image, 1), F.avg_pool2d(image, 1000)):
        np.testing.assert_allclose(out.numpy(), float(TENTH), rtol=ERROR["float32"])


def test_the_product_of_two_long_vectors_and_of_what_does_not_fit() -> None:
    ones = np.ones(ROWS + 5, np.float32)
    assert F.matmul(ones, ones * TENTH).item() == pytest.approx(float(TENTH) * (ROWS + 5), rel=ERROR["float32"])
    with pytest.raises(ValueError, match="matmul"):
        kernels.current().matmul(ones[:4000], ones[:4000].reshape(2000, 2))


def test_the_gradients_of_a_convolution_s_bias_and_of_one_row_that_is_looked_up_a_million_times() -> None:
    bias, weight = (Tensor(np.zeros(shape, np.float32), requires_grad=True) for shape in ((2,), (3, 2)))
    x = np.zeros((1000, 1, 20, 50), np.float32)
    F.conv2d(x, np.zeros((2, 1, 1, 1), np.float32), bias).backward(np.full((1000, 2, 20, 50), TENTH))
    np.testing.assert_allclose(bias.grad, SUM, rtol=ERROR["float32"])
    F.embedding(np.ones(ROWS, np.int64), weight).backward(rows(2))
    np.testing.assert_allclose(weight.grad, [[0, 0], [SUM, SUM], [0, 0]], rtol=ERROR["float32"])


@pytest.mark.parametrize(
    "shape", [(ROWS, 2), (1, 2, ROWS), *exhaustively(((ROWS // 50, 2, 50),), ((ROWS // 4, 2, 2, 2),))]
)
def test_batch_norm_over_a_million_values_a_channel(shape: tuple[int, ...]) -> None:
    x = Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32) + np.float32(10), requires_grad=True)
    axes = (0, *range(2, len(shape)))
    mean, var = np.zeros(2, np.float32), np.zeros(2, np.float32)
    weight, bias = (Tensor(np.ones(2, np.float32), requires_grad=True) for _ in range(2))
    F.batch_norm(x, mean, var, weight, bias, training=True, momentum=1.0).backward(np.full(shape, TENTH))
    exact = x.data.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(axis=axes), rtol=ERROR["float32"])
    np.testing.assert_allclose(var, exact.var(axis=axes, ddof=1), rtol=2e-6)  # of numbers rounded after the mean's loss
    np.testing.assert_allclose(bias.grad, SUM, rtol=ERROR["float32"])
    assert abs(weight.grad).max() < SUM * 1e-6  # exactly 0: the normalised numbers have the mean 0


def test_layer_norm_of_a_million_rows_and_of_a_row_of_a_million() -> None:
    weight, bias = (Tensor(np.ones(4, np.float32), requires_grad=True) for _ in range(2))
    x = np.tile(np.array([-1, 1, -1, 1], np.float32), (ROWS, 1))
    F.layer_norm(x, weight, bias, eps=0.0).backward(rows(4))
    np.testing.assert_allclose(bias.grad, SUM, rtol=ERROR["float32"])
    np.testing.assert_allclose(weight.grad, SUM * x[0], rtol=ERROR["float32"])
    ones = np.ones(ROWS, np.float32)
    row = np.random.default_rng(0).standard_normal((1, ROWS)).astype(np.float32) + np.float32(10)
    exact = row.astype(np.float64)
    expected = (exact - exact.mean()) / exact.std()
    np.testing.assert_allclose(F.layer_norm(row, ones, eps=0.0).numpy(), expected, rtol=1e-5, atol=3e-6)


def test_losses_and_norms_of_a_million_numbers() -> None:
    x, zeros = rows(1), np.zeros((ROWS, 1), np.float32)
    assert F.mse_loss(x, zeros).item() == pytest.approx(float(TENTH) ** 2, rel=1e-6)
    assert F.mse_loss(x, zeros, reduction="sum").item() == pytest.approx(ROWS * float(TENTH) ** 2, rel=1e-6)
    logits = np.zeros((ROWS, 2), np.float32)
    assert F.cross_entropy(logits, np.zeros(ROWS, int)).item() == pytest.approx(np.log(2), rel=1e-6)
    parameter = nn.Parameter(zeros)
    parameter.grad = x
    norm = np.sqrt(ROWS) * float(TENTH)
    assert nn.clip_grad_norm_(parameter, 1e9) == pytest.approx(norm, rel=1e-6)
    assert kernels.current().l2_norm(x) == pytest.approx(norm, rel=1e-6)


SUMS: dict[str, Callable[..., Any]] = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    shape=st.one_of(
        arrays_of.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9),
        st.permutations([3, 1, 700, 5]).map(tuple),
        st.permutations([2, 64, 33]).map(tuple),
    ),
    data=st.data(),
    layout=st.sampled_from([*LAYOUTS, "broadcast", "permuted"]),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    keepdims=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_any_axes_of_any_layout(
    module: Any, shape: tuple[int, ...], data: Any, layout: str, dtype: str, keepdims: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    axis = data.draw(st.one_of(st.none(), arrays_of.valid_tuple_axes(len(shape)), st.integers(-len(shape), -1)))
    if layout == "broadcast":
        once = [1 if random.random() < 0.5 else length for length in shape]
        x = np.broadcast_to(random.uniform(0.5, 1.5, once).astype(dtype), shape)
    elif layout == "permuted":
        order = data.draw(st.permutations(range(len(shape))))
        x = random.uniform(0.5, 1.5, [shape[k] for k in order]).astype(dtype).transpose(np.argsort(order))
    else:
        x = LAYOUTS[layout](random.uniform(0.5, 1.5, shape).astype(dtype))
    for name, peer in SUMS.items():
        found = getattr(module, name)(x, axis, keepdims)
        expected = peer(x.astype(np.float64), axis=axis, keepdims=keepdims)
        assert found.shape == expected.shape
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=ERROR[dtype], err_msg=name)


def test_a_million_elements_scattered_or_gathered_at_one_place() -> None:
    place = np.zeros((ROWS, 1), int)
    out = F.scatter_add(np.zeros((2, 1), np.float32), 0, place, rows(1))
    np.testing.assert_allclose(out.numpy()[0], SUM, rtol=ERROR["float32"])
    x = Tensor(np.zeros((2, 1), np.float32), requires_grad=True)
    F.gather(x, 0, place).backward(rows(1))
    np.testing.assert_allclose(x.grad[0], SUM, rtol=ERROR["float32"])


def test_small_numbers_scattered_onto_a_large_one_are_summed_first_and_integers_are_exact() -> None:
    place = np.zeros(64, int)
    out = F.scatter_add(np.full(1, 2.0**25, np.float32), 0, place, np.ones(64, np.float32))
    assert out.item() == 2**25 + 64  # float32 would not notice a single 1
    half = F.scatter_add(np.full(1, 1024, np.float16), 0, place, np.full(64, 0.25, np.float16))
    assert half.item() == 1040
    assert F.scatter_add(np.array([2**60 + 1]), 0, np.zeros(2, int), np.array([1, 2])).item() == 2**60 + 4


def test_what_is_not_a_number_stays_visible(module: Any) -> None:
    for name, dtype in itertools.product(SUMS, ("float32", "float64")):
        reduce, least = getattr(module, name), np.inf if name == "min" else -np.inf
        for sign in (1, -1):  # nan has a sign too
            x = np.ones((3, 200), dtype)
            x[1, 77] = np.copysign(np.nan, sign)
            np.testing.assert_array_equal(np.isnan(reduce(x, 1)), [False, True, False])
            np.testing.assert_array_equal(np.isnan(reduce(x, 0)), np.arange(200) == 77)
            np.testing.assert_array_equal(np.isnan(reduce(np.asfortranarray(x), 1)), [False, True, False])
        x[1] = least
        assert reduce(x, 1)[1] == least
        np.testing.assert_array_equal(reduce(-x, 0), np.full(200, -least, dtype))
