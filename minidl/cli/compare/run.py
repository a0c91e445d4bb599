"""A run of `minidl compare`: from the command-line options to the tables and the folder."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from rich.console import Console

from minidl import cluster, kernels, parallel
from minidl.arguments import one_of, real_number, whole_number
from minidl.cli import engines, job, mpi_job, run_folder
from minidl.cli.compare import report
from minidl.cli.compare.progress import ComparisonProgress
from minidl.cli.compare.settings import JOB, Settings, entrant, typed
from minidl.cli.compiling import compile_kernels
from minidl.cli.display import say, show
from minidl.cli.job import Options
from minidl.cli.listing import listings
from minidl.cli.several_words import items
from minidl.parallel.comparison.comparison import FORMATS, RUNS

PIPED_WIDTH = 120  # columns of a table if the output is not a terminal: names of strategies may be long
DEFAULT_NETWORKS = {"simulation": "1gbe,10gbe,infiniband", "processes": "none", "mpi": "none"}


def print_list() -> None:
    """Print all strategies and compressors with their settings, all models and data sets."""
    for table in listings():
        Console().print(table)


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
        formats=tuple(one_of("--format", name, FORMATS) for name in items("--format", options["formats"], "png")),
        target=real_number("--target", options["target"], above=0, at_most=1),
    )
    names = items("--networks", options["networks"], DEFAULT_NETWORKS[on])
    for name in names:
        engines.check_network("--networks", name, on)
    networks = {name: engines.network_of(name) for name in names}
    out = options["out"]

    kernels.use(settings.kernels)
    jobs = mpi_job.on_all_ranks(lambda: {text: typed(text, settings) for text in texts}, on)
    entrants = mpi_job.on_all_ranks(lambda: [entrant(text, *jobs[text], settings) for text in texts], on)
    for one in entrants:
        one.check_networks(networks.values())
    folder = cluster.once(partial(_folder, out, f"compare-{settings.model}-{settings.data}"), on)
    is_writer = cluster.is_first(on)
    title = report.title(settings, entrants, is_emulated=on == "processes" and any(networks.values()))
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    say(console, title)
    try:
        compile_kernels(console, on, settings.model)
        with ComparisonProgress(console, len(texts) * len(networks) * settings.seeds, settings.seeds) as progress:
            comparison = parallel.compare(
                jobs[texts[0]][1],
                jobs,
                nodes=settings.nodes,
                on=engines.engine_of(on, settings.node, trace="ledger"),
                networks=networks,
                seeds=settings.seeds,
                target=settings.target,
                slow=settings.slow,
                deadline=options["deadline"],
                folder=folder,
                formats=settings.formats,
                progress=progress,
                title=title,
                settings=settings.columns,
            )
    except (KeyboardInterrupt, SystemExit, cluster.ClusterError):
        if is_writer:
            say(console, run_folder.what_is_left(folder))
        raise
    if not is_writer:
        return
    for table in report.tables(comparison):
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
