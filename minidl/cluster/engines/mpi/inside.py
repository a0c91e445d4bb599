"""A launch inside mpiexec: the ranks exist already; every one calls `launch`, and every one gets the Run."""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import cloudpickle
from mpi4py import MPI

from minidl.cluster.comm import world
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.engines import reports
from minidl.cluster.engines.control import Failure, ProgramResult
from minidl.cluster.engines.mpi import environment
from minidl.cluster.engines.mpi.abort import abort
from minidl.cluster.engines.mpi.agreement import Agreement
from minidl.cluster.engines.mpi.cleanup import forget_names
from minidl.cluster.engines.mpi.endpoint import MPIEndpoint, SharedFile
from minidl.cluster.engines.pickled import pickled_result
from minidl.cluster.engines.protocol import LaunchTerms, Program
from minidl.cluster.run import Run
from minidl.cluster.trace.recorder import Recorder
from minidl.threads import limit_threads, threads_of_a_rank


def run_inside_mpiexec(
    program: Program, args: tuple[Any, ...], terms: LaunchTerms, *, trace_events: int, debug: bool
) -> Run:
    """Run the program on this rank, while the other ranks do the same; return the Run or raise the error of all ranks.

    `comm.tell` calls the listener on rank 0. What a rank prints goes where mpiexec puts it.
    """
    everyone = MPI.COMM_WORLD
    if terms.nodes != everyone.size:
        raise ValueError(f"mpiexec has started {everyone.size} ranks, but launch was asked for nodes={terms.nodes}")
    environment.check_that_none_is_lost()
    forget_names(everyone)
    machine = MPI.Get_processor_name()
    limit_threads(threads_of_a_rank(everyone.allgather(machine).count(machine)))
    agreement = Agreement(terms)
    endpoint = MPIEndpoint(
        everyone.Dup(),
        timeout=terms.timeout,
        news=agreement.news,
        tell=agreement.tell,
        last_words=lambda: None,
        memory=SharedFile(everyone),
        may_reduce=terms.faults is None or not terms.faults.spoils_messages,
        debug=debug,
    )
    copies = cloudpickle.loads(cloudpickle.dumps(args, 5))
    everyone.Barrier()
    endpoint.begin(time.perf_counter())
    environment.runs_program = True
    try:
        end = contextvars.copy_context().run(_end_of, program, copies, endpoint, terms, trace_events)
        run = agreement.conclude(end, endpoint.progress)
    finally:
        environment.runs_program = False
    endpoint.close()
    agreement.close()
    return run


def _end_of(
    program: Program, args: tuple[Any, ...], endpoint: MPIEndpoint, terms: LaunchTerms, trace_events: int
) -> ProgramResult | Failure:
    """Run the program on this rank; returns its report."""
    recorder = Recorder(endpoint.now, trace_events)
    try:
        faults = terms.faults.of(endpoint, recorder.fault, sleeps=True) if terms.faults else None
        with abrupt_exit_ends_the_job():
            value = program(world(endpoint, recorder, terms.seed, faults), *args)
        seconds = endpoint.now()
        endpoint.flush()
        return ProgramResult(pickled_result(value, endpoint.rank), seconds, recorder.close())
    except BaseException as error:  # SystemExit too, and what a program derives from BaseException
        blocked = endpoint.blocked if isinstance(error, ClusterError) else None
        return reports.failure(error, endpoint.rank, recorder, blocked, endpoint.now(), endpoint.unwaited)


@contextlib.contextmanager
def abrupt_exit_ends_the_job() -> Iterator[None]:
    """Inside, os._exit in this process prints why on standard error and aborts the job; forked copies are exempt.

    Without this, mpiexec would take the exit of a rank with code 0 for success, and end the other ranks.
    """
    exit_at_once, rank_process = os._exit, os.getpid()

    def _exit(status: int) -> NoReturn:
        if os.getpid() == rank_process:
            code = status & 0xFF or 1
            sys.stderr.write(
                f"rank {MPI.COMM_WORLD.rank} left the program by os._exit({status}) without a result: "
                f"the job ends with exit code {code}\n"
            )
            abort(code)
        exit_at_once(status)

    os._exit = _exit
    try:
        yield
    finally:
        os._exit = exit_at_once
