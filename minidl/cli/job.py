"""Check the options of `minidl train` and `minidl compare`, fill in their defaults, and build the Job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from minidl import data, kernels, optim, parallel
from minidl.arguments import one_of, real_number, whole_number
from minidl.cli import imported, models, strategies
from minidl.cli.components import HOW_TO_IMPORT
from minidl.data.own_files import fingerprint, is_path
from minidl.parallel.job import PRECISIONS

Options = dict[str, Any]

LARGE = 10.0
"""Values of samples from which scaling them is worth a hint."""

FINGERPRINT = "data_fingerprint"
"""What the configuration of a run has in addition to the options, if its data is a file or a folder."""


def completed(options: Options) -> Options:
    """Check the options of a job, and replace each None by the model's default.

    Raises
        ValueError  a name is unknown, or a number is out of range
    """
    recipe = models.recipe(options["model"])
    known = (*data.NAMES, *imported.DATA)
    if options["data"] in known or not is_path(options["data"]):
        one_of("--data", options["data"], known, hint=f"{HOW_TO_IMPORT}, or give a file")
    defaults: Options = {name: getattr(recipe, name) for name in ("epochs", "lr", "lr_decay", "momentum")}
    if options["kernels"] is None:
        defaults["kernels"] = kernels.active()
    options = options | {name: default for name, default in defaults.items() if options.get(name, 0) is None}
    one_of("--kernels", options["kernels"], kernels.NAMES)
    if options.get("precision") is not None:
        one_of("--precision", options["precision"], PRECISIONS)
    for name, least in (("nodes", 1), ("batch_size", 1), ("epochs", 1), ("seed", 0)):
        whole_number(option_as_typed(name), options[name], at_least=least)
    for name in ("lr", "lr_decay"):
        real_number(option_as_typed(name), options[name], above=0)
    return options


def check_minibatch(options: Options) -> None:
    """Raise ValueError if a minibatch has fewer samples than there are nodes."""
    if options["batch_size"] < options["nodes"]:
        raise ValueError(
            f"a minibatch of {options['batch_size']} samples cannot be shared by {options['nodes']} nodes: "
            f"give --batch-size {options['nodes']} or more"
        )


def with_fingerprint(options: Options) -> Options:
    """The configuration of a run, by which `check_unchanged` knows its data again."""
    own = options["data"] not in data.NAMES and fingerprint(options["data"])
    return options | ({FINGERPRINT: own} if own else {})


def check_unchanged(config: Mapping[str, Any]) -> None:
    """Raise DataError if the data of a run's configuration has changed: classes and scales may be others now."""
    if config.get(FINGERPRINT) not in (None, fingerprint(config["data"])):
        raise data.DataError(f"{config['data']} has changed since the run began: restore it, or train anew")


def build(options: Mapping[str, Any]) -> parallel.Job:
    """Build the Job from completed options. Raises ValueError if the model does not fit the data."""
    recipe, load = models.recipe(options["model"]), imported.loader(options["data"])
    if recipe.context is not None:
        load = partial(_in_windows, load, recipe.context)
    splits = load()
    if options["batch_size"] > len(splits.train):
        raise ValueError(
            f"--batch-size {options['batch_size']} is more than the {len(splits.train)} samples of the training set: "
            "give a smaller one"
        )
    optimizer = options.get("optimizer") or recipe.optimizer
    return parallel.Job(
        model=recipe.fit(splits),
        data=load,
        optimizer=strategies.optimizer_maker(optimizer, options["lr"], options["momentum"]),
        schedule=partial(_decay_every_epoch, factor=options["lr_decay"]),
        batch_size=options["batch_size"],
        epochs=options["epochs"],
        seed=options["seed"],
        precision=options.get("precision"),
    )


def _in_windows(load: Callable[[], data.Splits], context: int) -> data.Splits:
    """The same text in windows of `context` symbols. Raises ValueError if the data is no text."""
    splits = load()
    if not isinstance(splits.train, data.Windows) or not isinstance(splits.test, data.Windows):
        raise ValueError("gpt: context is for texts: choose --data stdlib_text or NAME.txt, or leave out context")
    if (shortest := min(len(splits.train.tokens), len(splits.test.tokens))) <= context:
        raise ValueError(
            f"gpt: a window of context={context} takes {context + 1} symbols, and the shorter of the two texts, to "
            f"train and to test, has {shortest}: give a smaller context or a longer text"
        )
    train, test = (
        data.Windows(part.tokens, context, context, part.name, part.classes) for part in (splits.train, splits.test)
    )
    return replace(splits, train=train, test=test)


def _decay_every_epoch(optimizer: optim.Optimizer, steps_per_epoch: int, factor: float) -> optim.StepLR:
    """Multiply the learning rate by `factor` after every epoch. A run can be resumed for any number of epochs."""
    return optim.StepLR(optimizer, step_size=steps_per_epoch, gamma=factor)


def read_as(splits: data.Splits) -> str:
    """What own data was read as: its classes, which may have been meant as a quantity, and values that are large."""
    x, y, names = splits.train.x, splits.train.y, splits.classes
    if x.dtype.kind in "iu":
        return f"a text of {len(names)} different symbols"
    if y.dtype.kind not in "iu":
        return f"targets of {y.dtype}"
    column = f" of the column {splits.columns[-1]}".replace("the column column", "column") if splits.columns else ""
    some = names if len(names) <= 4 else (*names[:2], "...", names[-1])
    said = f"{len(names)} classes{column}: {', '.join(some)}" if names else f"classes from 0 to {y.max()}"
    if names and all(name.removeprefix("-").isdecimal() for name in names):
        said += " (each number is a class: the model does not predict quantities)"
    if (largest := np.abs(x).max()) > LARGE:
        said += f"\nsamples have values up to {largest:g}, and are not scaled: values near 1 train better"
    return said


def decay_text(factor: float) -> str:
    """The learning-rate decay as text that follows the learning rate; "" for no decay.

    >>> decay_text(0.9), decay_text(1)
    (' (x 0.9 per epoch)', '')
    """
    return "" if factor == 1 else f" (x {factor:g} per epoch)"


def option_as_typed(name: str) -> str:
    """The option as it is typed: --batch-size for batch_size."""
    return f"--{name.replace('_', '-')}"
