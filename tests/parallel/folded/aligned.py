"""Trains message by message and says how long the second step took that all ranks began at one time."""

from __future__ import annotations

from dataclasses import fields

from minidl import cluster, parallel
from minidl.parallel import Hybrid, Job, Session

BEGINS = 2.0  # in virtual seconds, later than the first step ends


class Aligned(Hybrid):
    """A Hybrid whose ranks begin the second step together, when nothing is under way."""

    def update(self, session: Session) -> None:
        super().update(session)
        if session.steps == 1:
            left = BEGINS - session.comm.now()
            assert left > 0
            session.comm.compute(seconds=left * getattr(session.comm._owner.endpoint._core, "factor", 1) ** -1)
        elif session.steps == 2:
            session.record("ended", session.comm.now())


def seconds_of_second_step(job: Job, strategy: Hybrid, nodes: int, on: cluster.Simulation) -> float:
    """As `train` with a trace measures it; the job has two minibatches."""
    given = {each.name: getattr(strategy, each.name) for each in fields(strategy) if each.init}
    report = parallel.train(job, Aligned(**given), nodes=nodes, on=on, timeout=1e9)
    return max(map(max, report.recorded["ended"])) - BEGINS
