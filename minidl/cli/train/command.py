"""`minidl train`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_type_hints

from typer import Context, Option

from minidl.cli.ending import ending
from minidl.cli.shared_options import Data, Kernels, LearningRate, LearningRateDecay, Model, Out, Seed


def train(
    context: Context,
    model: Model = "resnet",
    data: Data = "digits",
    nodes: Annotated[int, Option(help="Nodes that train; the servers of a strategy come in addition.")] = 1,
    strategy: Annotated[
        str | None,
        Option(
            help="Name of a strategy, with settings after a colon: 'local_sgd:period=8'. minidl compare --list shows "
            "all. lr= and momentum= replace --lr and --momentum. By default serial on one node, otherwise synchronous."
        ),
    ] = None,
    plan: Annotated[
        str | None,
        Option(
            help="Split the model: dp=2,pp=2,tp=2 makes two replicas of a pipeline of two stages, whose layers are "
            "divided by two nodes each, on eight nodes. With micro_batches=8,schedule=gpipe,recompute=true and so on, "
            "as the settings of the strategy hybrid."
        ),
    ] = None,
    on: Annotated[
        str, Option(help="processes: each node is a process of this machine; simulation: on a virtual clock.")
    ] = "processes",
    network: Annotated[
        str,
        Option(
            help="1gbe, 10gbe, 100gbe, infiniband or nvlink: messages take as long as on that network, also between "
            "processes. none: as long as they take on this machine, and no time in a simulation."
        ),
    ] = "none",
    batch_size: Annotated[
        int, Option(help="Samples of a minibatch, over all nodes; for asynchronous strategies, samples of a gradient.")
    ] = 64,
    epochs: Annotated[int | None, Option(help="Passes over the training set; by default the model's.")] = None,
    lr: LearningRate = None,
    momentum: Annotated[
        float | None,
        Option(
            help="Momentum of SGD; by default the model's (0.9). DGC, Signum and EAMSGD have momentum of their own and "
            "need 0 here."
        ),
    ] = None,
    lr_decay: LearningRateDecay = None,
    seed: Seed = 0,
    kernels: Kernels = None,
    algorithm: Annotated[
        str, Option(help="Algorithm of all-reduce: auto, ring, tree, ...; ordered gives the bits of one node.")
    ] = "auto",
    bucket_mb: Annotated[float, Option(help="Size of a bucket of gradients, in megabytes.")] = 1.0,
    out: Out = None,
    resume: Annotated[
        Path | None,
        Option(
            help="Run folder or checkpoint to go on from. Only --epochs, --nodes, --strategy, --algorithm and "
            "--bucket-mb may differ from that run."
        ),
    ] = None,
    elastic: Annotated[
        bool, Option("--elastic", help="When nodes die, go on with the others from the last finished step.")
    ] = False,
) -> None:
    """Train a model on one or more nodes.

    Without --strategy, the nodes share every minibatch and average their gradients by an all-reduce. The run folder
    gets the configuration, the metrics, a checkpoint after every epoch (only after the last if the strategy gives each
    node weights of its own), the trace (for Perfetto) and two pictures.
    """
    with ending("train"):
        from minidl.cli.train.options import completed, of_checkpoint  # here, so that --help comes at once
        from minidl.cli.train.plan import with_plan
        from minidl.cli.train.run import run

        left_out = ("out", "resume", "elastic", "plan")
        options = {name: value for name, value in context.params.items() if name not in left_out}
        asked = {name for name in options if _is_explicit(context, name)}
        if plan is not None:
            options |= with_plan(plan, options, asked)
            asked |= {"strategy", "nodes"}
        if resume is not None:
            resume = resume / "checkpoint.npz" if resume.is_dir() else resume
            out = out or resume.parent
            hints = get_type_hints(train)
            explicit = {name: options[name] for name in asked}
            options = of_checkpoint(resume, explicit, {name: hints[name] for name in options})
        run(completed(options), out, resume, elastic)


def _is_explicit(context: Context, name: str) -> bool:
    return str(context.get_parameter_source(name)).endswith("COMMANDLINE")
