"""Asynchronous training of a network: more workers make gradients staler; what helps.

Dean et al. (Large scale distributed deep networks, NIPS 2012) are reported to have trained with 20 and with 200
asynchronous workers, after a warm start by a single one, and fastest with Adagrad on the parameter servers.

Here: an MLP 64-64-10 on the 1,437 digits, minibatches of 16 a gradient, 15 epochs, plain SGD on one parameter server, 5
seeds, on a simulated cluster whose workers take turns: with P workers nearly every gradient is P - 1 updates old. The
pilot's values come from an independent implementation in plain numpy.

What must show: at rate 0.4 up to 8 workers train as one does, while 32 fail: their mean test error is above 20 %, and
every seed is worse than any at half that rate (the largest stable rate falls like 1 / P); at half that rate 32 train
well, and with Adagrad too. With the rate divided by the staleness, every number of workers is stable, but learns slowly
(the pilot's training loss rose from 0.10 to 0.37). At the edge of stability seeds differ widely: the 32 workers ended
at 19 to 71 % here.

What does not show: that a warm start helps at 0.4 (90 updates, those of one epoch, by one worker alone on its shard).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.digits import error, job, train, training_loss
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import optim, parallel
from minidl.plots import style

TITLE = "Stale gradients on digits: 32 workers need a smaller rate, or Adagrad"
WORKERS = (1, 4, 8, 16, 32)
SEEDS = range(5)
RULES: dict[str, tuple[dict[str, Any], parallel.Strategy]] = {  # settings of the job, strategy
    "SGD 0.4": ({"lr": 0.4}, parallel.ParameterServer()),
    "SGD 0.2": ({"lr": 0.2}, parallel.ParameterServer()),
    "SGD 0.4 / staleness": ({"lr": 0.4}, parallel.StalenessAwareSGD()),
    "Adagrad 0.06": ({"optimizer": partial(optim.Adagrad, lr=0.06)}, parallel.ParameterServer()),
    "SGD 0.4, warm start": ({"lr": 0.4}, parallel.Downpour(warm_start=90)),
}
PILOT = {("SGD 0.4", 1): "2.2 to 2.4", ("SGD 0.4", 16): "2.2 to 2.4", ("SGD 0.4", 32): "39.9"}
PILOT |= {("SGD 0.2", 32): "3.1", ("Adagrad 0.06", 32): "3.5"}


def experiment(reproduction: Reproduction) -> None:
    """Train by every rule with every number of workers."""
    runs = {(rule, workers): [run(rule, workers, seed) for seed in SEEDS] for rule in RULES for workers in WORKERS}
    errors = {key: [100 * error(report) for report in reports] for key, reports in runs.items()}
    losses = {key: float(np.mean([training_loss(report) for report in reports])) for key, reports in runs.items()}
    reproduction.table(
        ["rule", "workers", "error %", "lowest", "highest", "pilot's error %", "training loss"],
        [
            [*key, float(np.mean(errors[key])), min(errors[key]), max(errors[key]), PILOT.get(key, ""), losses[key]]
            for key in runs
        ],
    )
    reproduction.picture(picture(errors, losses))
    ages = {workers: runs["SGD 0.2", workers][0].staleness for workers in WORKERS}
    usual = min(count[workers - 1] / count.total() for workers, count in ages.items())
    reproduction.accept(usual > 0.95, f"P - 1 updates is the age of {100 * usual:.1f} % of the gradients or more")
    few = max(abs(float(np.mean(errors["SGD 0.4", p])) - float(np.mean(errors["SGD 0.4", 1]))) for p in (4, 8))
    reproduction.accept(few < 1, f"at rate 0.4 up to 8 workers are within {few:.2f} points of one")
    fast, halved = errors["SGD 0.4", 32], errors["SGD 0.2", 32]
    reproduction.accept(
        float(np.mean(fast)) > 20 and min(fast) > max(halved),
        f"at rate 0.4 32 workers end at {np.mean(fast):.1f} % on average, {min(fast):.1f} % at least",
    )
    for rule, most in (("SGD 0.2", 6.0), ("Adagrad 0.06", 6.0)):
        worst = max(errors[rule, 32])
        reproduction.accept(worst < most, f"{rule}: 32 workers end at {worst:.1f} % or below")
    slow = [losses["SGD 0.4 / staleness", workers] for workers in WORKERS]
    reproduction.accept(
        slow == sorted(slow) and slow[-1] > 3 * slow[0] and max(errors["SGD 0.4 / staleness", 32]) < 20,
        f"divided by the staleness: never above 20 %, but the training loss rises from {slow[0]:.2f} to {slow[-1]:.2f}",
    )


def run(rule: str, workers: int, seed: int) -> Any:
    of_job, strategy = RULES[rule]
    return train(job(**of_job, batch_size=16, epochs=15, seed=seed), strategy, workers)


@style.applied()
def picture(errors: dict[tuple[str, int], list[float]], losses: dict[tuple[str, int], float]) -> Figure:
    """Test error with its range over the seeds, and training loss, against the number of workers."""
    figure, (left, right) = style.new_figure(9.6, 3.6, columns=2)
    for i, rule in enumerate(RULES):
        means = [float(np.mean(errors[rule, p])) for p in WORKERS]
        ranges = [
            [m - min(errors[rule, p]) for p, m in zip(WORKERS, means, strict=True)],
            [max(errors[rule, p]) - m for p, m in zip(WORKERS, means, strict=True)],
        ]
        look: dict[str, Any] = {"color": style.SERIES[i], "ls": style.DASHES[i], "marker": "os^Dv"[i], "ms": 4}
        left.errorbar(WORKERS, means, ranges, capsize=2, label=rule, **look)
        right.plot(WORKERS, [losses[rule, p] for p in WORKERS], label=rule, **look)
    left.set(title="Test error", ylabel="test error (%)")
    right.set(title="Training loss", ylabel="training loss (last epoch)")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="workers that take turns")
        axes.set_xticks(WORKERS, [str(p) for p in WORKERS])
        axes.minorticks_off()
        axes.grid(color="0.92", linewidth=0.6)
    left.set_yticks([2, 3, 5, 10, 20, 40], ["2", "3", "5", "10", "20", "40"])
    right.legend()
    style.label_source(figure, "simulated", "MLP 64-64-10 on digits, 15 epochs, means and ranges of 5 seeds")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
