"""Convolution and pooling at their edges: infinite pixels, ties, groups, padding by name, and what does not fit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from minidl import Tensor, kernels, nn
from minidl import functional as F
from tests.together import Mistake, assert_refused, naming

KERNELS = pytest.mark.parametrize("kernel", ["numpy", "numba"])


# ---- numbers that are not finite ----


@KERNELS
def test_a_window_of_minus_infinity_gives_its_gradient_to_its_first_pixel(kernel: str) -> None:
    for padding, taken in ((0, [0, 2, 8, 10]), (1, [0, 1, 3, 4, 5, 7, 12, 13, 15])):
        x = Tensor(np.full((1, 1, 4, 4), -np.inf), requires_grad=True)
        with kernels.use(kernel):
            out, indices = F.max_pool2d(x, 2, 2, padding, return_indices=True)
            out.backward(np.arange(1.0, out.size + 1).reshape(out.shape))
        expected = np.zeros(16)
        expected[taken] = np.arange(1.0, out.size + 1)
        np.testing.assert_array_equal(x.grad.reshape(-1), expected)
        np.testing.assert_array_equal(indices.numpy().reshape(-1), taken)


GEOMETRIES = (  # filters, channels, window, settings
    (3, 2, 3, {"padding": 1, "stride": 2}),
    (5, 2, 3, {"dilation": 2}),
    (64, 2, 3, {"padding": 1}),
    (4, 2, 3, {"padding": 1, "groups": 2}),
    (2, 2, 5, {"padding": 2, "groups": 2}),
    (3, 2, 1, {}),
    (3, 2, 1, {"stride": 2}),
)


@KERNELS
def test_an_infinite_pixel_reaches_only_the_windows_that_see_it(kernel: str) -> None:
    places = itertools.cycle([(0, 0), (3, 3), (0, 6), (6, 3)])
    for (filters, channels, window, settings), _ in itertools.product(GEOMETRIES, range(2)):
        place = next(places)
        random = np.random.default_rng(0)
        image = random.uniform(0.5, 1, (2, channels, 7, 7))
        image[1, 1, place[0], place[1]] = np.inf
        weight = random.uniform(0.5, 1, (filters, channels // settings.get("groups", 1), window, window))
        with kernels.use(kernel):
            x, w = Tensor(image, requires_grad=True), Tensor(weight, requires_grad=True)
            out = F.conv2d(x, w, **settings)
            g = random.uniform(0.5, 1, out.shape)
            out.backward(g)
            seen, w_seen = Tensor(np.isinf(image).astype(float)), Tensor(np.ones(weight.shape), requires_grad=True)
            sees = F.conv2d(seen, w_seen, **settings)
            sees.backward(np.ones(out.shape))
        with naming(f"{filters} filters of {window}, {settings}, at {place}"):
            np.testing.assert_array_equal(out.numpy(), np.where(sees.numpy() > 0, np.inf, out.numpy()))
            assert np.isfinite(out.numpy()[sees.numpy() == 0]).all()
            np.testing.assert_array_equal(np.isposinf(w.grad), w_seen.grad > 0)
            assert np.isfinite(w.grad[w_seen.grad == 0]).all()
            assert np.isfinite(x.grad).all()


# ---- groups, names of paddings, one image ----


@KERNELS
def test_groups_divide_the_work_of_all_three_products(kernel: str) -> None:
    flops = []
    for groups in (1, 2, 8):
        x = Tensor(np.ones((2, 8, 6, 6), np.float32), requires_grad=True)
        weight = Tensor(np.ones((8, 8 // groups, 3, 3), np.float32), requires_grad=True)
        with kernels.use(kernel), kernels.counted() as work:
            F.conv2d(x, weight, padding=1, groups=groups).backward(np.ones((2, 8, 6, 6), np.float32))
        flops.append(groups * work.flops)
    assert flops == [3 * 2 * (2 * 8 * 6 * 6) * 8 * 9] * 3


def test_one_image_without_a_batch_axis_gives_what_a_batch_of_one_gives() -> None:
    image = np.random.default_rng(0).standard_normal((3, 5, 6))
    for function in (
        lambda x: F.conv2d(x, np.ones((2, 3, 3, 3)), [1.0, 2.0], padding=1),
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        lambda x: F.adaptive_max_pool2d(x, 1),
        lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
    ):
        np.testing.assert_array_equal(function(image).numpy(), function(image[None]).numpy()[0])


# ---- what does not fit is refused, with what was given and what was expected ----

ZEROS = np.zeros
IMAGE, FILTER = ZEROS((1, 1, 4, 4)), ZEROS((1, 1, 2, 2))


MISTAKES: list[Mistake] = [
    (
        lambda: F.conv2d(ZEROS((1, 2, 5, 5)), ZEROS((1, 3, 2, 2))),
        ValueError,
        r"\(1, 2, 5, 5\) has 2 channels, .* reads 3$",
    ),
    (
        lambda: F.conv2d(ZEROS((1, 5, 5, 3)), ZEROS((1, 3, 2, 2))),
        ValueError,
        r"last axis, type x.transpose\(0, 3, 1, 2\)",
    ),
    (
        lambda: F.conv2d(ZEROS((64, 28, 28)), ZEROS((6, 1, 5, 5))),
        ValueError,
        r"64 images of one channel, type x\[:, None\]",
    ),
    (lambda: F.conv2d(ZEROS((5, 5)), FILTER), ValueError, r"got \(5, 5\): type x\[None, None\] for one image"),
    (lambda: F.conv2d(IMAGE, ZEROS((2, 2))), ValueError, r"weight is \(filters, .*got \(2, 2\)"),
    (lambda: F.conv2d(IMAGE, ZEROS((4, 1, 2, 2)), ZEROS(3)), ValueError, r"bias \(4,\) expected.*got \(3,\)"),
    (lambda: F.conv2d(IMAGE, FILTER, padding="reflect"), ValueError, "'same' or 'valid', not 'reflect'"),
    (lambda: F.conv2d(IMAGE, FILTER, None, 2, "same"), ValueError, r"which stride \(2, 2\) does not"),
    (lambda: F.conv2d(IMAGE, FILTER, stride=0), ValueError, r"stride \(0, 0\).*must be positive"),
    (lambda: F.conv2d(ZEROS((1, 4, 4, 4)), ZEROS((3, 2, 2, 2)), groups=2), ValueError, "divide the 3 filters"),
    (lambda: F.conv2d(IMAGE, FILTER, stride=1.5), TypeError, "a whole number or two.*not 1.5"),
    (lambda: F.max_pool2d(ZEROS((4, 4)), 2), ValueError, r"max_pool2d: x is.*got \(4, 4\): type x\[None, None\]"),
    (lambda: F.max_pool2d(IMAGE, 2, 1, (0, 2), (1, 3)), ValueError, r"padding \(0, 2\) must be at most half"),
    (lambda: F.avg_pool2d(IMAGE, 2, divisor_override=0), ValueError, "divisor_override must not be 0"),
    (lambda: F.unfold(ZEROS((1, 4, 4)), 2), ValueError, r"got \(1, 4, 4\): type x\[None\]"),
    (lambda: F.unfold(IMAGE, 2, stride=0), ValueError, r"at least 1 .* got windows of \(2, 2\) with stride \(0, 0\)"),
    (lambda: F.unfold(IMAGE, 3, dilation=2), ValueError, r"dilation \(2, 2\) do not fit an image of \(4, 4\)"),
    (lambda: nn.Conv2d(4, 6, 3, groups=4), ValueError, "groups=4 must divide in_channels=4 and out_channels=6"),
    (lambda: nn.Conv2d(3, 6, 3, padding_mode="reflect"), ValueError, "zeros only, not with padding_mode='reflect'"),
]


def test_what_does_not_fit_is_refused() -> None:
    assert_refused(MISTAKES)
