"""DeviceBytes: counts the bytes of the arrays that a rank's device holds in a step, by component."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import ref

from minidl.kept_arrays import KeptArrays
from minidl.kernels import Array, owner
from minidl.parallel.run.session import Session
from minidl.parallel.sharded.scattered_gradients import ScatteredGradients
from minidl.parallel.sharded.shares import Shares


class DeviceBytes:
    """Counts, when it is called, the arrays that are alive on the device of a rank of `Sharded`.

    Parameters
        session    of the rank
        shares     its partition
        gradients  that travel
        on_device  whether the optimizer's state and this rank's range of the gradients are there; else with the host

    What an operation needs while it computes is not counted. The samples count as activations where a layer keeps them.
    """

    def __init__(self, session: Session, shares: Shares, gradients: ScatteredGradients, on_device: bool) -> None:
        self._session, self._shares, self._gradients, self._on_device = session, shares, gradients, on_device
        self._kept: dict[int, ref[Array]] = {}  # the activations, as long as backward needs them

    def __call__(self, moment: str, *, outputs: Iterable[Any] = (), filled: Iterable[Array] = ()) -> None:
        """Count.

        Parameters
            moment   names this moment in errors
            outputs  of a forward pass that keeps arrays for backward
            filled   buckets that have been filled
        """
        shares, seen = self._shares, set[int]()

        def new(arrays: Iterable[Array | None]) -> int:
            whole = {id(one): one for one in (owner(array) for array in arrays if array is not None)}
            fresh = [one for key, one in whole.items() if key not in seen and one.nbytes]
            seen.update(whole)
            return sum(one.nbytes for one in fresh)

        groups, model = shares.groups, self._session.model
        grouped = {parameter for group in groups for parameter in group.parameters}
        others = [t._data for t in (*model.parameters(), *model.buffers()) if t not in grouped]
        weights = [array for group in groups for array in (group.weights, group.of_device) if array is not None]
        sizes = {"weights": new([*weights, *others])}
        left_out = [*weights, *others, *(parameter._data for parameter in grouped)]
        for array in KeptArrays(left_out).new(outputs):
            self._kept[id(array)] = ref(array)
        own = [part for group in groups for part in group.slices.values()] if self._on_device else []
        sizes["gradients"] = new([p.grad for p in (*model.parameters(), *own)])
        states = self._session.optimizer.state.values() if self._on_device else ()
        sizes["optimizer"] = new([a for state in states for a in state.values() if getattr(a, "ndim", 0)])
        alive = [(key, array) for key, one in self._kept.items() if (array := one()) is not None]
        self._kept = {key: ref(array) for key, array in alive}
        sizes["activations"] = new([array for _, array in alive])
        sizes["buffers"] = new(filled) + self._gradients.bytes_travelling + sum(group.arriving for group in groups)
        self._session.comm.device.holds(moment, sizes)

    def look(self, moment: str, outputs: Iterable[Any]) -> None:
        """Count at a moment within backward; for `look_at_memory`."""
        self(f"in backward ({moment})", outputs=outputs)
