"""`minidl compare`: its options; `run` makes the comparison."""

from __future__ import annotations

from typing import Annotated

from typer import Context, Option

from minidl.cli import mpi_job
from minidl.cli.ending import ending
from minidl.cli.shared_options import (
    NETWORKS,
    STRATEGIES,
    Data,
    Deadline,
    Formats,
    Import,
    Kernels,
    LearningRate,
    LearningRateDecay,
    Model,
    On,
    Out,
    Seed,
)


def compare(
    context: Context,
    strategies: Annotated[
        list[str] | None,
        Option(
            help="Names of strategies, with settings after a colon: 'local_sgd:period=8' "
            "'synchronous:compressor=top_k(0.01)'. Every strategy that does not define "
            "them also takes lr= and momentum=.",
            autocompletion=STRATEGIES,
        ),
    ] = None,
    networks: Annotated[
        list[str] | None,
        Option(
            "--networks",
            "--network",
            help="1gbe, 10gbe, 100gbe, infiniband, nvlink, files like net.json, topologies like "
            "torus:4x2@10gbe, or none. none: messages take no time "
            "in a simulation, and as long as they take on this machine between processes. By default 1gbe 10gbe "
            "infiniband; on processes and mpi none.",
            autocompletion=NETWORKS,
        ),
    ] = None,
    nodes: Annotated[
        int,
        Option(
            help="Nodes that train; servers come in addition. Serial runs on one node. By default 8, or as many as "
            "mpiexec has started."
        ),
    ] = 8,
    model: Model = "mlp",
    data: Data = "digits",
    epochs: Annotated[int, Option(help="Passes over the training set, by all nodes together.")] = 10,
    batch_size: Annotated[
        int,
        Option(
            help="Samples of a minibatch, over all nodes. An asynchronous gradient is of batch-size / nodes samples, "
            "so that a node computes as much between two messages under every strategy."
        ),
    ] = 64,
    lr: LearningRate = None,
    momentum: Annotated[
        float, Option(help="Momentum of SGD; 0 by default, since momentum harms with stale or compressed gradients.")
    ] = 0.0,
    lr_decay: LearningRateDecay = None,
    seed: Seed = 0,
    seeds: Annotated[
        int,
        Option(
            help="Runs of every strategy, with seeds SEED, SEED + 1, ...; with more than one, table, summary.csv and "
            "picture have means and standard deviations."
        ),
    ] = 1,
    kernels: Kernels = None,
    target: Annotated[
        float | None,
        Option(
            help="Test accuracy, from 0 to 1; the time that a strategy takes to reach it is shown. By default the "
            "highest that every run reaches, rounded down to a percent."
        ),
    ] = None,
    on: On = "simulation",
    flops: Annotated[float, Option(help="Speed of a simulated node, in floating-point operations per second.")] = 1e9,
    memory: Annotated[float, Option(help="Memory bandwidth of a simulated node, in bytes per second.")] = 1e10,
    jitter: Annotated[
        float, Option(help="Randomness of a simulated node's speed: the standard deviation of the speed's logarithm.")
    ] = 0.0,
    deadline: Deadline = None,
    slow: Annotated[
        list[str] | None,
        Option(metavar="NODE:FACTOR", help="A slow node: 3:4 makes node 3 take 4 times as long to compute."),
    ] = None,
    title: Annotated[
        str | None, Option(help="Text above the tables and the picture; by default what was trained, and where.")
    ] = None,
    formats: Formats = None,
    html: Annotated[
        bool,
        Option("--html", help="Also write run.html: in a browser, the runs on the first network, event by event."),
    ] = False,
    imported: Import = None,
    out: Out = None,
    show: Annotated[
        bool,
        Option(
            "--list",
            help="List all strategies and compressors with their settings, all models and data sets, and exit.",
        ),
    ] = False,
) -> None:
    """Compare strategies on the same job, on several networks.

    Every strategy trains the same model on the same samples for the same number of epochs, once on every network.
    Options that take several values take all words up to the next option. The folder gets runs.csv (a row for each
    run), history.csv (a row for each epoch of each run), summary.csv (means, standard deviations and intervals over
    the seeds), loss.png (loss against time and against samples) and trade_off.png (accuracy against time). Runs
    differ by chance: --seeds 5 shows by how much. --html adds a page that plays them.
    """
    with ending("minidl compare"):
        from minidl.cli.compare.run import print_list, run  # here, so that --help comes at once
        from minidl.cli.imported import data_set, register_all

        register_all(imported, on)
        if show:
            print_list()
        else:
            source = context.get_parameter_source("nodes")
            is_given = source is not None and source.name == "COMMANDLINE"
            if on == "mpi" and not is_given:
                nodes = mpi_job.nodes_by_mpiexec(0) or nodes
            run(context.params | {"data": data_set(data, on), "nodes": nodes})
