"""What passes from one chunk of a model to the next: a tensor or a tuple of tensors, as arrays and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.cluster.work import Work
from minidl.kernels import Array
from minidl.recomputation import without_values
from minidl.tape import node_of
from minidl.tensor import Tensor


class Format(NamedTuple):
    """What a chunk returns, arrays aside: the same for every micro-batch."""

    is_tuple: bool
    requires_grad: tuple[bool, ...]


def format_of(value: Any) -> Format:
    """The format of what a chunk has returned."""
    return Format(isinstance(value, tuple), tuple(tensor.requires_grad for tensor in tensors_of(value)))


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors that a chunk has returned. Raises TypeError for anything else than a tensor or a tuple of tensors."""
    tensors = list(value) if isinstance(value, tuple) else [value]
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "a stage whose output passes to others must return a tensor or a tuple of tensors, got "
                f"{type(tensor).__name__}"
            )
    return tensors


def separate(value: Any) -> tuple[Any, list[Tensor]]:
    """The same values as leaves with gradients of their own, without the graph behind them; and these tensors."""
    return leaves(format_of(value), [tensor.data for tensor in tensors_of(value)])


def passed_on(value: Any) -> tuple[Tensor, ...]:
    """What backward needs of a value that was passed on: places in its graph, with arrays that take no memory."""
    graph = [tensor for tensor in tensors_of(value) if tensor.requires_grad]
    return tuple(without_values(node_of(tensor), _without_memory(tensor.data)) for tensor in graph)


def _without_memory(array: Array) -> Array:
    module = kernels.array_module(array)
    return module.broadcast_to(module.zeros((), array.dtype), array.shape)


def leaves(format: Format, arrays: Sequence[Array]) -> tuple[Any, list[Tensor]]:
    """The input of the next chunk, a tensor or a tuple, and its tensors: leaves, with gradients of their own."""
    tensors = [Tensor(array, requires_grad=needs) for array, needs in zip(arrays, format.requires_grad, strict=True)]
    return tuple(tensors) if format.is_tuple else tensors[0], tensors


class Handover:
    """One boundary between chunks on different ranks. The format travels once, then arrays alone.

    Parameters
        comm        of the pipeline
        chunk       the chunk after the boundary
        format_tag  of the format, which is not that of a micro-batch: the ranks may begin with different ones
    """

    def __init__(self, comm: Communicator, chunk: int, format_tag: int) -> None:
        self._comm, self._chunk, self._format_tag = comm, chunk, format_tag
        self._format: Format | None = None

    def isend(self, value: Any, target: int, tag: int) -> list[Work]:
        """Begin to send what the chunk before returned."""
        format, works = format_of(value), []
        if self._format is None:
            works.append(self._comm.isend(format, target, self._format_tag))
            self._format = format
        if format != self._format:
            raise RuntimeError(
                f"what passes to chunk {self._chunk} changed from {self._format} to {format}: the stages of a pipeline "
                "return the same number of tensors for every micro-batch, and the same of them require a gradient"
            )
        return works + [self._comm.isend(kernels.to_numpy(tensor.data), target, tag) for tensor in tensors_of(value)]

    def receive(self, source: int, tag: int) -> tuple[Any, list[Tensor]]:
        """Receive the input of the chunk: a tensor or a tuple, and its leaves."""
        if self._format is None:
            self._format = self._comm.recv(source, self._format_tag)
        return leaves(self._format, [self._comm.recv(source, tag) for _ in self._format.requires_grad])
