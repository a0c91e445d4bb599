"""`minidl train`: train a model on one or more nodes, watch it, and keep the run in a folder."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

OPTIONS = ("model", "data", "nodes", "batch_size", "epochs", "lr", "seed", "kernels", "algorithm", "bucket_mb")
"""What decides a run, kept in its checkpoint; `--resume` takes them from there, and only --epochs may be given anew."""


def train(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="mlp, lenet, resnet or gpt.")] = "lenet",
    data: Annotated[
        str, typer.Option(help="digits, glyphs, spirals, stdlib_text, mnist, fashion_mnist or cifar10.")
    ] = "digits",
    nodes: Annotated[int, typer.Option(min=1, help="Nodes: operating-system processes on this machine.")] = 1,
    batch_size: Annotated[int, typer.Option(min=1, help="Samples a minibatch, all nodes together.")] = 64,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training set.")] = 10,
    lr: Annotated[float | None, typer.Option(help="Learning rate; the default depends on the model.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the weights, the shuffles and dropout.")] = 0,
    kernels: Annotated[str | None, typer.Option(help="numpy, numba or cupy; numba by default.")] = None,
    algorithm: Annotated[str, typer.Option(help="All-reduce: auto, ring, or ordered (bits as on one node).")] = "auto",
    bucket_mb: Annotated[float, typer.Option(help="Gradients are sent in buckets of so many megabytes.")] = 1.0,
    out: Annotated[Path | None, typer.Option(help="The run folder; by default a new one in runs/.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write over the run that the folder holds.")] = False,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the run in this folder (or from a checkpoint).")
    ] = None,
) -> None:
    """Train a model on one or more nodes.

    The nodes share every minibatch and agree on the gradient by an all-reduce. The run folder gets the
    configuration, the metrics, a checkpoint after every epoch, the trace (for Perfetto) and two pictures.
    """
    options: dict[str, Any] = {name: value for name, value in context.params.items() if name in OPTIONS}
    try:
        if resume is not None:
            resume, options = _resumed(context, resume, options)
            out = out or resume.parent
        _run(_checked(options), out, resume, overwrite)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (ValueError, ImportError, OSError) as error:
        _fail(_sentence(error), 2)
    except (ArithmeticError, RuntimeError) as error:
        _fail(str(error), 1)


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options, completed; raises ValueError for a name or number that is not one."""
    from minidl import data, kernels
    from minidl.cli.catalogue import MODELS, check_name

    check_name("model", options["model"], MODELS)
    check_name("data", options["data"], data.NAMES)
    check_name("algorithm", options["algorithm"], ("auto", "ring", "ordered"))
    options["kernels"] = check_name("kernels", options["kernels"] or kernels.active(), kernels.NAMES)
    if options["lr"] is None:
        options["lr"] = MODELS[options["model"]].lr
    for name in ("lr", "bucket_mb"):
        if not 0 < options[name] < float("inf"):
            raise ValueError(f"--{name.replace('_', '-')} must be a positive number, got {options[name]}")
    if options["batch_size"] < options["nodes"]:
        raise ValueError(
            f"a minibatch of {options['batch_size']} samples cannot be shared by {options['nodes']} nodes: "
            f"give --batch-size {options['nodes']} or more"
        )
    return options


def _resumed(context: typer.Context, path: Path, given: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """The checkpoint to go on from, and the options it was made with."""
    from minidl.parallel import Checkpoint, CheckpointError

    path = path / "checkpoint.npz" if path.is_dir() else path
    checkpoint = Checkpoint.load(path)
    options = dict(checkpoint.config)
    if set(options) != set(OPTIONS):
        raise CheckpointError(f"{path} was not written by `minidl train`: its configuration has {sorted(options)}")
    for name, value in given.items():
        explicit = str(context.get_parameter_source(name)).endswith("COMMANDLINE")
        if explicit and name != "epochs" and value != options[name]:
            raise CheckpointError(
                f"{path} is of a run with --{name.replace('_', '-')} {options[name]}, not {value}: only --epochs may "
                "change; leave the option out, or start a new run"
            )
        if explicit and name == "epochs":
            options[name] = value
    return path, options


def _run(options: dict[str, Any], out: Path | None, resume: Path | None, overwrite: bool) -> None:
    from minidl import data, kernels, parallel
    from minidl.cli.catalogue import build_model, optimizer_of
    from minidl.cli.live import LiveProgress

    console = Console()
    kernels.use(options["kernels"])
    job = parallel.Job(
        model=partial(build_model, options["model"], options["data"]),
        data=partial(data.load, options["data"]),
        optimizer=optimizer_of(options["model"], options["lr"]),
        batch_size=options["batch_size"],
        epochs=options["epochs"],
        seed=options["seed"],
    )
    parameters = sum(parameter.size for parameter in job.build_model().parameters())  # also: do model and data fit?
    folder = _run_folder(out, options, may_hold_a_run=overwrite or resume is not None)
    nodes = options["nodes"]
    console.print(
        f"{options['model']} ({parameters:,} parameters) on {options['data']}, {nodes} node{'s' * (nodes > 1)}, "
        f"minibatch {job.batch_size}, learning rate {options['lr']:g}, kernels {options['kernels']}",
        highlight=False,
    )
    strategy = parallel.Synchronous(options["bucket_mb"], options["algorithm"]) if nodes > 1 else parallel.Serial()
    try:
        with LiveProgress(console, job.epochs) as progress:
            report = parallel.train(
                job, strategy, nodes=nodes, folder=folder, resume=resume, progress=progress, config=options
            )
    except KeyboardInterrupt:
        console.print(f"Interrupted. All nodes have stopped; go on with: minidl train --resume {folder}")
        raise
    report.save(folder)
    console.print(_summary(report, folder))


def _run_folder(out: Path | None, options: dict[str, Any], may_hold_a_run: bool) -> Path:
    """The run folder, made, known to be writable, and holding no other run."""
    name = f"{options['model']}-{options['data']}-{options['nodes']}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = out or Path("runs") / name
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"no permission to write into the run folder {folder}: choose another with --out")
    if (folder / "checkpoint.npz").exists() and not may_hold_a_run:
        raise ValueError(
            f"{folder} holds a run already: go on with it by --resume {folder}, replace it by --overwrite, or choose another --out"
        )
    return folder


def _summary(report: Any, folder: Path) -> Table:
    last, shares = report.history[-1], report.trace.shares()
    table = Table(title=f"{folder}", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("test accuracy", f"{report.accuracy:.2%}")
    table.add_row("loss (training / test)", f"{last['loss']:.4f} / {last['test_loss']:.4f}")
    table.add_row("seconds", f"{report.seconds:.1f}")
    table.add_row("samples a second", f"{last['samples_per_second']:,.0f}")
    table.add_row("time of the nodes", f"{shares.compute:.0%} computing, {shares.communication:.0%} communicating, "
                  f"{shares.waiting:.0%} waiting")  # fmt: skip
    table.add_row("sent by node 0", f"{last['bytes'] / 1e6:,.1f} MB")
    for name in sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")):
        table.add_row("", name)
    return table


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot write or read {error.filename}: {error.strerror}"
    return str(error)


def _fail(message: str, code: int) -> None:
    Console(stderr=True).print(f"minidl train: {message}", style="red", highlight=False, soft_wrap=True, markup=False)
    raise typer.Exit(code)
