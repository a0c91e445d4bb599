"""CodingTime: charges the time of encoding and decoding, which a simulation otherwise leaves out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from minidl.arguments import real_number
from minidl.compress.compressor import Compressor
from minidl.compress.exchange import Compute, Exchange, Sum
from minidl.compress.wrapper import Wrapper
from minidl.kernels import Array


@dataclass
class CodingTime(Wrapper):
    """Charges simulated time for a compressor's work; messages and sums are those of the compressor.

    In a simulation only messages and the kernels of forward, backward and update take time; a compressor takes none.
    With CodingTime, a comparison between compressors contains what they cost.

    Parameters
        compressor      goes inside, wrappers such as `ErrorFeedback` included
        encode_seconds  per number of the gradient, before its first message is sent
        decode_seconds  per number of the gradient, after its last message has arrived. Where all nodes' messages are
                        gathered, each node decodes them all: the seconds of all messages together

    Notes
        The seconds are charged by `comm.compute`, labelled "encode" and "decode", and do not depend on the speed of the
        `cluster.Node`. They delay the rest of backward, whose communication may go on meanwhile.
        On processes coding takes its real time, and these seconds come on top: use CodingTime in simulations.

    Raises
        TypeError   if `compressor` is not a Compressor
        ValueError  for negative or infinite seconds

    Examples
        >>> import numpy as np
        >>> from minidl import cluster, compress
        >>> def program(comm):
        ...     compressor = compress.CodingTime(compress.Sign(), encode_seconds=2.0, decode_seconds=1.0)
        ...     compressor.begin_all_reduce(np.ones(10), comm)()
        ...     return round(comm.now())
        >>> cluster.launch(program, nodes=2, on="simulation").results
        [30, 30]
    """

    compressor: Compressor
    encode_seconds: float = 0.0
    decode_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.compressor, Compressor):
            raise TypeError(f"CodingTime wraps a compressor, such as TopK(0.01), not {self.compressor!r}")
        for name in ("encode_seconds", "decode_seconds"):
            real_number(f"CodingTime: {name}", getattr(self, name), at_least=0, below=math.inf)

    def add_up(self, array: Array, nodes: int, rank: int) -> Exchange:
        yield Compute(self.encode_seconds * array.size, "encode")
        result: Sum = yield from self.compressor.add_up(array, nodes, rank)
        yield Compute(self.decode_seconds * array.size, "decode")
        return result
