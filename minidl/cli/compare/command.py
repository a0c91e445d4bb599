"""`minidl compare`: train one job by several strategies on several networks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minidl.cli.ending import ending
from minidl.cli.several_words import items
from minidl.cli.shared_options import Data, Kernels, LearningRate, LearningRateDecay, Model, Out, Seed

if TYPE_CHECKING:
    from minidl.cli.compare.runs import Comparison
    from minidl.cluster import Network, Node

PIPED_WIDTH = 120  # of tables that no terminal bounds: names of strategies with their settings are long
DEFAULT_NETWORKS = {"simulation": "1gbe,10gbe,infiniband", "processes": "none"}


def compare(
    context: typer.Context,
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            help="Names of strategies, with settings after a colon: 'local_sgd:period=8' "
            "'synchronous:compressor=top_k(0.01)'. lr= and momentum= are settings of every strategy that has none of "
            "that name."
        ),
    ] = None,
    networks: Annotated[
        list[str] | None,
        typer.Option(
            help="1gbe, 10gbe, 100gbe, infiniband, nvlink or none. none: messages take no time in a simulation, and as "
            "long as they take on this machine between processes. By default 1gbe 10gbe infiniband; on processes none."
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option(help="Nodes that train; servers come in addition. Serial runs on one node.")
    ] = 8,
    model: Model = "mlp",
    data: Data = "digits",
    epochs: Annotated[int, typer.Option(help="Passes over the training set, by all nodes together.")] = 10,
    batch_size: Annotated[
        int,
        typer.Option(
            help="Samples of a minibatch, over all nodes. An asynchronous gradient is of batch-size / nodes samples: "
            "a node then computes equally much between two messages under every strategy."
        ),
    ] = 64,
    lr: LearningRate = None,
    momentum: Annotated[
        float, typer.Option(help="Momentum of SGD; 0 by default, since more harms stale or compressed gradients.")
    ] = 0.0,
    lr_decay: LearningRateDecay = None,
    seed: Seed = 0,
    seeds: Annotated[
        int,
        typer.Option(
            help="Runs of every strategy, with seeds SEED, SEED + 1, ...; with more than one, table and picture show "
            "mean and standard deviation."
        ),
    ] = 1,
    kernels: Kernels = None,
    target: Annotated[
        float, typer.Option(help="Test accuracy, from 0 to 1; the time that a strategy takes to reach it is shown.")
    ] = 0.95,
    on: Annotated[
        str, typer.Option(help="simulation: on a virtual clock; processes: on this machine, in real time.")
    ] = "simulation",
    flops: Annotated[
        float, typer.Option(help="Speed of a simulated node, in floating-point operations a second.")
    ] = 1e9,
    memory: Annotated[float, typer.Option(help="Memory bandwidth of a simulated node, in bytes a second.")] = 1e10,
    jitter: Annotated[
        float,
        typer.Option(help="Randomness of a simulated node's speed: the standard deviation of the speed's logarithm."),
    ] = 0.0,
    slow: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE:FACTOR", help="A slow node: 3:4 makes node 3 take 4 times as long to compute."),
    ] = None,
    out: Out = None,
    show: Annotated[
        bool, typer.Option("--list", help="List all strategies and compressors with their settings, and exit.")
    ] = False,
) -> None:
    """Compare strategies on the same job, on several networks.

    Every strategy trains the same model on the same samples for the same number of epochs, once on every network.
    Options that take several values take all words up to the next option. The folder gets runs.csv (a row for each
    run), history.csv (a row for each epoch of each run) and loss.png (loss against time and against samples). Runs
    differ by chance: --seeds 5 shows by how much.
    """
    with ending("compare"):
        if show:
            _list()
            return
        texts = list(dict.fromkeys(text.strip() for text in strategies or [] if text.strip()))
        if not texts:
            raise ValueError("name strategies, such as --strategies synchronous local_sgd; --list shows what there is")
        from minidl.arguments import real_number, whole_number  # here, so that --help comes at once
        from minidl.cli import engines, job
        from minidl.cli.compare.runs import JOB, Comparison

        options = job.completed({name: context.params[name] for name in JOB})
        engines.check(on, nodes)
        job.check_minibatch(options)
        comparison = Comparison(
            **options,
            momentum=momentum,
            node=_node(on, flops, memory, jitter),
            slow=dict(_slow(text, nodes) for text in items("--slow", slow, "")),
            seeds=whole_number("--seeds", seeds, at_least=1),
            target=real_number("--target", target, above=0, at_most=1),
        )
        names = items("--networks", networks, DEFAULT_NETWORKS[on])
        _run(comparison, texts, [(name, engines.network_of(name)) for name in names], out)


def _list() -> None:
    from rich.console import Console

    from minidl.cli.strategies import listings

    for table in listings():
        Console().print(table)


def _run(
    comparison: Comparison, texts: list[str], networks: list[tuple[str, Network | None]], out: Path | None
) -> None:
    """Run every strategy on every network, show the progress, and write the folder."""
    from rich.console import Console

    from minidl import kernels
    from minidl.cli import run_folder
    from minidl.cli.compare import report as reports
    from minidl.cli.compare import runs
    from minidl.cli.compare.progress import ComparisonProgress
    from minidl.cli.display import say

    kernels.use(comparison.kernels)
    contestants = [runs.contestant(text, comparison) for text in texts]
    if out is not None and (out / reports.RUNS).exists():
        raise ValueError(f"{out} holds a comparison already: choose another --out")
    folder = run_folder.prepare(out, f"compare-{comparison.model}-{comparison.data}")
    report = reports.ComparisonReport(comparison, contestants, folder)
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    say(console, report.title)
    try:
        with ComparisonProgress(console, len(contestants) * len(networks) * comparison.seeds, comparison) as progress:
            for run in runs.trained(contestants, networks, comparison, progress):
                report.add(run)  # at once, so that finished runs are kept if the command is stopped
                progress.finished(run)
    except (KeyboardInterrupt, SystemExit):
        say(console, run_folder.what_is_left(folder))
        raise
    report.draw()
    for table in report.tables():
        console.print(table)
    say(console, run_folder.contents(folder))


# ---- what is typed ----


def _node(on: str, flops: float, memory: float, jitter: float) -> Node | None:
    from minidl.cli import engines

    if on == "simulation":
        return engines.simulated_node(flops, memory, jitter)
    if jitter:
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
