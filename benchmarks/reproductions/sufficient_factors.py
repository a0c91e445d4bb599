"""Sufficient factors: two vectors a sample instead of a matrix, while the samples are few and the layer is wide.

The gradient of a fully connected layer is a sum of products u v^T, one per sample. Xie et al. (arXiv:1511.08486) send
the vectors u and v of every sample instead of the sum. Each of P nodes with K samples sends K (P - 1) (M + N) numbers,
where a ring all-reduce of the M x N gradient sends 2 (P - 1)/P M N. The two are equal at K P = 2 M N/(M + N) samples
per minibatch. Poseidon (Zhang et al., USENIX ATC 2017) chooses for each layer.

Here: one layer of 256 x 128, float32, on 2, 4 and 8 simulated nodes; bytes from the ledger of the run. Then, by
formula, the ratios for layers of the sizes of AlexNet's and VGG's.

What must show: bytes equal to the counts (the ring's to 0.1 %, since each rank also sends whether it has a gradient);
the choice sends the smaller of the two on both sides of the crossover, 170.7 samples; all three ways end with weights
equal to 1e-6 (float32).
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, nn, optim
from minidl.kernels import Array
from minidl.parallel import Job, Report, Strategy, SufficientFactors, Synchronous, train
from minidl.plots.style import DASHES, SERIES, applied, label_source, new_figure

TITLE = "Sufficient factors: when two vectors a sample are less than a matrix (Xie et al., Poseidon)"

M, N, STEPS = 128, 256, 2
CROSSOVER = 2 * M * N / (M + N)
MINIBATCHES = (16, 64, 168, 176, 256, 512)
NODES = (2, 4, 8)
LARGE = ((4096, 4096, 32, 8), (25088, 4096, 32, 8), (25088, 4096, 256, 8), (4096, 1000, 32, 32))  # N, M, K, P


def layer() -> nn.Module:
    return nn.Linear(N, M, bias=False)


def samples(n: int) -> data.Splits:
    rng = np.random.default_rng(0)
    made = data.Dataset(rng.normal(size=(n, N)).astype(np.float32), np.arange(n) % M)
    return data.Splits(made, made)


def run(strategy: Strategy, minibatch: int, nodes: int) -> Report:
    job = Job(
        model=layer,
        data=partial(samples, STEPS * minibatch),
        optimizer=partial(optim.SGD, lr=0.1),
        batch_size=minibatch,
        epochs=1,
    )
    return train(job, strategy, nodes, "simulation")


def bytes_a_step(report: Report) -> int:
    """Bytes per step that node 0 sends in training, without the broadcast of the initial weights."""
    before = report.trace.ledger()[0]["broadcast"].nbytes
    return (report.history[-1]["bytes"] - before) // STEPS


def weights(report: Report) -> Array:
    return report.checkpoint.model["weight"]


def experiment(reproduction: Reproduction) -> None:
    rows: list[tuple[int, ...]] = []
    apart = 0.0
    for nodes, minibatch in product(NODES, MINIBATCHES):
        factors = run(SufficientFactors(), minibatch, nodes)
        ring = run(Synchronous(algorithm="ring"), minibatch, nodes)
        hybrid = run(SufficientFactors(hybrid=True), minibatch, nodes)
        apart = max(apart, *(float(np.abs(weights(one) - weights(ring)).max()) for one in (factors, hybrid)))
        counts = 4 * minibatch // nodes * (nodes - 1) * (M + N), 8 * (nodes - 1) * M * N // nodes
        rows.append((nodes, minibatch, *(bytes_a_step(one) for one in (factors, ring, hybrid)), *counts))
    columns = ["nodes", "samples", "factors", "ring", "hybrid", "K (P - 1) (M + N)", "2 (P - 1)/P M N"]
    reproduction.table(columns, rows, f"bytes a node and step, {N} x {M}, float32; the last two: the counts, in bytes")
    reproduction.accept(all(row[2] == row[5] for row in rows), "the factors' bytes are those of the count")
    worst = max(abs(row[3] / row[6] - 1) for row in rows)
    reproduction.accept(worst < 1e-3, f"the ring's bytes are those of the count: {worst:.2%} off at most (0.1 %)")
    chosen = all((row[4] == row[2]) == (row[1] < CROSSOVER) and row[4] <= 1.001 * min(row[2:4]) for row in rows)
    reproduction.accept(chosen, f"the choice sends what is less, below and above {CROSSOVER:.1f} samples a minibatch")
    reproduction.accept(apart < 1e-6, f"the weights of the three ways differ by {apart:.1g} at most")
    ratios = [(f"{n} x {m}", k, p, 2 * m * n / (k * p * (m + n))) for n, m, k, p in LARGE]
    reproduction.table(["layer", "K", "P", "ring / factors (formula)"], ratios)
    reproduction.picture(picture(rows))


def picture(rows: list[tuple[int, ...]]) -> Figure:
    with applied():
        figure, (axes,) = new_figure(6.0, 3.6)
        for i, nodes in enumerate(NODES):
            of = [row for row in rows if row[0] == nodes]
            minibatches = [row[1] for row in of]
            color, name = SERIES[i], f"{nodes} nodes"
            axes.loglog(minibatches, [row[2] / 1e3 for row in of], DASHES[0], color=color, label=f"{name}, factors")
            axes.loglog(minibatches, [row[3] / 1e3 for row in of], DASHES[1], color=color, label=f"{name}, ring")
            axes.loglog(minibatches, [row[4] / 1e3 for row in of], "o", color=color)
        axes.axvline(CROSSOVER, color="0.7", linewidth=1, zorder=0)
        axes.annotate("2MN/(M + N)", (CROSSOVER, axes.get_ylim()[1]), (4, -12), textcoords="offset points", color="0.4")
        axes.set_xticks([16, 64, 256, 512], ["16", "64", "256", "512"])
        axes.set_yticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
        axes.minorticks_off()
        axes.set(xlabel="samples a minibatch, all nodes together", ylabel="kB a node and step")
        axes.set_title(f"A layer of {N} x {M}; dots: the choice of the hybrid")
        axes.legend(fontsize=7)
        label_source(figure, "simulated")
        return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
