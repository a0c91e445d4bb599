"""A process that has imported the command `minidl`, and forks a copy of itself for each run.

Importing the command and the library that draws takes half of the processor time of a run of a second. The copy ends as
any Python does; it differs from a new process in one thing: all copies have the same hash seed.

`python -m tests.cli.ready_process LINK` serves requests on the socket LINK until that is closed.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.cli import undrawn

MOST_BYTES = 1 << 20  # of a request


@dataclass(frozen=True)
class Ready:
    """A ready process, the socket to it, and its environment."""

    process: subprocess.Popen[bytes]
    link: socket.socket
    environment: dict[str, str]


def run(
    folder: Path, arguments: list[str], environment: dict[str, str], changes: dict[str, str], is_drawn: bool
) -> subprocess.CompletedProcess[str] | None:
    """What came of the command; None where no ready process has this environment, or the system has no such sockets.

    changes: variables that are set in the copy alone. is_drawn: whether it draws pictures, or saves empty files.
    """
    if sys.platform != "linux":
        return None
    environment = {name: value for name, value in environment.items() if name != "PYTEST_CURRENT_TEST"}
    if not READY:
        READY.append(start(environment))
    (ready,) = READY
    if ready.environment != environment:
        return None
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    request = json.dumps([str(folder), arguments, changes, is_drawn]).encode()
    socket.send_fds(ready.link, [request], [out_end, err_end])
    os.close(out_end)
    os.close(err_end)
    number = int(ready.link.recv(100))
    try:
        with open(out) as output, open(err) as errors:
            told: list[str] = []
            reader = threading.Thread(target=lambda: told.append(errors.read()))
            reader.start()
            printed = output.read()
            reader.join()
        code = int(ready.link.recv(100))
    except BaseException:  # the time of the test is over
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        ready.link.recv(100)
        raise
    return subprocess.CompletedProcess(arguments, code, printed, told[0])


READY: list[Ready] = []
"""The ready process of these tests, once there is one."""


def start(environment: dict[str, str]) -> Ready:
    """Start a ready process, which ends when the link does: with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.cli.ready_process", str(theirs.fileno())]
    with theirs:  # a pipe as standard output, since that is what it is in each copy
        process = subprocess.Popen(
            command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
    return Ready(process, ours, environment)


def serve(link: socket.socket) -> list[str]:
    """Fork a copy for each request; return in the copy, with the command's arguments, or end."""
    while True:
        request, ends, _, _ = socket.recv_fds(link, MOST_BYTES, 2)
        if not request:
            sys.exit()
        process = os.fork()
        if process == 0:
            link.close()
            folder, arguments, changes, is_drawn = json.loads(request)
            if not is_drawn:
                undrawn.put_in_place()
            os.chdir(folder)
            os.environ.update(changes)
            for number, end in enumerate(ends, start=1):
                os.dup2(end, number)
                os.close(end)
            return list(arguments)
        for end in ends:
            os.close(end)
        link.send(b"%d" % process)
        link.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


def import_the_command() -> None:
    """Import what runs of the command import, but no compiled kernels."""
    import minidl.cli

    for module in pkgutil.walk_packages(minidl.cli.__path__, "minidl.cli."):
        if not module.name.startswith("minidl.cli.bench"):
            import_module(module.name)
    for name in (
        "matplotlib.backends.backend_agg",
        "matplotlib.figure",
        "minidl.plots.curves",
        "minidl.plots.timeline",
    ):
        import_module(name)


if __name__ == "__main__":
    import_the_command()
    gc.collect()
    gc.freeze()  # a copy's collections then leave these objects alone, which copies no pages
    sys.argv = ["minidl", *serve(socket.socket(fileno=int(sys.argv[1])))]
    runpy.run_module("minidl", run_name="__main__", alter_sys=True)
