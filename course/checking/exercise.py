"""What a chapter's checks are written with: a Chapter, its exercises, and the parts of a check that give points."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from course.checking import display, progress_record
from course.checking.answer import Answer, AnswerFailed, shipped
from course.checking.outcome import Outcome, PartResult, Status
from course.checking.session import Session
from course.checking.wrong import Wrong

_judged: ContextVar[list[Outcome] | None] = ContextVar("judged", default=None)


class Part:
    """Collects a check's parts: `with part(2, "the sums are right"):` gives 2 points unless the block raises.

    After a Wrong, or an exception of the answer, the check goes on with what follows the block. After a time-out, or
    the death of the student's process, it ends, and what was not reached gives no points.
    """

    def __init__(self) -> None:
        self.results: list[PartResult] = []

    @contextmanager
    def __call__(self, points: float, title: str) -> Iterator[None]:
        try:
            yield
        except Wrong as wrong:
            self.results.append(PartResult(title, points, Status.WRONG, wrong.message, wrong.cause))
        except AnswerFailed as failed:
            self.results.append(PartResult(title, points, failed.status, failed.message))
            if failed.last:
                raise
        else:
            self.results.append(PartResult(title, points, Status.CORRECT))

    def rest(self, possible: float, failed: AnswerFailed) -> None:
        """Note the points that were not reached because of `failed`."""
        missing = possible - sum(result.points for result in self.results)
        if missing > 0:
            told = any(result.message == failed.message for result in self.results)
            title, message = ("the rest", "not reached") if told else ("the answer can be called", failed.message)
            self.results.append(PartResult(title, missing, failed.status, message))


Check = Callable[..., None]
"""`check(answer, part, **cases)`: calls the answer, and raises Wrong inside its parts; `cases` have public defaults."""


class Exercise:
    """An exercise of a chapter: its name is the name of the function that students write.

    Called with that function (in a notebook), it runs the check, shows the outcome, and returns the points as a float.
    """

    def __init__(self, chapter: Chapter, check: Check, points: float, hints: Sequence[str]) -> None:
        self.chapter = chapter
        self.name = check.__name__
        self.points = float(points)
        self.hints = tuple(hints)
        self._check = check
        self.__doc__ = inspect.getdoc(check)

    def __call__(self, function: Callable[..., Any] | Answer, **cases: Any) -> float:
        if isinstance(function, Answer):
            outcome = self.judge(function, **cases)
        else:
            outcome = self._judge_function(function, cases)
        judged = _judged.get()
        if judged is not None:
            judged.append(outcome)
        else:
            display.show(outcome, self.hint_call)
            progress_record.keep(self.chapter.name, [outcome])
        return outcome.points

    @property
    def hint_call(self) -> str:
        """What to type for the next hint; empty if there is none."""
        return f'check.hint("{self.name}")' if self.hints else ""

    def judge(self, answer: Answer, **cases: Any) -> Outcome:
        """The outcome of the check on `answer`, with `cases` in place of the public ones."""
        part = Part()
        try:
            self._check(answer, part, **cases)
        except AnswerFailed as failed:
            part.rest(self.points, failed)
        except Wrong as wrong:
            rest = self.points - sum(result.points for result in part.results)
            part.results.append(PartResult("the answer is right", rest, Status.WRONG, wrong.message, wrong.cause))
        return Outcome(self.name, self.points, tuple(part.results), answer.session.printed)

    def _judge_function(self, function: Any, cases: dict[str, Any]) -> Outcome:
        """The outcome for a function of this process, shipped to one of its own."""
        try:
            if not callable(function):
                kind = type(function).__name__
                raise AnswerFailed(
                    Status.RAISED, f"check.{self.name} wants the function itself, got a {kind}: {function!r:.80}"
                )
            load = shipped(function, self.name)
        except AnswerFailed as failed:
            part = Part()
            part.rest(self.points, failed)
            return Outcome(self.name, self.points, tuple(part.results))
        with Session(load) as session:
            return self.judge(Answer(self.name, session), **cases)


class Chapter:
    """The checks of a chapter; `name` is that of its assignment, such as "04_messages_and_collectives".

    >>> chapter = Chapter("99_example")
    >>> @chapter.exercise(points=2, hints=["Every number is its own double's half."])
    ... def double(answer, part, numbers=(1, 2)):
    ...     with part(2, "doubles"):
    ...         for x in numbers:
    ...             if answer(x) != 2 * x:
    ...                 raise Wrong(f"double({x}): expected {2 * x}")
    >>> chapter.exercises["double"].points
    2.0
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.exercises: dict[str, Exercise] = {}
        self._hints_told: dict[str, int] = {}

    def exercise(self, points: float, hints: Sequence[str] = ()) -> Callable[[Check], Exercise]:
        """Make a check an exercise of this chapter; `hints` lead to the answer step by step."""

        def register(check: Check) -> Exercise:
            exercise = self.exercises[check.__name__] = Exercise(self, check, points, hints)
            return exercise

        return register

    def hint(self, name: str) -> None:
        """Print the next hint for an exercise; after the last one, begin again."""
        if name not in self.exercises:
            raise ValueError(f"no exercise is called {name!r}: there is {', '.join(self.exercises)}")
        hints = self.exercises[name].hints
        if not hints:
            print(f"There is no hint for {name}.")
            return
        step = self._hints_told.get(name, 0) % len(hints)
        self._hints_told[name] = step + 1
        more = f"; the same call again tells hint {step + 2}" if step + 1 < len(hints) else ""
        print(f"Hint {step + 1} of {len(hints)}{more}:\n{hints[step]}")


@contextmanager
def judging() -> Iterator[list[Outcome]]:
    """Outcomes of checks that are made inside are collected in the list, and neither shown nor kept."""
    outcomes: list[Outcome] = []
    token = _judged.set(outcomes)
    try:
        yield outcomes
    finally:
        _judged.reset(token)
