"""launch(): run one program on several nodes and bring back what each returned."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from minidl.cluster.engines.processes import Processes
from minidl.cluster.engines.protocol import Engine, Listener, Program
from minidl.cluster.run import Run


def launch(
    program: Program,
    args: Sequence[Any] = (),
    nodes: int = 4,
    on: str | Engine = "processes",
    timeout: float = 60.0,
    deadline: float | None = None,
    seed: int = 0,
    listener: Listener | None = None,
) -> Run:
    """Run `program(comm, *args)` once on every one of `nodes` ranks and return the Run: results, seconds and trace.

    on: "processes", or an engine such as `cluster.Processes(start_method="spawn")`. timeout: seconds that a rank may be
    blocked in one operation. deadline: seconds for the whole run, starting included; None for no bound.
    seed: of each rank's generator `comm.rng` (with the rank number). listener: called here as `listener(rank, obj)`
    for each `comm.tell(obj)`. What ranks print appears here when the run ends, in the order of the ranks.

    The program may be any function, defined in a script (no `__main__` guard is needed), a module or a notebook cell;
    it runs on copies of `args`.

    Errors: RankFailed, CommTimeout or Deadlock (all are ClusterError) when a rank fails; ValueError and TypeError for
    bad arguments, or a program that cannot be pickled. Whatever happens, no process outlives the call.

    >>> from minidl import cluster
    >>> run = cluster.launch(lambda comm, x: comm.all_reduce(comm.rank * x), args=(10,), nodes=3)
    >>> run.results
    [30, 30, 30]
    """
    if not callable(program):
        raise TypeError(f"the program must be a function program(comm, *args), got {type(program).__name__}")
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise TypeError(f"args must be a tuple of the program's arguments, got {type(args).__name__}: write args=(x,)")
    count, seed = _whole_number("nodes", nodes, 1), _whole_number("seed", seed, 0)
    for name, seconds in (("timeout", timeout), ("deadline", deadline)):
        if seconds is not None and not seconds > 0:
            raise ValueError(f"{name} must be more than 0 seconds, got {seconds}")
    engine: Engine
    if isinstance(on, str):
        if on != "processes":
            raise ValueError(
                f"unknown engine {on!r}: choose 'processes', or pass an engine such as cluster.Processes()"
            )
        engine = Processes()
    else:
        engine = on
    return engine.run(program, tuple(args), count, timeout=timeout, deadline=deadline, seed=seed, listener=listener)


def _whole_number(name: str, value: Any, minimum: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number (an integer), got {value!r}") from None
    if isinstance(value, bool) or number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return number
