"""One student's process, as the check holds it: started under its supervisor, watched, ended with all it started.

Its program is `answer_process.py`. What the student's code does to modules, file descriptors or the interpreter stays
in that process. Only data comes back.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from course.judging.helper_files import copy_helper_files
from course.judging.process import caches, strays
from course.judging.process.captured_output import CapturedOutput
from course.judging.process.stack_file import StackFile
from course.judging.process.strays import new_mark
from course.judging.process.supervision import Supervision
from course.judging.process.warm_parent import START_SECONDS, warm_parent
from course.sandbox import supervisor
from course.sandbox.errors.ending import Died, ending_of
from course.sandbox.errors.sources import Sources
from course.sandbox.errors.student_error import place_in_text
from course.sandbox.exchange.channel import Broken, Receiver, Sender
from course.sandbox.limits import Limits, starved
from course.sandbox.scratch import Scratch
from course.sandbox.supervisor import TOKEN
from course.sandbox.terms import Terms
from course.setup.bootstrap import ROOT
from minidl.instruction_set import of_children

FORKS = sys.platform == "linux"
"""Elsewhere a process that has loaded libraries may crash after a fork."""


class StudentProcess:
    """One process, from its start to `close`.

    Parameters
        limits   its bounds
        folder   the folder of the student's files; the process works on copies of them
        secret   folders whose files it may not read
        output   captures what it prints

    Attributes
        requests, replies   the check's ends of the connection to it
        supervisor          its parent process
        pid                 its process number, after the start
        scratch             its working folder
        has_own_view        whether it has its own view of the file system, see `confinement.py`
    """

    def __init__(self, limits: Limits, folder: Path | None, secret: Sequence[str], output: CapturedOutput) -> None:
        self.limits = limits
        self.pid, self.has_own_view = 0, False
        self._folder = folder
        self._output = output
        self._mark, self._shared_memory = new_mark(), strays.shared_memory()
        caches.fill()
        self.scratch = Scratch()
        if folder is not None:
            copy_helper_files(folder, self.scratch.folder)
        to_child, requests = os.pipe()
        replies, from_child = os.pipe()
        self._passed, passed = socket.socketpair()
        self._passed.setblocking(False)
        printed, prints = os.pipe()
        self.requests, self.replies = Sender(requests), Receiver(replies, limits.reply)
        self._stack = StackFile()
        self.supervisor = Supervision()
        self._terms = Terms(
            limits, str(self.scratch.root), str(self.scratch.folder), self._path(), self._own(), secret,
            self._environment(),
        )  # fmt: skip
        self._its = [to_child, from_child, passed.detach(), os.dup(self._stack.descriptor), prints]
        output.read_from(os.fdopen(printed, "rb", buffering=0))

    def await_start(self) -> None:
        """Return when the process can reply. Raises RuntimeError if it does not start in START_SECONDS."""
        until = time.monotonic() + START_SECONDS
        try:
            if FORKS:
                warm_parent.fork(self.supervisor, self._its)
            else:
                self._start()
        finally:
            self._close_its()
        try:
            is_there = self.requests.send(pickle.dumps(self._terms), until) and self.replies.receive(until)
        except Broken:
            is_there = None
        if not is_there:
            raise RuntimeError(f"the process for answers did not start within {START_SECONDS:g} s: {self._output.text}")
        self.supervisor.await_answer()
        self.pid, self.has_own_view = self.supervisor.answer, self.supervisor.has_own_view

    def pass_on(self, data: bytes, descriptors: Sequence[int]) -> None:
        """Send file descriptors of this process to it. Raises Died if it takes no more of them."""
        try:
            socket.send_fds(self._passed, [data], descriptors)
        except OSError:
            raise Died(ending_of(None)) from None

    def starved(self) -> float:
        """Seconds in which it was ready to run while others had the cores."""
        return starved(self.pid)

    def watch(self) -> None:
        """Raise Died if it has ended, or if it and the processes it started use too much."""
        if self.supervisor.poll() is not None:
            raise Died(self.ending())
        used = strays.used(strays.below(self.supervisor.pid, self._mark))
        if used.processes > self.limits.processes:
            started = used.processes - 1
            raise Died(f"it had started {started} processes; more than {self.limits.processes} are not allowed")
        if used.threads > self.limits.threads:
            raise Died(f"it had {used.threads:,} threads; more than {self.limits.threads:,} are not allowed")
        if used.memory > self.limits.memory:
            raise Died(f"it used more than {self.limits.memory / 2**30:.3g} GB of memory")
        if used.unnamed > self.limits.written or self.scratch.is_fuller_than(self.limits.written):
            raise Died(f"it wrote more than {self.limits.written / 2**30:.3g} GB of files, or too many of them")

    def place(self, sources: Sources) -> str:
        """The student's line in which it is; "" if that is not known."""
        return "" if self.supervisor.poll() is not None else where_is(self.pid, self._stack, sources)

    def has_started(self, process: int) -> bool:
        """Whether a number is that of a process which it started."""
        return process in strays.below(self.supervisor.pid, self._mark)

    def ending(self) -> str:
        """How it ended, for a sentence."""
        return ending_of(self.supervisor.wait(0.5))

    def close(self) -> None:
        """End it and everything that it started, and remove what it wrote."""
        try:
            strays.end_all(self.supervisor, self._mark)
        except BaseException:  # Ctrl-C, again
            strays.end_all(self.supervisor, self._mark)
            raise
        finally:
            self._close_its()
            self.supervisor.link.close()
            self._output.finish()
            os.close(self.requests.descriptor)
            os.close(self.replies.descriptor)
            self._passed.close()
            self._stack.close()
            self.scratch.remove()
            if not self.has_own_view:
                strays.remove_shared_memory(self._shared_memory)

    def _close_its(self) -> None:
        """Close the descriptors that its process has by now."""
        while self._its:
            os.close(self._its.pop())

    def _start(self) -> None:
        """Start it by execve(2), where a process that has loaded libraries cannot be forked safely."""
        *to_pass, prints = self._its
        its_link = self.supervisor.its_link
        answer = [sys.executable, "-P", "-m", "course.sandbox.answer_process", *map(str, to_pass)]
        supervised = [supervisor.__file__, str(its_link.fileno()), self._mark, str(self.scratch.root), *answer]
        started = subprocess.Popen(
            [sys.executable, "-I", "-S", *supervised],
            cwd=ROOT, env=self._terms.environment, pass_fds=(*to_pass, its_link.fileno()), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=prints, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.supervisor.reap = started.wait
        its_link.close()

    def _path(self) -> list[str]:
        """sys.path of the student's code: its working folder, this process's path, and the student's own folder.

        The own folder comes last: files in it that were not copied can be imported, but shadow nothing.
        """
        own = self._own()
        here = (entry for entry in sys.path if entry and entry not in own)
        return list(dict.fromkeys([str(self.scratch.folder), *here, str(ROOT), *own]))

    def _own(self) -> list[str]:
        """The folders whose files are the student's."""
        return [str(self._folder)] if self._folder else []

    def _environment(self) -> dict[str, str]:
        """Its environment: installs nothing, draws on no screen, and writes nothing to the user's folders.

        Matrix products have the same bits as in this process.
        """
        return {
            **os.environ,
            **of_children(),
            **caches.environment(self.scratch.root),
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.scratch.temporary),
            "IPYTHONDIR": str(self.scratch.settings),
            "MPLBACKEND": "agg",
            "PIP_NO_INDEX": "1",
            "UV_OFFLINE": "1",
            TOKEN: self._mark,
        }


def where_is(process: int, stack: StackFile, sources: Sources) -> str:
    """The student's line in which a process is. On a signal, the process writes its stack into its file."""
    with contextlib.suppress(OSError):
        os.kill(process, signal.SIGUSR1)
    until, text = time.monotonic() + 0.5, ""
    while time.monotonic() < until and not text.endswith("\n"):
        time.sleep(0.01)
        text = stack.text()
    return place_in_text(text, sources, is_innermost_first=True)
