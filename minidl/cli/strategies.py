"""Strategies and compressors by name: all that `minidl.parallel` and `minidl.compress` export."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from minidl import compress, optim, parallel
from minidl.arguments import real_number
from minidl.cli import calls, components
from minidl.cli.models import MODELS

STRATEGIES = components.classes(parallel, parallel.Strategy)
COMPRESSORS = components.classes(compress, compress.Compressor, (compress.Quantizer, compress.Sparse))
OF_THE_OPTIMIZER: dict[str, type] = {"lr": float, "momentum": float}
"""Settings of the optimizer, with their types. A user can type them with every strategy that does not define them."""


def parse(text: str) -> tuple[parallel.Strategy, dict[str, Any]]:
    """The strategy, and the learning rate and the momentum that are typed as its settings but are the optimizer's.

    >>> parse("serial:shards=2,lr=0.5")
    (Serial(shards=2, micro_batches=1), {'lr': 0.5})
    """
    call = calls.call_of("strategy", text)
    if ast.unparse(call.func) in COMPRESSORS:
        as_value = text.replace(":", "(", 1) + ")" * (":" in text)
        raise ValueError(f"{text} is a compressor: write synchronous:compressor={as_value}")
    cls = components.find("strategy", ast.unparse(call.func), STRATEGIES)
    own, owner = components.settings(cls), components.snake_case(cls.__name__)
    values: dict[str, Any] = {}
    for keyword in [one for one in call.keywords if one.arg in OF_THE_OPTIMIZER and one.arg not in own]:
        name = str(keyword.arg)
        if name in values:
            raise ValueError(f"{owner}: {name} is given twice")
        call.keywords.remove(keyword)
        values[name] = calls.value_of(owner, name, keyword.value, OF_THE_OPTIMIZER[name], {})
    strategy = calls.build("strategy", call, STRATEGIES, COMPRESSORS, OF_THE_OPTIMIZER)
    if "lr" in values:
        real_number(f"{text}: lr", values["lr"], above=0)
    return strategy, values


def check(text: str | None, strategy: parallel.Strategy, job: parallel.Job, nodes: int, model: str) -> None:
    """Raise ValueError if the strategy that was typed as `text` cannot train the job on `nodes` nodes.

    If plain SGD would do, the message says how to type that. `model` is the name of the job's model.
    """
    try:
        strategy.check(job, nodes)
    except ValueError as error:
        advice = ""
        with suppress(ValueError):
            strategy.check(replace(job, optimizer=partial(optim.SGD, lr=0.1)), nodes)
            is_setting = text is not None and "momentum" in parse(text)[1]
            by_sgd = [name for name, recipe in MODELS.items() if recipe.optimizer == "sgd"]
            if model not in by_sgd:
                advice = f"; {model} is trained by AdamW: choose a --model that is trained by SGD, {', '.join(by_sgd)}"
            else:
                advice = f"; here: {'momentum=0 as the setting of the strategy' if is_setting else '--momentum 0'}"
        raise ValueError(f"{error}{advice}") from error
