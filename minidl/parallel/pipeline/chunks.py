"""Chunks: how a rank computes forward and backward of its chunks of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

from minidl.kept_arrays import look_at_memory
from minidl.kernels import Array
from minidl.nn import Stage
from minidl.nn.checkpointing import run_segments
from minidl.nn.segments import Segment
from minidl.parallel.pipeline.handover import tensors_of
from minidl.tensor import Tensor, backward

Pass = tuple[int, bool]
"""A chunk, and whether it is its backward pass."""

Segments = Callable[[int, Sequence[Stage]], Sequence[Segment]]

End = Callable[[Any], Any]
"""Computes from the output of the last chunk what backward begins with."""


class Link(NamedTuple):
    """A forward pass through some stages: the leaves that it began with, and what it returned, with the graph."""

    inputs: list[Tensor]
    output: Any

    @classmethod
    def of(cls, x: Any, output: Any) -> Link:
        """The link from x, which is tensors or the samples, to the output."""
        return cls(tensors_of(x) if isinstance(x, (Tensor, tuple)) else [], output)

    def backward(
        self, gradients: Sequence[Array | None] | None, defer: bool = False
    ) -> tuple[list[Array | None], Callable[[], None] | None]:
        """Return the gradients of the inputs, and a function that computes what was deferred.

        gradients: of the outputs that require one, None for those that no later stage used; None: backward of the loss.
        """
        outputs = [tensor for tensor in tensors_of(self.output) if tensor.requires_grad]
        if gradients is None:
            rest = backward(outputs or [self.output], defer=defer)  # where nothing is trained, backward says so
        else:
            reached = [(tensor, g) for tensor, g in zip(outputs, gradients, strict=True) if g is not None]
            rest = backward([tensor for tensor, _ in reached], [g for _, g in reached], defer=defer)
        look_at_memory("input gradient")
        return [leaf.grad for leaf in self.inputs if leaf.requires_grad], None if rest is None else rest.run


class Computing(Protocol):
    """What a stage asks of its chunks. All ranks that share weights out make the same passes, even without samples."""

    def visiting(self, passes: Sequence[Pass]) -> AbstractContextManager[None]:
        """Within the block, `forward` and `backward` are called for these chunks, in this order."""

    def forward(self, chunk: int, x: Any, links: list[Link] | None = None, end: End | None = None) -> Any:
        """Return the chunk's output and append what its backward needs to `links`; x is None without samples.

        end: computes what is returned from the output, such as the loss; None: the output is returned.
        """

    def backward(
        self, chunk: int, links: list[Link], gradients: Sequence[Array | None] | None, defer: bool = False
    ) -> tuple[list[Array | None], Callable[[], None] | None]:
        """As `Link.backward`, of what forward has left in `links`, which is empty without samples; it is removed."""


class Chunks:
    """Computes each chunk as one graph, on a rank that always has the weights.

    Parameters
        stages    the stages of the model in each chunk of this rank
        starts    number of the first stage of each chunk in the model
        segments  called with a chunk and its stages: the segments of these, of which backward recomputes some
    """

    def __init__(self, stages: Mapping[int, Sequence[Stage]], starts: Sequence[int], segments: Segments) -> None:
        self._stages, self._starts = stages, starts
        self._segments = {chunk: segments(chunk, own) for chunk, own in stages.items()}

    def visiting(self, passes: Sequence[Pass]) -> AbstractContextManager[None]:
        return nullcontext()

    def forward(self, chunk: int, x: Any, links: list[Link] | None = None, end: End | None = None) -> Any:
        if x is None:
            return None
        output = run_segments(self._stages[chunk], self._segments[chunk], x, self._starts[chunk], end)
        if links is not None:
            links.append(Link.of(x, output))
        return output

    def backward(
        self, chunk: int, links: list[Link], gradients: Sequence[Array | None] | None, defer: bool = False
    ) -> tuple[list[Array | None], Callable[[], None] | None]:
        return links.pop().backward(gradients, defer) if links else ([], None)
