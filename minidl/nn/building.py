"""building: make all modules and names of a model, but only the arrays that this rank holds."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from minidl.kernels import Array
from minidl.nn.module import Module
from minidl.nn.parameter import Buffer, Parameter, on_new
from minidl.nn.placeholder import Absent, Placeholder, absent, become_placeholder, content
from minidl.tensor import Tensor


@contextmanager
def building(part: Callable[[Any], Any]) -> Iterator[None]:
    """Within the block, make a model whose parameters have no values; at its end, make those of the part.

    Parameters
        part    called with the model at the end of the block; returns what this rank holds: modules, stages and
                parameters, one or an iterable of them. A module or stage stands for its parameters and buffers

    Afterwards `parameter.held` says whether this rank holds it. The others keep their names, shapes and types but have
    no values: they never get a gradient, optimizers leave them alone, `state_dict()` and `load_state_dict()` leave them
    out, and an operation with one of them raises RuntimeError. Buffers that are not held lose their values too.

    A held parameter has the bits that it has in the whole model: each init call takes its own generator within the
    block, and the last one is repeated when the block ends. The parameters are made one at a time, so that no more
    memory is taken than for the part and one parameter. A Parameter made from an array of unequal numbers keeps that
    array until the block ends. `parameter.cut(shard)`, in `part`, keeps this rank's shard of it.

    Raises
        RuntimeError    values are read within the block; blocks are nested
        ValueError      not exactly one model was made in the block; the part is not of this model
        TypeError       the part contains something else

    >>> from minidl import nn
    >>> with nn.building(lambda model: model[:2]):
    ...     model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> [name for name, parameter in model.named_parameters() if parameter.held]
    ['0.weight', '0.bias']
    >>> model
    Sequential(
      (0): Linear(in_features=4, out_features=3, bias=True)
      (1): ReLU()
      (2): Linear(in_features=3, out_features=2, bias=True)
    )
    """
    if on_new.get() is not None:
        raise RuntimeError("nn.building: blocks cannot be nested: build one model after the other")
    block = Block()
    token = on_new.set(block)
    try:
        yield
        model = block.model()
        held = _tensors_of(part(model))
        names: dict[Tensor, str] = {tensor: name for name, tensor in model.named_parameters()}
        names |= {tensor: name for name, tensor in model.named_buffers()}
        for tensor in held:
            if tensor not in names:
                raise ValueError(
                    f"nn.building: the part has a {type(tensor).__name__} of shape {tensor.shape} that is none of the "
                    "model's: take it from the model that the function gets"
                )
    except BaseException:
        block.close({})
        raise
    finally:
        on_new.reset(token)
    block.close(names, held)
    for buffer in model.buffers():
        if buffer not in held:
            become_placeholder(buffer, absent(buffer.shape, buffer.dtype, None, names[buffer]))
    for tensor in held:
        if isinstance(tensor, Placeholder):
            tensor.make()


class Block:
    """What was made in an open block: its modules and the tensors without values."""

    def __init__(self) -> None:
        self.modules: list[weakref.ref[Module]] = []
        self.tensors: list[weakref.ref[Tensor]] = []
        # By the id of an array that a parameter was made of: the array, and the Absent in its place
        self._given: dict[int, tuple[weakref.ref[Array], weakref.ref[Absent]]] = {}

    def __call__(self, new: Module | Tensor) -> None:
        """Note a new module or parameter; the parameter becomes a placeholder that remembers what it was made from."""
        if isinstance(new, Module):
            self.modules.append(weakref.ref(new))
            return
        if not isinstance(new, Placeholder):
            become_placeholder(new, self._absent(new.data))
        self.tensors.append(weakref.ref(new))

    def _absent(self, array: Array) -> Absent:
        """The array without values; the same one for an array that is given again, so that its users go on sharing."""
        if id(array) in self._given:
            given, known = (reference() for reference in self._given[id(array)])
            if given is array and isinstance(known, Absent):
                return known
        made = absent(array.shape, array.dtype, (content(array),))
        self._given[id(array)] = weakref.ref(array), weakref.ref(made)
        return made

    def model(self) -> Module:
        """Return the one module that was made in the block and that no other one contains."""
        if len(self._roots()) > 1:
            gc.collect()  # of modules that refer to themselves and are not in use
        roots = self._roots()
        if len(roots) != 1:
            kinds = ", ".join(type(root).__name__ for root in roots) or "none"
            raise ValueError(f"nn.building: one model must be made in the block and kept, it has {kinds}")
        return roots[0]

    def _roots(self) -> list[Module]:
        made = [module for reference in self.modules if (module := reference()) is not None]
        inside = {child for module in made for child in module.children()}
        return [module for module in made if module not in inside]

    def close(self, names: dict[Tensor, str], held: Iterable[Tensor] = ()) -> None:
        """Forget how the tensors that are not held are made."""
        for reference in self.tensors:
            if isinstance(tensor := reference(), Placeholder) and tensor not in held:
                tensor.close(names.get(tensor, ""))


def _tensors_of(part: Any) -> dict[Tensor, None]:
    """Return the parameters and buffers that the part names, each once, in order."""
    if isinstance(part, (Parameter, Buffer)):
        return {part: None}
    if hasattr(part, "parameters") and hasattr(part, "buffers"):
        return dict.fromkeys([*part.parameters(), *part.buffers()])
    if isinstance(part, (str, Absent)) or not isinstance(part, Iterable):
        raise TypeError(
            f"nn.building: a part consists of modules, stages and parameters, not of a {type(part).__name__}: name them"
            " as in [model.transformer.h[0], model.lm_head.weight]"
        )
    found: dict[Tensor, None] = {}
    for item in part:
        found.update(_tensors_of(item))
    return found
