"""`minidl train`: train a model on one or more nodes, watch it, and keep the run in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minidl.cli.ending import ending


def train(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="mlp, lenet, resnet or gpt.")] = "resnet",
    data: Annotated[
        str, typer.Option(help="digits, glyphs, spirals, stdlib_text, mnist, fashion_mnist or cifar10.")
    ] = "digits",
    nodes: Annotated[int, typer.Option(help="Nodes that train; servers of a strategy come extra.")] = 1,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="A name, with settings after a colon, such as 'local_sgd:period=8'; minidl compare --list shows them. "
            "lr= and momentum= stand in place of the options. By default serial on one node, else synchronous."
        ),
    ] = None,
    on: Annotated[
        str, typer.Option(help="processes: nodes are processes of this machine; simulation: on a virtual clock.")
    ] = "processes",
    network: Annotated[
        str,
        typer.Option(
            help="1gbe, 10gbe, 100gbe, infiniband or nvlink: messages take as long as there, also between processes; "
            "none: what they take here, and nothing in a simulation."
        ),
    ] = "none",
    batch_size: Annotated[
        int, typer.Option(help="Samples a minibatch, all nodes together; of asynchronous strategies, a gradient.")
    ] = 64,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training set; by default the model's.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate; by default the model's.")] = None,
    momentum: Annotated[
        float | None,
        typer.Option(
            help="Momentum of SGD; by default the model's (0.9). DGC, Signum and EAMSGD have their own: give 0."
        ),
    ] = None,
    lr_decay: Annotated[
        float | None, typer.Option(help="Factor on the learning rate after every epoch; by default the model's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the weights, the shuffles and dropout.")] = 0,
    kernels: Annotated[
        str | None, typer.Option(help="numpy, numba or cupy; by default $MINIDL_KERNELS, or numba.")
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="All-reduce: auto, ring, tree, ...; ordered: bits as on one node.")
    ] = "auto",
    bucket_mb: Annotated[float, typer.Option(help="Gradients are sent in buckets of so many megabytes.")] = 1.0,
    out: Annotated[Path | None, typer.Option(help="The run folder; by default a new one in runs/.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with the run in this folder, or from this checkpoint; only --epochs may change."),
    ] = None,
) -> None:
    """Train a model on one or more nodes.

    Without --strategy, the nodes share every minibatch and agree on the gradient by an all-reduce. The run folder
    gets the configuration, the metrics, a checkpoint after every epoch (of a strategy whose nodes have weights of
    their own, at the end), the trace (for Perfetto) and two pictures.
    """
    with ending("train"):
        from minidl.cli.train import options as run_options  # here, so that --help comes at once
        from minidl.cli.train.run import run

        options = {name: value for name, value in context.params.items() if name in run_options.TYPES}
        if resume is not None:
            resume = resume / "checkpoint.npz" if resume.is_dir() else resume
            out = out or resume.parent
            explicit = {name for name in options if _is_explicit(context, name)}
            options = run_options.of_checkpoint(resume, {name: options[name] for name in explicit})
        run(run_options.completed(options), out, resume)


def _is_explicit(context: typer.Context, name: str) -> bool:
    return str(context.get_parameter_source(name)).endswith("COMMANDLINE")
