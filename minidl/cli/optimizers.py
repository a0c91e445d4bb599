"""Optimizers by name, with settings: `--optimizer adam:lr=0.001` or `sgd:momentum=0.9,nesterov=true`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minidl import nn, optim
from minidl.cli import calls, components
from minidl.cli.models import MODELS

OPTIMIZERS = {name.replace("_", ""): cls for name, cls in components.classes(optim, optim.Optimizer).items()}
RATES = ("lr", "momentum")  # settings that are options of their own too


def parse(text: str) -> tuple[type[optim.Optimizer], dict[str, Any]]:
    """The class, and the settings that are typed.

    Raises
        ValueError  an unknown name or setting, or a value of another type

    >>> parse("sgd:momentum=0.9,nesterov=true")
    (<class 'minidl.optim.sgd.SGD'>, {'momentum': 0.9, 'nesterov': True})
    """
    call = calls.call_of("optimizer", text)
    cls: type[optim.Optimizer] = components.find("--optimizer", ast.unparse(call.func), OPTIMIZERS, hint="")
    name = components.snake_case(cls.__name__)
    own = {one: parameter.replace(default=None) for one, parameter in settings(cls).items()}  # none must be typed
    values = {
        setting: calls.value_of(name, setting, node, own[setting].annotation, {})
        for setting, node in calls.arguments(name, call, own, ()).items()
    }
    return cls, values


def settings(cls: type[optim.Optimizer]) -> dict[str, inspect.Parameter]:
    """The optimizer's settings, with their types and defaults: all but the parameters that it updates."""
    return dict(list(components.settings(cls).items())[1:])


def rates(text: str, model: str, typed: dict[str, float | None]) -> dict[str, float]:
    """Learning rate and momentum of a run by the optimizer that was typed.

    The options `typed` (--lr, --momentum; None if left out) or the settings in the text give them; else they are the
    model's own if that is its optimizer, and otherwise the optimizer's defaults. Raises ValueError if option and
    setting differ, if there is no default, or if the optimizer has no momentum.
    """
    cls, values = parse(text)
    own, recipe = settings(cls), MODELS[model]
    is_recipe = cls is components.find("optimizer", recipe.optimizer, OPTIMIZERS)
    found: dict[str, float] = {}
    for name in RATES:
        option, setting = typed[name], values.get(name)
        if option is not None and setting is not None and option != setting:
            raise ValueError(f"--{name} {option:g} and {name}={setting:g} in --optimizer: give one of them")
        if name not in own:
            if option:
                raise ValueError(f"{cls.__name__} has no {name}: leave out --{name}")
            found[name] = 0.0
            continue
        default = getattr(recipe, name) if is_recipe else own[name].default
        value = next((each for each in (option, setting, default) if each is not None), None)
        if value is None or value is inspect.Parameter.empty:
            raise ValueError(f"{cls.__name__} has no usual learning rate: give --lr")
        found[name] = value
    return found


def maker(text: str, lr: float, momentum: float) -> Callable[..., optim.Optimizer]:
    """A function that makes the optimizer for parameters. ValueError if it refuses a value."""
    cls, values = parse(text)
    of_it = {name: value for name, value in (("lr", lr), ("momentum", momentum)) if name in settings(cls)}
    new: Callable[..., optim.Optimizer] = cls
    make = partial(new, **(values | of_it))
    try:
        make([nn.Parameter(np.zeros(1, np.float32))])
    except (TypeError, ValueError) as error:
        raise ValueError(f"--optimizer {text}: {error}") from error
    return make
