"""`minidl simulate`: its options; `run` reads them, `cases` makes the calls, `report` prints and draws."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from minidl.cli.ending import ending
from minidl.cli.shared_options import ALGORITHMS, Networks, Out, offer


def simulate(
    context: Context,
    collective: Annotated[
        str,
        Option(
            help="all_reduce, broadcast, reduce, reduce_scatter, all_gather, gather, scatter, all_to_all or barrier.",
            autocompletion=offer("minidl.cli.simulate.cases", "ALGORITHMS"),
        ),
    ] = "all_reduce",
    algorithm: Annotated[
        list[str] | None,
        Option(
            help="Algorithms of all_reduce: ring, tree, recursive_doubling, rabenseifner, parameter_server, "
            "pipelined_chain, hierarchical, ordered, auto, or one of your own (--import); repeatable. By default all "
            "of them.",
            autocompletion=ALGORITHMS,
        ),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        Option(help="Numbers of nodes; by default 2,4,8,16,32, all of a topology, or 2,4 if --measured."),
    ] = None,
    nbytes: Annotated[
        list[str] | None,
        Option(
            "--bytes", help="Sizes of the whole float32 vector: 64KiB, 100MB; by default 100MB, or 1MB if --measured."
        ),
    ] = None,
    network: Networks = None,
    alpha: Annotated[float | None, Option(help="Seconds per message; replaces the network's.")] = None,
    beta: Annotated[float | None, Option(help="Seconds per byte; replaces the network's.")] = None,
    gamma: Annotated[float | None, Option(help="Seconds per reduced byte; replaces the network's.")] = None,
    per_group: Annotated[
        int | None,
        Option(
            help="Nodes in a group of the hierarchical all_reduce; by default neighbours, such as a rack, or about "
            "sqrt(nodes)."
        ),
    ] = None,
    measured: Annotated[bool, Option("--measured", help="Make each call for real too, and show both times.")] = False,
    on: Annotated[
        str | None,
        Option(help="Where --measured makes the calls: processes of this machine (the default), or mpi."),
    ] = None,
    trace_of: Annotated[
        list[str] | None,
        Option(
            metavar="ALGORITHM:NODES",
            help="Run whose timeline is drawn; repeatable. By default the fastest and the slowest on up to 8 nodes.",
        ),
    ] = None,
    imported: Annotated[
        list[Path] | None,
        Option(
            "--import",
            metavar="FILE.py",
            help="A file with all-reduces of your own: functions f(comm, x, op) that change x in place, as in "
            "minidl/cluster/collectives/all_reduce.py. May be given several times.",
        ),
    ] = None,
    out: Out = None,
) -> None:
    """Simulate a collective on many nodes, and compare algorithms, networks and sizes.

    Several values of an option are separated by commas or spaces. Each run is simulated on a virtual clock (nodes
    compute in no time, except for --gamma) and compared with its formula: up to 16,384 nodes, or 1,024 of a topology.
    The folder gets the table as CSV, a picture of the times, and timelines: all in one picture, all in a page
    to be played in a browser (run.html), and each as a trace for Perfetto.
    """
    with ending("minidl simulate"):
        from minidl.cli.simulate.run import run  # here, so that --help comes at once

        if imported:
            from minidl.cli.imported import register_all

            register_all(imported, on or "processes")
        run({name: None if value == () else value for name, value in context.params.items() if name != "imported"})
