"""Quantized all-reduce: a ring in which every partial sum is compressed again before it is sent on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.cluster.collectives.partition import split
from minidl.compress.compressor import Compressor, Message
from minidl.compress.exchange import Exchange, Gather, RingShift, Sum
from minidl.compress.power_sgd import PowerSGD
from minidl.compress.wrapper import Wrapper
from minidl.kernels import Array


@dataclass
class QuantizedAllReduce(Wrapper):
    """Adds up compressed gradients in a ring instead of gathering them: fewer bytes, but an error at every hop.

        chunk i of the sum starts at node i + 1; p - 1 times:
            encode the chunk and send it to the right; decode the chunk from the left and add this node's share
        encode the finished chunk and send the message to all nodes, which decode the same

    Each of p nodes sends 2 (p - 1) messages of n / p numbers. Gathering sends p - 1 messages of n numbers, p / 2 times
    as many bytes.

    Parameters
        compressor  a quantizer or Half, for example. `ErrorFeedback` goes around the whole, not inside: each node then
                    keeps the errors of the chunks that it has encoded, p - 1 partial sums and one finished chunk

    Notes
        Error: every hop encodes a sum of more shares, which has a larger error. For an unbiased compressor with
        E |decode(encode(x)) - x|^2 <= w |x|^2, the expected squared error of a chunk is at most e(p), where

            e(0) = 0 and e(k) = (1 + w) e(k - 1) + w |sum of the first k shares|^2

        while that of gathering is at most w (|x_1|^2 + ... + |x_p|^2). For independent shares of equal size, e(p) grows
        as 1 + 2 + ... + p while w p is well below 1; for larger w the factor (1 + w) makes it exponential in p.
        Messages of linear compressors (PowerSGD) add up as they are, so there is no such growth.
        With `ErrorFeedback` around it, an unbiased compressor's residuals stay bounded, but their squares grow up to
        about (1 + w) / (1 - w) times from hop to hop: on many nodes, to many times the sum. Choose w p below 1, which
        for QSGD needs sqrt(d p) / 2 levels for buckets of d numbers, or a compressor that is biased, such as Sign.
        The chunks are sent when the sum is waited for, so nothing overlaps backward.

    Raises
        TypeError   if `compressor` is not a Compressor
        ValueError  if it adds up in a way of its own (PowerSGD), keeps its errors, or sends votes

    References
        The ring: Patarasuk and Yuan (JPDC 69(2), 2009). Gathering: Alistarh et al., QSGD (arXiv:1610.02132).

    Examples
        >>> from minidl import cluster, compress
        >>> def program(comm):
        ...     compressor = compress.QuantizedAllReduce(compress.Half("bf16"))
        ...     return compressor.begin_all_reduce(np.full(4, comm.rank + 0.5), comm)().tolist()
        >>> cluster.launch(program, nodes=2, on="simulation").results
        [[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]
    """

    compressor: Compressor

    def __post_init__(self) -> None:
        if not isinstance(self.compressor, Compressor):
            raise TypeError(f"QuantizedAllReduce wraps a compressor, such as QSGD(7), not {self.compressor!r}")
        self.check_is_no_vote()
        name = type(self.compressor).__name__
        if isinstance(self.compressor, (PowerSGD, QuantizedAllReduce)):
            raise ValueError(f"QuantizedAllReduce: {name} adds up in a way of its own: use it by itself")
        if self.compressor.keeps_errors:
            raise ValueError(
                f"QuantizedAllReduce: {name} keeps its errors, but here it encodes partial sums of changing sizes: "
                "put ErrorFeedback outside, as in ErrorFeedback(QuantizedAllReduce(Sign()))"
            )

    def contraction(self, size: int | None = None) -> QuantizedAllReduce | None:
        inner = self.compressor.contraction(size)
        return None if inner is None else QuantizedAllReduce(inner)

    def add_up(self, array: Array, nodes: int, rank: int) -> Exchange:
        chunks = split(array.reshape(-1), nodes)
        lengths = [self.message_bytes(chunk.shape, chunk.dtype) for chunk in chunks]
        encoded: list[tuple[int, Array, Message]] = []  # number, chunk, message: each chunk once
        at = (rank - 1) % nodes
        growing = chunks[at]
        for step in range(2, nodes + 1):
            encoded.append((at, growing, self.encode(growing)))
            at = (rank - step) % nodes
            data = yield RingShift(encoded[-1][-1].data, lengths[at])
            growing = self.decode(Message(data, chunks[at].shape, array.dtype)) + chunks[at]
        message = self.encode(growing)
        encoded.append((at, growing, message))
        known = [length for length in lengths if length is not None]
        finished = yield Gather(message.data, known if len(known) == nodes else None)
        decoded = [
            self.decode(Message(data, chunk.shape, array.dtype)) for data, chunk in zip(finished, chunks, strict=True)
        ]

        def left_out() -> Array:
            errors = {at: chunk - self.decode(message) for at, chunk, message in encoded}
            return np.concatenate([errors[i] for i in range(nodes)]).reshape(array.shape)

        return Sum(np.concatenate(decoded).reshape(array.shape), left_out)
