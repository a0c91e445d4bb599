"""Overlap: the all-reduce of one layer's gradient while backward computes the next.

What the sources show. Layers are reduced as backward completes them (wait-free backpropagation: Zhang et al., Poseidon,
arXiv:1706.03292, section 3.1; Li et al., PyTorch Distributed, arXiv:2006.15704, sections 3.2.3 and 5). Without overlap
a step takes computation + communication; with it, about the longer of the two.

What is done. Eight equal layers of 128 x 128 weights on eight simulated nodes; forward takes 1 ms per layer, backward
2 ms. First with one bucket per layer, on networks of different speed: the ratio of communication to backward goes from
1/8 to 8. Then with buckets of 1 to 8 layers, where a message also has a start-up time.

What must show. F is the time of forward. There are m buckets; each becomes ready r seconds after the previous one, and
its all-reduce takes c seconds. A step takes F + m r + m c without overlap, and F + r + (m - 1) max(r, c) + c with it:
the longer of computation and communication, plus the computation of the first bucket or the communication of the last.
(The last bucket is slightly larger: it also says which parameters have a gradient.) With a start-up time, buckets of
medium size are best: small ones pay for more start-ups, and a single large bucket hides nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster, nn, optim, parallel
from minidl import functional as F
from minidl.data import Dataset, Splits
from minidl.parallel import Session
from minidl.plots import style
from minidl.tensor import Tensor, record

TITLE = "Overlap: gradients travel while backward goes on"

LAYERS, WIDTH, NODES = 8, 128, 8
FORWARD, BACKWARD = 1e-3, 2e-3  # seconds a layer
LAYER_BYTES = 4 * WIDTH * WIDTH
RATIOS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
ALPHA = 100e-6  # of the second experiment


class TimedLinear(nn.Linear):
    """A layer without bias whose forward and backward take stated times in training."""

    def __init__(self, width: int, forward: float, backward: float) -> None:
        super().__init__(width, width, bias=False)
        self.forward_seconds, self.backward_seconds = forward, backward
        self.comm: Any = None

    def forward(self, x: Any) -> Tensor:
        out = super().forward(x)
        if not self.training:
            return out
        self.comm.compute(seconds=self.forward_seconds)

        def vjp(g: Any, needs: Any) -> tuple[Any, ...]:
            self.comm.compute(seconds=self.backward_seconds)
            return (g,)

        return record(out.data.copy(), (out,), vjp)


class Timed(parallel.Synchronous):
    """Synchronous training of layers that take stated times."""

    def run(self, session: Session) -> None:
        for module in session.model.modules():
            if isinstance(module, TimedLinear):
                module.comm = session.comm
        super().run(session)


def timed_job(steps: int, layers: int = LAYERS, width: int = WIDTH, samples: int = NODES) -> parallel.Job:
    """One epoch of `steps` steps."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(samples * steps, width)).astype(np.float32)
    train, test = Dataset(x, 0 * x), Dataset(x[:1], 0 * x[:1])
    return parallel.Job(
        model=lambda: nn.Sequential(*(TimedLinear(width, FORWARD, BACKWARD) for _ in range(layers))),
        data=Splits(train, test),
        optimizer=partial(optim.SGD, lr=1e-3),
        loss=F.mse_loss,
        batch_size=samples,
        epochs=1,
    )


def step_seconds(network: cluster.Network, bucket_layers: int, overlap: bool) -> float:
    """Simulated seconds of one step: a run of two steps minus a run of one."""
    strategy = Timed(bucket_layers * LAYER_BYTES / 1e6, "ring", overlap=overlap)
    engine = cluster.Simulation(network, trace="ledger")
    once, twice = (parallel.train(timed_job(steps), strategy, NODES, engine).seconds for steps in (1, 2))
    return twice - once


