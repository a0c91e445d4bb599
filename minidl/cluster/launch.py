"""launch(): run one program on several nodes and bring back what each returned."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

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

    on: where the ranks live. "processes": each is a process on this machine; "simulation": all are in this process, on
    a virtual clock; "mpi": under mpiexec; or an engine with settings of its own, such as
    `cluster.Simulation(node=cluster.Node(flops_per_s=1e10))`. network: what a message costs, a `cluster.Network` or the
    name of a preset ("10gbe"); in a simulation free without one, on processes real messages are slowed down to it.

    timeout: seconds (of the engine's clock) that a rank may be blocked in one operation. deadline: real seconds for the
    whole run, starting included; None for no bound. on_failure: "raise" ends the run when a rank fails; with "continue"
    only operations that need the failed rank raise, and `run.failures` says what happened. faults: a
    `cluster.FaultPlan` of what shall go wrong. seed: of each rank's generator `comm.rng` (with the rank number), and of
    jitter. listener: called here as `listener(rank, obj)` for each `comm.tell(obj)`. What ranks print appears here when
    the run ends, in the order of the ranks; of each the first 1,048,576 characters.

    The program may be any function, defined in a script (no `__main__` guard is needed), a module or a notebook cell;
    it runs on copies of `args`.

    Errors: RankFailed, CommTimeout, Deadlock or CollectiveMismatch (all are ClusterError) when a rank fails; ValueError
    and TypeError for bad arguments, or a program that cannot be pickled. Whatever happens, no rank outlives the call
    (processes that a program starts itself are its own to end).

    >>> from minidl import cluster
    >>> run = cluster.launch(lambda comm, x: comm.all_reduce(comm.rank * x), args=(10,), nodes=3)
    >>> run.results
    [30, 30, 30]
    """
    if not callable(program):
        raise TypeError(f"the program must be a function program(comm, *args), got {type(program).__name__}")
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise TypeError(f"args must be a tuple of the program's arguments, got {type(args).__name__}: write args=(x,)")
    for name, seconds in (("timeout", timeout), ("deadline", deadline)):
        if seconds is not None and not seconds > 0:
            raise ValueError(f"{name} must be more than 0 seconds, got {seconds}")
    if on_failure not in ("raise", "continue"):
        raise ValueError(f"unknown on_failure {on_failure!r}: choose 'raise' or 'continue'")
    terms = LaunchTerms(
        nodes=_whole_number("nodes", nodes, 1),
        timeout=timeout,
        deadline=deadline,
        on_failure=on_failure,
        network=Network.of(network),
        faults=faults,
        seed=_whole_number("seed", seed, 0),
        listener=listener,
    )
    if faults is not None:
        faults.check(terms.nodes)
    engine = _engine(on) if isinstance(on, str) else on
    return engine.run(program, tuple(args), terms)


def _engine(name: str) -> Engine:
    """A new engine of that name; its package is imported when it is first asked for."""
    if name not in engines.ENGINE_OF:
        raise ValueError(
            f"unknown engine {name!r}: choose 'processes', 'simulation' or 'mpi', or pass one such as "
            "cluster.Simulation()"
        )
    engine: Engine = getattr(engines, engines.ENGINE_OF[name])()
    return engine


def _whole_number(name: str, value: Any, minimum: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number (an integer), got {value!r}") from None
    if isinstance(value, bool) or number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return number
