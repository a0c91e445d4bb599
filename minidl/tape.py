"""The tape: a record of how every array was computed, and backpropagation, the walk from the loss to the leaves.

The loop in `walk` is backpropagation, as in lecture 01a (`course/lectures/01a_backpropagation.py`) and in the 94 lines
of Karpathy's micrograd, where a node holds one number. The other lines of this file, and what each is for:

    Vjp                    a node holds a whole array; a Jacobian is never stored
    _sequence, _graph      order of creation instead of a recursive sort: any depth, and no recursion limit
    requires_grad, needs   no arithmetic for gradients that are not needed (of the data, of frozen weights)
    Node, _node            a result's array is freed with its tensor, unless a vjp reads it
    retain_graph, _freed   a node's arrays are released once it is visited: memory falls during backward
    deferred               splits backward, for pipelines: gradients of inputs at once, gradients of weights later
    uses, finish           a leaf's gradient is available as soon as it is final: communication overlaps backward
    _own                   a leaf's gradient shares memory with nothing, so it may be reduced in place
    inputs, _leading_to    gradients of chosen tensors only; the rest of the graph is not visited
    _saved, Memory         an error instead of a wrong gradient where an array was overwritten after the forward pass
    allow_overwritten      no such error, for algorithms that intend to use the new values

`tensor/` has the tensors, which hold arrays; `grad_mode.py` switches recording off; `functional/elementwise.py` has the
first vector-Jacobian products to read.

References
    Linnainmaa (1970); Griewank and Walther, Evaluating Derivatives (2008), chapter 3
    Karpathy, micrograd (github.com/karpathy/micrograd), engine.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import compress
from operator import attrgetter
from typing import Any, Protocol

from minidl import kernels
from minidl.kernels import Array, counting

Vjp = Callable[[Array, Sequence[bool]], Sequence[Array]]
"""`vjp(g, needs)`: a node's vector-Jacobian products.

g is the gradient of the loss with respect to the node; the vjp must not write into it. The result has one entry for
each parent: the gradient with respect to that parent, where `needs` is True, otherwise anything, since it is not read.
An entry is g itself, a view of it, or a new array, never an array that something else keeps.
"""

Finish = Callable[[Any, Array], None]
"""`finish(tensor, gradient)`: called with each final gradient; the tensor is a leaf, or one of the `inputs`."""


class Splitter(Protocol):
    """Splits backward, see `deferred.py`: `walk` announces itself by `begin`, and leaves out what `leave_out` keeps."""

    def begin(self, grads: dict[Node, Array], uses: dict[Node, int], finish: Finish) -> None: ...

    def leave_out(self, node: Node, g: Array, needs: list[bool]) -> tuple[Vjp, list[bool]]: ...


Count = Callable[..., Sequence[Array]]  # calls a vjp, and counts its arithmetic
OUTPUT = -1  # in `saved`: the vjp reads the operation's own output

clock = itertools.count(1).__next__  # numbers the nodes and the writes in place: "later" is a larger number
overwritten_allowed: ContextVar[bool] = ContextVar("minidl_overwritten_allowed", default=False)


def walk(
    outputs: Sequence[Node],
    seeds: Sequence[Array | None],
    inputs: Sequence[Node] | None,
    retain_graph: bool,
    finish: Finish,
    deferred: Splitter | None = None,
    ends_at_inputs: bool = False,
) -> None:
    """Backpropagation: visit every node once, after all nodes computed from it, and pass its gradient to its parents.

        for node in reversed(nodes):
            for parent, gradient in zip(node.parents, node.vjp(node.grad)):
                parent.grad += gradient

    Parameters
        outputs, seeds   where to start, and with which gradients; None: 1, for a scalar
        inputs           the tensors that get their gradient; None: every leaf
        retain_graph     keep the graph for another backward
        finish           called as finish(tensor, gradient) once a gradient is final; the array is the tensor's own
        deferred         stores the products that only parameters need, for later; None: all are computed now
        ends_at_inputs   stop at the inputs, even if another input lies behind them
    """
    wanted = _checked_inputs(inputs)
    ends = wanted if ends_at_inputs else {}
    grads = _seed_gradients(outputs, seeds)
    nodes, uses = _graph(grads, None if inputs is None else wanted, ends)
    _finish_outputs(grads, uses, finish)
    count, add = counting.backward_arithmetic()
    if deferred is not None:
        deferred.begin(grads, uses, finish)

    while nodes:
        node = nodes.pop()  # the latest one left: its gradient is complete
        g = grads.pop(node)
        if node in wanted:
            finish(wanted[node], g.copy())
            if node in ends:
                continue
        for parent, gradient in _products(node, g, uses, count, retain_graph, deferred):  # along a path, multiply
            if parent in grads:
                gradient = add(grads.pop(parent), gradient)  # where paths meet, add
            if parent._vjp is None:
                receive(parent, gradient, g, grads, uses, finish)
            else:
                grads[parent] = gradient
        del uses[node]
        g = gradient = None  # release the arrays before the next node is visited


# ---- around the walk ----


def _checked_inputs(inputs: Sequence[Node] | None) -> dict[Node, Node]:
    """Map each input's node to the input."""
    for tensor in inputs or ():
        if not tensor._requires_grad:
            raise RuntimeError(f"inputs: a tensor of shape {tensor._data.shape} does not require a gradient")
    return {node_of(tensor): tensor for tensor in inputs or ()}


