"""A run of `minidl train`: from checked options to the run folder and the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from rich.console import Console

from minidl import cluster, kernels, parallel
from minidl.cli import engines, job, mpi_job, run_folder, strategies
from minidl.cli.compiling import compile_kernels
from minidl.cli.display import LiveBar, say
from minidl.cli.job import Options
from minidl.cli.models import name_of
from minidl.cli.train import summary
from minidl.parallel.job import built_once
from minidl.parallel.run.tensorboard import summary_writer

HEADER = "  epoch     loss test loss accuracy samples/s  a node's compute/communicate/wait"


@dataclass(frozen=True)
class Output:
    """quiet: nothing but errors; as_json: one JSON document; tensorboard: files for TensorBoard in the run folder."""

    quiet: bool = False
    as_json: bool = False
    tensorboard: bool = False


def run(
    options: Options,
    strategy: parallel.Strategy,
    rates: Mapping[str, float],
    out: Path | None,
    resume: Path | None,
    elastic: bool,
    save_every: int | None,
    deadline: float | None,
    output: Output,
) -> None:
    """Train with these options, print progress and results, and write the run folder.

    Parameters
        options, strategy, rates  what `completed` returns
        out                       the run folder; None: a new folder in runs/
        resume                    the checkpoint to resume from; None: start a new run
        elastic                   True: when nodes die, the run continues with the others
        save_every                minibatches between two checkpoints; None: only those of each epoch
        deadline                  real seconds after which the run ends; None: no limit
        output                    what is printed, and whether files for TensorBoard are written

    Raises the errors of `parallel.train` and of `run_folder.prepare`.
    """
    if elastic and options["on"] == "mpi":
        raise ValueError("--elastic with --on mpi: an MPI job ends when one of its ranks dies; leave out --elastic")
    if output.tensorboard:
        summary_writer()  # raises ModuleNotFoundError if the package is missing
    engines.check_deadline(deadline)
    kernels.use(options["kernels"])
    on, nodes = options["on"], options["nodes"]
    the_job = mpi_job.on_all_ranks(partial(job.build, options), on)  # a machine may lack the data
    here = built_once(the_job)
    strategies.check(strategy, rates, here, nodes, options["model"])
    if resume is not None and not strategy.is_resumable:
        raise ValueError(
            f"cannot resume with --strategy {options['strategy']}: its nodes have state that no checkpoint holds; "
            "leave out --strategy, or start a new run"
        )
    memory = None if options["device_memory"] is None else engines.memory_of(options["device_memory"])
    is_split = strategy.plan(the_job, nodes).is_split  # then no process has the whole model
    model = the_job.build_held(lambda model: ()) if is_split else the_job.build_model()
    title = summary.title(options, model, here.build_data())
    del here, model  # the nodes need the memory
    folder = cluster.once(
        partial(run_folder.prepare, out, f"{name_of(options['model'])}-{Path(options['data']).stem}-{nodes}", resume),
        on,
    )

    console = Console(quiet=output.quiet or output.as_json)
    terminal = Console(stderr=True) if output.as_json and not output.quiet else console
    say(console, title)
    try:
        compile_kernels(terminal, on, name_of(options["model"]))
        board = parallel.TensorBoard(folder) if output.tensorboard and cluster.is_first(on) else nullcontext()
        with board as to_board, TrainingProgress(terminal, "starting the nodes", console) as to_console:

            def progress(now: parallel.Progress) -> None:
                to_console(now)
                if to_board is not None:
                    to_board(now)

            report = parallel.train(
                the_job,
                strategy,
                nodes=nodes,
                on=engines.engine_of(
                    on, engines.simulated_node(options["flops"] or engines.FLOPS_PER_S), memory=memory
                ),
                network=engines.network_of(options["network"]),
                folder=folder,
                resume=resume,
                progress=progress,
                config=job.with_fingerprint(options),
                timeout=engines.timeout_of(on),
                deadline=deadline,
                elastic=elastic,
                saving=None if save_every is None else parallel.Saving(save_every, asynchronous=True),
            )
    except (KeyboardInterrupt, SystemExit, cluster.ClusterError):
        say(console, summary.how_to_go_on(folder, strategy))
        raise
    with LiveBar(terminal, "drawing the pictures"):
        _save(report, folder)
    for restart in report.restarts:
        say(console, str(restart))
    console.print(summary.table(report))
    if cluster.is_first(on):
        say(console, run_folder.contents(folder))
    if output.as_json:
        print(json.dumps(summary.as_json(report, folder), indent=2))


def _save(report: parallel.Report, folder: Path) -> None:
    """Write the run folder. Every OSError names it; by itself, the error of a full disk names no file."""
    try:
        report.save(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(folder)) from error


class TrainingProgress(LiveBar):
    """Shows the messages of `parallel.train(progress=...)`; use it in a `with` statement.

    A line is printed after every epoch. The line of the current epoch changes with every step; a bar for the whole run
    is in the columns of the test set, whose values are not known yet. No line is wider than 80 columns.
    """

    def __enter__(self) -> Self:
        self.say(HEADER)
        return super().__enter__()

    def __call__(self, now: parallel.Progress) -> None:
        row = now.row
        before = f"{now.epoch:>3}/{now.epochs:<3} {now.loss if row is None else row['loss']:>8.4f}"
        after = f"{now.samples_per_second:>9,.0f}   "
        if row is not None:
            of_test_set = f"{row['test_loss']:>9.4f} {row['accuracy']:>8.2%}"
            shares = f"{now.shares.compute:.0%} / {now.shares.communication:.0%} / {now.shares.waiting:.0%}"
            self.say(f"{before} {of_test_set} {after}{shares}")
        done = now.epoch - 1 + now.step / now.steps
        self.show(done, now.epochs, before, f"{after}step {now.step:,}/{now.steps:,}")
