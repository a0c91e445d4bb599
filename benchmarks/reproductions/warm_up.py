"""Warm-up: a rate that is right later may be too high at the start.

Goyal et al. (arXiv:1706.02677, table 1) train ResNet-50 with minibatches of 8,192 and the rate scaled linearly: without
a warm-up the error is 24.84 %, with a constant one (5 epochs at the rate of 256 samples, then a jump) 25.88 %, with a
gradual one 23.74 %, against 23.60 % with minibatches of 256.

Here: an MLP with five layers of weights, 64-64-64-64-64-10, on the digits, first weights of He et al., momentum 0.9,
weight decay 1e-4, 30 epochs with drops by 10 after 60 and 85 % of them. With 256 samples the rate is 0.32 (0.02 for
16), with 128 samples 0.32 too (0.04 for 16), and there is also a warm-up from 0 over 10 epochs. 20 seeds per row; a
run fails if its test error is above 20 %. One node: Synchronous on many makes the same steps.

Runs at the edge of stability are chaotic: different rounding gives different runs, so failures are counted over many
seeds, and the thresholds leave room for others.

It must show: at 256 at least 5 failures of the constant warm-up and at most 4 of each of the others; at 128 at least 6
failures without warm-up, fewer with the gradual one, and less than half as many with the longest. A net with two layers
of weights needs no warm-up at all: no failure.

What does not show: the paper's whole order, constant > none > gradual, in one setting. At 256 the constant warm-up is
by far the worst, as in the paper, but none and gradual fail equally seldom; at 128 the gradual one is better than none,
as in the paper, but constant lies between them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.digits import error, he_mlp, job, train
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, optim
from minidl.plots import style

TITLE = "Warm-up: none, constant, gradual (Goyal et al., table 1)"

SEEDS = range(20)
SETTINGS = ((256, 0.02), (128, 0.04))  # minibatch, rate for 16 samples: with both the scaled rate is 0.32
FAILURE = 20.0  # error in %
PILOT = {
    (256, "none"): 1,
    (256, "constant"): 17,
    (256, "gradual"): 1,
    (128, "none"): 12,
    (128, "constant"): 13,
    (128, "gradual"): 4,
    (128, "gradual, 10 epochs from 0"): 1,
}  # of 40
PUBLISHED = {"none": 24.84, "constant": 25.88, "gradual": 23.74}  # error in %, minibatches of 8,192
WARMUPS: dict[str, dict[str, Any]] = {  # settings of LargeBatchLR
    "none": {"warmup": "none"},
    "constant": {"warmup": "constant", "warmup_epochs": 5},
    "gradual": {"warmup": "gradual", "warmup_epochs": 5},
    "gradual, 10 epochs from 0": {"warmup": "gradual", "warmup_epochs": 10, "start_factor": 0.0},
}


Errors = dict[tuple[int, str], list[float]]  # of a minibatch and a warm-up: in %, of every seed


def experiment(reproduction: Reproduction) -> None:
    """Count the failures for every warm-up."""
    errors = {(size, warmup): run(size, rate, warmup) for size, rate in SETTINGS for warmup in WARMUPS}
    shallow = run(256, 0.02, "none", hidden=1)
    reproduction.table(
        ["minibatch", "warm-up", f"failures of {len(SEEDS)}", "pilot's of 40", "mean error %", "median", "published %"],
        [
            [
                size,
                warmup,
                failures(row),
                PILOT.get((size, warmup), ""),
                float(np.mean(row)),
                float(np.median(row)),
                PUBLISHED.get(warmup, "") if size == 256 else "",
            ]
            for (size, warmup), row in errors.items()
        ]
        + [
            [
                256,
                "none; two layers of weights",
                failures(shallow),
                "",
                float(np.mean(shallow)),
                float(np.median(shallow)),
                "",
            ]
        ],
        "published: ResNet-50 on ImageNet, minibatches of 8,192",
    )
    reproduction.picture(picture(errors))
    judge(reproduction, errors, shallow)


def run(size: int, base_rate: float, warmup: str, hidden: int = 4, seeds: range = SEEDS) -> list[float]:
    """The test error in % of every seed."""
    splits = data.digits()
    schedule = partial(
        optim.LargeBatchLR, batch_size=size, base_batch_size=16, milestones=(18, 25.5), **WARMUPS[warmup]
    )
    model = partial(he_mlp, 64, *[64] * hidden, 10)
    common: dict[str, Any] = {"model": model, "data": splits, "batch_size": size, "schedule": schedule, "epochs": 30}
    common |= {"lr": base_rate, "momentum": 0.9, "weight_decay": 1e-4}
    return [100 * error(train(job(seed=seed, **common))) for seed in seeds]


def failures(errors: list[float]) -> int:
    return sum(error > FAILURE for error in errors)


def judge(reproduction: Reproduction, errors: Errors, shallow: list[float]) -> None:
    """Compare with what the paper shows."""
    counts = {warmup: failures(errors[256, warmup]) for warmup in WARMUPS}
    others = max(count for warmup, count in counts.items() if warmup != "constant")
    reproduction.accept(
        counts["constant"] >= 5 and others <= 4,
        f"at 256 constant warm-up fails {counts['constant']} times, each of the others {others} times at most",
    )
    without, gradual, longest = (
        failures(errors[128, warmup]) for warmup in ("none", "gradual", "gradual, 10 epochs from 0")
    )
    reproduction.accept(
        without >= 6 and gradual < without and longest < without / 2,
        f"at 128 {without} runs fail without warm-up, {gradual} with 5 epochs of it, {longest} with 10 from 0",
    )
    reproduction.accept(failures(shallow) == 0, f"with two layers of weights {failures(shallow)} fail without warm-up")


@style.applied()
def picture(errors: Errors) -> Figure:
    """The error of every seed, from the best to the worst, one line per warm-up."""
    figure, panels = style.new_figure(9.6, 3.6, columns=len(SETTINGS), sharey=True)
    for axes, (size, rate) in zip(panels, SETTINGS, strict=True):
        for i, warmup in enumerate(WARMUPS):
            ordered = sorted(errors[size, warmup])
            axes.plot(
                range(1, len(ordered) + 1),
                ordered,
                color=style.SERIES[i],
                linestyle=style.DASHES[i],
                marker="os^D"[i],
                ms=3.5,
                label=warmup,
            )
        axes.axhline(FAILURE, color="0.6", lw=0.8)
        axes.set(yscale="log", xlabel="seeds, from the best run to the worst", ylabel="test error (%)")
        axes.set_yticks([3, 10, 20, 90], ["3", "10", "20", "90"])
        axes.set_xticks([1, 5, 10, 15, 20])
        axes.minorticks_off()
        axes.set_title(f"minibatches of {size}, rate {rate * size / 16:g}", fontsize=9)
    panels[0].legend(title="warm-up")
    style.label_source(figure, "measured", "MLP with five layers of weights on digits")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
