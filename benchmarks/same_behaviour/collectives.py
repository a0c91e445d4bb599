"""Messages and collectives in simulation, and the formulas of what collectives cost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minidl import cluster
from minidl.cluster import Communicator, cost

from .exact import error, events, exact, ledger

ALGORITHMS: dict[str, dict[str, Any]] = {
    "ring": {},
    "tree": {},
    "recursive_doubling": {},
    "rabenseifner": {},
    "parameter_server": {},
    "pipelined_chain": {"segments": 3},
    "hierarchical": {"per_group": 2},
    "ordered": {},
    "auto": {},
}
OPS = ("sum", "mean", "max", "min", "prod")
SIZES = (0, 1, 7, 1000)
NODES = (1, 2, 3, 4, 5, 8)
NETWORKS = {
    "free": None,
    "alpha, beta, gamma": cluster.Network(1e-4, 1e-8, 1e-9),
    "racks": cluster.Network.tree(2, 4, nic=(1e-5, 1e9), uplink=(2e-5, 2e9)),
}
LIMITS: dict[str, Any] = {"timeout": 60.0, "deadline": 300.0}


def algorithms(p: int) -> dict[str, dict[str, Any]]:
    """The algorithms for p ranks, with their options; groups of two need an even number."""
    return {name: options for name, options in ALGORITHMS.items() if name != "hierarchical" or p % 2 == 0}


def numbers(comm: Communicator, n: int, dtype: str = "float64") -> np.ndarray:
    """This rank's numbers, close to 1 so that products stay finite."""
    drawn = 1 + 0.1 * np.random.default_rng([comm.rank, n]).standard_normal(n)
    return (drawn * 10).astype(dtype) if np.dtype(dtype).kind in "iu" else drawn.astype(dtype)


def all_reduces(comm: Communicator, algorithm: str, options: dict[str, Any]) -> dict[str, Any]:
    """Every operation on every size, and the time after each."""
    results: dict[str, Any] = {}
    for op in OPS:
        for n in SIZES:
            array = numbers(comm, n)
            comm.compute(seconds=1e-5 * comm.rank)
            comm.all_reduce(array, op=op, algorithm=algorithm, **options)
            results[f"{op} of {n}"] = exact([array, comm.now()])
    return results


def kinds_of_numbers(comm: Communicator) -> dict[str, Any]:
    """All-reduces of other types, of scalars, of arrays that are not contiguous, and concurrent ones."""
    results: dict[str, Any] = {}
    for dtype in ("float32", "float16", "int64", "int32", "uint8"):
        for op in ("sum", "max", "prod"):
            results[f"{dtype}, {op}"] = comm.all_reduce(numbers(comm, 7, dtype), op=op, algorithm="ring")
    results["float16, mean"] = comm.all_reduce(numbers(comm, 7, "float16"), op="mean")
    results["booleans"] = comm.all_reduce(np.arange(3) == comm.rank)
    for name, scalar in (("whole", comm.rank), ("float", 0.1 * comm.rank), ("truth", comm.rank == 0)):
        results[name] = [comm.all_reduce(scalar), comm.all_reduce(scalar, op="mean"), comm.all_reduce(scalar, op="max")]
    strided = numbers(comm, 12).reshape(3, 4).T[::2]
    results["strided"] = comm.all_reduce(strided)
    first = comm.all_reduce(numbers(comm, 1000), async_op=True, label="first")
    second = comm.all_reduce(numbers(comm, 7), async_op=True, label="second", algorithm="tree")
    comm.compute(seconds=1e-3)
    results["concurrent"] = [second.wait(), first.wait(), comm.now()]
    return {name: exact(value) for name, value in results.items()}


