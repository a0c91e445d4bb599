"""ParallelPlan: how the ranks of a run divide replicas, stages and shards of the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from minidl.arguments import whole_number
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh

AXES = ("dp", "ep", "pp", "spatial", "tp")
"""The axes of a plan's mesh in their default order, outermost first: ranks along "tp" are neighbours."""

READERS = ("dp", "ep")
"""The axes along which ranks read different samples."""


@dataclass(frozen=True)
class ParallelPlan:
    """How the ranks of a run share the work: `dp` replicas of the model, each over `ep * pp * spatial * tp` ranks.

    Parameters
        dp             replicas: each reads its own share of every minibatch (data parallelism)
        ep             ranks that divide the experts of every mixture among them (expert parallelism). They divide the
                       samples too: each has all other weights and reads its own share of every minibatch
        pp             stages, one after the other, into which the layers of a model are split (pipeline parallelism)
        tp             shards into which a layer's parameters are cut (tensor parallelism)
        spatial        tiles into which the pixels of an image are divided (spatial parallelism)
        micro_batches  slices of a replica's share of a minibatch, which follow each other through the stages
        schedule       name of the order in which a pipeline computes them; None: the strategy has only one
        output_stage   the stage that has the model's outputs and the loss; -1: the last
        axes           the axes in the order of the mesh, outermost first: ranks along the last one are neighbours
        shard          what the replicas share out instead of keeping copies (ZeRO): 1, the optimizer's state; 2, and
                       the gradients; 3, and the weights; None: nothing

    `micro_batches`, `schedule` and `shard` are for the strategy that made the plan; nothing else reads them. A plan
    has no servers: their ranks come after its own.

    Raises
        TypeError, ValueError for a number that is not whole or below 1, and for other axes

    >>> plan = ParallelPlan(dp=2, pp=3)
    >>> plan.world, plan.is_split
    (6, True)
    >>> plan.coordinates(4)
    {'dp': 1, 'ep': 0, 'pp': 1, 'spatial': 0, 'tp': 0}
    """

    dp: int = 1
    pp: int = 1
    tp: int = 1
    spatial: int = 1
    micro_batches: int = 1
    schedule: str | None = None
    output_stage: int = -1
    axes: tuple[str, ...] = AXES
    shard: int | None = None
    ep: int = 1

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name not in ("schedule", "output_stage", "shard", "axes"):
                number = whole_number(f"ParallelPlan: {each.name}", getattr(self, each.name), at_least=1)
                object.__setattr__(self, each.name, number)
        if self.shard is not None:
            whole_number("ParallelPlan: shard", self.shard, at_least=1, at_most=3)
        stage = whole_number("ParallelPlan: output_stage", self.output_stage, at_least=-1, at_most=self.pp - 1)
        object.__setattr__(self, "output_stage", stage % self.pp)
        object.__setattr__(self, "axes", in_any_order("ParallelPlan: axes", self.axes, AXES))

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis of `axes`."""
        return tuple(getattr(self, axis) for axis in self.axes)

    @property
    def ranks_of_replica(self) -> int:
        """Number of ranks that together hold one replica of the model."""
        return self.ep * self.pp * self.spatial * self.tp

    @property
    def shares(self) -> int:
        """Number of shares into which every minibatch is divided, each read by one place along "dp" and "ep"."""
        return self.dp * self.ep

    @property
    def world(self) -> int:
        """Number of ranks of all replicas: the `nodes` of `parallel.train`."""
        return self.dp * self.ranks_of_replica

    @property
    def is_split(self) -> bool:
        """Whether a replica has several ranks, so that no rank holds the whole model."""
        return self.ranks_of_replica > 1

    def coordinates(self, rank: int) -> dict[str, int]:
        """The position of a rank of the plan along each axis."""
        position: dict[str, int] = {}
        for axis in reversed(self.axes):
            rank, position[axis] = divmod(rank, getattr(self, axis))
        return {axis: position[axis] for axis in self.axes}

    def mesh(self, comm: Communicator) -> Mesh[Communicator]:
        """The ranks of the plan as a grid with the axes `axes`; the plan's ranks call it together.

        comm: communicator of the run, whose first `world` ranks are those of the plan.
        """
        nodes = comm if comm.size == self.world else comm.first_ranks(self.world)
        return nodes.mesh(self.shape, self.axes)


def in_any_order(name: str, given: Iterable[str], axes: tuple[str, ...]) -> tuple[str, ...]:
    """The axes in the given order. Raises TypeError or ValueError unless each is named once.

    >>> in_any_order("axes", ["tp", "dp"], ("dp", "tp"))
    ('tp', 'dp')
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a tuple of names, outermost first, such as {axes}, got {given!r}")
    if sorted(map(str, order := tuple(given))) != sorted(axes):
        raise ValueError(f"{name} must name {', '.join(axes)}, each once and in any order, got {order}")
    return order
