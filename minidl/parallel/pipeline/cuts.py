"""Where to cut a model: chunks whose slowest is as fast as possible, since it sets the pace of the whole pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from minidl import kernels, random
from minidl.arguments import real_number, whole_number
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.pipeline.handover import separate, tensors_of
from minidl.tensor import backward


def balanced_cuts(costs: Sequence[float], chunks: int) -> list[int]:
    """Before which units a model is cut, so that the most expensive chunk costs as little as possible.

    Parameters
        costs   of each unit of the model, in order: flops or seconds
        chunks  of consecutive units; none is empty

    Of several best ways, the one whose early chunks are largest. By dynamic programming over the first units and the
    number of chunks: units^2 * chunks steps.

    Raises
        TypeError, ValueError for more chunks than units, and costs that are no numbers or below 0

    A pipeline processes one micro-batch in the time of its slowest stage (Narayanan et al., PipeDream, SOSP 2019,
    section 3.1).

    >>> balanced_cuts([1, 1, 1, 1, 4, 2], chunks=3)
    [4, 5]
    """
    count = whole_number("balanced_cuts: chunks", chunks, at_least=1)
    for cost in costs:
        real_number("balanced_cuts: costs", cost, at_least=0)
    check_enough(len(costs), count)
    n = len(costs)
    until = [0.0, *accumulate(map(float, costs))]
    # bottleneck[j]: of the first j units in k chunks, the cost of the most expensive chunk
    bottleneck = [until[j] if j else 0.0 for j in range(n + 1)]
    first_of_last: list[list[int]] = []
    for k in range(2, count + 1):
        shorter, bottleneck, first = bottleneck, [float("inf")] * (n + 1), [0] * (n + 1)
        for j in range(k, n + 1):
            for i in range(k - 1, j):  # the last chunk has the units i to j - 1
                cost = max(shorter[i], until[j] - until[i])
                if cost <= bottleneck[j]:
                    bottleneck[j], first[j] = cost, i
        first_of_last.append(first)
    cuts, end = [], n
    for first in reversed(first_of_last):
        end = first[end]
        cuts.append(end)
    return cuts[::-1]


def check_enough(units: int, chunks: int) -> None:
    """Raise ValueError if a model of that many units cannot fill that many chunks."""
    if units < chunks:
        raise ValueError(
            f"{units} stages of the model cannot fill {chunks} chunks, and an empty chunk computes nothing: use at "
            f"most {units} chunks, or give the model finer stages"
        )


def check_cuts(cuts: Sequence[int], units: int, chunks: int) -> None:
    """Raise TypeError or ValueError unless the cuts make that many chunks of that many units, none of them empty."""
    numbers = [whole_number("Pipeline: cuts", cut) for cut in cuts]
    ends = [0, *numbers, units]
    if len(numbers) != chunks - 1 or any(start >= end for start, end in pairwise(ends)):
        raise ValueError(
            f"Pipeline: cuts must be {chunks - 1} rising numbers from 1 to {units - 1}, for {chunks} chunks of "
            f"{units} stages of the model, got {list(cuts)}"
        )


def flops_of_stages(model: Module, x: Any) -> list[int]:
    """The flops of forward and backward of each of `model.stages()`, for the samples x; the loss is not counted.

    Gradients of the parameters are left as they were; batch norm's running statistics move.

    >>> import numpy as np
    >>> from minidl import nn
    >>> flops_of_stages(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)), np.ones((1, 2), np.float32))
    [30, 80]
    """
    before = [(parameter, parameter.grad) for parameter in model.parameters()]
    model.zero_grad()
    flops: list[int] = []
    value = x
    with random.replaying(random.snapshot()):
        for number, unit in enumerate(model.stages()):
            if number:
                value, _ = separate(value)
            with kernels.counted() as work:
                value = unit(value)
                outputs = [tensor for tensor in tensors_of(value) if tensor.requires_grad]
                backward(outputs, [_ones(tensor.data) for tensor in outputs])
            flops.append(work.flops)
    for parameter, gradient in before:
        parameter.grad = gradient
    return flops


def _ones(array: Array) -> Array:
    ones: Array = kernels.array_module(array).ones_like(array)
    return ones
