"""Asynchronous gossip: pairs of nodes average their weights whenever it suits them; nobody waits for a slow one.

The nodes are split into two halves. The active ones ask, the passive ones answer; an active node has only passive
neighbours and the other way round, so that no circle of nodes can wait for each other.

    active:   x = x - lr gradient(x);   if the answer has come: x = x + answer
              if no question is open: send x to a random neighbour
    passive:  x = x - lr gradient(x);   for each question y that has come: d = (x - y) / 2, x = x - d, answer d

Both ends of a pair move by the same d, so the mean of all nodes is kept; with nothing computed in between, both arrive
at the mean of the two. Between question and answer the active node goes on computing: a slow neighbour costs it
averages, not time. (Where the paper has a thread that answers at once, here a node answers between two gradients.)

Each node makes `epochs` passes over its own shard, by whose steps its schedule goes.
An active node that is done says so to its neighbours; a passive one that is done answers on, its weights still moving,
until all its neighbours are. A pass is judged by the mean of the weights that each node had at its end.

Source: Lian et al., Asynchronous decentralized parallel stochastic gradient descent (arXiv:1710.06952), algorithm 1 and
section 4 (why the graph has to be bipartite).
"""

from __future__ import annotations

import numpy as np

from minidl.cluster import ANY
from minidl.cluster.messages import Work
from minidl.parallel.session import Session


def average_in_pairs(session: Session, is_active: bool, neighbours: list[int]) -> None:
    """What each node does; its neighbours are all of the other half."""
    side = Active(session, neighbours) if is_active else Passive(session, neighbours)
    for batch in session.passes():
        session.model.zero_grad()
        session.local_loss(batch).backward()
        session.update()
        side.average()
    side.finish()


class Active:
    """Asks one neighbour at a time."""

    def __init__(self, session: Session, neighbours: list[int]) -> None:
        self.session, self.comm, self.neighbours = session, session.comm, neighbours
        self.open: tuple[Work, Work] | None = None  # the question on its way, the answer that is awaited

    def average(self) -> None:
        """Take the answer if it has come; if none is awaited, ask."""
        if self.open is not None and self.open[1].is_completed():
            self._take(*self.open)
        if self.open is None and self.neighbours:
            neighbour = self.neighbours[self.comm.rng.integers(len(self.neighbours))]
            self.open = self.comm.isend(self.session.weights(), neighbour), self.comm.irecv(neighbour)

    def finish(self) -> None:
        """Take the last answer, and tell the neighbours."""
        if self.open is not None:
            self._take(*self.open)
        for neighbour in self.neighbours:
            self.comm.send(None, neighbour)

    def _take(self, question: Work, answer: Work) -> None:
        move = answer.wait()
        question.wait()
        self.open = None
        self.session.record("disagreement", float(np.sqrt(np.mean(move**2))))
        self.session.set_weights(self.session.weights() + move)


class Passive:
    """Answers whoever asks."""

    def __init__(self, session: Session, neighbours: list[int]) -> None:
        self.session, self.comm = session, session.comm
        self.askers = len(neighbours)  # that are not done
        self.answers: dict[int, Work] = {}  # on their way
        self.question = self.comm.irecv(ANY) if neighbours else None

    def average(self) -> None:
        """Answer the questions that have come."""
        while self.question is not None and self.question.is_completed():
            self._answer(self.question)

    def finish(self) -> None:
        """Answer until all neighbours are done."""
        while self.question is not None:
            self._answer(self.question)
        for answer in self.answers.values():
            answer.wait()

    def _answer(self, question: Work) -> None:
        theirs = question.wait()
        asker = self.comm.last_source
        if theirs is None:
            self.askers -= 1
        else:
            ours = self.session.weights()
            move = (ours - theirs) / 2
            self.session.set_weights(ours - move)
            self.answers[asker] = self.comm.isend(move, asker)
        self.question = self.comm.irecv(ANY) if self.askers else None
