"""A learning-rate schedule that follows what all nodes have done, where every node has a schedule of its own."""

from __future__ import annotations

from minidl.parallel.session import Session


def advance(session: Session, samples: int, updates: int) -> None:
    """Advance the schedule to `samples` samples and `steps` to `updates` updates of all nodes; never back."""
    session.advance_schedule(samples)
    session.steps = max(session.steps, updates)
