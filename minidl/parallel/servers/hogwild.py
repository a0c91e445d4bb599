"""Hogwild: all nodes update one set of weights in shared memory, without waiting for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidl.arguments import flag
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
            gradient of the mean loss, at the weights as the others are changing them
            w -= lr gradient, in place: what another node writes to a weight between this node's reading and writing of
            it is lost

    Parameters
        locked   False: default; no node waits
                 True: nodes take turns at writing, so no update is lost, but nodes wait. The lock is a message that
                 travels round the nodes; the node that has it writes (round-robin, Langford et al.). Reading needs no
                 turn, so with p nodes of equal speed an update is p - 1 updates old

    Limits: one node is Serial. Where updates touch few weights, as with sparse data, the updates that others make while
    a gradient is computed hardly matter; `report.staleness` counts them.

    Notes
        batch_size is per gradient. The schedule counts the samples of all nodes.
        The nodes' parameters are views of the shared vector, so every optimizer works unchanged; its state (momentum)
        stays on the node. Batch-norm running statistics are those of node 0.
        Nodes must be able to share memory. A simulation interleaves them in the order of the virtual time, one whole
        update at a time, so no update is lost there.

    References
        Niu, Recht, Ré and Wright, HOGWILD!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent
        (arXiv:1106.5730), algorithm 1; locked: Langford, Smola and Zinkevich, Slow Learners are Fast (arXiv:0911.0491).
    """

    locked: bool = False
    is_asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        flag("Hogwild: locked", self.locked)

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
        for batch in session.batches_until_finished():
            _, began = counts.sum(axis=0)
            session.zero_grad()
            session.local_loss(batch).backward()
            session.clip_gradient()
            comm.now()  # in a simulation the others go on up to this moment
            ended = self._wait_for_turn(session)
            samples, updates = counts.sum(axis=0)
            if samples < session.samples_of_run:  # otherwise other nodes have ended the run in the meantime
                session.record("staleness", int(updates - began))
                comm.mark("update")
                session.optimizer.step()
                counts[comm.rank] += len(batch.x), 1
                samples = self._count(session, counts)
                self._keep(session, kept, min(samples // len(session.train), session.job.epochs - 1))
            session.finished = bool(samples >= session.samples_of_run)
            self._pass_turn(session, ended)
        comm.barrier()  # every node has written
        self._count(session, counts)
        if comm.rank == 0:
            self._keep(session, kept, session.job.epochs)

    @staticmethod
    def _count(session: Session, counts: Array) -> int:
        """Bring the schedule to the samples of all nodes so far, and return their number."""
        samples, updates = counts.sum(axis=0).tolist()
        session.advance_schedule(samples)
        session.steps = updates
        return int(samples)

    @staticmethod
    def _keep(session: Session, kept: Array, epochs: int) -> None:
        """Keep a snapshot of each epoch that has ended, unless another node has."""
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
    for parameter, view in vector.slices(session.parameters, shared):
        parameter.data = view
