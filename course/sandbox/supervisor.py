"""The parent process of a student's process: ends every process that the student's code started, then itself.

On Linux the warm parent forks it (`warm_parent.py`); elsewhere `student_process.py` starts it as a script, so it uses
only the standard library. On Linux it is a child subreaper (prctl(2)): a process whose parent has ended becomes its
child, also a daemon, the leader of another session, or a process without environment and limits. When it has no
children any more, everything has ended. It is outside of the fence: where the kernel can forbid that, the student's
code cannot signal it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

SET_CHILD_SUBREAPER = 36
"""A number of linux/prctl.h."""

SHARED_MEMORY = "/dev/shm"

PATIENCE = 5.0
"""Seconds after which killed processes are no longer waited for."""

TOKEN = "MINIDL_ANSWER"
"""The environment variable with the mark of a student's processes."""

OWN, COMMON = b"own", b"common"
"""Reported to the check: whether the process has its own view of the file system."""


def main(arguments: Sequence[str]) -> NoReturn:
    """CONTROL MARK SCRATCH COMMAND...: run the command, and end with it (not on Linux)."""
    control, mark, scratch, *command = arguments
    link = int(control)
    os.set_inheritable(link, False)
    os.write(link, b"%d\n" % os.getpid())

    def begin() -> NoReturn:
        os.setsid()
        report(link, COMMON)
        os.execv(command[0], command)

    supervise(link, os.getppid(), begin, lambda: clean_up(scratch, mark))


def supervise(link: int, check: int, begin: Callable[[], NoReturn], clean_up: Callable[[], None]) -> NoReturn:
    """Fork the student's process, and end with it.

    Parameters
        link       a socket. Lines to the check: the number of this process (written by the caller); what the student's
                   process reports; its exit code after everything has ended. A byte from it asks to end everything.
        check      the check's process. If it has ended, or closed `link`, `clean_up` is called at the end.
        begin      the student's process; must not return
    """
    become_subreaper()
    wakeup, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    answer = os.fork()
    if answer == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            begin()
        except Exception as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    close_all_but(link, wakeup, wakes)
    status, is_alone = until_it_ends(answer, link, wakeup, check)
    end_all(answer)
    try:
        os.write(link, b"%d\n" % os.waitstatus_to_exitcode(status))
    except OSError:
        is_alone = True
    if is_alone:
        clean_up()
    os._exit(0)


def report(link: int, view: bytes) -> None:
    """In the student's process: tell the check its number, and whether it has its own view of the file system."""
    os.write(link, b"%d %s\n" % (os.getpid(), view))


def until_it_ends(answer: int, link: int, wakeup: int, check: int) -> tuple[int, bool]:
    """The status with which the answer ended (0 if it has not), and whether the check's process has ended.

    wakeup: a pipe that can be read when a child has ended.
    """
    poll = select.poll()
    poll.register(link, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        ready = dict(poll.poll(1000))
        if link in ready:
            return 0, not os.read(link, 1)
        if wakeup in ready:
            os.read(wakeup, 4096)
        status = reaped(answer)
        if status is not None:
            return status, False
        if has_ended(check):
            return 0, True


def has_ended(process: int) -> bool:
    """Whether a process of this user has ended, and its parent knows."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def become_subreaper() -> None:
    """Let orphans below this process become its children (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def close_all_but(*kept: int) -> None:
    """Close all descriptors but these, standard input, output and errors."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the descriptor by which this list was read
                continue


def reaped(answer: int) -> int | None:
    """Reap the children that have ended; return the status of the answer if it is one of them."""
    status = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == answer:
                status = ended[1]
    except ChildProcessError:
        pass
    return status


def end_all(answer: int) -> None:
    """Kill all processes below this one, until it has no children."""

    def left() -> list[int]:
        if not has_children():
            return []
        return descendants(os.getpid()) if sys.platform == "linux" else [answer]

    kill_until_gone(left)


def kill_until_gone(left: Callable[[], list[int]]) -> None:
    """Kill the processes that `left` returns, until it returns none or PATIENCE is over."""
    until = time.monotonic() + PATIENCE
    while (processes := left()) and time.monotonic() < until:
        for kill in (signal.SIGSTOP, signal.SIGKILL):  # all are stopped first, so that none can start another one
            for process in processes:
                try:
                    os.kill(process, kill)
                except OSError:  # it has ended
                    continue
        time.sleep(0.001)


def has_children() -> bool:
    """Whether a child is running, after those that have ended were reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def descendants(ancestor: int) -> list[int]:
    """The processes below another one (Linux)."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])  # a name may hold brackets
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found = [ancestor]
    for process in found:
        found += children.get(process, [])
    return found[1:]


def clean_up(scratch: str, mark: str) -> None:
    """Clean up in place of the check's process, which has ended; orphans have gone elsewhere (not on Linux)."""
    code = "import sys; from course.judging.process import strays; from course.sandbox.scratch import remove\n"
    code += "strays.end_marked(sys.argv[1]); remove(sys.argv[2])"
    os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", code, mark, scratch)


if __name__ == "__main__":
    main(sys.argv[1:])
