"""The engine of real processes: one operating-system process a node, on this machine.

Ranks are forked from a warm server (`forkserver`) or, where there is none, started afresh (`spawn`). A fresh process
gets one socket to the launcher; who it is and what it shall run comes over that socket.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import multiprocess
import multiprocess.forkserver
import multiprocess.resource_tracker
import multiprocess.spawn

from minidl import kernels
from minidl.cluster.engines import control
from minidl.cluster.engines.os_process import worker
from minidl.cluster.engines.os_process.interrupts import interrupts_held
from minidl.cluster.engines.os_process.supervisor import RankProcess, Supervisor
from minidl.cluster.engines.os_process.task import file_of, packed
from minidl.cluster.engines.processes.deadlock import DeadlockWatch
from minidl.cluster.engines.processes.emulated_network import check_emulated
from minidl.cluster.engines.processes.shared_board import find_left_out
from minidl.cluster.engines.processes.shared_page import MAX_NODES, Page, create_page
from minidl.cluster.engines.protocol import Program, Terms
from minidl.cluster.engines.threads import thread_variables, threads_of_a_rank
from minidl.cluster.run import Run
from minidl.instruction_set import of_children

PROCESS_NAME = "minidl rank"
PRELOAD = "minidl.cluster.engines.processes.preload"

START_DESCRIPTORS = 8  # that the launcher needs for a moment to start a rank
SERVER_LOST = (EOFError, ConnectionError)  # what a request to a fork server raises that has ended, or ends meanwhile

_starting = threading.Lock()


@dataclass(frozen=True)
class Processes:
    """Real processes on this machine, one a node; the engine that `on="processes"` means.

    start_method: "forkserver" (a launch takes hundredths of a second), "spawn", or None for the best there is.
    threads: of BLAS and numba in each rank; None for max(1, cores // nodes), counting no more cores than BLAS uses in
    this process. trace_events: how many events each rank keeps; the ledger and the shares of the trace go on beyond.

    Ranks multiply matrices by the same BLAS kernels as this process, so that equal sums have equal bits.
    """

    start_method: str | None = None
    threads: int | None = None
    trace_events: int = 20_000

    def __post_init__(self) -> None:
        if self.start_method not in (None, "forkserver", "spawn"):
            raise ValueError(f"unknown start_method {self.start_method!r}: choose 'forkserver' or 'spawn'")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, got {self.threads}")
        if self.trace_events < 0:
            raise ValueError(f"trace_events must be at least 0, got {self.trace_events}")

    def run(self, program: Program, args: tuple[Any, ...], terms: Terms) -> Run:
        nodes = terms.nodes
        if not hasattr(socket, "SCM_RIGHTS"):
            raise OSError("ranks as processes need a POSIX system (Linux, macOS, or WSL on Windows)")
        if multiprocess.current_process().daemon:
            raise RuntimeError("a rank cannot launch ranks of its own: call launch() where the run was started")
        if nodes > MAX_NODES:
            raise ValueError(f"at most {MAX_NODES} nodes run as processes on one machine, got {nodes}")
        check_emulated(terms.network)
        threads = self.threads or threads_of_a_rank(nodes)
        task = packed(program, args)
        page_file = create_page(nodes)
        page = Page(page_file, nodes)
        supervisor = Supervisor(terms, DeadlockWatch(page))
        try:
            with contextlib.ExitStack() as stack:
                task_file = stack.enter_context(file_of(task))
                memory = stack.enter_context(file_of(b""))  # of all ranks; it grows as they ask for shared arrays
                self._start_processes(supervisor.ranks, nodes, threads)
                for rank, peers in enumerate(_mesh(nodes, stack)):
                    start = control.Start(
                        rank=rank,
                        terms=replace(terms, listener=None),
                        has_listener=terms.listener is not None,
                        kernels=kernels.active(),
                        threads=threads,
                        trace_events=self.trace_events,
                        payload_bytes=len(task),
                    )
                    process = supervisor.ranks[rank]
                    process.send(
                        control.START,
                        pickle.dumps(start),
                        (process.output, standard_error(process), task_file, process.notes, *peers, memory, page_file),
                    )
            run = supervisor.supervise()
            if not run.failures and (error := find_left_out(page)) is not None:
                error.trace = run.trace
                raise error
            return run
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ETOOMANYREFS):
                raise
            hint = f"{nodes} nodes need more open files than this process may have: raise the limit (`ulimit -n 8192`)"
            raise OSError(error.errno, hint) from error
        finally:
            supervisor.close()
            page.close()
            os.close(page_file)

    def _start_processes(self, ranks: list[RankProcess], nodes: int, threads: int) -> None:
        method = self.start_method or _best_start_method()
        with _starting, _without_main(), _environment(_environment_at_start(method, threads)):
            try:
                _start_ranks(method, ranks, nodes)
            except SERVER_LOST:
                if method != "forkserver":
                    raise
                # Killed since the last launch, or out of descriptors. Its ranks cannot stay: it was to reap them.
                _end_server()
                _close_and_forget(ranks)
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
        context.set_forkserver_preload([PRELOAD])
        multiprocess.resource_tracker.ensure_running()  # first: its own start lets Ctrl-C in again
        with interrupts_held(), _room_for_a_socket():
            multiprocess.forkserver.ensure_running()
    for rank in range(nodes):
        # The first start may have to wait until the server is warm, so Ctrl-C works there. A process that was
        # asked for and not waited for finds the other end of its socket closed, and ends.
        with contextlib.nullcontext() if rank == 0 and method == "forkserver" else interrupts_held():
            ours, theirs = socket.socketpair()
            with theirs:
                name = f"{PROCESS_NAME} {rank}"
                process = context.Process(target=worker.entry, args=(theirs,), name=name, daemon=True)
                ranks.append(RankProcess(rank, process, ours))
                _check_room()
                try:
                    process.start()
                except KeyboardInterrupt:
                    _end_server()
                    raise


@contextlib.contextmanager
def _room_for_a_socket() -> Iterator[None]:
    """The fork server's socket lies in the temporary folder: say so where there is no room for it."""
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

    The fork server would end if a request broke off in the middle.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(START_DESCRIPTORS // 2):
            for descriptor in os.pipe():
                stack.callback(os.close, descriptor)


def _close_and_forget(ranks: list[RankProcess]) -> None:
    with interrupts_held():
        while ranks:
            ranks.pop().close()


def _end_server() -> None:
    """End the fork server, which may go on compiling kernels for seconds; the next launch starts another.

    From Python 3.13 on this process could not end before it: at its end it waits for the resource tracker, which ends
    when all have closed their pipe to it, the fork server too.
    """
    server = multiprocess.forkserver._forkserver._forkserver_pid  # None where ranks are spawned
    if server is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
            if hasattr(os, "waitid"):  # dead for all to see before the next start, which reaps it; macOS lacks the call
                os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)


def _mesh(nodes: int, stack: contextlib.ExitStack) -> Iterator[list[int]]:
    """For each rank in turn, the descriptors of its sockets to all other ranks; closed here once they are passed on."""
    ends: dict[tuple[int, int], socket.socket] = {}
    stack.callback(_close_all, ends)
    for rank in range(nodes):
        for peer in range(rank + 1, nodes):
            ends[rank, peer], ends[peer, rank] = socket.socketpair()
        yield [ends[rank, peer].fileno() for peer in range(nodes) if peer != rank]
        for peer in range(nodes):
            if peer != rank:
                ends.pop((rank, peer)).close()


def _close_all(ends: dict[tuple[int, int], socket.socket]) -> None:
    for end in ends.values():
        end.close()


def standard_error(rank: RankProcess) -> int:
    """Where a rank writes its errors: where this process does, or, if that is closed, to its own output."""
    try:
        os.fstat(2)
    except OSError:
        return rank.output
    return 2


def _environment_at_start(method: str, threads: int) -> dict[str, str]:
    """What a process reads before it gets its task: the server which kernels to warm, a fresh one its threads."""
    if method == "forkserver":
        return of_children() | {"MINIDL_KERNELS": kernels.active(), "MINIDL_LAUNCHER": str(os.getpid())}
    return of_children() | thread_variables(threads)


def _best_start_method() -> str:
    return "forkserver" if "forkserver" in multiprocess.get_all_start_methods() else "spawn"


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Processes that are started inside begin with these environment variables."""
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
    """Ranks that are started inside do not import the caller's main module, so that it needs no `__main__` guard.

    multiprocess tells a new process where main is, to import it again; here the program travels with its task, and
    needs no main. Processes that others start at the same time keep theirs: they are told apart by name.
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
    """The data for a launch from a folder that has been deleted; the ranks then run in that of the fork server."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(os.sep)
        data = preparation_data(name)
    finally:
        os.fchdir(here)
        os.close(here)
    del data["dir"]
    return data
