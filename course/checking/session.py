"""The process in which a student's code runs: started when needed, bounded, watched, and always ended.

The check stays in its own process. What the student's code does to modules, files' descriptors or the interpreter
happens elsewhere, and all that comes back is data.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from course.bootstrap import ROOT
from course.checking import caches, plain_data, strays, supervisor
from course.checking.asked import told
from course.checking.builds import Builds
from course.checking.channel import Broken, Garbage, Receiver, Sender, ready
from course.checking.deadline import Deadline
from course.checking.ending import Died, Stopped, TooLong, ending_of
from course.checking.helper_files import copy_helper_files
from course.checking.hidden import ORACLES
from course.checking.limits import Limits, new_mark, starved
from course.checking.reply import reply_in
from course.checking.scratch import Scratch
from course.checking.sources import Sources
from course.checking.stack_file import StackFile
from course.checking.strays import TOKEN
from course.checking.student_error import place_in_text
from course.checking.supervisor import OWN
from course.checking.terms import Terms
from minidl.instruction_set import of_children

START_SECONDS = 60.0
"""In which a process has to be there, and to have imported what an answer uses; none of it is the answer's time."""

WATCH_SECONDS = 0.5
"""Between two looks at what the process uses."""


WITHOUT_EFFECT = frozenset({"call", "prepare", "fork_ranks", "ended", "end_ranks"})
"""Requests after which ranks need not be forked anew: copies of what the process was before are as good."""


