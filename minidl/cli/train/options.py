"""The options of `minidl train`: checked, completed, and read again from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minidl import parallel
from minidl.arguments import one_of, real_number
from minidl.cli import engines, job, mpi_job, optimizers, strategies
from minidl.cli.job import Options, option_as_typed
from minidl.cli.models import MODELS, check_momentum
from minidl.cli.quantities import counted
from minidl.cli.value_types import fits
from minidl.cluster.collectives import ALL_REDUCE
from minidl.parallel import Checkpoint, CheckpointError

ADDED: dict[str, Any] = {
    "strategy": None,
    "on": "processes",
    "network": engines.NO_NETWORK,
    "momentum": None,
    "optimizer": None,
    "flops": None,
}
"""Options that checkpoints of earlier versions lack, with what those versions did (momentum: the model's own)."""


MAY_CHANGE = ("epochs", "nodes", "strategy", "algorithm", "bucket_mb")
"""Options that a resumed run may have otherwise: how long to train, and how, but not what."""


def completed(options: Options) -> Options:
    """Check the options, and replace each None by the model's own value.

    Raises
        ValueError  a name is unknown, a number is out of range, or two options contradict each other
    """
    options = _with_settings_of_the_strategy(options)
    if options["optimizer"] is not None:
        one_of("--model", options["model"], MODELS)
        typed = {name: options[name] for name in optimizers.RATES}
        options = options | optimizers.rates(options["optimizer"], options["model"], typed)
    options = job.completed(options)
    if options["optimizer"] is None:
        check_momentum(options["model"], options["momentum"])
    if options["flops"] is not None:
        if options["on"] != "simulation":
            raise ValueError("--flops is the speed of a simulated node: leave it out, or give --on simulation")
        engines.simulated_node(options["flops"])
    one_of("--algorithm", options["algorithm"], ("auto", *ALL_REDUCE))
    real_number("--bucket-mb", options["bucket_mb"], above=0)
    engines.check_network("--network", options["network"], options["on"])
    strategy = strategy_of(options)
    engines.check(options["on"], options["nodes"], strategy.servers)
    if not strategy.is_asynchronous and not isinstance(strategy, parallel.Pipeline):  # it has fewer replicas than nodes
        job.check_minibatch(options)
    return options


def nodes_by_mpiexec(options: Options) -> int:
    """The nodes of a run without --nodes: the ranks that mpiexec has started, less the strategy's servers; or 1."""
    servers = strategies.parse(options["strategy"])[0].servers if options["strategy"] is not None else 0
    return mpi_job.nodes_by_mpiexec(servers) or int(options["nodes"])


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
    return strategies.parse(text)[0]


def _with_settings_of_the_strategy(options: Options) -> Options:
    """The options, with the learning rate and the momentum that are typed as settings of the strategy."""
    if options["strategy"] is None:
        return options
    _, of_the_optimizer = strategies.parse(options["strategy"])
    for name, value in of_the_optimizer.items():
        if options[name] not in (None, value):
            raise ValueError(
                f"{option_as_typed(name)} {options[name]:g} and {name}={value:g} in --strategy: give one of them"
            )
    return options | of_the_optimizer


def of_checkpoint(path: Path, explicit: Options, types: dict[str, Any]) -> Options:
    """The options of the run that wrote the checkpoint, with the epochs, nodes and strategy that are asked for now.

    Parameters
        explicit  the options that stand on the command line
        types     names and types of all options that a checkpoint keeps

    Raises
        CheckpointError  the checkpoint is missing, damaged, not written by `minidl train`, or already at the last
                         epoch; that run's strategy cannot be resumed; or an explicit option differs from that run's
                         that is not in `MAY_CHANGE`
    """
    checkpoint = Checkpoint.load(path)
    options = ADDED | checkpoint.config
    if options.keys() != types.keys() or not all(fits(options[name], hint) for name, hint in types.items()):
        raise CheckpointError(f"{path} was not written by `minidl train`: it does not hold the options of a run")
    if options["momentum"] is None and options["model"] in MODELS:
        options["momentum"] = MODELS[options["model"]].momentum
    for name in explicit.keys() - set(MAY_CHANGE):
        if explicit[name] != options[name]:
            may_change = ", ".join(map(option_as_typed, MAY_CHANGE))
            raise CheckpointError(
                f"{path} is of a run with {option_as_typed(name)} {options[name]}, not {explicit[name]}: only "
                f"{may_change} may change; leave out {option_as_typed(name)}, or start a new run"
            )
    if not strategy_of(options).is_resumable:
        raise CheckpointError(
            f"a run of {options['strategy']} cannot go on: its checkpoint holds the model only; start a new run"
        )
    options |= {name: explicit[name] for name in MAY_CHANGE if name in explicit}
    if checkpoint.epoch >= options["epochs"]:
        epochs = counted(checkpoint.epoch, "epoch")
        raise CheckpointError(f"{path} has {epochs} already: give --epochs {checkpoint.epoch + 1} or more")
    return options
