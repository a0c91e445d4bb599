"""`minidl simulate`: its options."""

from __future__ import annotations

from typing import Annotated

from typer import Context, Option

from minidl.cli.ending import ending
from minidl.cli.shared_options import Out


def simulate(
    context: Context,
    collective: Annotated[
        str,
        Option(
            help="all_reduce, broadcast, reduce, reduce_scatter, all_gather, gather, scatter, all_to_all or barrier."
        ),
    ] = "all_reduce",
    algorithm: Annotated[
        list[str] | None,
        Option(help="Algorithms of all_reduce: ring, tree, ..., auto; repeatable. By default all of them."),
    ] = None,
    nodes: Annotated[list[str] | None, Option(help="Numbers of nodes; by default 2,4,8,16,32.")] = None,
    nbytes: Annotated[
        list[str] | None,
        Option("--bytes", help="Sizes of the whole float32 vector: 64KiB, 100MB (the default); repeatable."),
    ] = None,
    network: Annotated[
        list[str] | None, Option(help="1gbe, 10gbe (the default), 100gbe, infiniband or nvlink; repeatable.")
    ] = None,
    alpha: Annotated[float | None, Option(help="Seconds per message; replaces the network's.")] = None,
    beta: Annotated[float | None, Option(help="Seconds per byte; replaces the network's.")] = None,
    gamma: Annotated[float, Option(help="Seconds per reduced byte.")] = 0.0,
    trace_of: Annotated[
        list[str] | None,
        Option(
            metavar="ALGORITHM:NODES",
            help="Run whose timeline is drawn; repeatable. By default the fastest and the slowest on up to 8 nodes.",
        ),
    ] = None,
    out: Out = None,
) -> None:
    """Simulate a collective on many nodes, and compare algorithms, networks and sizes.

    Several values of an option are separated by commas or spaces. Each run is simulated message by message on a virtual
    clock (nodes compute in no time, except for --gamma) and compared with its formula. The folder gets the table as
    CSV, a picture of the times, and timelines: all in one picture, and each as a trace for Perfetto.
    """
    with ending("simulate"):
        from minidl.cli.simulate.run import run  # here, so that --help comes at once

        run(context.params)
