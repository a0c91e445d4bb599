"""A run of `minidl train`: from checked options to the run folder and the table."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.console import Console

from minidl import cluster, data, kernels, parallel
from minidl.cli import run_folder, strategies
from minidl.cli.engines import engine_of, network_of, timeout_of
from minidl.cli.models import MODELS, decay_every_epoch, optimizer_of
from minidl.cli.train.options import Options, strategy_of
from minidl.cli.train.progress import LiveProgress
from minidl.cli.train.summary import contents, how_to_go_on, table, title


def run(options: Options, out: Path | None, resume: Path | None) -> None:
    """Train as the options say, from the start or from the checkpoint `resume`, and write the run folder `out`.

    out: None for a new folder in runs/. Errors: those of `parallel.train`, and of `run_folder.prepare`.
    """
    kernels.use(options["kernels"])
    job = parallel.Job(
        model=MODELS[options["model"]].fit(data.load(options["data"])),
        data=partial(data.load, options["data"]),
        optimizer=optimizer_of(options["model"], options["lr"], options["momentum"]),
        schedule=decay_every_epoch(options["lr_decay"]),
        batch_size=options["batch_size"],
        epochs=options["epochs"],
        seed=options["seed"],
    )
    nodes = options["nodes"]
    strategy = strategy_of(options)
    strategies.check(options["strategy"], strategy, job, nodes, options["model"])
    if resume is not None and not strategy.is_resumable:
        raise ValueError(
            f"a run of {options['strategy']} cannot go on: its checkpoint holds the model only; start a new run"
        )
    model = job.build_model()  # before there is a folder: it may not go with the data
    folder = run_folder.prepare(out, f"{options['model']}-{options['data']}-{nodes}", resume)

    console = Console()
    console.print(title(options, model), highlight=False, markup=False, soft_wrap=True)
    try:
        with LiveProgress(console, job.epochs) as progress:
            report = parallel.train(
                job,
                strategy,
                nodes=nodes,
                on=engine_of(options["on"]),
                network=network_of(options["network"]),
                folder=folder,
                resume=resume,
                progress=progress,
                config=options,
                timeout=timeout_of(options["on"]),
            )
    except (KeyboardInterrupt, SystemExit, cluster.ClusterError):
        console.print(how_to_go_on(folder, strategy), highlight=False, markup=False, soft_wrap=True)
        raise
    with console.status("drawing the pictures"):
        save(report, folder)
    console.print(table(report))
    console.print(contents(folder), highlight=False, markup=False, soft_wrap=True)


def save(report: parallel.Report, folder: Path) -> None:
    """Write the run folder; an OSError then names it, also that of a full disk, which knows no file."""
    try:
        report.save(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(folder)) from error
