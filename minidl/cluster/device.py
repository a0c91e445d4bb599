"""Device: the memory in which a rank computes, with a host's memory behind a link."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

import numpy as np

from minidl.cluster.engines.protocol import Array
from minidl.cluster.rank import DeviceUse, Rank
from minidl.cluster.trace.recording import RECEIVE, SEND


class DeviceError(ValueError):
    """A device has fewer bytes than it needs, or no host behind it."""


class Device:
    """One rank's device, `comm.device`: it transfers arrays from and to the host, and counts the bytes that it holds.

    Arrays are numpy arrays wherever they are: a transfer copies them, and takes the time of `cluster.Memory.link` in a
    simulation. A call returns when the transfer is done; to compute meanwhile, make it in `comm.background`. Each
    direction transfers one array after the other, and both go on at the same time. On processes and under MPI the
    device is the memory of the process, without limit.

    use    what it has held and transferred

    >>> import numpy as np
    >>> from minidl import cluster
    >>> def program(comm):
    ...     groups = comm.split(0), comm.split(0)  # each has a lane of its own
    ...     down = groups[0].background(lambda inside: inside.device.send_back(np.ones(250_000, np.float32)))
    ...     up = groups[1].background(lambda inside: inside.device.fetch(np.ones(250_000, np.float32)))
    ...     comm.compute(seconds=0.5)
    ...     down.wait(), up.wait()
    ...     return round(comm.now(), 6), comm.device.use.fetched
    >>> memory = cluster.Memory(device=2e6, link=(0.0, 1e6))
    >>> cluster.launch(program, nodes=1, on=cluster.Simulation(memory=memory)).results
    [(1.0, 1000000)]
    """

    def __init__(self, owner: Rank) -> None:
        self._owner = owner
        self.use: DeviceUse = owner.device_use

    def fetch(self, x: Array, out: Array | None = None) -> Array:
        """Copy an array of the host to the device; into `out`, of the same shape and dtype, if that is given."""
        return self._transfer(x, out, RECEIVE)

    def send_back(self, x: Array) -> Array:
        """Copy an array of the device to the host."""
        return self._transfer(x, None, SEND)

    def _transfer(self, x: Array, out: Array | None, kind: int) -> Array:
        owner, operation = self._owner, "fetch" if kind == RECEIVE else "send_back"
        owner.enter(operation, "host", x, out)
        if not isinstance(x, np.ndarray):
            raise TypeError(f"{operation} transfers an array, got {type(x).__name__}: give one of numpy")
        if out is not None and (out.shape, out.dtype) != (x.shape, x.dtype):
            raise ValueError(
                f"{operation}: out must have the shape {x.shape} and the dtype {x.dtype} of the array, got {out.shape} "
                f"and {out.dtype}"
            )
        self.use.fetched += x.nbytes * (kind == RECEIVE)
        self.use.sent_back += x.nbytes * (kind == SEND)
        began = owner.endpoint.transfer(x.nbytes, kind == RECEIVE)
        copied = x.copy() if out is None else out
        if out is not None:
            np.copyto(out, x)
        owner.recorder.transferred(kind, x.nbytes, began)
        owner.leave()
        return copied

    def on_host(self) -> AbstractContextManager[None]:
        """A block whose computation the host does, at its own speed; others may compute on the device meanwhile."""
        return self._owner.endpoint.on_host()

    def holds(self, moment: str, parts: Mapping[str, int]) -> None:
        """Count the bytes that the device holds now, by component. DeviceError if it does not have as many.

        moment: names it in errors, and in `use`
        """
        total, memory = sum(parts.values()), self._owner.endpoint.memory
        if total > self.use.peak:
            self.use.peak, self.use.at_peak, self.use.moment = total, dict(parts), moment
        if memory is not None and total > memory.device:
            listed = ", ".join(f"{name} {nbytes:,}" for name, nbytes in parts.items() if nbytes)
            raise DeviceError(
                f"the device of rank {self._owner.endpoint.rank} needs {total:,} bytes {moment} ({listed}), and has "
                f"{memory.device:,.0f}: give it more memory, a smaller minibatch, or less to keep"
            )
