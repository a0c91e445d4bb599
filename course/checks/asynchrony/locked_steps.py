"""A step on weights that others change whenever the lock is free: what is lost, and how long the lock is held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.checks.asynchrony.requests import Array
from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.asynchrony import interrupted_step
from minidl.random import Purpose, stream

LR = 0.25

A_THIRD = round(2**40 / 3) / 2**40
"""Added to whole weights: float32 loses a part of it, and float64 nothing in the few sums of a run."""


@dataclass(frozen=True)
class Interrupted:
    """A run of `locked_step`, as `probes.asynchrony.interrupted_step` reports it."""

    start: Array
    slopes: Array
    seen: dict[str, Any]
    called: str

    @property
    def events(self) -> list[str]:
        return list(self.seen["events"])


def interrupted(answer: Answer, n: int, seed: int) -> Interrupted:
    """Run `locked_step` on n weights."""
    rng = stream(Purpose.MANUAL, seed, "interrupted step", n)
    start, slopes = rng.integers(1, 9, n) + A_THIRD, rng.integers(1, 5, n) * 4.0
    seen = answer.run(interrupted_step, start, slopes, LR)
    return Interrupted(start, slopes, seen, f"locked_step(shared, lock, gradient, {LR}), {counted(n, 'weight')}")


def compare_weights(one: Interrupted) -> None:
    """Raise Wrong unless the weights have all updates of the others and this worker's."""
    given, others = one.seen["given"], one.seen["updates"]
    if not given:
        raise Wrong(f"{one.called}: gradient was never called.")
    if given[-1].shape != one.start.shape:
        raise Wrong(f"{one.called}: gradient was given an array of shape {given[-1].shape}.")
    if not any(np.array_equal(given[-1], one.start + number) for number in range(others + 1)):
        raise Wrong(
            f"{one.called}: gradient was given {expect.shown(given[-1])}, which shared.read() never returned.",
            "The gradient is that of the weights that were read.",
        )
    want = one.start + others - LR * one.slopes * given[-1]
    mistakes = {
        "The sign is wrong: lr * gradient is to be subtracted.": one.start + others + LR * one.slopes * given[-1],
        "The weights were not changed.": one.start + others,
        "The learning rate is missing.": one.start + others - one.slopes * given[-1],
    }
    lost = "Updates of others are lost: they came between the read and the write that belong together."
    mistakes |= {f"{lost} Here they are {number}.": want - number for number in range(1, others + 1)}
    called = f"{one.called}: the weights afterwards, with {counted(others, 'update')} of 1 by the others"
    expect.array(one.seen["weights"], want, called, mistakes=mistakes)


def compare_lock(one: Interrupted) -> None:
    """Raise Wrong unless the lock was held for one read and one write, and released."""
    events = one.events
    held = "acquire, read, write, release"
    if "acquire" not in events:
        raise Wrong(f"{one.called}: the lock was never acquired.", "with lock: … acquires and releases it.")
    if events.count("release") < events.count("acquire"):
        raise Wrong(
            f"{one.called}: the lock was not released; it happened: {', '.join(events)}.",
            "All other workers wait for it from now on. with lock: … releases it at the end, whatever happens.",
        )
    if events.count("acquire") == events.count("gradient") == 1 and under_lock(events) == ["read", "write"]:
        return
    cause = "One step computes one gradient." if events.count("gradient") != 1 else ""
    if "gradient" in under_lock(events):
        cause = "The gradient takes most of the time: with the lock held, the workers compute one after the other."
    elif under_lock(events).count("read") < under_lock(events).count("write"):
        cause = "The weights that are written must be read again under the lock: between the two others may write."
    elif events.count("acquire") > 1:
        cause = "One block is enough. The read before the gradient needs no lock: its weights may be stale."
        if events.index("gradient") < events.index("acquire"):
            cause = "Between the release and the next acquire others may write: one block for both."
    raise Wrong(f"{one.called}: expected {held} with one gradient before, got {', '.join(events)}.", cause)


def under_lock(events: Sequence[str]) -> list[str]:
    """What happened while the lock was held."""
    held, found = False, []
    for event in events:
        if event in ("acquire", "release"):
            held = event == "acquire"
        elif held:
            found.append(event)
    return found


def judge(answer: Answer, sizes: Sequence[int], seed: int, *compare: Any) -> None:
    for n in sizes:
        one = interrupted(answer, n, seed)
        for compared in compare:
            compared(one)
