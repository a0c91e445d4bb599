"""launch: run one program on several nodes; once, is_first: for scripts that mpiexec starts several times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from minidl import mpiexec
from minidl.arguments import one_of, real_number, whole_number
from minidl.cluster import engines
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.protocol import Engine, LaunchTerms, Listener, Program
from minidl.cluster.faults import FaultPlan
from minidl.cluster.run import Run


def launch(
    program: Program,
    args: Sequence[Any] = (),
    nodes: int = 4,
    on: str | Engine = "processes",
    network: str | Network | None = None,
    timeout: float = 60.0,
    deadline: float | None = None,
    on_failure: str = "raise",
    faults: FaultPlan | None = None,
    seed: int = 0,
    listener: Listener | None = None,
) -> Run:
    """Run `program(comm, *args)` once on every one of `nodes` ranks and return the Run: results, seconds and trace.

    Parameters
        program     any function, defined in a script (without a `__main__` guard), a module or a notebook cell
        args        its arguments; each rank gets a copy
        nodes       number of ranks
        on          "processes"   each rank is a process on this machine
                    "simulation"  all ranks are in this process, on a virtual clock
                    "mpi"         under mpiexec
                    or an engine with settings, such as `cluster.Simulation(node=cluster.Node(1e10, 1e10))`
        network     what a message costs: a `cluster.Network` or the name of a preset ("10gbe"). On processes, real
                    messages are slowed down to it; in a simulation without one, messages take no time
        timeout     seconds, by the engine's clock, that a rank may be blocked in one operation, also while another rank
                    compiles
        deadline    real seconds for the whole run, with starting and compiling; None for no limit. The first launch of
                    a process is not ended before the compiled kernels are loaded, which takes a second
        on_failure  "raise"     the run ends when a rank fails
                    "continue"  only operations that need the failed rank raise; `run.failures` says what happened
        faults      a `cluster.FaultPlan` of failures to inject
        seed        seeds each rank's generator `comm.rng` (together with the rank's number) and jitter
        listener    called as `listener(rank, obj)` for each `comm.tell(obj)`, in this process; in a script under
                    mpiexec, only in that of rank 0

    What ranks print appears here when the run ends, in the order of the ranks; the first 1,048,576 characters of each.
    No rank outlives the call, whatever happens. A program must itself end the processes that it starts.

    Raises
        RankFailed, CommTimeout, Deadlock, CollectiveMismatch  (all are ClusterError) when a rank fails
        ValueError, TypeError  for bad arguments, or a program that cannot be pickled

    >>> from minidl import cluster
    >>> run = cluster.launch(lambda comm, x: comm.all_reduce(comm.rank * x), args=(10,), nodes=3)
    >>> run.results
    [30, 30, 30]
    """
    if not callable(program):
        raise TypeError(f"the program must be a function program(comm, *args), got {type(program).__name__}")
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise TypeError(f"args must be a tuple of the program's arguments, got {type(args).__name__}: write args=(x,)")
    terms = LaunchTerms(
        nodes=whole_number("nodes", nodes, at_least=1),
        timeout=_seconds("timeout", timeout),
        deadline=None if deadline is None else _seconds("deadline", deadline),
        on_failure=one_of("on_failure", on_failure, ("raise", "continue")),
        network=Network.of(network),
        faults=faults,
        seed=whole_number("seed", seed, at_least=0),
        listener=listener,
    )
    if faults is not None:
        if not isinstance(faults, FaultPlan):
            raise TypeError(f"faults must be a cluster.FaultPlan, got {faults!r}: make one")
        faults.check(terms.nodes)
    engine = _engine(on) if isinstance(on, str) else on
    return engine.run(program, tuple(args), terms)


def _engine(name: str) -> Engine:
    """Return a new engine of that name; its package is imported at the first request."""
    one_of("on", name, engines.ENGINE_OF, hint="pass one of these, or an engine such as cluster.Simulation()")
    engine: Engine = getattr(engines, engines.ENGINE_OF[name])()
    return engine


def _seconds(name: str, value: float) -> float:
    return real_number(name, value, above=0, at_most=math.inf, hint="give seconds")


_T = TypeVar("_T")


def once(function: Callable[[], _T], on: str | Engine = "processes") -> _T:
    """`function()`, computed by one process: in a script under mpiexec by rank 0, whose result all ranks get.

    Use it for a value that all ranks must agree on before a launch but would compute differently, such as a choice that
    depends on measured seconds.

    Parameters
        function  takes no arguments; what it returns can be pickled
        on        the engine of the launch; only with MPI are there several callers

    >>> once(lambda: 6 * 7)
    42
    """
    if not _is_one_of_several(on):
        return function()
    from minidl.cluster.engines.mpi.agreement import computed_on_the_first_rank

    result: _T = computed_on_the_first_rank(function)
    return result


def is_first(on: str | Engine = "processes") -> bool:
    """Whether this process prints and saves the common results; in a script under mpiexec, only rank 0's does.

    Parameters
        on  the engine of the launch; only with MPI are there several callers

    >>> is_first()
    True
    """
    return not _is_one_of_several(on) or mpiexec.rank() == 0


def _is_one_of_several(on: str | Engine) -> bool:
    """Whether this process is one of those that mpiexec has started with this script."""
    if on != "mpi" and not isinstance(on, engines.MPI):
        return False
    from minidl.cluster.engines.mpi import environment

    return mpiexec.started_this_process() and not environment.runs_program
