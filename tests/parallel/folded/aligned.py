"""Trains message by message and says how long the second step took that all ranks began at one time."""

from __future__ import annotations

from dataclasses import fields

from minidl import cluster, parallel
from minidl.parallel import Hybrid, Job, Session

BEGINS, ENDS = 2.0, 4.0
"""Virtual seconds: later than the first step, and than the second one."""


class Aligned(Hybrid):
    """A Hybrid whose ranks begin the second step together, when nothing is under way, and pause after it."""

    def update(self, session: Session) -> None:
        super().update(session)
        now = session.comm.now()
        if session.steps == 2:
            session.record("ended", now)
        left = (BEGINS, ENDS)[session.steps - 1] - now
        assert left > 0
        session.comm.compute(seconds=left / session.comm._owner.endpoint._core.factor)


def seconds_of_second_step(job: Job, strategy: Hybrid, nodes: int, on: cluster.Simulation) -> float:
    """As `train` with a trace measures it; the job has two minibatches."""
    given = {each.name: getattr(strategy, each.name) for each in fields(strategy) if each.init}
    report = parallel.train(job, Aligned(**given), nodes=nodes, on=on, timeout=1e9)
    return max(map(max, report.recorded["ended"])) - BEGINS
