"""Evaluation after the run, by the snapshots of weights that the ranks kept at the end of each epoch.

In an asynchronous run no moment exists at which all nodes could evaluate a model together, and models that differ from
node to node are not one model. So the ranks that own weights (servers, or every node) keep a copy of them and the time
when an epoch ends, and `parallel.train` makes the history from these copies after the run.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.nn import Module
from minidl.optim.named_state import named_state
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.checkpoint import Checkpoint
from minidl.parallel.run.divergence import check_finite
from minidl.parallel.run.evaluation import evaluate_ensemble, has_labels
from minidl.parallel.run.history import HistoryRow, per_second
from minidl.parallel.run.rank_record import RankRecord, Snapshot

Combine = Callable[[Sequence[Array]], list[Array]]
"""Makes the models that are evaluated from those of several nodes: `Strategy.combine`."""


def evaluated(
    job: Job,
    combine: Combine,
    records: Sequence[RankRecord],
    config: dict[str, Any],
    readings: int,
    tell: Callable[[HistoryRow], None],
) -> Checkpoint:
    """The last state of a run whose ranks kept snapshots, with the history made from them.

    job: the model that it builds is overwritten. config: see `Checkpoint`. readings: how often all nodes together read
    each sample in an epoch. tell: called with each row as soon as it is made.
    """
    train, test = splits = job.build_data()
    model = job.build_model()
    optimizer = job.build_optimizer(model)
    schedule = job.build_schedule(optimizer, len(train))
    models, history = [model], list[HistoryRow]()
    for epoch in range(1, job.epochs + 1):
        snapshots = [snapshot for record in records for snapshot in record.snapshots if snapshot.epoch == epoch]
        if not snapshots:  # the nodes that would have reached it have failed
            continue
        weights = _whole(combine, snapshots)
        models += [copy.deepcopy(model) for _ in weights[len(models) :]]
        buffers = _buffers(records, epoch, job.epochs)
        for one, its_weights in zip(models, weights, strict=False):  # fewer than before where nodes have failed
            _set_state(one, its_weights, buffers)
        test_loss, accuracy = evaluate_ensemble(job, models[: len(weights)], test)
        steps = max(snapshot.steps for snapshot in snapshots)
        if not math.isfinite(test_loss) and has_labels(job, test):
            check_finite(test_loss, model, epoch, steps, rank=0)
        seconds = max(snapshot.seconds for snapshot in snapshots)
        samples = epoch * len(train) * readings
        history.append(
            HistoryRow(
                epoch=epoch,
                loss=_mean_loss(records, epoch),
                test_loss=test_loss,
                accuracy=accuracy,
                seconds=seconds,
                samples_per_second=per_second(samples, seconds),
                bytes=_bytes(records, epoch, job.epochs),
                lr=snapshots[-1].lr,
                steps=steps,
                samples=samples,
            )
        )
        tell(history[-1])
    return Checkpoint(
        epoch=len(history),
        model=model.state_dict(),
        optimizer=named_state(optimizer, {parameter: name for name, parameter in model.named_parameters()}),
        schedule=None if schedule is None else schedule.state_dict(),
        history=history,
        config=config,
        data=splits.outline(),
    )


def _whole(combine: Combine, snapshots: Sequence[Snapshot]) -> list[Array]:
    """The weights of each model that is evaluated. Snapshots of equal offset are combined, then the slices joined."""
    by_offset: dict[int, list[Array]] = defaultdict(list)
    for snapshot in snapshots:
        by_offset[snapshot.offset].append(snapshot.weights)
    slices = [combine(by_offset[offset]) for offset in sorted(by_offset)]
    return [np.concatenate(of_one_model) for of_one_model in zip(*slices, strict=True)]


def _set_state(model: Module, weights: Array, buffers: list[Array]) -> None:
    vector.set_weights(list(model.parameters()), weights, keep_frozen=True)
    for buffer, value in zip(model.buffers(), buffers, strict=False):
        buffer.copy_(value)


def _buffers(records: Sequence[RankRecord], epoch: int, epochs: int) -> list[Array]:
    """The first surviving node's buffers after the same fraction of its run: nodes may make more or fewer passes."""
    passes = records[0].buffers
    return passes[max(1, epoch * len(passes) // epochs) - 1] if passes else []


def _bytes(records: Sequence[RankRecord], epoch: int, epochs: int) -> int:
    """Bytes sent by the first surviving node after the same fraction of its run; in the last epoch, all."""
    passes = records[0].bytes_by_pass
    if epoch == epochs or not passes:
        return records[0].bytes_sent
    return passes[max(1, epoch * len(passes) // epochs) - 1]


def _mean_loss(records: Sequence[RankRecord], epoch: int) -> float:
    """The mean over the samples of each node's pass number `epoch`; of earlier passes if no node has made it."""
    sums = [record.losses[epoch - 1] for record in records if len(record.losses) >= epoch]
    if not sums:
        return _mean_loss(records, epoch - 1) if epoch > 1 else math.nan
    counted = sum(counted for _, counted in sums)
    return sum(loss for loss, _ in sums) / counted if counted else math.nan
