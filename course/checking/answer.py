"""A student's function as a check sees it: something to call, whose code runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from course.checking import ranks
from course.checking.asked import Asked
from course.checking.ending import Died, TooLong
from course.checking.outcome import Status
from course.checking.session import Session


class AnswerFailed(Exception):  # noqa: N818  (the name says what happened)
    """A call of the student's function brought no value; `status` says which of the outcomes that is."""

    def __init__(self, status: Status, message: str, last: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.last = last
        """Whether there is no point in further calls."""


class Answer:
    """The student's function `name` in `session`.

    `answer(*arguments)` calls it on copies and returns a copy of what it returns, as plain data. `answer.run(probe,
    *arguments)` has `probe(function, *arguments)` called there, a function of `course/probes/`, for what
    cannot be seen from here: how often something was visited, what was left in an object. `answer.on_ranks(...)` runs
    the function as a program of simulated nodes. Every one raises AnswerFailed if no value comes.
    """

    def __init__(self, name: str, session: Session) -> None:
        self.name = name
        self.session = session

    def __call__(self, *arguments: Any) -> Any:
        return self._call(None, arguments)

    def run(self, probe: Callable[..., Any], *arguments: Any) -> Any:
        return self._call(probe, arguments)

    def offered(self, function: Callable[..., Any], name: str) -> Asked:
        """A function for the answer to call, of plain data, whose code stays here: what to pass as its argument."""
        self.session.functions.append(function)
        return Asked(len(self.session.functions) - 1, name)

    def on_ranks(self, arguments: list[tuple[Any, ...]], network: Any = None, **options: Any) -> ranks.RankRun:
        """Run `function(comm, *arguments[rank])` on as many simulated ranks as there are tuples of arguments."""
        try:
            with self._failures():
                return ranks.run(self.session, self.name, arguments, network, **options)
        except ranks.AnswerError as failed:
            raise self._failure(failed.described, f" of {len(arguments)}") from None

    def _call(self, probe: Callable[..., Any] | None, arguments: tuple[Any, ...]) -> Any:
        with self._failures():
            kind, value = self.session.request("call", (probe, self.name, arguments))
        if kind == "value":
            return value
        raise self._failure(value)

    def _failure(self, error: dict[str, Any], of_ranks: str = "") -> AnswerFailed:
        return failure(self.name, error, self.session.undefined.get(self.name, ""), of_ranks)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What ends the student's process ends the check."""
        try:
            yield
        except Died as died:
            raise AnswerFailed(Status.RAISED, f"{self.name} brought no result: {died}.", last=True) from None
        except TooLong as late:
            raise AnswerFailed(Status.STUCK, f"{self.name}: {late}.", last=True) from None


def failure(name: str, error: dict[str, Any], why_undefined: str = "", of_ranks: str = "") -> AnswerFailed:
    """The error that the student's process described, in words; `of_ranks`: " of 4", if it ran on 4 ranks."""
    kind = error["kind"]
    if kind == "not defined" and why_undefined:
        return AnswerFailed(Status.RAISED, f"{name} is not defined: {why_undefined}.", last=True)
    if kind == "not defined":
        return AnswerFailed(Status.NOT_ATTEMPTED, f"{name} is not defined in this notebook.", last=True)
    if kind == "not attempted":
        return AnswerFailed(Status.NOT_ATTEMPTED, f"{name} still raises NotImplementedError.", last=True)
    if kind == "stuck":
        return AnswerFailed(Status.STUCK, error["text"])
    rank = "" if error["rank"] is None else f" on rank {error['rank']}{of_ranks}"
    text = f": {error['text']}" if error["text"] else ""
    place = f"\nIt was at {error['place']}" if error["place"] else ""
    return AnswerFailed(Status.RAISED, f"{name} raised {error['type']}{rank}{text}{place}")
