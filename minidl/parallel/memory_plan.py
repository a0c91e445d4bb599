"""MemoryPlan: what a strategy says of a rank, from which `parallel.memory.predicted` computes its memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from minidl.nn import Module, Stage
from minidl.nn.segments import Segment
from minidl.parallel.mean_loss import Loss


class MemoryUnknown(ValueError):  # noqa: N818  (the name says what is missing)
    """What a node would hold is not known before a run; the reason, and what to do instead."""

    def __init__(self, reason: str, advice: str = "measure a run with parallel.memory.live") -> None:
        super().__init__(f"{reason}: {advice}")
        self.reason = reason


class Order(Protocol):
    """What memory depends on in a pipeline's `Schedule`."""

    @property
    def stages(self) -> int: ...

    @property
    def micro_batches(self) -> int: ...

    def place(self, chunk: int) -> int: ...

    def actions(self, stage: int) -> Iterable[Any]: ...


@dataclass(frozen=True)
class MemoryPlan:
    """What a rank divides, keeps and shares out while it trains on a minibatch.

    Parameters
        model          all stages of the model, with the layers that this rank computes, such as its shards or tiles
        micro_batches  computed one after the other, forward and backward, without a schedule
        schedule       the order of a pipeline's actions; None: one rank has all stages
        chunks         with a schedule, the stages of the model in each chunk
        loss           computes the mean loss from this rank's outputs; None: the job's does
        segments       with a schedule, of each chunk's stages: what backward recomputes at a time, or keeps
        shard          what the replicas share out, as in `ParallelPlan`; 0: nothing
        groups         for each stage of the pipeline, the groups of parameters that they share out; (): none
        overlaps       whether messages travel while the rank computes
        host           what the host of the device keeps, as in `Offload`; "": there is none
    """

    model: Module
    micro_batches: int = 1
    schedule: Order | None = None
    chunks: Sequence[Sequence[Stage]] = ()
    loss: Loss | None = None
    segments: Sequence[Sequence[Segment]] = ()
    shard: int = 0
    groups: Sequence[Sequence[Any]] = ()
    overlaps: bool = True
    host: str = ""
