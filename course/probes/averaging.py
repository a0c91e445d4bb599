"""Probe for the answers of chapter 07: gradients of a machine's own loss, one a step, in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Slopes:
    """The gradient of a machine's own loss: in each step a parabola with the same curvature and another minimum.

    The steps are asked for in order, each of them once.
    """

    def __init__(self, curvature: Array, minima: Array) -> None:
        self._curvature = curvature
        self._minima = minima
        self._next = 0

    def __call__(self, x: Array, step: int) -> Array:
        if step != self._next:
            raise ValueError(
                f"gradient was called for step {step}, expected step {self._next}: each step has one gradient, from "
                f"step 0 to step {len(self._minima) - 1} in order"
            )
        if step == len(self._minima):
            raise ValueError(f"gradient was called for step {step}, but there are only {step} steps, from 0 on")
        self._next += 1
        return np.asarray(self._curvature * (x - self._minima[step]))
