"""Inside mpiexec: the ranks are there already, and every one of them calls `launch` and gets the Run."""

from __future__ import annotations

import contextvars
import time
from typing import Any

import cloudpickle
from mpi4py import MPI

from minidl.cluster.comm import world
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.engines import mpi, report
from minidl.cluster.engines.control import Failure, Result
from minidl.cluster.engines.mpi.abrupt_exit import abrupt_exit_ends_the_job
from minidl.cluster.engines.mpi.council import Council
from minidl.cluster.engines.mpi.endpoint import MPIEndpoint
from minidl.cluster.engines.mpi.leftovers import forget_names
from minidl.cluster.engines.mpi.memory import SharedFile
from minidl.cluster.engines.protocol import Program, Terms
from minidl.cluster.engines.threads import limit_threads, threads_of_a_rank
from minidl.cluster.run import Run
from minidl.cluster.trace.recorder import Recorder


def run_inside_mpiexec(program: Program, args: tuple[Any, ...], terms: Terms, *, trace_events: int, debug: bool) -> Run:
    """Run the program on this rank, as all others do on theirs, and return or raise what came of it on all.

    What a rank tells the listener is heard on that rank, and what it prints appears where mpiexec puts it.
    """
    everyone = MPI.COMM_WORLD
    if terms.nodes != everyone.size:
        raise ValueError(f"mpiexec has started {everyone.size} ranks, but launch was asked for nodes={terms.nodes}")
    forget_names(everyone)
    machine = MPI.Get_processor_name()
    limit_threads(threads_of_a_rank(everyone.allgather(machine).count(machine)))
    council = Council(terms)
    endpoint = MPIEndpoint(
        everyone.Dup(),
        timeout=terms.timeout,
        news=council.news,
        tell=lambda obj: terms.listener(everyone.rank, obj) if terms.listener else None,
        last_words=lambda: None,
        memory=SharedFile(everyone),
        may_reduce=terms.faults is None or not terms.faults.spoils_messages,
        debug=debug,
    )
    copies = cloudpickle.loads(cloudpickle.dumps(args, 5))
    everyone.Barrier()
    endpoint.begin(time.perf_counter())
    mpi.is_rank = True
    try:
        end = contextvars.copy_context().run(_end_of, program, copies, endpoint, terms, trace_events)
        run = council.conclude(end, endpoint.progress)
    finally:
        mpi.is_rank = False
    endpoint.close()
    council.close()
    return run


def _end_of(
    program: Program, args: tuple[Any, ...], endpoint: MPIEndpoint, terms: Terms, trace_events: int
) -> Result | Failure:
    """How the program ends on this rank."""
    recorder = Recorder(endpoint.now, trace_events)
    try:
        faults = terms.faults.of(endpoint, recorder.fault, sleeps=True) if terms.faults else None
        with abrupt_exit_ends_the_job():
            value = program(world(endpoint, recorder, terms.seed, faults), *args)
        seconds = endpoint.now()
        endpoint.flush()
        return Result(report.pickled_result(value, endpoint.rank), seconds, recorder.close())
    except BaseException as error:  # SystemExit and what a program derives from BaseException count as well
        blocked = endpoint.blocked if isinstance(error, ClusterError) else None
        return report.failure(error, endpoint.rank, recorder, blocked, endpoint.now(), endpoint.unwaited)
