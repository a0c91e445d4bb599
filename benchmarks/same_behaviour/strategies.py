"""Training with every strategy and each of its settings, in simulation and on processes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from minidl import cluster, compress, data, nn, optim, parallel

from .exact import events, ledger

LIMITS: dict[str, Any] = {"timeout": 120.0}
TIMES = ("seconds", "samples_per_second")  # columns of the history that are measured on processes

VARIANTS: dict[str, Callable[[], parallel.Strategy]] = {
    "Serial": parallel.Serial,
    "Synchronous": parallel.Synchronous,
    **{
        f"Synchronous({algorithm})": partial(parallel.Synchronous, algorithm=algorithm)
        for algorithm in ("ring", "tree", "recursive_doubling", "rabenseifner", "parameter_server", "ordered")
    },
    "Synchronous(small buckets)": partial(parallel.Synchronous, bucket_mb=0.002, overlap=True),
    "Synchronous(no overlap)": partial(parallel.Synchronous, bucket_mb=0.002, overlap=False),
    "Synchronous(accumulate)": partial(parallel.Synchronous, accumulate=3),
    **{
        f"Synchronous({text})": partial(parallel.Synchronous, compressor=compressor)
        for text, compressor in {
            "TopK": compress.TopK(0.1),
            "TopK, recursive doubling": compress.TopK(0.1, all_reduce="recursive_doubling"),
            "TopK, split": compress.TopK(0.1, all_reduce="split"),
            "ErrorFeedback(TopK)": compress.ErrorFeedback(compress.TopK(0.1)),
            "ErrorFeedback(RandomK)": compress.ErrorFeedback(compress.RandomK(0.1)),
            "RandomK": compress.RandomK(0.2, unbiased=True),
            "Threshold": compress.ErrorFeedback(compress.Threshold(0.001)),
            "DGC": compress.DGC(0.1, momentum=0.5, warmup=(0.5,)),
            "DGC, clipped": compress.DGC(0.1, momentum=0.5, clip=1.0, warmup=()),
            "QSGD": compress.QSGD(4),
            "QuantizedAllReduce(QSGD)": compress.QuantizedAllReduce(compress.QSGD(4)),
            "Lossless(QSGD)": compress.Lossless(compress.QSGD(4)),
            "OneBit": compress.ErrorFeedback(compress.OneBit()),
            "Sign": compress.ErrorFeedback(compress.Sign()),
            "Signum": compress.Signum(0.5),
            "TernGrad": compress.TernGrad(clip=2.5),
            "PowerSGD": compress.ErrorFeedback(compress.PowerSGD(2)),
            "Half": compress.Half("bf16"),
        }.items()
    },
    "SufficientFactors": parallel.SufficientFactors,
    "SufficientFactors(hybrid)": partial(parallel.SufficientFactors, hybrid=True),
    "BackupWorkers": parallel.BackupWorkers,
    "BackupWorkers(abandon)": partial(parallel.BackupWorkers, abandon=True),
    **{
        f"EagerSGD({quorum}, {coordinator})": partial(parallel.EagerSGD, quorum=quorum, coordinator=coordinator)
        for quorum in ("solo", "majority")
        for coordinator in (True, False)
    },
    "ParameterServer": parallel.ParameterServer,
    "ParameterServer(2 servers)": partial(parallel.ParameterServer, servers=2),
    "Downpour(seldom)": partial(parallel.Downpour, fetch_every=2, push_every=3),
    "ParameterServer(in turns)": partial(parallel.ParameterServer, staleness=0),
    "ParameterServer(stale synchronous)": partial(parallel.ParameterServer, staleness=2, servers=2),
    "StalenessAwareSGD": parallel.StalenessAwareSGD,
    "LockedParameterServer": parallel.LockedParameterServer,
    "Downpour(warm start)": partial(parallel.Downpour, warm_start=1),
    "SandblasterLBFGS": partial(parallel.SandblasterLBFGS, shards=2),
    "Hogwild": parallel.Hogwild,
    "Hogwild(locked)": partial(parallel.Hogwild, locked=True),
    **{
        f"ElasticAveraging({variant})": partial(parallel.ElasticAveraging, variant=variant, alpha=0.2, period=period)
        for variant, period in (("synchronous", 2), ("round_robin", 1), ("asynchronous", 3))
    },
    "ElasticAveraging(momentum)": partial(parallel.ElasticAveraging, momentum=0.5),
    "LocalSGD": parallel.LocalSGD,
    "PostLocalSGD": partial(parallel.PostLocalSGD, period=3),
    "SlowMo": partial(parallel.SlowMo, period=2, outer_lr=0.7),
    "DiLoCo": partial(parallel.DiLoCo, period=2, outer_lr=1.0, outer_momentum=0.5),
    "OneShotAveraging": parallel.OneShotAveraging,
    "Gossip": parallel.Gossip,
    "Gossip(full)": partial(parallel.Gossip, topology="full"),
    "Gossip(asynchronous)": partial(parallel.Gossip, asynchronous=True),
    "Ensemble": parallel.Ensemble,
    "Ensemble(shard)": partial(parallel.Ensemble, data="shard"),
}
ON_PROCESSES = (
    *("Serial", "Synchronous", "Synchronous(ring)", "Synchronous(ordered)", "Synchronous(small buckets)"),
    *("Synchronous(accumulate)", "Synchronous(ErrorFeedback(TopK))", "Synchronous(TopK, split)"),
    *("Synchronous(QuantizedAllReduce(QSGD))", "Synchronous(PowerSGD)", "SufficientFactors", "LocalSGD"),
    *("ElasticAveraging(synchronous)", "ElasticAveraging(round_robin)", "OneShotAveraging", "Gossip", "Ensemble"),
)
"""What is compared on processes to the bit."""

FIRST_COME = (
    *("BackupWorkers", "EagerSGD(majority, True)", "EagerSGD(solo, False)", "ParameterServer(2 servers)", "Hogwild"),
    *("ParameterServer(in turns)", "ElasticAveraging(asynchronous)", "Gossip(asynchronous)"),
)
"""What depends on processes on who comes first."""


def few_digits(train: int = 400, test: int = 100) -> data.Splits:
    """The first of the scanned digits."""
    whole = data.digits()
    return data.Splits(
        data.Dataset(whole.train.x[:train], whole.train.y[:train]),
        data.Dataset(whole.test.x[:test], whole.test.y[:test]),
        whole.classes,
    )


def network() -> nn.Module:
    """Two linear layers and dropout."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 10))


