"""The process in which a student's code runs: started when needed, bounded, watched, and always ended.

The check stays in its own process. What the student's code does to modules, files' descriptors or the interpreter
happens elsewhere, and all that comes back is data.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import psutil

from course.bootstrap import ROOT
from course.checking import plain_data
from course.checking.limits import Limits

TOKEN = "MINIDL_ANSWER"
"""The environment variable by which every process that a student's code has started is found and ended."""

START_SECONDS = 60.0


class Died(Exception):  # noqa: N818  (the name says what happened)
    """The student's process ended, or broke the connection, before it answered."""


class TooLong(Exception):  # noqa: N818  (the name says what happened)
    """The student's process did not answer in time."""


class Session:
    """One student's process, made anew after it died or was ended; `load` gives it its code each time."""

    def __init__(
        self, load: Callable[[Session], None], limits: Limits | None = None, folder: str | None = None
    ) -> None:
        self.limits = limits or Limits()
        self._load = load
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.printed = ""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, probe: Any, name: str, arguments: tuple[Any, ...], seconds: float | None = None) -> Any:
        """The reply to a call of the student's function `name`, or of `probe` beside it; see `answer_process.py`.

        Raises Died or TooLong, after which the process is gone, with all that it started.
        """
        if self._process is None:
            self._start()
            self._load(self)
        return self.request("call", (probe, name, arguments), seconds or self.limits.seconds)

    def request(self, method: str, arguments: tuple[Any, ...], seconds: float) -> tuple[str, Any]:
        """Send one request to a process that runs, and wait for the reply."""
        if self._process is None:
            self._start()
        try:
            self._requests.send_bytes(pickle.dumps((method, arguments), protocol=5))
            if not self._replies.poll(seconds):
                raise TooLong
            kind, value = plain_data.loads(self._replies.recv_bytes(self.limits.reply))
        except TooLong:
            self.close()
            raise
        except (EOFError, OSError, pickle.UnpicklingError, ValueError, TypeError, AttributeError, IndexError):
            raise Died(self._ending()) from None
        except BaseException:
            self.close()
            raise
        return kind, value

    def close(self) -> None:
        """End the process and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        end_all(process, self._token)
        for connection in (self._requests, self._replies):
            connection.close()
        self._reader.join()

    def _start(self) -> None:
        """Start the process and wait until it can answer."""
        to_child, requests = os.pipe()
        replies, from_child = os.pipe()
        self._token = uuid.uuid4().hex
        self.printed = ""
        bounds = (
            self.limits.seconds,
            self.limits.memory,
            self.limits.file_size,
            self.limits.printed,
            self.limits.reply,
        )
        environment = {**os.environ, TOKEN: self._token, "MPLBACKEND": "agg", "PYTHONFAULTHANDLER": ""}
        paths = [str(ROOT), *(path for path in sys.path if path)]
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "course.checking.answer_process", str(to_child), str(from_child), *map(str, bounds)],
            cwd=self._folder, env=environment, pass_fds=(to_child, from_child), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        os.close(to_child)
        os.close(from_child)
        self._requests, self._replies = Connection(requests, readable=False), Connection(replies, writable=False)
        self._reader = threading.Thread(target=self._keep_beginning, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def _keep_beginning(self, output: Any) -> None:
        """Read all that the process prints, so that it never blocks, and keep the beginning."""
        kept = bytearray()
        while data := output.read1(65536):
            kept += data[: max(0, 4 * self.limits.printed - len(kept))]
            self.printed = kept.decode(errors="replace")[: self.limits.printed]
        output.close()

    def _ending(self) -> str:
        """How the process ended, in words; it is gone afterwards."""
        process = self._process
        assert process is not None
        try:
            code: int | None = process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            code = None
        self.close()
        if code is None:
            return "it broke the connection to the check"
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"it ended its process with exit code {code}"


def end_all(process: subprocess.Popen[bytes], token: str) -> None:
    """Kill a process, its group, and whatever else carries the token; return when they are gone."""
    strays = [process.pid]
    while strays:
        for pid in strays:
            for kill in (os.killpg, os.kill):
                try:
                    kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    continue
        if process.poll() is None:
            process.wait()
        strays = carrying(token)


def carrying(token: str) -> Sequence[int]:
    """The processes that have `token` in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(TOKEN) == token and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
