"""Message: a compressed array as the bytes that go over the wire."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Message:
    """What a compressor made of an array.

    data: the bytes that are sent, exactly. shape, dtype: of the array, which sender and receiver both know: they are
    not sent.
    """

    data: NDArray[np.uint8]
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def nbytes(self) -> int:
        """The length of the message on the wire, in bytes."""
        return self.data.nbytes
