"""ExpertChunks: chunks whose mixtures exchange tokens, also on a rank that has no samples."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minidl.grad_mode import is_grad_enabled
from minidl.kernels import Array
from minidl.nn import Stage
from minidl.parallel.experts.layer import ExpertParallel
from minidl.parallel.pipeline.chunks import Chunks, Link
from minidl.tensor import Tensor, backward


class ExpertChunks(Chunks):
    """Computes chunks as `Chunks` does; without samples, it calls the mixtures alone, with no tokens.

    A rank along "ep" whose share of a micro-batch is empty computes the tokens that the others send to its experts.

    recompute: whether backward is preceded by a forward of its own; what an earlier one made is then not kept
    """

    def __init__(self, stages: Mapping[int, Sequence[Stage]], starts: Sequence[int], recompute: bool) -> None:
        super().__init__(stages, starts)
        self._recompute = recompute
        self._mixtures = {
            chunk: [layer for unit in units for module in unit.modules for layer in _mixtures(module)]
            for chunk, units in stages.items()
        }
        self._without_tokens: dict[int, deque[list[Tensor]]] = {chunk: deque() for chunk in stages}  # their outputs

    def forward(self, chunk: int, x: Any, links: list[Link] | None = None) -> Any:
        if x is not None:
            return super().forward(chunk, x, links)
        if self._recompute:
            self._without_tokens[chunk].clear()
        outputs = [layer(_no_tokens(layer)) for layer in self._mixtures[chunk]]
        if is_grad_enabled():
            self._without_tokens[chunk].append(outputs)
        return None

    def backward(
        self, chunk: int, links: list[Link], gradients: Sequence[Array | None] | None, defer: bool = False
    ) -> tuple[list[Array | None], Callable[[], None] | None]:
        if links:
            return super().backward(chunk, links, gradients, defer)
        for output in reversed(self._without_tokens[chunk].popleft()):
            backward([output], [np.zeros_like(output.numpy())])
        return [], None


def _mixtures(module: Any) -> list[ExpertParallel]:
    return [layer for layer in module.modules() if isinstance(layer, ExpertParallel)]


def _no_tokens(layer: ExpertParallel) -> Tensor:
    weight = layer.gate.weight
    return Tensor(np.zeros((0, weight.shape[1]), weight.dtype), requires_grad=True)
