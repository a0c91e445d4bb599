"""The parent process of a student's process: ends every process that the student's code started, then itself.

`student_process.py` starts it as a script. It uses only the standard library, so that it starts within milliseconds,
and imports files of its own folder by their path. On Linux it is a child subreaper (prctl(2)): a process whose parent
has ended becomes its child, also a daemon, the leader of another session, or a process without environment and limits.
When it has no children any more, everything has ended. It is outside of the fence: where the kernel can forbid that,
the student's code cannot signal it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

SET_CHILD_SUBREAPER, DROP_FROM_BOUNDING_SET = 36, 24
NEW_MOUNTS, NEW_IPC, NEW_USERS = 0x00020000, 0x08000000, 0x10000000
NO_SET_ID, NO_DEVICES, BIND, RECURSIVE, NOT_TO_OTHERS = 2, 4, 1 << 12, 1 << 14, 1 << 19
MOUNT_SETATTR, HERE, ALL_BELOW, READ_ONLY = 442, -100, 0x8000, 1
"""Numbers of linux/prctl.h, linux/sched.h, linux/mount.h and linux/fcntl.h."""

CAPABILITIES = 64
OF_FILES = range(5)
"""More than the number of Linux's capabilities; and those by which an administrator opens files of all users."""

SHARED_MEMORY = "/dev/shm"
TERMINALS, NEW_TERMINAL = "/dev/pts", "/dev/ptmx"

PATIENCE = 5.0
"""Seconds for killed processes to end."""

TOKEN = "MINIDL_ANSWER"
"""The environment variable with the mark of a student's processes."""

OWN, COMMON = b"own", b"common"
"""Reported to the check: whether the process has its own view of the file system."""


