"""TopK: send only the entries of largest magnitude."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.kernels import Array


@dataclass
class TopK(Compressor):
    """The `density` n entries of largest |x|, as pairs of a 32-bit index and a value; the rest counts as zero.

    At least one entry, rounded up. Biased: wrap it in `ErrorFeedback` to send later what was left out.
    Message: k indices (uint32), then k values: 8 k bytes in float32.
    Source: Aji and Heafield, Sparse communication for distributed gradient descent (arXiv:1704.05021), section 3.

    >>> c = TopK(0.25)
    >>> message = c.encode(np.array([1.0, -5.0, 3.0, 0.5], dtype="float32"))
    >>> message.nbytes, c.decode(message)
    (8, array([ 0., -5.,  0.,  0.], dtype=float32))

    Errors: ValueError for a density that is not above 0 and at most 1.
    """

    density: float

    def __post_init__(self) -> None:
        if not 0 < self.density <= 1:
            raise ValueError(f"TopK: density must be above 0 and at most 1, got {self.density}")

    def encode(self, array: Array) -> Message:
        flat = array.reshape(-1)
        k = math.ceil(self.density * flat.size)
        chosen = np.sort(np.argpartition(np.abs(flat), flat.size - k)[flat.size - k :]).astype(np.uint32)
        return Message(np.concatenate([chosen.view(np.uint8), flat[chosen].view(np.uint8)]), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        result = np.zeros(message.shape, message.dtype)
        k = message.nbytes // (4 + message.dtype.itemsize)
        result.reshape(-1)[message.data[: 4 * k].view(np.uint32)] = message.data[4 * k :].copy().view(message.dtype)
        return result
