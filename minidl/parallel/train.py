"""train(): run a job by a strategy on an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minidl import cluster
from minidl.cluster.comm import Communicator
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.protocol import Engine
from minidl.cluster.faults import FaultPlan
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.job import Job
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.run.divergence import NonFiniteLoss
from minidl.parallel.run.progress import Progress
from minidl.parallel.run.rank_record import RankRecord
from minidl.parallel.run.report import Report
from minidl.parallel.run.session import Session
from minidl.parallel.run.snapshots import judged
from minidl.parallel.strategy import Strategy

RAISED_AS_THEY_ARE = (NonFiniteLoss, OSError)
"""What the caller can mend: raised itself, not as the failure of a node."""


def train(
    job: Job,
    strategy: Strategy | None = None,
    nodes: int = 1,
    on: str | Engine = "processes",
    network: str | Network | None = None,
    folder: str | Path | None = None,
    resume: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    config: dict[str, Any] | None = None,
    timeout: float = 60.0,
    on_failure: str = "raise",
    faults: FaultPlan | None = None,
) -> Report:
    """Train `job` by `strategy` on `nodes` nodes and return the Report.

    strategy: `Serial()` by default; its servers run beside the nodes. on, network: the engine and what its messages
    cost; timeout: seconds a node may wait in one operation; on_failure, faults: all as in `cluster.launch`.
    folder: where a checkpoint is written: by Serial and Synchronous at the start and after every epoch, by the others
    at the end; none by default. resume: a checkpoint to go on from, to the same bits as a run that was never stopped.
    progress: called here, in the caller's process, about ten times a second and for every epoch.
    config: kept in the checkpoint for the caller.

    Errors: ValueError if job, strategy and nodes do not fit; CheckpointError for a checkpoint that is missing,
    damaged or of another model; NonFiniteLoss; OSError if the folder cannot be written; cluster.ClusterError if a
    node failed otherwise.

    >>> from minidl import data, nn, optim, parallel
    >>> job = parallel.Job(
    ...     model=lambda: nn.models.MLP(2, 16, 3),
    ...     data=lambda: data.spirals(n=100),
    ...     optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
    ...     epochs=2,
    ... )
    >>> report = parallel.train(job, parallel.Synchronous(), nodes=2)
    >>> [row["epoch"] for row in report.history], len(set(report.digests))
    ([1, 2], 1)
    """
    strategy = Serial() if strategy is None else strategy
    if nodes < 1:
        raise ValueError(f"nodes must be at least 1, got {nodes}")
    job.check_shards()
    strategy.check(job, nodes)
    if resume is not None and not strategy.is_resumable:
        raise ValueError(
            f"{type(strategy).__name__} cannot go on from a checkpoint, which does not hold all that its ranks know: "
            "to begin with the weights of a former run, give Job(model=report.model())"
        )
    checkpoint = None if resume is None else _matching_checkpoint(resume, job)
    if folder is not None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
    try:
        run = cluster.launch(
            _node,
            args=(job, strategy, nodes, folder, checkpoint, config or {}),
            nodes=nodes + strategy.servers,
            on=on,
            network=network,
            timeout=timeout,
            on_failure=on_failure,
            faults=faults,
            seed=job.seed,
            listener=None if progress is None else lambda rank, message: progress(message),
        )
    except cluster.ClusterError as error:
        if isinstance(error.cause, RAISED_AS_THEY_ARE):
            raise error.cause from error
        raise
    finally:
        if folder is not None:  # no rank is left by now
            Checkpoint.remove_unfinished(folder / CHECKPOINT_FILE)
    results: list[RankRecord] = [result for result in run.results if result is not None]
    final = next((result.state for result in results if result.state is not None), None)
    if final is None:
        _check_survivors(run.failures, nodes)
        final = judged(job, strategy, results, config or {})
        if progress is not None:
            for row in final.history:
                progress(Progress.of_row(row, job.epochs, run.trace.shares(0)))
        if folder is not None:
            final.save(folder / CHECKPOINT_FILE)
    return Report(job, strategy, nodes, final.history, run.seconds, run.trace, final, run.results, run.failures)


def _node(
    comm: Communicator,
    job: Job,
    strategy: Strategy,
    nodes: int,
    folder: Path | None,
    checkpoint: Checkpoint | None,
    config: dict[str, Any],
) -> RankRecord:
    """The program that runs on every rank."""
    few_numbers = "ordered" if strategy.algorithm == "ordered" else "auto"  # a ring would only cost time
    session = Session(job, comm, nodes, folder, checkpoint, config, few_numbers)
    with np.errstate(all="ignore"):  # what overflows ends as a loss that is not finite, and that is said once
        if comm.rank < nodes:
            strategy.run(session)
        else:
            strategy.serve(session)
    return session.result()


def _check_survivors(failures: dict[int, cluster.ClusterError], nodes: int) -> None:
    """Raise the failure that has cost the run its weights: that of a server, who alone has them, or of all nodes."""
    if any(rank >= nodes for rank in failures) or all(rank in failures for rank in range(nodes)):
        causes = (failure for failure in failures.values() if not isinstance(failure.cause, cluster.ClusterError))
        failure = next(causes, next(iter(failures.values())))
        if isinstance(failure.cause, RAISED_AS_THEY_ARE):
            raise failure.cause from failure
        raise failure


def _matching_checkpoint(path: str | Path, job: Job) -> Checkpoint:
    """The checkpoint, once it is known to fit the job."""
    checkpoint = Checkpoint.load(path)
    model = job.build_model()
    checkpoint.restore(model, optimizer := job.optimizer(model.parameters()), job.build_schedule(optimizer, 1))
    if checkpoint.epoch >= job.epochs:
        raise ValueError(
            f"the checkpoint {path} has {checkpoint.epoch} epochs already: ask for more, got epochs={job.epochs}"
        )
    return checkpoint