def main(arguments: Sequence[str]) -> NoReturn:
    """CONTROL MARK BYTES SCRATCH LISTED SECRET... -- COMMAND: run the command, and end with it.

    CONTROL   a socket: the process number of the command is written to it, and OWN or COMMON; a byte read from it asks
              to end everything; if it is closed, the check's process has ended, and the scratch folder is removed too
    MARK      for the environment of the command
    BYTES     size of the command's own shared memory
    SCRATCH   the scratch folder
    LISTED, SECRET   folders: see `landlock.restrict`
    """
    split = arguments.index("--")
    control, mark, nbytes, scratch, listed, *secret = arguments[:split]
    check, link = os.getppid(), int(control)
    os.set_inheritable(link, False)
    become_subreaper()
    heard, rung = os.pipe()
    os.set_blocking(rung, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(rung)
    answer = os.fork()
    if answer == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kind = OWN if has_own_view(scratch, int(nbytes)) else COMMON
        os.write(link, b"%d %s\n" % (os.getpid(), kind))
        become_answer(mark, scratch, listed.split(os.pathsep), secret, arguments[split + 1 :])
    close_all_but(link, heard, rung)
    status, is_alone = until_it_ends(answer, link, heard, check)
    end_all(answer)
    if is_alone:
        clean_up(scratch, mark)
    end_as(status)


def until_it_ends(answer: int, link: int, heard: int, check: int) -> tuple[int, bool]:
    """The status with which the answer ended (0 if it has not), and whether the check's process has ended."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    poll.register(heard, select.POLLIN)
    while True:
        ready = dict(poll.poll(1000))
        if link in ready:
            return 0, not os.read(link, 1)
        if heard in ready:
            os.read(heard, 4096)
        status = reaped(answer)
        if status is not None:
            return status, False
        if os.getppid() != check:
            return 0, True


def become_subreaper() -> None:
    """Let orphans below this process become its children (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def has_own_view(scratch: str, nbytes: int) -> bool:
    """Give this process, and all that it starts, its own view of the file system (Linux); False if that is impossible.

    In it only the scratch folder can be changed; all else is read-only, rights and dates included. Shared memory of all
    kinds is empty at first, and vanishes with the last process. Terminals of others are absent. This takes an
    administrator's rights, or the right to make a user namespace.
    """
    if sys.platform != "linux" or not os.path.isdir(SHARED_MEMORY):
        return False
    return works(lambda: make_own_view(scratch, nbytes)) and make_own_view(scratch, nbytes)


def works(attempt: Callable[[], bool]) -> bool:
    """Whether `attempt` succeeds, tried in a process of its own because a half-done attempt cannot be undone."""
    process = os.fork()
    if process == 0:
        try:
            os._exit(0 if attempt() else 1)
        finally:
            os._exit(1)
    return os.waitpid(process, 0)[1] == 0


def make_own_view(scratch: str, nbytes: int) -> bool:
    """See has_own_view; after a failure it may be half done."""
    system, user, group = ctypes.CDLL(None), os.getuid(), os.getgid()
    if system.unshare(NEW_MOUNTS | NEW_IPC) != 0:
        if system.unshare(NEW_MOUNTS | NEW_IPC | NEW_USERS) != 0:
            return False
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)

    def mounted(what: bytes, where: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> bool:
        return system.mount(what, where, kind, ctypes.c_ulong(flags), options) == 0

    def with_attributes(where: bytes, flags: int, on: int, off: int) -> bool:
        attributes = struct.pack("4Q", on, off, 0, 0)
        size = ctypes.c_size_t(len(attributes))
        return system.syscall(MOUNT_SETATTR, HERE, where, flags, attributes, size) == 0

    for name, bound in (("shmall", nbytes // os.sysconf("SC_PAGE_SIZE")), ("shmmax", nbytes), ("msgmni", 100)):
        try:
            with open(f"/proc/sys/kernel/{name}", "w") as file:  # of the new namespace alone
                file.write(str(bound))
        except OSError:  # an older kernel leaves that to administrators
            continue

    def own_terminals() -> bool:
        if not os.path.isdir(TERMINALS):
            return True
        where, new = TERMINALS.encode(), NEW_TERMINAL.encode()
        return mounted(b"devpts", where, b"devpts", NO_SET_ID, b"newinstance,ptmxmode=0666,mode=0600") and (
            os.path.islink(NEW_TERMINAL) or mounted(where + b"/ptmx", new, None, BIND)
        )

    folder = os.fsencode(scratch)
    return (
        mounted(b"none", b"/", None, RECURSIVE | NOT_TO_OTHERS)
        and mounted(folder, folder, None, BIND)
        and with_attributes(b"/", ALL_BELOW, READ_ONLY, 0)
        and with_attributes(folder, 0, 0, READ_ONLY)
        and mounted(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", NO_SET_ID | NO_DEVICES, b"mode=1777,size=%d" % nbytes)
        and own_terminals()
    )


def become_answer(
    mark: str, scratch: str, listed: Sequence[str], secret: Sequence[str], command: Sequence[str]
) -> NoReturn:
    """Run the command in this process, restricted by the kernel."""
    try:
        os.environ[TOKEN] = mark
        os.setsid()
        if sys.platform == "linux":
            import landlock  # files in the folder of this one
            import system_calls
            from scratch import PREFIX

            be_ended_first()
            drop_capabilities()
            system_calls.refuse()
            landlock.restrict([scratch], secret, listed, prefix=PREFIX)
        os.execv(command[0], command)
    except Exception as error:
        print(repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(1)


def be_ended_first() -> None:
    """If the machine's memory runs out, let the kernel end this process first, and not the notebook's kernel."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        return


def drop_capabilities() -> None:
    """Keep of an administrator's rights only those to open files: it can raise no limit and make no device."""
    prctl = ctypes.CDLL(None).prctl
    for capability in range(CAPABILITIES):
        if capability not in OF_FILES:
            prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


def close_all_but(*kept: int) -> None:
    """Close all descriptors but these, standard input, output and errors."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the one that this list was read by
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
    """Clean up in place of the check's process, which has ended."""
    from scratch import remove  # a file in the folder of this one

    if sys.platform != "linux":  # orphans have gone elsewhere
        code = f"from course.judging.process import strays; strays.end_marked({mark!r})"
        os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", code)
    remove(scratch)


def end_as(status: int) -> NoReturn:
    """End with the answer's status, so that the check sees how the answer ended."""
    if os.WIFSIGNALED(status):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    main(sys.argv[1:])
