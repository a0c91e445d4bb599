"""Put other layers (`replace_layers`), or for a while other weights (`using`), in the place of a model's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.tensor import Tensor
from minidl.tensor.gradients import accumulate


def replace_layers(model: Module, rule: Callable[[str, Module], Module | None]) -> Module:
    """Replace modules of the model by those that `rule` returns, in place; return the model.

    Parameters
        rule  function `(name, module)` of a module's name in the model and the module, called once for each: the module
              to put in its place under all its names, or None to keep it and look at its children

    A replacement keeps the names of the parameters, and so checkpoints, if it keeps the attributes that hold them. The
    model itself has the name ""; if it is replaced, the replacement is returned. A replacement may contain the module
    that it replaces; what it contains is not replaced again. Layers in a list or a closure, which are not attributes of
    a module, are not replaced.

    Raises
        TypeError    the rule returned something else, such as a class

    >>> from minidl import nn
    >>> model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    >>> replace_layers(model, lambda name, module: nn.ReLU() if isinstance(module, nn.Tanh) else None)
    Sequential(
      (0): Linear(in_features=4, out_features=3, bias=True)
      (1): ReLU()
    )
    """
    done: dict[Module, Module] = {}

    def replaced(name: str, module: Module) -> Module:
        if module not in done:
            replacement = rule(name, module)
            if not (replacement is None or isinstance(replacement, Module)):
                raise TypeError(
                    f"replace_layers: the rule returned {replacement!r} for {name!r}, a module or None is expected"
                )
            done[module] = module if replacement is None else replacement
            if replacement is None:
                for child_name, child in module.named_children():
                    replaced(f"{name}.{child_name}" if name else child_name, child)
                for attribute, child in list(vars(module).items()):
                    if isinstance(child, Module):
                        setattr(module, attribute, done[child])
        return done[module]

    return replaced("", model)


@contextmanager
def using(module: Module, weights: Mapping[str, Any]) -> Iterator[None]:
    """Within the block, the module computes with these weights; their gradients are added to its own parameters.

    Parameters
        module   the module to run
        weights  maps names of parameters to arrays of their shapes; other parameters keep their own. The arrays are not
                 copied: nothing may write into them until backward is done

    The block is for the forward pass; backward may come later, when the module's own weights have been updated. It adds
    the gradient to `.grad` of the module's own parameter and calls the hooks of that one. A tied parameter is named
    once, by any of its names. Within the block the module's attributes and `parameters()` are the other version;
    references that are not attributes of a module, such as in a list or a closure, keep the module's own. Buffers, such
    as batch norm's running statistics, have one version only.

    Raises
        ValueError  a name that is not a parameter's, or is of one without values on this rank; an array of another
                    shape or dtype; two arrays for a tied parameter

    >>> from minidl import Tensor, nn
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> with nn.using(layer, {"weight": layer.weight.data * 0 + 3}):
    ...     y = layer(Tensor([[2.0]]))
    >>> y.item()
    6.0
    >>> _ = layer.weight.copy_(5.0)  # an update
    >>> y.sum().backward()
    >>> layer.weight.grad
    array([[2.]], dtype=float32)
    """
    versions = _versions(module, weights)
    places = [
        (vars(owner), attribute, value)
        for owner in module.modules()
        for attribute, value in vars(owner).items()
        if isinstance(value, Parameter) and value in versions
    ]
    for attributes, attribute, parameter in places:
        attributes[attribute] = versions[parameter]
    try:
        yield
    finally:
        for attributes, attribute, parameter in places:
            attributes[attribute] = parameter


def _versions(module: Module, weights: Mapping[str, Any]) -> dict[Parameter, Parameter]:
    """Map each named parameter to the leaf that replaces it."""
    parameters = {name: p for name, p in module._named_tensors() if isinstance(p, Parameter)}
    versions: dict[Parameter, Parameter] = {}
    for name, array in weights.items():
        parameter = parameters.get(name)
        if parameter is None or not parameter.held:
            raise ValueError(
                f"nn.using: {type(module).__name__} has no values of a parameter {name!r}: name some of "
                f"{', '.join(name for name, parameter in parameters.items() if parameter.held)}"
            )
        if parameter in versions:
            raise ValueError(f"nn.using: {name!r} is tied to a parameter that was given already: name it once")
        version = Parameter(array, parameter.requires_grad)
        if (version.shape, version.dtype) != (parameter.shape, parameter.dtype):
            raise ValueError(
                f"nn.using: {name!r} has shape {parameter.shape} and dtype {parameter.dtype}, got {version.shape} and "
                f"{version.dtype}"
            )
        version.shard = parameter.shard
        if parameter.requires_grad:
            version.register_post_accumulate_grad_hook(_to(parameter))
        versions[parameter] = version
    return versions


def _to(parameter: Parameter) -> Callable[[Tensor], None]:
    """A hook that adds a version's gradient to that of the module's own parameter."""

    def add(version: Tensor) -> None:
        gradient, version.grad = version.grad, None
        assert gradient is not None
        accumulate(parameter, gradient)

    return add