def other_collectives(comm: Communicator) -> dict[str, Any]:
    """Everything but all-reduce."""
    p, results = comm.size, {}
    for n in SIZES:
        for root in {0, p // 2, p - 1}:
            results[f"broadcast {n} from {root}"] = comm.broadcast(numbers(comm, n), src=root)
            results[f"reduce {n} to {root}"] = comm.reduce(numbers(comm, n), dst=root)
            results[f"gather {n} to {root}"] = comm.gather(numbers(comm, n + comm.rank), dst=root)
            items = [numbers(comm, n + i) for i in range(p)] if comm.rank == root else None
            results[f"scatter {n} from {root}"] = comm.scatter(items, src=root)
        results[f"all_gather {n}"] = comm.all_gather(numbers(comm, n + comm.rank))
        for op in OPS:
            results[f"reduce_scatter {n}, {op}"] = comm.reduce_scatter(numbers(comm, n), op=op)
        results[f"all_to_all {n}"] = comm.all_to_all([numbers(comm, n + i) for i in range(p)])
        comm.barrier()
        results[f"time after {n}"] = comm.now()
    results["objects"] = [comm.broadcast({"rank": comm.rank}, src=p - 1), comm.all_gather(("rank", comm.rank))]
    return {name: exact(value) for name, value in results.items()}


def messages(comm: Communicator) -> list[Any]:
    """Point-to-point messages: small, large, from any rank, at once, in the background."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    results: list[Any] = [comm.sendrecv(numbers(comm, n), right, left) for n in (*SIZES, 20_000)]
    work = [comm.isend(numbers(comm, 20_000), right, tag=4), comm.irecv(left, tag=4)]
    comm.compute(flops=1e6, nbytes=1e4)
    results += [one.wait() for one in work]
    if comm.rank == 0:
        for _ in range(comm.size - 1):
            results += [comm.recv(cluster.ANY, tag=1), comm.last_source, comm.now()]
    else:
        comm.compute(seconds=1e-3 * (comm.size - comm.rank))
        comm.send({"from": comm.rank}, 0, tag=1)
    return [exact(result) for result in results]


def groups(comm: Communicator) -> list[Any]:
    """Communicators of some of the ranks."""
    half = comm.split(comm.rank % 2, key=-comm.rank)
    nobody_or_all = comm.split(None if comm.rank == 0 else 7)
    results = [half.rank, half.size, half.all_reduce(numbers(half, 7)), half.world_rank(0)]
    results += [nobody_or_all and nobody_or_all.all_gather(comm.rank)]
    if comm.size == 8:
        mesh = comm.mesh((2, 2, 2), ("dp", "pp", "tp"))
        results += [[mesh[name].all_reduce(comm.rank), mesh[name].rank] for name in ("dp", "pp", "tp")]
    shared = comm.shared_array("counts", 3, "int64")
    shared[:] += comm.rank
    comm.barrier()
    return [exact(result) for result in [*results, shared.copy(), comm.rng.random(3), comm.now()]]


def simulated(program: Callable[..., Any], args: tuple[Any, ...], nodes: int, network: Any) -> Any:
    """What a program returns in simulation, and the record of its run."""
    run = cluster.launch(program, args=args, nodes=nodes, on="simulation", network=network, seed=5, **LIMITS)
    path = run.trace.critical_path()
    return {
        "results": run.results,
        "seconds": run.seconds,
        "ledger": ledger(run.trace),
        "events": events(run.trace),
        "shares": [[s.compute, s.communication, s.waiting] for s in map(run.trace.shares, range(nodes))],
        "critical path": path.summary(),
    }


def background_and_phantoms(comm: Communicator) -> list[Any]:
    """Answers given while the program computes, and messages without contents."""
    answering = comm.split(0)
    if comm.rank == 0:
        work = answering.background(lambda inside: [inside.recv(cluster.ANY) for _ in range(inside.size - 1)])
        comm.compute(flops=1e7, label="long")
        results = [sorted(work.wait()), comm.now()]
    else:
        comm.compute(seconds=1e-3 * comm.rank)
        answering.send(comm.rank, 0)
        results = [comm.now()]
    comm.mark("phantoms")
    comm.all_reduce(cluster.Phantom(1_000_000, "float32"), algorithm="ring")
    comm.broadcast(cluster.Phantom(1_000))
    return [exact(result) for result in [*results, comm.now(), comm.bytes_sent]]


def with_faults(faults: cluster.FaultPlan) -> Any:
    """A ring all-reduce on three ranks with planned faults: results, events, and who failed."""

    def program(comm: Communicator) -> Any:
        comm.compute(seconds=1e-3)
        return exact([comm.all_reduce(numbers(comm, 7), algorithm="ring"), comm.now()])

    run = cluster.launch(
        program, nodes=3, on="simulation", network="1gbe", faults=faults, on_failure="continue", timeout=5.0
    )
    failures = {rank: error(failed) for rank, failed in run.failures.items()}
    return {"results": run.results, "failures": failures, "faults": [e.label for e in run.trace.faults]}


def chrome_trace(nodes: int) -> Any:
    """The Chrome trace of messages and concurrent collectives."""
    run = cluster.launch(kinds_of_numbers, nodes=nodes, on="simulation", network="1gbe", timeout=60.0)
    with tempfile.TemporaryDirectory() as folder:
        run.trace.to_chrome(Path(folder) / "trace.json")
        written = json.loads((Path(folder) / "trace.json").read_text())
    found = written["traceEvents"] if isinstance(written, dict) else written
    return {"events": len(found), "text": exact(np.frombuffer(json.dumps(found, sort_keys=True).encode(), np.uint8))}


def calibrated() -> Any:
    """Networks fitted to simulated messages."""
    return [
        cluster.calibrate(on="simulation", network="10gbe", sizes=(64, 4096, 262144), repetitions=5, pattern=pattern)
        for pattern in ("ping-pong", "exchange")
    ]


FAULTS = {
    "killed": cluster.FaultPlan(seed=1).kill(1, at=1),
    "slow": cluster.FaultPlan(seed=1).slow(2, 3.0),
    "dropped": cluster.FaultPlan(seed=1).drop(0, at="all_reduce", dst=1),
    "corrupted": cluster.FaultPlan(seed=1).corrupt(0, at="all_reduce"),
}


def cost_formulas(p: int) -> Any:
    """The formulas for p ranks."""
    results: dict[str, Any] = {}
    alpha, beta, gamma = 1e-5, 1e-9, 1e-10
    for n in (0, 4, 28, 4000, 400_000_000):
        for algorithm, options in algorithms(p).items():
            if algorithm in ("ordered", "auto"):
                continue
            results[f"{algorithm}, {n} bytes"] = cost.all_reduce(algorithm, p, n, alpha, beta, gamma, **options)
            results[f"{algorithm}, {n} bytes, traffic"] = cost.traffic(algorithm, p, n, **options)
        for name in ("broadcast", "all_gather", "all_to_all", "gather", "scatter"):
            results[f"{name}, {n} bytes"] = getattr(cost, name)(p, n, alpha, beta)
        for name in ("reduce", "reduce_scatter", "lower_bound", "best_segments"):
            results[f"{name}, {n} bytes"] = getattr(cost, name)(p, n, alpha, beta, gamma)
        for network in (None, *map(cluster.Network.preset, ("1gbe", "10gbe", "infiniband"))):
            results[f"best, {n} bytes, {network}"] = cost.best_all_reduce(p, n, network)
    return {**results, "barrier": cost.barrier(p, alpha), "crossover": cost.crossover(p, alpha, beta, gamma)}


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group."""
    for p in NODES:
        for algorithm, options in algorithms(p).items():
            args = (algorithm, options)
            network = NETWORKS["alpha, beta, gamma"]
            yield f"all_reduce({algorithm}) of {p}", partial(simulated, all_reduces, args, p, network)
        for name, network in NETWORKS.items():
            yield f"auto of {p}, {name}", partial(simulated, all_reduces, ("auto", {}), p, network)
            yield f"collectives of {p}, {name}", partial(simulated, other_collectives, (), p, network)
            yield f"messages of {p}, {name}", partial(simulated, messages, (), p, network)
        yield f"kinds of numbers of {p}", partial(simulated, kinds_of_numbers, (), p, "10gbe")
        yield f"groups of {p}", partial(simulated, groups, (), p, "10gbe")
        yield f"formulas for {p}", partial(cost_formulas, p)
        if p > 1:
            yield f"background and phantoms of {p}", partial(simulated, background_and_phantoms, (), p, "1gbe")
            yield f"Chrome trace of {p}", partial(chrome_trace, p)
    for name, faults in FAULTS.items():
        yield f"a rank is {name}", partial(with_faults, faults)
    yield "calibration", calibrated
