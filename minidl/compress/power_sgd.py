"""PowerSGD: a gradient matrix as the product of two thin ones, which the nodes can add up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl import random
from minidl.compress.compressor import Compressor
from minidl.compress.exchange import AddingUp, AllReduce, Sum
from minidl.compress.message import Message
from minidl.kernels import Array


class PowerSGD(Compressor):
    """Sends a gradient matrix as the product of two thin ones: a step of the power iteration in every training step.

        P   = all-reduced M_i Q          (rows x r), for the matrix M_i of node i
        P   = its columns made orthonormal
        Q_i = M_i^T P                    (columns x r)
        Q   = all-reduced Q_i, kept for the next step
        the sum of the M_i is about P Q^T; node i has left out M_i - P Q_i^T

    Both sums are sums of small matrices, so an ordinary all-reduce does: the bytes do not grow with the nodes, and
    nothing is lost by adding. A weight of shape (rows, ...) is read as a matrix of that many rows. Vectors, and
    matrices of which P and Q would not be smaller, are sent as they are.

    Parameters
        rank        r; a larger one sends more and leaves out less. Exact for matrices of at most that rank, from the
                    second step on of the same column space
        warm_start  True begins with the last step's Q; False with a new random Q in every step
        seed        of the random Q, which all nodes share. Within a run it depends on this number, the run's seed, the
                    epoch, the step and the parameter's name

    Message: P and Q in the array's dtype, r (rows + columns) numbers; in an all-reduce a node sends two sums of these.

    Notes
        Biased: made for `ErrorFeedback`. What a node leaves out is a projection of its M_i, never larger than M_i. How
        much smaller depends on M_i, so that no bound is stated.
        P spans directions of the sum. If gradients differ between nodes in directions in which their sum is always
        zero, error feedback keeps these differences: residuals may grow in proportion to the steps. They cancel, so the
        sum of all residuals stays bounded and the error of the sums is one of rounding. Noise in the gradients turns P
        into all directions in time, and what was kept is sent.
        A NaN or an infinity spreads to the whole matrix.

    Raises
        ValueError  for a rank below 1, a seed below 0, for integers

    References
        Vogels et al., PowerSGD (arXiv:1905.13727), algorithms 1 and 2.

    Examples
        >>> c = PowerSGD(rank=1)
        >>> x = np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 1.0, -1.0])
        >>> message = c.encode(x)
        >>> message.nbytes, x.nbytes, bool(np.allclose(c.decode(message), x))
        (56, 96, True)
    """

    def __init__(self, rank: int, warm_start: bool = True, seed: int = 0) -> None:
        if not (isinstance(rank, (int, np.integer)) and rank >= 1):
            raise ValueError(f"PowerSGD: rank must be a whole number of at least 1, got {rank!r}")
        if not (isinstance(seed, (int, np.integer)) and seed >= 0):
            raise ValueError(f"PowerSGD: seed must be a whole number of at least 0, got {seed!r}")
        self.rank, self.warm_start, self.seed = int(rank), warm_start, int(seed)
        self._q: Array | None = None
        self._run = 0, ""  # seed, parameter's name
        self._epoch, self._draws = 0, 0

    def __repr__(self) -> str:
        return f"PowerSGD(rank={self.rank}, warm_start={self.warm_start}, seed={self.seed})"

    @property
    def encodes_jointly(self) -> bool:
        return True

    @property
    def is_stateful(self) -> bool:
        return self.warm_start

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self._run, self._q = (seed, name), None
        self._epoch, self._draws = 0, 0

    def begin_epoch(self, epoch: int) -> None:
        self._epoch, self._draws = epoch, 0  # so that a run that is resumed draws the same Q

    def encode(self, array: Array) -> Message:
        """P and Q of this array by itself."""
        self.check(array.shape, array.dtype)
        if self.sends_whole(array.shape):
            numbers = array.reshape(-1)
        else:
            matrix = array.reshape(len(array), -1)
            p = orthonormal(matrix @ self._first_q(matrix))
            self._q = matrix.T @ p
            numbers = np.concatenate([p.reshape(-1), self._q.reshape(-1)])
        return Message(np.frombuffer(numbers.tobytes(), np.uint8), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        numbers = message.data.copy().view(message.dtype)
        if not self.sends_whole(message.shape):
            rows = message.shape[0]
            p, q = np.split(numbers.reshape(-1, self.rank), [rows])
            numbers = p @ q.T
        return numbers.reshape(message.shape)

    def add_up(self, array: Array, nodes: int, rank: int) -> AddingUp:
        self.check(array.shape, array.dtype)
        if self.sends_whole(array.shape):
            total: Array = yield AllReduce(array)
            return Sum(total, lambda: np.zeros_like(array))
        matrix = array.reshape(len(array), -1)
        p = orthonormal((yield AllReduce(matrix @ self._first_q(matrix))))
        own_q = matrix.T @ p
        q: Array = yield AllReduce(own_q)
        self._q = q.copy()  # the sum may be written into, or share memory with that of other parameters
        return Sum((p @ q.T).reshape(array.shape), lambda: (matrix - p @ own_q.T).reshape(array.shape))

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        rows, columns = (shape[0], math.prod(shape[1:])) if shape else (1, 1)
        numbers = rows * columns if self.sends_whole(shape) else self.rank * (rows + columns)
        return numbers * np.dtype(dtype).itemsize

    def sends_whole(self, shape: tuple[int, ...]) -> bool:
        """Whether arrays of this shape are sent as they are, so that nothing is left out."""
        if len(shape) < 2:
            return True
        rows, columns = shape[0], math.prod(shape[1:])
        return self.rank * (rows + columns) >= rows * columns

    def _first_q(self, matrix: Array) -> Array:
        """Where the power iteration begins: the last Q, its columns of zeros drawn anew, which would remain zero."""
        draw, self._draws = self._draws, self._draws + 1
        if self.warm_start and self._q is not None and (is_kept := self._q.any(axis=0)).all():
            return self._q
        seed, name = self._run
        generator = random.stream(random.Purpose.POWER_ITERATION, seed, self.seed, self._epoch, name, draw)
        drawn = generator.standard_normal((matrix.shape[1], self.rank)).astype(matrix.dtype)
        return drawn if self._q is None or not self.warm_start else np.where(is_kept, self._q, drawn)


def orthonormal(columns: Array) -> Array:
    """The columns made orthogonal and of length 1, one after the other: the modified Gram-Schmidt process.

    A column that is a combination of those before, up to rounding, becomes zero: the rank was less than was asked for.
    """
    result = columns.copy()
    tiny = np.finfo(result.dtype).eps * len(result)
    for i in range(result.shape[1]):
        column = result[:, i]
        before = np.linalg.norm(column)
        for _ in range(2):  # twice is enough: what rounding leaves of the earlier columns goes the second time
            column -= result[:, :i] @ (result[:, :i].T @ column)
        length = np.linalg.norm(column)
        column *= 0 if length <= tiny * before else 1 / length
    return result
