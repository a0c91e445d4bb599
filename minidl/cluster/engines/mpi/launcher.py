"""Outside mpiexec: start it, and be to its ranks what the launcher is to processes."""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import select
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from minidl import kernels
from minidl.cluster.diagnosis.errors import CommTimeout, RankFailed
from minidl.cluster.engines import control
from minidl.cluster.engines.mpi.leftovers import end_processes, no_topology_file, remove_unused, segments
from minidl.cluster.engines.mpi.started import HELLO, StartedProcess, StartedRank, address
from minidl.cluster.engines.os_process.interrupts import interrupts_held
from minidl.cluster.engines.os_process.segments import anonymous_file
from minidl.cluster.engines.os_process.supervisor import RankProcess, Supervisor
from minidl.cluster.engines.os_process.task import file_of, packed
from minidl.cluster.engines.processes.engine import standard_error
from minidl.cluster.engines.protocol import Program, Terms
from minidl.cluster.engines.threads import thread_variables, threads_of_a_rank
from minidl.cluster.run import Run
from minidl.instruction_set import of_children

LOOK_MILLISECONDS = 50
CREDENTIALS = struct.Struct("3i")  # of who has connected: process, user, group (man 7 unix)
VERSION_SECONDS = 10.0
GRACE_SECONDS = 2.0  # for mpiexec to end by itself once its ranks have ended
MARK = "MINIDL_MPI_JOB"  # in the environment of all processes of a job, with its name


def run_under_mpiexec(program: Program, args: tuple[Any, ...], terms: Terms, *, trace_events: int, debug: bool) -> Run:
    """Start `terms.nodes` ranks by mpiexec on this machine, let them run the program, and leave nothing behind."""
    if not hasattr(os, "pidfd_open"):
        raise OSError("launch starts mpiexec on Linux only: elsewhere, start the script itself by mpiexec")
    mpiexec = find_mpiexec()
    task = packed(program, args)
    threads = threads_of_a_rank(terms.nodes)
    supervisor = Supervisor(terms)
    with Job(mpiexec, terms, threads, debug) as job:
        try:
            job.connect(supervisor.ranks)
            with file_of(task) as task_file:
                for process in supervisor.ranks:
                    start = control.Start(
                        rank=process.rank,
                        terms=replace(terms, listener=None),
                        has_listener=terms.listener is not None,
                        kernels=kernels.active(),
                        threads=threads,
                        trace_events=trace_events,
                        payload_bytes=len(task),
                    )
                    descriptors = (process.output, standard_error(process), task_file, process.notes)
                    process.send(control.START, pickle.dumps(start), descriptors)
                return supervisor.supervise()
        finally:
            supervisor.close()


def find_mpiexec() -> str:
    """The mpiexec that belongs to mpi4py's library: that of this Python's environment before any other."""
    if find_spec("mpi4py") is None:
        raise ModuleNotFoundError("on='mpi' needs mpi4py and an MPI library: pip install 'minidl[mpi]'")
    places = dict.fromkeys((str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ.get("PATH")))
    for place in places:
        found = shutil.which("mpiexec", path=place)
        if found is not None:
            return found
    raise FileNotFoundError("on='mpi' needs mpiexec, and there is none on the PATH: pip install 'minidl[mpi]'")


class Job:
    """The ranks that one mpiexec has started, and the socket at which they report to this process."""

    def __init__(self, mpiexec: str, terms: Terms, threads: int, debug: bool) -> None:
        self._nodes = terms.nodes
        self._deadline = terms.deadline
        self._ends_at = float("inf") if terms.deadline is None else time.monotonic() + terms.deadline
        self._mpiexec = mpiexec
        self._threads = threads
        self._debug = debug
        self._has_connected = False

    def __enter__(self) -> Job:
        self._segments = segments()
        self._stack = contextlib.ExitStack()
        self._door = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        self._name = f"minidl-{secrets.token_hex(8)}"
        self._door.bind(address(self._name))
        self._door.listen(self._nodes)
        self._said = self._stack.enter_context(open(anonymous_file("minidl mpiexec"), "w+b"))
        module = ("-m", "minidl.cluster.engines.mpi.rank", self._name, "debug" if self._debug else "")
        command = [self._mpiexec, *_options(self._mpiexec), "-n", str(self._nodes), sys.executable, "-P", *module]
        variables = {
            "PYTHONPATH": os.pathsep.join(_module_folders()),
            "MPI4PY_RC_INITIALIZE": "0",  # ranks do it when they have imported all, for MPI waits with a busy core
            MARK: self._name,
        }
        variables |= thread_variables(self._threads) | of_children() | no_topology_file()
        with interrupts_held():
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches this process alone, which ends the others
                env=os.environ | variables,
            )
        return self

    def connect(self, ranks: list[RankProcess]) -> None:
        """Fill the list with all ranks, in order, when they have connected; with those that have if this fails."""
        found: dict[int, RankProcess] = {}
        door = select.poll()
        door.register(self._door, select.POLLIN)
        try:
            while len(found) < self._nodes:
                self._check_start()
                if door.poll(LOOK_MILLISECONDS):
                    self._let_in(found)
        finally:
            ranks += [found[rank] for rank in sorted(found)]
        self._has_connected = True

    def _check_start(self) -> None:
        if time.monotonic() > self._ends_at:
            raise CommTimeout(
                f"the run did not finish within its deadline of {self._deadline:g} s: it was still starting"
            )
        if self._process.poll() is not None:
            words = f"; it said:\n{self.words()}" if self.words() else ", without a word: a process was killed"
            raise RankFailed(f"{self._mpiexec} ended before its ranks had started{words}")

    def _let_in(self, found: dict[int, RankProcess]) -> None:
        """Accept one connection: a rank's, or that of a stranger, which is closed."""
        link, _ = self._door.accept()
        process, user, _ = CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
        hello = link.recv(HELLO.size, socket.MSG_WAITALL) if user == os.getuid() else b""
        if len(hello) < HELLO.size:
            link.close()
            return
        (rank,) = HELLO.unpack(hello)
        try:
            found[rank] = StartedRank(rank, StartedProcess(process), link)
        except ProcessLookupError as error:
            link.close()
            raise RankFailed(f"the process of rank {rank} died while it started", rank=rank) from error

    def __exit__(self, *_: object) -> None:
        """End mpiexec, which ends what it has started."""
        with interrupts_held():
            if not self._has_connected:
                self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_SECONDS)
            self._process.kill()
            end_processes(self._name, GRACE_SECONDS)
            self._process.wait()
            remove_unused(self._segments)
            self._stack.close()

    def words(self) -> str:
        """What mpiexec itself has said."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip()


def _module_folders() -> list[str]:
    """Where the ranks look for modules: where this process does.

    In a notebook, and for `python -c` and `python -`, an empty entry of sys.path stands for the current folder.
    """
    with contextlib.suppress(FileNotFoundError):  # the folder has been deleted: nothing can be imported from it
        here = os.getcwd()
        return [folder or here for folder in sys.path]
    return [folder for folder in sys.path if folder]


def _options(mpiexec: str) -> list[str]:
    """Ranks may be more than there are cores, and stay when one of them dies, so that they can report."""
    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS).stdout
    if "HYDRA" in said:  # MPICH, and what is derived from it
        return ["-disable-auto-cleanup", "-bind-to", "none"]
    if "Open MPI" in said or "PRRTE" in said:
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []  # it asks whether that is meant
        return ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "--enable-recovery", *as_root]
    return []