def normalized_network() -> nn.Module:
    """A network with batch norm."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 10))


def plain_sgd(parameters: Any) -> optim.Optimizer:
    """Without momentum, which every strategy accepts."""
    return optim.SGD(parameters, lr=0.1)


def momentum_sgd(parameters: Any) -> optim.Optimizer:
    """With momentum and weight decay."""
    return optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)


def halved(optimizer: optim.Optimizer, steps_per_epoch: int) -> Any:
    """The learning rate, halved after every epoch."""
    return optim.StepLR(optimizer, step_size=steps_per_epoch, gamma=0.5)


def job(**changes: Any) -> parallel.Job:
    """Two short epochs; the last minibatch is smaller than the others."""
    return parallel.Job(
        **{
            "model": network, "data": few_digits, "optimizer": plain_sgd, "schedule": halved,
            "batch_size": 48, "epochs": 2, "seed": 3, **changes,
        }
    )  # fmt: skip


JOBS: dict[str, Callable[[], parallel.Job]] = {
    "momentum, clipped": partial(job, optimizer=momentum_sgd, clip_norm=0.5),
    "fixed shards": partial(job, shards="fixed"),
    "shards by label": partial(job, shards="by_label"),
    "growing minibatches": partial(job, batch_schedule=lambda epoch: 24 * (epoch + 1)),
    "batch norm": partial(job, model=normalized_network),
}
JOBS_FOR = ("Serial", "Synchronous", "LocalSGD", "Gossip", "ParameterServer", "ElasticAveraging(synchronous)",
            "Hogwild", "EagerSGD(majority, True)")  # fmt: skip


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group."""
    for name, strategy in VARIANTS.items():
        for nodes in (1,) if name == "Serial" else (2, 3):
            yield f"{name} on {nodes} simulated nodes", partial(simulated, job, strategy, nodes)
        if name in ON_PROCESSES:
            yield f"{name} on processes", partial(measured, job, strategy, 1 if name == "Serial" else 2)
        elif name in FIRST_COME:
            yield f"{name} on processes", partial(unordered, job, strategy, 2)
    for name in ("Synchronous", "Synchronous(ring)", "LocalSGD", "Gossip"):
        yield f"{name} on 3 processes", partial(measured, job, VARIANTS[name], 3)
    for text, make in JOBS.items():
        for name in JOBS_FOR:
            nodes = 1 if name == "Serial" else 3
            yield f"{name}: {text}", partial(simulated, make, VARIANTS[name], nodes)
    synchronized = partial(parallel.Synchronous, batch_norm="synchronized")
    yield "Synchronous: synchronized batch norm", partial(simulated, JOBS["batch norm"], synchronized, 3)
    yield "Serial(shards=3)", partial(simulated, job, partial(parallel.Serial, shards=3), 1)
    for name in ("Serial", "Synchronous", "SufficientFactors"):
        yield f"{name}: resumed", partial(resumed, VARIANTS[name], 1 if name == "Serial" else 2)
    for name in ("Synchronous", "BackupWorkers", "ParameterServer", "Gossip"):
        yield f"{name}: a rank fails", partial(with_a_failure, VARIANTS[name])


