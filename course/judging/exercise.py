"""How a chapter's checks are written: a ChapterChecks, its exercises, and the parts of a check that give points.

The check of an exercise is a function with the name of the function that students write. It calls `answer`, and
compares the results in parts:

    chapter = ChapterChecks("07_rows", builds={"vjp_max": Builds("minidl", instead="numpy")})

    @chapter.exercise(points=2, hints=["Only the largest element of a row matters.", ...])
    def vjp_max(answer, part, *, shapes=((3, 4), (1, 1)), seed=0):
        with part(1, "the largest of each row gets the gradient"):
            for g, x in drawn(shapes, seed):
                expect.array(answer(g, x), want(g, x), called, mistakes={"All of g went to the first.": ...})
        with part(1, "in the memory of a few matrices"):
            needed = answer.run(peak_bytes, g, x)

Arguments with defaults are the public cases; hidden tests pass others. `peak_bytes` is a probe: it runs in the answer's
process, so its file is in `course/probes/`. Arguments of an answer are plain data, arrays, and objects of minidl or of
probes. A function whose code the answer must not see is passed as `answer.offered(f, "f")`.
"""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from course.judging import display, progress_record
from course.judging.answer import Answer, AnswerFailed
from course.judging.kinds import kind_of
from course.judging.outcome import Outcome, PartResult, Status
from course.judging.process.student_session import StudentSession
from course.judging.shipping import shipped
from course.judging.wrong import Wrong
from course.plural import there_are
from course.sandbox.refused.builds import Builds

NOT_THE_ANSWER = "The check itself failed here. That is no fault of your answer: please report it, with this text."


def _nothing() -> None:
    """Stands for a function where none was given."""


_judged: ContextVar[list[Outcome] | None] = ContextVar("judged", default=None)


