"""What a collective is made of: messages between two ranks, and the reduction of two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class PointToPoint(Protocol):
    """This rank's number, messages to and from the others, the reduction of two arrays.

    `send` returns when the receiver has the message. `sendrecv` does both halves at once, so that no circle of ranks
    can block itself. With `out`, an array is received into that one. `reduce_into` makes `a` become `a op b`. `among`
    is the same for these ranks only (the caller is one of them), which are numbered from 0 in this order.
    """

    rank: int
    size: int

    def send(self, x: Any, dst: int) -> None: ...

    def recv(self, src: int, *, out: Array | None = None) -> Any: ...

    def sendrecv(self, x: Any, dst: int, src: int, *, out: Array | None = None) -> Any: ...

    def reduce_into(self, a: Array, b: Array, op: str) -> None: ...

    def among(self, ranks: Sequence[int]) -> PointToPoint: ...


def own(x: Any) -> Any:
    """A rank's item for itself, as the others receive it: a copy that shares no memory with x, at any depth."""
    if type(x) in (np.ndarray, np.memmap) and not x.dtype.hasobject:
        return np.array(x, order="C")
    return deepcopy(x)
