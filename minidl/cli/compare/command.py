"""`minidl compare`: one job, several strategies, several networks: which is best where, and by how much?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minidl.cli.ending import ending
from minidl.cli.several_words import items

if TYPE_CHECKING:
    from minidl.cli.compare.runs import Terms
    from minidl.cluster import Network, Node

PIPED_WIDTH = 120  # of tables that no terminal bounds: names of strategies with their settings are long
DEFAULT_NETWORKS = {"simulation": "1gbe,10gbe,infiniband", "processes": "none"}


def compare(
    context: typer.Context,
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            help="Names with settings after a colon, 'local_sgd:period=8' 'synchronous:compressor=top_k(0.01)', up to "
            "the next option; lr= and momentum= are settings of every strategy that has none of that name."
        ),
    ] = None,
    networks: Annotated[
        list[str] | None,
        typer.Option(
            help="1gbe, 10gbe, 100gbe, infiniband, nvlink, or none: messages take no time (in a simulation), or what "
            "they take here (on processes). By default 1gbe 10gbe infiniband; on processes none."
        ),
    ] = None,
    nodes: Annotated[int, typer.Option(help="Nodes that train; servers come extra. Serial runs on one.")] = 8,
    model: Annotated[str, typer.Option(help="mlp, lenet, resnet or gpt.")] = "mlp",
    data: Annotated[
        str, typer.Option(help="digits, glyphs, spirals, stdlib_text, mnist, fashion_mnist or cifar10.")
    ] = "digits",
    epochs: Annotated[int, typer.Option(help="Passes over the training set, of all nodes together.")] = 10,
    batch_size: Annotated[
        int,
        typer.Option(
            help="Samples of a minibatch of all nodes together; an asynchronous gradient is of batch-size / nodes, so "
            "that every strategy computes as much a node between two messages, and as many samples in all."
        ),
    ] = 64,
    lr: Annotated[
        float | None, typer.Option(help="Learning rate of every update; by default the model's (of mlp 0.2).")
    ] = None,
    momentum: Annotated[
        float, typer.Option(help="Momentum of SGD: 0, since stale gradients and compressors do not go well with more.")
    ] = 0.0,
    lr_decay: Annotated[
        float | None, typer.Option(help="Factor on the learning rate after every epoch; by default the model's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the weights, the shuffles, jitter and random choices.")] = 0,
    seeds: Annotated[
        int,
        typer.Option(
            help="Runs of every strategy, with seeds SEED, SEED + 1, ...: table and picture then have the mean and the "
            "standard deviation."
        ),
    ] = 1,
    kernels: Annotated[str | None, typer.Option(help="numpy or numba; by default $MINIDL_KERNELS, or numba.")] = None,
    target: Annotated[float, typer.Option(help="The test accuracy that the strategies race to.")] = 0.95,
    on: Annotated[
        str, typer.Option(help="simulation: on a virtual clock; processes: here, in real time.")
    ] = "simulation",
    flops: Annotated[float, typer.Option(help="Floating-point operations a second of a simulated node.")] = 1e9,
    memory: Annotated[float, typer.Option(help="Bytes of memory that a simulated node moves in a second.")] = 1e10,
    jitter: Annotated[
        float, typer.Option(help="Randomness of a simulated node's speed: the standard deviation of its logarithm.")
    ] = 0.0,
    slow: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE:FACTOR", help="A node that computes so many times as long, such as 3:4."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for tables and picture; by default in runs/.")] = None,
    show: Annotated[
        bool, typer.Option("--list", help="List the strategies and compressors with their settings, and end.")
    ] = False,
) -> None:
    """Compare strategies on the same job, on several networks.

    Every strategy trains the same model on the same samples for the same number of epochs on every network. Options
    that take several values take all words up to the next option. The folder gets runs.csv (a row a run), history.csv
    (a row an epoch of each) and loss.png (loss against time, and against samples). One seed says nothing about how
    far runs differ by chance: --seeds 5 does.
    """
    with ending("compare"):
        if show:
            _list()
            return
        texts = list(dict.fromkeys(text.strip() for text in strategies or [] if text.strip()))
        if not texts:
            raise ValueError("name strategies, such as --strategies synchronous local_sgd; --list shows what there is")
        from minidl.cli import engines  # here, so that --help comes at once
        from minidl.cli.compare import runs
        from minidl.cli.train import options

        job = options.completed_job({name: context.params[name] for name in runs.JOB})
        engines.check(on, nodes)
        options.check_minibatch(job)
        if seeds < 1:
            raise ValueError(f"--seeds must be at least 1, got {seeds}")
        terms = runs.Terms(
            **job,
            momentum=momentum,
            node=_node(on, flops, memory, jitter),
            slow=dict(_slow(text, nodes) for text in items("--slow", slow, "")),
            seeds=seeds,
        )
        between = items("--networks", networks, DEFAULT_NETWORKS[on])
        _run(terms, texts, [(name, engines.network_of(name)) for name in between], target, out)


def _list() -> None:
    from rich.console import Console

    from minidl.cli import strategies

    for table in strategies.listings():
        Console().print(table)


def _run(
    terms: Terms, texts: list[str], networks: list[tuple[str, Network | None]], target: float, out: Path | None
) -> None:
    """Let the strategies race on the networks, say how it goes, and write the folder."""
    from rich.console import Console

    from minidl import kernels
    from minidl.cli import run_folder
    from minidl.cli.compare import report as report_of
    from minidl.cli.compare import runs
    from minidl.cli.compare.progress import RaceProgress
    from minidl.cli.train.summary import contents

    kernels.use(terms.kernels)
    contestants = [runs.contestant(text, terms) for text in texts]
    if not 0 < target <= 1:
        raise ValueError(f"--target must be above 0 and at most 1, got {target}")
    if out is not None and (out / report_of.RUNS).exists():
        raise ValueError(f"{out} holds a comparison already: choose another --out")
    folder = run_folder.prepare(out, f"compare-{terms.model}-{terms.data}", None)
    report = report_of.Report(terms, contestants, target, folder)
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    console.print(report.title, highlight=False, markup=False, soft_wrap=True)
    try:
        with RaceProgress(console, len(contestants) * len(networks) * terms.seeds, terms) as progress:
            for outcome in runs.outcomes(contestants, networks, terms, progress):
                report.add(outcome)  # at once, so that what has run is kept if the command is stopped
                progress.finished(outcome)
    except (KeyboardInterrupt, SystemExit):
        console.print(run_folder.what_is_left(folder), highlight=False, markup=False, soft_wrap=True)
        raise
    report.draw()
    for table in report.tables():
        console.print(table)
    console.print(contents(folder), highlight=False, markup=False, soft_wrap=True)


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
