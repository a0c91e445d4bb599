"""Hybrid: data, expert, pipeline, spatial and tensor parallelism on one mesh of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from math import prod
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np

from minidl import kernels
from minidl.arguments import flag, one_of, whole_number
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.data import Dataset
from minidl.nn import MixtureOfExperts, Module, Parameter, Stage
from minidl.nn.experts import parameters_of_experts
from minidl.nn.parameter import ModelTensor
from minidl.nn.shard import FlatShard
from minidl.parallel.experts.chunks import ExpertChunks
from minidl.parallel.experts.exchange import check_divisible
from minidl.parallel.experts.gradients import ExpertGradients
from minidl.parallel.experts.layer import divide_experts
from minidl.parallel.gradients.buckets import GradientBuckets, fill
from minidl.parallel.gradients.flat_vector import gradient, set_gradient
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import Loss, classification_loss
from minidl.parallel.memory_plan import MemoryPlan, MemoryUnknown
from minidl.parallel.pipeline.chunks import Computing
from minidl.parallel.pipeline.pipeline import Pipeline, completed_with
from minidl.parallel.plan import ParallelPlan, in_any_order
from minidl.parallel.run.learner import check_norms
from minidl.parallel.run.partition import Partition
from minidl.parallel.run.session import Session
from minidl.parallel.sharded.flat_group import cut, shape_of
from minidl.parallel.sharded.scattered_gradients import ScatteredGradients
from minidl.parallel.sharded.shares import Shares, shares_of
from minidl.parallel.sharded.units import GroupSpec, Unit, groups_by_unit, parameters_of, units_of
from minidl.parallel.spatial.division import Division, divide, division_of, grid_of, tiled_parameters
from minidl.parallel.spatial.samples import tiles_of
from minidl.parallel.spatial.tiles import Tile
from minidl.parallel.tensor.layouts import Layout, layout_of, split_layers
from minidl.parallel.tensor.linear import ColumnLinear
from minidl.parallel.tensor.loss import vocabulary_cross_entropy
from minidl.parallel.tensor.on_tiles import SHARDED_ON_TILES
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
    """`dp` replicas of a pipeline of `pp` stages, each of which `tp` nodes, or `spatial` ones, compute together.

        along "tp"  every layer is sharded: two all-reduces per layer
        along "spatial"  each node has a tile of every image: neighbours exchange halos
        along "pp"  activations and their gradients pass between stages, micro-batch by micro-batch
        along "dp"  gradients are all-reduced, once per minibatch; or, with `shard`, reduce-scattered. Those of layers
                    on tiles are summed along "spatial" in the same all-reduce, but with `shard` or algorithm="ordered"
                    in another one, after backward
        along "ep"  every mixture of experts sends tokens to their experts and back; each node reads samples of its own

    Parameters
        dp        replicas, which share each minibatch; default: as many as the nodes suffice for
        pp        stages of the pipeline
        tp        nodes that share each layer
        ep        nodes that divide the experts of every `nn.MixtureOfExperts` among them, and the samples: each has all
                  other weights, whose gradients are all-reduced over dp * ep nodes; those of experts, over dp. The
                  capacity of an expert is for the tokens of one node. `experts.dispatched_bytes` has the traffic. It
                  goes with dp and pp, and stands after "dp" in the mesh
        spatial   tiles into which the pixels of every image are divided: a number of slabs of rows, or rows x columns,
                  such as (2, 4) or "2x4". Convolutions, poolings, batch norms and dropout work on tiles; before the
                  first stage that cannot, such as a linear layer or maps of fewer pixels than nodes, the maps are
                  gathered, and from there on each node computes the same. If that stage begins with
                  `nn.AdaptiveAvgPool2d(1)`, as ResNet's, the sums of the tiles are added up instead: a number for each
                  channel. What the model's own code between the layers draws, or computes from more than a pixel, needs
                  whole maps too. A node reads its tile of the samples only. With tp too, convolutions are divided by
                  both; LeNet's and ResNet's are, for instance
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
        shard     what the nodes along "dp" share out among them instead of keeping copies, as in `Sharded(stage=)`
                      1     the optimizer's state
                      2     ... and the gradients
                      3     ... and the weights. Each stage of the model (`nn.Stage`) with weights is a unit, which
                            gathers them before its forward and again before its backward of every micro-batch
                      None  nothing
        axes      order of the axes in the mesh, outermost first. Nodes along the last one have consecutive ranks, so
                  they share a rack or a server: put last what sends most. In a GPT that is "tp" if a minibatch has
                  more than 3 * width * (dp - 1) / (tp - 1) positions, else "dp"; "pp" sends least. The order changes
                  no result
        the others, such as `schedule` and `micro_batches`, are those of `Pipeline`

    Equal to `Serial(shards=dp * ep, micro_batches=micro_batches)` up to rounding, dropout and batch norm included. Sums
    inside a sharded layer use the engine's own all-reduce, whatever `algorithm` is: with three or more nodes along
    "tp", a run on another engine may have other bits.

    Notes
        With shard and algorithm="ordered" the weights have the bits that they have without shard, but for norms
        (clip_norm, LARS, LAMB), in which the nodes add up squares of their ranges. The notes of `Sharded` hold, with dp
        for N: of P weights on its stage and tensor shard, in float32 with Adam, a node keeps 16 P bytes at the update
        without shard, 8 P + 8 P / dp, 4 P + 12 P / dp and 16 P / dp bytes with shard=1, 2 and 3.
        With several micro-batches gradients are whole until the last one, also with shard=2 and 3: 4 P bytes.
        Numbers that a node sends along "dp" in a minibatch of m micro-batches: 2 P (dp - 1) / dp without shard and with
        shard=1 and 2; (2 m + 1) P (dp - 1) / dp with shard=3, also if it recomputes: many micro-batches, which keep a
        pipeline busy, are paid for in traffic. A zero bubble's W gathers nothing.
        LARS and LAMB need whole layers: they go with dp and pp, with and without shard, and not with tp.

    References
        Narayanan et al. (arXiv:2104.04473), section 3; Korthikanti et al. (arXiv:2205.05198), section 4.2; Rajbhandari
        et al. (arXiv:1910.02054), section 5, for shard; Dryden et al. (arXiv:1903.06681) for spatial;
        Krizhevsky (arXiv:1404.5997) for sample_slices; Lepikhin et al. (arXiv:2006.16668), section 3, for ep.
    """

    stages: int = field(default=1, init=False, repr=False)
    replicas: int | None = field(default=None, init=False, repr=False)
    dp: int | None = None
    pp: int = 1
    tp: int = 1
    ep: int = 1
    spatial: int | str | tuple[int, int] = 1
    layout: Layout | None = None
    sequence: bool = False
    sample_slices: bool = False
    shard: int | None = None
    axes: Sequence[str] = AXES
    _division: Division | None = field(default=None, init=False, repr=False)  # how the grid divides the model
    setting_of_stages: ClassVar[str] = "pp"

    def __post_init__(self) -> None:
        for name, own in (("dp", "replicas"), ("pp", "stages"), ("tp", "tp")):
            value = getattr(self, name)
            if value is not None:
                value = whole_number(f"Hybrid: {name}", value, at_least=1)
            object.__setattr__(self, own, value)
        object.__setattr__(self, "ep", whole_number("Hybrid: ep", self.ep, at_least=1))
        grid_of("Hybrid: spatial", self.spatial)
        flag("Hybrid: sequence", self.sequence)
        if flag("Hybrid: sample_slices", self.sample_slices) and self.layout is not None:
            raise ValueError(
                "Hybrid: sample_slices=True chooses the layout: leave out layout, or leave out sample_slices"
            )
        if self.sequence and self.sample_slices:
            raise ValueError(
                "Hybrid: slices are of positions or of samples: leave out sequence, or leave out sample_slices"
            )
        if self.sample_slices and self._tiles > 1:
            raise ValueError(
                f"Hybrid: nodes divide the pixels of a convolution, spatial={self.spatial}, or the samples: leave out "
                "spatial, or leave out sample_slices"
            )
        if self.shard is not None:
            object.__setattr__(self, "shard", whole_number("Hybrid: shard", self.shard, at_least=1, at_most=3))
            one_of("Hybrid: with shard, algorithm", self.algorithm, ("auto", "ordered"))
        object.__setattr__(self, "axes", in_any_order("Hybrid: axes", self.axes, AXES))
        super().__post_init__()
        if self.ep > 1:
            self._check_goes_with_experts()

    def _check_goes_with_experts(self) -> None:
        others = {"tp": self.tp > 1, "spatial": self._tiles > 1, "shard": self.shard is not None}
        if given := [name for name, is_given in others.items() if is_given]:
            raise ValueError(f"Hybrid: ep={self.ep} goes with dp and pp: leave out {' and '.join(given)}, or ep")
        if self.made_schedule().is_asynchronous:
            raise ValueError(
                f"Hybrid: ep={self.ep} sums the gradients of experts and of all else once a minibatch, but with "
                "pipedream each stage keeps versions of its weights: choose another schedule, such as 1f1b"
            )

    @property
    def _grid(self) -> tuple[int, int]:
        return grid_of("Hybrid: spatial", self.spatial)

    @property
    def _tiles(self) -> int:
        return prod(self._grid)

    def plan(self, job: Job, nodes: int) -> ParallelPlan:
        together = self.ep * self.pp * self.tp * self._tiles
        dp = self.dp or max(nodes // together, 1)
        if dp * together != nodes:
            spatial = f", spatial={self.spatial}" if self._tiles > 1 else ""
            ep = f", ep={self.ep}" if self.ep > 1 else ""
            raise ValueError(
                f"Hybrid: dp={dp}, pp={self.pp}, tp={self.tp}{ep}{spatial} need {dp * together} nodes, got {nodes}"
            )
        made = super().plan(job, dp * self.pp)
        at = self.axes.index("dp") + 1
        axes = (*self.axes[:at], "ep", *self.axes[at:], "spatial")
        return replace(made, ep=self.ep, tp=self.tp, spatial=self._tiles, shard=self.shard, axes=axes)

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if self.shard is not None:
            self._check_sharing(self.plan(job, nodes))
        if self.ep > 1:
            job.build_held(self._check_experts)
        division = self._divided(job) if self._tiles > 1 else None
        if self.tp > 1:
            job.build_held(partial(self._complete(job)._nothing_of_the_split, job, division))
            if self.sequence and self.layout is None:  # a GPT, whose samples are rows of positions
                self._check_positions(job)

    def _check_experts(self, model: Module) -> tuple[()]:
        mixtures = {name: layer for name, layer in model.named_modules() if isinstance(layer, MixtureOfExperts)}
        if not mixtures:
            raise ValueError(
                f"Hybrid: ep={self.ep} divides experts, but the {type(model).__name__} has none: leave out ep, or take "
                "a model with nn.MixtureOfExperts, such as a GPT with experts=4"
            )
        for name, layer in mixtures.items():
            check_divisible(f"Hybrid: ep={self.ep}: {name}", len(layer.experts), self.ep)
        return ()

    def check_as_replica(self, name: str) -> None:
        super().check_as_replica(name)
        if self.shard is not None:
            raise ValueError(
                f"{name}: the servers keep the state of the optimizer and hand out whole weights, so workers have "
                f"nothing to share out: leave out shard={self.shard}"
            )
        if self.ep > 1:
            raise ValueError(
                f"{name}: the ranks of a worker read the same samples, but with ep={self.ep} each reads its own: leave "
                "out ep"
            )

    def _check_sharing(self, plan: ParallelPlan) -> None:
        if plan.dp == 1:
            raise ValueError(
                f"Hybrid: shard={self.shard} shares the state of training out among the replicas, and there is one: "
                "give dp=2 or more and as many nodes, or leave out shard"
            )
        if self.made_schedule().is_asynchronous:
            raise ValueError(
                f"Hybrid: shard={self.shard} gives each replica the sums of its range once a minibatch, but with "
                "pipedream each stage keeps versions of whole weights: choose another schedule, such as 1f1b"
            )
        if kernels.new_array_module() is not np:
            raise ValueError("Hybrid: shard keeps weights as numpy arrays: choose kernels that run on the CPU")

    def _check_enough_weights(self, job: Job, dp: int, model: Module) -> tuple[()]:
        if self.tp > 1:
            self._split(job, model, RankAndSize(0, self.tp))
        for stage in range(self.pp):
            own = parameters_of(*self._units(model, stage))
            if 0 < (weights := sum(prod(shape_of(p)) for p in own if p.requires_grad)) < dp:
                raise ValueError(
                    f"Hybrid: {dp} replicas are more than the {weights} weights that each trains on stage {stage}: use "
                    f"dp={weights} or less, fewer stages (pp), or leave out shard"
                )
        return ()

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
        strategy = super().prepared(job, nodes)._complete(job)
        if self._tiles > 1:
            object.__setattr__(strategy, "_division", self._divided(job))
        if self.shard is not None:
            job.build_held(partial(strategy._check_enough_weights, job, self.plan(job, nodes).dp))
        return strategy

    def _divided(self, job: Job) -> Division:
        """How the grid divides the model. ValueError if it cannot."""
        return division_of(job.build_held(lambda model: ()), job.first_samples(1).shape[1:], self._grid)

    def _complete(self, job: Job) -> Self:
        """With the dropouts and batch norms of sharded features in a layout that was given."""
        if self.tp == 1 or self.layout is None:
            return self
        return replace(self, layout={**self.layout, **self._sharded_layers(job)})

    def _sharded_layers(self, job: Job) -> Layout:
        """The sharded dropouts and batch norms that the layout lacks. ValueError if it does not fit the model."""
        whole = deepcopy(job.build_model())  # a copy: it is changed in place
        divided = self._split(job, deepcopy(whole), RankAndSize(0, self.tp))
        return {} if self.layout is None else sharded_layers(whole, divided, job.first_samples(1))

    def _split(self, job: Job, model: Module, comm: Any) -> Module:
        layout = layout_of(model, self.sequence, self.sample_slices) if self.layout is None else self.layout
        split_layers(model, comm, layout)
        if job.loss is not classification_loss:  # it reads whole logits
            for head in _heads(model):
                head.gather = "always"
        return model

    def _nothing_of_the_split(self, job: Job, division: Division | None, model: Module) -> tuple[()]:
        self._split(job, model, RankAndSize(0, self.tp))
        self._work_on_tiles(model, RankAndSize(0, self._tiles), division)
        check_norms(job.build_optimizer(model), {parameter: name for name, parameter in model.named_parameters()})
        return ()

    def _work_on_tiles(self, model: Module, comm: Any, division: Division | None) -> None:
        if division is not None:
            divide(model, Tile(comm, self._grid), division, SHARDED_ON_TILES)

    def divided(self, job: Job, mesh: Mesh[Communicator], model: Module) -> Module:
        if self.tp > 1:
            self._split(job, model, mesh["tp"])
        self._work_on_tiles(model, mesh["spatial"], self._division)
        return model

    def partition(self, job: Job, mesh: Mesh[Communicator], model: Module) -> Sequence[Stage | ModelTensor]:
        elsewhere = divide_experts(model, mesh["ep"]) if self.ep > 1 else set()
        own = super().partition(job, mesh, model)
        if self.shard == 3:
            for spec in self.shared_groups(model, mesh.coordinates["pp"]):
                cut(spec.parameters, mesh["dp"])
        if self.ep > 1:
            mine = [unit for units in self._own_stages(model, mesh.coordinates["pp"]).values() for unit in units]
            return [held for unit in mine for held in (*unit.parameters(), *unit.buffers()) if held not in elsewhere]
        return own

    def memory_plan(self, job: Job, mesh: Mesh[Communicator]) -> MemoryPlan:
        if self.ep > 1:
            raise MemoryUnknown("how many tokens meet in the experts of a rank is not known")
        plan = super().memory_plan(job, mesh)
        groups = [self.shared_groups(plan.model, stage) for stage in range(self.pp)]
        return replace(plan, shard=self.shard or 0, groups=groups)

    def samples(self, dataset: Dataset, mesh: Mesh[Communicator] | None) -> Dataset:
        if self._tiles == 1 or mesh is None:
            return dataset
        return tiles_of(dataset, Tile(mesh["spatial"], self._grid))

    # Sharing out among the replicas

    def partition_of(self, model: Module, mesh: Mesh[Communicator] | None) -> Partition:
        if self.shard is None or mesh is None:
            return super().partition_of(model, mesh)
        stage = mesh.coordinates["pp"]
        units = self._units(model, stage) if self.shard == 3 else None
        return Shares(model, mesh, self.shared_groups(model, stage), units, self.overlaps(mesh["dp"]))

    def shared_groups(self, model: Module, stage: int) -> list[GroupSpec]:
        """What the replicas of a stage of the pipeline divide among them, the last layer's first."""
        tied = self._tied(model)
        if self.shard == 3:
            units = self._units(model, stage)
            return groups_by_unit(units, parameters_of(*units), tied)
        buckets: list[list[Parameter]] = []
        for parameters in completed_with(self._own_stages(model, stage)).values() if self.shard else ():
            buckets += fill([p for p in parameters if p.requires_grad], self.bucket_mb * 1e6, tied)
        return [GroupSpec(bucket) for bucket in buckets]

    def _own_stages(self, model: Module, stage: int) -> dict[int, list[Stage]]:
        """The model's stages in each chunk of a stage of the pipeline."""
        chunks = self.chunks(model)
        return {chunk: chunks[chunk] for chunk in self.made_schedule().chunks_of(stage)}

    def _units(self, model: Module, stage: int) -> list[Unit]:
        starts, own = [0, *self.cuts], self._own_stages(model, stage)
        return [
            Unit(stages[a:b], starts[chunk] + a, again, chunk)
            for chunk, stages in own.items()
            for a, b, again in self.segments(chunk, stages)
        ]

    def starts_of_segments(self, stages: Sequence[Stage]) -> Sequence[int]:
        units_only = self.shard == 3  # whose weights are there while backward computes them again
        return [unit.first for unit in units_of(stages)] if units_only else super().starts_of_segments(stages)

    def _tied(self, model: Module) -> set[Parameter]:
        """The parameters that several stages of the pipeline hold: in all of them, a rank must own the same range."""
        places: dict[Parameter, set[int]] = {}
        for chunk, stages in enumerate(self.chunks(model)):
            for parameter in (p for stage in stages for p in stage.parameters()):
                places.setdefault(parameter, set()).add(self.made_schedule().place(chunk))
        return {parameter for parameter, stages in places.items() if len(stages) > 1}

    def computing(self, session: Session, units: dict[int, list[Stage]]) -> Computing:
        if self.ep > 1:
            return ExpertChunks(units, [0, *self.cuts], self.segments)
        by_unit = None if self.shard is None else shares_of(session).units
        return super().computing(session, units) if by_unit is None else by_unit

    def gradients(self, session: Session, units: dict[int, list[Stage]]) -> dict[int, GradientBuckets]:
        if self.ep > 1:
            return self._gradients_with_experts(session, units)
        made = super().gradients(session, units)
        if self.shard is not None:
            shares = shares_of(session)
            shares.attach(session.optimizer)
            if shares.units is not None:
                shares.units.completed |= {chunk: cast(ScatteredGradients, g).completed for chunk, g in made.items()}
        return made

    def _gradients_with_experts(self, session: Session, units: dict[int, list[Stage]]) -> dict[int, GradientBuckets]:
        of_experts = parameters_of_experts(session.model)
        settings = session.mesh, self.bucket_mb, self.algorithm, self.overlaps(session.comm)
        return {
            chunk: ExpertGradients(parameters, of_experts, *settings)
            for chunk, parameters in completed_with(units).items()
        }

    @property
    def summed_along(self) -> tuple[str, ...]:
        """Ranges of `shard`, and the bits of "ordered", are sums over the replicas, which `update` adds up."""
        over_tiles = self._division is not None and self.shard is None and self.algorithm != "ordered"
        return ("dp", "spatial") if over_tiles else ("dp",)

    def buckets(self, session: Session, parameters: list[Parameter], comm: Communicator) -> GradientBuckets:
        if self.shard is not None:
            mine = {parameter for parameter in parameters if parameter.requires_grad}
            groups = [group for group in shares_of(session).groups if group.parameters[0] in mine]
            return ScatteredGradients(groups, comm, self.algorithm, self.overlaps(comm), self.shard)
        if self._division is None or "spatial" not in self.summed_along:
            return super().buckets(session, parameters, comm)
        tiled, replicas = set(tiled_parameters(session.model, self._division)), session.mesh["dp"].split(0)
        assert replicas is not None
        head = [p for p in parameters if p not in tiled] if replicas.size > 1 else []
        own, overlap = [p for p in parameters if p in tiled], self.overlaps(comm)
        return GradientBuckets(own, comm, self.bucket_mb, self.algorithm, overlap, (head, replicas))

    def loss(self, job: Job, model: Module, mesh: Mesh[Communicator]) -> Loss:
        if self.tp > 1 and any(head.gather == "evaluation" for head in _heads(model)):
            return partial(vocabulary_cross_entropy, comm=mesh["tp"])
        return job.loss

    def complete_gradients(self, session: Session, summed_along: Sequence[str]) -> None:
        """Also sum, with slices, the gradients of unsharded parameters; with `spatial`, of those that work on tiles."""
        if (self.sequence or self.sample_slices) and self.tp > 1:
            own = [p for p in session.partition.trained if p.grad is not None]
            whole = [p for p in own if (p.shard.of if isinstance(p.shard, FlatShard) else p.shard) is None]
            self._sum_gradients(whole, session.mesh["tp"])
        if self._division is not None and "spatial" not in summed_along:
            slices, tiled = session.partition.slices, tiled_parameters(session.model, self._division)
            own = [p if slices is None else slices[p] for p in tiled]
            self._sum_gradients([p for p in own if p.grad is not None], session.mesh["spatial"])

    def _sum_gradients(self, parameters: list[Parameter], comm: Communicator) -> None:
        if parameters:
            set_gradient(parameters, comm.all_reduce(gradient(parameters), algorithm=self.algorithm))


def _heads(model: Module) -> list[ColumnLinear]:
    """The layers whose outputs only evaluation needs whole."""
    return [each for each in model.modules() if isinstance(each, ColumnLinear) and each.gather != "never"]
