"""count: the parameters, activations and arithmetic of a model, by layer, without computing or allocating anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minidl import kernels
from minidl.arguments import whole_number
from minidl.kept_arrays import KeptArrays
from minidl.kernels import counting, shapes
from minidl.nn.building import building
from minidl.nn.module import Module
from minidl.nn.parameter import Buffer, Parameter
from minidl.recomputation import unchanged
from minidl.tape import Node, node_of
from minidl.tensor import Tensor

COLUMNS = ("parameters", "activations", "multiply_adds", "flops")


class LayerCount(NamedTuple):
    """What one module of a model has and does itself, without the modules inside it.

    name           in the model, "" for the model itself
    kind           its class
    shape          of its output
    parameters     numbers that are trained; a tied parameter counts where it comes first
    activations    numbers that its operations keep for backward, without parameters and the model's input, and that no
                   layer before it keeps
    multiply_adds  of its matrix products and convolutions
    flops          floating-point operations of its forward pass; a multiply-add is two
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    parameters: int
    activations: int
    multiply_adds: int
    flops: int


class ModelCount:
    """The layers of a model with what each has and does, and their sums; `print` shows a table.

    layers             a LayerCount for each module with parameters, activations or arithmetic of its own, in the order
                       in which their outputs were ready
    parameters, activations, multiply_adds, flops   sums over the layers
    parameter_bytes, activation_bytes               the memory of these numbers
    """

    def __init__(self, layers: Sequence[LayerCount], parameter_bytes: int, activation_bytes: int) -> None:
        self.layers, self.parameter_bytes, self.activation_bytes = list(layers), parameter_bytes, activation_bytes
        self.parameters, self.activations, self.multiply_adds, self.flops = (
            sum(getattr(layer, column) for layer in self.layers) for column in COLUMNS
        )

    def __repr__(self) -> str:
        rows: list[tuple[str, ...]] = [("layer", "output", "parameters", "activations", "multiply-adds", "flops")]
        for layer in self.layers:
            name = f"{layer.name} {layer.kind}".strip()
            shape = " x ".join(map(str, layer.shape))
            rows.append((name, shape, *(f"{getattr(layer, column):,}" for column in COLUMNS)))
        rows.append(("sum", "", *(f"{getattr(self, column):,}" for column in COLUMNS)))
        memory = (self.parameter_bytes, self.activation_bytes)
        rows.append(("memory", "", *(f"{nbytes / 2**20:,.1f} MiB" for nbytes in memory), "", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i < 2 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )


def count(model: Module | Callable[[], Module], x: Any) -> ModelCount:
    """Count the parameters, activations and arithmetic of one forward pass, for every layer of the model.

    Parameters
        model  a module; or a function that makes one, which then gets no values: GPT-3 takes seconds and megabytes
        x      the shape of the samples, such as (1, 3, 224, 224), which then have the parameters' type; or the samples
               themselves, such as tokens of whole numbers

    Nothing is computed: the kernels of numpy get arrays without contents (`kernels/shapes.py`). The model is left as it
    was. The conventions are those of `kernels.counted`; masked scores count, unless attention skips them (from 2**20
    scores on). Copies that numpy makes to reshape a transposed array do not count as activations.

    Raises
        TypeError      the model is neither a module nor a function that makes one
        ValueError     the function makes no module; the samples do not fit the model
        RuntimeError   a layer reads the numbers that it has computed, to decide by them

    >>> from minidl import nn
    >>> nn.count(nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 10)), (32, 20))
    layer     output   parameters  activations  multiply-adds   flops
    0 Linear  32 x 50       1,050            0         32,000  65,600
    1 ReLU    32 x 50           0        1,600              0   1,600
    2 Linear  32 x 10         510            0         16,000  32,320
    sum                     1,560        1,600         48,000  99,520
    memory                0.0 MiB      0.0 MiB
    """
    if not isinstance(model, Module):
        if not callable(model):
            raise TypeError(f"count: a module, or a function that makes one, expected, not {type(model).__name__}")
        with building(lambda model: []):
            model = model()
    if isinstance(x, tuple):
        shape = [whole_number("count: each length in the shape x", length, at_least=0) for length in x]
        x = Tensor(shapes.empty(shape, next((p.dtype for p in model.parameters()), np.float32)))
    elif not hasattr(x, "shape"):
        x = Tensor(x)
    watch = _Watch(model)
    token = counting.active.set(watch.counter)
    try:
        with without_contents(model) as tensors, watch.called([x, *tensors]):
            nodes = nodes_of(model(x))
    finally:
        counting.active.reset(token)
        counting.in_use.set(None)
    return watch.count(nodes)


class _Watch:
    """Runs a model without contents, and notes for every module what is added between its call and its return.

    Work within a call that it makes belongs to the module called.
    """

    def __init__(self, model: Module) -> None:
        self.counter = counting.Counter()
        self._model = model
        self._names = {module: name for name, module in model.named_modules()}
        self._inside = [(0, 0)]  # for each open call, the multiply-adds and flops of the calls that it has made
        self._found: dict[Module, tuple[tuple[int, ...], int, int]] = {}  # shape of the output, multiply-adds, flops
        self._first: dict[int, Module] = {}  # by the id of a kept array, the module at whose return it was found
        self._left_out: list[Any]
        self._kept: KeptArrays

    @contextmanager
    def called(self, left_out: list[Any]) -> Iterator[None]:
        """Within the block, the modules' forward functions are watched; these arrays do not count as activations."""
        self._left_out, self._kept = left_out, KeptArrays(left_out)
        own = {module: vars(module).get("forward") for module in self._names}
        for module in self._names:
            vars(module)["forward"] = partial(self._forward, module, module.forward)
        try:
            yield
        finally:
            for module, forward in own.items():
                if forward is None:
                    del vars(module)["forward"]
                else:
                    vars(module)["forward"] = forward

    def _forward(self, module: Module, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = self.counter.multiply_adds, self.counter.flops
        self._inside.append((0, 0))
        result = forward(*args, **kwargs)
        inside = self._inside.pop()
        added = self.counter.multiply_adds - before[0], self.counter.flops - before[1]
        shape, products, flops = self._found.get(module, (next(map(np.shape, _flat(result)), ()), 0, 0))
        self._found[module] = shape, products + added[0] - inside[0], flops + added[1] - inside[1]
        self._inside[-1] = self._inside[-1][0] + added[0], self._inside[-1][1] + added[1]
        self._first.update((id(array), module) for array in self._kept.new(nodes_of(result)))
        return result

    def count(self, outputs: Sequence[Node]) -> ModelCount:
        """The count, with the activations that the graph of the outputs keeps: checkpointing has dropped others."""
        kept: dict[Module, int] = defaultdict(int)
        arrays = KeptArrays(self._left_out).new(outputs)
        for array in arrays:
            kept[self._first.get(id(array), self._model)] += array.size
        counted: set[Parameter] = set()
        layers = []
        for module in dict.fromkeys([*self._found, *self._names]):
            parameters = {p for p in vars(module).values() if isinstance(p, Parameter)} - counted
            counted |= parameters
            shape, *work = self._found.get(module, ((), 0, 0))
            numbers = sum(parameter.numel() for parameter in parameters), kept[module], *work
            if any(numbers):
                layers.append(LayerCount(self._names[module], type(module).__name__, shape, *numbers))
        return ModelCount(
            layers,
            sum(parameter.data.nbytes for parameter in self._model.parameters()),
            sum(array.nbytes for array in arrays),
        )


@contextmanager
def without_contents(model: Module) -> Iterator[list[Parameter | Buffer]]:
    """Within the block, the model computes shapes and types alone; yields its parameters and buffers, without contents.

    Whatever the model computes there, its random draws and running statistics are as before after the block.
    """
    made: dict[Parameter | Buffer, Parameter | Buffer] = {}
    places = [
        (vars(module), name, tensor)
        for module in model.modules()
        for name, tensor in vars(module).items()
        if isinstance(tensor, (Parameter, Buffer))
    ]
    for attributes, name, tensor in places:
        if tensor not in made:
            kind = Parameter if isinstance(tensor, Parameter) else Buffer
            made[tensor] = kind(shapes.empty(tensor.shape, tensor.dtype), requires_grad=tensor.requires_grad)
            made[tensor].shard = tensor.shard
        attributes[name] = made[tensor]
    try:
        with kernels.use("numpy"), unchanged():
            yield list(made.values())
    finally:
        for attributes, name, tensor in places:
            attributes[name] = tensor


def nodes_of(result: Any) -> list[Node]:
    """The places in the graph of a result's tensors, without leaves: what made them, not their own arrays."""
    nodes = [node_of(tensor) for tensor in _flat(result) if isinstance(tensor, Tensor)]
    return [node for node in nodes if node._vjp is not None]


def _flat(result: Any) -> list[Any]:
    return [each for item in result for each in _flat(item)] if isinstance(result, (tuple, list)) else [result]
