"""Training that is killed at any operation of its storage and started again, and what must be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, expect
from course.judging.answer import AnswerFailed
from course.plural import counted
from course.probes.faults_and_batch_methods import Remote, Storage
from course.sandbox.exchange.plain_data import Foreign
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int]
"""(steps, k, numbers of the state)"""

NEVER = 10**9

KILLS_AGAIN = 3
"""Second kills after each first one, and first ones that are followed by second ones."""


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
        self._begin(f"write({name!r}, …)", lambda: self.storage.files.update({name: Storage.INCOMPLETE}))
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


def around_writes(life: Life) -> list[tuple[int, bool]]:
    """Where to kill a process again: in the middle of some writes, and before some renames."""
    places = [
        (at, operation.startswith("write"))
        for at, operation in enumerate(life.operations)
        if operation.startswith(("write", "rename"))
    ]
    return places[:: -(-len(places) // KILLS_AGAIN) or 1]


def how_killed(life: Life) -> str:
    """How a process ended, in words."""
    if not life.is_dead:
        return "ended"
    operation = life.operations[-1]
    where = "in the middle of" if life.is_inside and operation.startswith("write") else "before"
    return f"killed {where} {operation}, operation {len(life.operations) - 1}"


def unused(files: dict[str, Any], life: Life) -> str:
    """Why a process has begun anew with these files."""
    complete = [name for name, value in files.items() if value is not Storage.INCOMPLETE]
    unread = [name for name in complete if f"read({name!r})" not in life.operations]
    if unread:
        return f"The storage has a complete file, {unread[0]!r}, which was not read."
    if complete:
        return ""
    if files:
        return "No file is complete: a kill in the middle of a write leaves an incomplete one."
    return "Nothing is in the storage: save after every k steps."


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

    def live(self, storage: Storage, at: int = NEVER, is_inside: bool = False, before: Sequence[Life] = ()) -> Life:
        """Start a process, which ends or is killed. before: the killed processes before it, for messages."""
        life = Life(storage, at, is_inside)
        offered = self.answer.offered
        methods = {name: offered(getattr(life, name), name) for name in ("names", "write", "rename", "read")}
        try:
            life.result = self.answer(
                self.start.copy(), offered(life.step, "step"), self.count, self.k, Remote(**methods)
            )
        except AnswerFailed as failed:
            if failed.last or not (life.is_dead or before):
                raise
            if not life.is_dead:
                message = f"{self._called(before)}: {failed.message}"
                raise AnswerFailed(failed.status, message, classes=" ".join(failed.classes)) from None
        return life

    @cached_property
    def plain(self) -> Life:
        """The run that nothing kills."""
        return self.live(Storage())

    @cached_property
    def writes(self) -> int:
        """Calls of write in a run that nothing kills."""
        return sum(each.startswith("write") for each in self.plain.operations)

    def compare_plain(self) -> None:
        """Raise Wrong unless an undisturbed run makes each step once and writes no file too many."""
        self._compare_result(self.called, self.plain)
        most = self.count // self.k + 2
        expect.true(
            self.writes <= most,
            f"{self.called}: writes {counted(self.writes, 'file')}, expected at most steps // k + 2 = {most}.",
            "A checkpoint is for k steps, not for each."
            if self.writes >= self.count > most
            else "State and number of steps are one value, in one file.",
        )

    def compare_killed(self, is_inside: bool) -> None:
        """Raise Wrong unless the run after a kill ends with the same bits; in the middle of each write, or anywhere.

        All are killed before any is started again: what a process remembers outside the storage is too new then.
        """
        self._compare_result(self.called, self.plain)
        if is_inside:
            self._compare_number()
        killed = [
            (storage := Storage(), self.live(storage, at, is_inside))
            for at, operation in enumerate(self.plain.operations)
            if not is_inside or operation.startswith("write")
        ]
        for storage, life in killed:
            self._compare_last(storage, life)

    def compare_killed_twice(self) -> None:
        """Raise Wrong unless this is so after a second kill, too: both in the middle of writes or before renames."""
        self._compare_result(self.called, self.plain)
        self._compare_number()
        killed = []
        for first in around_writes(self.plain):
            storage = Storage()
            one = self.live(storage, *first)
            for second in around_writes(self._compare_last(storage, one)):
                storage = Storage()
                one = self.live(storage, *first)
                killed.append((storage, one, self.live(storage, *second, before=[one])))
        for storage, one, other in killed:
            self._compare_last(storage, one, other)

    def _compare_number(self) -> None:
        """Raise Wrong unless enough files are written for no more than k steps to be made again."""
        least = -(-self.count // self.k) - 1
        expect.true(
            self.writes >= least,
            f"{self.called}: writes {counted(self.writes, 'file')} in {counted(self.count, 'step')}, expected at least "
            f"{least}: one after every {self.k} steps.",
        )

    def _compare_last(self, storage: Storage, *killed: Life) -> Life:
        """Start another process after these were killed, and compare what it does; return it."""
        files = dict(storage.files)
        last, called = self.live(storage, before=killed), self._called(killed)
        self._compare_result(called, last)
        reached = begins = 0
        for number, life in enumerate([*killed, last]):
            begins = life.steps[0][0] if life.steps else self.count if life is last else 0
            expect.true(
                begins <= reached,
                f"{self._called(killed[:number])}: goes on with step {begins}, though only "
                f"{counted(reached, 'step')} were complete.",
                "This was not in the storage, and nothing else outlives a process.",
            )
            reached = max([reached, *(t + 1 for t, _ in life.steps if life is not last)])
        expect.true(
            reached - begins <= self.k,
            f"{called}: goes on with step {begins}, though {counted(reached, 'step')} were complete: "
            f"{reached - begins} are made again, expected at most k = {self.k}.",
            unused(files, last) if not begins else "",
        )
        return last

    def _called(self, killed: Sequence[Life]) -> str:
        """The call after these processes, in words."""
        return "; ".join([self.called, *(f"{how_killed(life)}, started again" for life in killed)])

    def _compare_result(self, called: str, life: Life) -> None:
        """Raise Wrong unless a process makes the right steps from the right states, and returns the right state."""
        for (t, state), number in zip(life.steps, count(life.steps[0][0] if life.steps else 0), strict=False):
            expect.true(
                t == number < self.count,
                f"{called}: step(state, {t}) was called, expected "
                f"{f'step(state, {number})' if number < self.count else 'no other step'}.",
            )
            if state.tobytes() != self.states[t].tobytes():
                expect.same_bits(state, self.states[t], f"{called}: the state of step(state, {t})", self._others(t))
        expect.same_bits(life.result, self.states[-1], f"{called}: the state returned", self._others(self.count))

    def _others(self, t: int) -> dict[str, Array]:
        """States that known mistakes have in place of that after t steps."""
        found = {
            f"This is the state after {counted(n, 'step')}: keep it together with this number.": self.states[n]
            for n in range(1, self.count + 1)
            if n != t
        }
        found |= {"This is the initial state.": self.start} if t else {}
        return found | {"The state was rounded to float32.": self.states[t].astype(np.float32).astype(float)}
