"""Predict collectives by simulation, on a network calibrated on this machine, and compare with what they take.

    python benchmarks/calibration.py [--repetitions 100] [--rounds 5] [--picture fit.png] [--csv FILE]

Messages between two real processes give alpha and beta, timed reductions gamma (`cluster.calibrate`): once by
ping-pong, once by exchange. The simulation then runs the programs that are measured, on each of the two networks.
Each row is one collective: the median of its measured times, and for each network the prediction and its error,
predicted / measured - 1, as the median of the rounds. A tree sends one way at a time, as a ping-pong does; ring and
recursive doubling exchange.

How to read it. alpha is half the round trip of a *blocking* ping-pong. The first table splits it into the
time that the sender spends on a message, the time that the receiver spends on one that has already arrived, and the
rest: the way through the system, and waking a receiver that sleeps until the message comes. In a collective, ranks that
wait for each other pay for all of it; ranks whose message has already arrived do not. The model leaves out the other
costs of a collective (its fingerprint, the loop over its steps), so predictions of short ones are too low. With more
ranks than cores (marked *) a rank also waits for a core, which the model ignores: there the error shows how far this
machine is from one with a core for every rank.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import time
from pathlib import Path

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from minidl import cluster
from minidl.cluster.calibrate import PATTERNS

ALGORITHMS = ("ring", "tree", "recursive_doubling")
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22)
NODES = (2, 4)
ROW = 100  # messages that are sent while the receiver looks elsewhere


def all_reduces(comm: cluster.Communicator, repetitions: int) -> dict[tuple[str, int], float]:
    """The median seconds of one all-reduce, from a barrier until this rank returns."""
    medians = {}
    for nbytes in SIZES:
        x = np.zeros(nbytes // 4, np.float32)
        times: dict[str, list[float]] = {name: [] for name in ALGORITHMS}
        for turn in range(repetitions + 2):
            for name in ALGORITHMS:  # in turns, so that whatever else the machine does meets all alike
                comm.barrier()
                began = comm.now()
                comm.all_reduce(x, algorithm=name)
                if turn >= 2:
                    times[name].append(comm.now() - began)
        medians.update({(name, nbytes): statistics.median(times[name]) for name in ALGORITHMS})
    return medians


def overheads(comm: cluster.Communicator, repetitions: int) -> float:
    """The median seconds that rank 0 spends on sending 64 bytes, and rank 1 on receiving them once they are there."""
    x, room, times = np.zeros(64, np.uint8), np.empty(64, np.uint8), []
    for _ in range(repetitions):
        comm.barrier()
        if comm.rank == 1:
            time.sleep(0.03)  # asleep, but not in a receive: the message does not wake it
        began = comm.now()
        for _ in range(ROW):
            comm.send(x, 1) if comm.rank == 0 else comm.recv(0, out=room)
        times.append((comm.now() - began) / ROW)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100, help="of each message and collective (default 100)")
    parser.add_argument("--rounds", type=int, default=5, help="of calibrating and measuring (default 5)")
    parser.add_argument("--picture", type=Path, help="draw the fit of the last round to this file")
    parser.add_argument("--csv", type=Path, help="write every round's figures to this file")
    options = parser.parse_args()
    if options.rounds < 1 or options.repetitions < 1:
        parser.error("--rounds and --repetitions must be at least 1")
    cores = len(os.sched_getaffinity(0))
    console = Console()
    console.width = max(console.width, 110)

    networks: dict[str, list[cluster.Network]] = {pattern: [] for pattern in PATTERNS}
    sides: list[list[float]] = []
    rows: dict[tuple[int, str, int], list[tuple[float, ...]]] = {}  # for each round: measured, then a time a pattern
    for _ in range(options.rounds):
        for pattern in PATTERNS:
            networks[pattern].append(cluster.calibrate(nodes=2, repetitions=options.repetitions, pattern=pattern))
        sides.append(cluster.launch(overheads, (10,), nodes=2).results)
        for nodes in NODES:
            runs = [cluster.launch(all_reduces, (options.repetitions,), nodes=nodes)]
            for pattern in PATTERNS:
                network = networks[pattern][-1]
                runs.append(cluster.launch(all_reduces, (1,), nodes=nodes, on="simulation", network=network))
            columns = [slowest(run) for run in runs]
            for name, nbytes in columns[0]:
                times = tuple(column[name, nbytes] for column in columns)
                rows.setdefault((nodes, name, nbytes), []).append(times)

    console.print(network_table(networks, sides))
    console.print(fit_table(networks))
    console.print(prediction_table(rows, cores))
    for nodes in NODES:
        star = f" (*: more ranks than this machine's {cores} cores)" if nodes > cores else ""
        for index, pattern in enumerate(PATTERNS, 1):
            errors = [abs(error(times, index)) for (count, *_), times in rows.items() if count == nodes]
            console.print(f"{nodes} ranks{star}, by {pattern}: wrong by {statistics.median(errors):.0%} in the median")
    if options.picture:
        cluster.plot_fit(networks[PATTERNS[0]][-1], options.picture)
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("ranks", "algorithm", "bytes", "measured s", *(f"by {name} s" for name in PATTERNS)))
            writer.writerows((*key, *times) for key, rounds in rows.items() for times in rounds)


def slowest(run: cluster.Run) -> dict[tuple[str, int], float]:
    """The seconds of the slowest rank, for each collective."""
    return {key: max(result[key] for result in run.results) for key in run.results[0]}


def error(rounds: list[tuple[float, ...]], index: int) -> float:
    """The median over the rounds of predicted / measured - 1."""
    return statistics.median(times[index] / times[0] - 1 for times in rounds)


def network_table(networks: dict[str, list[cluster.Network]], sides: list[list[float]]) -> Table:
    table = Table("parameter", "median", "min .. max", title="this machine's messages")
    values = {}
    for pattern, rounds in networks.items():
        values[f"{pattern}: alpha, µs a message"] = [1e6 * network.alpha for network in rounds]
        values[f"{pattern}: 1/beta, GB/s"] = [1e-9 / network.beta for network in rounds]
    values["the sender's share of alpha"] = [1e6 * sender for sender, _ in sides]
    values["the receiver's share of alpha"] = [1e6 * receiver for _, receiver in sides]
    values["1/gamma, GB/s reduced"] = [1e-9 / network.gamma for rounds in networks.values() for network in rounds]
    for name, column in values.items():
        table.add_row(name, f"{statistics.median(column):.3g}", f"{min(column):.3g} .. {max(column):.3g}")
    return table


def fit_table(networks: dict[str, list[cluster.Network]]) -> Table:
    """The time of a message, and measured / fitted - 1; both are medians of the rounds."""
    columns = [column for pattern in networks for column in (f"{pattern} µs", "residual")]
    table = Table("bytes", *columns, title="one message")
    for index, (nbytes, _) in enumerate(networks[PATTERNS[0]][0].measured):
        cells = []
        for rounds in networks.values():
            seconds = statistics.median(network.measured[index][1] for network in rounds)
            residual = statistics.median(network.residuals[index][1] for network in rounds)
            cells += [f"{1e6 * seconds:.1f}", f"{residual:+.0%}"]
        table.add_row(f"{nbytes:,}", *cells)
    return table


def prediction_table(rows: dict[tuple[int, str, int], list[tuple[float, ...]]], cores: int) -> Table:
    columns = [column for pattern in PATTERNS for column in (f"by {pattern} ms", "error")]
    table = Table("ranks", "all-reduce", "bytes", "measured ms", *columns)
    for (nodes, name, nbytes), rounds in rows.items():
        cells = [f"{1e3 * statistics.median(times[0] for times in rounds):.3f}"]
        for index in range(1, len(PATTERNS) + 1):
            cells += [
                f"{1e3 * statistics.median(times[index] for times in rounds):.3f}",
                f"{error(rounds, index):+.0%}",
            ]
        table.add_row(f"{nodes}{'*' if nodes > cores else ''}", name, f"{nbytes:,}", *cells)
    return table


if __name__ == "__main__":
    main()
