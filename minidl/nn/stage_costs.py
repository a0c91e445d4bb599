"""What each stage of a model costs in a forward pass: counted flops, and measured bytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minidl import kernels, random
from minidl.nn.module import Module
from minidl.nn.segments import StageCost
from minidl.recomputation import tensors_in, with_tensors
from minidl.tape import enable_grad, recomputing
from minidl.tensor import Tensor


def stage_costs(model: Module, x: Any) -> list[StageCost]:
    """Run each of `model.stages()` on the samples x, twice; return its forward flops, and the bytes that it keeps.

    Bytes are those of numpy's arrays, as tracemalloc counts them. Random numbers, running statistics and gradients
    are left as they were. A minibatch of another size costs in proportion.

    >>> from minidl import nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 4))
    >>> [int(cost.output) for cost in stage_costs(model, np.ones((5, 2), np.float32))]
    [60, 60, 80]
    """
    costs, value = [], x
    with _unchanged():
        for stage in model.stages():
            stage(value)  # the first call compiles kernels and fills caches
            with kernels.counted() as work, _traced() as kept:
                output = stage(value)
                nbytes = kept()
            costs.append(StageCost(work.flops, nbytes, sum(tensor.data.nbytes for tensor in tensors_in(output))))
            value = with_tensors(output, _leaf)
            del output
    return costs


@contextmanager
def _traced() -> Iterator[Callable[[], int]]:
    """Within the block the function that is yielded returns the bytes of the arrays that were made and still live."""
    is_traced = tracemalloc.is_tracing()
    if not is_traced:
        tracemalloc.start()
    before = array_bytes()
    try:
        yield lambda: array_bytes() - before
    finally:
        if not is_traced:
            tracemalloc.stop()


def array_bytes() -> int:
    """The bytes of numpy's arrays that live and were made since tracemalloc began."""
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([arrays]).traces)


def _leaf(tensor: Tensor) -> Tensor:
    return Tensor(tensor.data, requires_grad=tensor.requires_grad)


@contextmanager
def _unchanged() -> Iterator[None]:
    """Within the block random numbers are drawn that come again afterwards, and running statistics do not move."""
    second = recomputing.set(True)
    try:
        with random.replaying(random.snapshot()), enable_grad():
            yield
    finally:
        recomputing.reset(second)
