"""Gossip: every node has a model of its own, and averages it with its neighbours only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from minidl.arguments import flag, one_of
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.kernels import Array
from minidl.parallel.averaging import mixing
from minidl.parallel.averaging.mixing import Matrix
from minidl.parallel.averaging.pairwise_averaging import average_in_pairs
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy
from minidl.random import Purpose, stream

CHANGING = ("random", "exponential")  # topologies with another matrix in every step


@dataclass(frozen=True)
class Gossip(Strategy):
    """D-PSGD: nodes average their weights with their neighbours' in every step; no server, no all-reduce.

        give every node i the same weights x_i
        for each minibatch, on every node i:
            g_i = gradient of node i's share of the mean loss, at x_i
            meanwhile, exchange x_i with the neighbours
            x_i = sum over j of W[i, j] x_j
            step the optimizer from there, with g_i

    Parameters
        topology      which nodes are neighbours, in the matrices of `mixing.py`
                      "ring"     default: the node before and the node after
                      "torus"    a grid, as square as possible, with its edges joined
                      "full"     all nodes; one all-reduce
                      "random"   new pairs in every step, the same shuffle on all nodes
                      "exponential"   the node 1, 2, 4, ... ranks before, in turn; one message per step, and the mean of
                                 all nodes after lg n steps if n is a power of two
                      "none"     no neighbours: every node trains alone
                      W          a matrix whose rows and columns sum to 1
        asynchronous  False: all nodes take their steps together.
                      True: AD-PSGD. A node averages with one random neighbour after another while it computes, and
                      never waits for a slow one: see `pairwise_averaging.py`.
        algorithm     all-reduce of topology "full", as in `comm.all_reduce`; "ordered": the same bits on all engines

    The mean of all nodes' weights is the model that is evaluated.
    Conserved: averaging keeps this mean. A step moves it as plain SGD does: by lr times the minibatch gradient, of
    which each node computes its share at its own weights.
    Rate: each mixing by a symmetric W multiplies the nodes' distance to their mean by at most 1 - gap
    (`mixing.spectral_gap`); for any other W, 1 - gap is the rate in the long run.
    Limits: one node is Serial.

    Notes
        On the ring a node sends two messages per step, for any number of nodes.
        Momentum stays on its node. Batch-norm running statistics are those of node 0.
        batch_size is global. With asynchronous=True it is per gradient. In such a run:
        - The run ends after `epochs * n` samples of all nodes together (n: size of the training set), so with one slow
          node the others process more, and the time is that of the summed speed. The schedule counts these samples.
        - The counts travel with the averages, so a node learns of the end with a delay: a few updates per node more,
          for any length of the run.
        - A node ends an epoch when the count that it knows reaches the epoch's end; the history evaluates the mean of
          the nodes' weights at these moments.
        - With `on_failure="continue"`, the surviving nodes finish the run.

    References
        Lian et al. (arXiv:1705.09056), algorithm 1; Lian et al. (arXiv:1710.06952) for the asynchronous variant.
    """

    topology: str | Sequence[Sequence[float]] = "ring"
    asynchronous: bool = False
    algorithm: AllReduceAlgorithm = "auto"

    def __post_init__(self) -> None:
        self.check_algorithm()
        if not isinstance(self.topology, str):
            if self.asynchronous:
                raise ValueError("Gossip: asynchronous nodes average in pairs, not by a matrix: name a topology")
            w = mixing.check(self.topology)
            object.__setattr__(self, "topology", tuple(map(tuple, w.tolist())))  # so that settings can be compared
        else:
            one_of("Gossip: topology", self.topology, (*mixing.TOPOLOGIES, *CHANGING), hint="or give a matrix")
        if self.asynchronous and self.topology == "none":
            raise ValueError(
                "Gossip: asynchronous nodes count their updates by the messages of the averages, and topology 'none' "
                "has no messages: use 'ring', or Gossip('none') for nodes that train alone"
            )
        if self.asynchronous and self.topology == "exponential":
            raise ValueError(
                "Gossip: in an asynchronous average both nodes of a pair send, and topology 'exponential' has pairs in "
                "which one sends: use 'random' or 'ring'"
            )
        object.__setattr__(self, "is_asynchronous", flag("Gossip: asynchronous", self.asynchronous))
        object.__setattr__(self, "resumes_from", "" if self.asynchronous else "mean")

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        w = self.mixing_matrix(nodes)
        if len(w) != nodes:
            raise ValueError(f"Gossip: the mixing matrix is for {len(w)} nodes, the run has {nodes}")

    def mixing_matrix(self, nodes: int, step: int = 0, seed: int = 0) -> Matrix:
        """W of that step; only topologies "random" and "exponential" have another one in every step."""
        if not isinstance(self.topology, str):
            return np.array(self.topology)
        return _mixing_matrix(self.topology, nodes, *((step, seed) if self.topology in CHANGING else (0, 0)))

    def run(self, session: Session) -> None:
        if self.asynchronous:
            average_in_pairs(session, *mixing.opposites(str(self.topology), session.nodes)[session.comm.rank])
            return
        for batch in session.local_batches():
            x = session.weights()
            mixed = self._exchange(session, x)
            session.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a share may be empty
                (session.loss(batch) * session.nodes).backward()  # the mean of these is that of the whole minibatch
            session.set_weights(mixed())
            session.update()

    def _exchange(self, session: Session, x: Array) -> Callable[[], Array]:
        """Begin to exchange x with the neighbours; return a function that waits for theirs and returns the mean."""
        comm, w = session.comm, self.mixing_matrix(session.nodes, session.steps, session.job.seed)
        if self.topology == "full":
            return comm.all_reduce(x.copy(), op="mean", algorithm=self.algorithm, async_op=True).wait
        weights = dict(enumerate(w[comm.rank].tolist()))
        receives = {j: comm.irecv(j) for j, weight in weights.items() if weight and j != comm.rank}
        sends = [comm.isend(x, j) for j in np.flatnonzero(w[:, comm.rank]).tolist() if j != comm.rank]

        def mixed() -> Array:
            others = {comm.rank: x} | {j: receive.wait() for j, receive in receives.items()}
            for send in sends:
                send.wait()
            mean: Array = sum((weights[j] * others[j] for j in sorted(others)), np.zeros_like(x))
            session.record("disagreement", vector.norm(x - mean) / sqrt(len(x)))
            return mean

        return mixed


@lru_cache(2)
def _mixing_matrix(topology: str, nodes: int, step: int, seed: int) -> Matrix:
    """Made once for all simulated nodes: each of 1,024 would take 10 ms for its own."""
    if topology == "random":
        w = mixing.matching(nodes, stream(Purpose.MATCHING, seed, step))
    elif topology == "exponential":
        w = mixing.exponential(nodes, step)
    else:
        w = mixing.matrix(mixing.TOPOLOGIES[topology](nodes))
    w.flags.writeable = False
    return w
