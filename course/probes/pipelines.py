"""Probes for the answers of chapter 11: a stage's functions that take virtual time, and a cut of costs that count."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.probes import counted_costs
from minidl import Tensor

Array = NDArray[Any]

FORWARD_SECONDS, BACKWARD_SECONDS = 1, 2
"""Virtual seconds of an action, on a node that makes one operation a second."""


class Forward:
    """A stage's forward: tanh(x w); of the last stage half the mean square of x w, its loss.

    most_inputs: inputs that may be alive when it is called, this one included; 0 for any number.
    """

    def __init__(self, is_last: bool, most_inputs: int = 0) -> None:
        self._is_last = is_last
        self._most_inputs = most_inputs
        self._inputs: list[weakref.ref[Array]] = []

    def __call__(self, w: Array, x: Array) -> Any:
        work_for(FORWARD_SECONDS)
        self.see(x)
        y = x @ w
        return float(np.mean(y**2) / 2) if self._is_last else np.tanh(y)

    def see(self, x: Array) -> None:
        """Count an input, or a copy of one, that the stage holds."""
        if not isinstance(x, np.ndarray):
            raise TypeError(f"the input x of a stage is an array, got a {type(x).__name__}")
        if not self._most_inputs:
            return
        self._inputs = [each for each in self._inputs if each() is not None]
        self._inputs.append(weakref.ref(x))
        if len({id(each()) for each in self._inputs}) > self._most_inputs:
            raise MemoryError(
                f"this stage has room for the inputs of {self._most_inputs} micro-batches, and is given one more: "
                "release an input when its backward is done"
            )


class Backward:
    """The backward of `forward`, which also counts the inputs that it is given: they may be copies."""

    def __init__(self, is_last: bool, forward: Forward | None = None) -> None:
        self._is_last = is_last
        self._forward = forward

    def __call__(self, w: Array, x: Array, g: Any) -> tuple[Array, Array]:
        work_for(BACKWARD_SECONDS)
        if self._forward is not None:
            self._forward.see(x)
        y = x @ w
        if self._is_last:
            if np.ndim(g):
                raise ValueError(f"on the last stage g is a number, got an array of shape {np.shape(g)}")
            slope = g * y / y.size
        else:
            if np.shape(g) != y.shape:
                raise ValueError(f"g has shape {np.shape(g)}, but the output of this stage has shape {y.shape}")
            slope = g * (1 - np.tanh(y) ** 2)
        return slope @ w.T, x.T @ slope


def work_for(seconds: int) -> None:
    """Let the rank's virtual clock advance: a simulation charges a tensor's negation with a flop for each element."""
    _ = -Tensor(np.zeros(seconds))


def cut_counted(function: Callable[..., Any], costs: list[int], stages: int, operations: int) -> Any:
    """Probe: the cut of counting costs, with at most that many operations."""
    beyond = (
        "more than 6 n^2 K operations with costs: do not try all cuts, and do not add up the same costs again and again"
    )
    with counted_costs.counting(costs, operations, beyond) as given:
        return function(given, stages)
