"""DistBelief's speed-up by dividing one network: full layers peak early, locally connected ones go on gaining.

Dean et al. (NIPS 2012, figure 3) divided one replica of a network over machines, and measured a minibatch of SGD. A
speech network of 42 million weights in five full layers was fastest on 8 machines, 2.2 times as fast as on one; more
slowed it down. Networks on images have filters of 10 x 10 pixels without shared weights: the largest, of 1.7 billion
weights, was more than 12 times as fast on 81 machines. The authors name two limits: communication between full layers,
and waiting for the slowest machine in each phase.

Here: the same on simulated machines. In forward, a machine receives the activations that its units read, of each layer
but the input; in backward, the messages go the other way. The speech network is published in full: 440 inputs, four
layers of 2,560, 8,192 outputs. Of the networks on images the paper says: 100 x 100 pixels, three layers of 10 x 10
filters, 8 to 36 maps. We take valid windows of stride 1 on three colours, no output layer, and 16 maps in between; then
the weights are 97, 348 and 1,650 million, where the paper has 80, 330 and 1,700. Unknown are the minibatch, the speed
of a machine and the network: assumed are 100 samples, 100 Gflop/s with a log-normal deviation of 0.3 for each phase,
and Ethernet of 1 Gbit/s with 50 us a message.

What must show: the speech network is fastest on 8 to 32 machines. The largest network on images gains with every step
up to 81 machines, and of two networks the larger gains more there. If the speed of the machines, the line, or the time
of a message is 3 times as high or as low, the speech network gains less than 5 % from 32 to 64 machines, and the
largest one on images more than 40 % from 36 to 81. (On M machines, computing takes 1/M of the time. A machine of a full
layer receives nearly all activations, however many machines there are, in M - 1 messages. One of a locally connected
layer receives a rim around its pixels from its neighbours, and the rim shrinks.)

Not judged: the speed-ups themselves, which hang on what is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster
from minidl.cluster import Communicator, Network, Node, Phantom
from minidl.plots import lines

TITLE = "DistBelief: more machines for one network (Dean et al. 2012, figure 3)"

SAMPLES, FLOPS_PER_S, JITTER = 100, 100e9, 0.3
ETHERNET = Network.preset("1gbe")


class Layer(NamedTuple):
    """A layer whose units read windows of the layer below.

    inputs, outputs     units along each axis, (rows, columns) of pixels or (units,)
    window              units read along each axis
    channels, maps      units at each place below, and in this layer
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    window: int
    channels: int
    maps: int

    @property
    def weights(self) -> int:
        return prod(self.outputs) * self.maps * self.window ** len(self.inputs) * self.channels


def on_images(maps: int) -> list[Layer]:
    """Three layers of 10 x 10 filters on 100 x 100 pixels of three colours."""
    sides = 100, 91, 82, 73
    return [
        Layer((below, below), (side, side), 10, 3 if below == 100 else maps, maps) for below, side in pairwise(sides)
    ]


SPEECH = [Layer((below,), (width,), below, 1, 1) for below, width in pairwise((440, 2560, 2560, 2560, 2560, 8192))]
NETWORKS = {"speech": SPEECH, **{f"images, {maps} maps": on_images(maps) for maps in (8, 16, 36)}}
LARGEST = "images, 36 maps"
PUBLISHED = {"speech": (42, 2.2, 8), "images, 8 maps": (80, "", ""), "images, 16 maps": (330, "", ""),
             LARGEST: (1700, 12, 81)}  # fmt: skip
"""Millions of weights; times as fast, on how many machines."""


def machines(network: str) -> list[int]:
    return [1, 2, 4, 8, 16, 32, 64] if network == "speech" else [side**2 for side in range(1, 10)]


