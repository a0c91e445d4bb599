"""Partition: what this rank holds of a replica of the model, and what its ranks must do together.

If the model is not split, the partition is the whole, and nothing here sends a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import hypot
from typing import Any

from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.kernels import Array
from minidl.nn import Module, Parameter
from minidl.nn.clip import clip_grads_with_norm_, get_total_norm
from minidl.nn.parameter import Buffer
from minidl.optim import Optimizer
from minidl.optim.named_state import named_state
from minidl.tensor import Tensor

Slices = dict[Parameter, Parameter]
"""The parameters of a slice of the flattened weights, by the whole parameters whose elements they hold."""

IN_REPLICA = ("pp", "ep", "spatial", "tp")  # the axes of a mesh along which a replica is split


class Partition:
    """The parameters and buffers that this rank holds, each whole or a shard of it.

    Several ranks of a replica may hold the same one:
        tied        stages of a pipeline use it at different places of the model: its gradient is the sum of theirs
        replicated  ranks along "ep", "spatial" or "tp" apply it: each has the whole gradient

    Parameters
        model  the model, of which this rank holds what is `held`
        mesh   of the run's plan; None: this rank has the whole model

    Raises
        ValueError    a shard that is not this rank's; a parameter or buffer that the replica's ranks do not have whole

    Attributes
        names    maps each parameter and buffer of the whole model to its name
        held     the parameters and buffers that this rank holds, by name
        trained  what it updates: its parameters, or its slices of them
        counted  those of them of which no earlier rank of the replica holds the same shard
        slices   where the replicas share the weights out among them, what this one updates of each; else None
    """

    slices: Slices | None = None

    def __init__(self, model: Module, mesh: Mesh[Communicator] | None = None) -> None:
        self._model = model
        named: list[tuple[str, Parameter | Buffer]] = [*model.named_parameters(), *model.named_buffers()]
        self.names: dict[Tensor, str] = {tensor: name for name, tensor in named}
        self.held: dict[str, Parameter | Buffer] = {name: tensor for name, tensor in named if tensor.held}
        self._replica: Any = None  # the communicators of the replica's ranks, if they are several
        self._pipeline: Any = None
        place: tuple[int, ...] = (0,) * len(IN_REPLICA)
        if mesh is not None and (group := mesh[IN_REPLICA]).size > 1:
            self._replica, self._pipeline = group, mesh["pp"]
            place = tuple(mesh.coordinates[axis] for axis in IN_REPLICA)
        if mesh is not None:
            self._check_shards(mesh)
        self._counting = self._replica  # the ranks that together count each weight once
        mine = place, {name: _piece(tensor) for name, tensor in self.held.items()}
        self._rank = 0 if self._replica is None else self._replica.rank
        self._everyone = [mine] if self._replica is None else self._replica.all_gather(mine)
        self._owners = {name: self._owners_of(name) for name in self.names.values()}
        self._check_owners()
        trained = {name: tensor for name, tensor in self.held.items() if isinstance(tensor, Parameter)}
        self.trained = list(trained.values())
        self.counted = [tensor for name, tensor in trained.items() if self._rank in self._owners[name]]
        self._tied = [(tensor, stages) for name, tensor in trained.items() if len(stages := self._stages(name)) > 1]

    @property
    def is_shared_out(self) -> bool:
        """Whether each replica has only a share of the state, so that all of them make a checkpoint together."""
        return self.slices is not None

    @property
    def is_split(self) -> bool:
        """Whether several ranks hold the replica together."""
        return self._replica is not None

    def _owners_of(self, name: str) -> list[int]:
        """The ranks whose shards are the whole tensor, in order; of several with the same shard, the first."""
        first: dict[int, int] = {}
        for rank, (_, pieces) in enumerate(self._everyone):
            if name in pieces:
                first.setdefault(pieces[name], rank)
        return [first[piece] for piece in sorted(first)]

    def _check_shards(self, mesh: Mesh[Communicator]) -> None:
        """Raise ValueError unless every shard is the one of this rank's place on the axis of the mesh that it names."""
        extents = dict(zip(mesh.names, mesh.shape, strict=True))
        for name, tensor in self.held.items():
            shard: Any = getattr(tensor, "shard", None)
            if shard is None:
                continue
            if shard.axis not in IN_REPLICA:
                raise ValueError(
                    f"{name} is {shard}: a replica's ranks are along {', '.join(map(repr, IN_REPLICA))}, "
                    f"not along {shard.axis!r}"
                )
            place = mesh.coordinates[shard.axis], extents[shard.axis]
            if (shard.index, shard.count) != place:
                raise ValueError(f"{name} is {shard}, but this rank is {place[0]} of {place[1]} along {shard.axis!r}")

    def _check_owners(self) -> None:
        """Raise ValueError unless the replica's ranks together have every parameter and buffer."""
        if lacking := [name for name, owners in self._owners.items() if not owners]:
            others = f" and {len(lacking) - 3} others" if len(lacking) > 3 else ""
            raise ValueError(
                f"no rank of a replica holds {', '.join(lacking[:3])}{others}: the strategy's `build` gives every "
                "parameter and buffer to at least one"
            )
        for name, owners in self._owners.items():
            counts = {pieces[name][1] for _, pieces in self._everyone if name in pieces}
            if counts != {len(owners)}:
                raise ValueError(
                    f"the ranks of a replica hold {len(owners)} different shards of {name}, which was cut into "
                    f"{' and into '.join(map(str, sorted(counts)))}"
                )

    def _stages(self, name: str) -> list[int]:
        """The stages of this rank's pipeline that hold the same shard of this parameter as it does."""
        (_, *beside), pieces = self._everyone[self._rank]
        return [
            stage for (stage, *place), theirs in self._everyone if place == beside and theirs.get(name) == pieces[name]
        ]

    def of_first_rank(self, value: int) -> int:
        """The value that the replica's first rank gives; all ranks of the replica call it."""
        return value if self._replica is None else int(self._replica.broadcast(value))

    # Updates

    def update(self, step: Callable[[], None]) -> None:
        """Make one step of the optimizer and of the schedule; it may end later, see `finish_update`."""
        step()

    def finish_update(self) -> None:
        """Return when the last update has been made."""

    # Gradients

    def sum_tied_gradients(self) -> None:
        """Give every tied parameter the sum of its gradients on the stages that hold it, with the same bits there."""
        for parameter, (first, *others) in self._tied:
            pipeline = self._pipeline
            gradient = None if parameter.grad is None else kernels.to_numpy(parameter.grad)
            if pipeline.rank == first:
                for stage in others:
                    gradient = _sum(gradient, pipeline.recv(stage))
                for stage in others:
                    pipeline.send(gradient, stage)
            else:
                pipeline.send(gradient, first)
                gradient = pipeline.recv(first)
            module = kernels.array_module(parameter.data)
            parameter.grad = None if gradient is None else module.asarray(gradient)

    def clip_gradient(self, max_norm: float) -> None:
        """Scale the replica's gradients, in place, to a norm of at most `max_norm`; each weight counts once."""
        norm = get_total_norm([parameter.grad for parameter in self.counted if parameter.grad is not None])
        if self._counting is not None:
            norm = hypot(*self._counting.all_gather(norm))
        clip_grads_with_norm_(self.trained, max_norm, norm)

    def agree(self, mine: bool) -> bool:
        """Whether it is True on all ranks of one replica, or of all replicas that share out their state."""
        return mine if self._counting is None else all(self._counting.all_gather(mine))

    # Whole arrays

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take over what this rank holds of a state of the whole model, as `Module.load_state_dict`."""
        self._model.load_state_dict(state)

    def in_turn(self, parameters: Sequence[Parameter]) -> Iterable[Parameter]:
        """The parameters, each with its weights when it is its turn; all ranks that share them out call it."""
        return parameters

    def examined(self) -> dict[str, Any]:
        """The parameters at which this rank looks when a loss is not finite, by name."""
        return {name: parameter for name, parameter in self._model.named_parameters() if parameter.held}

    def state_dict(self) -> dict[str, Array] | None:
        """The state of the whole model, as `Module.state_dict`: on the replica's first rank, else None."""
        gathered = self._gathered(self._weights)
        if gathered is None:
            return None
        return {name: gathered[self.names[tensor]] for name, tensor in self._model._named_tensors()}

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any] | None:
        """The state and the groups of the optimizer of the whole model, by name: on the first rank, else None."""
        mine = named_state(optimizer, self.names)
        if not self.is_split:
            return mine
        state = self.whole(mine["state"])
        if state is None:
            return None
        outside = {name: values for name, values in mine["state"].items() if name not in self._owners}  # of the loss
        return {"state": state | outside, "param_groups": mine["param_groups"]}

    def _weights(self, name: str) -> Any:
        return self.held[name].numpy().copy()

    def whole(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Gather what the ranks keep of each parameter, one at a time: on the replica's first rank, else None.

        values: by the name of a parameter or buffer that this rank holds, an array, or a dict of arrays and numbers
        such as its optimizer's state. Arrays of shards are joined. All ranks of the replica call it.
        """
        return self._gathered(values.get)

    def _gathered(self, value_of: Callable[[str], Any]) -> dict[str, Any] | None:
        """Gather and join what `value_of` returns for the names that this rank holds; see `whole`."""
        gathered: dict[str, Any] = {}
        for name, owners in self._owners.items():
            if self._rank == 0:
                own_and_others = (self._replica.recv(r) if r else self._with_shard(value_of, name) for r in owners)
                if (value := joined([*own_and_others])) is not None:
                    gathered[name] = value
            elif self._rank in owners:
                self._replica.send(self._with_shard(value_of, name), 0)
        return gathered if self._rank == 0 else None

    def _with_shard(self, value_of: Callable[[str], Any], name: str) -> tuple[Any, Any]:
        return value_of(name), getattr(self.held[name], "shard", None)


def _piece(tensor: Tensor) -> tuple[int, int]:
    """The index of this shard, and the number of shards of its parameter."""
    shard: Any = getattr(tensor, "shard", None)
    return (0, 1) if shard is None else (shard.index, shard.count)


def _sum(gradient: Array | None, other: Array | None) -> Array | None:
    if gradient is None or other is None:
        return other if gradient is None else gradient
    return gradient + other


def joined(pieces: list[tuple[Any, Any]]) -> Any:
    """Join the values of one parameter, given as pairs (values, shard); None if there are none."""
    value, shard = pieces[0] if pieces else (None, None)
    if shard is None or value is None:
        return value
    if not isinstance(value, dict):
        return shard.join([piece for piece, _ in pieces])
    return {
        key: shard.join([piece[key] for piece, _ in pieces]) if getattr(item, "ndim", 0) else item
        for key, item in value.items()
    }
