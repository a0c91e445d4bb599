"""Elastic restart: when nodes die, the run goes on with the others.

A run is then several launches, one after the other. The surviving ranks return their state after their last finished
update, and their records; the next launch begins from these:

    "step"   all nodes have the same weights: go on from the survivor with the most updates, so that only the unfinished
             minibatch is repeated
    "mean"   nodes have weights of their own: all go on from the mean of the survivors' weights, momenta and statistics,
             at the step of the slowest

If the model is split, or the optimizer's state, the survivors lack the dead node's share, and return only their number
of updates:

    "checkpoint"   new nodes take the places of the dead, and all go on from the last checkpoint, to the same bits

    strategy                            goes on from   begins anew, on all nodes
    Synchronous, SufficientFactors      "step"         memory of a compressor (residuals, factors)
    LocalSGD and its variants           "mean"         the round; outer momentum
    Gossip                              "mean"         nothing
    OneShotAveraging                    "mean"         nothing; nodes notice a death in the all-reduce at the end
    ElasticAveraging("synchronous")     "mean"         the centre, which is this mean; the velocity of EAMSGD
    Pipeline, Hybrid, Sharded           "checkpoint"   the minibatches since then

Hogwild, asynchronous Gossip and the strategies with servers cannot go on in this way. After a death within an epoch a
compressor's random choices (RandomK, QSGD, TernGrad) have a seed of their own, the same on all nodes.

State that only the dead node had is lost: its own weights ("mean") and its samples in the mean loss of the epoch. The
rest of the epoch is divided among the remaining nodes: the same samples as without the death if nodes share minibatches
and `Job(shards="shuffled")`; else a sample of the epoch may be read twice or not at all. Nodes are renumbered, and
dropout masks depend on the new numbers.

References
    PyTorch's torchrun restarts all workers from their last checkpoint; Qiao et al., Litz: elastic framework for
    high-performance distributed machine learning (USENIX ATC 2018), for runs whose number of nodes changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from minidl.arguments import flag, whole_number
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.trace.trace import Trace
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.run.checkpoint import Checkpoint
from minidl.parallel.run.rank_record import RankRecord


@dataclass(frozen=True)
class Elastic:
    """What `train(elastic=...)` does when nodes die; `elastic=True` is `Elastic()`.

    Parameters
        rejoin     True: at the beginning of the next epoch new nodes take the places of the dead, and the run goes on
                   with as many as at first. False: the run goes on with the others. With Pipeline,
                   Hybrid and Sharded, new nodes always join, and at once
        min_nodes  least number of nodes to go on with; with fewer, the failure is raised
        restarts   number of deaths that a run survives; the next one is raised

    Raises
        TypeError, ValueError for an invalid setting
    """

    rejoin: bool = False
    min_nodes: int = 1
    restarts: int = 10

    def __post_init__(self) -> None:
        flag("Elastic: rejoin", self.rejoin)
        whole_number("Elastic: min_nodes", self.min_nodes, at_least=1)
        whole_number("Elastic: restarts", self.restarts, at_least=0)


@dataclass(frozen=True)
class Restart:
    """One continuation of a run with other nodes: an item of `report.restarts`.

    epoch       epoch in which it happened, counted from 1; one more than the job has if all its minibatches were done
    step        minibatches of that epoch that were done and are not done again
    seconds     training time up to then, that of the steps which are done again included
    died        why, by the number of the node in the launch that ended; empty if nodes only joined
    joined      number of nodes that joined
    nodes       number of nodes that go on
    source      "step" or "mean", as in this file's docstring. If no node survived or the model is split: "checkpoint",
                the last one in the folder or the state with which the launch began; "start" if there is neither
    steps_lost  updates of the furthest survivor that are done again; None if no node survived
    trace       of the launch that ended
    """

    epoch: int
    step: int
    seconds: float
    died: dict[int, str]
    joined: int
    nodes: int
    source: str
    steps_lost: int | None
    trace: Trace | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        causes = [f"node {rank} died ({why})" for rank, why in self.died.items()]
        joined = [f"{self.joined} joined"] if self.joined else []
        origin = {
            "step": "the last finished step",
            "mean": "the mean of the survivors' weights",
            "checkpoint": "the checkpoint",
            "start": "the start",
        }[self.source]
        lost = f", {_steps(self.steps_lost)} done again" if self.steps_lost else ""
        return (
            f"epoch {self.epoch}, after {_steps(self.step)}: {', '.join(causes + joined)}; {self.nodes} went on from "
            f"{origin}{lost}"
        )


@dataclass(frozen=True)
class Leg:
    """One launch of a run: from which state, with which records of each rank, and until which epoch.

    checkpoint  state to go on from; None: from the start
    records     what each rank has recorded before; empty: nothing
    until       epochs that are done at its end; None: all
    is_elastic  whether a rank returns its state when another one has died
    seconds     training time of the launches before
    """

    checkpoint: Checkpoint | None = None
    records: Sequence[RankRecord] = field(default=(), repr=False)
    until: int | None = None
    is_elastic: bool = False
    seconds: float = 0.0


def next_leg(
    source: str,
    elastic: Elastic,
    leg: Leg,
    records: Sequence[RankRecord],
    failures: Mapping[int, ClusterError],
    at_first: int,
    written: Path | None,
    trace: Trace,
) -> tuple[Leg, Restart]:
    """Return the next launch of a run that the last one has not finished, and the Restart that describes it.

    Parameters
        source    the strategy's `resumes_from`
        leg       the launch that has ended
        records   what its surviving ranks brought back, in the order of the ranks
        failures  errors of its ranks that died
        at_first  number of nodes when the run began
        written   the checkpoint that the run has written to its folder; None: none
        trace     that of the launch

    Raises the failure of the first dead node if the run cannot go on.
    """
    is_split = source == "checkpoint"
    left = at_first - len(failures) if is_split else len(records)
    joins = is_split or (elastic.rejoin and (not failures or not left))
    after = at_first if joins else left
    if after < max(elastic.min_nodes, 1):
        raise next(iter(failures.values()))
    state, source, lost = _state(source, leg, records, written)
    epoch, within = 0, dict[str, Any]()
    if state is not None:
        epoch, within = state.epoch, {**(state.history[-1] if state.history else {}), **state.within_epoch}
    step = int(within.get("step", 0))
    seconds = max([float(within.get("seconds", 0.0)), *(record.seconds for record in records)])
    until = epoch + 1 if elastic.rejoin and after < at_first else None
    before = leg.records[:after] if state is not None and state is leg.checkpoint else ()
    carried = [_until(record, epoch) for record in (before if is_split else records or before)]
    carried += [_newcomer(carried[0]) if carried else RankRecord() for _ in range(after - len(carried))]
    died = {rank: str(failure).partition("\n")[0] for rank, failure in failures.items()}
    restart = Restart(epoch + 1, step, seconds, died, after - left, after, source, lost, trace)
    return Leg(state, carried, until, leg.is_elastic, seconds), restart


def _state(
    source: str, leg: Leg, records: Sequence[RankRecord], written: Path | None
) -> tuple[Checkpoint | None, str, int | None]:
    """The state to go on from, where it comes from, and the updates of the furthest survivor that are lost."""
    states = [record.state for record in records if record.state is not None]
    if not states:
        known = [leg.checkpoint] if leg.checkpoint is not None else []
        known += [Checkpoint.load(written)] if written is not None else []
        made = max((record.steps for record in records), default=None)
        if not known:
            return None, "start", made
        latest = max(known, key=lambda state: (state.epoch, state.within_epoch.get("step", 0)))
        at_epoch = latest.history[-1]["steps"] if latest.history else 0
        kept = int(latest.within_epoch.get("steps", at_epoch))
        return latest, "checkpoint", None if made is None else made - kept
    done = [state.within_epoch["steps"] for state in states]
    seconds = max(state.within_epoch["seconds"] for state in states)
    if source == "step":
        chosen, lost = states[done.index(max(done))], 0
    else:
        chosen, lost = states[done.index(min(done))], int(max(done) - min(done))
        chosen = replace(chosen, model=_mean([s.model for s in states]), optimizer=_mean([s.optimizer for s in states]))
    same = [s for s in states if s.epoch == chosen.epoch and s.within_epoch["step"] > 0]
    losses = [pair for s in same for pair in s.within_epoch["losses"]]
    return replace(chosen, within_epoch=chosen.within_epoch | {"losses": losses, "seconds": seconds}), source, lost


def _mean(values: Sequence[Any]) -> Any:
    """The mean of arrays of numbers, key by key in dicts with the same keys; for anything else, the first value.

    Step counts, which are arrays without dimensions, become their minimum.
    """
    first = values[0]
    if isinstance(first, dict):
        return {key: _mean([value[key] for value in values if key in value]) for key in first}
    if not isinstance(first, np.ndarray) or all(np.array_equal(first, value) for value in values):
        return first  # also frozen weights: a mean of equal numbers may have other bits
    if first.ndim == 0 or first.dtype.kind not in "fV":
        return np.min(values, axis=0)
    return vector.mean(values)


def _until(record: RankRecord, epoch: int) -> RankRecord:
    """The record of a rank without the epochs that are done again."""
    return replace(
        record,
        state=None,
        is_unfinished=False,
        interrupted=None,
        snapshots=[snapshot for snapshot in record.snapshots if snapshot.epoch <= epoch],
        losses=record.losses[:epoch],
        buffers=record.buffers[:epoch],
        routing=record.routing[:epoch],
        bytes_by_pass=record.bytes_by_pass[:epoch],
    )


def with_epochs_of_the_dead(records: Sequence[RankRecord], before: Sequence[RankRecord]) -> list[RankRecord]:
    """The survivors' records, of which the first has also the epochs that only dead nodes have recorded.

    before: the records with which the launch began. Nodes that joined then have nothing of their own before it.
    """
    kept = list(records)
    for epoch in range(1, max((len(record.losses) for record in before), default=0) + 1):
        snapshots = [snapshot for record in before for snapshot in record.snapshots if snapshot.epoch == epoch]
        if snapshots and kept and not any(s.epoch == epoch for record in kept for s in record.snapshots):
            losses = list(kept[0].losses)
            loss_sum, samples = zip(*(record.losses[epoch - 1] for record in before), strict=True)
            losses[epoch - 1] = sum(loss_sum), sum(samples)
            kept[0] = replace(kept[0], snapshots=[*kept[0].snapshots, *snapshots], losses=losses)
    return kept


def _newcomer(other: RankRecord) -> RankRecord:
    """The record of a node that joins, which has nothing of its own from the epochs before."""
    return RankRecord(
        losses=[(0.0, 0) for _ in other.losses],
        buffers=list(other.buffers),
        routing=[{} for _ in other.routing],
        bytes_by_pass=list(other.bytes_by_pass),
        bytes_sent=other.bytes_sent,
    )


def _steps(number: int) -> str:
    return f"{number} step" if number == 1 else f"{number} steps"
