"""Messages per second in the simulation of a ring all-reduce, compared with SimGrid's Python API.

    python benchmarks/simulation.py [--ranks 64] [--rounds 3] [--simgrid-python /usr/bin/python3] [--csv FILE]

minidl runs whole programs on small real arrays (every rank's sum is checked): message by message, and at once as it
does for many ranks, each with a full trace and with the ledger alone; all of `launch` is timed. SimGrid only passes the
messages, fewer of them because it is slower; `Engine.run` is timed. Both must arrive at the formula's time. The sides
take turns, so that other load on the machine affects both alike. Each round gives one ratio, minidl's messages per
second / SimGrid's; above 1 minidl is faster.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from minidl import cluster

ALPHA, BETA = 10e-6, 1e-9
FLOATS = 4  # in a message
MESSAGES = 100_000  # in one measurement of minidl, or those of one all-reduce if they are more
SIMGRID_MESSAGES = 30_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, action="append", help="how many (repeatable); 64 and 1024 by default")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each side (default 3)")
    parser.add_argument("--simgrid-python", default="/usr/bin/python3", help="an interpreter that can import simgrid")
    parser.add_argument("--csv", type=Path, help="write every measurement to this file")
    options = parser.parse_args()
    if options.rounds < 1 or min(options.ranks or [2]) < 2:
        parser.error("--rounds must be at least 1, --ranks at least 2")
    version = simgrid_version(options.simgrid_python)

    console = Console()
    console.width = max(console.width, 110)  # where the output is piped, rich would fold the table at 80
    console.print(
        f"ring all-reduce, {FLOATS * 4} bytes a message; numpy {np.__version__}, SimGrid {version or 'missing'}"
    )
    if version is None:
        console.print(
            f"{options.simgrid_python} cannot import simgrid, so nothing to compare with: install Debian's or Ubuntu's "
            "python3-simgrid, or name an interpreter that has it with --simgrid-python"
        )
    table = Table("ranks", "side", "messages", "messages/s", "ratio to SimGrid", "min .. max", "off the formula by")
    rows: list[tuple[Any, ...]] = []
    for ranks in options.ranks or [64, 1024]:
        engines = {
            f"{'at once' if batched else 'by messages'}, {trace}": cluster.Simulation(trace=trace, batched=batched)
            for batched in (False, True)
            for trace in ("full", "ledger")
        }
        sides = [*engines, *(["SimGrid"] if version else [])]
        measured: dict[str, list[tuple[int, float, float]]] = {side: [] for side in sides}
        for _ in range(options.rounds):
            for side in sides:
                one = (
                    minidl_ring(ranks, engines[side])
                    if side in engines
                    else simgrid_ring(ranks, options.simgrid_python)
                )
                measured[side].append(one)
                rows.append((ranks, side, *one))
        for side, ones in measured.items():
            rates = [messages / seconds for messages, seconds, _ in ones]
            theirs = [messages / seconds for messages, seconds, _ in measured.get("SimGrid", [])]
            ratios = [a / b for a, b in zip(rates, theirs, strict=bool(theirs))]
            table.add_row(
                str(ranks),
                side,
                f"{ones[0][0]:,}",
                f"{statistics.median(rates):,.0f}",
                f"{statistics.median(ratios):.1f}" if ratios else "",
                f"{min(ratios):.1f} .. {max(ratios):.1f}" if ratios else "",
                f"{max(off for *_, off in ones):.0e}",
            )
    console.print(table)
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("ranks", "side", "messages", "seconds", "relative difference from the formula"))
            writer.writerows(rows)


def minidl_ring(ranks: int, engine: cluster.Simulation) -> tuple[int, float, float]:
    """Messages, real seconds, and the relative difference of the virtual time from the formula's."""
    one = 2 * (ranks - 1) * ranks  # messages of an all-reduce
    repeats = max(1, MESSAGES // one)
    began = time.perf_counter()
    run = cluster.launch(
        reduce_repeatedly,
        args=(FLOATS * ranks, repeats),
        nodes=ranks,
        on=engine,
        network=cluster.Network(ALPHA, BETA),
    )
    seconds = time.perf_counter() - began
    if run.results != [FLOATS * ranks * ranks * (ranks - 1) / 2] * ranks:
        sys.exit(f"the sums over {ranks} ranks are wrong: {run.results[:4]} ...")
    formula = repeats * cluster.cost.all_reduce("ring", ranks, 4 * FLOATS * ranks, ALPHA, BETA)
    return repeats * one, seconds, same_time(run.seconds, formula)


def reduce_repeatedly(comm: cluster.Communicator, n: int, repeats: int) -> float:
    x = np.empty(n, np.float32)
    for _ in range(repeats):
        x.fill(comm.rank)
        comm.all_reduce(x, algorithm="ring")
    return float(x.sum(dtype=np.float64))


def simgrid_ring(ranks: int, python: str) -> tuple[int, float, float]:
    """The same for SimGrid, with as many steps of the ring as make about SIMGRID_MESSAGES messages."""
    steps = max(1, SIMGRID_MESSAGES // ranks)
    script = Path(__file__).with_name("simgrid_ring.py")
    command = [python, str(script), *map(str, (ranks, steps, 4 * FLOATS, ALPHA, BETA))]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    result = json.loads(output.splitlines()[-1])
    formula = steps * (ALPHA + 4 * FLOATS * BETA)
    return steps * ranks, result["seconds"], same_time(result["simulated"], formula)


def same_time(simulated: float, formula: float) -> float:
    """Their relative difference; they have done the same work only if there is next to none."""
    difference = abs(simulated / formula - 1)
    if not difference < 1e-9:
        sys.exit(
            f"{simulated} s were simulated, the formula says {formula}: this is not the same work, so no comparison"
        )
    return difference


def simgrid_version(python: str) -> str | None:
    try:
        found = subprocess.run(
            [python, "-c", "import simgrid; print(simgrid.simgrid_version)"], capture_output=True, text=True, timeout=60
        )
    except FileNotFoundError:
        return None
    return found.stdout.split()[-1] if found.returncode == 0 else None


if __name__ == "__main__":
    main()
