"""A run of `minidl train`: from checked options to the run folder and the table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from rich.console import Console

from minidl import cluster, kernels, parallel
from minidl.cli import engines, job, mpi_job, run_folder, strategies
from minidl.cli.compiling import compile_kernels
from minidl.cli.display import say
from minidl.cli.job import Options
from minidl.cli.train import summary
from minidl.cli.train.options import strategy_of
from minidl.cli.train.output import Output, together
from minidl.cli.train.progress import TrainingProgress


def run(
    options: Options, out: Path | None, resume: Path | None, elastic: bool, deadline: float | None, output: Output
) -> None:
    """Train with these options, print progress and results, and write the run folder.

    Parameters
        out       the run folder; None: a new folder in runs/
        resume    the checkpoint to resume from; None: start a new run
        elastic   True: when nodes die, the run continues with the others
        deadline  real seconds after which the run ends; None: no limit
        output    what is printed, and whether files for TensorBoard are written

    Raises the errors of `parallel.train` and of `run_folder.prepare`.
    """
    if elastic and options["on"] == "mpi":
        raise ValueError("--elastic with --on mpi: an MPI job ends when one of its ranks dies; leave out --elastic")
    output.check()
    engines.check_deadline(deadline)
    kernels.use(options["kernels"])
    on, strategy, nodes = options["on"], strategy_of(options), options["nodes"]
    the_job = mpi_job.on_all_ranks(partial(job.build, options), on)  # a machine may lack the data
    strategies.check(options["strategy"], strategy, the_job, nodes, options["model"])
    if resume is not None and not strategy.is_resumable:
        raise ValueError(
            f"cannot resume with --strategy {options['strategy']}: its nodes have state that no checkpoint holds; "
            "leave out --strategy, or start a new run"
        )
    is_split = strategy.plan(the_job, nodes).is_split  # then no process has the whole model
    model = the_job.build_held(lambda model: ()) if is_split else the_job.build_model()
    title = summary.title(options, model)  # before the folder is made: it raises if the model does not fit the data
    del model
    folder = cluster.once(partial(run_folder.prepare, out, f"{options['model']}-{options['data']}-{nodes}", resume), on)

    console = Console(quiet=output.is_quiet)
    say(console, title)
    try:
        compile_kernels(console, on, options["model"])
        with output.board(folder, cluster.is_first(on)) as board, TrainingProgress(console) as progress:
            report = parallel.train(
                the_job,
                strategy,
                nodes=nodes,
                on=engines.engine_of(on, _node(options)),
                network=engines.network_of(options["network"]),
                folder=folder,
                resume=resume,
                progress=together(progress, board),
                config=options,
                timeout=engines.timeout_of(on),
                deadline=deadline,
                elastic=elastic,
            )
    except (KeyboardInterrupt, SystemExit, cluster.ClusterError):
        say(console, summary.how_to_go_on(folder, strategy))
        raise
    with console.status("drawing the pictures"):
        _save(report, folder)
    for restart in report.restarts:
        say(console, str(restart))
    console.print(summary.table(report))
    if cluster.is_first(on):
        say(console, run_folder.contents(folder))
    if output.as_json:
        print(json.dumps(summary.as_json(report, folder), indent=2))


def _node(options: Options) -> cluster.Node | None:
    return None if options["flops"] is None else engines.simulated_node(options["flops"])


def _save(report: parallel.Report, folder: Path) -> None:
    """Write the run folder. Every OSError names it; by itself, the error of a full disk names no file."""
    try:
        report.save(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(folder)) from error
