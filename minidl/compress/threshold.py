"""Threshold: sends the entries above a fixed magnitude."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from minidl.arguments import real_number
from minidl.compress.sparse import Sparse
from minidl.kernels import Array


@dataclass
class Threshold(Sparse):
    """Sends the entries with |x| > tau; all others are decoded to zero.

    Parameters
        tau         threshold in the unit of the gradient, at least 0; a larger one sends less, 0 leaves out zeros only
        all_reduce  "gather" (default), "recursive_doubling" or "split", as in `Sparse`

    Message: the indices of these k entries (uint32), then their values: 8 k bytes in float32. k changes with the
    gradients in the course of training, and may be 0.

    Notes
        Biased: use `ErrorFeedback`, or gradients below tau are never sent.
        The error of each entry is at most tau, which bounds the residual. Relative to |x| there is no bound.
        NaN is sent, so it stays visible.

    Raises
        ValueError  for a tau below 0, for integer arrays, for more than 2^32 entries

    References
        Strom, Scalable distributed DNN training using commodity GPU cloud computing (Interspeech 2015), which sends the
        signs of the entries, not their values.

    Examples
        >>> c = Threshold(2.0)
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, 0.5], dtype="float32"))
        >>> message.nbytes, c.decode(message)
        (16, array([ 0., -5.,  3.,  0.], dtype=float32))
    """

    tau: float

    def __post_init__(self) -> None:
        super().__post_init__()
        real_number("Threshold: tau", self.tau, at_least=0, at_most=math.inf)

    def choose(self, flat: Array) -> Array:
        return np.flatnonzero(~(np.abs(flat) <= self.tau))
