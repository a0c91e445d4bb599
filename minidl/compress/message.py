"""Message: a compressed array, as the bytes that are sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Message:
    """A compressed array.

    Attributes
        data   the bytes that are sent, no more and no fewer
        shape  shape of the array; known to sender and receiver, so it is not sent
        dtype  dtype of the array; not sent either
    """

    data: NDArray[np.uint8]
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def nbytes(self) -> int:
        """Length of the message in bytes."""
        return self.data.nbytes
