"""A launch outside mpiexec: start mpiexec, and supervise its ranks like any processes."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from minidl.cluster.diagnosis.errors import CommTimeout, RankFailed
from minidl.cluster.engines.anonymous_file import anonymous_file, file_of
from minidl.cluster.engines.mpi.cleanup import StartedProcess, end_processes, no_topology_file, remove_unused, segments
from minidl.cluster.engines.mpi.environment import HELLO, address
from minidl.cluster.engines.pickled import packed
from minidl.cluster.engines.protocol import LaunchTerms, Program
from minidl.cluster.engines.rank_process import RankProcess, interrupts_held
from minidl.cluster.engines.reports import deadline_text
from minidl.cluster.engines.supervisor import Supervisor
from minidl.cluster.run import Run
from minidl.instruction_set import of_children
from minidl.threads import thread_variables, threads_of_a_rank

LOOK_MILLISECONDS = 50
CREDENTIALS = struct.Struct("3i")  # of the connecting process: its id, user and group (man 7 unix)
VERSION_SECONDS = 10.0
GRACE_SECONDS = 2.0  # for mpiexec to end by itself once its ranks have ended
MARK = "MINIDL_MPI_JOB"  # in the environment of all processes of a job, with its name


def run_under_mpiexec(
    program: Program, args: tuple[Any, ...], terms: LaunchTerms, *, trace_events: int, debug: bool
) -> Run:
    """Run the program on `terms.nodes` ranks that mpiexec starts on this machine, and leave nothing behind."""
    if not hasattr(os, "pidfd_open"):
        raise OSError("launch starts mpiexec on Linux only: elsewhere, start the script itself by mpiexec")
    mpiexec = find_mpiexec()
    task = packed(program, args)
    threads = threads_of_a_rank(terms.nodes)
    supervisor = Supervisor(terms)
    with MpiexecJob(mpiexec, terms, threads, debug) as job:
        try:
            job.connect(supervisor.ranks)
            with file_of(task) as task_file:
                for process in supervisor.ranks:
                    process.send_start(task_file, len(task), terms, threads, trace_events)
                return supervisor.supervise()
        finally:
            supervisor.close()


def find_mpiexec() -> str:
    """The path of mpiexec; the one in this Python's environment first, because it belongs to mpi4py's library."""
    if find_spec("mpi4py") is None:
        raise ModuleNotFoundError("on='mpi' needs mpi4py and an MPI library: pip install 'minidl[mpi]'")
    places = dict.fromkeys((str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ.get("PATH")))
    for place in places:
        found = shutil.which("mpiexec", path=place)
        if found is not None:
            return found
    raise FileNotFoundError("on='mpi' needs mpiexec, and there is none on the PATH: pip install 'minidl[mpi]'")


class StartedRank(RankProcess):
    """A rank that mpiexec has started."""

    @cached_property
    def cause_of_death(self) -> str:
        return "the process died: it was killed, or it ended without a result (os._exit, or a crash of the interpreter)"


class MpiexecJob:
    """One run of mpiexec, as a context, and the listening socket to which its ranks connect."""

    def __init__(self, mpiexec: str, terms: LaunchTerms, threads: int, debug: bool) -> None:
        self._nodes = terms.nodes
        self._deadline = terms.deadline
        self._ends_at = float("inf") if terms.deadline is None else time.monotonic() + terms.deadline
        self._mpiexec = mpiexec
        self._threads = threads
        self._debug = debug
        self._has_connected = False

    def __enter__(self) -> MpiexecJob:
        self._segments = segments()
        self._stack = contextlib.ExitStack()
        self._listening = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        self._name = f"minidl-{secrets.token_hex(8)}"
        self._listening.bind(address(self._name))
        self._listening.listen(self._nodes)
        self._said = self._stack.enter_context(open(anonymous_file("minidl mpiexec"), "w+b"))
        module = ("-m", "minidl.cluster.engines.mpi.rank", self._name, "debug" if self._debug else "")
        command = [self._mpiexec, *_options(self._mpiexec), "-n", str(self._nodes), sys.executable, "-P", *module]
        variables = {
            "PYTHONPATH": os.pathsep.join(_module_folders()),
            "MPI4PY_RC_INITIALIZE": "0",  # ranks initialize MPI after their imports
            MARK: self._name,
        }
        variables |= thread_variables(self._threads) | of_children() | no_topology_file()
        with interrupts_held():
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches only this process, which ends the others
                env=os.environ | variables,
            )
        return self

    def connect(self, ranks: list[RankProcess]) -> None:
        """Return when all ranks have connected and are in `ranks`; when this raises, `ranks` holds those that had."""
        found: dict[int, RankProcess] = {}
        connections = select.poll()
        connections.register(self._listening, select.POLLIN)
        try:
            while len(found) < self._nodes:
                self._check_start()
                if connections.poll(LOOK_MILLISECONDS):
                    self._accept(found)
        finally:
            ranks += [found[rank] for rank in sorted(found)]
        self._has_connected = True

    def _check_start(self) -> None:
        if time.monotonic() > self._ends_at:
            raise CommTimeout(f"{deadline_text(self._deadline)}: it was still starting")
        if self._process.poll() is not None:
            words = f"; it said:\n{self.words()}" if self.words() else ", without a word: a process was killed"
            raise RankFailed(f"{self._mpiexec} ended before its ranks had started{words}")

    def _accept(self, found: dict[int, RankProcess]) -> None:
        """Accept one connection and enter its rank in `found`; close it if it does not come from a rank."""
        link, _ = self._listening.accept()
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
        """End mpiexec and every process of the job, and remove what they left in /dev/shm."""
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
        """The output of mpiexec itself."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip()


def _module_folders() -> list[str]:
    """The folders in which the ranks look for modules: those of this process.

    In a notebook, and for `python -c` and `python -`, an empty entry of sys.path stands for the current folder.
    """
    with contextlib.suppress(FileNotFoundError):  # the folder has been deleted: nothing can be imported from it
        here = os.getcwd()
        return [folder or here for folder in sys.path]
    return [folder for folder in sys.path if folder]


def _options(mpiexec: str) -> list[str]:
    """Options with which there may be more ranks than cores, and the other ranks outlive one that dies."""
    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS).stdout
    if "HYDRA" in said:  # MPICH and its derivatives
        return ["-disable-auto-cleanup", "-bind-to", "none"]
    if "Open MPI" in said or "PRRTE" in said:
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []  # it refuses to run as root without it
        return ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "--enable-recovery", *as_root]
    return []
