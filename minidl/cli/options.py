"""What decides a run: the options of `minidl train`, checked, completed, and found again in a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minidl import data, kernels, parallel
from minidl.cli import place, strategies
from minidl.cli.catalogue import MODELS, check_momentum
from minidl.cluster.collectives import ALL_REDUCE
from minidl.data.checks import one_of
from minidl.parallel import Checkpoint, CheckpointError

TYPES: dict[str, type | tuple[type, ...]] = {
    "model": str,
    "data": str,
    "nodes": int,
    "batch_size": int,
    "epochs": int,
    "lr": (int, float),
    "momentum": (int, float),
    "lr_decay": (int, float),
    "seed": int,
    "kernels": str,
    "algorithm": str,
    "bucket_mb": (int, float),
    "strategy": (str, type(None)),
    "on": str,
    "network": str,
}
"""The options that a checkpoint keeps, and their types."""

ADDED: dict[str, Any] = {"strategy": None, "on": "processes", "network": place.NO_NETWORK, "momentum": None}
"""What holds for the checkpoints of former versions, which lack these; None: the model's own."""

Options = dict[str, Any]


def completed(options: Options) -> Options:
    """The options, with the model's own values where None was given; ValueError for a name or number that is not
    one."""
    options = completed_job(_with_settings_of_the_strategy(options))
    check_momentum(options["model"], options["momentum"])
    one_of("algorithm", options["algorithm"], ("auto", *ALL_REDUCE))
    _check_above_0(options, "bucket_mb")
    place.network_of(options["network"])
    strategy = strategy_of(options)
    place.check(options["on"], options["nodes"], strategy.servers)
    if not strategy.is_asynchronous:
        check_minibatch(options)
    return options


def completed_job(options: Options) -> Options:
    """The options, those of them checked and completed that say what is trained, and on how many nodes."""
    one_of("model", options["model"], MODELS)
    one_of("data set", options["data"], data.NAMES)
    recipe = MODELS[options["model"]]
    defaults: Options = {name: getattr(recipe, name) for name in ("epochs", "lr", "lr_decay", "momentum")}
    if options["kernels"] is None:
        defaults["kernels"] = kernels.active()
    options = options | {name: default for name, default in defaults.items() if options.get(name, 0) is None}
    one_of("set of kernels", options["kernels"], kernels.NAMES)
    for name, least in (("nodes", 1), ("batch_size", 1), ("epochs", 1), ("seed", 0)):
        if options[name] < least:
            raise ValueError(f"{flag(name)} must be at least {least}, got {options[name]}")
    _check_above_0(options, "lr", "lr_decay")
    return options


def check_minibatch(options: Options) -> None:
    """Raise ValueError if the minibatch has no sample for some node."""
    if options["batch_size"] < options["nodes"]:
        raise ValueError(
            f"a minibatch of {options['batch_size']} samples cannot be shared by {options['nodes']} nodes: "
            f"give --batch-size {options['nodes']} or more"
        )


def strategy_of(options: Options) -> parallel.Strategy:
    """The strategy that the options name; without a name, Synchronous on several nodes and Serial on one."""
    text, algorithm, bucket_mb = options["strategy"], options["algorithm"], options["bucket_mb"]
    if text is None and options["nodes"] == 1:
        return parallel.Serial()
    if text is None:
        return parallel.Synchronous(bucket_mb=bucket_mb, algorithm=algorithm)
    if (algorithm, bucket_mb) != ("auto", 1.0):
        raise ValueError(
            "--algorithm and --bucket-mb are for runs without --strategy; write them as its settings: "
            "--strategy synchronous:algorithm=ring,bucket_mb=0.5"
        )
    return strategies.parse_with(text, strategies.OF_THE_OPTIMIZER)[0]


def _with_settings_of_the_strategy(options: Options) -> Options:
    """The options, with the learning rate and the momentum that are typed as settings of the strategy."""
    if options["strategy"] is None:
        return options
    _, own = strategies.parse_with(options["strategy"], strategies.OF_THE_OPTIMIZER)
    if own.get("lr", 1) <= 0:
        raise ValueError(f"{options['strategy']}: lr must be a number above 0, got {own['lr']}")
    for name, value in own.items():
        if options[name] not in (None, value):
            raise ValueError(f"{flag(name)} {options[name]:g} and {name}={value:g} in --strategy: give one of them")
    return options | own


def _check_above_0(options: Options, *names: str) -> None:
    for name in names:
        if not 0 < options[name] < float("inf"):
            raise ValueError(f"{flag(name)} must be a number above 0, got {options[name]}")


def of_checkpoint(path: Path, given: Options) -> Options:
    """The options that the run of this checkpoint was started with, and the number of epochs that is `given` now.

    given: what the command line says explicitly. Raises CheckpointError if it says something else than the checkpoint,
    or if that is missing, damaged, not of `minidl train`, or at the last epoch already.
    """
    checkpoint = Checkpoint.load(path)
    options = ADDED | checkpoint.config
    if options["momentum"] is None and options.get("model") in MODELS:
        options["momentum"] = MODELS[options["model"]].momentum
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
