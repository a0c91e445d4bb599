"""Deferred: the half of backward that only the weights need, left for later.

For y = x @ w.T, backward computes two products: g @ w, which the operations before it wait for, and g.T @ x, which only
the update of w needs. Zero-bubble pipelines compute the second one while they would wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

from minidl.kept_arrays import kept_bytes
from minidl.kernels import Array, counting
from minidl.tape import Finish, Node, Vjp, memory_of, receive, refuse_overwritten

SEPARABLE = "separable_vjp"
"""The name of vjps that compute the gradient of each parent by itself, so that a second call computes nothing twice."""

CHECKPOINTED = "checkpointed_vjp"
"""The name of vjps that walk a graph of their own, of which products are left out, too: `minidl.checkpoint`."""


class Walk(NamedTuple):
    """Where a walk adds up gradients: those so far, the uses that are left, and what is done with final ones."""

    grads: dict[Node, Array]
    uses: dict[Node, int]
    finish: Finish

    def add(self, parameter: Node, g: Array, gradient: Array) -> None:
        """Add what a node with gradient g contributes to the parameter's gradient."""
        if parameter in self.grads:
            gradient = counting.backward_arithmetic()[1](self.grads.pop(parameter), gradient)
        receive(parameter, gradient, g, *self)


class Kept(NamedTuple):
    """A node's vjp, and what it is to be called with for the parameters among its parents; and the walk."""

    vjp: Vjp
    g: Array
    parents: Sequence[Node]
    saved: Sequence[Node]
    made_at: int
    needs: list[bool]
    walk: Walk


class Deferred:
    """Gradients of parameters that `backward(..., defer=True)` has left out; `run` computes them.

    Left out are those of `linear`, `matmul`, `conv2d` and `embedding` with respect to parameters. Those of all other
    operations, such as `layer_norm`, and of products of parameters, are computed at once: so `run` reads no weights,
    which may have been released. But a parameter that needs both kinds gets its gradient, and its hooks are called,
    when `run` has added the last one.

    Attributes
        nbytes  of the arrays that are kept until `run`: the gradients of outputs, and the inputs that the products need

    >>> import numpy as np
    >>> from minidl import Tensor, backward, nn
    >>> layer, x = nn.Linear(2, 1), Tensor([[1.0, 2.0]], requires_grad=True)
    >>> rest = backward(layer(x), np.ones((1, 1), np.float32), defer=True)
    >>> x.grad is None, layer.weight.grad is None, rest.nbytes
    (False, True, 12)
    >>> rest.run()
    >>> layer.weight.grad
    array([[1., 2.]], dtype=float32)
    """

    def __init__(self) -> None:
        self._kept: list[Kept] = []
        self._is_done = False

    def begin(self, grads: dict[Node, Array], uses: dict[Node, int], finish: Finish) -> None:
        """A walk begins, with these gradients so far and uses that are left."""
        self._walk = Walk(grads, uses, finish)

    def leave_out(self, node: Node, g: Array, needs: list[bool]) -> tuple[Vjp, list[bool]]:
        """Keep what the gradients of the node's parameters need; return the vjp and the needs for the others."""
        vjp, parents, walk = node._vjp, node._parents, self._walk
        assert vjp is not None
        later = [
            need and parent.is_parameter and parent._vjp is None for need, parent in zip(needs, parents, strict=True)
        ]
        now = [need and not late for need, late in zip(needs, later, strict=True)]
        if vjp.__name__ == CHECKPOINTED:
            late = {i: partial(walk.add, parents[i], g) for i, is_late in enumerate(later) if is_late}

            def inner_walk(g: Array, _: Sequence[bool], vjp: Any = vjp) -> Sequence[Array]:
                gradients: Sequence[Array] = vjp(g, needs, self, late)
                self._walk = walk
                return gradients

            return inner_walk, now
        if vjp.__name__ != SEPARABLE or sum(memory_of(parents[index]).is_parameter for index in node._saved) > 1:
            return vjp, needs
        if True in later:
            saved = [parents[index] for index in node._saved]
            self._kept.append(Kept(vjp, g, parents, saved, node._sequence, later, walk))
        return (vjp if True in now else _nothing), now

    def run(self) -> None:
        """Add the gradients that were left out to the `.grad` of the parameters, and call their hooks.

        Raises RuntimeError if it has run already, and if an array that it reads was overwritten meanwhile, such as a
        weight by an update.
        """
        if self._is_done:
            raise RuntimeError("run: these gradients were computed already: call it once for each backward")
        self._is_done = True
        count = counting.backward_arithmetic()[0]
        while self._kept:
            vjp, g, parents, saved, made_at, needs, walk = self._kept.pop(0)
            for tensor in saved:
                if memory_of(tensor)._written > made_at:
                    refuse_overwritten(tensor)
            gradients = vjp(g, needs) if count is None else count(vjp, g, needs)
            for parameter, gradient in compress(zip(parents, gradients, strict=True), needs):
                walk.add(parameter, g, gradient)

    @property
    def nbytes(self) -> int:
        parameters = [parent for kept in self._kept for parent in kept.parents if parent.is_parameter]
        return kept_bytes([(kept.g, kept.vjp) for kept in self._kept], parameters)


def _nothing(g: Array, needs: Sequence[bool]) -> Sequence[Array]:
    """The vjp of a node all of whose gradients are left for later."""
    return [g] * len(needs)  # which no one reads