class DefectiveCheckError(Exception):
    """The check itself raised an error, which is no fault of the answer; `outcome` is what it found before."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"the check of {outcome.exercise} failed: {outcome.defect}")
        self.outcome = outcome


class Part:
    """Collects a check's parts: `with part(2, "the sums are right"):` gives 2 points unless the block raises.

    After Wrong, or an exception of the answer, the check goes on behind the block. After a time-out, or the end of the
    student's process, the check ends, and parts that were not reached give no points. A part is also lost where the
    answer first changed an argument that it must leave unchanged (`Answer.unchanged`).
    """

    def __init__(self, answer: Answer | None = None) -> None:
        self.results: list[PartResult] = []
        self._answer = answer

    @contextmanager
    def __call__(self, points: float, title: str) -> Iterator[None]:
        try:
            yield
            if self._answer is not None:
                self._answer.unchanged()
        except Wrong as wrong:
            self.results.append(PartResult(title, points, Status.WRONG, wrong.message, wrong.cause))
        except AnswerFailed as failed:
            self.results.append(PartResult(title, points, failed.status, failed.message))
            if failed.last:
                raise
        else:
            self.results.append(PartResult(title, points, Status.CORRECT))

    def rest(self, possible: float, failed: AnswerFailed) -> None:
        """Add a part for the points that were not reached because of `failed`."""
        if any(result.message == failed.message for result in self.results):
            self.note("the rest", possible, failed.status, "not reached")
        else:
            self.note("the answer can be called", possible, failed.status, failed.message)

    def note(self, title: str, possible: float, status: Status, message: str, cause: str = "") -> None:
        """Add a part for what is left of `possible` points, as not reached."""
        left = possible - sum(result.points for result in self.results)
        if left > 0:
            self.results.append(PartResult(title, left, status, message, cause))


Check = Callable[..., None]
"""`check(answer, part, **cases)`: calls the answer, and raises Wrong inside its parts; `cases` have public defaults."""


class Exercise:
    """An exercise of a chapter, named as the function that students write.

    Called with that function, in a notebook, it runs the check, shows the outcome and returns the points as a float.
    builds: the library's version of what students build here; it is refused while the check calls the answer.
    """

    def __init__(
        self, chapter: ChapterChecks, check: Check, points: float, hints: Sequence[str], builds: Builds | None = None
    ) -> None:
        self.chapter = chapter
        self.name = check.__name__
        self.points = float(points)
        self.hints = tuple(hints)
        self.builds = builds
        self._check = check
        self.__doc__ = inspect.getdoc(check)

    def __call__(self, function: Callable[..., Any] | Answer = _nothing, /, **cases: Any) -> float:
        known = list(inspect.signature(self._check).parameters)[2:]
        for name in cases.keys() - set(known):
            raise TypeError(f"check.{self.name} has no cases {name!r}; it has {', '.join(known)}")
        judged = _judged.get()
        if cases and any(one.exercise == self.name and one.is_cut_short and not one.points for one in judged or ()):
            return 0.0  # it would loop, or end its process, again
        try:
            outcome = self.judge(function, **cases) if isinstance(function, Answer) else self._ship(function, cases)
        except DefectiveCheckError as defective:
            if judged is not None:
                raise
            outcome = defective.outcome
        if judged is not None:
            judged.append(outcome)
        else:
            display.show(outcome, self.hint_call)
            if not cases:
                progress_record.keep(self.chapter.name, [outcome])
        return outcome.points

    @property
    def hint_call(self) -> str:
        """The call that prints the next hint; empty if there are no hints."""
        return f'check.hint("{self.name}")' if self.hints else ""

    def judge(self, answer: Answer, **cases: Any) -> Outcome:
        """The outcome of the check of `answer`, with `cases` instead of the public ones.

        Raises DefectiveCheckError if the check itself fails.
        """
        part, defect, is_cut_short = Part(answer), None, False
        answer.begin_check((self.name, self.builds) if self.builds else None)
        try:
            self._check(answer, part, **cases)
        except AnswerFailed as failed:
            is_cut_short = failed.last
            part.rest(self.points, failed)
        except Wrong as wrong:
            part.note("the answer is right", self.points, Status.WRONG, wrong.message, wrong.cause)
        except Exception as error:  # any other is the check's own
            defect = error
            part.note("the check works", self.points, Status.WRONG, f"{NOT_THE_ANSWER}\n{own_error(error)}")
        finally:
            answer.session.end_check()
        printed = answer.session.output.text
        outcome = Outcome(
            self.name, self.points, tuple(part.results), printed, bool(cases), own_error(defect) if defect else "",
            is_cut_short,
        )  # fmt: skip
        if defect is not None:
            raise DefectiveCheckError(outcome) from defect
        return outcome

    def _ship(self, function: Any, cases: dict[str, Any]) -> Outcome:
        """The outcome for a function of this process, which is sent to a process of its own."""
        try:
            if function is _nothing or not callable(function):
                raise AnswerFailed(Status.RAISED, self._not_a_function(function))
            load = shipped(function, self.name)
        except AnswerFailed as failed:
            part = Part()
            part.rest(self.points, failed)
            return Outcome(self.name, self.points, tuple(part.results), is_hidden=bool(cases))
        with StudentSession(load, folder=os.getcwd()) as session:
            return self.judge(Answer(self.name, session), **cases)

    def _not_a_function(self, value: Any) -> str:
        call = f"write check.{self.name}({self.name})"
        if value is _nothing:
            return f"check.{self.name} wants your function, and got nothing: {call}."
        got = "None" if value is None else kind_of(value)
        return f"check.{self.name} wants your function itself, and got {got}: {call}, without brackets behind the name."


class ChapterChecks:
    """The checks of a chapter.

    Parameters
        name     the name of its assignment, such as "04_messages_and_collectives"
        builds   for an exercise: the library's version of what students build, which the answer may not call;
                 the answer of an exercise without an entry may use all of the library

    >>> chapter = ChapterChecks("99_example")
    >>> @chapter.exercise(points=2, hints=["Every number is its own double's half."])
    ... def double(answer, part, numbers=(1, 2)):
    ...     with part(2, "doubles"):
    ...         for x in numbers:
    ...             if answer(x) != 2 * x:
    ...                 raise Wrong(f"double({x}): expected {2 * x}")
    >>> chapter.exercises["double"].points
    2.0
    """

    def __init__(self, name: str, builds: Mapping[str, Builds] | None = None) -> None:
        self.name = name
        self.builds = dict(builds or {})
        self.exercises: dict[str, Exercise] = {}
        self._hints_shown: dict[str, int] = {}

    def exercise(self, points: float, hints: Sequence[str] = ()) -> Callable[[Check], Exercise]:
        """Decorator: make a check an exercise of this chapter. `hints` lead to the answer step by step."""

        def register(check: Check) -> Exercise:
            builds = self.builds.get(check.__name__)
            exercise = self.exercises[check.__name__] = Exercise(self, check, points, hints, builds)
            return exercise

        return register

    def hint(self, name: str) -> None:
        """Print the next hint for an exercise; after the last one, start again with the first."""
        if name not in self.exercises:
            raise ValueError(f"no exercise is called {name!r}: {there_are(self.exercises)}")
        hints = self.exercises[name].hints
        if not hints:
            print(f"There is no hint for {name}.")
            return
        step = self._hints_shown.get(name, 0) % len(hints)
        self._hints_shown[name] = step + 1
        more = f"; the same call again tells hint {step + 2}" if step + 1 < len(hints) else ""
        text = "\n".join(display.wrapped(hints[step], ""))
        print(f"Hint {step + 1} of {len(hints)}{more}:\n{text}")


def own_error(error: Exception) -> str:
    """The error of a check itself, with the line of the check that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({os.path.basename(frame.filename)}, line {frame.lineno})"


@contextmanager
def judging() -> Iterator[list[Outcome]]:
    """Collect the outcomes of checks made in this block, instead of showing and keeping them."""
    outcomes: list[Outcome] = []
    token = _judged.set(outcomes)
    try:
        yield outcomes
    finally:
        _judged.reset(token)
