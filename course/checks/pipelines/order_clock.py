"""Plays the actions of all stages: when each action begins and ends, and which stages wait for ever.

It is the oracle of the checks of chapter 11, written apart from `minidl.parallel.pipeline` (a test compares the two).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Lines = Sequence[Sequence[str]]
"""The actions of every stage, such as [["F0", "B0", "U0"], ["F0", "B0", "U0"]]."""

Source = tuple[int, str]
"""A stage and an action of it."""


@dataclass(frozen=True)
class Played:
    """What happened.

    Attributes
        ends       for each stage and each action that it has done: the time of its end
        seconds    time at which the last action ended
        waiting    for each stage that waits for ever: the action before which it waits, and the stage it waits for
    """

    ends: dict[Source, float]
    seconds: float
    waiting: dict[int, tuple[str, int]]


def awaited(stage: int, action: str, stages: int) -> list[Source]:
    """What must have ended before an action, in the order in which it is named: the own forward first."""
    kind, m = action[0], action[1:]
    if kind == "F":
        return [(stage - 1, action)] if stage else []
    if kind == "B":
        return [(stage, f"F{m}"), *([(stage + 1, action)] if stage + 1 < stages else [])]
    return []


def play(lines: Lines, forward: float = 1.0, backward: float = 2.0) -> Played:
    """Every stage does its actions in order, each as soon as what it needs has ended; U takes no time."""
    took = {"F": forward, "B": backward, "U": 0.0}
    ends: dict[Source, float] = {}
    now, done = [0.0] * len(lines), [0] * len(lines)
    moved = True
    while moved:
        moved = False
        for stage, line in enumerate(lines):
            while done[stage] < len(line):
                action = line[done[stage]]
                needed = awaited(stage, action, len(lines))
                if not all(source in ends for source in needed):
                    break
                now[stage] = max([now[stage], *(ends[source] for source in needed)]) + took[action[0]]
                ends[stage, action] = now[stage]
                done[stage], moved = done[stage] + 1, True
    waiting = {}
    for stage, line in enumerate(lines):
        if done[stage] < len(line):
            action = line[done[stage]]
            missing = next(source for source in awaited(stage, action, len(lines)) if source not in ends)
            waiting[stage] = (action, missing[0])
    return Played(ends, max(now, default=0.0), waiting)


def most_kept(line: Sequence[str]) -> int:
    """The largest number of micro-batches between their forward and their backward."""
    most = kept = 0
    for action in line:
        kept += {"F": 1, "B": -1, "U": 0}[action[0]]
        most = max(most, kept)
    return most
