"""A run of `minidl compare`: from the command-line options to the tables and the folder; what --list prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from minidl import cluster, data, kernels, parallel
from minidl.arguments import real_number, whole_number
from minidl.cli import components, engines, imported, job, mpi_job, run_folder, strategies
from minidl.cli.compiling import compile_kernels
from minidl.cli.display import LiveBar, results_table, say, show
from minidl.cli.job import Options, decay_text
from minidl.cli.models import MODELS, check_momentum, name_of
from minidl.cli.quantities import counted
from minidl.cli.shared_options import items, picture_formats
from minidl.parallel import Comparison
from minidl.parallel.comparison.comparison import RUNS
from minidl.parallel.comparison.entrant import Entrant
from minidl.plots.style import seconds_text

PIPED_WIDTH = 120  # columns of a table if the output is not a terminal: names of strategies may be long
DEFAULT_NETWORKS = {"simulation": "1gbe,10gbe,infiniband", "processes": "none", "mpi": "none"}
JOB = ("model", "data", "nodes", "batch_size", "epochs", "lr", "lr_decay", "seed", "kernels")
"""The options that describe the job; `Settings` has them under the same names."""


@dataclass(frozen=True)
class Settings:
    """The settings shared by all runs of a comparison.

    Parameters
        batch_size  samples of one minibatch, over all nodes
        node        speed of the simulated nodes; None: the nodes are real
        slow        maps a rank to the factor by which its computing takes longer
        seeds       runs of every strategy, with seeds seed, seed + 1, ...
        formats     formats of the picture: png, svg, pdf
        on          the engine: "simulation", "processes" or "mpi"
    """

    model: str
    data: str
    nodes: int
    batch_size: int
    epochs: int
    lr: float
    lr_decay: float
    seed: int
    kernels: str
    momentum: float
    node: cluster.Node | None
    slow: dict[int, float] = field(default_factory=dict)
    seeds: int = 1
    formats: tuple[str, ...] = ("png",)
    on: str = "simulation"

    @property
    def all_seeds(self) -> range:
        """The seeds of the runs of every strategy."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of runs.csv, the same in all rows."""
        return {
            **{name: getattr(self, name) for name in ("model", "data", "on", "lr_decay")},
            "simulated_node": "" if self.node is None else engines.node_text(self.node),
        }


def entered(text: str, settings: Settings) -> tuple[tuple[parallel.Strategy, parallel.Job], Entrant]:
    """The strategy that was typed, its job, with the rates typed as settings of the strategy, and their Entrant.

    Raises
        ValueError  the text is no strategy, or it cannot train that job
    """
    strategy, rates = strategies.parse(text)
    if settings.on == "simulation" and getattr(strategy, "offload", None) is not None:
        raise ValueError(
            f"{text}: the nodes that minidl compare simulates have no host to offload to: leave it out, give "
            "--on processes, or train with minidl train --on simulation --device-memory 2MB@10us/16GB"
        )
    try:
        check_momentum(settings.model, rates.get("momentum", settings.momentum))
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    its_job = job.build(vars(settings) | rates)
    one = Entrant.of(text, strategy, its_job, settings.nodes)
    if not (settings.on == "mpi" and one.nodes == 1):  # which trains on one process
        engines.check(settings.on, one.nodes, strategy.servers)
    try:
        strategies.check(strategy, rates, one.job, one.nodes, settings.model)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return (strategy, its_job), one


