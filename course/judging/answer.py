"""A student's function as a check sees it: a callable whose code runs in the student's process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from course.judging.argument_changes import first_change
from course.judging.outcome import RAISED_IN, Status
from course.judging.process.student_session import StudentSession
from course.judging.ranks import rank_run
from course.judging.ranks.played_rank import Program
from course.judging.wrong import Wrong
from course.sandbox.errors.ending import Died, TooLong
from course.sandbox.exchange.asked import Asked
from course.sandbox.refused.builds import Builds

IN_PLACE = "comm.all_reduce(x) writes into x, too."

HARM = {
    "overwritten": (
        "changed what an earlier call had returned",
        "What was returned belongs to the caller: each call makes arrays of its own.",
    ),
    "locked": (
        "made an argument read-only",
        "What is handed over belongs to the caller, who may still write into it.",
    ),
}
"""By the word of `EarlierResults.harm`: what a call did, and the likely cause."""


class AnswerFailed(Exception):  # noqa: N818  (the name says what happened)
    """A call of the student's function returned no value.

    status    the outcome of the check
    last      whether further calls would fail as well
    classes   the names of the classes of the error that it raised, from the error's own on
    """

    def __init__(self, status: Status, message: str, last: bool = False, classes: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.last = last
        self.classes = classes.split()


class Answer:
    """The student's function `name` in `session`.

        answer(*arguments)              calls it on copies; returns a copy of its result, as plain data
        answer.run(probe, *arguments)   calls probe(function, *arguments) in the student's process, for what cannot be
                                        seen from here, such as memory; probes are in `course/probes/`
        answer.on_ranks(...)            runs it as the program of simulated ranks

    Each raises AnswerFailed if there is no result.

    An answer must leave its arguments unchanged, except those in `may_change` (positions from 0): those that the
    exercise wants changed, and those that the check itself compares. After a call they come back and are compared here.
    A change does not fail the call. It costs one part of the check: the first part with a change in which nothing else
    is wrong (`unchanged`, which Part calls). What it has returned before must stay unchanged, too.
    """

    def __init__(self, name: str, session: StudentSession) -> None:
        self.name = name
        self.session = session
        self._change: tuple[str, str] | None = None
        self._is_change_reported = False

    def __call__(self, *arguments: Any, may_change: Collection[int] = ()) -> Any:
        return self._call(None, arguments, may_change)

    def run(self, probe: Callable[..., Any], *arguments: Any) -> Any:
        return self._call(probe, arguments)

    def begin_check(self, refused: tuple[str, Builds] | None = None) -> None:
        """Start a check: forget the changes and the output of the previous one. refused: see StudentSession."""
        self._change, self._is_change_reported = None, False
        self.session.begin_check(refused)

    def unchanged(self) -> None:
        """Raise Wrong if a call changed its arguments; at most once in a check."""
        if self._change is not None and not self._is_change_reported:
            self._is_change_reported = True
            raise Wrong(*self._change)

    def offered(self, function: Callable[..., Any], name: str) -> Asked:
        """An argument that the answer can call with plain data; `function` itself runs here, in the check's process."""
        self.session.functions.append(function)
        return Asked(len(self.session.functions) - 1, name)

    def on_ranks(
        self,
        arguments: list[tuple[Any, ...]],
        network: Any = None,
        *,
        may_change: Collection[int] = (),
        played: Mapping[int, Program] | None = None,
        **options: Any,
    ) -> rank_run.RankRun:
        """Run `function(comm, *arguments[rank])` on as many simulated ranks as there are tuples of arguments.

        may_change: positions in `arguments[rank]`. played, options: those of `rank_run.run`.
        """
        try:
            with self._failures():
                run = rank_run.run(self.session, self.name, arguments, network, played=played, **options)
        except rank_run.AnswerError as failed:
            raise self._failure(failed.described, f" of {len(arguments)}") from None
        for rank, (before, after) in enumerate(zip(arguments, run.arguments, strict=True)):
            if self._change is None and rank not in (played or ()):
                changed = self._change_of(before, after, may_change, rank=f"rank {rank} of {len(arguments)}")
                does_reduce = "all_reduce" in run.operations[rank]
                self._change = changed and (changed[0], f"{changed[1]} {IN_PLACE}" if does_reduce else changed[1])
        return run

    def _call(
        self, probe: Callable[..., Any] | None, arguments: tuple[Any, ...], may_change: Collection[int] = ()
    ) -> Any:
        with self._failures():
            kind, reply = self.session.request("call", (probe, self.name, arguments))
        if kind != "value":
            raise self._failure(reply)
        if not isinstance(reply, tuple) or len(reply) != 3:
            raise AnswerFailed(Status.RAISED, f"{self.name} wrote into the connection to the check.", last=True)
        value, after, harm = reply
        if self._change is None and harm in HARM:
            self._change = f"{self.name} {HARM[harm][0]}.", HARM[harm][1]
        if self._change is None:
            self._change = self._change_of(arguments, after, may_change, is_direct=probe is None)
        return value

    def _change_of(
        self, before: tuple[Any, ...], after: Any, may_change: Collection[int], is_direct: bool = True, rank: str = ""
    ) -> tuple[str, str] | None:
        """What a call, or the function on a rank, changed, in a sentence, and the likely cause; None for no change."""
        if not first_change(before, after, [""] * len(before), may_change):
            return None
        names = ["what it was given"] * len(before)
        if is_direct:
            names = self._parameters(bool(rank) + len(before))[bool(rank) :]  # on ranks, the first is the communicator
        found = first_change(before, after, names, may_change)
        where = f"{self.name} on {rank}" if rank else self.name
        return found and (f"{where} changed {'its argument ' if is_direct else ''}{found[0]}.", found[1])

    def _parameters(self, count: int) -> list[str]:
        """The student's names of the first `count` parameters, or numbers where there are none."""
        names = [f"number {number + 1}" for number in range(count)]
        with self._failures():
            kind, own = self.session.request("parameters", (self.name,))
        if kind == "value" and isinstance(own, list):
            names[: len(own)] = [str(name) for name in own[:count]]
        return names

    def _failure(self, error: dict[str, Any], of_ranks: str = "") -> AnswerFailed:
        return failure(self.name, error, self.session.undefined.get(self.name, ""), of_ranks)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn the end of the student's process, or a time-out, into the end of the check."""
        try:
            yield
        except Died as died:
            raise AnswerFailed(Status.RAISED, f"{self.name} returned no result: {died}.", last=True) from None
        except TooLong as late:
            raise AnswerFailed(Status.STUCK, f"{self.name}: {late}.", last=True) from None


def failure(name: str, error: dict[str, Any], why_undefined: str = "", of_ranks: str = "") -> AnswerFailed:
    """AnswerFailed for an error that the student's process described. of_ranks: " of 4" after a run on 4 ranks."""
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
    place = f"{RAISED_IN}{error['place']}" if error["place"] else ""
    return AnswerFailed(Status.RAISED, f"{name} raised {error['type']}{rank}{text}{place}", classes=error["classes"])
