"""ExpertChunks: chunks whose mixtures exchange tokens, also on a rank that has no samples."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minidl.grad_mode import is_grad_enabled
from minidl.kernels import Array
from minidl.nn import Stage
from minidl.parallel.experts.layer import ExpertParallel
from minidl.parallel.pipeline.chunks import Chunks, End, Link, Segments
from minidl.recomputation import checkpoint
from minidl.tensor import Tensor, backward


class ExpertChunks(Chunks):
    """Computes chunks as `Chunks` does; without samples, it calls the mixtures alone, with no tokens.

    A rank along "ep" whose share of a micro-batch is empty computes the tokens that the others send to its experts.
    """

    def __init__(self, stages: Mapping[int, Sequence[Stage]], starts: Sequence[int], segments: Segments) -> None:
        super().__init__(stages, starts, segments)
        self._without_tokens: dict[int, deque[list[list[Tensor]]]] = {chunk: deque() for chunk in stages}  # outputs

    def forward(self, chunk: int, x: Any, links: list[Link] | None = None, end: End | None = None) -> Any:
        if x is not None:
            return super().forward(chunk, x, links, end)
        of_segments = []
        for start, stop, recomputed in self._segments[chunk]:
            if mixtures := [layer for unit in self._stages[chunk][start:stop] for layer in _mixtures(unit)]:
                run = partial(_without_tokens, mixtures)
                of_segments.append(checkpoint(run) if recomputed else run())
        if is_grad_enabled():
            self._without_tokens[chunk].append(of_segments)
        return None

    def backward(
        self, chunk: int, links: list[Link], gradients: Sequence[Array | None] | None, defer: bool = False
    ) -> tuple[list[Array | None], Callable[[], None] | None]:
        if links:
            return super().backward(chunk, links, gradients, defer)
        for outputs in reversed(self._without_tokens[chunk].popleft()):
            backward(outputs, [np.zeros_like(output.numpy()) for output in outputs])
        return [], None


def _mixtures(unit: Stage) -> list[ExpertParallel]:
    return [layer for module in unit.modules for layer in module.modules() if isinstance(layer, ExpertParallel)]


def _without_tokens(mixtures: Sequence[ExpertParallel]) -> list[Tensor]:
    weights = [layer.gate.weight for layer in mixtures]
    none = [Tensor(np.zeros((0, each.shape[1]), each.dtype), requires_grad=True) for each in weights]
    return [layer(x) for layer, x in zip(mixtures, none, strict=True)]
