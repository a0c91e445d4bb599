"""Convolution under a workspace limit: a minibatch in micro-batches, each by the algorithm that is fastest for it.

    times = measure_micro_batches((16, 64, 32, 32), (64, 64, 3, 3), padding=1)     # seconds and workspace of each
    plan = best_micro_batches(16, times, limit=4_000_000)                          # [MicroBatch(8, "winograd"), ...]
    out = conv2d_in_micro_batches(x, weight, plan, padding=1)

Fast algorithms need workspace: im2col unfolds every window, FFT and Winograd keep transformed images. It grows with the
number of images, so a smaller micro-batch may use an algorithm that the whole minibatch cannot.

Source: Oyama, Ben-Nun, Hoefler, Matsuoka, Accelerating Deep Learning Frameworks with Micro-batches (CLUSTER 2018,
"mu-cuDNN"), section III: optimization of one kernel (WR) by dynamic programming.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from minidl.arguments import real_number, whole_number
from minidl.functional.convolution import Padding, conv2d
from minidl.functional.convolution_table import TIMED
from minidl.functional.pairs import Pair
from minidl.functional.shapes import cat
from minidl.random import Purpose, stream
from minidl.tensor import Tensor


class MicroBatch(NamedTuple):
    """A number of images, and the algorithm that convolves them: None or a name of `F.conv2d`."""

    images: int
    algorithm: str | None


class Measured(NamedTuple):
    """Of a convolution and its two gradients.

    seconds    of all three, in processor time, the least of several measurements
    workspace  bytes that numpy allocates within one of them, without the result; the most of the three
    """

    seconds: float
    workspace: int


def measured(
    x: tuple[int, ...],
    weight: tuple[int, ...],
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    algorithm: str | None = None,
    repetitions: int = 3,
) -> Measured:
    """Measure a convolution of float32 arrays of these shapes, and both gradients, with one thread."""
    random = stream(Purpose.BENCHMARK, 0)
    images, filters = (Tensor(random.standard_normal(shape, np.float32), requires_grad=True) for shape in (x, weight))
    seconds, workspace = inf, 0

    def step(watch: Callable[[Callable[[], Any]], Any]) -> None:
        out = watch(partial(conv2d, images, filters, None, stride, padding, dilation, groups, algorithm))
        for operand in (images, filters):
            watch(partial(out.backward, out.data, inputs=[operand], retain_graph=True))
            operand.grad = None

    def traced(call: Callable[[], Any]) -> Any:
        nonlocal workspace
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        after, peak = tracemalloc.get_traced_memory()
        workspace = max(workspace, peak - max(before, after))
        return result

    with threadpool_limits(1):
        for _ in range(1 + repetitions):
            began = time.process_time()  # with one thread the time of the work, whatever else the machine does
            step(lambda call: call())
            seconds = min(seconds, time.process_time() - began)
        is_tracing = tracemalloc.is_tracing()
        if not is_tracing:
            tracemalloc.start()
        try:
            step(traced)
        finally:
            if not is_tracing:
                tracemalloc.stop()
    return Measured(seconds, workspace)


def measure_micro_batches(
    x: tuple[int, ...],
    weight: tuple[int, ...],
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    counts: Sequence[int] | None = None,
) -> dict[MicroBatch, Measured]:
    """Measure every algorithm that can compute this convolution, for micro-batches of these sizes.

    counts: numbers of images; default: 1, 2, 4, ... and all of x
    """
    chosen = counts or sorted({2**k for k in range(x[0].bit_length()) if 2**k <= x[0]} | {x[0]})
    times = {}
    for name in TIMED:
        algorithm = None if name == "none" else name
        for count in chosen:
            whole_number("measure_micro_batches: each of counts", count, at_least=1)
            try:
                found = measured((count, *x[1:]), weight, stride, padding, dilation, groups, algorithm)
            except ValueError:
                if algorithm != "winograd":
                    raise
                break
            times[MicroBatch(count, algorithm)] = found
    return times


def best_micro_batches(batch: int, times: Mapping[Any, Any], limit: float) -> list[MicroBatch]:
    """The micro-batches that take least time in all, each with a workspace of at most `limit` bytes.

    Dynamic programming: the best division of b images is a micro-batch and the best division of the others.

    Parameters
        batch  number of images
        times  maps (images, algorithm) to (seconds, workspace), as `measure_micro_batches` returns

    Raises
        ValueError  no micro-batches within the limit add up to the batch

    >>> times = {(1, "naive"): (5.0, 0), (1, "fft"): (2.5, 100), (2, "fft"): (3.0, 180), (3, "fft"): (3.4, 260)}
    >>> best_micro_batches(3, times, limit=200)
    [MicroBatch(images=2, algorithm='fft'), MicroBatch(images=1, algorithm='fft')]
    """
    whole_number("best_micro_batches: batch", batch, at_least=1)
    real_number("best_micro_batches: limit", limit, at_least=0, at_most=inf)
    for (images, _), (seconds, _) in times.items():
        whole_number("best_micro_batches: the images of a micro-batch", images, at_least=1)
        real_number("best_micro_batches: the seconds of a micro-batch", seconds, at_least=0, at_most=inf)
    allowed = [(MicroBatch(*key), seconds) for key, (seconds, workspace) in times.items() if workspace <= limit]
    best: list[tuple[float, list[MicroBatch]] | None] = [(0.0, [])]
    for images in range(1, batch + 1):
        choices = [
            (seconds + rest[0], [*rest[1], part])
            for part, seconds in allowed
            if part.images <= images and (rest := best[images - part.images]) is not None
        ]
        best.append(min(choices, key=lambda choice: choice[0], default=None))
    if (found := best[batch]) is None:
        least = min((workspace for _, workspace in times.values()), default="none")
        raise ValueError(
            f"best_micro_batches: no micro-batches with at most {limit:,.0f} bytes of workspace add up to {batch} "
            f"images: {sorted({part.images for part, _ in allowed})} images have one, and the least workspace that was "
            f"measured is {least} bytes: raise the limit, or measure other numbers of images"
        )
    return sorted(found[1], key=lambda part: -part.images)


def conv2d_in_micro_batches(
    x: Any, weight: Any, plan: Sequence[tuple[int, str | None]], bias: Any = None, **options: Any
) -> Tensor:
    """`F.conv2d` of some images after the others; result and gradients are those of all at once, but for rounding.

    Parameters
        plan     (images, algorithm) of every micro-batch, in the order of the images
        options  stride, padding, dilation and groups of `F.conv2d`

    Raises
        ValueError  the micro-batches do not add up to the images of x
    """
    planned = sum(whole_number("conv2d_in_micro_batches: images", count, at_least=1) for count, _ in plan)
    if planned != len(x):
        raise ValueError(f"conv2d_in_micro_batches: the plan has {planned} images, and x {len(x)}")
    parts, first = [], 0
    for count, algorithm in plan:
        parts.append(conv2d(x[first : first + count], weight, bias, **options, algorithm=algorithm))
        first += count
    return cat(parts) if parts else conv2d(x, weight, bias, **options)
