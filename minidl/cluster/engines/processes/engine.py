"""The engine of real processes: one operating-system process for each node, on this machine."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import multiprocess

from minidl.arguments import one_of, real_number, whole_number
from minidl.cluster.engines.anonymous_file import file_of
from minidl.cluster.engines.pickled import packed
from minidl.cluster.engines.processes.emulated_network import check_emulated
from minidl.cluster.engines.processes.shared_fingerprints import find_left_out
from minidl.cluster.engines.processes.shared_page import MAX_NODES, DeadlockWatch, Page, create_page
from minidl.cluster.engines.processes.start import start_processes
from minidl.cluster.engines.protocol import LaunchTerms, Program
from minidl.cluster.engines.supervisor import Supervisor
from minidl.cluster.run import Run
from minidl.threads import threads_of_a_rank


@dataclass(frozen=True)
class Processes:
    """Real processes on this machine, one for each node; the engine that `on="processes"` means.

    Parameters
        start_method  "forkserver"  ranks are forked from a warm server; a launch takes hundredths of a second
                      "spawn"       each rank is a fresh interpreter
                      None          the best there is on this system
        threads       of BLAS and numba in each rank; None for max(1, cores // nodes), which counts no more cores than
                      BLAS uses in this process
        trace_events  how many events each rank keeps; the trace's ledger and shares count all of them

    Ranks multiply matrices by the same BLAS kernels as this process, so that equal sums have equal bits.
    """

    start_method: str | None = None
    threads: int | None = None
    trace_events: int = 20_000

    def __post_init__(self) -> None:
        one_of("start_method", self.start_method, (None, "forkserver", "spawn"))
        if self.threads is not None:
            whole_number("threads", self.threads, at_least=1)
        real_number("trace_events", self.trace_events, at_least=0, at_most=math.inf)

    def run(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> Run:
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
        supervisor = Supervisor(terms, DeadlockWatch(page).look)
        try:
            with contextlib.ExitStack() as stack:
                task_file = stack.enter_context(file_of(task))
                memory = stack.enter_context(file_of(b""))  # for shared arrays; the ranks let it grow
                start_processes(supervisor.ranks, nodes, self.start_method, threads)
                for process, links in zip(supervisor.ranks, _mesh(nodes, stack), strict=True):
                    process.send_start(
                        task_file, len(task), terms, threads, self.trace_events, *links, memory, page_file
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


def _mesh(nodes: int, stack: contextlib.ExitStack) -> Iterator[list[int]]:
    """For each rank in turn, the descriptors of its sockets to all other ranks.

    They are closed in this process once the rank has been sent its own.
    """
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
