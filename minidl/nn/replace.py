"""Replace layers of a model, for example by sharded versions that compute the same."""

from __future__ import annotations

from collections.abc import Callable

from minidl.nn.module import Module


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
