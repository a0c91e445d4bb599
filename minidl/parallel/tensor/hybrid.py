"""Hybrid: data, pipeline and tensor parallelism on one mesh of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from minidl.arguments import flag, whole_number
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.data.pairs import minibatch
from minidl.nn import Module, Stage
from minidl.parallel.gradients.flat_vector import gradient, set_gradient
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import Loss, classification_loss
from minidl.parallel.pipeline.pipeline import Pipeline
from minidl.parallel.plan import ParallelPlan, in_any_order
from minidl.parallel.run.session import Session
from minidl.parallel.tensor.layouts import Layout, layout_of, split_layers
from minidl.parallel.tensor.linear import ColumnLinear
from minidl.parallel.tensor.loss import vocabulary_cross_entropy
from minidl.parallel.tensor.sharded_features import sharded_layers

AXES = ("dp", "pp", "tp")
"""The axes along which a Hybrid divides the work, in their default order."""


class RankAndSize(NamedTuple):
    """Replaces a communicator in `split_layers`, to split a model without running its ranks."""

    rank: int
    size: int


_T = TypeVar("_T")


def keyword_only(kind: type[_T]) -> type[_T]:
    """Make the class refuse settings without a name: dataclass would take `Hybrid(4)` for micro_batches."""
    made: Any = kind.__init__

    @wraps(made)
    def init(self: _T, *unnamed: object, **settings: object) -> None:
        if unnamed:
            given = ", ".join(map(repr, unnamed))
            raise TypeError(f"Hybrid takes its settings by name, got Hybrid({given}): write Hybrid(tp=4), for instance")
        made(self, **settings)

    kind.__init__ = init  # type: ignore[assignment]
    return kind


@keyword_only
@dataclass(frozen=True, kw_only=True)
class Hybrid(Pipeline):
    """`dp` replicas of a pipeline of `pp` stages, each of which `tp` nodes compute together.

        along "tp"  every layer is sharded: two all-reduces per layer
        along "pp"  activations and their gradients pass between stages, micro-batch by micro-batch
        along "dp"  gradients are all-reduced, once per minibatch

    Parameters
        dp        replicas, which share each minibatch; default: as many as the nodes suffice for
        pp        stages of the pipeline
        tp        nodes that share each layer
        layout    how each layer is sharded: `{name: ColumnLinear, ...}`, default: the model's. `split_layers` says
                  what to do with widths that are not a multiple of tp. A Dropout or batch norm of sharded features or
                  channels, between a Column layer and its Row layer, becomes a ShardedDropout or ShardedBatchNorm; a
                  softmax, another norm or a layer with weights is refused there. The model's own code there is not
                  checked: it must treat every feature by itself and draw no random numbers, so it must call neither
                  F.softmax nor F.dropout
        sequence  True: between sharded layers, each node along "tp" has a slice of the positions: norms and dropout
                  are computed once instead of tp times, for the same number of words in messages; a quarter more
                  with recompute="selective", which keeps slices alone, so that activations are divided by tp
        sample_slices  True: one weird trick, for AlexNet, VGG16 and LeNet. Each node along "tp" computes the
                  convolutions of a slice of the samples, and a share of each linear layer for all of them; where a
                  micro-batch has fewer samples than nodes, some have none
        axes      order of the axes in the mesh, outermost first. Nodes along the last one have consecutive ranks, so
                  they share a rack or a server: put last what sends most. In a GPT that is "tp" if a minibatch has
                  more than 3 * width * (dp - 1) / (tp - 1) positions, else "dp"; "pp" sends least. The order changes
                  no result
        the others, such as `schedule` and `micro_batches`, are those of `Pipeline`

    Equal to `Serial(shards=dp, micro_batches=micro_batches)` up to rounding, dropout and batch norm included. Sums
    inside a sharded layer use the engine's own all-reduce, whatever `algorithm` is: with three or more nodes along
    "tp", a run on another engine may have other bits.

    References
        Narayanan et al. (arXiv:2104.04473), section 3; Korthikanti et al. (arXiv:2205.05198), section 4.2;
        Krizhevsky (arXiv:1404.5997) for `sample_slices`.
    """

    stages: int = field(default=1, init=False, repr=False)
    replicas: int | None = field(default=None, init=False, repr=False)
    dp: int | None = None
    pp: int = 1
    tp: int = 1
    layout: Layout | None = None
    sequence: bool = False
    sample_slices: bool = False
    axes: Sequence[str] = AXES
    setting_of_stages: ClassVar[str] = "pp"

    def __post_init__(self) -> None:
        for name, own in (("dp", "replicas"), ("pp", "stages"), ("tp", "tp")):
            value = getattr(self, name)
            if value is not None:
                value = whole_number(f"Hybrid: {name}", value, at_least=1)
            object.__setattr__(self, own, value)
        flag("Hybrid: sequence", self.sequence)
        if flag("Hybrid: sample_slices", self.sample_slices) and self.layout is not None:
            raise ValueError(
                "Hybrid: sample_slices=True chooses the layout: leave out layout, or leave out sample_slices"
            )
        if self.sequence and self.sample_slices:
            raise ValueError(
                "Hybrid: slices are of positions or of samples: leave out sequence, or leave out sample_slices"
            )
        object.__setattr__(self, "axes", in_any_order("Hybrid: axes", self.axes, AXES))
        super().__post_init__()

    def plan(self, job: Job, nodes: int) -> ParallelPlan:
        dp = self.dp or max(nodes // (self.pp * self.tp), 1)
        needed = dp * self.pp * self.tp
        if needed != nodes:
            raise ValueError(f"Hybrid: dp={dp}, pp={self.pp}, tp={self.tp} need {needed} nodes, got {nodes}")
        return replace(super().plan(job, dp * self.pp), tp=self.tp, axes=(*self.axes, "spatial"))

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if self.tp > 1:
            if self.layout is None:
                job.build_held(partial(self._nothing_of_the_split, job))
            else:
                self._sharded_layers(job)
            if self.sequence and self.layout is None:  # a GPT, whose samples are rows of positions
                self._check_positions(job)

    def _check_positions(self, job: Job) -> None:
        for name, samples in zip(("training", "test"), job.build_data(), strict=True):
            positions = samples.x.shape[-1]
            if positions % self.tp:
                raise ValueError(
                    f"Hybrid: with sequence=True each of tp={self.tp} nodes has a slice of the positions, and the "
                    f"{name} samples have {positions}: use a multiple of {self.tp}, or leave out sequence"
                )

    def prepared(self, job: Job, nodes: int) -> Self:
        """Add the best cuts, and to the layout the dropouts and batch norms of sharded features."""
        strategy = super().prepared(job, nodes)
        if self.tp == 1 or self.layout is None:
            return strategy
        return replace(strategy, layout={**self.layout, **self._sharded_layers(job)})

    def _sharded_layers(self, job: Job) -> Layout:
        """The sharded dropouts and batch norms that the layout lacks. ValueError if it does not fit the model."""
        whole = deepcopy(job.build_model())  # a copy: it is changed in place
        divided = self._split(job, deepcopy(whole), RankAndSize(0, self.tp))
        samples = minibatch(job.build_data().train, np.arange(1))[0]
        return {} if self.layout is None else sharded_layers(whole, divided, samples)

    def _split(self, job: Job, model: Module, comm: Any) -> Module:
        layout = layout_of(model, self.sequence, self.sample_slices) if self.layout is None else self.layout
        split_layers(model, comm, layout)
        if job.loss is not classification_loss:  # it reads whole logits
            for head in _heads(model):
                head.gather = "always"
        return model

    def _nothing_of_the_split(self, job: Job, model: Module) -> tuple[()]:
        self._split(job, model, RankAndSize(0, self.tp))
        return ()

    def partition(self, job: Job, mesh: Mesh[Communicator], model: Module) -> list[Stage]:
        if self.tp > 1:
            self._split(job, model, mesh["tp"])
        return super().partition(job, mesh, model)

    def loss(self, session: Session) -> Loss:
        if self.tp > 1 and any(head.gather == "evaluation" for head in _heads(session.model)):
            return partial(vocabulary_cross_entropy, comm=session.mesh["tp"])
        return session.job.loss

    def update(self, session: Session) -> None:
        """Update; with slices, first sum the gradients of unsharded parameters, since each rank has a term."""
        if (self.sequence or self.sample_slices) and self.tp > 1:
            whole = [p for p in session.parameters if p.shard is None and p.grad is not None]
            if whole:
                set_gradient(whole, session.mesh["tp"].all_reduce(gradient(whole)))
        super().update(session)


def _heads(model: Module) -> list[ColumnLinear]:
    """The layers whose outputs only evaluation needs whole."""
    return [each for each in model.modules() if isinstance(each, ColumnLinear) and each.gather != "never"]
