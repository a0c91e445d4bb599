"""Hogwild: all nodes update one set of weights in shared memory, and nobody waits for anybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidl.kernels import Array
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class Hogwild(Strategy):
    """SGD on p nodes that read and write the same weights without a lock.

        put the weights where all nodes see them
        on every node, for each minibatch of its own shard:
            gradient of the mean loss, at the weights as they are being changed by the others
            w -= lr * gradient, in place: what another node writes to a weight between this one's reading and
            writing of it is lost

    locked: nodes take turns at writing, and so lose nothing but the time that they wait. The lock is a message that
    goes round, since every engine has messages: who holds it writes (round-robin, Langford et al.). Reading needs no
    turn, so with p nodes of equal speed an update is p - 1 updates old.

    `batch_size` counts the samples of one gradient. The nodes' parameters are views of the shared vector, so that every
    optimizer works unchanged; its state (momentum) stays on the node. The schedule goes by the samples of all nodes.
    `report.staleness` counts the updates that others made while a gradient was computed; where updates touch few
    weights, as with sparse data, these hardly matter. One node is Serial. Batch-norm running statistics are taken from
    node 0. Nodes must be able to share memory; a simulation interleaves them in the order of the virtual time, one
    whole update at a time, so nothing is lost there.

    Source: Niu, Recht, Ré and Wright, HOGWILD!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent
    (arXiv:1106.5730), algorithm 1; locked: Langford, Smola and Zinkevich, Slow Learners are Fast (arXiv:0911.0491).
    """

    locked: bool = False
    is_asynchronous: ClassVar[bool] = True

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        dtypes = sorted({str(parameter.dtype) for parameter in job.build_model().parameters()})
        if len(dtypes) > 1:
            raise ValueError(
                f"Hogwild keeps all weights in one shared vector, but this model's are {' and '.join(dtypes)}: "
                "convert the model to one type"
            )

    def run(self, session: Session) -> None:
        comm = session.comm
        share_weights(session)
        counts = comm.shared_array("samples and updates of each node", (session.nodes, 2), np.int64)
        kept = comm.shared_array("epochs that have a snapshot", 1, np.int64)
        for batch in session.stream():
            _, began = counts.sum(axis=0)
            session.model.zero_grad()
            session.local_loss(batch).backward()
            session.clip_gradient()
            comm.now()  # in a simulation the others go on up to this moment
            ended = self._wait_for_turn(session)
            samples, updates = counts.sum(axis=0)
            if samples < session.total_samples:  # else the others have ended the run meanwhile
                session.record("staleness", int(updates - began))
                comm.mark("update")
                session.optimizer.step()
                counts[comm.rank] += len(batch.x), 1
                samples = self._count(session, counts)
                self._keep(session, kept, min(samples // len(session.train), session.job.epochs - 1))
            session.finished = bool(samples >= session.total_samples)
            self._pass_turn(session, ended)
        comm.barrier()  # all have written
        self._count(session, counts)
        if comm.rank == 0:
            self._keep(session, kept, session.job.epochs)

    @staticmethod
    def _count(session: Session, counts: Array) -> int:
        """The samples of all nodes so far; the schedule is brought there."""
        samples, updates = counts.sum(axis=0).tolist()
        session.advance_schedule(samples)
        session.steps = updates
        return int(samples)

    @staticmethod
    def _keep(session: Session, kept: Array, epochs: int) -> None:
        """Keep a snapshot of each epoch that is over, if no other node has."""
        for epoch in range(int(kept[0]) + 1, epochs + 1):
            kept[0] = epoch
            session.keep(epoch, session.weights())

    def _wait_for_turn(self, session: Session) -> int:
        """Wait until this node may write; returns how many nodes have ended by then."""
        comm = session.comm
        is_first = comm.rank == 0 and session.steps == 0
        return 0 if not self.locked or session.nodes == 1 or is_first else comm.recv((comm.rank - 1) % session.nodes)

    def _pass_turn(self, session: Session, ended: int) -> None:
        if self.locked and session.nodes > 1 and (ended := ended + session.finished) < session.nodes:
            session.comm.send(ended, (session.comm.rank + 1) % session.nodes)


def share_weights(session: Session) -> None:
    """Put the weights into memory that all nodes share; from here on this node's parameters are views of it."""
    weights = session.weights()
    shared = session.comm.shared_array("weights", len(weights), weights.dtype)
    if session.comm.rank == 0:
        shared[:] = weights
    session.comm.barrier()
    for parameter, part in vector.parts(session.parameters, shared):
        parameter.data = part