def engine() -> cluster.Simulation:
    """Nodes of different speed, with jitter, on 10 gigabit Ethernet."""
    node = cluster.Node(flops_per_s=1e9, bytes_per_s=1e10, jitter=0.2, speeds={0: 1.2})
    return cluster.Simulation(network="10gbe", node=node)


def simulated(make: Callable[[], parallel.Job], strategy: Callable[[], Any], nodes: int) -> Any:
    """Everything that a simulated run brings back."""
    report = parallel.train(make(), strategy(), nodes=nodes, on=engine(), **LIMITS)
    return {
        "history": report.history,
        "seconds": report.seconds,
        "weights": report.checkpoint.model,
        "optimizer": numbered(report.checkpoint.optimizer),
        "schedule": report.checkpoint.schedule,
        "digests": report.digests,
        "recorded": report.recorded,
        "ledger": ledger(report.trace),
        "events": events(report.trace),
    }


def numbered(optimizer: dict[str, Any]) -> dict[str, Any]:
    """An optimizer's state with numbers for its parameters, which checkpoints had before they had names."""
    number = {name: i for i, name in enumerate(name for group in optimizer["param_groups"] for name in group["params"])}
    groups = [{**group, "params": [number[name] for name in group["params"]]} for group in optimizer["param_groups"]]
    return {"state": {number[name]: each for name, each in optimizer["state"].items()}, "param_groups": groups}


def measured(make: Callable[[], parallel.Job], strategy: Callable[[], Any], nodes: int) -> Any:
    """Of a run on processes, everything but times."""
    report = parallel.train(make(), strategy(), nodes=nodes, on="processes", **LIMITS)
    rows = [{name: value for name, value in row.items() if name not in TIMES} for row in report.history]
    return {
        "history": rows,
        "weights": report.checkpoint.model,
        "digests": report.digests,
        "recorded": report.recorded,
        "ledger": ledger(report.trace),
    }


def unordered(make: Callable[[], parallel.Job], strategy: Callable[[], Any], nodes: int) -> Any:
    """Of a run on processes that depends on who comes first, what does not."""
    report = parallel.train(make(), strategy(), nodes=nodes, on="processes", **LIMITS)
    return {
        "columns": list(report.history[0]),
        "samples": [row["samples"] for row in report.history],
        "ranks": len(report.results),
        "shapes": {name: array.shape for name, array in report.checkpoint.model.items()},
        "operations": sorted({name for operations in ledger(report.trace) for name in operations}),
    }


def resumed(strategy: Callable[[], Any], nodes: int) -> Any:
    """A run of one epoch that is saved, and continued to two; and the epochs that it reports while it runs."""
    seen: list[parallel.Progress] = []
    with tempfile.TemporaryDirectory() as folder:
        first = parallel.train(job(epochs=1), strategy(), nodes=nodes, on=engine(), folder=folder, **LIMITS)
        checkpoint = Path(folder) / "checkpoint.npz"
        second = parallel.train(
            job(), strategy(), nodes=nodes, on=engine(), resume=checkpoint, progress=seen.append, **LIMITS
        )
    return {
        "saved": checkpoint.name,
        "first": first.history,
        "second": second.history,
        "weights": second.checkpoint.model,
        "progress": [[one.epoch, one.epochs, one.step, one.steps, one.row is None] for one in seen if one.row],
    }


def with_a_failure(strategy: Callable[[], Any]) -> Any:
    """A run that goes on after rank 1 has died, or the error that ends it."""
    faults = cluster.FaultPlan(seed=1).kill(1, at=40)
    report = parallel.train(job(), strategy(), nodes=3, on=engine(), faults=faults, on_failure="continue", **LIMITS)
    return {
        "history": report.history,
        "weights": report.checkpoint.model,
        "failures": {rank: (type(failed).__name__, str(failed)) for rank, failed in report.failures.items()},
    }
