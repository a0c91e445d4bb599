"""Threshold: send the entries above a fixed magnitude, however many they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress.sparse import Sparse
from minidl.kernels import Array


@dataclass
class Threshold(Sparse):
    """Sends the entries with |x| > tau; the rest counts as zero.

    Parameters
        tau         threshold, at least 0, in the unit of the gradient; a larger one sends less. 0 leaves out zeros only
        all_reduce  "gather", "recursive_doubling" or "split", as in `Sparse`

    Message: k indices (uint32), then k values for the k such entries: 8 k bytes in float32. It may be empty, and its
    length changes as gradients do in the course of training; TopK's does not.

    Notes
        Biased: wrap it in `ErrorFeedback`, or what stays below tau is never sent. The error of each entry is at most
        tau, which bounds the residual; relative to |x| no bound is stated. NaN is sent, so that it is noticed.

    Raises
        ValueError  for a tau below 0, for integers, for more than 2^32 entries

    References
        Strom, Scalable distributed DNN training using commodity GPU cloud computing (Interspeech 2015), with the values
        themselves in place of their signs.

    Examples
        >>> c = Threshold(2.0)
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, 0.5], dtype="float32"))
        >>> message.nbytes, c.decode(message)
        (16, array([ 0., -5.,  3.,  0.], dtype=float32))
    """

    tau: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tau >= 0:
            raise ValueError(f"Threshold: tau must be at least 0, got {self.tau}")

    def choose(self, flat: Array) -> Array:
        return np.flatnonzero(~(np.abs(flat) <= self.tau))
