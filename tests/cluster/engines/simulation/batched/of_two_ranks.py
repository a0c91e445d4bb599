"""A simulation that plays the collectives of two ranks and more at once, for tests of the usual small sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from minidl import cluster
from minidl.cluster.engines.protocol import LaunchTerms, Program
from minidl.cluster.engines.simulation.batched import meeting
from minidl.cluster.engines.simulation.batched.plans import PLANS


@dataclass(frozen=True)
class AtOnce(cluster.Simulation):
    """As Simulation, for any number of ranks."""

    def run(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> cluster.Run:
        with mock.patch.dict(PLANS, {function: plan._replace(least=2) for function, plan in PLANS.items()}):
            return super().run(program, args, terms)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Inside, count the collectives "played" at once, the meetings "dissolved", and those "cut off" by a failure."""
    count: Counter[str] = Counter()
    results, dissolve, until = meeting._results, meeting.Meetings.dissolve, meeting.ClocksUntil.play_until

    def playing(*arguments: Any) -> Any:
        result = results(*arguments)
        count["played"] += 1
        return result

    def dissolving(*arguments: Any) -> None:
        count["dissolved"] += 1
        dissolve(*arguments)

    def cutting(*arguments: Any) -> None:
        count["cut off"] += 1
        until(*arguments)

    with (
        mock.patch.object(meeting, "_results", playing),
        mock.patch.object(meeting.Meetings, "dissolve", dissolving),
        mock.patch.object(meeting.ClocksUntil, "play_until", cutting),
    ):
        yield count
