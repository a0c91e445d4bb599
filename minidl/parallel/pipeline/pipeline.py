"""Pipeline: the layers of a model split over nodes, which compute a minibatch in micro-batches, by a schedule."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any, ClassVar, Literal, Self

from minidl.arguments import flag, one_of, real_number
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.nn import Module, Parameter, Stage, building
from minidl.nn.checkpointing import bypasses_checkpointing, check_attention, checkpointing
from minidl.nn.normalization import BatchNorm
from minidl.nn.parameter import ModelTensor
from minidl.nn.segments import Segment
from minidl.nn.stages import shared_modules
from minidl.parallel.gradients.buckets import GradientBuckets
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import Loss
from minidl.parallel.memory_plan import MemoryPlan, MemoryUnknown
from minidl.parallel.pipeline.chunks import Chunks, Computing
from minidl.parallel.pipeline.costs import UNITS, costs_of_units
from minidl.parallel.pipeline.cuts import balanced_cuts, check_cuts, check_enough
from minidl.parallel.pipeline.schedule import Schedule
from minidl.parallel.pipeline.schedules import SCHEDULES, schedule
from minidl.parallel.pipeline.schedules.one_f_one_b import PipeDream
from minidl.parallel.pipeline.stage_execution import StageExecution
from minidl.parallel.pipeline.validation import validate
from minidl.parallel.pipeline.weight_versions import WeightVersions, versions_at_entry
from minidl.parallel.plan import ParallelPlan
from minidl.parallel.run.minibatches import micro_batches
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy
from minidl.tensor import Tensor


@dataclass(frozen=True)
class Pipeline(Strategy):
    """Each replica of the model is split over `stages` nodes by its layers; micro-batches follow each other through.

        for each minibatch, on every stage:
            for each action of the schedule:
                F: receive the input, compute the output, send it to the next stage
                B: receive the gradient of the output, compute those of the weights and of the input, send this one back
                U: sum the gradients over the replicas, update the weights

    Parameters
        stages            nodes of a replica
        micro_batches     slices of a replica's share of a minibatch; default: four for each stage, so that stages are
                          idle for at most a fifth of the time; one if there is one stage, as for Serial
        schedule          a name of `pipeline.SCHEDULES`, such as "gpipe" or "zb-h1", or a `pipeline.Schedule`
        replicas          replicas of the pipeline, which share each minibatch; default: as many as there are nodes for
        chunks_per_stage  chunks of the model on each node; default: that of the schedule
        cuts              "flops"    so that the chunk with most flops has as few as possible
                          "seconds"  so that the slowest chunk is as fast as possible: forward and backward of a
                                     micro-batch, measured once on the machine that calls `train`
                          or before which of `model.stages()` the model is cut, rising numbers; the first unit is 0
        weight_versions   with "pipedream", what a stage computes with: "stashing", forward and backward of a minibatch
                          with the weights of its forward; "vertical_sync", with those that stage 0 had at its forward;
                          "latest", backward with weights that others have updated since, and so no gradient
        recompute         "full" or True  keep only the inputs of the units of `model.stages()`, such as blocks;
                                          backward recomputes one unit at a time, as `nn.checkpointing(model, every=1)`
                                          does, for a forward pass more. The last unit keeps its activations, with the
                                          loss, where its backward follows at once, as in 1F1B
                          "selective"     recompute only the core of each attention, as `nn.checkpointing` does
        algorithm         all-reduce of the gradients over replicas, as in `comm.all_reduce`
        bucket_mb         size of a bucket of gradients in megabytes (1e6 bytes), as in `Synchronous`
        overlap           whether replicas add up the gradients of a chunk during its last backward; default: where
                          there is a network to hide, as in `Synchronous`

    Equal to `Serial(shards=replicas, micro_batches=micro_batches)` up to rounding, dropout and batch norm included,
    but for "pipedream", which updates at the end of each backward. recompute changes no bit of a run, except where
    units of a chunk share a parameter that one of them uses more than once: terms of its gradient are then added in
    another order. What a model's own code draws, as by `F.dropout`, is equal too if its forward is
    `nn.run_stages(self.stages(), x)` or Sequential's; with another forward each stage draws numbers of its own.

    References
        Huang et al., GPipe (arXiv:1811.06965), section 2.3, and Korthikanti et al. (arXiv:2205.05198), section 5, for
        recompute; Narayanan et al. (arXiv:2104.04473), section 2.2.
    """

    stages: int = 2
    micro_batches: int | None = None
    schedule: str | Schedule = "1f1b"
    replicas: int | None = None
    chunks_per_stage: int | None = None
    cuts: str | Sequence[int] = "flops"
    weight_versions: str = "stashing"
    recompute: bool | Literal["full", "selective"] = False
    algorithm: AllReduceAlgorithm = "auto"
    bucket_mb: float = 1.0
    overlap: bool | None = None
    scales_loss: ClassVar[bool] = True
    is_resumable: ClassVar[bool] = True
    resumes_from: ClassVar[str] = "checkpoint"
    setting_of_stages: ClassVar[str] = "stages"

    def __post_init__(self) -> None:
        self.check_whole(stages=1)
        optional = ("micro_batches", "replicas", "chunks_per_stage")
        self.check_whole(**{name: 1 for name in optional if getattr(self, name) is not None})
        if not isinstance(self.schedule, Schedule):
            one_of("Pipeline: schedule", self.schedule, SCHEDULES, hint="or give the schedule of a CSV file")
        one_of("Pipeline: weight_versions", self.weight_versions, ("stashing", "vertical_sync", "latest"))
        if isinstance(self.cuts, str) or not isinstance(self.cuts, Iterable):
            one_of("Pipeline: cuts", self.cuts, UNITS, hint="or give the cuts, such as (2, 4) for three chunks")
        real_number("Pipeline: bucket_mb", self.bucket_mb, above=0)
        self.check_algorithm()
        if self.overlap is not None:
            flag("Pipeline: overlap", self.overlap, hint="None overlaps where there is a network")
        one_of("Pipeline: recompute", self.recompute, (False, True, "full", "selective"))
        if self._recomputes and self.weight_versions == "latest":
            raise ValueError(
                f"Pipeline: recompute={self.recompute!r} needs the weights of the forward pass, which "
                "weight_versions='latest' does not keep: choose 'stashing' or 'vertical_sync', or leave out recompute"
            )
        if self.weight_versions != "stashing" and not self.made_schedule().is_asynchronous:
            raise ValueError(
                f"Pipeline: weight_versions={self.weight_versions!r} is for schedule='pipedream'; with "
                f"{self.made_schedule().name} a stage has one version"
            )

    def made_schedule(self) -> Schedule:
        """The schedule that the stages follow."""
        if isinstance(self.schedule, str):
            needs_none = self.stages == 1 or SCHEDULES[self.schedule].is_asynchronous
            count = self.micro_batches or (1 if needs_none else 4 * self.stages)
            return schedule(self.schedule, self.stages, count, self.chunks_per_stage)
        for name in ("stages", "micro_batches", "chunks_per_stage"):
            own, given = getattr(self, name), getattr(self.schedule, name)
            if own not in (None, given):
                advice = f"give {self.setting_of_stages}={given}" if name == "stages" else f"leave out {name}"
                raise ValueError(f"{type(self).__name__}: the schedule has {name}={given}, not {own}: {advice}")
        return self.schedule

    def plan(self, job: Job, nodes: int) -> ParallelPlan:
        replicas = self.replicas or max(nodes // self.stages, 1)
        if replicas * self.stages != nodes:
            raise ValueError(
                f"{replicas} replica{'s' * (replicas > 1)} of {self.stages} stages need{'s' * (replicas == 1)} "
                f"{replicas * self.stages} nodes, got {nodes}"
            )
        made = self.made_schedule()
        return ParallelPlan(
            dp=replicas,
            pp=self.stages,
            micro_batches=made.micro_batches,
            schedule=made.name,
            output_stage=made.place(made.chunks - 1),
        )

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        validate(self.made_schedule())
        model, chunks = job.build_held(lambda model: ()), self.made_schedule().chunks
        if bypasses_checkpointing(model):
            raise ValueError(
                f"{type(self).__name__}: the model's nn.checkpointing would have no effect, since its stages are "
                "called one by one: leave it out, and give recompute=True"
            )
        if self.recompute == "selective":
            check_attention(model)
        units = len(model.stages())
        check_enough(units, chunks)
        if not isinstance(self.cuts, str):
            check_cuts("Pipeline", self.cuts, units, chunks)
        if self.made_schedule().is_asynchronous:
            self._check_asynchronous(job, model)
        share, count = job.batch_size // self.plan(job, nodes).shares, self.made_schedule().micro_batches
        if count > share:
            raise ValueError(
                f"a replica's share of a minibatch, {share} samples, cannot be cut into {count} micro-batches: use at "
                f"most {share}, or a larger batch_size"
            )

    def prepared(self, job: Job, nodes: int) -> Self:
        """With the cuts that divide the cost of a micro-batch best, unless cuts were given."""
        if not isinstance(self.cuts, str):
            self._check_statistics(job.build_held(lambda model: ()))
            return self
        made, train = self.made_schedule(), job.build_data().train
        if made.chunks == 1:
            return replace(self, cuts=())
        samples = max(min(job.batch_size // self.plan(job, nodes).shares, len(train)) // made.micro_batches, 1)
        costs = costs_of_units(job.each_stage(), job.first_samples(samples), self.cuts)
        strategy = replace(self, cuts=balanced_cuts(costs, made.chunks))
        strategy._check_statistics(job.build_held(lambda model: ()))
        return strategy

    def _check_statistics(self, model: Module) -> None:
        """Raise ValueError for a batch norm of two chunks, whose running statistics would be two that differ."""
        shared = shared_modules(self.chunks(model))
        for name, layer in model.named_modules():
            if layer in shared and isinstance(layer, BatchNorm) and layer.track_running_stats:
                raise ValueError(
                    f"{type(self).__name__}: stages of two chunks use the {type(layer).__name__} {name}, and each "
                    "would count its own minibatches in the running statistics: give each stage a layer of its own, or "
                    "cuts that keep these stages in one chunk"
                )

    def _check_asynchronous(self, job: Job, model: Module) -> None:
        if not isinstance(self.made_schedule(), PipeDream):
            raise ValueError(
                "Pipeline: a schedule that was written down, with an update for each micro-batch, can be drawn and "
                "simulated only: use schedule='pipedream'"
            )
        if self.made_schedule().micro_batches > 1:
            raise ValueError("Pipeline: with pipedream every minibatch goes through whole: leave out micro_batches")
        if ties := model.ties():
            raise ValueError(
                f"Pipeline: {' and '.join(ties[0])} are one tensor, but with pipedream each stage updates at a time of "
                "its own: choose another schedule, such as 1f1b"
            )
        if job.precision == "float16":
            raise ValueError(
                'Pipeline: precision="float16" needs a loss scale for all stages, but with pipedream each updates at a '
                'time of its own: use precision="bfloat16", or another schedule, such as 1f1b'
            )
        if job.clip_norm is not None:
            raise ValueError(
                "Pipeline: clip_norm needs the gradients of all stages at one time, but with pipedream each updates at "
                "a time of its own: choose another schedule, such as 1f1b"
            )

    def chunks(self, model: Module) -> list[list[Stage]]:
        """The stages of the model in each chunk. Raises ValueError if the cuts are not known; see `prepared`."""
        units = model.stages()
        if isinstance(self.cuts, str):
            raise ValueError(
                f"Pipeline: cuts={self.cuts!r} are chosen for a job: call prepared(job, nodes), as `train` does"
            )
        cuts = list(self.cuts)
        return [units[start:end] for start, end in zip([0, *cuts], [*cuts, len(units)], strict=True)]

    @property
    def _recomputes(self) -> bool:
        return self.recompute in (True, "full")  # "selective" changes the model

    def segments(self, chunk: int, stages: Sequence[Stage]) -> list[Segment]:
        """What backward of a chunk recomputes at a time, or keeps."""
        made, count = self.made_schedule(), len(stages)
        kept = count if chunk == made.chunks - 1 and made.turns_at_once else None
        ends = [*self.starts_of_segments(stages), count]
        return [Segment(a, b, self._recomputes and b != kept) for a, b in pairwise(ends)]

    def starts_of_segments(self, stages: Sequence[Stage]) -> Sequence[int]:
        """Where each segment of a chunk's stages begins."""
        return range(len(stages))

    def build(self, job: Job, mesh: Mesh[Communicator]) -> Module:
        with building(partial(self.partition, job, mesh)):
            model = job.build_model()
        return checkpointing(model, "selective") if self.recompute == "selective" else model

    def partition(self, job: Job, mesh: Mesh[Communicator], model: Module) -> Sequence[Stage | ModelTensor]:
        """The stages of the model that this rank holds, after `divided`; or tensors of them."""
        chunks = self.chunks(self.divided(job, mesh, model))
        return [unit for chunk in self.made_schedule().chunks_of(mesh.coordinates["pp"]) for unit in chunks[chunk]]

    def divided(self, job: Job, mesh: Mesh[Communicator], model: Module) -> Module:
        """The model; a strategy that divides layers replaces them here."""
        return model

    def memory_plan(self, job: Job, mesh: Mesh[Communicator]) -> MemoryPlan:
        made = self.made_schedule()
        if made.is_asynchronous:
            raise MemoryUnknown(
                "how many versions of the weights a stage of an asynchronous pipeline keeps is not known",
                "choose another schedule, such as 1f1b, or measure a run with parallel.memory.live",
            )
        model = self.divided(job, mesh, job.build_model())
        if self.recompute == "selective":
            checkpointing(model, "selective")
        chunks = self.chunks(model)
        return MemoryPlan(
            model,
            schedule=made,
            chunks=chunks,
            loss=self.loss(job, model, mesh),
            segments=[self.segments(chunk, stages) for chunk, stages in enumerate(chunks)],
            overlaps=self.overlap is not False,
        )

    @property
    def saves_within_epoch(self) -> bool:  # PipeDream has minibatches in flight until the epoch ends
        return not self.made_schedule().is_asynchronous

    def loss(self, job: Job, model: Module, mesh: Mesh[Communicator]) -> Loss:
        """The mean loss of a micro-batch, of the last chunk's output."""
        return job.loss

    def complete_gradients(self, session: Session, summed_along: Sequence[str]) -> None:
        """Sum gradients of which several ranks of the replica have terms; here there are none but tied ones.

        summed_along: axes of the mesh along which backward has summed them already.
        """

    def update(self, session: Session) -> None:
        """Update the weights of this rank's stages; the gradients are summed over the replicas."""
        self.complete_gradients(session, self.summed_along)
        session.update()

    def run(self, session: Session) -> None:
        made = self.made_schedule()
        units = self._units_of_rank(session, made)
        gradients = self.gradients(session, units)
        if isinstance(made, PipeDream):
            self._run_asynchronously(session, made, units, gradients)
            return
        compute = self._minibatch(session, made, units, gradients)
        for batch in session.batches():
            session.zero_grad()
            compute(batch)

    def backpropagation(self, session: Session) -> Callable[[Batch], None]:
        made = self.made_schedule()
        units = self._units_of_rank(session, made)
        return self._minibatch(session, made, units, {}, partial(self.complete_gradients, session, ()))

    def check_as_replica(self, name: str) -> None:
        if self.replicas is not None:
            given = "dp" if self.setting_of_stages == "pp" else "replicas"
            raise ValueError(
                f"{name} is of one worker, and there are as many workers as the nodes suffice for: leave out "
                f"{given}={self.replicas}"
            )
        if self.made_schedule().is_asynchronous:
            raise ValueError(
                f"{name}: the servers update all weights with a gradient at one moment, but with schedule='pipedream' "
                "each stage updates its own at another: choose another schedule, such as 1f1b"
            )

    def _minibatch(
        self,
        session: Session,
        made: Schedule,
        units: dict[int, list[Stage]],
        gradients: dict[int, GradientBuckets],
        update: Callable[[], None] | None = None,
    ) -> Callable[[Batch], None]:
        """The function that takes a minibatch through this rank's stages and updates, or does what `update` does."""
        execution = self._execution(session, made, units, gradients, update=update)
        actions = list(made.actions(session.mesh.coordinates["pp"]))

        def compute(batch: Batch) -> None:
            execution.run(dict(enumerate(micro_batches(batch, made.micro_batches))), actions)
            execution.finish()

        return compute

    def _units_of_rank(self, session: Session, made: Schedule) -> dict[int, list[Stage]]:
        chunks = self.chunks(session.model)
        return {chunk: chunks[chunk] for chunk in made.chunks_of(session.mesh.coordinates["pp"])}

    def _run_asynchronously(
        self, session: Session, made: PipeDream, units: dict[int, list[Stage]], gradients: dict[int, GradientBuckets]
    ) -> None:
        """An epoch is one schedule, whose micro-batches are the minibatches; at its end no minibatch is in flight.

        Recorded for each epoch: the largest number of weight versions that the stage kept, and their bytes.
        """
        stage, in_flight = session.mesh.coordinates["pp"], dict[int, Batch]()
        for batch in session.batches():
            if session.step == 0:
                count = ceil(len(session.train) / session.job.batch_size_of(session.epoch))
                epoch = replace(made, micro_batches=count)
                entered = versions_at_entry(epoch) if self.weight_versions == "vertical_sync" else None
                versions = WeightVersions(session.model, self.weight_versions != "latest", entered)
                execution = self._execution(session, epoch, units, gradients, versions)
                actions = deque(epoch.actions(stage))
                session.zero_grad()
            in_flight[session.step] = batch
            mine = [actions.popleft()]  # the forward of this minibatch, and all before the next one
            while actions and (actions[0].kind != "F"):
                mine.append(actions.popleft())
            execution.run(in_flight, mine)
            for done in (action for action in mine if action.kind == "U"):
                del in_flight[done.micro_batch]
            if not actions:
                execution.finish()
                session.record("weight versions", versions.most)
                session.record("bytes of weight versions", versions.most_bytes)

    def _execution(
        self,
        session: Session,
        made: Schedule,
        units: dict[int, list[Stage]],
        gradients: dict[int, GradientBuckets],
        versions: WeightVersions | None = None,
        update: Callable[[], None] | None = None,
    ) -> StageExecution:
        loss, chunks = self.loss(session.job, session.model, session.mesh), self.computing(session, units)
        step = update or partial(self.update, session)
        return StageExecution(session, made, chunks, gradients, loss, step, versions, self._recomputes)

    def computing(self, session: Session, units: dict[int, list[Stage]]) -> Computing:
        """What computes the chunks of this rank, of which each has these stages."""
        return Chunks(units, [0, *self.cuts], self.segments)

    def gradients(self, session: Session, units: dict[int, list[Stage]]) -> dict[int, GradientBuckets]:
        """The sums of each chunk by itself: its last backward may overlap with their all-reduce.

        A parameter of several chunks of this rank is summed with the last of them.
        """
        ranks = session.mesh[self.summed_along]
        if ranks.size == 1:
            return {}
        buckets = {}
        for chunk, parameters in completed_with(units).items():
            comm = ranks.split(0)  # its own messages, for chunks may be summed at the same time
            assert comm is not None
            buckets[chunk] = self.buckets(session, parameters, comm)
        return buckets

    @property
    def summed_along(self) -> tuple[str, ...]:
        """The axes along which gradients are summed during backward."""
        return ("dp",)

    def buckets(self, session: Session, parameters: list[Parameter], comm: Communicator) -> GradientBuckets:
        """What sums the gradients of these parameters along these axes."""
        return GradientBuckets(parameters, comm, self.bucket_mb, self.algorithm, self.overlaps(comm))

    def overlaps(self, comm: Communicator) -> bool:
        """Whether messages between replicas travel while a stage computes."""
        return comm.network is not None if self.overlap is None else self.overlap

    def predict(self, session: Session, x: Array) -> Tensor | None:
        made, pipeline = self.made_schedule(), session.mesh["pp"]
        mine = self._units_of_rank(session, made)
        computing = self.computing(session, mine)
        output: Any = x if len(x) else None  # without samples nothing is sent
        with computing.visiting([(chunk, False) for chunk in mine]):
            for chunk in range(made.chunks):
                here, there = made.place(chunk), made.place(max(chunk - 1, 0))
                if pipeline.rank == there != here and len(x):
                    tensors = output if isinstance(output, tuple) else (output,)
                    pipeline.send((isinstance(output, tuple), [tensor.numpy() for tensor in tensors]), here)
                if pipeline.rank == here:
                    if here != there and len(x):
                        is_tuple, arrays = pipeline.recv(there)
                        output = tuple(map(Tensor, arrays)) if is_tuple else Tensor(arrays[0])
                    output = computing.forward(chunk, output)
        return output if pipeline.rank == made.place(made.chunks - 1) else None


def completed_with(units: Mapping[int, Sequence[Stage]]) -> dict[int, list[Parameter]]:
    """For each chunk of a rank, the parameters whose gradients its backward completes, as the last that uses them."""
    chunk_of: dict[Parameter, int] = {}
    for chunk, stages in units.items():
        for stage in stages:
            for parameter in stage.parameters():
                chunk_of.setdefault(parameter, chunk)
    return {chunk: [p for p, last in chunk_of.items() if last == chunk] for chunk in units}
