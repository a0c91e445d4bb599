"""A run of `minidl calibrate`: from the command-line options to the table, the file and the picture."""

from __future__ import annotations

import platform
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from minidl import cluster
from minidl.arguments import one_of, whole_number
from minidl.cli import engines, mpi_job
from minidl.cli.display import results_table, say, show
from minidl.cli.quantities import seconds_text, size_text
from minidl.cluster.calibrate import PATTERNS, plot_fit
from minidl.cluster.cost.network import Network

REAL = ("processes", "mpi")


def run(options: dict[str, Any]) -> None:
    """Measure, fit, print the table, and write the files that the options name."""
    on, pattern = one_of("--on", options["on"], REAL), one_of("--pattern", options["pattern"], PATTERNS)
    mpi_job.check(on)
    nodes = options["nodes"] or (on == "mpi" and mpi_job.nodes_by_mpiexec(servers=0)) or 2
    engines.check(on, whole_number("--nodes", nodes, at_least=2))
    repetitions = whole_number("--repetitions", options["repetitions"], at_least=1)
    cluster.once(partial(_check_files, options), on)  # files are written on the machine of rank 0
    console = Console()
    with console.status(f"sending messages between {nodes} nodes on {on}"):
        network = cluster.calibrate(nodes, on, repetitions=repetitions, pattern=pattern)
    if not cluster.is_first(on):
        return
    show(console, table(network, f"{nodes} nodes on {on}, {pattern}"))
    say(console, f"alpha {seconds_text(network.alpha)}, beta {_rate(network.beta)}, gamma {_rate(network.gamma)}")
    if options["output"] is not None:
        source = f"minidl calibrate, {nodes} nodes on {on}, {pattern}, {platform.node()}, {time.strftime('%Y-%m-%d')}"
        network.save(options["output"], source)
        say(console, f"The network is in {options['output']}: --network {options['output']}")
    if options["picture"] is not None:
        plot_fit(network, options["picture"])
        say(console, f"The fit is drawn in {options['picture']}")


def table(network: Network, title: str) -> Table:
    """A row for each message size: measured time, fitted time, and their difference."""
    result = results_table(title, "measured: median\nfitted: alpha + bytes x beta")
    for name in ("bytes", "measured", "fitted", "difference"):
        result.add_column(name, justify="right", no_wrap=True)
    for (nbytes, seconds), (_, residual) in zip(network.measured, network.residuals, strict=True):
        result.add_row(size_text(nbytes), seconds_text(seconds), seconds_text(network.time(nbytes)), f"{residual:+.0%}")
    return result


def _rate(seconds_per_byte: float) -> str:
    return f"{seconds_per_byte * 1e9:.3g} ns a byte ({1e-9 / seconds_per_byte:.3g} GB/s)" if seconds_per_byte else "0"


def _check_files(options: dict[str, Any]) -> None:
    """Raise ValueError before anything is measured if a file cannot be written."""
    for flag, ends in (("output", (".json",)), ("picture", (".png", ".pdf", ".svg"))):
        path: Path | None = options[flag]
        if path is None:
            continue
        if path.suffix not in ends:
            raise ValueError(f"--{flag} {path}: the name must end in {' or '.join(ends)}")
        if not path.parent.is_dir():
            raise ValueError(f"--{flag} {path}: there is no folder {path.parent}")
        if path.is_dir():
            raise ValueError(f"--{flag} {path} is a folder: give the name of a file")
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise ValueError(f"--{flag} {path} cannot be written ({error.strerror}): choose another folder") from error
