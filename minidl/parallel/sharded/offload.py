"""Offload: what a node's device leaves to the memory of its host, which updates the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from minidl.arguments import one_of
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.cluster.work import Work
from minidl.kernels import Array
from minidl.nn import Module
from minidl.optim import Optimizer
from minidl.parallel.gradients.flat_vector import set_gradient
from minidl.parallel.sharded.flat_group import FlatGroup
from minidl.parallel.sharded.scattered_gradients import ScatteredGradients
from minidl.parallel.sharded.shares import Shares
from minidl.parallel.sharded.units import GroupSpec, Unit


@dataclass(frozen=True)
class Offload:
    """What the host keeps instead of the device, for `Sharded(offload=...)`.

        for each minibatch:
            device: gradients; each bucket, or unit, goes to the host while the next one is computed
            host:   update, with the optimizer's state
            device: fetches the weights                     ("all": unit by unit, when it computes)

    Parameters
        what     "optimizer"  the optimizer's state; the weights that compute stay on the device (ZeRO-Offload)
                 "all"        the weights, too: a unit's are fetched before its forward and again before its backward,
                              those of the next one while it computes; for stage 3
        delayed  True: the host makes an update while the device computes the gradients of the next minibatch, with
                 weights that lack this update (staleness 1). The last update of an epoch is made before its evaluation

    Not delayed, the weights have the bits of those without offload.

    Notes
        b are the bytes of a weight, N the nodes. For each weight a device holds b ("optimizer", stages 1 and 2), b / N
        ("optimizer", stage 3) or 0 ("all"). Within a step come buckets of gradients, as in `Sharded`, and in stage 3
        the largest unit and the one on its way. Over the link go, for each weight and minibatch, b / N bytes to the
        host, and back b / N, or 2 b / N by "all".
        With gradients that take C to compute, an update of U, a transfer of S for the last bucket and of V for all
        weights, a minibatch by "optimizer" takes C + S + U + V, and max(C + S, U) + V if it is delayed, where the link
        has sent each other bucket before the next one is ready.

    References
        Ren et al., ZeRO-Offload: democratizing billion-scale model training (arXiv:2101.06840), sections 3 to 5.
    """

    what: str = "optimizer"
    delayed: bool = False

    def __post_init__(self) -> None:
        one_of("Offload: what", self.what, ("optimizer", "all"))
        if not isinstance(self.delayed, bool):
            raise TypeError(f"Offload: delayed must be True or False, got {self.delayed!r}")
        if self.delayed and self.what == "all":
            raise ValueError(
                'Offload: with "all" the device fetches the weights while a delayed update would change them: give '
                '"optimizer", or leave out delayed'
            )


class OffloadedShares(Shares):
    """Shares of which the host keeps and updates what `offload` says."""

    def __init__(
        self,
        model: Module,
        mesh: Mesh[Communicator],
        specs: Sequence[GroupSpec],
        units: Sequence[Unit] | None,
        overlap: bool,
        offload: Offload,
    ) -> None:
        super().__init__(model, mesh, specs, units, overlap)
        comm = mesh["dp"]
        self._delayed, self._keeps_weights = offload.delayed, offload.what == "optimizer"
        comm.device  # noqa: B018  (raises where there is no host)
        self._lane, fetches = comm.split(0), comm.split(0)  # each goes on beside the program and the other one
        for group in self.groups:
            group.move_to_host(fetches, self._keeps_weights)
        self._begun: Work | None = None  # the last update

    def attach(self, optimizer: Optimizer) -> None:
        super().attach(optimizer)
        if self._delayed and any(p not in self.names for group in optimizer.param_groups for p in group["params"]):
            raise ValueError(
                "Offload: a delayed update is one of the model's parameters, but the optimizer has others, such as "
                "those of the loss: leave out delayed"
            )

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        super().load_state_dict(state)
        self.weights_changed()

    def weights_changed(self) -> None:
        """The weights were set, other than by an update: make those of host and device equal again."""
        for group in self.groups if self._keeps_weights else ():
            assert group.of_device is not None
            if self.units is None:
                group.of_rank[...] = group.of_device
            else:
                group.of_device[...] = group.of_rank

    def agree(self, mine: bool) -> bool:
        return all(self._summing.all_gather(mine))  # as part of the update

    def update(self, step: Callable[[], None]) -> None:
        def on_host(inside: Communicator) -> None:
            self._summing = inside
            inside.mark("update")
            with inside.device.on_host():
                step()
            inside.mark("")

        self._begun = self._lane.background(on_host)
        if not self._delayed:
            self.finish_update()

    def finish_update(self) -> None:
        if self._begun is None:
            return
        self._begun.wait()
        self._begun = None
        if self._keeps_weights:
            for arrive in [group.fetch() for group in self.groups if group.parameters[0].requires_grad]:
                arrive()
        self.end_update()


class OffloadedGradients(ScatteredGradients):
    """Gradient buckets whose sums the host gets."""

    def __init__(
        self,
        groups: Sequence[FlatGroup],
        comm: Communicator,
        algorithm: AllReduceAlgorithm,
        overlap: bool,
        stage: int,
        shares: Shares,
    ) -> None:
        super().__init__(groups, comm, algorithm, overlap, stage)
        self._lane, self._shares = comm.split(0), shares
        self._arrived: list[tuple[FlatGroup, Array]] = []

    def _begin(self, comm: Communicator, whole: Array, label: str, is_hidden: bool) -> Callable[[], Array]:
        begin = partial(super()._begin, whole=whole, label=label, is_hidden=False)
        begun = self._lane.background(lambda inside: inside.device.send_back(begin(inside)()))
        if not is_hidden:
            begun.wait()
        return begun.wait

    def _arrive(self) -> None:
        group, _, wait = self._travelling.popleft()
        self._arrived.append((group, wait()))

    def _settle(self) -> None:
        self._shares.finish_update()  # which has used the gradients of the last minibatch
        for group, total in self._arrived:
            set_gradient(list(group.slices.values()), total)
        self._arrived = []
