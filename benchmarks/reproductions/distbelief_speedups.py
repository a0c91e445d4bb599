"""DistBelief's model parallelism: networks of full layers gain from few machines, locally connected ones from many.

Dean et al. (NIPS 2012, figure 3) divided one replica over machines and timed a minibatch. A speech network of 42
million weights in five full layers was fastest on 8 machines, 2.2 times as fast as on one. Networks for images have
windows of 10 x 10 pixels without shared weights: the largest, of 1.7 billion weights, was more than 12 times as fast on
81 machines. Communication between full layers and waiting for the slowest machine set the limits.

Here: simulated machines. In forward, each receives the activations that its units read; in backward, the messages go
the other way. Published are the speech network, and 100 x 100 pixels, three layers and 8 to 36 maps for images. Assumed
are valid windows of stride 1, three colours and no output layer (97, 348 and 1,650 million weights; the paper has 80,
330 and 1,700); 16 maps in between; 100 samples; 100 Gflop/s with a log-normal deviation of 0.3 for each phase; and
Ethernet of 1 Gbit/s with 50 us a message.

What must show: the speech network is fastest on 8 to 32 machines. The largest network for images gains with every step
up to 81 machines, and of two networks the larger gains more. If flops, bandwidth or latency are 3 times as large or as
small, the speech network gains less than 5 % from 32 to 64 machines, and the largest one for images more than 40 % from
36 to 81. The speed-ups themselves depend on what is assumed, and are not judged.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster
from minidl.cluster import Communicator, Network, Node, Phantom
from minidl.plots import lines

TITLE = "DistBelief: more machines for one network (Dean et al. 2012, figure 3)"

SAMPLES = 100
MACHINE = Node(100e9, np.inf, 0.3)
ETHERNET = Network.preset("1gbe")


class Layer(NamedTuple):
    """A layer in which every unit reads a window of the layer below; in a full layer the window is the whole layer.

    inputs, outputs     units of the layer below, and of this one, along each axis
    window              units that a unit reads along each axis; neighbours read windows that are one unit apart
    axes                1, or 2 for images
    channels, maps      units at each place of the layer below, and of this one
    """

    inputs: int
    outputs: int
    window: int
    axes: int = 1
    channels: int = 1
    maps: int = 1

    @property
    def weights(self) -> int:
        """Number of weights."""
        return (self.outputs * self.window) ** self.axes * self.channels * self.maps


def on_images(maps: int) -> list[Layer]:
    """A network for images of 100 x 100 pixels, with this many maps in each of its three layers."""
    return [Layer(below, side, 10, 2, 3 if below == 100 else maps, maps) for below, side in pairwise((100, 91, 82, 73))]


SPEECH = [Layer(below, width, below) for below, width in pairwise((440, 2560, 2560, 2560, 2560, 8192))]
NETWORKS = {"speech": SPEECH, **{f"images, {maps} maps": on_images(maps) for maps in (8, 16, 36)}}
LARGEST = "images, 36 maps"
PUBLISHED: dict[str, tuple[Any, Any, Any]] = {
    "speech": (42, 2.2, 8), "images, 8 maps": (80, "", ""), "images, 16 maps": (330, "", ""), LARGEST: (1700, 12, 81),
}  # fmt: skip
"""Millions of weights; times as fast, on how many machines."""


def machines(network: str) -> list[int]:
    """The numbers of machines on which a network is timed; images are cut into square tiles."""
    return [1, 2, 4, 8, 16, 32, 64] if network == "speech" else [side**2 for side in range(1, 10)]


@cache
def divided(layer: Layer, parts: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of units of each machine, and a matrix [i, j]: how many units of machine j machine i reads."""
    parts = round(parts ** (1 / layer.axes))
    has, computes = (np.arange(parts + 1) * size // parts for size in (layer.inputs, layer.outputs))
    first, last = (np.minimum(each, layer.inputs - layer.window) for each in (computes[:-1], computes[1:] - 1))
    read = np.minimum(last[:, None] + layer.window, has[1:]) - np.maximum(first[:, None], has[:-1])
    units, reads = np.diff(computes), np.maximum(read, 0)
    if layer.axes == 2:
        units, reads = np.kron(units, units), np.kron(reads, reads)
    return units * layer.maps, reads * layer.channels


def step(comm: Communicator, layers: list[Layer]) -> None:
    """Forward and backward of a minibatch on this machine; every machine has all samples."""

    def compute(layer: Layer, products: int) -> None:
        computes, _ = divided(layer, comm.size)
        comm.compute(flops=products * 2.0 * SAMPLES * layer.weights * computes[comm.rank] / computes.sum())

    first, *others = layers
    compute(first, 1)
    for layer in others:
        exchange(comm, divided(layer, comm.size)[1])
        compute(layer, 1)
    for layer in reversed(others):
        compute(layer, 2)
        exchange(comm, divided(layer, comm.size)[1].T)
    compute(first, 1)


def exchange(comm: Communicator, reads: NDArray[np.int64]) -> None:
    """Exchange activations: send what other machines read of this one's, receive what this one reads of theirs."""
    others = [(comm.rank + distance) % comm.size for distance in range(1, comm.size)]
    works = [comm.isend(Phantom(4 * SAMPLES * int(reads[to, comm.rank])), to) for to in others if reads[to, comm.rank]]
    works += [comm.irecv(source) for source in reversed(others) if reads[comm.rank, source]]
    for work in works:
        work.wait()


def speed_ups(node: Node = MACHINE, line: Network = ETHERNET) -> dict[str, list[float]]:
    """The speed-up over one machine, for each network and number of machines."""
    found = {}
    for name, layers in NETWORKS.items():
        runs = [cluster.launch(step, (layers,), nodes=count, on=cluster.Simulation(line, node, trace="ledger"))
                for count in machines(name)]  # fmt: skip
        found[name] = [runs[0].seconds / run.seconds for run in runs]
    return found


def fastest(network: str, found: dict[str, list[float]]) -> tuple[float, int]:
    """The largest speed-up of a network, and the number of machines that gives it."""
    return max(zip(found[network], machines(network), strict=True))


def experiment(reproduction: Reproduction) -> None:
    """Compare the speed-ups with the published ones, also with faster and slower machines and networks."""
    found = speed_ups()
    head = ["network", "millions of weights, published", "here", "times as fast, published", "on machines, published"]
    rows = [[name, PUBLISHED[name][0], sum(layer.weights for layer in layers) / 1e6, *PUBLISHED[name][1:],
             *fastest(name, found)] for name, layers in NETWORKS.items()]  # fmt: skip
    note = f"simulated; {SAMPLES} samples, 100 Gflop/s, deviation {MACHINE.jitter}, 1 Gbit/s, 50 us a message"
    reproduction.table([*head, "times as fast", "on machines"], rows, note)

    peak, gains = fastest("speech", found)[1], bool((np.diff(found[LARGEST]) > 0).all())
    sentence = f"the speech network is fastest on {peak} machines, and the largest one on images gains up to 81"
    reproduction.accept(8 <= peak <= 32 and gains, sentence)
    cases = [found]
    for factor in (1 / 3, 3.0):
        cases.append(speed_ups(replace(MACHINE, flops_per_s=factor * MACHINE.flops_per_s)))
        cases.append(speed_ups(line=replace(ETHERNET, beta=factor * ETHERNET.beta)))
        cases.append(speed_ups(line=replace(ETHERNET, alpha=factor * ETHERNET.alpha)))
    full = [each["speech"][-1] / each["speech"][-2] - 1 for each in cases]
    local = [each[LARGEST][-1] / each[LARGEST][5] - 1 for each in cases]
    reproduction.accept(
        max(full) < 0.05 and min(local) > 0.4,
        f"{len(cases)} assumptions: from 32 to 64 machines the speech network gains {min(full):.0%} to {max(full):.0%},"
        f" from 36 to 81 the largest one on images {min(local):.0%} to {max(local):.0%}",
    )
    ordered = [[each[name][-1] for name in NETWORKS] for each in cases]
    reproduction.accept(
        all(each == sorted(each) for each in ordered),
        f"{len(cases)} assumptions: the larger of two networks on images gains more, and the speech network least",
    )
    reproduction.picture(picture(found))


def picture(found: dict[str, list[float]]) -> Figure:
    """Speed-up against machines, with the published peaks as points."""
    curves = [lines.Line(name, machines(name), found[name], "both") for name in NETWORKS]
    peaks = [PUBLISHED["speech"], PUBLISHED[LARGEST]]
    x, y = [peak[2] for peak in peaks], [peak[1] for peak in peaks]
    curves.append(lines.Line("published: speech, 36 maps", x, y, "points"))
    panel = lines.Panel(curves, "machines for one replica", "times as fast as one machine", log="xy")
    return lines.draw([panel], source="simulated", height=3.6)


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
