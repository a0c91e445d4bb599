"""The rate of each step of a schedule, the rates of known mistakes, and the comparison with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course.judging import Answer, Wrong, expect

Case = tuple[float, int, int, int, int, Sequence[int]]
"""(base_lr, base_batch, batch, samples, warm_up, drops)"""

LATER = 3
"""Epochs after the last change of the rate that are looked at, too."""


@dataclass(frozen=True)
class Schedule:
    """A schedule with the meaning of each setting; the defaults are right, and other values are known mistakes.

    Beyond the arguments of `scheduled_rate`
        k               from which k the rate follows, as a function of the real one
        from_rate       the rate with which the warm-up begins, as a function of base_lr and k
        ends_early      steps by which the warm-up reaches its end too early
        steps           steps of an epoch, as a function of samples, B and base_batch
        drop_after      steps by which a drop is late, as a function of the steps of the warm-up and of an epoch
        factor          of a drop
        starts_at       steps that the warm-up is ahead
        is_constant     the rate stays the same during the warm-up
        is_staircase    the rate rises once an epoch during the warm-up
        is_geometric    the rate rises by the same factor from step to step during the warm-up
        is_dropped_once only the first drop counts
    """

    base_lr: float
    base_batch: int
    batch: int
    samples: int
    warm_up: int
    drops: Sequence[int]
    k: Callable[[float], float] = lambda k: k
    from_rate: Callable[[float, float], float] = lambda lr, k: lr
    ends_early: int = 0
    steps: Callable[[int, int, int], float] = lambda samples, batch, base: -(-samples // batch)
    drop_after: Callable[[float, float], float] = lambda warm_steps, steps: 0
    factor: float = 0.1
    starts_at: int = 0
    is_constant: bool = False
    is_staircase: bool = False
    is_geometric: bool = False
    is_dropped_once: bool = False

    @property
    def steps_an_epoch(self) -> float:
        return self.steps(self.samples, self.batch, self.base_batch)

    def rate(self, step: int) -> float:
        """The rate of a step."""
        k, steps = self.k(self.batch / self.base_batch), self.steps_an_epoch
        warm_steps = self.warm_up * steps
        if step < warm_steps:
            first = self.from_rate(self.base_lr, k)
            at = step // steps * steps if self.is_staircase else step + self.starts_at
            done = 0.0 if self.is_constant else at / max(warm_steps - self.ends_early, 1)
            if self.is_geometric:
                return float(first * k**done)
            return first + (k * self.base_lr - first) * done
        begun = sum(step >= epoch * steps + self.drop_after(warm_steps, steps) for epoch in self.drops)
        if self.is_dropped_once:
            begun = min(begun, 1)
        return self.base_lr * k * self.factor**begun

    def looked_at(self) -> list[int]:
        """The steps for which a check asks: those around each change of the rate."""
        steps = self.steps_an_epoch
        changes = [0, self.warm_up * steps // 2, self.warm_up * steps, *(epoch * steps for epoch in self.drops)]
        last = (max([self.warm_up, *self.drops]) + LATER) * steps
        near = {change + by for change in changes for by in (-1, 0, 1)} | {last}
        return sorted(step for step in near if step >= 0)

    def called(self, step: int) -> str:
        return (
            f"scheduled_rate(step={step}, base_lr={self.base_lr:g}, base_batch={self.base_batch}, batch={self.batch}, "
            f"samples={self.samples}, warm_up={self.warm_up}, drops={list(self.drops)})"
        )


def mistakes(schedule: Schedule) -> dict[str, Schedule]:
    """The schedules of known mistakes."""
    return {
        "The rate was multiplied by k squared: a step of k times the samples takes k times the rate.": replace(
            schedule, k=lambda k: k * k
        ),
        "The rate was multiplied by the root of k: that is another rule. Linear scaling takes k itself.": replace(
            schedule, k=lambda k: k**0.5
        ),
        "The rate was not scaled by k = batch / base_batch.": replace(schedule, k=lambda k: 1.0),
        "k is batch / base_batch, as a fraction: it was rounded down.": replace(schedule, k=lambda k: k // 1),
        "The rate was divided by k.": replace(schedule, k=lambda k: 1 / k),
        "There is no warm-up.": replace(schedule, from_rate=lambda lr, k: k * lr),
        "This is a constant warm-up: it stays at base_lr, and then jumps. Raise the rate in each step.": replace(
            schedule, is_constant=True
        ),
        "The warm-up begins with rate 0, and not with base_lr.": replace(schedule, from_rate=lambda lr, k: 0.0),
        "The warm-up begins with base_lr / k, and not with base_lr.": replace(schedule, from_rate=lambda lr, k: lr / k),
        "k * base_lr comes one step too early: step W - 1 of W is the last one of the warm-up, below it.": replace(
            schedule, ends_early=1
        ),
        "The first step has an increment already: with W steps, step t has t/W of the way, and not (t + 1)/W.": replace(
            schedule, starts_at=1
        ),
        "The warm-up is raised once an epoch, and not in each step.": replace(schedule, is_staircase=True),
        "An epoch has ceil(samples / batch) steps: its last minibatch is a step, too.": replace(
            schedule, steps=lambda samples, batch, base: samples // batch
        ),
        "samples // batch + 1 is one step too many where nothing is left over; take ceil(samples / batch).": replace(
            schedule, steps=lambda samples, batch, base: samples // batch + 1
        ),
        "Epochs were counted in samples, as step * batch / samples. Round the steps of an epoch up.": replace(
            schedule, steps=lambda samples, batch, base: samples / batch
        ),
        "The rate rises by the same factor in each step, and not by the same amount.": replace(
            schedule, is_geometric=True
        ),
        "An epoch was counted in steps of base_batch samples. All nodes together take `batch` samples a step.": replace(
            schedule, steps=lambda samples, batch, base: -(-samples // base)
        ),
        "Epochs were taken for steps.": replace(schedule, steps=lambda samples, batch, base: 1),
        "The drops were counted from the end of the warm-up, and not from the beginning of the run.": replace(
            schedule, drop_after=lambda warm_steps, steps: warm_steps
        ),
        "A drop came one step late: the first step of its epoch has the lower rate.": replace(
            schedule, drop_after=lambda warm_steps, steps: 1
        ),
        "A drop came one epoch late: epoch e begins with step e * ceil(samples / B).": replace(
            schedule, drop_after=lambda warm_steps, steps: steps
        ),
        "Only one of the drops came: each of them takes a tenth.": replace(schedule, is_dropped_once=True),
        "A drop halves the rate here; it is to take it to a tenth.": replace(schedule, factor=0.5),
        "The rate never drops.": replace(schedule, factor=1.0),
    }


def schedules(cases: Iterable[Case]) -> list[Schedule]:
    return [Schedule(*case) for case in cases]


def judge(answer: Answer, schedule: Schedule) -> None:
    """Raise Wrong unless the answer has the rate of each step that is looked at."""
    steps = schedule.looked_at()
    got = [asked(answer, schedule, step) for step in steps]
    for step, first in list(zip(steps, got, strict=True))[::-1]:
        again = asked(answer, schedule, step)
        expect.true(
            again == first,
            f"{schedule.called(step)}: steps in ascending order gave {first:g}, in descending order {again:g}.",
            "The rate of a step depends on the arguments alone, and not on earlier calls.",
        )
    want = [schedule.rate(step) for step in steps]
    agree = np.isclose(got, want, rtol=1e-9, atol=0)
    if agree.all():
        return
    cause = ""
    for sentence, wrong in mistakes(schedule).items():
        rates = [wrong.rate(step) for step in steps]
        if not np.allclose(rates, want, rtol=1e-9, atol=0) and np.allclose(got, rates, rtol=1e-9, atol=0):
            cause = sentence
            break
    first = int(np.argmin(agree))
    wanted, came = expect.shown_apart(want[first], got[first])
    raise Wrong(
        f"{schedule.called(steps[first])}: expected {wanted}, got {came}. An epoch has {schedule.steps_an_epoch} "
        f"steps; this is the first of {int((~agree).sum())} of {len(steps)} steps that differ.",
        cause,
    )


def asked(answer: Answer, schedule: Schedule, step: int) -> float:
    """The rate that the answer returns for a step; Wrong if it is no number."""
    got: Any = answer(
        step, schedule.base_lr, schedule.base_batch, schedule.batch, schedule.samples, schedule.warm_up,
        list(schedule.drops),
    )  # fmt: skip
    numbers = expect.number_array(got, schedule.called(step), "a number")
    if numbers.ndim or numbers.dtype.kind == "c":
        raise Wrong(f"{schedule.called(step)}: expected a number, got {expect.shown(got)}.")
    return float(numbers)
