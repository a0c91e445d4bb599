"""Mixtures of experts: many times the weights for the arithmetic of a dense model; a small loss keeps the load even.

Fedus et al. (Switch Transformers, arXiv:2101.03961): with one expert for each token, a model of many experts does a
dense model's arithmetic (section 2.1). A small loss on the gate evens out the experts' load, so that few tokens exceed
the capacity and are dropped (equation 4).

Here: a GPT of 2 layers, width 16 and context 16, on 60,000 characters of Python's standard library, minibatches of 32,
AdamW, 2 epochs: dense; with 4 and with 8 experts, top 1 and capacity factor 1, so that all experts together have a slot
for each token; and with 8 experts without the load-balancing loss. Two simulated nodes divide the experts.

It must show: flops of a forward pass within 10 % of the dense model's, at three times the weights and more; with the
load-balancing loss fewer tokens dropped, by a tenth at least; a test loss within 10 % of the dense model's.

What does not show: that more weights learn more from each step (figure 4 of the paper). In 210 steps each of 8 experts
has seen an eighth of 100,000 tokens.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, nn, optim, parallel
from minidl.plots import style

TITLE = "Many weights at the flops of few (Switch Transformers)"

CONTEXT, EPOCHS = 16, 2
WAYS: dict[str, dict[str, Any]] = {
    "dense": {},
    "4 experts": {"experts": 4, "capacity_factor": 1.0},
    "8 experts": {"experts": 8, "capacity_factor": 1.0},
    "8 experts, not balanced": {"experts": 8, "capacity_factor": 1.0, "balance": 0.0},
}
text = partial(data.stdlib_text, block_size=CONTEXT, n_chars=60_000)


def experiment(reproduction: Reproduction) -> None:
    """Train in each way, and compare weights, flops, losses and dropped tokens."""
    dense, four, eight, unbalanced = WAYS
    counts = {
        way: nn.count(partial(gpt, **settings), np.zeros((32, CONTEXT), np.int64)) for way, settings in WAYS.items()
    }
    reports = {way: trained(settings) for way, settings in WAYS.items()}
    flops = {way: counts[way].flops / counts[dense].flops for way in WAYS}
    weights = {way: counts[way].parameters / counts[dense].parameters for way in WAYS}
    losses = {way: report.history[-1]["test_loss"] for way, report in reports.items()}
    dropped = {way: 100 * dropped_share(report) for way, report in reports.items() if report.routing}
    reproduction.table(
        ["model", "weights, of dense", "flops, of dense", "training loss", "test loss", "dropped %"],
        [
            [way, weights[way], flops[way], reports[way].history[-1]["loss"], losses[way], dropped.get(way, "")]
            for way in WAYS
        ],
    )
    reproduction.picture(picture(reports, dropped))
    most = max(flops.values())
    reproduction.accept(
        most < 1.1 and weights[eight] > 3, f"{weights[eight]:.1f} times the weights for {most:.2f} times the flops"
    )
    reproduction.accept(
        dropped[eight] < 0.9 * dropped[unbalanced],
        f"balanced experts drop {dropped[eight]:.0f} % of the tokens, others {dropped[unbalanced]:.0f} %",
    )
    apart = max(abs(losses[way] / losses[dense] - 1) for way in (four, eight))
    reproduction.accept(apart < 0.1, f"the test losses are within {100 * apart:.1f} % of the dense model's")


def gpt(**settings: Any) -> nn.Module:
    """The model, dense without settings."""
    return nn.models.GPT(96, CONTEXT, n_layer=2, n_head=2, n_embd=16, **settings)


def trained(settings: dict[str, Any]) -> parallel.Report:
    """A run on two simulated nodes, which divide the experts, or the samples of a dense model."""
    job = parallel.Job(partial(gpt, **settings), text, partial(optim.AdamW, lr=6e-3), batch_size=32, epochs=EPOCHS)
    strategy = parallel.Hybrid(dp=1, ep=2) if settings else parallel.Synchronous()
    return parallel.train(job, strategy, nodes=2, on="simulation")


def dropped_share(report: parallel.Report) -> float:
    """The dropped fraction of the tokens that the layers were given in the last epoch."""
    layers = report.routing[-1].values()
    return float(sum(counts.dropped for counts in layers) / sum(counts.load.sum() for counts in layers))


@style.applied()
def picture(reports: dict[str, parallel.Report], dropped: dict[str, float]) -> Figure:
    """The losses by epoch, which lie close together; the load of the experts of the last layer, even if balanced."""
    figure, (curves, loads) = style.new_figure(9.6, 3.4, columns=2)
    for i, (way, report) in enumerate(reports.items()):
        look: dict[str, Any] = {"color": style.SERIES[i], "linestyle": style.DASHES[i], "label": way}
        curves.plot(range(1, EPOCHS + 1), [row["test_loss"] for row in report.history], **look)
        if way in dropped:
            load = list(report.routing[-1].values())[-1].load
            loads.plot(range(len(load)), np.sort(100 * load / load.sum()), **look)
    curves.set(xlabel="epochs", ylabel="test loss", xticks=range(1, EPOCHS + 1))
    loads.set(xlabel="experts of the last layer, by load", ylabel="% of the tokens", ylim=(0, None))
    curves.legend()
    style.label_source(figure, "measured", "GPT of width 16 on the source of the standard library")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
