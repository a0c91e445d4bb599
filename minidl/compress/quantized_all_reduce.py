"""Quantized all-reduce: round the ring, with every partial sum compressed anew before it is sent on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.cluster.partition import split
from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.compress.wrapper import Wrapper
from minidl.kernels import Array


@dataclass
class QuantizedAllReduce(Wrapper):
    """A compressor whose messages are not gathered, but added up in a ring: fewer bytes, and an error at every hop.

        chunk i of the sum begins at node i + 1; p - 1 times:
            send the chunk, encoded; decode the one that comes, and add this node's share
        encode the finished chunk, and hand the message round: all nodes decode the same

    Of p nodes each sends 2 (p - 1) messages of n / p numbers; gathering sends p - 1 of n, p / 2 times as many bytes.
    But the sum of k shares is larger than one of them, and so is the error of encoding it: of independent shares the
    squared error grows as 1 + 2 + ... + p, where that of gathering grows as p. With an unbiased compressor for which
    E |decode(encode(x)) - x|^2 <= w |x|^2, the expected squared error of a chunk is at most

        e(p + 1), where e(1) = 0 and e(k + 1) = (1 + w) e(k) + w |sum of the first k shares|^2

    and that of gathering w (|x_1|^2 + ... + |x_p|^2). Linear compressors (PowerSGD) have no such growth: their messages
    add up as they are.

    compressor: a quantizer or Half, say. `ErrorFeedback` goes round the whole, not inside. The chunks are sent when the
    sum is waited for: nothing travels beside backward.
    Source: the ring is that of Patarasuk and Yuan (JPDC 69(2), 2009); gathering: Alistarh et al., QSGD
    (arXiv:1610.02132).

    >>> from minidl import cluster, compress
    >>> def program(comm):
    ...     compressor = compress.QuantizedAllReduce(compress.Half("bf16"))
    ...     return compressor.begin_all_reduce(np.full(4, comm.rank + 0.5), comm)().tolist()
    >>> cluster.launch(program, nodes=2, on="simulation").results
    [[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]

    Errors: TypeError for what is no compressor; ValueError for one that encodes jointly or keeps its errors.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.compressor, Compressor):
            raise TypeError(f"QuantizedAllReduce wraps a compressor, such as QSGD(7), not {self.compressor!r}")
        self.check_is_no_vote()
        name = type(self.compressor).__name__
        if self.compressor.encodes_jointly:
            raise ValueError(f"QuantizedAllReduce: {name} adds up in a way of its own: use it by itself")
        if self.compressor.keeps_errors:
            raise ValueError(
                f"QuantizedAllReduce: {name} keeps its errors, but here it encodes partial sums of changing sizes: "
                "put ErrorFeedback outside, as in ErrorFeedback(QuantizedAllReduce(QSGD(7)))"
            )

    @property
    def encodes_jointly(self) -> bool:
        return True

    def begin_all_reduce(self, array: Array, comm: Communicator) -> Callable[[], Array]:
        def total() -> Array:
            p, me = comm.size, comm.rank
            right, left = (me + 1) % p, (me - 1) % p
            shares = split(array.reshape(-1), p)
            growing = shares[left]
            for step in range(2, p + 1):
                coming = shares[(me - step) % p]
                data = comm.sendrecv(self.encode(growing).data, right, left)
                growing = self.decode(Message(data, coming.shape, coming.dtype)) + coming
            message = self.encode(growing)
            finished = comm.all_gather(message.data, label="QuantizedAllReduce")
            chunks = [
                self.decode(Message(data, share.shape, share.dtype))
                for data, share in zip(finished, shares, strict=True)
            ]
            return np.concatenate(chunks).reshape(array.shape)

        return total
