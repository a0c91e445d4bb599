"""The tape: the memory of how every array was made, and the walk through it from the loss to the leaves.

    Node      an array, the nodes it was made from, and its vector-Jacobian product (vjp)
    walk()    backward: in descending order of creation, every node once, after all that used it, freed as it is passed
    no_grad   nothing is remembered

`tensor.py` makes Nodes into Tensors: with operators, and with `backward()`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from functools import wraps
from operator import attrgetter
from typing import ParamSpec, TypeVar

from minidl import kernels
from minidl.kernels import Array, counting

Vjp = Callable[[Array, Sequence[bool]], Sequence[Array]]
OUTPUT = -1  # in `saved`: the vjp reads the operation's own output

clock = itertools.count(1).__next__  # numbers the nodes and the writes in place: "later" is a larger number
grad_enabled: ContextVar[bool] = ContextVar("minidl_grad_enabled", default=True)


class Node:
    """An array and how it was made.

    A leaf has no `_vjp`. A made node has `_vjp(g, needs)`, which returns for every parent the gradient of the loss with
    respect to it, given g, the gradient with respect to this node; None where `needs` is False.
    """

    __slots__ = (
        "_base",  # a view shares its base's memory, and so its writes
        "_data",
        "_hooks",
        "_parents",
        "_saved",  # which parents' values the vjp will read: those must not be overwritten
        "_sequence",  # when the node was made
        "_vjp",
        "_written",  # when the data was last written in place
        "grad",
        "requires_grad",
    )

    _base: Node | None
    _data: Array
    _hooks: dict[int, Callable[..., None]] | None
    _parents: tuple[Node, ...]
    _saved: tuple[int, ...]
    _sequence: int
    _vjp: Vjp | None
    _written: int
    grad: Array | None
    requires_grad: bool


# ---- the walk ----


def walk(
    outputs: Sequence[Node],
    seeds: Sequence[Array | None],
    inputs: Sequence[Node] | None,
    retain_graph: bool,
    finish: Callable[[Node, Array], None],
) -> None:
    """Visit the nodes from the outputs back, the latest first; hand each final gradient to `finish`.

    outputs, seeds: where to start, and with which gradients (None: 1, for a scalar).
    inputs: only these get their gradient, and only the nodes on the way to them are visited; None: every leaf.
    finish: called with (leaf, gradient) as soon as the gradient is final; the array belongs to the leaf alone.
    """
    for tensor in inputs or ():
        if not tensor.requires_grad:
            raise RuntimeError(f"inputs: a tensor of shape {tensor._data.shape} does not require a gradient")
    grads = _seed_gradients(outputs, seeds)
    nodes, uses = _reachable(outputs)
    needed = None if inputs is None else _on_the_way_to(inputs, nodes)
    wanted = frozenset(inputs or ())
    if needed is not None:
        nodes = [node for node in nodes if node in needed]
        uses = _count_uses(nodes, needed)
    for leaf in [tensor for tensor in grads if tensor._vjp is None and tensor not in uses]:
        gradient = grads.pop(leaf)  # an output that is itself a leaf
        if needed is None or leaf in wanted:
            finish(leaf, gradient)

    counter = counting.active.get()
    while nodes:
        node = nodes.pop()
        g = grads.pop(node)
        vjp, parents = node._vjp, node._parents
        assert vjp is not None
        if node in wanted:
            finish(node, g.copy())
        for index in node._saved:
            _check_not_overwritten(node if index == OUTPUT else parents[index], node)
        needs = [p.requires_grad for p in parents] if needed is None else [p in needed for p in parents]
        if True in needs:
            parent_grads = vjp(g, needs) if counter is None else counter.vjp(vjp, g, needs)
        else:
            continue
        if not retain_graph:
            node._vjp, node._parents = _freed, ()
        for parent, need, gradient in zip(parents, needs, parent_grads, strict=True):
            if not need:
                continue
            if parent in grads:
                gradient = grads[parent] + gradient
                if counter is not None:
                    counter.elementwise((gradient, gradient), gradient)
            elif parent._vjp is None and (gradient is g or gradient.base is not None):
                gradient = _copy(gradient, parent._data)  # a leaf's gradient belongs to the leaf alone
            grads[parent] = gradient
            if parent._vjp is None:
                uses[parent] -= 1
                if not uses[parent]:
                    finish(parent, grads.pop(parent))
        del vjp, parents, g, gradient, parent_grads, node  # nothing outlives its turn


def _copy(gradient: Array, data: Array) -> Array:
    """A copy of the gradient, laid out in memory as the data of the leaf."""
    if data.flags.c_contiguous:
        return gradient.copy()
    copy = kernels.array_module(data).empty_like(data, dtype=gradient.dtype)
    copy[...] = gradient
    return copy


def _seed_gradients(outputs: Sequence[Node], seeds: Sequence[Array | None]) -> dict[Node, Array]:
    grads: dict[Node, Array] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        if not output.requires_grad:
            raise RuntimeError(
                "backward() on a tensor that does not require a gradient: nothing that it was made from has "
                "requires_grad=True (or it was made under no_grad, or detached)"
            )
        module = kernels.array_module(output._data)
        if seed is None:
            if output._data.size != 1:
                raise ValueError(
                    f"backward() of a tensor of shape {output._data.shape} needs a gradient of that shape: reduce it "
                    "to a scalar first (for instance with .sum()), or pass backward(gradient=...)"
                )
            gradient = module.ones_like(output._data)
        else:
            gradient = module.array(seed, dtype=output._data.dtype)
            if gradient.shape != output._data.shape:
                raise ValueError(f"the gradient has shape {gradient.shape}, the tensor has shape {output._data.shape}")
        grads[output] = grads[output] + gradient if output in grads else gradient
    return grads


def _reachable(outputs: Sequence[Node]) -> tuple[list[Node], dict[Node, int]]:
    """The nodes that the outputs were made from, in ascending order of creation, and how often each leaf is used."""
    nodes: list[Node] = []
    uses: dict[Node, int] = {}
    stack = list(dict.fromkeys(output for output in outputs if output._vjp is not None))
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node._vjp is _freed:
            raise RuntimeError(
                "this graph was already walked by backward() and freed: run the forward pass again, or pass "
                "retain_graph=True to the first backward()"
            )
        nodes.append(node)
        for parent in node._parents:
            if parent.requires_grad:
                if parent._vjp is None:
                    uses[parent] = uses.get(parent, 0) + 1
                elif parent not in seen:
                    seen.add(parent)
                    stack.append(parent)
    nodes.sort(key=attrgetter("_sequence"))
    return nodes, uses


def _on_the_way_to(inputs: Sequence[Node], nodes: list[Node]) -> set[Node]:
    """The inputs and those nodes from which an input is reached."""
    needed = set(inputs)
    for node in nodes:  # ascending: parents first
        if any(parent in needed for parent in node._parents):
            needed.add(node)
    return needed


def _count_uses(nodes: list[Node], needed: set[Node]) -> dict[Node, int]:
    uses: dict[Node, int] = {}
    for node in nodes:
        for parent in node._parents:
            if parent in needed and parent._vjp is None:
                uses[parent] = uses.get(parent, 0) + 1
    return uses


def _check_not_overwritten(tensor: Node, node: Node) -> None:
    if (tensor if tensor._base is None else tensor._base)._written > node._sequence:
        raise RuntimeError(
            f"a tensor of shape {tensor._data.shape} that backward() needs was overwritten in place after the forward "
            "pass used it (by an optimizer step, a communication, copy_, or assigning .data): call backward() before "
            "the update, or run the forward pass again"
        )


def _freed(g: Array, needs: Sequence[bool]) -> Sequence[Array]:
    raise AssertionError("a freed node was visited")


# ---- grad mode ----


_P = ParamSpec("_P")
_R = TypeVar("_R")


class no_grad:  # noqa: N801  (a context manager and decorator, in lower case as PyTorch's)
    """Within `with no_grad():`, or in a function decorated with `@no_grad()`, nothing is recorded."""

    _enabled = False

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []  # a list, since one object may be entered again inside itself

    def __enter__(self) -> None:
        self._tokens.append(grad_enabled.set(self._enabled))

    def __exit__(self, *error: object) -> None:
        grad_enabled.reset(self._tokens.pop())

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def decorated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with type(self)():
                return function(*args, **kwargs)

        return decorated


class enable_grad(no_grad):  # noqa: N801
    """Within `with enable_grad():`, operations are recorded even inside a `no_grad`."""

    _enabled = True


def is_grad_enabled() -> bool:
    """Whether operations are being recorded."""
    return grad_enabled.get()
