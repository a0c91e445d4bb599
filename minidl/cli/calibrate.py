"""`minidl calibrate`: messages are measured here, and a network is fitted to them."""

from __future__ import annotations

import platform
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.table import Table
from typer import Option

from minidl.arguments import one_of, whole_number
from minidl.cli.display import LiveBar, results_table, say, show
from minidl.cli.ending import ending
from minidl.cli.quantities import size_text
from minidl.cli.shared_options import offer
from minidl.plots.style import seconds_text

if TYPE_CHECKING:
    from minidl.cluster.cost.network import Network


def calibrate(
    on: Annotated[
        str, Option(help="processes: nodes are processes of this machine; mpi: ranks of MPI, as for train.")
    ] = "processes",
    nodes: Annotated[
        int | None, Option(help="Nodes, which send to each other in pairs; by default 2, or all that mpiexec starts.")
    ] = None,
    pattern: Annotated[
        str,
        Option(
            help="ping-pong: two nodes send in turns; exchange: both at once, as in a ring.",
            autocompletion=offer("minidl.cluster.calibrate", "PATTERNS"),
        ),
    ] = "ping-pong",
    repetitions: Annotated[int, Option(help="Messages of each size.")] = 100,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="File for the network, such as net.json; by default none."),
    ] = None,
    picture: Annotated[Path | None, Option(help="File for a picture of the fit, such as fit.png.")] = None,
) -> None:
    """Measure messages here, and fit a network: seconds per message, per byte, and per reduced byte.

    The table shows how well a straight line fits. Every command takes the file as --network net.json.
    """
    with ending("minidl calibrate"):
        from minidl import cluster  # here, so that --help comes at once
        from minidl.cli import engines, mpi_job
        from minidl.cluster.calibrate import PATTERNS, plot_fit

        on, pattern = one_of("--on", on, engines.REAL), one_of("--pattern", pattern, PATTERNS)
        mpi_job.check(on)
        nodes = nodes or (on == "mpi" and mpi_job.nodes_by_mpiexec(servers=0)) or 2
        engines.check(on, whole_number("--nodes", nodes, at_least=2))
        repetitions = whole_number("--repetitions", repetitions, at_least=1)
        cluster.once(partial(_check_files, output, picture), on)  # files are written on the machine of rank 0
        console = Console()
        with LiveBar(console, f"sending messages between {nodes} nodes on {on}"):
            network = cluster.calibrate(nodes, on, repetitions=repetitions, pattern=pattern)
        if not cluster.is_first(on):
            return
        show(console, table(network, f"{nodes} nodes on {on}, {pattern}"))
        say(console, f"alpha {seconds_text(network.alpha)}, beta {_rate(network.beta)}, gamma {_rate(network.gamma)}")
        if output is not None:
            today = time.strftime("%Y-%m-%d")
            network.save(output, f"minidl calibrate, {nodes} nodes on {on}, {pattern}, {platform.node()}, {today}")
            say(console, f"The network is in {output}: --network {output}")
        if picture is not None:
            plot_fit(network, picture)
            say(console, f"The fit is drawn in {picture}")


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


def _check_files(output: Path | None, picture: Path | None) -> None:
    """Raise ValueError before anything is measured if a file cannot be written."""
    for flag, path, ends in (("output", output, (".json",)), ("picture", picture, (".png", ".pdf", ".svg"))):
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