def _products(
    node: Node, g: Array, uses: dict[Node, int], count: Count | None, retain_graph: bool, deferred: Splitter | None
) -> Iterable[tuple[Node, Array]]:
    """The parents whose gradients are needed, each with its vector-Jacobian product; frees the node."""
    vjp, parents = node._vjp, node._parents
    for index in node._saved:
        read = node if index == OUTPUT else parents[index]
        if (read if read._memory is None else read._memory)._written > node._sequence:
            refuse_overwritten(read, g.shape if index == OUTPUT else None)
    needs = list(map(uses.__contains__, parents))
    for index in node._frozen:  # they did not require gradients when the node was made, but may now
        needs[index] = False
    if True not in needs:
        return ()
    assert vjp is not None
    if deferred is not None:
        vjp, needs = deferred.leave_out(node, g, needs)
    gradients = vjp(g, needs) if count is None else count(vjp, g, needs)
    if not retain_graph:
        node._vjp, node._parents = _freed, ()
    return compress(zip(parents, gradients, strict=True), needs)


def receive(
    leaf: Node, gradient: Array, g: Array, grads: dict[Node, Array], uses: dict[Node, int], finish: Finish
) -> None:
    """Store a leaf's gradient so far, to which a node with gradient g has just contributed.

    It is final after the leaf's last use; until then it is kept in `grads`.
    """
    if gradient is g or gradient.base is not None:
        gradient = _own(gradient, leaf._data)
    uses[leaf] = left = uses[leaf] - 1
    if left:
        grads[leaf] = gradient
    else:
        finish(leaf, gradient)


def _finish_outputs(grads: dict[Node, Array], uses: dict[Node, int], finish: Finish) -> None:
    """Finish the gradients of outputs that are leaves and from which no other output was computed."""
    for leaf in [tensor for tensor in grads if tensor._vjp is None and not uses.get(tensor)]:
        gradient = grads.pop(leaf)
        if leaf in uses:
            finish(leaf, gradient)


class Node:
    """A place in the graph: made from `_parents`, with the vector-Jacobian products `_vjp`; a leaf has neither.

    A leaf is a tensor and its own node. The result of a recorded operation is a tensor as well, but its node is another
    object, `_node`. No node refers to a result: its array is freed with the tensor, unless a vjp reads the array.
    """

    __slots__ = (
        "_frozen",  # the indices of the parents that did not require a gradient when the node was made
        "_memory",  # the memory shared with views; None: no views
        "_parents",
        "_requires_grad",
        "_saved",  # the indices of the parents whose values the vjp reads, OUTPUT for this node's own
        "_sequence",  # when the node was made
        "_vjp",
        "_written",  # when the data was last written in place
    )

    _frozen: tuple[int, ...]
    _memory: Memory | None
    _parents: tuple[Node, ...]
    _requires_grad: bool
    _saved: tuple[int, ...]
    _sequence: int
    _vjp: Vjp | None
    _written: int

    # of a tensor
    _node: Node | None = None  # None: the tensor is a leaf, and its own node
    _data: Array
    _hooks: dict[int, Callable[..., None]] | None
    grad: Array | None
    is_parameter = False  # whether its gradient may be deferred


class Memory:
    """The time of the last in-place write to memory that nodes share. It refers to no node: a view keeps no graph."""

    __slots__ = ("_written", "is_parameter")

    _written: int

    def __init__(self, written: int, is_parameter: bool) -> None:
        self._written, self.is_parameter = written, is_parameter


