"""What decides a run: the options of `minidl train`, checked, completed, and found again in a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minidl import data, kernels
from minidl.cli.catalogue import MODELS
from minidl.cluster.collectives import ALL_REDUCE
from minidl.cluster.engines.processes.shared_page import MAX_NODES
from minidl.data.checks import one_of
from minidl.parallel import Checkpoint, CheckpointError

TYPES: dict[str, type | tuple[type, ...]] = {
    "model": str,
    "data": str,
    "nodes": int,
    "batch_size": int,
    "epochs": int,
    "lr": (int, float),
    "lr_decay": (int, float),
    "seed": int,
    "kernels": str,
    "algorithm": str,
    "bucket_mb": (int, float),
}
"""The options that a checkpoint keeps, and their types."""

Options = dict[str, Any]


def completed(options: Options) -> Options:
    """The options, with the model's own values where None was given; ValueError for a name or number that is not
    one."""
    one_of("model", options["model"], MODELS)
    one_of("data set", options["data"], data.NAMES)
    one_of("algorithm", options["algorithm"], ("auto", *ALL_REDUCE))
    recipe = MODELS[options["model"]]
    defaults: Options = {"epochs": recipe.epochs, "lr": recipe.lr, "lr_decay": recipe.lr_decay}
    if options["kernels"] is None:
        defaults["kernels"] = kernels.active()
    options = {name: defaults[name] if value is None else value for name, value in options.items()}
    one_of("set of kernels", options["kernels"], kernels.NAMES)
    for name, least in (("nodes", 1), ("batch_size", 1), ("epochs", 1), ("seed", 0)):
        if options[name] < least:
            raise ValueError(f"{flag(name)} must be at least {least}, got {options[name]}")
    for name in ("lr", "lr_decay", "bucket_mb"):
        if not 0 < options[name] < float("inf"):
            raise ValueError(f"{flag(name)} must be a number above 0, got {options[name]}")
    if options["nodes"] > MAX_NODES:
        raise ValueError(f"at most {MAX_NODES} nodes run on one machine, got --nodes {options['nodes']}")
    if options["batch_size"] < options["nodes"]:
        raise ValueError(
            f"a minibatch of {options['batch_size']} samples cannot be shared by {options['nodes']} nodes: "
            f"give --batch-size {options['nodes']} or more"
        )
    return options


def of_checkpoint(path: Path, given: Options) -> Options:
    """The options that the run of this checkpoint was started with, and the number of epochs that is `given` now.

    given: what the command line says explicitly. Raises CheckpointError if it says something else than the checkpoint,
    or if that is missing, damaged, not of `minidl train`, or at the last epoch already.
    """
    checkpoint = Checkpoint.load(path)
    options = dict(checkpoint.config)
    if options.keys() != TYPES.keys() or not all(isinstance(options[name], kind) for name, kind in TYPES.items()):
        raise CheckpointError(f"{path} was not written by `minidl train`: it does not hold the options of a run")
    for name in given.keys() - {"epochs"}:
        if given[name] != options[name]:
            raise CheckpointError(
                f"{path} is of a run with {flag(name)} {options[name]}, not {given[name]}: only --epochs may change; "
                f"leave out {flag(name)}, or start a new run"
            )
    options["epochs"] = given.get("epochs", options["epochs"])
    if checkpoint.epoch >= options["epochs"]:
        raise CheckpointError(
            f"{path} has {checkpoint.epoch} epochs already: give --epochs {checkpoint.epoch + 1} or more"
        )
    return options


def flag(name: str) -> str:
    """The option as it is typed: --batch-size for batch_size."""
    return f"--{name.replace('_', '-')}"
