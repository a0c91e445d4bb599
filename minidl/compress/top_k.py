"""TopK: send only the entries of largest magnitude."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress.sparse import Sparse, check_density, count
from minidl.kernels import Array


@dataclass
class TopK(Sparse):
    """Sends the k = `density` n entries of largest |x|; the rest counts as zero.

    Parameters
        density     fraction of the entries of each parameter, above 0; k is rounded up. 1 sends everything
        all_reduce  "gather", "recursive_doubling" or "split", as in `Sparse`

    Message: k indices (uint32), then k values: 8 k bytes in float32, 1/(2 density) times fewer than dense.

    Notes
        Biased: wrap it in `ErrorFeedback` to send later what was left out, at most (1 - k/n) |x|^2.
        Which of equal entries are sent is not specified. NaN counts as the largest, so that it is noticed.

    Raises
        ValueError  for a density that is not above 0 and at most 1, for integers, for more than 2^32 entries

    References
        Aji and Heafield, Sparse communication for distributed gradient descent (arXiv:1704.05021), section 3.

    Examples
        >>> c = TopK(0.25)
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, 0.5], dtype="float32"))
        >>> message.nbytes, c.decode(message)
        (8, array([ 0., -5.,  0.,  0.], dtype=float32))
    """

    density: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_density("TopK", self.density)

    def pairs(self, size: int) -> int:
        return count(self.density, size)

    def squared_error(self, size: int | None = None) -> float:
        sent = self.density if size is None else self.pairs(size) / size if size else 1.0
        return 1 - sent

    def choose(self, flat: Array) -> Array:
        return largest(flat, self.pairs(flat.size))


def largest(flat: Array, k: int) -> Array:
    """The indices of the k entries of largest magnitude, in rising order."""
    if k >= flat.size:
        return np.arange(flat.size)
    return np.sort(np.argpartition(np.abs(flat), flat.size - k)[flat.size - k :])