def node_of(tensor: Node) -> Node:
    """The tensor's place in the graph."""
    return tensor if tensor._node is None else tensor._node


def memory_of(node: Node) -> Node | Memory:
    """The object that records the last write: the memory shared with views, or the node."""
    return node if node._memory is None else node._memory


def shared_memory(node: Node) -> Memory:
    """The memory that a node shares with its views; made at the first view."""
    if node._memory is None:
        node._memory = Memory(node._written, node.is_parameter)
    return node._memory


# ---- the graph ----


def _graph(
    outputs: Iterable[Node], inputs: Iterable[Node] | None, ends: Container[Node] = ()
) -> tuple[list[Node], dict[Node, int]]:
    """The nodes to visit, in order of creation, and how many gradients each node and leaf receives from another node.

    Order of creation is a topological order: a node is made after its parents.
    """
    uses = dict.fromkeys(outputs, 0)
    nodes = [output for output in uses if output._vjp is not None]
    for node in nodes:  # the list grows while it is read
        if node in ends:
            continue
        if node._vjp is _freed:
            raise RuntimeError(
                "this graph was already walked by backward() and freed: run the forward pass again, or pass "
                "retain_graph=True to the first backward()"
            )
        for index, parent in enumerate(node._parents):
            if index in node._frozen:
                continue
            if parent in uses:
                uses[parent] += 1
            elif parent._requires_grad:
                uses[parent] = 1
                if parent._vjp is not None:
                    nodes.append(parent)
    nodes.sort(key=attrgetter("_sequence"))
    return (nodes, uses) if inputs is None else _leading_to(inputs, nodes, ends)


def _leading_to(inputs: Iterable[Node], nodes: list[Node], ends: Container[Node]) -> tuple[list[Node], dict[Node, int]]:
    """The result of `_graph`, restricted to the inputs and the nodes computed from them."""
    uses = dict.fromkeys(inputs, 0)
    for node in nodes:  # in order of creation: parents first
        for index, parent in enumerate(() if node in ends else node._parents):
            if parent in uses and index not in node._frozen:
                uses[parent] += 1
                uses.setdefault(node, 0)
    return [node for node in nodes if node in uses], uses


def _own(gradient: Array, data: Array) -> Array:
    """A copy of the gradient, in the memory layout of the leaf's data."""
    if data.flags.c_contiguous:
        return gradient.copy()
    copy = kernels.array_module(data).empty_like(data, dtype=gradient.dtype)
    copy[...] = gradient
    return copy


def _seed_gradients(outputs: Sequence[Node], seeds: Sequence[Array | None]) -> dict[Node, Array]:
    """The gradient that each output starts with."""
    grads: dict[Node, Array] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        if not output._requires_grad:
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
            gradient = module.ones(output._data.shape, dtype=output._data.dtype)
        else:
            gradient = module.array(seed, dtype=output._data.dtype)
            if gradient.shape != output._data.shape:
                raise ValueError(f"the gradient has shape {gradient.shape}, the tensor has shape {output._data.shape}")
        node = node_of(output)
        grads[node] = grads[node] + gradient if node in grads else gradient
    return grads


def refuse_overwritten(node: Node, shape: tuple[int, ...] | None = None) -> None:
    """Raise RuntimeError: values that a vjp reads were overwritten. Do nothing within `allow_overwritten`."""
    if overwritten_allowed.get():
        return
    if node._vjp is None:
        shape = node._data.shape
    raise RuntimeError(
        f"a tensor {'' if shape is None else f'of shape {shape} '}that backward() needs was overwritten in place after "
        "the forward pass used it (by an optimizer step, a communication, copy_, or assigning .data): call backward() "
        "before the update, or run the forward pass again"
    )


def _freed(g: Array, needs: Sequence[bool]) -> Sequence[Array]:
    raise AssertionError("a freed node was visited")


@contextmanager
def allow_overwritten() -> Iterator[None]:
    """Within the block, backward() reads arrays that were overwritten since the forward pass as they are now.

    The result is not the gradient of any function. An array that was replaced (`.data = ...`) is read as it was.

    >>> from minidl import Tensor
    >>> from minidl.tape import allow_overwritten
    >>> x, w = Tensor(1.0, requires_grad=True), Tensor(2.0)
    >>> y = x * w
    >>> _ = w.copy_(5.0)
    >>> with allow_overwritten():
    ...     y.backward()
    >>> float(x.grad)
    5.0
    """
    token = overwritten_allowed.set(True)
    try:
        yield
    finally:
        overwritten_allowed.reset(token)
