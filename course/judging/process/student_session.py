"""Requests to the process in which a student's code runs: started when needed, and ended in time."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from course.judging.process.captured_output import CapturedOutput
from course.judging.process.deadline import Deadline
from course.judging.process.hidden import ORACLES
from course.judging.process.reply import reply_in
from course.judging.process.student_process import START_SECONDS, StudentProcess
from course.sandbox.errors.ending import Died, Stopped, TooLong
from course.sandbox.errors.sources import Sources
from course.sandbox.exchange import plain_data
from course.sandbox.exchange.asked import reply_of
from course.sandbox.exchange.channel import Broken, Garbage
from course.sandbox.limits import Limits, starved_here
from course.sandbox.refused.builds import Builds

WATCH_SECONDS = 0.5
"""Seconds between two measurements of what the process uses."""

WITHOUT_EFFECT = frozenset({"call", "prepare", "fork_ranks", "ended", "end_ranks"})
"""Requests after which ranks need not be forked again: those that were forked before serve as well."""


class StudentSession:
    """Requests to one student's process. After it died or was ended, the next request starts a new one.

    Parameters
        load         called with this session for each new process; sends it the student's code
        limits       bounds of the process; time in which it had no core does not count (see Deadline)
        folder       the folder of the student's files; the process works on copies of them
        ends_at      end of all calls together, by time.monotonic
        secret       folders whose files the student's code may not read
        is_stopped   called twice a second; when it returns True, the process is ended and Stopped raised

    Attributes
        process      the process; None while there is none
        output       what it has printed since the check began
        sources      the student's cells, which name lines in messages; `load` fills it
        undefined    for a name that a cell should have defined: why it did not
        functions    functions of the check that the answer can call
        refused      the exercise that is checked and what is refused to it; None if nothing is
        ranks        the processes of ranks; None if there are none
    """

    def __init__(
        self,
        load: Callable[[StudentSession], None],
        limits: Limits | None = None,
        folder: str | os.PathLike[str] | None = None,
        ends_at: float = float("inf"),
        secret: Sequence[Path] = (),
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.limits = limits or Limits()
        self.process: StudentProcess | None = None
        self.output = CapturedOutput(self.limits.printed)
        self.sources = Sources()
        self.undefined: dict[str, str] = {}
        self.functions: list[Callable[..., Any]] = []
        self.refused: tuple[str, Builds] | None = None
        self.ranks: Any = None  # the ForkedRanks of this answer, while there are any
        self._load = load
        self._folder = None if folder is None else Path(folder).resolve()
        self._secret = [str(path.resolve()) for path in (*ORACLES, *secret)]
        self._is_stopped = is_stopped
        self._is_refused: tuple[str, Builds] | None = None
        self._is_loaded = self._is_loading = False
        self._number = 0  # of the last request
        self._watched_at = 0.0
        self._starved_before = 0.0  # seconds, of the processes that have ended
        self._ends = self._check_ends = Deadline(ends_at - time.monotonic(), self._starved)

    def __enter__(self) -> StudentSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin_check(self, refused: tuple[str, Builds] | None = None) -> None:
        """Start a check: it has `limits.total` seconds, and `output` begins anew."""
        self.output.forget()
        self.functions.clear()
        self.refused, self._check_ends = refused, Deadline(min(self._ends.left(), self.limits.total), self._starved)

    def end_check(self) -> None:
        """End a check: its time limit and its refusals end."""
        self.refused, self._check_ends = None, self._ends

    def prepare(self, *modules: str) -> None:
        """Have the process import modules that the check needs there."""
        self.request("prepare", (modules,), START_SECONDS)

    def request(self, method: str, arguments: tuple[Any, ...], seconds: float | None = None) -> tuple[str, Any]:
        """Send a request (a method of StudentSide) and wait for the reply, ("value", value) or ("error", {...}).

        If there is no process, one is started and loaded first. Raises Died or TooLong; then the process and everything
        that it started have been ended.
        """
        try:
            if self.process is None:
                self._start()
            if not self._is_loaded and not self._is_loading:
                self._load_code()
            if self._is_refused != self.refused and not self._is_loading:
                self._refuse()
            return self._exchange(method, arguments, seconds or self.limits.seconds)
        except Broken:
            assert self.process is not None
            ending = self.process.ending()
            self.close()
            raise Died(ending) from None
        except (Garbage, plain_data.DamagedError):
            self.close()
            raise Died("it wrote into the connection to the check, as writing to every descriptor does") from None
        except BaseException:  # KeyboardInterrupt as well
            self.close()
            raise

    def out_of_time(self) -> str:
        """A sentence if the time for all calls of a check is over; else ""."""
        together = max(0.0, self._check_ends.seconds)
        return f"all calls together did not finish within {together:.3g} s" if self._check_ends.is_over() else ""

    def watch(self) -> None:
        """Raise Stopped if the check was cancelled, Died if the processes use too much."""
        if self._is_stopped():
            raise Stopped
        assert self.process is not None
        self._watched_at = time.monotonic()
        self.process.watch()

    def drop_ranks(self) -> None:
        """End the processes of ranks: they failed, or were forked before the process changed."""
        ranks, self.ranks = self.ranks, None
        if ranks is not None:
            self._starved_before += ranks.starved()
            ranks.end()

    def close(self) -> None:
        """End the process and everything that it started, and remove what it wrote."""
        process, self.process = self.process, None
        if process is None:
            return
        if self.ranks is not None:
            self._starved_before += self.ranks.starved()
            self.ranks.close()
            self.ranks = None
        self._starved_before += process.starved()
        self._is_loaded, self._is_refused = False, None
        process.close()

    def _start(self) -> None:
        self.process = StudentProcess(self.limits, self._folder, self._secret, self.output)
        self.process.await_start()

    def _load_code(self) -> None:
        self._is_loading = True
        try:
            self._load(self)
            self._is_loaded = True
            self.output.forget()  # what cells have printed
        finally:
            self._is_loading = False

    def _refuse(self) -> None:
        """Have the process refuse what `refused` says. A failure is caused by the student's code."""
        kind, error = self._exchange("refuse", self.refused or ("", None), START_SECONDS)
        if kind == "error":
            raise Died(f"it damaged what refuses the library's version of the exercise: {error['text']}")
        self._is_refused = self.refused

    def _exchange(self, method: str, arguments: tuple[Any, ...], seconds: float) -> tuple[str, Any]:
        """Send one request, and watch the process until its reply has come."""
        if method not in WITHOUT_EFFECT:
            self.drop_ranks()
        process = self.process
        assert process is not None
        ends = Deadline(seconds, self._starved)
        until = ends.began + seconds
        self._number += 1
        if ends.began > self._watched_at + WATCH_SECONDS:  # short calls are not watched while they last
            self.watch()
        is_sent = process.requests.send(pickle.dumps((self._number, method, arguments), protocol=5), until)
        while True:
            data = process.replies.receive(min(until, self._check_ends.time(), time.monotonic() + WATCH_SECONDS))
            if data is not None:
                number, kind, value = reply_in(data)
                if number == self._number and kind == "ask":
                    asked = time.monotonic()
                    answered = pickle.dumps(reply_of(self.functions, *value), protocol=5)
                    ends.leave_out(time.monotonic() - asked)  # it is the check that has computed
                    until = ends.began + seconds
                    process.requests.send(answered, until)
                elif number == self._number:
                    return kind, value
                if time.monotonic() < min(until, self._check_ends.time(), self._watched_at + WATCH_SECONDS):
                    continue
            if why := self.out_of_time():
                raise TooLong(f"{why}{self._where()}")
            if time.monotonic() >= until:
                until = ends.time()
                if ends.is_over() or not is_sent:
                    raise TooLong(f"did not finish within {seconds:g} s{self._where()}")
            self.watch()

    def _where(self) -> str:
        """The student's line in which the process is, as the end of a sentence."""
        place = self.process.place(self.sources) if self.process else ""
        return f"; it was in {place}" if place else ""

    def _starved(self) -> float:
        """Seconds in which this thread or a process of this session was ready to run while others had the cores."""
        of_ranks = self.ranks.starved() if self.ranks is not None else 0.0
        of_process = self.process.starved() if self.process else 0.0
        return starved_here() + self._starved_before + of_ranks + of_process