class Session:
    """One student's process, made anew after it died or was ended; `load` gives it its code each time.

    folder: where the student's files are; the process works on copies of them. ends_at: by time.monotonic, when all
    calls together have to be over. secret: folders whose files the student's code may not read. is_stopped: asked
    twice a second; when it says so, the process is ended, and Stopped raised. sources: the student's cells, by which
    lines are named; `load` fills it. functions: the check's, for the answer to call. refused: to which exercise what.
    No bound counts time in which the process was starved (see Deadline).
    """

    def __init__(
        self,
        load: Callable[[Session], None],
        limits: Limits | None = None,
        folder: str | os.PathLike[str] | None = None,
        ends_at: float = float("inf"),
        secret: Sequence[Path] = (),
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.limits = limits or Limits()
        self.sources = Sources()
        self.undefined: dict[str, str] = {}
        """By the name of a function that a cell should have defined: why it did not."""
        self.functions: list[Callable[..., Any]] = []
        self.refused: tuple[str, Builds] | None = None
        self._is_refused: tuple[str, Builds] | None = None
        self._load = load
        self._folder = None if folder is None else Path(folder).resolve()
        self.ranks: Any = None
        """Processes that play ranks, if there are any (`forked_ranks.py`)."""
        self._starved_before = 0.0  # seconds, of the processes that have ended
        self._secret = [str(path.resolve()) for path in dict.fromkeys((*ORACLES, *secret))]
        self._is_stopped = is_stopped
        self._watched_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._ends = self._check_ends = Deadline(ends_at - time.monotonic(), self._starved)
        self._is_loaded = self._is_loading = False
        self._printed = bytearray()
        self._keeping = threading.Lock()  # held while something is taken out of the pipe and kept

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin_check(self, refused: tuple[str, Builds] | None = None) -> None:
        """A check begins: it has `limits.total` seconds, and only what is printed from now on is its answer's."""
        self._forget_printed()
        self.functions.clear()
        self.refused, self._check_ends = refused, Deadline(min(self._ends.left(), self.limits.total), self._starved)

    def end_check(self) -> None:
        """The check is over: cells may run again without its bounds."""
        self.refused, self._check_ends = None, self._ends

    @property
    def printed(self) -> str:
        """The beginning of what the process has printed since the check began."""
        until = time.monotonic() + 0.2
        while self._process and ready(self._output, select.POLLIN, 0.0) and time.monotonic() < until:
            time.sleep(0.001)  # the thread that reads is behind
        with self._keeping:  # what it has taken out of the pipe is kept by now
            return self._printed.decode(errors="replace")[: self.limits.printed]

    def _forget_printed(self) -> None:
        _ = self.printed
        self._printed.clear()

    def prepare(self, *modules: str) -> None:
        """Have modules imported that a check needs beside the answer."""
        self.request("prepare", (modules,), START_SECONDS)

    # For ranks, which are forked from the process

    def drop_ranks(self) -> None:
        """End the processes of ranks: they have failed, or are copies of what the process was before."""
        ranks, self.ranks = self.ranks, None
        if ranks is not None:
            self._starved_before += ranks.starved()
            ranks.end()

    @property
    def mark(self) -> int:
        return self._mark

    def pass_on(self, data: bytes, descriptors: Sequence[int]) -> None:
        """Give the process descriptors of this one. Raises Died if it takes no more of them."""
        try:
            socket.send_fds(self._passed, [data], descriptors)
        except OSError:
            self.close()
            raise Died(ending_of(None)) from None

    def note_printed(self, text: str) -> None:
        """Keep what was printed by ranks."""
        data = text.encode(errors="replace")
        with self._keeping:
            self._printed += data[: max(0, 4 * self.limits.printed - len(self._printed))]

    def out_of_time(self) -> str:
        """What to say if all calls of a check have to be over by now; else nothing."""
        together = max(0.0, self._check_ends.seconds)
        return f"all calls together did not finish within {together:.3g} s" if self._check_ends.is_over() else ""

    def watch(self) -> None:
        """Raise Stopped or Died if the check is not wanted any more, or the processes use too much."""
        assert self._process is not None
        try:
            self._watch(self._process)
        except Broken:
            raise Died(self._ending()) from None

    def request(self, method: str, arguments: tuple[Any, ...], seconds: float | None = None) -> tuple[str, Any]:
        """Send a request (a method of StudentSide) and wait for the reply, ("value", value) or ("error", {...}).

        Starts the process, and loads its code, if there is none. Raises Died or TooLong, after which the process is
        gone, with all that it started.
        """
        try:
            if self._process is None:
                self._start()
            if not self._is_loaded and not self._is_loading:
                self._load_code()
            if self._is_refused != self.refused and not self._is_loading:
                self._refuse()
            return self._exchange(method, arguments, seconds or self.limits.seconds)
        except Broken:
            ending = self._ending()
            self.close()
            raise Died(ending) from None
        except (Garbage, plain_data.DamagedError):
            self.close()
            raise Died("it wrote into the connection to the check, as writing to every descriptor does") from None
        except BaseException:  # KeyboardInterrupt as well
            self.close()
            raise

    def close(self) -> None:
        """End the process and all that it started, and remove what it wrote."""
        process, self._process = self._process, None
        if process is None:
            return
        if self.ranks is not None:
            self._starved_before += self.ranks.starved()
            self.ranks.close()
            self.ranks = None
        self._starved_before += starved(self._pid)
        try:
            strays.end_all(process, self._control, self._mark)
        except BaseException:  # Ctrl-C, again
            strays.end_all(process, self._control, self._mark)
            raise
        finally:
            self._is_loaded = False
            self._control.close()
            self._reader.join(1.0)
            os.close(self._requests.descriptor)
            os.close(self._replies.descriptor)
            self._passed.close()
            self._stack.close()
            self._scratch.remove()
            if not self._has_own_view:
                strays.remove_shared_memory(self._shared_memory)

    def _load_code(self) -> None:
        self._is_loading = True
        try:
            self._load(self)
            self._is_loaded = True
            self._forget_printed()  # by cells
        finally:
            self._is_loading = False

    def _refuse(self) -> None:
        """Have refused there what is to be refused now; if that fails, it is the student's doing."""
        kind, error = self._exchange("refuse", self.refused or ("", None), START_SECONDS)
        if kind == "error":
            raise Died(f"it damaged what refuses the library's version of the exercise: {error['text']}")
        self._is_refused = self.refused

    def _exchange(self, method: str, arguments: tuple[Any, ...], seconds: float) -> tuple[str, Any]:
        """One request and its reply, watched."""
        if method not in WITHOUT_EFFECT:
            self.drop_ranks()
        process = self._process
        assert process is not None
        ends = Deadline(seconds, self._starved)
        until = ends.began + seconds
        self._number += 1
        if ends.began > self._watched_at + WATCH_SECONDS:  # short calls are not watched while they last
            self._watch(process)
        is_sent = self._requests.send(pickle.dumps((self._number, method, arguments), protocol=5), until)
        while True:
            data = self._replies.receive(min(until, self._check_ends.time(), time.monotonic() + WATCH_SECONDS))
            if data is not None:
                number, kind, value = reply_in(data)
                if number == self._number and kind == "ask":
                    self._requests.send(pickle.dumps(told(self.functions, *value), protocol=5), until)
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
            self._watch(process)

    def _starved(self) -> float:
        """Seconds in which the processes of this session were ready to run and others had the cores."""
        of_ranks = self.ranks.starved() if self.ranks is not None else 0.0
        return self._starved_before + of_ranks + (starved(self._pid) if self._process else 0.0)

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Raise if the process has ended while another still holds its connection, or if together they use too much."""
        if self._is_stopped():
            raise Stopped
        if process.poll() is not None:
            raise Broken
        self._watched_at = time.monotonic()
        used = strays.used(process.pid, self._mark)
        if used.processes > self.limits.processes:
            raise Died(
                f"it had started {used.processes - 1} processes; more than {self.limits.processes} are not allowed"
            )
        if used.threads > self.limits.threads:
            raise Died(f"it had {used.threads:,} threads; more than {self.limits.threads:,} are not allowed")
        if used.memory > self.limits.memory:
            raise Died(f"it used more than {self.limits.memory / 2**30:.3g} GB of memory")
        if used.unnamed > self.limits.written or self._scratch.is_fuller_than(self.limits.written):
            raise Died(f"it wrote more than {self.limits.written / 2**30:.3g} GB of files, or too many of them")

    def _where(self) -> str:
        """In which of the student's lines the process is, as it says itself when it gets a signal."""
        assert self._process is not None
        if self._process.poll() is not None:
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGUSR1)
        until = time.monotonic() + 0.5
        while time.monotonic() < until and not (text := self._stack.text()).endswith("\n"):
            time.sleep(0.01)
        place = place_in_text(text, self.sources, is_innermost_first=True)
        return f"; it was at {place}" if place else ""

    def _ending(self) -> str:
        """How the process ended, in words."""
        assert self._process is not None
        try:
            code = self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            code = None
        return ending_of(code)

    def _start(self) -> None:
        """Start the process and wait until it can answer."""
        self._mark, self._number, self._is_refused = new_mark(), 0, None
        self._pid, self._has_own_view, self._shared_memory = 0, False, strays.shared_memory()
        caches.fill()
        self._scratch = Scratch()
        if self._folder is not None:
            copy_helper_files(self._folder, self._scratch.folder)
        to_child, requests = os.pipe()
        replies, from_child = os.pipe()
        self._passed, passed = socket.socketpair()
        self._passed.setblocking(False)
        self._requests, self._replies = Sender(requests), Receiver(replies, self.limits.reply)
        self._control, control = socket.socketpair()
        self._stack = StackFile()
        to_pass = (to_child, from_child, passed.fileno(), self._stack.descriptor)
        self._process = subprocess.Popen(
            [*self._supervised(control), sys.executable, "-P", "-m", "course.checking.answer_process",
             *map(str, to_pass)],
            cwd=ROOT, env=self._environment(), pass_fds=(*to_pass, control.fileno()), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        os.close(to_child)
        os.close(from_child)
        passed.close()
        control.close()
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        self._printed.clear()
        self._reader = threading.Thread(target=self._keep_beginning, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        until = time.monotonic() + START_SECONDS
        try:
            is_there = self._requests.send(pickle.dumps(self._terms()), until) and self._replies.receive(until)
        except Broken:
            is_there = None
        pid, kind = (self._control.recv(64) if is_there else b"0 -").split()
        self._pid, self._has_own_view = int(pid), kind == OWN
        if not is_there:
            raise RuntimeError(f"the process for answers did not start within {START_SECONDS:g} s: {self.printed}")

    def _supervised(self, control: socket.socket) -> list[str]:
        """The beginning of a command that `supervisor.py` runs."""
        return [
            sys.executable, "-I", "-S", supervisor.__file__, str(control.fileno()), str(self._mark),
            str(self.limits.written), str(self._scratch.root), os.pathsep.join(self._path()), *self._secret, "--",
        ]  # fmt: skip

    def _path(self) -> list[str]:
        """Where the student's code imports from: its folder, as here, and the folder that its own is a copy of.

        What was not copied can be imported too, where a student checks, but shadows nothing there.
        """
        own = [str(self._folder)] if self._folder else []
        here = (entry for entry in sys.path if entry and entry not in own)
        return list(dict.fromkeys([str(self._scratch.folder), *here, str(ROOT), *own]))

    def _terms(self) -> Terms:
        own = [str(self._folder)] if self._folder else []
        return Terms(
            self.limits, self._mark, str(self._scratch.root), str(self._scratch.folder),
            self._path(), own, self._secret,
        )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        """The environment: nothing is installed from there, drawn on a screen, or kept in the user's folders.

        Matrix products have the same bits there as here.
        """
        temporary = str(self._scratch.temporary)
        return {
            **os.environ,
            **of_children(),
            **caches.environment(self._scratch.root),
            TOKEN: str(self._mark),
            "PYTHONPATH": str(ROOT),
            "TMPDIR": temporary,
            "IPYTHONDIR": str(self._scratch.settings),
            "MPLBACKEND": "agg",
            "PIP_NO_INDEX": "1",
            "UV_OFFLINE": "1",
        }

    def _keep_beginning(self, output: Any) -> None:
        """Read all that the process prints, so that it never blocks, and keep the beginning."""
        poll, is_open = select.poll(), True
        poll.register(output, select.POLLIN)
        while is_open:
            poll.poll()
            with self._keeping:
                data = os.read(output.fileno(), 65536)
                self._printed += data[: max(0, 4 * self.limits.printed - len(self._printed))]
            is_open = bool(data)
        output.close()
