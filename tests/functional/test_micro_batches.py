"""Micro-batches under a workspace limit: the best division, within the limit, with the gradient of all images."""

from __future__ import annotations

import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest

from minidl import Tensor
from minidl import functional as F
from minidl.functional.micro_batches import (
    MicroBatch,
    best_micro_batches,
    conv2d_in_micro_batches,
    measure_micro_batches,
    measured,
)

Times = dict[MicroBatch, tuple[float, float]]


def drawn_times(seed: int, counts: list[int]) -> Times:
    """Times that grow with the images, faster algorithms needing more workspace."""
    random = np.random.default_rng(seed)
    return {
        MicroBatch(count, algorithm): (
            float(random.uniform(0.3, 1.7) + count * speed * random.uniform(0.8, 1.2)),
            count * need * float(random.uniform(0.7, 1.3)),
        )
        for count in counts
        for algorithm, speed, need in (("naive", 3.1, 0.0), ("im2col", 1.3, 90.0), ("fft", 0.9, 210.0))
    }


def brute_force(batch: int, times: Times, limit: float) -> float:
    """The least seconds over all ordered divisions of the batch and all algorithms."""
    allowed = {part: seconds for part, (seconds, workspace) in times.items() if workspace <= limit}

    @cache
    def one(count: int) -> float:
        return min((seconds for part, seconds in allowed.items() if part.images == count), default=float("inf"))

    def all_divisions(left: int) -> Any:
        if not left:
            yield 0.0
        for count in range(1, left + 1):
            if one(count) < float("inf"):
                yield from (one(count) + rest for rest in all_divisions(left - count))

    return min(all_divisions(batch))


@pytest.mark.parametrize("seed", range(3))
def test_dynamic_programming_finds_the_best_of_all_divisions(seed: int) -> None:
    for batch in range(1, 17):
        times = drawn_times(100 * seed + batch, [*range(1, batch + 1)] if seed else [1, 2, 4, 8, 16])
        for limit in (0.0, 137.0, 900.0, float("inf")):
            plan = best_micro_batches(batch, times, limit)
            assert sum(count for count, _ in plan) == batch
            assert all(times[part][1] <= limit for part in plan)
            assert sum(times[part][0] for part in plan) == pytest.approx(brute_force(batch, times, limit), rel=1e-12)


def test_more_workspace_never_takes_longer() -> None:
    times = drawn_times(7, [1, 3, 5, 11])
    seconds = [sum(times[part][0] for part in best_micro_batches(23, times, limit)) for limit in range(0, 3000, 150)]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] < seconds[0]


@pytest.mark.parametrize(
    ("batch", "times", "limit", "error", "text"),
    [
        (3, {(2, None): (1.0, 5)}, 100, ValueError, "no micro-batches with at most 100 bytes of workspace add up to 3"),
        (3, {(2, None): (1.0, 5)}, 100, ValueError, r"\[2\] images have one, .*: raise the limit, or measure"),
        (2, {(2, None): (1.0, 512)}, 100, ValueError, "the least workspace that was measured is 512 bytes"),
        (2, {(0, None): (1.0, 5)}, 100, ValueError, "the images of a micro-batch must be at least 1, got 0"),
        (2, {(1.0, None): (1.0, 5)}, 100, TypeError, "the images of a micro-batch must be a whole number"),
        (2, {(1, None): (float("nan"), 5), (2, "fft"): (1.0, 5)}, 100, ValueError, "the seconds of a micro-batch must"),
        (0, {}, 100, ValueError, "batch must be at least 1, got 0"),
        (2, {(1, None): (1.0, 5)}, -1, ValueError, "limit must be at least 0"),
        (2.5, {}, 1, TypeError, "batch"),
    ],
)
def test_what_no_plan_can_do_is_refused(batch: Any, times: Any, limit: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        best_micro_batches(batch, times, limit)


def test_a_plan_gives_the_result_and_the_gradients_of_the_whole_minibatch() -> None:
    random = np.random.default_rng(11)
    arrays = [random.standard_normal(shape) for shape in ((7, 4, 6, 5), (6, 2, 3, 3), (6,))]
    g = random.standard_normal((7, 6, 6, 5))
    plan = [MicroBatch(3, "winograd"), (2, None), (1, "fft"), (1, "naive")]
    found = []
    for divided in (True, False):
        x, weight, bias = (Tensor(array, requires_grad=True) for array in arrays)
        if divided:
            out = conv2d_in_micro_batches(x, weight, plan, bias, padding=1, groups=2)
        else:
            out = F.conv2d(x, weight, bias, padding=1, groups=2)
        out.backward(g)
        found.append([out.data, x.grad, weight.grad, bias.grad])
    for mine, whole in zip(*found, strict=True):
        np.testing.assert_allclose(mine, whole, rtol=0, atol=1e-10)
    assert conv2d_in_micro_batches(x[:0], weight, [], bias, padding=1, groups=2).shape == (0, 6, 6, 5)
    for wrong, text in ((plan[:-1], "the plan has 6 images, and x 7"), ([(8, None), (-1, None)], "at least 1, got -1")):
        with pytest.raises(ValueError, match=text):
            conv2d_in_micro_batches(x, weight, wrong, bias, padding=1, groups=2)


def test_a_measured_plan_stays_within_its_limit() -> None:
    shape, weight = (6, 8, 17, 19), (8, 8, 3, 3)
    times = measure_micro_batches(shape, weight, padding=1)
    assert {part.images for part in times} == {1, 2, 4, 6}
    assert {part.algorithm for part in times} == {None, "im2col", "fft", "winograd"}
    unfolded = 8 * 9 * 17 * 19 * 4  # bytes of one image
    assert times[MicroBatch(4, "im2col")].workspace >= 4 * unfolded
    limit = times[MicroBatch(2, "im2col")].workspace
    forced = {part: (0.0 if part.algorithm == "im2col" else 1.0, cost.workspace) for part, cost in times.items()}
    plan = best_micro_batches(6, forced, limit)
    assert all(algorithm == "im2col" and count <= 2 for count, algorithm in plan)

    x, w = (Tensor(np.full(size, 0.3, np.float32)) for size in (shape, weight))
    conv2d_in_micro_batches(x, w, plan, padding=1)
    tracemalloc.start()
    out = conv2d_in_micro_batches(x, w, plan, padding=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= limit + 2 * out.data.nbytes  # the parts, and their concatenation


def test_winograd_is_not_measured_where_it_cannot_compute() -> None:
    times = measure_micro_batches((1, 2, 9, 9), (3, 2, 5, 5), stride=2, counts=[1])
    assert {part.algorithm for part in times} == {None, "im2col", "fft"}
    with pytest.raises(ValueError, match="channels"):
        measured((1, 3, 9, 9), (3, 2, 5, 5))
