"""A learning-rate schedule that follows the updates of all nodes, where every node has a schedule of its own."""

from __future__ import annotations

from minidl.parallel.session import Session


def advance(session: Session, updates: int) -> None:
    """Bring the session's schedule and its `steps` to so many updates of all nodes; never back."""
    for _ in range(updates - session.steps):
        if session.schedule is not None:
            session.schedule.step()
    session.steps = max(session.steps, updates)