def along(inputs: int, outputs: int, window: int, parts: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Along one axis: the outputs of each part, and the inputs that part i reads and part j has, [i, j].

    Windows begin one input apart, as far as they fit: those of a full layer are all the same.
    """
    has, computes = (np.arange(parts + 1) * size // parts for size in (inputs, outputs))
    first, last = (np.minimum(each, inputs - window)[:, None] for each in (computes[:-1], computes[1:] - 1))
    read = np.minimum(last + window, has[1:]) - np.maximum(first, has[:-1])
    return np.diff(computes), np.maximum(read, 0)


@cache
def divided(layer: Layer, parts: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The outputs of each machine, and the numbers [i, j] that i reads of j's for a sample."""
    side = round(parts ** (1 / len(layer.inputs)))
    axes = [along(*sizes, layer.window, side) for sizes in zip(layer.inputs, layer.outputs, strict=True)]
    computes, reads = (np.kron(*each) if len(each) == 2 else each[0] for each in zip(*axes, strict=True))
    return computes * layer.maps, reads * layer.channels


def step(comm: Communicator, layers: Sequence[Layer]) -> None:
    """Forward and backward of a minibatch on this machine."""
    for layer in layers:
        if layer is not layers[0]:  # all machines read the samples
            exchange(comm, divided(layer, comm.size)[1])
        comm.compute(flops=flops(comm, layer))
    for layer in reversed(layers):
        comm.compute(flops=flops(comm, layer) * (1 if layer is layers[0] else 2))
        if layer is not layers[0]:
            exchange(comm, divided(layer, comm.size)[1].T)


def flops(comm: Communicator, layer: Layer) -> float:
    computes, _ = divided(layer, comm.size)
    return 2.0 * SAMPLES * layer.weights * computes[comm.rank] / computes.sum()


def exchange(comm: Communicator, reads: NDArray[np.int64]) -> None:
    """Receive what this machine reads of the others', and send what they read of its own."""
    others = [(comm.rank + distance) % comm.size for distance in range(1, comm.size)]
    works = [comm.isend(Phantom(4 * SAMPLES * int(reads[to, comm.rank])), to) for to in others if reads[to, comm.rank]]
    works += [comm.irecv(source) for source in reversed(others) if reads[comm.rank, source]]
    for work in works:
        work.wait()


def speed_ups(network: str, node: Node, line: Network) -> list[float]:
    """How many times faster a minibatch is than on one machine, for each number of machines."""
    seconds = []
    for count in machines(network):
        engine = cluster.Simulation(line, node, trace="ledger")
        seconds.append(cluster.launch(step, (NETWORKS[network],), nodes=count, on=engine).seconds)
    return [seconds[0] / each for each in seconds]


def experiment(reproduction: Reproduction) -> None:
    found = {name: speed_ups(name, Node(FLOPS_PER_S, np.inf, JITTER), ETHERNET) for name in NETWORKS}
    rows = []
    for name, layers in NETWORKS.items():
        at, counts = int(np.argmax(found[name])), machines(name)
        weights = sum(layer.weights for layer in layers) / 1e6
        rows.append([name, PUBLISHED[name][0], weights, *PUBLISHED[name][1:], found[name][at], counts[at]])
    head = ["network", "millions of weights, published", "here", "times as fast, published", "on machines, published"]
    note = f"simulated; {SAMPLES} samples, {FLOPS_PER_S / 1e9:g} Gflop/s, deviation {JITTER}, 1 Gbit/s, 50 us a message"
    reproduction.table([*head, "times as fast", "on machines"], rows, note)

    peak = machines("speech")[int(np.argmax(found["speech"]))]
    reproduction.accept(
        8 <= peak <= 32 and (np.diff(found[LARGEST]) > 0).all(),
        f"the speech network is fastest on {peak} machines, and the largest one on images gains up to 81",
    )
    cases = [found, *(varied(what, factor) for what in ("flops", "beta", "alpha") for factor in (1 / 3, 3.0))]
    full = [each["speech"][-1] / each["speech"][-2] - 1 for each in cases]
    local = [each[LARGEST][-1] / each[LARGEST][5] - 1 for each in cases]
    reproduction.accept(
        max(full) < 0.05 and min(local) > 0.4,
        f"{len(cases)} assumptions: from 32 to 64 machines speech network gains {min(full):.0%} to {max(full):.0%}; "
        f"from 36 to 81 the largest one on images {min(local):.0%} to {max(local):.0%}",
    )
    ordered = [[each[name][-1] for name in NETWORKS] for each in cases]
    reproduction.accept(
        all(gains == sorted(gains) for gains in ordered),
        f"{len(cases)} assumptions: the larger of two networks on images gains more, and the speech network least",
    )
    reproduction.picture(picture(found))


def varied(what: str, factor: float) -> dict[str, list[float]]:
    """The speed-ups with one assumption multiplied by a factor."""
    node = Node(FLOPS_PER_S * (factor if what == "flops" else 1), np.inf, JITTER)
    line = ETHERNET if what == "flops" else replace(ETHERNET, **{what: factor * getattr(ETHERNET, what)})
    return {name: speed_ups(name, node, line) for name in NETWORKS}


def picture(found: dict[str, list[float]]) -> Figure:
    curves = [lines.Line(name, machines(name), found[name], "both") for name in NETWORKS]
    points = [(count, times) for _, times, count in PUBLISHED.values() if times]
    curves.append(lines.Line("published", [count for count, _ in points], [times for _, times in points], "points"))
    panel = lines.Panel(curves, "machines for one replica", "times as fast as one machine", log="xy")
    return lines.draw([panel], source="simulated", height=3.6)


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
