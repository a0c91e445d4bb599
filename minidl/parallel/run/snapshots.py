"""Snapshots: the weights at the end of each epoch, kept where nodes do not stop to be judged, and judged after the run.

An asynchronous run has no moment at which all nodes could evaluate a model together, and local models are not one
model. So whoever holds weights when an epoch ends (a server, or each node) keeps a copy of them and of the time, and
`parallel.train` makes the history of the copies when the run is over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.checkpoint import Checkpoint
from minidl.parallel.run.divergence import check_finite
from minidl.parallel.run.evaluation import evaluate_ensemble
from minidl.parallel.run.rank_record import RankRecord, Snapshot
from minidl.parallel.strategy import Strategy


def judged(job: Job, strategy: Strategy, results: Sequence[RankRecord], config: dict[str, Any]) -> Checkpoint:
    """The last state of a run whose ranks have kept snapshots, with the history that these give.

    Pieces of equal offset are the weights of several nodes: `strategy.combine` says what model they make.
    """
    splits = job.build_data()
    history: list[dict[str, Any]] = []
    models = [job.build_model()]
    for epoch in range(1, job.epochs + 1):
        snapshots = [snapshot for result in results for snapshot in result.snapshots if snapshot.epoch == epoch]
        if not snapshots:  # the nodes that would have reached it have failed
            continue
        models = [_model(job, weights, _buffers(results, epoch, job.epochs)) for weights in _whole(strategy, snapshots)]
        test_loss, accuracy = evaluate_ensemble(job, models, splits.test)
        steps = max(snapshot.steps for snapshot in snapshots)
        check_finite(test_loss, models[0], epoch, steps, rank=0)
        seconds = max(snapshot.seconds for snapshot in snapshots)
        samples = epoch * len(splits.train)
        history.append(
            {
                "epoch": epoch,
                "loss": _mean_loss(results, epoch),
                "test_loss": test_loss,
                "accuracy": accuracy,
                "seconds": seconds,
                "samples_per_second": samples / seconds if seconds > 0 else float("inf"),
                "bytes": _bytes(results, epoch, job.epochs),
                "lr": snapshots[-1].lr,
                "steps": steps,
                "samples": samples,
            }
        )
    optimizer = job.optimizer(list(models[0].parameters()))
    schedule = job.build_schedule(optimizer, len(splits.train))
    return Checkpoint(
        epoch=len(history),
        model=models[0].state_dict(),
        optimizer=optimizer.state_dict(),
        schedule=None if schedule is None else schedule.state_dict(),
        history=history,
        config=config,
    )


def _whole(strategy: Strategy, snapshots: Sequence[Snapshot]) -> list[Array]:
    """The weights of each model that the run is judged by."""
    by_offset: dict[int, list[Array]] = defaultdict(list)
    for snapshot in snapshots:
        by_offset[snapshot.offset].append(snapshot.weights)
    pieces = [strategy.combine(by_offset[offset]) for offset in sorted(by_offset)]
    return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


def _model(job: Job, weights: Array, buffers: list[Array]) -> Module:
    model = job.build_model()
    vector.set_weights(list(model.parameters()), weights, keep_frozen=True)
    for buffer, value in zip(model.buffers(), buffers, strict=False):
        buffer.copy_(value)
    return model


def _buffers(results: Sequence[RankRecord], epoch: int, epochs: int) -> list[Array]:
    """Those after the same part of the run: a fast node makes more passes than there are epochs, a slow one fewer."""
    passes = results[0].buffers
    return passes[max(1, epoch * len(passes) // epochs) - 1] if passes else []


def _bytes(results: Sequence[RankRecord], epoch: int, epochs: int) -> int:
    """What the first node has sent after the same part of the run; by the last epoch, all."""
    passes = results[0].bytes_by_pass
    if epoch == epochs or not passes:
        return results[0].bytes_sent
    return passes[max(1, epoch * len(passes) // epochs) - 1]


def _mean_loss(results: Sequence[RankRecord], epoch: int) -> float:
    """Of the samples in each node's pass of that number; of the passes before where none has come so far."""
    sums = [result.losses[epoch - 1] for result in results if len(result.losses) >= epoch]
    if not sums:
        return _mean_loss(results, epoch - 1) if epoch > 1 else float("nan")
    return sum(loss for loss, _ in sums) / max(sum(samples for _, samples in sums), 1)
