"""The methods on which all collectives are built: messages between two ranks, and the reduction of two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class PointToPoint(Protocol):
    """The methods of a channel that collectives call.

    send          send x; returns when the receiver has the message
    recv          return the next message from `src`, received into the array `out` if given
    sendrecv      send and receive at the same time, so a circle of ranks does not block itself
    reduce_into   a becomes `a op b`, element by element
    among         the same among `ranks` only, numbered from 0 in this order; the caller is one of them
    """

    rank: int
    size: int

    def send(self, x: Any, dst: int) -> None: ...

    def recv(self, src: int, *, out: Array | None = None) -> Any: ...

    def sendrecv(self, x: Any, dst: int, src: int, *, out: Array | None = None) -> Any: ...

    def reduce_into(self, a: Array, b: Array, op: str) -> None: ...

    def among(self, ranks: Sequence[int]) -> PointToPoint: ...


def own(x: Any) -> Any:
    """A copy of x that shares no memory with it at any depth: what a rank receives from itself."""
    if type(x) in (np.ndarray, np.memmap) and not x.dtype.hasobject:
        return np.array(x, order="C")
    return deepcopy(x)
