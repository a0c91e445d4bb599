"""Partial all-reduce: the sum over the ranks that are ready, begun by one of them; the others contribute zeros.

    every rank, in the background, in rounds:
        wait until this round is active:
            this rank is ready, and may begin the round; or a neighbour's message activates it
        send every neighbour an empty message, and receive one from every neighbour
        all-reduce: this rank's gradient if it is ready, else zeros

No rank coordinates. Neighbours are those of a hypercube: ranks whose numbers differ in one bit. The activation spreads
along its edges, whether one rank begins or several. Every rank sends at most ceil(log2(p)) messages per round. A rank
that is computing participates in the background.

References
    Li, Ben-Nun, Di Girolamo, Alistarh and Hoefler, Taming unbalanced training workloads in deep learning with
    partial collective operations (PPoPP 2020, arXiv:1908.04207), section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.cluster.work import Work
from minidl.kernels import Array

Initiator = Callable[[int], int]


class Round(NamedTuple):
    """One round's sums over the ranks: `total`, of gradients times their weights; of samples, weights and gradients.

    The sum of 16-bit gradients is in float32.
    """

    total: Array
    samples: int
    counted: float
    gradients: int


class PartialAllReduce:
    """One rank's side of the rounds, which end when their gradients cover at least `limit` samples.

    A rank that is not ready blocks no round; its gradient goes into the next round that begins after it is ready. It
    keeps the sums of the rounds that it misses until it contributes.

    Parameters
        comm        a communicator that is used for nothing else
        limit       number of samples, over all rounds, at which the rounds end
        like        an array of the gradient's size and dtype
        initiator   maps a round's number to the rank that begins it once it is ready; None: any rank that is ready
        algorithm   of the all-reduces

    >>> import numpy as np
    >>> from minidl import cluster
    >>> def program(comm):
    ...     partial_sums = PartialAllReduce(comm.split(0), limit=3, like=np.zeros(1))
    ...     comm.compute(seconds=1.0 + comm.rank)
    ...     rounds, is_used = partial_sums.contribute(np.full(1, comm.rank + 1.0), samples=1)
    ...     return [float(one.total[0]) for one in rounds]
    >>> cluster.launch(program, nodes=3, on="simulation").results
    [[1.0], [1.0, 2.0], [1.0, 2.0, 3.0]]
    """

    def __init__(
        self,
        comm: Communicator,
        limit: int,
        like: Array,
        initiator: Initiator | None = None,
        algorithm: AllReduceAlgorithm = "auto",
    ) -> None:
        self.comm, self.limit, self.initiator, self.algorithm = comm, limit, initiator, algorithm
        bits = range((comm.size - 1).bit_length())
        self.neighbours = {comm.rank ^ 1 << bit for bit in bits if comm.rank ^ 1 << bit < comm.size}
        self.rounds, self.samples = 0, 0  # finished rounds, and their samples
        # Gradient times weight, samples, weight, number of gradients. At least float32: float16 ends at 65,504, and
        # does not have all whole numbers above 2,048
        self._contribution = np.zeros(len(like) + 3, np.result_type(like.dtype, np.float32))
        self._work: Work | None = None
        self._begin()

    def contribute(self, gradient: Array, samples: int, counted: float | None = None) -> tuple[list[Round], bool]:
        """Wait until a round contains this gradient, or all rounds have ended.

        Return the rounds since the last call, and whether one contains it. counted: its weight; None: the samples.
        """
        counted = samples if counted is None else counted
        self._contribution[:-3], self._contribution[-3:] = gradient, (samples, counted, 1)
        self._contribution[:-3] *= counted
        self.comm.send(None, self.comm.rank)
        work = self._work or self.comm.background(self._run_rounds)
        rounds, is_used = work.wait()
        if not is_used:
            self.comm.recv(self.comm.rank)
        if self.samples < self.limit:
            self._begin()
        return rounds, is_used

    def _begin(self) -> None:
        """Participate in rounds, in the background, until one contains this rank's gradient or the last one is over."""
        if self.neighbours:  # a single rank begins its rounds itself, when it is ready
            self._work = self.comm.background(self._run_rounds)

    def _run_rounds(self, comm: Communicator) -> tuple[list[Round], bool]:
        rounds: list[Round] = []
        is_ready = False
        while self.samples < self.limit and not is_ready:
            is_ready = self._activate(comm)
            total = self._contribution.copy() if is_ready else np.zeros_like(self._contribution)
            comm.all_reduce(total, algorithm=self.algorithm)
            rounds.append(Round(total[:-3], int(total[-3]), float(total[-2]), int(total[-1])))
            self.rounds += 1
            self.samples += rounds[-1].samples
        return rounds, is_ready

    def _activate(self, comm: Communicator) -> bool:
        """Wait until all neighbours know that the round is active; return whether this rank is ready by then."""
        silent, is_ready, is_active = set(self.neighbours), False, False
        while silent or not is_active:
            comm.recv(silent if is_ready else silent | {comm.rank})
            if comm.last_source == comm.rank:
                is_ready = True
            else:
                silent.discard(comm.last_source)
            may_begin = self.initiator is None or self.initiator(self.rounds) == comm.rank
            if not is_active and (comm.last_source != comm.rank or may_begin):
                is_active = True
                for neighbour in self.neighbours:
                    comm.send(None, neighbour)
        return is_ready
