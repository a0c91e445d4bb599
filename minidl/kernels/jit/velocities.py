"""The running sums of DGC: a velocity for each number, and the sum of velocities."""

from __future__ import annotations

from typing import Any

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import eligible
from minidl.kernels.jit.function_attributes import wide_vectors


def add_velocity(accumulated: Array, velocity: Array, gradient: Array, momentum: float) -> Any:
    if not eligible(accumulated, velocity, gradient):
        return NotImplemented
    _add_velocity(accumulated, velocity, gradient, gradient.dtype.type(momentum))
    return None


@compiled()
def _add_velocity(accumulated: Any, velocity: Any, gradient: Any, momentum: Any) -> None:
    wide_vectors()
    for i in range(gradient.size):
        v = velocity[i] * momentum + gradient[i]
        velocity[i] = v
        accumulated[i] += v