def run(options: Options) -> None:
    """Train with every strategy on every network, print progress and results, and write the folder."""
    texts = list(dict.fromkeys(text.strip() for text in options["strategies"] or [] if text.strip()))
    if not texts:
        raise ValueError("name strategies, such as --strategies synchronous local_sgd; --list shows what there is")
    of_the_job = job.completed({name: options[name] for name in JOB})
    on = options["on"]
    engines.check(on, options["nodes"])
    engines.check_deadline(options["deadline"])
    settings = Settings(
        **of_the_job,
        on=on,
        momentum=options["momentum"],
        node=_node(options),
        slow=dict(_slow(text, options["nodes"]) for text in items("--slow", options["slow"], "")),
        seeds=whole_number("--seeds", options["seeds"], at_least=1),
        formats=picture_formats(options["formats"]),
    )
    names = items("--networks", options["networks"], DEFAULT_NETWORKS[on])
    for name in names:
        engines.check_network("--networks", name, on)
    networks = {name: engines.network_of(name) for name in names}
    target, out = options["target"], options["out"]
    if target is not None:
        real_number("--target", target, above=0, at_most=1)

    kernels.use(settings.kernels)
    all_entered = mpi_job.on_all_ranks(lambda: [entered(text, settings) for text in texts], on)
    jobs, entrants = [job for job, _ in all_entered], [entrant for _, entrant in all_entered]
    for one in entrants:
        one.check_networks(networks.values())
    folder = cluster.once(partial(_folder, out, f"compare-{name_of(settings.model)}-{Path(settings.data).stem}"), on)
    is_writer = cluster.is_first(on)
    title = title_of(settings, entrants, is_emulated=on == "processes" and any(networks.values()))
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    for line in filter(None, (options["title"], title)):
        say(console, line)
    if settings.data not in data.NAMES:
        say(console, job.read_as(entrants[0].job.build_data()))
    try:
        compile_kernels(console, on, name_of(settings.model))
        with ComparisonProgress(console, len(texts) * len(networks) * settings.seeds, settings.seeds) as progress:
            comparison = parallel.compare(
                jobs[0][1],
                dict(zip(texts, jobs, strict=True)),
                nodes=settings.nodes,
                on=engines.engine_of(on, settings.node, trace="full" if options["html"] else "ledger"),
                networks=networks,
                seeds=settings.seeds,
                target=target,
                slow=settings.slow,
                deadline=options["deadline"],
                folder=folder,
                formats=settings.formats,
                progress=progress,
                title=options["title"] or title,
                settings=settings.columns,
                keep_traces=options["html"],
            )
    except (KeyboardInterrupt, SystemExit, cluster.ClusterError):
        if is_writer:
            say(console, run_folder.what_is_left(folder))
        raise
    if not is_writer:
        return
    for table in tables(comparison, options["title"]):
        show(console, table)
    say(console, run_folder.contents(folder))


def _folder(out: Path | None, name: str) -> Path:
    """Make the folder; ValueError if it holds a comparison already."""
    if out is not None and (out / RUNS).exists():
        raise ValueError(f"{out} holds a comparison already: choose another --out")
    return run_folder.prepare(out, name)


def _node(options: Options) -> cluster.Node | None:
    if options["on"] == "simulation":
        return engines.simulated_node(options["flops"], options["memory"], options["jitter"])
    for name, default in (("flops", engines.FLOPS_PER_S), ("memory", engines.BYTES_PER_S), ("jitter", 0.0)):
        if options[name] != default:
            raise ValueError(f"--{name} is for simulated nodes: leave it out, or give --on simulation")
    return None


def _slow(text: str, nodes: int) -> tuple[int, float]:
    """The node and the factor of NODE:FACTOR."""
    node, _, factor = text.partition(":")
    try:
        number, times = int(node), float(factor)
    except ValueError:
        raise ValueError(f"--slow takes a node and how many times slower it is, such as 3:4, got {text!r}") from None
    if not 0 <= number < nodes:
        raise ValueError(f"--slow {text}: there is no node {number}, the nodes are 0 to {nodes - 1}")
    if not 1 <= times < float("inf"):
        raise ValueError(f"--slow {text}: a node can be made slower by a factor of at least 1, not by {factor}")
    return number, times


# ---- what is printed ----


def title_of(settings: Settings, entrants: Sequence[Entrant], is_emulated: bool = False) -> str:
    """What is compared: the job, and where it runs.

    is_emulated: messages between processes are slowed down to the speed of a network.
    """
    rates = [_rate("learning rate", "lr", settings.lr, entrants) + decay_text(settings.lr_decay)]
    momenta = {one.momentum for one in entrants}
    rates += [_rate("momentum", "momentum", settings.momentum, entrants)] * (momenta != {0})
    seeds = settings.all_seeds
    of_seeds = f"seed {settings.seed}" if settings.seeds == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    where = {"processes": "processes of this machine", "mpi": "ranks of MPI"}.get(settings.on, "")
    where = f"simulated {engines.node_text(settings.node)}" if settings.node is not None else where
    where += ", messages slowed down to the network" * is_emulated
    slow = "".join(f", node {node} {factor:g} times slower" for node, factor in settings.slow.items())
    return (
        f"{settings.model} on {settings.data}, {counted(settings.nodes, 'node')}, minibatch {settings.batch_size}, "
        + ", ".join([counted(settings.epochs, "epoch"), *rates, of_seeds])
        + f"\n{where}{slow}"
    )


