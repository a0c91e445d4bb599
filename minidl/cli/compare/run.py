"""A run of `minidl compare`: from what was typed to the tables and the folder."""

from __future__ import annotations

import sys

from rich.console import Console

from minidl import cluster, kernels
from minidl.arguments import real_number, whole_number
from minidl.cli import engines, job, run_folder
from minidl.cli.compare.progress import ComparisonProgress
from minidl.cli.compare.report import RUNS, ComparisonReport
from minidl.cli.compare.runs import JOB, Comparison, contestant, trained
from minidl.cli.display import say
from minidl.cli.job import Options
from minidl.cli.several_words import items
from minidl.cli.strategies import listings

PIPED_WIDTH = 120  # columns, of tables that no terminal bounds: names of strategies with their settings are long
DEFAULT_NETWORKS = {"simulation": "1gbe,10gbe,infiniband", "processes": "none"}


def print_list() -> None:
    """Print all strategies and compressors with their settings."""
    for table in listings():
        Console().print(table)


def run(options: Options) -> None:
    """Train by every strategy on every network, print progress and results, and write the folder."""
    texts = list(dict.fromkeys(text.strip() for text in options["strategies"] or [] if text.strip()))
    if not texts:
        raise ValueError("name strategies, such as --strategies synchronous local_sgd; --list shows what there is")
    of_the_job = job.completed({name: options[name] for name in JOB})
    engines.check(options["on"], options["nodes"])
    job.check_minibatch(of_the_job)
    comparison = Comparison(
        **of_the_job,
        momentum=options["momentum"],
        node=_node(options),
        slow=dict(_slow(text, options["nodes"]) for text in items("--slow", options["slow"], "")),
        seeds=whole_number("--seeds", options["seeds"], at_least=1),
        target=real_number("--target", options["target"], above=0, at_most=1),
    )
    names = items("--networks", options["networks"], DEFAULT_NETWORKS[options["on"]])
    networks = [(name, engines.network_of(name)) for name in names]
    out = options["out"]

    kernels.use(comparison.kernels)
    contestants = [contestant(text, comparison) for text in texts]
    if out is not None and (out / RUNS).exists():
        raise ValueError(f"{out} holds a comparison already: choose another --out")
    folder = run_folder.prepare(out, f"compare-{comparison.model}-{comparison.data}")
    report = ComparisonReport(comparison, contestants, folder)
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    say(console, report.title)
    try:
        with ComparisonProgress(console, len(contestants) * len(networks) * comparison.seeds, comparison) as progress:
            for one in trained(contestants, networks, comparison, progress):
                report.add(one)  # at once, so that finished runs are kept if the command is stopped
                progress.finished(one)
    except (KeyboardInterrupt, SystemExit):
        say(console, run_folder.what_is_left(folder))
        raise
    report.draw()
    for table in report.tables():
        console.print(table)
    say(console, run_folder.contents(folder))


def _node(options: Options) -> cluster.Node | None:
    if options["on"] == "simulation":
        return engines.simulated_node(options["flops"], options["memory"], options["jitter"])
    if options["jitter"]:
        raise ValueError("--jitter is for simulated nodes: leave it out, or give --on simulation")
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
