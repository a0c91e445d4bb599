"""PowerSGD: a gradient matrix as the product of two thin ones, which the nodes can add up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.kernels import Array


class PowerSGD(Compressor):
    """One step of the power iteration a gradient, begun where the last one ended: M becomes P Q^T of rank r.

        P = all-reduced M Q          (rows x r)
        P = its columns made orthonormal
        Q = all-reduced M^T P        (columns x r), kept for the next gradient
        the sum of the nodes' M is about P Q^T

    Both sums are sums of small matrices, so an ordinary all-reduce does: the bytes do not grow with the nodes, and
    nothing is lost by adding. A weight of shape (rows, ...) is read as a matrix of that many rows. Vectors, and
    matrices of which P and Q would not be smaller, are sent as they are.

    rank: r. Exact for matrices of at most that rank, from the second on of the same column space. Biased: made for
    `ErrorFeedback`. A NaN or an infinity spreads to the whole matrix.
    warm_start: False begins each time from the same random Q instead. seed: of that Q, which all nodes share.
    Message: P and Q in the array's dtype, r (rows + columns) numbers; what a node sends in an all-reduce is two sums of
    these.
    Source: Vogels et al., PowerSGD (arXiv:1905.13727), algorithm 1.

    >>> c = PowerSGD(rank=1)
    >>> x = np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 1.0, -1.0])
    >>> message = c.encode(x)
    >>> message.nbytes, x.nbytes, bool(np.allclose(c.decode(message), x))
    (56, 96, True)

    Errors: ValueError for a rank below 1, a seed below 0, for integers.
    """

    def __init__(self, rank: int, warm_start: bool = True, seed: int = 0) -> None:
        if not (isinstance(rank, int) and rank >= 1):
            raise ValueError(f"PowerSGD: rank must be a whole number of at least 1, got {rank!r}")
        if not (isinstance(seed, int) and seed >= 0):
            raise ValueError(f"PowerSGD: seed must be a whole number of at least 0, got {seed!r}")
        self.rank, self.warm_start, self.seed = rank, warm_start, seed
        self._q: Array | None = None

    def __repr__(self) -> str:
        return f"PowerSGD(rank={self.rank}, warm_start={self.warm_start}, seed={self.seed})"

    @property
    def encodes_jointly(self) -> bool:
        return True

    @property
    def is_stateful(self) -> bool:
        return self.warm_start

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

    def begin_all_reduce(self, array: Array, comm: Communicator) -> Callable[[], Array]:
        if self.sends_whole(array.shape):
            return comm.all_reduce(array.copy(), async_op=True, label="PowerSGD").wait
        matrix = array.reshape(len(array), -1)
        adding_p = comm.all_reduce(matrix @ self._first_q(matrix), async_op=True, label="PowerSGD P")

        def total() -> Array:
            p = orthonormal(adding_p.wait())
            q = comm.all_reduce(matrix.T @ p, label="PowerSGD Q")
            self._q = q
            return (p @ q.T).reshape(array.shape)

        return total

    def sends_whole(self, shape: tuple[int, ...]) -> bool:
        if len(shape) < 2:
            return True
        rows, columns = shape[0], int(np.prod(shape[1:]))
        return self.rank * (rows + columns) >= rows * columns

    def _first_q(self, matrix: Array) -> Array:
        """The last Q, its columns of zeros drawn anew: they would remain zero for ever."""
        columns = matrix.shape[1]
        draws = np.random.default_rng((self.seed, *matrix.shape)).standard_normal((columns, self.rank))
        if self._q is None or not self.warm_start:
            return draws.astype(matrix.dtype)
        return np.where(self._q.any(axis=0), self._q, draws.astype(matrix.dtype))


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
