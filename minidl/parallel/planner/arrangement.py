"""Arrangement: one way to divide the training of a model over a machine, which the planner judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from minidl.arguments import flag, one_of, whole_number
from minidl.parallel.pipeline.schedule import Schedule
from minidl.parallel.pipeline.schedules import SCHEDULES, schedule
from minidl.parallel.plan import in_any_order
from minidl.parallel.tensor.hybrid import AXES, Hybrid

Recompute = Literal["none", "selective", "full"]
RECOMPUTE: tuple[Recompute, ...] = get_args(Recompute)


@dataclass(frozen=True)
class Arrangement:
    """How `dp * pp * tp` accelerators train a model together.

    Parameters
        batch         sequences, or samples, of a minibatch
        dp, pp, tp    replicas, stages of a pipeline, shards of each layer
        ep            replicas that share out the experts of each block; a divisor of dp. Hybrid calls dp / ep its dp
        micro_batch   samples that a replica computes at a time
        schedule      of the pipeline: a name of `pipeline.SCHEDULES`
        chunks        of the model on each stage of an interleaved schedule
        recompute     "full": a block keeps its input alone, and backward computes it again; "selective": backward
                      computes the core of attention again; "none"
        sequence      whether slices of the positions, one for each shard, go through norms and dropout
        shard         what replicas share out (ZeRO): 1 the optimizer's state, 2 gradients too, 3 weights too; 0 nothing
        overlap       whether gradients are summed, and with shard=3 weights gathered, while accelerators compute
        axes          order of the axes, outermost first: ranks along the last one are neighbours

    Raises
        TypeError, ValueError for numbers that are not whole, and for what does not divide

    >>> Arrangement(batch=64, dp=2, pp=4, tp=8).micro_batches
    32
    >>> str(Arrangement(batch=64, dp=2, pp=4, tp=8, recompute="full"))
    'dp=2,pp=4,tp=8,micro_batches=32,recompute=full'
    """

    batch: int
    dp: int = 1
    pp: int = 1
    tp: int = 1
    ep: int = 1
    micro_batch: int = 1
    schedule: str = "1f1b"
    chunks: int = 1
    recompute: Recompute = "none"
    sequence: bool = False
    shard: int = 0
    overlap: bool = True
    axes: tuple[str, ...] = AXES

    def __post_init__(self) -> None:
        for name in ("batch", "dp", "pp", "tp", "ep", "micro_batch", "chunks"):
            whole_number(f"Arrangement: {name}", getattr(self, name), at_least=1)
        whole_number("Arrangement: shard", self.shard, at_least=0, at_most=3)
        one_of("Arrangement: schedule", self.schedule, SCHEDULES)
        one_of("Arrangement: recompute", self.recompute, RECOMPUTE)
        flag("Arrangement: sequence", self.sequence)
        flag("Arrangement: overlap", self.overlap)
        in_any_order("Arrangement: axes", self.axes, AXES)
        if self.batch % (self.dp * self.micro_batch):
            raise ValueError(
                f"Arrangement: {self.dp} replicas in micro-batches of {self.micro_batch} do not divide a minibatch of "
                f"{self.batch}: choose a multiple of {self.dp * self.micro_batch}"
            )
        if self.recompute != "none" and self.schedule.startswith("zb"):
            raise ValueError(
                f"Arrangement: {self.schedule} keeps what the gradients of weights need, so nothing is recomputed: "
                'choose recompute="none", or another schedule, such as 1f1b'
            )
        if self.dp % self.ep:
            raise ValueError(f"Arrangement: ep={self.ep} replicas share out experts: no divisor of dp={self.dp}")

    @property
    def micro_batches(self) -> int:
        """Of a replica's share of a minibatch."""
        return self.batch // (self.dp * self.micro_batch)

    @property
    def world(self) -> int:
        """Accelerators."""
        return self.dp * self.pp * self.tp

    @property
    def stride(self) -> dict[str, int]:
        """By axis, the distance of neighbours along it in ranks."""
        strides, stride = {}, 1
        for axis in reversed(self.axes):
            strides[axis] = stride
            stride *= getattr(self, axis)
        return strides

    def made_schedule(self) -> Schedule:
        """The schedule of the pipeline."""
        return schedule(self.schedule, self.pp, self.micro_batches, self.chunks if self.chunks > 1 else None)

    def strategy(self) -> Hybrid:
        """The strategy that trains a model so. ValueError for what Hybrid does not combine, such as ep and tp."""
        return Hybrid(
            dp=self.dp // self.ep, pp=self.pp, tp=self.tp, ep=self.ep,
            micro_batches=self.micro_batches, schedule=self.schedule,
            chunks_per_stage=self.chunks if self.chunks > 1 else None, sequence=self.sequence, axes=self.axes,
            recompute=False if self.recompute == "none" else self.recompute, shard=self.shard or None,
        )  # fmt: skip

    def __str__(self) -> str:
        """As it is typed after --plan; what is at its default is left out."""
        extents = {"dp": self.dp // self.ep, "pp": self.pp, "tp": self.tp, "ep": self.ep}
        said = [f"{axis}={extent}" for axis, extent in extents.items() if extent > 1]
        said = said or ["dp=1"]
        said += [f"micro_batches={self.micro_batches}"] if self.micro_batches > 1 or self.pp > 1 else []
        if self.pp > 1 and self.schedule != "1f1b":
            said.append(f"schedule={self.schedule}")
            said += [f"chunks_per_stage={self.chunks}"] if self.schedule == "interleaved" else []
        said += [f"recompute={self.recompute}"] if self.recompute != "none" else []
        said += ["sequence=True"] if self.sequence else []
        said += [f"shard={self.shard}"] if self.shard else []
        inner = [axis for axis in self.axes if getattr(self, axis) > 1]
        if inner != [axis for axis in AXES if axis in inner]:
            said.append(f"axes={self.axes}".replace(" ", ""))
        return ",".join(said)