def model_seconds(network: cluster.Network, bucket_layers: int, overlap: bool) -> float:
    """Seconds of a step by formula: buckets are reduced one after the other, each once backward has completed it."""
    buckets = -(-LAYERS // bucket_layers)
    ready = reduced = LAYERS * FORWARD
    for i in range(buckets):
        layers = min(bucket_layers, LAYERS - i * bucket_layers)
        nbytes = layers * LAYER_BYTES + (4 * LAYERS if i == buckets - 1 else 0)
        ready += layers * BACKWARD
        begins = max(ready, reduced) if overlap else max(LAYERS * (FORWARD + BACKWARD), reduced)
        reduced = begins + cluster.cost.all_reduce("ring", NODES, nbytes, network.alpha, network.beta)
    return reduced


def network_of(ratio: float, alpha: float = 0.0) -> cluster.Network:
    """A network on which reducing a layer takes `ratio` times its backward, without start-up times."""
    return cluster.Network(alpha, ratio * BACKWARD / (2 * (NODES - 1) / NODES * LAYER_BYTES))


def experiment(reproduction: Reproduction) -> None:
    rows, differences = [], []
    for ratio in RATIOS:
        network = network_of(ratio)
        plain, hidden = (step_seconds(network, 1, overlap) for overlap in (False, True))
        formulas = [model_seconds(network, 1, overlap) for overlap in (False, True)]
        differences += [abs(plain / formulas[0] - 1), abs(hidden / formulas[1] - 1)]
        communication = plain - LAYERS * (FORWARD + BACKWARD)
        exposed = hidden - LAYERS * (FORWARD + BACKWARD)
        rows.append([ratio, *(1e3 * t for t in (plain, formulas[0], hidden, formulas[1])), 1 - exposed / communication])
    columns = ["communication / backward", "ms a step", "formula", "ms with overlap", "formula", "hidden share"]
    reproduction.table(columns, rows, note="eight layers, a bucket each; all-reduce by the ring on 8 nodes; simulated")

    sizes = (1, 2, 3, 4, 6, 8)
    network = network_of(1 / 2, ALPHA)
    by_size = [step_seconds(network, size, True) for size in sizes]
    expected = [model_seconds(network, size, True) for size in sizes]
    differences += [abs(a / b - 1) for a, b in zip(by_size, expected, strict=True)]
    sized = [[s, s * LAYER_BYTES / 1e6, 1e3 * a, 1e3 * b] for s, a, b in zip(sizes, by_size, expected, strict=True)]
    note = f"communication / backward 1/2, {1e6 * ALPHA:.0f} us a message; simulated"
    reproduction.table(["layers a bucket", "bucket_mb", "ms with overlap", "formula"], sized, note)

    reproduction.picture(picture(rows, sized))

    worst = max(differences)
    reproduction.accept(worst < 1e-9, f"simulated steps equal the formulas: they differ by {worst:.0e} at most")
    best = min(zip(by_size, sizes, strict=True))
    reproduction.accept(
        sizes[0] < best[1] < sizes[-1],
        f"medium buckets are best: {best[1]} layers {1e3 * best[0]:.2f} ms, "
        f"1 layer {1e3 * by_size[0]:.2f} ms, all in one {1e3 * by_size[-1]:.2f} ms",
    )


def picture(rows: list[list[float]], sized: list[list[float]]) -> Figure:
    """Time of a step against the speed of the network, and against the size of the buckets."""
    with style.applied():
        figure, (left, right) = style.new_figure(9.0, 3.6, columns=2)
        for i, (name, column) in enumerate((("without overlap", 1), ("with overlap", 3))):
            left.plot(RATIOS, [row[column] for row in rows], "o", color=style.SERIES[i], label=f"{name}, simulated")
            formula = [row[column + 1] for row in rows]
            left.plot(RATIOS, formula, style.DASHES[i], color=style.SERIES[i], label="formula")
        left.set(xscale="log", yscale="log", xlabel="communication / backward", ylabel="step [ms]")
        left.set_xticks(RATIOS, [f"1/{1 / ratio:.0f}" if ratio < 1 else f"{ratio:.0f}" for ratio in RATIOS])
        left.set_yticks([25, 50, 100], ["25", "50", "100"])
        left.minorticks_off()
        left.legend()
        left.set_title("Faster and slower networks")
        right.plot([row[1] for row in sized], [row[2] for row in sized], "o", color=style.SERIES[1], label="simulated")
        right.plot([row[1] for row in sized], [row[3] for row in sized], "--", color=style.SERIES[1], label="formula")
        right.set(xlabel="bucket [MB]", ylabel="step [ms]")
        right.legend()
        right.set_title(f"Buckets, at {1e6 * ALPHA:.0f} µs a message")
        style.label_source(figure, ["simulated", "formula"])
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
