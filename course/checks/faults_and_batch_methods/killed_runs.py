"""Training that is killed at any operation of its storage and started again, and what must be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.judging.answer import AnswerFailed
from course.plural import counted
from course.probes.faults_and_batch_methods import Remote, Storage
from course.sandbox.exchange.plain_data import Foreign
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int]
"""(steps, k, numbers of the state)"""

NEVER = 10**9


class Killed(Exception):  # noqa: N818  (the name says what happened)
    """The process was killed: none of its operations has an effect any more."""


def next_state(state: Array, t: int) -> Array:
    """A step of training, which depends on its number."""
    return np.asarray(0.8 * state + np.sin(3.0 * state[::-1] + 0.7 * t))


class Life:
    """A process from its start to its end: counts operations, and is killed at one of them.

    at: the operation, counted from 0, at which it is killed. is_inside: in the middle of it, if it writes a file.
    """

    def __init__(self, storage: Storage, at: int = NEVER, is_inside: bool = False) -> None:
        self.storage, self.at, self.is_inside = storage, at, is_inside
        self.operations: list[str] = []
        self.steps: list[tuple[int, Array]] = []  # the number of each completed step, and the state before it
        self.is_dead = False
        self.result: Any = None

    def _begin(self, operation: str, inside: Callable[[], None] | None = None) -> None:
        """Count an operation; Killed if the process does not survive it."""
        if not self.is_dead:
            self.is_dead = len(self.operations) == self.at
            if self.is_dead and self.is_inside and inside:
                inside()
            self.operations.append(operation)
        if self.is_dead:
            raise Killed("the process is killed")

    def step(self, state: Any, t: Any) -> Array:
        if isinstance(t, bool) or not isinstance(t, (int, np.integer)) or t < 0:
            raise ValueError(f"step(state, t): t is the number of a step, from 0 on, got {t!r}")
        if not isinstance(state, np.ndarray) or state.ndim != 1:
            raise TypeError(f"step(state, t): state is an array with one axis, got {expect.shown(state)}")
        self._begin(f"step {t}")
        self.steps.append((int(t), state))
        return next_state(state, int(t))

    def names(self) -> list[str]:
        self._begin("names()")
        return self.storage.names()

    def write(self, name: str, value: Any) -> None:
        if is_foreign(value):
            raise TypeError("write(name, value): a value is made of numbers, text, arrays, lists, tuples and dicts")
        self._begin(f"write({name!r}, …)", lambda: self.storage.write(name, Storage.INCOMPLETE))
        self.storage.write(name, value)

    def rename(self, old: str, new: str) -> None:
        self._begin(f"rename({old!r}, {new!r})")
        self.storage.rename(old, new)

    def read(self, name: str) -> Any:
        self._begin(f"read({name!r})")
        return self.storage.read(name)


def is_foreign(value: Any) -> bool:
    """Whether a value, or anything in it, is no plain data."""
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, Foreign) or (isinstance(value, (list, tuple)) and any(map(is_foreign, value)))


def around_writes(life: Life) -> Iterator[tuple[int, bool]]:
    """Where to kill a process again: in the middle of each write, and before each rename."""
    for at, operation in enumerate(life.operations):
        if operation.startswith(("write", "rename")):
            yield at, operation.startswith("write")


class Training:
    """The runs of an answer for a case."""

    def __init__(self, answer: Answer, case: Case, seed: int) -> None:
        self.answer = answer
        self.count, self.k, size = case
        self.start = stream(Purpose.MANUAL, seed, "a state", *case).normal(size=size)
        self.states = [self.start]
        for t in range(self.count):
            self.states.append(next_state(self.states[-1], t))
        self.called = f"train_with_checkpoints(state, step, {self.count}, {self.k}, storage)"

    def live(self, storage: Storage, at: int = NEVER, is_inside: bool = False) -> Life:
        """Start a process, which ends or is killed."""
        life = Life(storage, at, is_inside)
        offered = self.answer.offered
        methods = {name: offered(getattr(life, name), name) for name in ("names", "write", "rename", "read")}
        try:
            life.result = self.answer(
                self.start.copy(), offered(life.step, "step"), self.count, self.k, Remote(**methods)
            )
        except AnswerFailed as failed:
            if failed.last or not life.is_dead:
                raise
        return life

    @cached_property
    def plain(self) -> Life:
        """The run that nothing kills."""
        return self.live(Storage())

    def compare_plain(self) -> None:
        """Raise Wrong unless an undisturbed run makes each step once and writes no file too many."""
        self._compare_result(self.called, [self.plain])
        writes, most = sum(each.startswith("write") for each in self.plain.operations), self.count // self.k + 2
        expect.true(
            writes <= most,
            f"{self.called}: writes {counted(writes, 'file')}, expected at most steps // k + 2 = {most}.",
            "One file for k steps: the state and the number of steps are one value.",
        )

    def compare_killed(self, is_inside: bool) -> None:
        """Raise Wrong unless the run after a kill ends with the same bits; in the middle of each write, or anywhere."""
        for at, operation in enumerate(self.plain.operations):
            if not is_inside or operation.startswith("write"):
                storage = Storage()
                self._compare(self.live(storage, at, is_inside), self.live(storage))

    def compare_killed_twice(self) -> None:
        """Raise Wrong unless this is so after a second kill, too: both in the middle of writes or before renames."""
        for first in around_writes(self.plain):
            storage = Storage()
            self.live(storage, *first)
            for second in around_writes(self.live(storage)):
                storage = Storage()
                self._compare(self.live(storage, *first), self.live(storage, *second), self.live(storage))

    def _compare(self, *lives: Life) -> None:
        """Compare the last of several runs; the others were killed."""
        when = "; started again and ".join(self._end(life) for life in lives[:-1])
        called = f"{self.called}, {when}; started again"
        self._compare_result(called, lives)
        reached = max((t + 1 for life in lives[:-1] for t, _ in life.steps), default=0)
        begins = lives[-1].steps[0][0] if lives[-1].steps else self.count
        expect.true(
            reached - begins <= self.k,
            f"{called}: goes on with step {begins}, though {counted(reached, 'step')} were complete: "
            f"{reached - begins} are made again, expected at most k = {self.k}.",
            "Nothing was kept: a kill while the only file is written leaves none."
            if not begins and any(life.is_inside for life in lives)
            else "A file is written after every k steps, and read at the start."
            if not begins
            else "",
        )

    def _end(self, life: Life) -> str:
        """How a run ended, in words."""
        if not life.is_dead:
            return "ended"
        operation = life.operations[-1]
        where = "in the middle of" if life.is_inside and operation.startswith("write") else "before"
        return f"killed {where} {operation} (operation {len(life.operations) - 1})"

    def _compare_result(self, called: str, lives: Any) -> None:
        """Raise Wrong unless the last run makes the right steps from the right states, and returns the right state."""
        last = lives[-1]
        for (t, state), number in zip(last.steps, range(last.steps[0][0] if last.steps else 0, NEVER), strict=False):
            expect.true(
                t == number and t < self.count,
                f"{called}: called step(state, {t}), expected {f'step {number}' if number < self.count else 'no step'} "
                f"after {number} steps.",
            )
            if state.tobytes() != self.states[t].tobytes():
                expect.same_bits(state, self.states[t], f"{called}: the state of step(state, {t})", self._others(t))
        expect.same_bits(last.result, self.states[-1], f"{called}: the state returned", self._others(self.count))

    def _others(self, t: int) -> dict[str, Array]:
        """States that known mistakes have in place of that after t steps."""
        found = {f"This is the state after {n} steps: it and the number of steps are one file.": self.states[n]
                 for n in range(1, self.count + 1) if n != t}  # fmt: skip
        found |= {"This is the initial state.": self.start} if t else {}
        return found | {"The state was rounded to float32.": self.states[t].astype(np.float32).astype(float)}
