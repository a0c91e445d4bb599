"""The same programs on processes and under MPI, and how wrong programs end in every engine."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from minidl import cluster
from minidl.cluster import Communicator

from .collectives import OPS, algorithms, numbers
from .exact import error, exact, ledger

SIZES = (0, 1, 7, 1000, 40_000)
LIMITS: dict[str, Any] = {"timeout": 60.0, "deadline": 300.0}
ENGINES = ("processes", "mpi") if importlib.util.find_spec("mpi4py") else ("processes",)


def collectives(comm: Communicator) -> dict[str, Any]:
    """All-reduces by every algorithm, and one of every other collective."""
    p, results = comm.size, {}
    for algorithm, options in algorithms(p).items():
        for n in SIZES:
            for op in OPS if n == 7 else ("sum",):
                found = comm.all_reduce(numbers(comm, n), op=op, algorithm=algorithm, **options)
                results[f"{algorithm}, {op} of {n}"] = found
    for n in SIZES:
        results[f"broadcast {n}"] = comm.broadcast(numbers(comm, n), src=p - 1)
        results[f"reduce {n}"] = comm.reduce(numbers(comm, n), dst=p - 1)
        results[f"gather {n}"] = comm.gather(numbers(comm, n + comm.rank))
        results[f"scatter {n}"] = comm.scatter([numbers(comm, n + i) for i in range(p)] if comm.rank == 0 else None)
        results[f"all_gather {n}"] = comm.all_gather(numbers(comm, n))
        results[f"reduce_scatter {n}"] = comm.reduce_scatter(numbers(comm, n))
        results[f"all_to_all {n}"] = comm.all_to_all([numbers(comm, n + i) for i in range(p)])
        results[f"sendrecv {n}"] = comm.sendrecv(numbers(comm, n), (comm.rank + 1) % p, (comm.rank - 1) % p)
    half = comm.split(comm.rank % 2)
    results["split"] = [half.rank, half.all_reduce(comm.rank)]
    work = comm.all_reduce(numbers(comm, 1000), async_op=True, algorithm="ring")
    results["concurrent"] = [work.wait(), comm.rng.random(2)]
    comm.barrier()
    return {name: exact(value) for name, value in results.items()}


def launched(engine: str, nodes: int) -> Any:
    """Results and ledger of the collectives on real processes."""
    run = cluster.launch(collectives, nodes=nodes, on=engine, seed=5, **LIMITS)
    return {"results": run.results, "ledger": ledger(run.trace)}


# ---- programs that end in an error ----


def different_collectives(comm: Communicator) -> None:
    if comm.rank == 0:
        comm.broadcast(np.ones(3))
    else:
        comm.all_reduce(np.ones(3))


def different_shapes(comm: Communicator) -> None:
    comm.all_reduce(np.ones(3 + comm.rank))


def different_types(comm: Communicator) -> None:
    comm.all_reduce(np.ones(3, "float32" if comm.rank else "float64"))


def different_roots(comm: Communicator) -> None:
    comm.broadcast(np.ones(3), src=comm.rank)


def different_labels(comm: Communicator) -> None:
    comm.barrier(label=f"label {comm.rank}")


def a_skipped_call(comm: Communicator) -> None:
    comm.barrier()
    if comm.rank:
        comm.all_reduce(1)


def a_circle(comm: Communicator) -> None:
    comm.recv((comm.rank + 1) % comm.size)


def large_sends(comm: Communicator) -> None:
    comm.send(np.ones(100_000), (comm.rank + 1) % comm.size)


def a_rank_that_returned(comm: Communicator) -> None:
    if comm.rank == 0:
        comm.recv(1)


def an_exception(comm: Communicator) -> None:
    if comm.rank == 1:
        raise KeyError("planted")
    comm.barrier()


def a_long_wait(comm: Communicator) -> None:
    if comm.rank == 1:
        comm.compute(seconds=30.0)
    comm.barrier()


def a_read_only_array(comm: Communicator) -> None:
    array = np.ones(3)
    array.flags.writeable = False
    comm.all_reduce(array)


def an_array_in_flight(comm: Communicator) -> None:
    array = np.ones(3)
    comm.all_reduce(array, async_op=True)
    comm.all_reduce(array)


def a_rank_that_is_not_there(comm: Communicator) -> None:
    comm.send(1, comm.size)


def an_unknown_algorithm(comm: Communicator) -> None:
    comm.all_reduce(np.ones(3), algorithm="star")


def an_unknown_op(comm: Communicator) -> None:
    comm.all_reduce(np.ones(3), op="median")


def barriers(comm: Communicator) -> int:
    for _ in range(3):
        comm.barrier()
    return comm.rank


WRONG = (
    *(different_collectives, different_shapes, different_types, different_roots, different_labels, a_skipped_call),
    *(a_circle, large_sends, a_rank_that_returned, an_exception, a_read_only_array, an_array_in_flight),
    *(a_rank_that_is_not_there, an_unknown_algorithm, an_unknown_op),
)
WRONG_ON_PROCESSES = (different_collectives, different_shapes, a_circle, a_rank_that_returned, an_exception)


def failed(program: Callable[[Communicator], Any], engine: str, nodes: int, **settings: Any) -> Any:
    """The error that a launch ends with: type, text, and what it says of ranks."""
    try:
        run = cluster.launch(program, nodes=nodes, on=engine, **{**LIMITS, **settings})
    except Exception as raised:
        found: dict[str, Any] = error(raised)
        if isinstance(raised, cluster.ClusterError):
            found["rank"], found["operation"] = raised.rank, raised.operation
            found["cause"] = None if raised.cause is None else error(raised.cause)
            found["waits"] = sorted((wait.rank, wait.operation, wait.peer) for wait in raised.waits)
    else:
        found = {"results": run.results, "failures": {rank: error(one) for rank, one in run.failures.items()}}
    return found


def failed_on_processes(program: Callable[[Communicator], Any], nodes: int, **settings: Any) -> Any:
    """Of an error on real processes, the type and the first line, which do not depend on who comes first."""
    found = failed(program, "processes", nodes, **settings)
    return {"error": found.get("error"), "text": found.get("text", "").partition("\n")[0], "runs": found.get("results")}


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group."""
    for engine in ENGINES:
        for nodes in (1, 2, 3) if engine == "processes" else (3,):
            yield f"collectives on {nodes} ranks, {engine}", partial(launched, engine, nodes)
    for program in WRONG:
        for nodes in (2, 4):
            yield f"{program.__name__} of {nodes}, simulation", partial(failed, program, "simulation", nodes)
    for program in WRONG_ON_PROCESSES:
        yield f"{program.__name__}, processes", partial(failed_on_processes, program, 2)
    yield "a_long_wait, simulation", partial(failed, a_long_wait, "simulation", 3, timeout=2.0)
    killed = cluster.FaultPlan(seed=1).kill(1, at=("barrier", 2))
    stopped = cluster.FaultPlan(seed=1).stop(1, at=("barrier", 2))
    for how in ("raise", "continue"):
        settings = {"faults": killed, "on_failure": how}
        yield f"killed, {how}, simulation", partial(failed, barriers, "simulation", 3, **settings)
        yield f"killed, {how}, processes", partial(failed_on_processes, barriers, 3, **settings)
    yield "stopped, simulation", partial(failed, barriers, "simulation", 3, faults=stopped, timeout=2.0)
    yield "stopped, processes", lambda: failed(barriers, "processes", 3, faults=stopped, timeout=2.0)["error"]
