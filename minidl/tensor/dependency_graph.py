"""The tasks of forward and backward, read from the tape: what each costs, and what it has to wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minidl.kernels import counting
from minidl.tape import Node, Vjp, node_of, walk
from minidl.tensor.tensor import Tensor


class Task(NamedTuple):
    """One operation, one vector-Jacobian product, or one sum of gradients.

    kind    "forward", "backward" or "sum"
    flops   floating-point operations, counted as `kernels.counted` does; of a sum, those of all its additions
    needs   names of the tasks whose results it reads
    """

    kind: str
    flops: int
    needs: tuple[str, ...]


def dependency_graph(forward: Callable[[], Tensor | Sequence[Tensor]]) -> dict[str, Task]:
    """Run `forward()` and backward once, and return their tasks by name, every task after those that it needs.

    `forward` returns one scalar, or several whose gradients are added up. No `.grad` is changed.

    Names are "linear 1", "linear 1 backward", "sum of gradient 0": operations are numbered in the order of execution,
    parameters in the order of their first use. A sum of k gradients is one task with k needs, since its additions may
    be done in any order.

    Raises RuntimeError if nothing that `forward` returns requires a gradient.

    >>> from minidl import Tensor, dependency_graph
    >>> w = Tensor([1.0, 2.0], requires_grad=True)
    >>> for name, task in dependency_graph(lambda: [(w * 3.0).sum(), w.sum()]).items():
    ...     print(f"{name}: {task.flops} flops, after {', '.join(task.needs) or 'nothing'}")
    binary 0: 2 flops, after nothing
    sum 1: 2 flops, after binary 0
    sum 2: 2 flops, after nothing
    sum 2 backward: 0 flops, after sum 2
    sum 1 backward: 0 flops, after sum 1
    binary 0 backward: 2 flops, after binary 0, sum 1 backward
    sum of gradient 0: 2 flops, after sum 2 backward, binary 0 backward
    """
    log = Log()
    token = counting.active.set(log)
    counting.in_use.set(None)
    try:
        result = forward()
        outputs = [result] if isinstance(result, Tensor) else list(result)
        nodes = _recorded(outputs)
        vjps = [node._vjp for node in nodes]
        parents = [node._parents for node in nodes]
        walk(outputs, [None] * len(outputs), None, False, lambda leaf, gradient: None)
    finally:
        counting.active.reset(token)
        counting.in_use.set(None)
    names = {node: f"{operation_name(vjp)} {i}" for i, (node, vjp) in enumerate(zip(nodes, vjps, strict=True))}
    leaves: dict[Node, None] = {}
    tasks: dict[str, Task] = {}
    for node, above in zip(nodes, parents, strict=True):
        needs = dict.fromkeys(names[parent] for parent in above if parent in names)
        tasks[names[node]] = Task("forward", log.forward[node._sequence], tuple(needs))
        leaves.update(dict.fromkeys(parent for parent in above if parent._vjp is None and parent._requires_grad))
    received: dict[Node, list[str]] = {node: [] for node in (*nodes, *leaves)}
    for node, vjp, above in reversed(list(zip(nodes, vjps, parents, strict=True))):
        name = f"{names[node]} backward"
        size = log.sizes[node._sequence]
        gradient = _sum(tasks, f"sum of gradients of {names[node]}", received[node], size)
        tasks[name] = Task("backward", log.backward[id(vjp)], (names[node], *gradient))
        for parent in above:
            if parent in received:
                received[parent].append(name)
    for i, leaf in enumerate(leaves):
        _sum(tasks, f"sum of gradient {i}", received[leaf], leaf._data.size)
    return tasks


def depth(outputs: Tensor | Sequence[Tensor]) -> int:
    """The number of operations on the longest path to the outputs, which follow each other on any number of cores.

    A recurrent layer's depth grows with the sequence, that of attention does not. An operation that computes several
    steps, as `F.lstm` does, counts them all. Operations without a gradient are not on the tape, and do not count.

    >>> from minidl import Tensor, depth, nn
    >>> layer, attention = nn.LSTM(4, 4), nn.MultiheadAttention(4, 2)
    >>> for length in (5, 50):
    ...     x = Tensor([[[0.1, 0.2, 0.3, 0.4]]] * length)
    ...     print(depth(layer(x)[0]), depth(attention(x, x, x)[0]))
    6 12
    51 12
    """
    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    if outputs and all(tensor.is_leaf and tensor.requires_grad for tensor in outputs):
        return 0
    longest: dict[Node, int] = {}
    for node in _recorded(outputs):
        before = max((longest.get(parent, 0) for parent in node._parents), default=0)
        longest[node] = before + getattr(node._vjp, "depth", 1)
    return max(longest.values())


class Log(counting.Counter):
    """Counts, and keeps the flops of each operation and of each vector-Jacobian product."""

    def __init__(self) -> None:
        super().__init__()
        self.forward: dict[int, int] = {}  # key: the operation's position on the tape
        self.sizes: dict[int, int] = {}  # elements of its output; same key
        self.backward: dict[int, int] = {}  # key: id of the vjp
        self._before = 0

    def operation(self, out: Any, inputs: Sequence[Any], moves: bool, made_at: int) -> None:
        super().operation(out, inputs, moves, made_at)
        self.forward[made_at], self.sizes[made_at] = self._since(), out.size

    def vjp(self, vjp: Vjp, g: Any, needs: Sequence[bool]) -> Sequence[Any]:
        self._since()  # additions of gradients before this call
        gradients = super().vjp(vjp, g, needs)
        self.backward[id(vjp)] = self._since()
        return gradients

    def _since(self) -> int:
        """The flops since the last call."""
        flops, self._before = self.flops - self._before, self.flops
        return flops


def _recorded(outputs: Sequence[Node]) -> list[Node]:
    """The nodes that the outputs were computed from, in the order of execution."""
    found = dict.fromkeys(node for node in map(node_of, outputs) if node._vjp is not None)
    if not found:
        raise RuntimeError("the outputs do not require a gradient: nothing about them is on the tape")
    nodes = list(found)
    for node in nodes:  # the list grows while it is read
        fresh = [parent for parent in dict.fromkeys(node._parents) if parent._vjp is not None and parent not in found]
        found.update(dict.fromkeys(fresh))
        nodes += fresh
    return sorted(nodes, key=lambda node: node._sequence)


def operation_name(vjp: Vjp | None) -> str:
    """Name of the function that recorded the node; if that is private, of its module."""
    name = str(getattr(vjp, "__qualname__", "operation")).partition(".")[0]
    return str(getattr(vjp, "__module__", name)).rpartition(".")[2] if name.startswith("_") else name


def _sum(tasks: dict[str, Task], name: str, needs: list[str], size: int) -> tuple[str, ...]:
    """Return the tasks that complete a gradient; if it has several terms, add a task that sums them."""
    if len(needs) < 2:
        return tuple(needs)
    tasks[name] = Task("sum", (len(needs) - 1) * size, tuple(needs))
    return (name,)
