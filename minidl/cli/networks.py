"""`minidl networks`: a table of the networks that have a name."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from minidl.cli.display import results_table, say, show
from minidl.cli.ending import ending
from minidl.cli.quantities import seconds_text


def networks() -> None:
    """Show the networks that --network names: seconds per message, speed, and where the numbers come from."""
    with ending("minidl networks"):
        show(Console(), table())
        say(
            Console(),
            "--network also takes a file, which minidl calibrate and minidl simulate --racks write and you may write "
            'yourself:\n  {"alpha": 20e-6, "beta": 0.8e-9}  in seconds per message and per byte, or\n'
            '  {"racks": 8, "per_rack": 8, "nic": {"latency": 1e-6, "bytes_per_second": 150e9}, '
            '"uplink": {"latency": 5e-6, "bytes_per_second": 12.5e9}}',
        )


def table() -> Table:
    """A row for each network."""
    from minidl.cluster.cost.network import PRESETS  # here, so that --help comes at once

    result = results_table("Networks", "alpha: seconds per message; beta: seconds per byte; gamma is 0")
    for name in ("name", "alpha", "beta", "speed"):
        result.add_column(name, justify="left" if name == "name" else "right", no_wrap=True)
    result.add_column("source", overflow="fold")
    for name, (alpha, beta, source) in PRESETS.items():
        speed = f"{8e-9 / beta:g} Gbit/s"
        result.add_row(name, seconds_text(alpha), f"{beta * 1e9:.3g} ns", speed, source)
    return result
