"""Threshold: send the entries above a fixed magnitude, however many they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress.sparse import Sparse
from minidl.kernels import Array


@dataclass
class Threshold(Sparse):
    """The entries with |x| > tau, as pairs of a 32-bit index and a value; the rest counts as zero.

    The message is as long as there are such entries: empty if there are none, and what is not a number is sent, so
    that it is noticed. Biased: wrap it in `ErrorFeedback`, or what stays below tau is never sent. tau = 0 leaves out
    zeros alone. The compression depends on the size of the gradients, which changes as training goes on; TopK's does
    not.
    Message: k indices (uint32), then k values: 8 k bytes in float32.
    all_reduce: "gather", "recursive_doubling" or "split", as in `Sparse`.
    Source: Strom, Scalable distributed DNN training using commodity GPU cloud computing (Interspeech 2015), with the
    values themselves in place of their signs.

    >>> c = Threshold(2.0)
    >>> message = c.encode(np.array([1.0, -5.0, 3.0, 0.5], dtype="float32"))
    >>> message.nbytes, c.decode(message)
    (16, array([ 0., -5.,  3.,  0.], dtype=float32))

    Errors: ValueError for a tau below 0, for integers, for more than 2^32 entries.
    """

    tau: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tau >= 0:
            raise ValueError(f"Threshold: tau must be at least 0, got {self.tau}")

    def choose(self, flat: Array) -> Array:
        return np.flatnonzero(~(np.abs(flat) <= self.tau))
