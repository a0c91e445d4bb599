"""Asynchronous gossip (AD-PSGD): pairs of nodes average their weights, and no node waits for a slow one.

The nodes form two halves. Active nodes ask, passive nodes answer. An active node has only passive neighbours and the
other way round, so no cycle of nodes can wait for each other.

    active:   g = gradient(x);   if the answer has come: x = x + answer
              x = x - lr g;      if no question is open: send x to a random neighbour
    passive:  g = gradient(x);   for each question y that has come: d = (x - y) / 2, x = x - d, answer d
              x = x - lr g

Both nodes of a pair move by the same d, so the mean of all nodes' weights is kept. Between question and answer the
active node keeps computing. A passive node answers in the background while it computes; the gradient in progress is
that of the weights from before. So a slow neighbour costs neither time nor averages.

Updates are counted over all nodes, as in the paper: the run ends after `epochs * n` samples, of which a fast node
processes more. No node is the counter: every question and every answer carries the newest known count of each node
(`Counts`), and the receiver keeps the larger of every two counts. A node stops when its total reaches the end of the
run. An active node then sends its neighbours None instead of a question; a passive one answers until all of its
neighbours have. With `on_failure="continue"` a node goes on without neighbours that fail; the others process the
samples that these leave.

References
    Lian et al., Asynchronous decentralized parallel stochastic gradient descent (arXiv:1710.06952), algorithm 1 and
    section 4 (why the graph has to be bipartite).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from minidl.cluster.comm import Communicator
from minidl.cluster.diagnosis.errors import RankFailed
from minidl.cluster.work import Work
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.run.session import Session
from minidl.random import Purpose, stream


def average_in_pairs(session: Session, is_active: bool, neighbours: list[int]) -> None:
    """Train on this node; `neighbours` are nodes of the other half."""
    counts = Counts(session)
    pairs = session.comm.split(0)
    side = (Active if is_active else Passive)(session, pairs, neighbours, counts)
    for batch in session.batches_until_finished():
        session.zero_grad()
        session.local_loss(batch).backward()
        session.comm.now()  # in a simulation the others go on up to this moment
        side.receive()
        if not session.finished:  # otherwise other nodes have ended the run in the meantime
            side.update(len(batch.x))
    side.finish()
    session.record("samples", int(counts.rows[session.comm.rank, 0]))
    session.processed(counts.samples, session.weights)


class Counts:
    """The newest known number of samples and updates of each node; only that node adds to its row."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.rows: NDArray[np.int64] = np.zeros((session.nodes, 2), np.int64)

    def add(self, samples: int) -> None:
        """Count one more update of this node, with a gradient of `samples` samples."""
        self.rows[self.session.comm.rank] += samples, 1

    def merge(self, rows: NDArray[np.int64]) -> None:
        """Merge the counts that another node has sent. Counts only grow: the larger of two is the newer."""
        np.maximum(self.rows, rows, out=self.rows)

    @property
    def samples(self) -> int:
        """Samples of all nodes, by the newest known counts."""
        return int(self.rows[:, 0].sum())

    def apply(self) -> None:
        """Bring this node's schedule, snapshots and `finished` to the known counts of all nodes."""
        session = self.session
        samples, updates = self.rows.sum(axis=0).tolist()
        session.advance_schedule(samples)
        session.steps = max(session.steps, updates)
        session.finished = samples >= session.samples_of_run
        if not session.finished:  # the last snapshot is that of the end, after the last average
            session.processed(samples, session.weights)


class Active:
    """Asks one neighbour at a time."""

    def __init__(self, session: Session, pairs: Communicator, neighbours: list[int], counts: Counts) -> None:
        self.session, self.pairs, self.neighbours, self.counts = session, pairs, neighbours, counts
        self.rng = stream(Purpose.NEIGHBOUR, session.job.seed, session.comm.rank)
        self.open: tuple[int, Work, Work] | None = None  # the neighbour asked, the question, the answer

    def receive(self) -> None:
        """Apply the answer if it has arrived."""
        if self.open is not None and self.open[-1].is_completed():
            self._take(*self.open)
        self.counts.apply()

    def update(self, samples: int) -> None:
        """Make an update; then ask a random neighbour if no answer is awaited."""
        self.session.update(samples=self.counts.samples + samples)
        self.counts.add(samples)
        self.counts.apply()
        if self.open is None and self.neighbours:
            neighbour = self.neighbours[self.rng.integers(len(self.neighbours))]
            with self._until_failed(neighbour):
                question = self.pairs.isend((self.session.weights(), self.counts.rows), neighbour)
                self.open = neighbour, question, self.pairs.irecv(neighbour)

    def finish(self) -> None:
        """Apply the last answer, and notify the neighbours that no question follows."""
        if self.open is not None:
            self._take(*self.open)
        for neighbour in list(self.neighbours):
            with self._until_failed(neighbour):
                self.pairs.send((None, self.counts.rows), neighbour)

    def _take(self, neighbour: int, question: Work, answer: Work) -> None:
        self.open = None
        with self._until_failed(neighbour):
            move, rows = answer.wait()
            question.wait()
            self.session.record("disagreement", vector.norm(move) / sqrt(len(move)))
            self.session.set_weights(self.session.weights() + move)
            self.counts.merge(rows)

    @contextlib.contextmanager
    def _until_failed(self, neighbour: int) -> Iterator[None]:
        """Inside, a failure of the neighbour ends the block, and the node goes on without this neighbour."""
        try:
            yield
        except RankFailed as error:
            if error.rank != neighbour:
                raise
            self.neighbours.remove(neighbour)


class Passive:
    """Answers every question, in the background.

    The node's weights are `self.weights`; the model has a copy, with which the gradient in progress is computed. The
    lock protects the weights and the counts. No communicator call is made under it, since in a simulation such a call
    lets other tasks of this thread run.
    """

    def __init__(self, session: Session, pairs: Communicator, neighbours: list[int], counts: Counts) -> None:
        self.session, self.counts = session, counts
        self.weights = session.weights()
        self.lock = threading.Lock()
        self.answering = pairs.background(partial(self._answer, set(neighbours)))

    def receive(self) -> None:
        """Take over the averaged weights and the counts."""
        if self.answering.is_completed():
            self.answering.wait()  # raises the error that has ended it
        self._load()
        self.counts.apply()

    def update(self, samples: int) -> None:
        """Make an update of the present weights."""
        with self.lock:
            self.session.set_weights(self.weights)
            self.session.update(samples=self.counts.samples + samples)
            self.weights = self.session.weights()
            self.counts.add(samples)
        self.counts.apply()

    def finish(self) -> None:
        """Return when all neighbours have finished."""
        self.answering.wait()
        self._load()

    def _load(self) -> None:
        with self.lock:
            self.session.set_weights(self.weights)

    def _answer(self, askers: set[int], pairs: Communicator) -> None:
        """Answer until all neighbours have finished or failed."""
        answers: dict[int, Work] = {}  # on their way
        while askers:
            try:
                theirs, rows = pairs.recv(askers)
            except RankFailed as error:
                if error.rank not in askers:
                    raise
                askers.discard(error.rank)
                continue
            asker = pairs.last_source
            with self.lock:
                self.counts.merge(rows)
                newest = self.counts.rows.copy()
                if theirs is not None:
                    move = (self.weights - theirs) / 2
                    self.weights = self.weights - move
            if theirs is None:
                askers.discard(asker)
            else:
                with contextlib.suppress(RankFailed):  # it asks no more then
                    answers[asker] = pairs.isend((move, newest), asker)
        for answer in answers.values():
            with contextlib.suppress(RankFailed):
                answer.wait()
