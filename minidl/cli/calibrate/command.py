"""`minidl calibrate`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from minidl.cli import completion
from minidl.cli.ending import ending


def calibrate(
    context: Context,
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
            autocompletion=completion.PATTERNS,
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
        from minidl.cli.calibrate.run import run  # imported here, so that --help is fast

        run(context.params)
