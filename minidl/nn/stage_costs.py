"""What each stage of a model costs in a forward pass: flops, and the bytes that it keeps."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.kept_arrays import kept_bytes
from minidl.nn.module import Module
from minidl.nn.segments import StageCost
from minidl.recomputation import tensors_in, unchanged, with_tensors
from minidl.tensor import Tensor


def stage_costs(model: Module, x: Any) -> list[StageCost]:
    """Run each of `model.stages()` on the samples x; return its forward flops, and the bytes kept for its backward.

    Its input, parameters and buffers do not count. Random numbers, running statistics and gradients are left as they
    were. A minibatch of another size costs in proportion.

    >>> import numpy as np
    >>> from minidl import nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 4))
    >>> [int(cost.output) for cost in stage_costs(model, np.ones((5, 2), np.float32))]
    [60, 60, 80]
    """
    costs, value, inputs = [], x, [x]
    with unchanged():
        for stage in model.stages():
            with kernels.counted() as work:
                output = stage(value)
            tensors = tensors_in(output)
            kept = kept_bytes(tensors, [*inputs, *stage.parameters(), *stage.buffers()])
            costs.append(StageCost(work.flops, kept, sum(tensor.data.nbytes for tensor in tensors)))
            value = with_tensors(output, _leaf)
            inputs = tensors_in(value)
    return costs


def _leaf(tensor: Tensor) -> Tensor:
    return Tensor(tensor.data, requires_grad=tensor.requires_grad)
