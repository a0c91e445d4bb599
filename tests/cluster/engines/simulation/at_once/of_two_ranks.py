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
from minidl.cluster.engines.simulation.at_once import meeting


@dataclass(frozen=True)
class AtOnce(cluster.Simulation):
    """As Simulation, without the least number of ranks."""

    def run(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> cluster.Run:
        with mock.patch.object(meeting, "LEAST", 2):
            return super().run(program, args, terms)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Inside, count the collectives "played" at once, the meetings "dissolved", and the ranks "cut off" inside."""
    count: Counter[str] = Counter()
    played, meet, dissolve = meeting._played, meeting.Meetings._meet, meeting.Meetings.dissolve

    def playing(*arguments: Any) -> Any:
        result = played(*arguments)
        count["played"] += 1
        return result

    def meeting_others(*arguments: Any) -> None:
        count["cut off"] += 1
        meet(*arguments)
        count["cut off"] -= 1

    def dissolving(*arguments: Any) -> None:
        count["dissolved"] += 1
        dissolve(*arguments)

    with (
        mock.patch.object(meeting, "_played", playing),
        mock.patch.multiple(meeting.Meetings, _meet=meeting_others, dissolve=dissolving),
    ):
        yield count
