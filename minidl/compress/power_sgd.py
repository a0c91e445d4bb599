"""PowerSGD: sends a gradient matrix as the product of two thin matrices, which an all-reduce can add up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl import random
from minidl.arguments import whole_number
from minidl.compress.compressor import Compressor, Message
from minidl.compress.exchange import AllReduce, Exchange, Sum
from minidl.compress.random_choices import RandomChoices
from minidl.kernels import Array


class PowerSGD(RandomChoices, Compressor):
    """Sends a gradient matrix as the product of two thin ones, from one power iteration per training step.

        P   = all-reduced M_i Q          (rows x r), for the matrix M_i of node i
        P   = its columns made orthonormal
        Q_i = M_i^T P                    (columns x r)
        Q   = all-reduced Q_i, kept for the next step
        the sum of the M_i is about P Q^T; node i has left out M_i - P Q_i^T

    Both sums are ordinary all-reduces of small matrices, so the bytes per node do not grow with the nodes, and adding
    up loses nothing. A weight of shape (rows, ...) is read as a matrix with that many rows. Vectors, and matrices for
    which P and Q would not have fewer numbers, are sent uncompressed.

    Parameters
        rank        r, at least 1; a larger one sends more and leaves out less
        warm_start  True (default) starts from the last step's Q, False from a new random Q in each step
        seed        of the random Q, which all nodes share; in a run combined with the run's seed, the epoch, the step
                    and the parameter's name

    Message: P and Q, r (rows + columns) numbers, in the array's dtype (float32 for float16, whose range they exceed);
    a node sends these in two all-reduces.
    Limits: exact up to rounding for sums of rank at most r: in the first step, in later ones while the row space of the
    sum stays the same, and in every step without warm start.

    Notes
        Biased: use `ErrorFeedback`. A node leaves out a projection of its M_i, which is never larger than M_i; how much
        smaller depends on M_i, so no bound is stated.
        P spans r directions of the sum. Error feedback keeps the other directions until P turns to them, which noise in
        the gradients causes in time. If gradients differ between nodes in every step, there are three cases:
            differences do not cancel  residuals settle at about rows / r times the gradient, for rows <= columns
            they nearly cancel         residuals grow for long: if a tenth of the differences remains, in 1,000 steps to
                                       150 times the gradient with warm start, to 20 times without
            they always cancel         residuals may grow in proportion to the steps; their sum stays bounded
        A NaN or an infinity spreads to the whole matrix.

    Raises
        ValueError  for a rank below 1, a seed below 0, for integer arrays

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
        self.rank = whole_number("PowerSGD: rank", rank, at_least=1)
        self.warm_start = warm_start
        self.seed = whole_number("PowerSGD: seed", seed, at_least=0)
        self._q: Array | None = None

    def __repr__(self) -> str:
        return f"PowerSGD(rank={self.rank}, warm_start={self.warm_start}, seed={self.seed})"

    @property
    def is_stateful(self) -> bool:
        return self.warm_start

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        super().begin_run(seed, name, rank)
        self._q = None

    def encode(self, array: Array) -> Message:
        """P and Q of this array alone."""
        self.check(array.shape, array.dtype)
        if self.sends_whole(array.shape):
            numbers = array.reshape(-1)
        else:
            matrix = as_matrix(array)
            p = orthonormal(matrix @ self._first_q(matrix))
            self._q = matrix.T @ p
            numbers = np.concatenate([p.reshape(-1), self._q.reshape(-1)])
        return Message(np.frombuffer(numbers.tobytes(), np.uint8), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        data = message.data.copy()
        if self.sends_whole(message.shape):
            return data.view(message.dtype).reshape(message.shape)
        numbers = data.view(factor_type(message.dtype)).reshape(-1, self.rank)
        p, q = np.split(numbers, message.shape[:1])
        return (p @ q.T).astype(message.dtype, copy=False).reshape(message.shape)

    def add_up(self, array: Array, nodes: int, rank: int) -> Exchange:
        self.check(array.shape, array.dtype)
        if self.sends_whole(array.shape):
            total: Array = yield AllReduce(array)
            return Sum(total, lambda: np.zeros_like(array))
        matrix = as_matrix(array)
        p = orthonormal((yield AllReduce(matrix @ self._first_q(matrix))))
        own_q = matrix.T @ p
        q: Array = yield AllReduce(own_q)
        self._q = q.copy()  # the sum may be overwritten, or share memory with other parameters' sums

        def shaped(result: Array) -> Array:
            return result.astype(array.dtype, copy=False).reshape(array.shape)

        return Sum(shaped(p @ q.T), lambda: shaped(matrix - p @ own_q.T))

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        rows, columns = (shape[0], math.prod(shape[1:])) if shape else (1, 1)
        if self.sends_whole(shape):
            return rows * columns * np.dtype(dtype).itemsize
        return self.rank * (rows + columns) * factor_type(dtype).itemsize

    def sends_whole(self, shape: tuple[int, ...]) -> bool:
        """Whether arrays of this shape are sent uncompressed."""
        if len(shape) < 2:
            return True
        rows, columns = shape[0], math.prod(shape[1:])
        return self.rank * (rows + columns) >= rows * columns

    def _first_q(self, matrix: Array) -> Array:
        """The Q that the iteration starts from: the last one, but with new random numbers for columns of zeros."""
        draw = self._next_draw()
        if self.warm_start and self._q is not None and (is_kept := self._q.any(axis=0)).all():
            return self._q
        generator = self._common_choices(random.Purpose.POWER_ITERATION, self.seed, *draw)
        drawn = generator.standard_normal((matrix.shape[1], self.rank)).astype(matrix.dtype)
        return drawn if self._q is None or not self.warm_start else np.where(is_kept, self._q, drawn)


def factor_type(dtype: Any) -> np.dtype[Any]:
    """The dtype of P and Q: Q grows with the gradient's size and P with its square, which float16 cannot hold."""
    return np.result_type(dtype, np.float32)


def as_matrix(array: Array) -> Array:
    """The array as a matrix with shape[0] rows, in the dtype of P and Q."""
    return array.reshape(len(array), -1).astype(factor_type(array.dtype), copy=False)


def orthonormal(columns: Array) -> Array:
    """Make the columns orthogonal and of length 1 by the modified Gram-Schmidt process.

    A column that is a linear combination of the previous ones, up to rounding, becomes zero: the rank is lower.
    """
    result = columns.copy()
    tiny = np.finfo(result.dtype).eps * len(result)
    for i in range(result.shape[1]):
        column = result[:, i]
        before = np.linalg.norm(column)
        for _ in range(2):  # the second pass removes what rounding has left of the previous columns
            column -= result[:, :i] @ (result[:, :i].T @ column)
        length = np.linalg.norm(column)
        column *= 0 if length <= tiny * before else 1 / length
    return result
