"""The options of `minidl train`: checked and completed; from a file, from a checkpoint, and from a plan."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import prod
from pathlib import Path
from typing import Any

from minidl import parallel
from minidl.arguments import one_of, real_number, whole_number
from minidl.cli import components, engines, job, mpi_job, strategies
from minidl.cli.components import fits, in_words
from minidl.cli.job import Options, option_as_typed
from minidl.cli.models import MODELS, check_momentum
from minidl.cli.quantities import counted
from minidl.cluster.collectives import ALL_REDUCE
from minidl.parallel import Checkpoint, CheckpointError
from minidl.parallel.run.run_files import ENVIRONMENT
from minidl.parallel.spatial.division import grid_of

ADDED: dict[str, Any] = {
    "strategy": None,
    "on": "processes",
    "network": engines.NO_NETWORK,
    "momentum": None,
    "optimizer": None,
    "flops": None,
    "device_memory": None,
    "precision": None,
}
"""Options that checkpoints of earlier versions lack, with what those versions used (momentum: the model's own)."""

MAY_CHANGE = ("epochs", "nodes", "strategy", "algorithm", "bucket_mb", "precision", "device_memory")
"""Options that may differ in a resumed run: how long and how to train, but not what."""


def completed(options: Options) -> tuple[Options, parallel.Strategy, dict[str, float]]:
    """The options, checked, each None replaced by the model's value; the strategy; the rates among its settings.

    Raises
        ValueError  a name is unknown, a number is out of range, or two options contradict each other
    """
    text, algorithm, bucket_mb = options["strategy"], options["algorithm"], options["bucket_mb"]
    strategy, rates = (None, {}) if text is None else strategies.parse(text)
    for name, value in rates.items():
        if options[name] not in (None, value):
            raise ValueError(
                f"{option_as_typed(name)} {options[name]:g} and {name}={value:g} in --strategy: give one of them"
            )
    options = options | rates
    if options["optimizer"] is not None:
        typed = {name: options[name] for name in strategies.RATES}
        options = options | strategies.optimizer_rates(options["optimizer"], options["model"], typed)
    options = job.completed(options)
    if options["device_memory"] == engines.NO_MEMORY:
        options = options | {"device_memory": None}
    if options["optimizer"] is None:
        check_momentum(options["model"], options["momentum"])
    if options["flops"] is not None:
        if options["on"] != "simulation":
            raise ValueError("--flops is the speed of a simulated node: leave it out, or give --on simulation")
        engines.simulated_node(options["flops"])
    if options["device_memory"] is not None:
        if options["on"] != "simulation":
            raise ValueError("--device-memory is that of a simulated node: leave it out, or give --on simulation")
        engines.memory_of(options["device_memory"])
    elif options["on"] == "simulation" and getattr(strategy, "offload", None) is not None:
        raise ValueError(
            "offload needs a host behind the device: give --device-memory SIZE@LINK, such as "
            "--device-memory 2MB@10us/16GB"
        )
    one_of("--algorithm", algorithm, ("auto", *ALL_REDUCE))
    real_number("--bucket-mb", bucket_mb, above=0)
    engines.check_network("--network", options["network"], options["on"])
    if strategy is None:
        several = parallel.Synchronous(bucket_mb=bucket_mb, algorithm=algorithm)
        strategy = parallel.Serial() if options["nodes"] == 1 else several
    elif (algorithm, bucket_mb) != ("auto", 1.0):
        raise ValueError(
            "--algorithm and --bucket-mb are for runs without --strategy; write them as its settings: "
            "--strategy synchronous:algorithm=ring,bucket_mb=0.5"
        )
    if options["device_memory"] is not None and not strategy.counts_device:
        raise ValueError(
            f"--device-memory: {type(strategy).__name__} does not count the bytes of a device: give --strategy "
            f"sharded, or --device-memory {engines.NO_MEMORY}"
        )
    engines.check(options["on"], options["nodes"], strategy.servers)
    if not strategy.is_asynchronous and not isinstance(strategy, parallel.Pipeline):  # it has fewer replicas than nodes
        job.check_minibatch(options)
    return options, strategy, rates


def nodes_by_mpiexec(options: Options) -> int:
    """The nodes of a run without --nodes: the ranks that mpiexec has started, less the strategy's servers; or 1."""
    servers = strategies.parse(options["strategy"])[0].servers if options["strategy"] is not None else 0
    return mpi_job.nodes_by_mpiexec(servers) or int(options["nodes"])


def of_checkpoint(path: Path, explicit: Options, types: dict[str, Any]) -> Options:
    """The options of the run that wrote the checkpoint, with the epochs, nodes and strategy that are asked for now.

    Parameters
        explicit  the options given on the command line
        types     names and types of all options that a checkpoint keeps

    Raises
        CheckpointError  the checkpoint is missing, damaged, not written by `minidl train`, or already at the last
                         epoch; that run's strategy cannot be resumed; or an explicit option that is not in
                         `MAY_CHANGE` differs from that run's
    """
    checkpoint = Checkpoint.load(path)
    options = ADDED | checkpoint.config
    known_by = options.pop(job.FINGERPRINT, None)
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
    if Path(options["data"]).exists():
        job.check_unchanged({**options, job.FINGERPRINT: known_by})
    if options["strategy"] is not None and not strategies.parse(options["strategy"])[0].is_resumable:
        raise CheckpointError(
            f"a run of {options['strategy']} cannot go on: its checkpoint holds the model only; start a new run"
        )
    options |= {name: explicit[name] for name in MAY_CHANGE if name in explicit}
    if checkpoint.epoch >= options["epochs"]:
        epochs = counted(checkpoint.epoch, "epoch")
        raise CheckpointError(f"{path} has {epochs} already: give --epochs {checkpoint.epoch + 1} or more")
    return options


# ---- --config: a file of YAML, such as the config.json of a run, which is YAML too ----

_EXPONENTIAL = re.compile(r"(?P<digits>[+-]?\d+)(?P<fraction>\.\d*)?[eE](?P<sign>[+-]?)(?P<exponent>\d+)", re.ASCII)


def of_file(path: Path, hints: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The options in a file.

    Parameters
        hints   types of the command's options, by name
        known   names of those that a file may give; they may be written with hyphens

    Raises
        OSError     the file cannot be read
        ValueError  it is no YAML, or gives something that is no option, or a value of another type
    """
    import yaml  # here, since few runs need it

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"--config {path} is no YAML file: {' '.join(str(error).split())}") from None
    if not isinstance(found, Mapping):
        raise ValueError(f"--config {path} must hold options by name, such as: nodes: 4")
    options = {}
    for key, value in found.items():
        if key in (ENVIRONMENT, job.FINGERPRINT):
            continue
        typed = "on" if key is True else str(key)  # on is a word for true in YAML 1.1
        name = one_of(f"--config {path}: an option", typed.replace("-", "_"), sorted(known))
        if name in options:
            raise ValueError(f"--config {path}: {name} is given twice, with a hyphen and with an underscore")
        if not fits(value, hints[name]):
            number = _as_yaml(value) if fits(0.5, hints[name]) else ""
            advice = f", which YAML reads as text: write {number}" if number else ""
            raise ValueError(f"--config {path}: {typed} must be {in_words(hints[name])}, got {value!r}{advice}")
        options[name] = value
    return options


def _as_yaml(text: object) -> str:
    """How YAML 1.1 wants the number to be written: with a point, and a sign in its exponent; "" for anything else."""
    match = _EXPONENTIAL.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return ""
    return f"{match['digits']}{match['fraction'] or '.0'}e{match['sign'] or '+'}{match['exponent']}"


# ---- --plan ----

AXES = ("dp", "ep", "pp", "spatial", "tp")


def with_plan(plan: str, options: Mapping[str, Any], asked: Collection[str]) -> dict[str, Any]:
    """The options `strategy` and `nodes` of a plan.

    asked: names of the options given on the command line. Raises ValueError if they contradict the plan. A strategy
    with workers that may be split has one for each replica of the plan.

    >>> with_plan("pp=4,dp=2,schedule=gpipe", {}, ())
    {'strategy': 'hybrid:dp=2,pp=4,tp=1,schedule=gpipe', 'nodes': 8}
    >>> with_plan("pp=4,dp=2", {"strategy": "downpour:push_every=3"}, {"strategy"})
    {'strategy': 'downpour:push_every=3,replica=hybrid(pp=4)', 'nodes': 8}
    """
    try:
        typed = components.parse("plan", f"plan:{plan}")
        is_readable = bool(typed.named) and not typed.values
    except components.UnreadableError:
        is_readable = False
    if not is_readable:
        raise ValueError(f"--plan {plan!r} is no plan: write the extent of each axis, such as pp=4,dp=2")
    nodes = 1
    for name, text in typed.named.items():
        one_of("--plan: an axis or a setting", name, dict.fromkeys((*AXES, *components.settings(parallel.Hybrid))))
        if name == "spatial":
            nodes *= prod(grid_of(f"--plan {plan}: spatial", text))
        elif name in AXES:
            extent = components.value_of("--plan", name, text, int, {})
            nodes *= whole_number(f"--plan {plan}: {name}", extent, at_least=1)
    if "nodes" in asked and options["nodes"] != nodes:
        raise ValueError(f"--plan {plan} needs {nodes} nodes, got --nodes {options['nodes']}: leave out --nodes")
    if "strategy" in asked:
        of_worker = {name: text for name, text in typed.named.items() if name != "dp"}
        return {"strategy": _with_replica(plan, options["strategy"], of_worker), "nodes": nodes}
    settings = dict.fromkeys(("dp", "pp", "tp"), "1") | typed.named
    return {"strategy": "hybrid:" + ",".join(f"{name}={text}" for name, text in settings.items()), "nodes": nodes}


def _with_replica(plan: str, text: str, of_worker: Mapping[str, str]) -> str:
    """The strategy that was typed, with workers that the settings of a plan split; as it is if there are none."""
    typed = components.parse("strategy", text)
    cls = components.find("strategy", typed.name, strategies.STRATEGIES)
    may_split = "replica" in components.settings(cls)
    if of_worker and "replica" in typed.named:
        raise ValueError(f"--plan {plan} and --strategy {text} both split the workers: leave out replica")
    if issubclass(cls, parallel.Pipeline) or (of_worker and not may_split):
        raise ValueError(
            f"--plan {plan} and --strategy {text} both say how to train: give one of them, or a strategy "
            "with servers, whose workers a plan can split, such as parameter_server"
        )
    replica = ",".join(f"{name}={value}" for name, value in of_worker.items())
    settings = [*typed.values, *(f"{name}={value}" for name, value in typed.named.items())]
    settings += [f"replica=hybrid({replica})"] * bool(replica)
    return typed.name + ":" * bool(settings) + ",".join(settings)
