"""Sparse all-reduce: how the sum of sparse vectors fills up, and when it pays to stay sparse.

Renggli et al., SparCML (SC'19), add up sparse vectors on the way and switch to dense ones when these are shorter. If P
nodes each choose a share d of n entries at random, the sum has the density 1 - (1 - d)^P, at most P d. A pair of index
and value is 8 bytes, a dense value 4, so that a dense vector is shorter from density 1/2 on. Expected bytes that a node
sends:

    gather               8 d n (P - 1)
    recursive doubling   sum over i < lg P of min(8 (1 - (1 - d)^(2^i)), 4) n
    split                (P - 1)/P n (8 d + min(8 (1 - (1 - d)^P), 4))
    dense                (P - 1)/P n 8

So gathering pays while P d < 1; at P = 32 and d = 25 % it sends 8 times as much as a dense all-reduce. Split never
sends more than a dense one up to d = 1/2.

Here: vectors of 100,000 numbers on simulated nodes; the dense all-reduce is Rabenseifner's, with the fewest bytes and
few messages. In this simulation only messages take time, additions do not. What must show: densities within 3 standard
deviations sqrt(D (1 - D)/n) of the formula; bytes within 2 % of the formulas; the two sides of P d = 1, in bytes.
Real gradients agree more than chance: the second table has the union of the largest 1 % of P nodes' gradients.

Compression trades computing for bytes: it pays on networks slower than bytes saved / seconds of encoding and adding up.
The last table has this bandwidth for 16 nodes that gather, measured on one core of the machine at hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import log2, sqrt
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions import digits
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster, data, parallel
from minidl import functional as F
from minidl.compress import RandomK, Threshold, TopK
from minidl.compress.sparse import Sparse, unpack
from minidl.parallel.gradients.flat_vector import gradient
from minidl.plots.style import DASHES, SERIES, applied, label_source, new_figure

TITLE = "Sparse all-reduce: fill-in, bytes and times (SparCML)"

SIZE = 100_000
NODES = (2, 4, 8, 16, 32, 64)
DENSITIES = (0.001, 0.01, 0.1)
PILOT = dict(zip(NODES, (0.0199, 0.0394, 0.0773, 0.1485, 0.275, 0.474), strict=True))  # at density 1 %
WAYS = ("dense", "gather", "recursive_doubling", "split")
NETWORKS = ("1gbe", "10gbe")


def union(density: float, nodes: int) -> float:
    """The expected density of the sum."""
    return float(1 - (1 - density) ** nodes)


BYTES: dict[str, Callable[[float, int], float]] = {
    "dense": lambda d, p: (p - 1) / p * SIZE * 8,
    "gather": lambda d, p: 8 * d * SIZE * (p - 1),
    "recursive_doubling": lambda d, p: sum(min(8 * union(d, 2**i), 4) * SIZE for i in range(round(log2(p)))),
    "split": lambda d, p: (p - 1) / p * SIZE * (8 * d + min(8 * union(d, p), 4)),
}


def add_up(comm: cluster.Communicator, way: str, density: float) -> tuple[float, int, float]:
    """A rank's program: the density of the sum, the bytes sent, the seconds."""
    own = np.ones(SIZE, np.float32)
    if way == "dense":
        total = comm.all_reduce(own, algorithm="rabenseifner")
    else:
        total = RandomK(density, seed=None, all_reduce=way).begin_all_reduce(own, comm)()
    return np.count_nonzero(total) / SIZE, comm.bytes_sent, comm.now()


def measure(way: str, density: float, nodes: int, network: str = "1gbe") -> tuple[float, float, float]:
    """The density of the sum, the mean bytes a node sends, the simulated seconds."""
    engine = cluster.Simulation(cluster.Network.preset(network), trace="ledger")
    run = cluster.launch(add_up, args=(way, density), nodes=nodes, on=engine)
    densities, sent, seconds = zip(*run.results, strict=True)
    return densities[0], float(np.mean(sent)), max(seconds)


