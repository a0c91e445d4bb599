"""Starting the ranks' processes: forked from a warm server (`forkserver`) or, where there is none, afresh (`spawn`).

A new process gets one socket, to the launcher. Over that socket it learns which rank it is and what to run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import multiprocess
import multiprocess.forkserver
import multiprocess.resource_tracker
import multiprocess.spawn

from minidl import kernels
from minidl.cluster.engines.processes.rank import entry
from minidl.cluster.engines.rank_process import RankProcess, interrupts_held
from minidl.instruction_set import of_children
from minidl.threads import thread_variables

PROCESS_NAME = "minidl rank"
PRELOAD = "minidl.cluster.engines.processes.preload"
TRAINING = ("minidl.functional", "minidl.nn", "minidl.parallel")
"""The fork server imports what the launcher has of these: otherwise each rank that trains takes 0.1 s to import it."""

START_DESCRIPTORS = 8  # descriptors that the launcher needs for a moment to start a rank
SERVER_LOST = (EOFError, ConnectionError)  # raised by a request to a fork server that has ended, or ends meanwhile

_starting = threading.Lock()


def start_processes(ranks: list[RankProcess], nodes: int, method: str | None, threads: int) -> None:
    """Start `nodes` processes, and append each to `ranks` before it starts, so that the caller can end it.

    method: "forkserver", "spawn", or None for the best there is.
    """
    if method is None:
        method = "forkserver" if "forkserver" in multiprocess.get_all_start_methods() else "spawn"
    with _starting, _without_main(), _environment(_environment_at_start(method, threads)):
        try:
            _start_ranks(method, ranks, nodes)
        except SERVER_LOST:
            if method != "forkserver":
                raise
            # The server was killed, or has no descriptors left. Its ranks must end too: only it could reap them.
            _end_server()
            with interrupts_held():
                while ranks:
                    ranks.pop().close()
            try:
                _start_ranks(method, ranks, nodes)
            except SERVER_LOST as error:
                _end_server()
                raise OSError(
                    f"the process that forks the ranks ended twice while it started {nodes} of them: raise "
                    "the limit on open files (`ulimit -n 8192`), or use on=cluster.Processes('spawn')"
                ) from error


def _start_ranks(method: str, ranks: list[RankProcess], nodes: int) -> None:
    context = multiprocess.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([*(name for name in sys.modules if name.startswith(TRAINING)), PRELOAD])
        multiprocess.resource_tracker.ensure_running()  # first, because its own start unblocks Ctrl-C
        with interrupts_held(), _room_for_a_socket():
            multiprocess.forkserver.ensure_running()
    for rank in range(nodes):
        # The first start may have to wait until the server is warm, so Ctrl-C works there. A process that is forked
        # after the launcher gave up finds the other end of its socket closed, and ends.
        with contextlib.nullcontext() if rank == 0 and method == "forkserver" else interrupts_held():
            ours, theirs = socket.socketpair()
            with theirs:
                name = f"{PROCESS_NAME} {rank}"
                process = context.Process(target=entry, args=(theirs,), name=name, daemon=True)
                ranks.append(RankProcess(rank, process, ours))
                _check_room()
                try:
                    process.start()
                except KeyboardInterrupt:
                    _end_server()
                    raise


@contextlib.contextmanager
def _room_for_a_socket() -> Iterator[None]:
    """Inside, an OSError says that the fork server's socket needs room in the temporary folder."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        raise OSError(
            f"the process that forks the ranks cannot make its socket in the temporary folder: {error}; free some room "
            "there, set TMPDIR to another folder, or use on=cluster.Processes('spawn')"
        ) from error


def _check_room() -> None:
    """Raise OSError if this process has too few descriptors left to start a rank.

    A request that fails half-way would end the fork server.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(START_DESCRIPTORS // 2):
            for descriptor in os.pipe():
                stack.callback(os.close, descriptor)


def _end_server() -> None:
    """Kill the fork server, which may still load kernels; the next launch starts another.

    From Python 3.13 on this process cannot end while the server runs: at exit it waits for the resource tracker, and
    the tracker ends only when every process, the fork server included, has closed its pipe to it.
    """
    server = multiprocess.forkserver._forkserver._forkserver_pid  # None where ranks are spawned
    if server is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
            if hasattr(
                os, "waitid"
            ):  # wait for its death, but leave it for the next start to reap; macOS lacks the call
                os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)


def _forget_server() -> None:
    """In a copy of this process, made by os.fork: let it start a fork server of its own.

    It cannot wait for the original's server, nor for a launch that another thread of the original was starting.
    """
    global _starting
    _starting = threading.Lock()
    server = multiprocess.forkserver._forkserver
    if server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        server.__init__()
        multiprocess.current_process()._config["tempdir"] = None  # the original removes its folder


os.register_at_fork(after_in_child=_forget_server)


def _environment_at_start(method: str, threads: int) -> dict[str, str]:
    """The environment in which a process starts: the server reads which kernels to warm, a spawned rank its threads."""
    if method == "forkserver":
        return of_children() | {"MINIDL_KERNELS": kernels.active(), "MINIDL_LAUNCHER": str(os.getpid())}
    return of_children() | thread_variables(threads)


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set these environment variables for the processes that are started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Keep ranks that are started inside from importing the caller's main module, so that it needs no `__main__` guard.

    multiprocess tells a new process where the main module is, to import it again. A rank does not need it, because the
    program travels with the task. Processes that other threads start at the same time, known by their names, keep it.
    """
    original = multiprocess.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        try:
            data: dict[str, Any] = original(name)
        except FileNotFoundError:
            data = _in_a_folder_that_exists(original, name)
        if name.startswith(PROCESS_NAME):
            data.pop("init_main_from_name", None)
            data.pop("init_main_from_path", None)
        return data

    multiprocess.spawn.get_preparation_data = get_preparation_data
    try:
        yield
    finally:
        multiprocess.spawn.get_preparation_data = original


def _in_a_folder_that_exists(preparation_data: Callable[[str], dict[str, Any]], name: str) -> dict[str, Any]:
    """The data for a launch from a deleted folder; its ranks run in the fork server's folder."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(os.sep)
        data = preparation_data(name)
    finally:
        os.fchdir(here)
        os.close(here)
    del data["dir"]
    return data
