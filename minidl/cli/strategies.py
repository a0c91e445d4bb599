"""Strategies, compressors and optimizers by name: all that `minidl.parallel`, `compress` and `optim` export."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from minidl import compress, nn, optim, parallel
from minidl.arguments import real_number
from minidl.cli import components
from minidl.cli.models import MODELS, name_of, recipe
from minidl.parallel import tensor
from minidl.parallel.pipeline import read_csv

STRATEGIES = components.classes(parallel, parallel.Strategy)
COMPRESSORS = components.classes(compress, compress.Compressor, (compress.Quantizer, compress.Sparse))
LAYERS = components.classes(tensor, nn.Module)
OPTIMIZERS = {name.replace("_", ""): cls for name, cls in components.classes(optim, optim.Optimizer).items()}
RATES = ("lr", "momentum")
"""Settings of the optimizer. A user can type them with every strategy that does not define them, and as options."""


def parse(text: str, kind: str = "strategy") -> tuple[parallel.Strategy, dict[str, float]]:
    """The strategy, and the learning rate and the momentum that are typed as its settings but are the optimizer's.

    kind: what the text stands for, for messages. A pipeline's schedule may be a CSV file, and the layout of hybrid maps
    layers to kinds of divided layers, such as {fc*: column_linear}.

    Raises
        OSError     the file of a schedule cannot be read
        ValueError  a name, a setting or a value that there is not, a schedule that cannot be executed

    >>> parse("serial:shards=2,lr=0.5")
    (Serial(shards=2, micro_batches=1), {'lr': 0.5})
    """
    typed = components.parse(kind, text)
    if typed.name in COMPRESSORS and kind == "strategy":
        as_value = text.replace(":", "(", 1) + ")" * (":" in text)
        raise ValueError(f"{text} is a compressor: write synchronous:compressor={as_value}")
    cls = components.find(kind, typed.name, STRATEGIES)
    own, owner = components.settings(cls), components.snake_case(cls.__name__)
    rates = {
        name: components.value_of(owner, name, typed.named.pop(name), float, {})
        for name in RATES
        if name in typed.named and name not in own
    }
    given: dict[str, Any] = {}
    if "replica" in own and (replica := typed.named.pop("replica", "none")).lower() != "none":
        given["replica"], _ = parse(replica, f"{owner}: replica")
    if issubclass(cls, parallel.Pipeline):
        if re.search(r"/|\.[A-Za-z]\w*['\"]?$", typed.named.get("schedule", "")):  # a file: no name is like this
            given["schedule"] = read_csv(typed.named.pop("schedule").strip("'\""))
        if "layout" in own and "layout" in typed.named:
            given["layout"] = _layout(typed.named.pop("layout"))
    strategy = components.build("strategy", typed, STRATEGIES, {**COMPRESSORS, "offload": parallel.Offload}, RATES)
    strategy = replace(strategy, **given) if given else strategy
    if "lr" in rates:
        real_number(f"{text}: lr", rates["lr"], above=0)
    return strategy, rates


def _layout(text: str) -> dict[str, Callable[..., nn.Module]]:
    """The layout that is typed as {layers.0: column_linear, *.fc: column_linear(gather=always)}.

    Raises ValueError for a text that is no layout, and for a layer or a setting that there is not.
    """
    rules = _RULE.findall(text[1:-1])
    if not rules or "{" + "".join(whole for whole, *_ in rules) + "}" != text:
        raise ValueError(f"hybrid: layout must be {{layer: kind, ...}}, such as {{fc1: column_linear}}, got {text}")
    return {name: _divided(name, kind) for _, name, kind in rules}


_RULE = re.compile(r"""(\s*['"]?([\w.*?-]+)['"]?\s*:\s*([\w-]+(?:\([^()]*\))?)\s*(?:,|$))""")


def _divided(layer: str, kind: str) -> Callable[..., nn.Module]:
    """The function that makes the divided layer of a rule of a layout."""
    typed = components.parse(f"hybrid: layout: {layer}", kind)
    cls = components.find(f"hybrid: layout: {layer}", typed.name, LAYERS, hint="")
    settings = dict(list(components.settings(cls).items())[2:])  # without the layer and the communicator
    values = components.values_of(cls, typed, settings, {})
    return partial(cls, **values) if values else cls


def check(strategy: parallel.Strategy, rates: Mapping[str, float], job: parallel.Job, nodes: int, model: str) -> None:
    """Raise ValueError if the strategy cannot train the job on `nodes` nodes.

    If plain SGD would do, the message says how to type that. `rates`: those that were typed as settings of the
    strategy; `model`: the name of the job's model.
    """
    try:
        strategy.check(job, nodes)
    except ValueError as error:
        advice = ""
        with suppress(ValueError):
            strategy.check(replace(job, optimizer=partial(optim.SGD, lr=0.1)), nodes)
            by_sgd = [name for name, each in MODELS.items() if each.optimizer == "sgd"]
            if name_of(model) not in by_sgd:
                advice = f"; {model} is trained by AdamW: choose a --model that is trained by SGD, {', '.join(by_sgd)}"
            elif type(job.build_optimizer(job.build_model())) is not optim.SGD:
                advice = "; here: --optimizer sgd:momentum=0"
            else:
                here = "momentum=0 as the setting of the strategy" if "momentum" in rates else "--momentum 0"
                advice = f"; here: {here}"
        raise ValueError(f"{error}{advice}") from error


# ---- optimizers ----


def parse_optimizer(text: str) -> tuple[type[optim.Optimizer], dict[str, Any]]:
    """The class, and the settings that are typed.

    Raises
        ValueError  an unknown name or setting, or a value of another type

    >>> parse_optimizer("sgd:momentum=0.9,nesterov=true")
    (<class 'minidl.optim.sgd.SGD'>, {'momentum': 0.9, 'nesterov': True})
    """
    typed = components.parse("optimizer", text)
    cls: type[optim.Optimizer] = components.find("--optimizer", typed.name, OPTIMIZERS, hint="")
    own = {name: one.replace(default=None) for name, one in _settings(cls).items()}  # none must be typed
    return cls, components.values_of(cls, typed, own, {})


def _settings(cls: type[optim.Optimizer]) -> dict[str, inspect.Parameter]:
    """The optimizer's settings, with their types and defaults: all but the parameters that it updates."""
    return dict(list(components.settings(cls).items())[1:])


def optimizer_rates(text: str, model: str, typed: Mapping[str, float | None]) -> dict[str, float]:
    """Learning rate and momentum of a run by the optimizer that was typed.

    The options `typed` (--lr, --momentum; None if left out) or the settings in the text give them; else they are the
    model's own if that is its optimizer, and otherwise the optimizer's defaults. Raises ValueError if option and
    setting differ, if there is no default, or if the optimizer has no momentum.
    """
    cls, values = parse_optimizer(text)
    own, usual = _settings(cls), recipe(model)
    is_usual = cls is components.find("optimizer", usual.optimizer, OPTIMIZERS)
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
        default = getattr(usual, name) if is_usual else own[name].default
        value = next((each for each in (option, setting, default) if each is not None), None)
        if value is None or value is inspect.Parameter.empty:
            raise ValueError(f"{cls.__name__} has no usual learning rate: give --lr")
        found[name] = value
    return found


def optimizer_maker(text: str, lr: float, momentum: float) -> Callable[..., optim.Optimizer]:
    """A function that makes the optimizer for parameters. ValueError if it refuses a value."""
    cls, values = parse_optimizer(text)
    of_it = {name: value for name, value in (("lr", lr), ("momentum", momentum)) if name in _settings(cls)}
    make: Callable[..., optim.Optimizer] = partial(cls, **(values | of_it))
    try:
        make([nn.Parameter(np.zeros(1, np.float32))])
    except (TypeError, ValueError) as error:
        raise ValueError(f"--optimizer {text}: {error}") from error
    return make
