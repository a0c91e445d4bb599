"""All-reduce algorithms: what each sends, and which is fastest from which size on.

What the papers say. Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH
(2005): recursive doubling needs the fewest messages, and is best for short vectors; Rabenseifner's algorithm needs the
fewest bytes with few messages, and is best for long ones. Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms
for clusters of workstations (2009): at least one node sends 2(p - 1)/p of the vector or more, and a ring sends exactly
that.

What is done. Star (rank 0 is the server), binomial tree, ring, recursive doubling and Rabenseifner's algorithm run on p
= 2 to 16 simulated nodes with real vectors of 5,040 float32 numbers, powers of two or not; messages and bytes are
counted, and the simulated time is compared with the formula. Then a search in simulation finds, to 64 bytes, the size
at which Rabenseifner's algorithm overtakes recursive doubling.

What must show. Sums equal np.sum's. Per rank, the ring sends 2(p - 1) messages and 2(p - 1)/p n numbers, for p a power
of two recursive doubling lg p and n lg p, Rabenseifner 2 lg p and 2(p - 1)/p n; the star's server sends and
receives (p - 1) n. No algorithm is below the bound. Simulated times equal the formulas. The crossover is at
n* = alpha lg p / (beta (lg p - 2(p - 1)/p)): 4, 2.4 and 1.882 alpha/beta for p = 4, 8 and 16. For p a power of two the
ring is never faster than Rabenseifner: it needs 2(p - 1 - lg p) messages more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster
from minidl.cluster import cost
from minidl.cluster.comm import Communicator
from minidl.plots import style

TITLE = "All-reduce: messages, bytes, times and crossovers"

ALGORITHMS = {
    "parameter_server": "star",
    "tree": "tree",
    "ring": "ring",
    "recursive_doubling": "recursive doubling",
    "rabenseifner": "Rabenseifner",
}
NODES = tuple(range(2, 17))
NUMBERS, ITEMSIZE = 5_040, 4  # divisible by all p but 11 and 13
NETWORK = cluster.Network(alpha=50e-6, beta=8e-9)
STEP = 64  # bytes, to which crossovers are found


def summed(comm: Communicator, algorithm: str) -> bool:
    """Whether the sum over the ranks is right; the numbers are whole, so that no order of additions rounds."""
    share = np.random.default_rng(comm.rank).integers(-100, 100, NUMBERS).astype(np.float32)
    truth = np.sum([np.random.default_rng(r).integers(-100, 100, NUMBERS) for r in range(comm.size)], axis=0)
    return bool((comm.all_reduce(share, algorithm=algorithm) == truth).all())


def seconds(algorithm: str, p: int, nbytes: int) -> float:
    """Simulated seconds of an all-reduce of `nbytes` bytes (without contents)."""

    def program(comm: Communicator) -> None:
        comm.all_reduce(cluster.Phantom(nbytes, "float32"), algorithm=algorithm)

    return cluster.launch(program, nodes=p, on=cluster.Simulation(NETWORK, trace="ledger")).seconds


def formula(algorithm: str, p: int, nbytes: int) -> float:
    return cost.all_reduce(algorithm, p, nbytes, NETWORK.alpha, NETWORK.beta, itemsize=ITEMSIZE)


def published(algorithm: str, p: int) -> tuple[int, float] | None:
    """Messages, and numbers as a multiple of n, that the busiest rank sends; None for p without a published formula."""
    rounds, share = p.bit_length() - 1, 2 * (p - 1) / p
    if algorithm == "parameter_server":
        return p - 1, p - 1
    if algorithm == "ring":
        return (2 * (p - 1), share) if NUMBERS % p == 0 else None
    if p & (p - 1) or algorithm == "tree":
        return None
    return (rounds, rounds) if algorithm == "recursive_doubling" else (2 * rounds, share)


def crossover(p: int) -> int:
    """The least multiple of STEP bytes for which Rabenseifner is not slower than recursive doubling; simulated."""
    low, high = 1, 1000  # in steps
    while low < high:
        middle = (low + high) // 2
        is_over = seconds("rabenseifner", p, middle * STEP) <= seconds("recursive_doubling", p, middle * STEP)
        low, high = (low, middle) if is_over else (middle + 1, high)
    return low * STEP


def experiment(reproduction: Reproduction) -> None:
    rows: list[list[Any]] = []
    wrong = unlike = below = 0
    for p in NODES:
        for algorithm, name in ALGORITHMS.items():
            run = cluster.launch(summed, (algorithm,), nodes=p, on=cluster.Simulation(NETWORK, trace="ledger"))
            traffic = [ledger["all_reduce"] for ledger in run.trace.ledger()]
            messages = max(one.messages for one in traffic)
            share = max(one.nbytes for one in traffic) / (NUMBERS * ITEMSIZE)
            paper, bound = published(algorithm, p), 2 * (p - 1) / p
            expected = formula(algorithm, p, NUMBERS * ITEMSIZE)
            wrong += not all(run.results)
            unlike += paper is not None and not (messages == paper[0] and math.isclose(share, paper[1], rel_tol=1e-12))
            below += share < bound * (1 - 1e-12)
            total = sum(one.messages for one in traffic), sum(one.nbytes for one in traffic)
            unlike += total != cost.traffic(algorithm, p, NUMBERS * ITEMSIZE, ITEMSIZE)
            rows.append([p, name, messages, share, *(paper or ("", "")), bound, 1e6 * run.seconds, 1e6 * expected])
    columns = ["p", "algorithm", "messages", "numbers / n", "published", "published", "bound", "us", "formula us"]
    note = f"the busiest rank's; n = {NUMBERS:,} float32, {1e6 * NETWORK.alpha:.0f} us a message, 1 Gbit/s; simulated"
    reproduction.table(columns, rows, note)

    ratio = NETWORK.alpha / NETWORK.beta
    found = {p: crossover(p) for p in (4, 8, 16)}
    closed = {p: cost.crossover(p, NETWORK.alpha, NETWORK.beta) for p in found}
    crossed = [[p, found[p], closed[p], closed[p] / ratio, known] for p, known in ((4, 4.0), (8, 2.4), (16, 1.882))]
    columns = ["p", "found at bytes", "n* bytes", "n* beta/alpha", "published"]
    reproduction.table(
        columns, crossed, "from which size on Rabenseifner's algorithm is faster than recursive doubling"
    )
    reproduction.picture(picture(rows, found[8]))

    off = max(abs(row[-2] / row[-1] - 1) for row in rows)
    reproduction.accept(wrong == 0, f"all {len(rows)} sums are np.sum's")
    reproduction.accept(unlike == 0, f"messages and bytes are the published ones, in {len(rows)} cases")
    reproduction.accept(below == 0, "the busiest rank sends at least 2(p - 1)/p n in all of them")
    reproduction.accept(off < 1e-9, f"simulated times equal the formulas: they differ by {off:.0e} at most")
    away = {p: found[p] - closed[p] for p in found}
    near = ", ".join(f"p = {p}: {found[p]:,} bytes, n* = {closed[p]:,.0f}" for p in found)
    reproduction.accept(all(-1e-6 <= d < 2 * STEP for d in away.values()), f"the crossovers are at n*: {near}")
    slower = [
        seconds("ring", p, n) - seconds("rabenseifner", p, n) - 2 * (p - 1 - (p.bit_length() - 1)) * NETWORK.alpha
        for p in (2, 4, 8, 16)
        for n in (64, 6_400, 640_000)
    ]
    most = max(map(abs, slower))
    reproduction.accept(most < 1e-9, f"the ring costs 2(p - 1 - lg p) alpha more than Rabenseifner, to {most:.0e} s")


def picture(rows: list[list[Any]], crossing: int) -> Figure:
    """Time over size on eight nodes, and what the busiest rank sends over the number of nodes."""
    with style.applied():
        figure, (left, right) = style.new_figure(9.5, 3.8, columns=2)
        sizes, dots = np.geomspace(64, 4e6, 60), [64 * 4**k for k in range(9)]
        for i, (algorithm, name) in enumerate(ALGORITHMS.items()):
            look: Any = {"color": style.SERIES[i], "linestyle": style.DASHES[i]}
            left.plot(sizes, [1e3 * formula(algorithm, 8, 32 * (int(n) // 32)) for n in sizes], label=name, **look)
            left.plot(dots, [1e3 * seconds(algorithm, 8, n) for n in dots], ".", color=style.SERIES[i])
            sent = [(row[0], row[3]) for row in rows if row[1] == name]
            right.plot(*zip(*sent, strict=True), marker=".", label=name, **look)
        left.axvline(crossing, color="0.6", linewidth=0.8)
        left.annotate("n*", (crossing, 50), color="0.4", xytext=(3, 0), textcoords="offset points")
        left.set(xscale="log", yscale="log", xlabel="vector [bytes]", ylabel="all-reduce [ms]")
        left.set_title("Eight nodes: formula (lines), simulated (dots)")
        left.legend(fontsize=7)
        right.plot(NODES, [2 * (p - 1) / p for p in NODES], color="black", linewidth=3, alpha=0.25, label="lower bound")
        right.set(xlabel="nodes", ylabel="sent by the busiest rank / n", yscale="log")
        right.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
        right.set_title("What the busiest rank sends (simulated)")
        right.legend(fontsize=7)
        style.label_source(figure, ["simulated", "formula"], "50 µs a message, 1 Gbit/s")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