def experiment(reproduction: Reproduction) -> None:
    fill = {(d, p): measure("gather", d, p)[0] for d in DENSITIES for p in NODES}
    moved = {(way, p): measure(way, 0.01, p) for way in WAYS for p in NODES}
    wide = {way: measure(way, 0.25, 32)[1] for way in WAYS}

    reproduction.table(
        ["density", "nodes", "of the sum", "formula", "standard deviation", "at worst", "formerly computed"],
        [
            [d, p, fill[d, p], union(d, p), deviation(d, p), min(p * d, 1.0), PILOT[p] if d == 0.01 else ""]
            for d, p in fill
        ],
        "the densities of sums of random choices",
    )
    real = real_unions()
    reproduction.table(
        ["nodes", "union of the largest 1 %", "of random choices", "fewest"],
        [[p, real[p], union(0.01, p), 0.01] for p in real],
        "gradients of 64-128-10 on the digits, 16 samples a node, after one epoch",
    )
    fast = {(way, p): measure(way, 0.01, p, "10gbe")[2] for way in WAYS for p in NODES}
    reproduction.table(
        ["way", "nodes", "bytes a node", "formula", "ms on 1gbe", "ms on 10gbe"],
        [
            [way, p, round(moved[way, p][1]), round(BYTES[way](0.01, p)), 1e3 * moved[way, p][2], 1e3 * fast[way, p]]
            for way, p in moved
        ],
        "density 1 %; times simulated",
    )
    by_density = {
        (way, d): measure(way, d, 16, "10gbe")[2] for way in WAYS for d in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5)
    }
    reproduction.table(
        ["compressor", "ms", "bytes saved", "break-even, Gbit/s"],
        [break_even(compressor, 16) for compressor in (TopK(0.01), RandomK(0.01, seed=None), Threshold(2.576))],
        "measured: encoding 100,000 normal numbers, and adding up 16 messages; all three send about 1 %",
    )
    reproduction.picture(picture(fill, moved, by_density))

    far = max(abs(fill[key] - union(*key)) / deviation(*key) for key in fill)
    reproduction.accept(far < 3, f"densities are within {far:.2f} standard deviations of 1 - (1 - d)^P")
    off = max(abs(moved[way, p][1] / BYTES[way](0.01, p) - 1) for way, p in moved)
    off = max(off, *(abs(wide[way] / BYTES[way](0.25, 32) - 1) for way in WAYS))
    reproduction.accept(off < 0.02, f"bytes are within {100 * off:.2f} % of the formulas")
    ratio = wide["gather"] / wide["dense"]
    reproduction.accept(
        abs(ratio - 8) < 0.01, f"at d = 25 % and 32 nodes gathering sends {ratio:.3f} times the dense bytes"
    )
    below, above = (measure("gather", 0.03, p)[1] / measure("dense", 0.03, p)[1] for p in (32, 34))
    reproduction.accept(
        below < 1 < above, f"at d = 3 %: {below:.3f} times at 32 nodes, {above:.3f} times at 34: 1/d = 33.3"
    )
    most = max(moved["split", p][1] / moved["dense", p][1] for p in NODES)
    most = max(most, wide["split"] / wide["dense"])
    reproduction.accept(most <= 1, f"split sends at most {most:.3f} times the dense bytes")
    agree = all(0.01 <= real[p] < union(0.01, p) for p in real)
    reproduction.accept(agree, f"real gradients overlap: {real[16]:.3f} of 16 nodes, {union(0.01, 16):.3f} by chance")


def deviation(density: float, nodes: int) -> float:
    """The standard deviation of the sum's density, if each entry were filled by itself."""
    expected = union(density, nodes)
    return sqrt(expected * (1 - expected) / SIZE)


def real_unions() -> dict[int, float]:
    """The share of entries that are among the largest 1 % of the gradient of at least one of `nodes` nodes."""
    report = parallel.train(digits.job((64, 128, 10), epochs=1), on="simulation")
    model, train, chosen = report.model(), data.digits().train, TopK(0.01)
    filled, unions = np.zeros(0), {}
    for node in range(NODES[-1]):
        part = slice(16 * node, 16 * node + 16)
        model.zero_grad()
        F.cross_entropy(model(train.x[part]), train.y[part]).backward()
        mine = chosen.decode(chosen.encode(gradient(list(model.parameters())))) != 0
        filled = mine if node == 0 else filled | mine
        unions[node + 1] = float(filled.mean())
    return {p: unions[p] for p in NODES}


def break_even(compressor: Sparse, nodes: int) -> list[object]:
    """The seconds that compression takes, the bytes it saves, and the bandwidth below which it pays."""
    own, total, seconds = np.random.default_rng(0).normal(size=SIZE).astype(np.float32), np.zeros(SIZE, np.float32), []
    for _ in range(20):
        began = time.perf_counter()
        message = compressor.encode(own)
        for _ in range(nodes):
            indices, values = unpack(message)
            total[indices] += values
        seconds.append(time.perf_counter() - began)
    saved = BYTES["dense"](1.0, nodes) - (nodes - 1) * message.nbytes
    return [type(compressor).__name__, 1e3 * min(seconds), round(saved), 8e-9 * saved / min(seconds)]


def picture(
    fill: dict[tuple[float, int], float],
    moved: dict[tuple[str, int], tuple[float, float, float]],
    by_density: dict[tuple[str, float], float],
) -> Figure:
    """Density of the sum and bytes against nodes, times against density."""
    with applied():
        figure, (left, middle, right) = new_figure(10.0, 3.4, 3)
        for i, d in enumerate(DENSITIES):
            left.plot(NODES, [fill[d, p] for p in NODES], "o", color=SERIES[i], label=f"d = {100 * d:g} %")
            left.plot(NODES, [union(d, p) for p in NODES], color=SERIES[i], linestyle=DASHES[i])
        left.axhline(0.5, color="0.6", linewidth=0.8)
        left.annotate("dense is shorter", (2, 0.5), xytext=(0, 2), textcoords="offset points", color="0.35", fontsize=7)
        left.set(xscale="log", yscale="log", title="Density of the sum", xlabel="nodes", ylabel="density")
        for i, way in enumerate(WAYS):
            style: dict[str, Any] = {"color": SERIES[i], "linestyle": DASHES[i], "marker": "o", "markersize": 3.5}
            middle.plot(NODES, [moved[way, p][1] / 1e6 for p in NODES], label=way.replace("_", " "), **style)
            points = [(d, seconds) for (name, d), seconds in by_density.items() if name == way]
            right.plot(*np.transpose(points) * [[1], [1e3]], label=way.replace("_", " "), **style)
        middle.set(xscale="log", yscale="log", title="Bytes at d = 1 %", xlabel="nodes", ylabel="MB sent a node")
        right.set(xscale="log", yscale="log", title="16 nodes on 10 GbE", xlabel="density d", ylabel="ms, simulated")
        for axis in (left, middle):
            axis.set_xticks(NODES, [str(p) for p in NODES])
            axis.minorticks_off()
        for axis in (left, middle, right):
            axis.legend()
        label_source(figure, ("formula", "simulated"), "lines on the left: formula; everything else: simulated")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
