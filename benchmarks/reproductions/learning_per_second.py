"""Learning per second: the best minibatch is neither the one that learns most from a sample nor the fastest one.

Gonzalez (Distributed deep learning, lecture at UC Berkeley) splits learning per second into learning per sample, which
falls with the minibatch (large ones waste samples), and samples per second, which rise (large ones hide the network). A
report of one factor alone can choose the minibatch that favours it.

Here: learning per sample is 1 / (steps * minibatch). The steps to training loss 0.2 are those of `steps_to_target` (MLP
64-32-10, digits, the rate tuned for every minibatch), read from its table in the folder that this run writes to.
Samples per second are those of Synchronous on 8 simulated nodes (1 GFLOP/s, 10 GB/s of memory) over three networks, of
the same net: steps on 8 nodes are the same as on one. The product is runs to the target a second.

With S = S_min (1 + B_c / B) steps and a + c B seconds a step, the time to the target is least at B = sqrt(B_c a / c):
more expensive steps (a slower network) need larger minibatches, more expensive samples smaller ones.

It must show: on each network the best minibatch lies strictly between those with the most learning per sample and with
the most samples per second; it grows as the network slows down; and the minibatch nearest to the formula's optimum has
at least 80 % of the best learning per second. (The optimum is flat: neighbours in the table often differ by a few
percent, so which of them is best depends on the seeds.)
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.digits import he_mlp, job
from benchmarks.reproductions.reproduction import Reproduction, main
from benchmarks.reproductions.steps_to_target import fit
from minidl import cluster, data, parallel
from minidl.parallel.measures.learning_speed import LearningSpeed
from minidl.plots import style

TITLE = "Learning per second is learning per sample times samples per second"

NODES = 8
NODE = cluster.Node(flops_per_s=1e9, bytes_per_s=1e10)
NETWORKS = ("infiniband", "10gbe", "1gbe")  # from the fastest to the slowest
TARGET = "0.2"

Speeds = dict[str, dict[int, LearningSpeed]]  # of a network and a minibatch


def experiment(reproduction: Reproduction) -> None:
    """Combine steps to the target with simulated seconds per step."""
    steps = steps_to_target(reproduction.folder)
    sizes = [size for size in steps if size >= NODES]
    seconds = {network: {size: seconds_a_step(network, size) for size in sizes} for network in NETWORKS}
    speeds: Speeds = {
        network: {size: LearningSpeed(1 / (steps[size] * size), size / seconds[network][size]) for size in sizes}
        for network in NETWORKS
    }
    reproduction.table(
        [
            "network",
            "minibatch",
            "steps to target",
            "ms a step",
            "samples to the target",
            "samples/s",
            "runs to the target/s",
        ],
        [
            [
                network,
                size,
                steps[size],
                1e3 * seconds[network][size],
                1 / speed.learning_per_sample,
                speed.samples_per_second,
                speed.learning_per_second,
            ]
            for network in NETWORKS
            for size, speed in speeds[network].items()
        ],
        f"simulated: {NODES} nodes, {NODE.flops_per_s:.0e} FLOP/s and {NODE.bytes_per_s:.0e} bytes/s each",
    )
    reproduction.picture(picture(speeds))
    judge(reproduction, steps, seconds, speeds)


def steps_to_target(folder: Path) -> dict[int, float]:
    """Steps to the target loss for each minibatch size, from the table that `steps_to_target` wrote."""
    path = folder / "steps_to_target.csv"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: run steps_to_target with the same --folder first")
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["target loss"] == TARGET]
    return {int(row["minibatch"]): float(row["steps"]) for row in rows}


def seconds_a_step(network: str, size: int) -> float:
    """Simulated seconds per step, in the second epoch, when all nodes have the initial weights."""
    simulation = cluster.Simulation(network=network, node=NODE, trace="ledger")
    train, test = data.digits()
    steps = min(4, len(train) // size)
    few = data.Splits(data.Dataset(*train[: steps * size]), test)
    of = job(model=partial(he_mlp, 64, 32, 10), data=few, batch_size=size, epochs=2)
    first, second = parallel.train(of, parallel.Synchronous(), NODES, simulation).history
    return float(second["seconds"] - first["seconds"]) / steps


def judge(
    reproduction: Reproduction, steps: dict[int, float], seconds: dict[str, dict[int, float]], speeds: Speeds
) -> None:
    """Judge where the best minibatch lies."""
    critical = fit(list(steps.values()))[1]
    best: dict[str, int] = {}
    for network, by_size in speeds.items():
        best[network] = max(by_size, key=lambda size: by_size[size].learning_per_second)
        per_sample = max(by_size, key=lambda size: by_size[size].learning_per_sample)
        fastest = max(by_size, key=lambda size: by_size[size].samples_per_second)
        reproduction.accept(
            per_sample < best[network] < fastest,
            f"{network}: most learning per sample at {per_sample}, per second at {best[network]}, "
            f"most samples per second at {fastest}",
        )
        per_size, start = np.polyfit(list(seconds[network]), list(seconds[network].values()), 1)
        formula = sqrt(critical * start / per_size)
        nearest = min(by_size, key=lambda size: abs(log(size / formula)))
        share = by_size[nearest].learning_per_second / by_size[best[network]].learning_per_second
        reproduction.accept(
            share >= 0.8,
            f"{network}: the formula's best minibatch is {formula:.0f}; {nearest} has {share:.0%} of the best "
            "learning per second",
        )
    order = [best[network] for network in NETWORKS]
    reproduction.accept(
        order == sorted(order) and order[0] < order[-1],
        f"the slower the network, the larger the best minibatch: {', '.join(map(str, order))}",
    )


@style.applied()
def picture(speeds: Speeds) -> Figure:
    """The two factors and their product against the minibatch, one panel each."""
    panels: tuple[tuple[str, Callable[[Any], float]], ...] = (
        ("learning per sample (targets)", lambda speed: speed.learning_per_sample),
        ("samples per second", lambda speed: speed.samples_per_second),
        ("learning per second (targets)", lambda speed: speed.learning_per_second),
    )
    figure, all_axes = style.new_figure(9.6, 3.4, columns=3)
    for axes, (name, value) in zip(all_axes, panels, strict=True):
        for i, (network, by_size) in enumerate(speeds.items()):
            axes.plot(
                list(by_size),
                [value(speed) for speed in by_size.values()],
                color=style.SERIES[i],
                linestyle=style.DASHES[i],
                marker="os^"[i],
                ms=4,
                label=network,
            )
        axes.set(xscale="log", yscale="log", xlabel="minibatch (samples)", ylabel=name)
        axes.grid(color="0.92", linewidth=0.6)
    all_axes[2].legend()
    style.label_source(
        figure, ("measured", "simulated"), f"steps to loss 0.2 on digits; seconds of {NODES} simulated nodes"
    )
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
