"""conv2d computes the same by seven loops, unfolding, FFT and Winograd, gradients included; or says why it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidl import Tensor, kernels, nn
from minidl import functional as F
from minidl.functional.convolution_table import fastest, timings
from minidl.kernels import reference
from minidl.kernels.counting_scalars import multiplications
from minidl.kernels.reference.convolution import ALGORITHMS
from tests.together import naming

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]

CASES: dict[str, Case] = {
    "plain": ((3, 4, 9, 11), (5, 4, 3, 3), {"padding": 1}),
    "odd outputs, groups": ((2, 6, 8, 7), (4, 3, 3, 3), {"groups": 2}),
    "rows": ((2, 3, 5, 10), (4, 3, 1, 3), {"padding": (0, 2)}),
    "columns": ((2, 3, 10, 4), (4, 3, 3, 1), {"padding": (5, 1)}),  # more padding than the window covers
    "same": ((2, 3, 7, 6), (4, 3, 3, 3), {"padding": "same"}),
    "pixels": ((2, 6, 5, 4), (9, 2, 1, 1), {"groups": 3}),
    "stride": ((2, 4, 11, 14), (6, 2, 3, 5), {"stride": (2, 3), "padding": (1, 3), "groups": 2}),
    "dilation": ((2, 3, 13, 12), (4, 3, 3, 2), {"dilation": (3, 2), "stride": (3, 1), "padding": 2}),
    "rows that no window reads": ((1, 2, 10, 9), (3, 2, 2, 2), {"stride": 4}),
    "depthwise": ((2, 5, 8, 8), (10, 1, 3, 3), {"groups": 5, "padding": 1}),
    "as large as the image": ((4, 2, 6, 5), (3, 2, 6, 5), {}),
    "no images": ((0, 2, 6, 5), (3, 2, 3, 3), {}),
    "no channels": ((2, 0, 6, 5), (3, 0, 3, 3), {}),
}
WINOGRAD = CASES.keys() - {"stride", "dilation", "rows that no window reads", "as large as the image"}


def results(case: Case, algorithm: str | None, dtype: Any = np.float64) -> list[np.ndarray]:
    """The output, and the gradients with respect to x, weight and bias."""
    shape, filters, options = case
    random = np.random.default_rng(17)
    operands = [
        Tensor(random.standard_normal(size).astype(dtype), requires_grad=True) for size in (shape, filters, filters[:1])
    ]
    out = F.conv2d(*operands, **options, algorithm=algorithm)
    out.backward(random.standard_normal(out.shape))
    return [out.data, *(operand.grad for operand in operands)]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "auto"])
def test_all_algorithms_compute_one_convolution_and_its_gradients(algorithm: str, kernel: str) -> None:
    for name, case in CASES.items():
        with kernels.use(kernel), naming(name):
            if algorithm == "winograd" and name not in WINOGRAD:
                with pytest.raises(ValueError, match="'winograd' computes windows of 3x3, 1x3 or 3x1 with stride 1"):
                    results(case, algorithm)
                continue
            for found, expected in zip(results(case, algorithm), results(case, None), strict=True):
                assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_smaller_types_keep_their_type_and_precision(algorithm: str) -> None:
    expected = results(CASES["plain"], None)
    for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 2e-2)):
        for found, right in zip(results(CASES["plain"], algorithm, dtype), expected, strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance * abs(right).max())


@pytest.mark.parametrize(
    ("shape", "window", "direct", "winograd"),
    [((4, 4), (3, 3), 36, 16), ((1, 4), (1, 3), 6, 4), ((4, 1), (3, 1), 6, 4), ((8, 6), (3, 3), 9 * 24, 16 * 6)],
)
def test_winograd_multiplies_less(shape: Any, window: Any, direct: int, winograd: int) -> None:
    random = np.random.default_rng(3)
    image, weight = random.standard_normal((1, 2, *shape)), random.standard_normal((3, 2, *window))
    channels_and_filters, once = 2 * 3, ((1, 1), (0, 0), (1, 1), 1)
    expected = reference.conv2d(image, weight, None, *once)
    for algorithm, count in (("naive", direct), ("im2col", direct), ("winograd", winograd)):
        found, out = multiplications(reference.conv2d, image, weight, None, *once, algorithm)
        assert found == count * channels_and_filters
        np.testing.assert_allclose(out, expected, atol=1e-12)


def test_the_gradient_of_the_weight_by_winograd_takes_16_multiplications_for_36() -> None:
    g, image = np.random.default_rng(4).standard_normal((1, 1, 2, 2)), np.ones((1, 1, 4, 4))
    arguments = g, image, (1, 1, 3, 3), (1, 1), (0, 0), (1, 1), 1
    assert multiplications(reference.conv2d_backward_weight, *arguments, "winograd")[0] == 16
    assert multiplications(reference.conv2d_backward_weight, *arguments, "naive")[0] == 36


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(TypeError, match=r"give one of kernels\.reference, and no 'fft'"):
        multiplications(
            reference.conv2d, np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3)), None, (1, 1), (0, 0), (1, 1), 1, "fft"
        )


@pytest.mark.parametrize("algorithm", ["wino", 3, ["fft"]])
def test_an_unknown_algorithm_is_refused(algorithm: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="'naive', 'im2col', 'fft', 'winograd' or 'auto'"):
        F.conv2d(np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3)), algorithm=algorithm)


def test_the_table_chooses_what_was_fastest_and_keeps_the_kernels_own_choice_for_the_models_of_the_course() -> None:
    once = ((1, 1), (2, 2), (1, 1), 1)
    for row in timings():
        x, weight = (row.n, row.channels, row.size, row.size), (row.filters, row.channels, row.window, row.window)
        chosen = fastest(x, weight, (1, 1), (row.window // 2, row.window // 2), (1, 1), 1)
        assert row.seconds[chosen or "none"] == min(row.seconds.values())
    for x, weight in (
        ((64, 1, 28, 28), (6, 1, 5, 5)),
        ((64, 6, 14, 14), (16, 6, 5, 5)),
        ((64, 16, 32, 32), (16, 16, 3, 3)),
    ):
        assert fastest(x, weight, *once) is None
    assert fastest((4, 20, 40, 40), (20, 20, 13, 13), *once) == "fft"
    assert fastest((4, 20, 40, 40), (20, 20, 13, 13), (2, 2), (2, 2), (1, 1), 1) is None  # a stride


@pytest.mark.parametrize("algorithm", ["fft", "winograd", "auto"])
def test_whole_numbers_are_refused_where_they_would_be_rounded(algorithm: str) -> None:
    x, weight = np.arange(32).reshape(1, 2, 4, 4), np.arange(18).reshape(1, 2, 3, 3)
    with pytest.raises(TypeError, match="computes with floating-point numbers, not int64"):
        F.conv2d(x, weight, algorithm=algorithm)
    np.testing.assert_array_equal(F.conv2d(x, weight, algorithm="naive").data, F.conv2d(x, weight).data)


def test_layers_take_the_algorithm_and_say_so() -> None:
    x = np.random.default_rng(5).standard_normal((2, 3, 9)).astype(np.float32)
    layer = nn.Conv1d(3, 4, 3, padding=2, algorithm="winograd")
    plain = nn.Conv1d(3, 4, 3, padding=2)
    plain.load_state_dict(layer.state_dict())
    np.testing.assert_allclose(layer(x).data, plain(x).data, atol=1e-5)
    assert "algorithm='winograd'" in repr(layer)
    assert "algorithm" not in repr(plain)
    assert "algorithm='fft'" in repr(nn.Conv2d(3, 4, 3, algorithm="fft"))