def tables(comparison: Comparison, title: str | None) -> Iterator[Table]:
    """A table for each network, with a row for each strategy; a star marks the first to reach the target."""
    for one in comparison.tables():
        table = results_table(
            escape(f"{f'{title}, ' if title else ''}{one.network}: {comparison.source}"),
            comparison.legend + "; *: the first at the target" * (one.first is not None),
        )
        table.add_column("strategy", overflow="fold")
        for name in one.columns[1:]:
            table.add_column(name, justify="right", no_wrap=True)
        for number, (strategy, *row) in enumerate(one.rows):
            is_first = number == one.first
            table.add_row(*map(escape, [strategy + " *" * is_first, *row]), style="bold" if is_first else None)
        yield table


def _rate(words: str, name: str, common: float, entrants: Sequence[Entrant]) -> str:
    """The learning rate or the momentum as text; a strategy whose value differs shows it in its name."""
    values = {getattr(one, name) for one in entrants}
    if len(values) == 1:
        return f"{words} {values.pop():g}"
    return f"{words} {common:g} unless {name}= is given" if common in values else f"{words} as given by {name}="


class ComparisonProgress(LiveBar):
    """Shows the progress of a comparison of `runs` runs; use it in a `with` statement.

    If there are several seeds, a run is named with its seed.
    """

    def __init__(self, console: Console, runs: int, seeds: int) -> None:
        super().__init__(console, f"run 1 of {runs}")
        self.runs, self.seeds, self.done = runs, seeds, 0

    def __call__(self, run: parallel.ComparedRun, now: parallel.Progress | None) -> None:
        seed = f", seed {run.seed}" if self.seeds > 1 else ""
        if now is None:
            self.done += 1
            how = run.ended or f"{run.accuracy:.2%} after {seconds_text(run.seconds)}"
            self.say(f"{self.done:>3}/{self.runs} {run.network}, {run.entrant.name}{seed}: {how}")
            return
        self.show(
            self.done + (now.epoch - 1 + now.step / now.steps) / now.epochs,
            self.runs,
            before=f"run {self.done + 1} of {self.runs}",
            after=f"{run.entrant.name} on {run.network}{seed}: epoch {now.epoch} of {now.epochs}, loss {now.loss:.3f}",
        )


# ---- --list ----


def print_list() -> None:
    """Print all strategies and compressors, with settings and defaults, all models and data sets."""
    of_all = f"every strategy that does not define them also takes: {', '.join(strategies.RATES)}"
    initials = "initials work as names: synchronous:compressor=ef(top_k(0.01)) uses error_feedback"
    for title, classes, caption in (
        ("Strategies", strategies.STRATEGIES, of_all),
        ("Compressors", strategies.COMPRESSORS, initials),
    ):
        table = _list(title, "what it is, and its settings")
        table.caption, table.caption_justify = escape(caption), "left"
        for name, cls in classes.items():
            settings = components.defaults(cls)
            table.add_row(name, escape(imported.about(cls)) + (f"\n[dim]{escape(settings)}[/]" * bool(settings)))
        Console().print(table)
    data_sets = {
        name: imported.about(one) for name, one in ({n: getattr(data, n) for n in data.NAMES} | imported.DATA).items()
    }
    for title, known in (("Models", {name: one.about for name, one in MODELS.items()}), ("Data sets", data_sets)):
        table = _list(title, "what it is")
        for name, text in known.items():
            table.add_row(name, escape(text))
        Console().print(table)


def _list(title: str, heading: str) -> Table:
    return Table("name", heading, title=title, title_justify="left", box=box.SIMPLE_HEAD)
