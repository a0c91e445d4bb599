"""Sparse gradients: what is left out must be kept, and at one in a thousand a warm-up of the density restores accuracy.

Lin et al., Deep gradient compression (arXiv:1712.01887), send 0.1 % of each gradient. Their table 2 has the accuracy of
ResNet-110 on CIFAR-10 (batch 128 on 4 GPUs, 93.75 % dense): 92.75 % for gradient dropping, which adds up what is left
out and leaves momentum to the optimizer; 93.87 % for DGC. DGC differs from gradient dropping in several ways at once:
momentum correction, momentum factor masking, clipping and a warm-up of the density.

Here: an MLP 64-128-10 with He's first weights on the digits, 4 nodes with 16 samples each, rate 0.1, momentum 0.9, 30
epochs, means of 3 seeds. Sparsity counts for each parameter by itself with one entry at least, so "0.1 %" is 13 of
9,610 numbers (the pilot's 10 were the largest of all). DGC's warm-up takes 4 epochs. The control is gradient dropping
with DGC's warm-up of the density and nothing else of DGC: it shows what the warm-up alone achieves.

What must show: without a residual, top-k of 0.1 % has 3 points more error than dense and 10 times its loss; DGC with
its warm-up, the control and dense are within 0.6 points of each other; what is sent and what is kept add up to what was
given, to the bit; the momentum identity: under a constant gradient an entry that waits 10 steps moves by 41.381 with
dense momentum and with DGC, but by 10 where momentum comes after compression.

Conclusion: at this size and rate the warm-up alone reaches the accuracy of DGC. Momentum correction and masking make no
visible difference in accuracy, with the warm-up or without; the momentum identity shows them. At a rate four times as
high momentum correction does make a difference (lecture 09b). Without the warm-up, every method that keeps a residual
ends with more test error than dense at 0.1 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions import digits
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster, parallel
from minidl.compress import DGC, Compressor, ErrorFeedback, RandomK, TopK
from minidl.plots.style import DASHES, SERIES, applied, label_source, new_figure

TITLE = "Sparse gradients, local accumulation and deep gradient compression (Lin et al.)"

LAYERS, SEEDS, MOMENTUM = (64, 128, 10), range(3), 0.9

# density in %, name, compressor, the pilot's error in % and training loss
ROWS: list[tuple[str, str, Compressor | None, str, str]] = [
    ("100", "dense", None, "2.50", "0.0069"),
    ("1", "top-k, nothing kept", TopK(0.01), "3.52", "0.032"),
    ("1", "random-k, nothing kept", RandomK(0.01, seed=None), "15.28", "0.86"),
    ("1", "gradient dropping", ErrorFeedback(TopK(0.01)), "2.69", "0.0062"),
    ("1", "DGC, no warm-up", DGC(0.01, MOMENTUM, warmup=()), "2.41", "0.015"),
    ("0.1", "top-k, nothing kept", TopK(0.001), "7.87", "0.168"),
    ("0.1", "gradient dropping", ErrorFeedback(TopK(0.001)), "3.15", ""),
    ("0.1", "gradient dropping, warm-up", DGC(0.001, momentum_correction=False), "", ""),
    ("0.1", "DGC, no masking, no warm-up", DGC(0.001, MOMENTUM, warmup=(), masking=False), "3.43", ""),
    ("0.1", "DGC, no warm-up", DGC(0.001, MOMENTUM, warmup=()), "3.24", ""),
    ("0.1", "DGC", DGC(0.001, MOMENTUM), "2.59", "0.0069"),
]


@dataclass
class Outcome:
    """The runs of one row, one for each seed: test errors in %, mean loss of each epoch, bytes of node 0 a step."""

    errors: list[float]
    losses: list[float]
    nbytes: float

    @property
    def error(self) -> float:
        return float(np.mean(self.errors))

    @property
    def loss(self) -> float:
        return self.losses[-1]


def outcome(compressor: Compressor | None) -> Outcome:
    has_momentum = isinstance(compressor, DGC) and compressor.momentum_correction
    momentum = 0.0 if has_momentum else MOMENTUM  # of the optimizer
    model = partial(digits.he_mlp, *LAYERS)
    jobs = [digits.job(momentum=momentum, batch_size=64, epochs=30, seed=seed, model=model) for seed in SEEDS]
    strategy = parallel.Synchronous(compressor=compressor)
    reports = [parallel.train(job, strategy, 4, cluster.Simulation(trace="ledger")) for job in jobs]
    last = reports[0].history[-1]
    losses = digits.mean_column(reports, "loss")
    return Outcome([100 * digits.error(r) for r in reports], losses, last["bytes"] / last["steps"])


def experiment(reproduction: Reproduction) -> None:
    outcomes = {(density, name): outcome(compressor) for density, name, compressor, _, _ in ROWS}
    reproduction.table(
        ["density, %", "method", "test error, %", "pilot", "std of seeds", "training loss", "pilot", "bytes a step"],
        [
            [density, name, o.error, pilot_error, float(np.std(o.errors)), o.loss, pilot_loss, round(o.nbytes)]
            for (density, name, _, pilot_error, pilot_loss), o in zip(ROWS, outcomes.values(), strict=True)
        ],
        "after 30 epochs; bytes that one of 4 nodes sends, the mean of all steps",
    )
    reproduction.picture(picture(outcomes))

    dense, dgc = outcomes["100", "dense"], outcomes["0.1", "DGC"]
    control = outcomes["0.1", "gradient dropping, warm-up"]
    alone, alone_1 = outcomes["0.1", "top-k, nothing kept"], outcomes["1", "top-k, nothing kept"]
    kept, by_chance = outcomes["1", "gradient dropping"], outcomes["1", "random-k, nothing kept"]
    reproduction.accept(
        alone.error >= dense.error + 3 and alone.loss > 10 * dense.loss,
        f"0.1 %, nothing kept: {alone.error:.2f} % error and loss {alone.loss:.3f}, "
        f"dense {dense.error:.2f} % and {dense.loss:.4f}",
    )
    reproduction.accept(
        abs(dgc.error - dense.error) <= 0.6,
        f"0.1 %, DGC with its warm-up: {dgc.error:.2f} % error, dense {dense.error:.2f} %",
    )
    reproduction.accept(
        abs(control.error - dense.error) <= 0.6 and abs(dgc.error - control.error) <= 0.6,
        f"0.1 %, gradient dropping with the same warm-up: {control.error:.2f} % error, so the warm-up alone is enough; "
        f"momentum correction and masking add {dgc.error - control.error:+.2f} points, not visible at this size",
    )
    reproduction.accept(
        kept.error < alone_1.error < by_chance.error,
        f"1 %: {kept.error:.2f} % error where the rest is kept, {alone_1.error:.2f} % where not, "
        f"{by_chance.error:.2f} % at random",
    )
    reproduction.accept(nothing_is_lost(), "sent + kept = given + kept before, to the bit, in 200 steps")
    corrected = displacement(DGC(0.5, MOMENTUM, warmup=()), 0.0)
    naive = displacement(DGC(0.5, momentum_correction=False, warmup=()), MOMENTUM)
    reproduction.accept(
        abs(corrected - 41.381) < 5e-4 and abs(naive - 10) < 1e-9,
        f"10 steps of a constant gradient: {corrected:.3f} with momentum correction, {naive:.3f} without",
    )


def nothing_is_lost() -> bool:
    """Whether message and residual add up to the accumulated gradient, bit by bit."""
    rng, compressor, before = np.random.default_rng(0), ErrorFeedback(TopK(0.001)), np.zeros(9610, np.float32)
    for _ in range(200):
        gradient = rng.normal(size=9610).astype(np.float32)
        sent = compressor.decode(compressor.encode(gradient))
        if compressor.residual is None or not np.array_equal(sent + compressor.residual, gradient + before):
            return False
        before = compressor.residual
    return True


def displacement(compressor: DGC, momentum: float) -> float:
    """How far the second of two entries moves, under a gradient of 1, that must wait for the tenth step.

    The first one is large enough for nine steps to be the one of the two that is sent. momentum: of the optimizer.
    """
    buffer, moved = 0.0, 0.0
    for step in range(10):
        sent = compressor.decode(compressor.encode(np.array([1e6 if step < 9 else 0.0, 1.0])))
        buffer = momentum * buffer + float(sent[1])
        moved += buffer
    return moved


def picture(outcomes: dict[tuple[str, str], Outcome]) -> Figure:
    """Training loss over the epochs, one panel for each density, with dense training in grey."""
    with applied():
        figure, axes = new_figure(9.0, 3.6, 2, sharey=True)
        names = [name for name in dict.fromkeys(name for _, name in outcomes) if name != "dense"]
        dense = outcomes["100", "dense"].losses
        for axis, density in zip(axes, ("1", "0.1"), strict=True):
            axis.plot(range(1, len(dense) + 1), dense, color="0.7", linewidth=3, label="dense")
            for (at, name), o in outcomes.items():
                if at == density:
                    i = names.index(name)
                    axis.plot(range(1, len(dense) + 1), o.losses, color=SERIES[i], linestyle=DASHES[i], label=name)
            axis.set(yscale="log", title=f"{density} % of each gradient", xlabel="epoch", ylabel="training loss")
            axis.legend(fontsize=7.5)
        label_source(figure, "measured", "means of 3 seeds, 4 simulated nodes")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
