"""LARS: one rate for each layer, and large minibatches train where a linearly scaled rate diverges.

You, Gitman and Ginsburg (arXiv:1708.03888) find that linear scaling with warm-up may diverge, and train AlexNet with
minibatches of up to 8,192 and ResNet-50 of up to 32,768 samples without loss of accuracy by giving each layer a rate in
proportion to |w| / |g|.

Here: an MLP with five layers of weights, 64-64-64-64-64-10, on the digits, first weights of He et al., momentum 0.9,
weight decay 1e-4, 30 epochs, 5 of them warm-up, then polynomial decay of power 2; 6 seeds. SGD with the rate scaled
linearly (0.04 for 16 samples), SGD with rates of 0.1, 0.2 and 0.4 whatever the minibatch, and LARS (rate 1, trust
coefficient 0.02) in one setting for all sizes. One node: Synchronous on many makes the same steps.

It must show: linearly scaled SGD ends above 50 % error at 512 and 1,024; LARS trains at every size, no run above 20 %;
at 1,024 it is better than SGD with rate 0.2, the best of the three at 256, and at every size it is at most 0.5 points
worse than the best of the three rates.

What does not show: a lead of 2 points over SGD at 1,024, which an independent implementation had (11.7 against 5.7 %;
it seems to have left out the last, smaller minibatch, so that 1,024 samples made one step an epoch). The mean error of
LARS is the lowest at each of the four sizes, but by half a point, less than the deviation over the seeds. Its advantage
here is that nothing is tuned again when the minibatch grows, and that no run fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.digits import error, he_mlp, job, train
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, optim
from minidl.plots import style

TITLE = "LARS against SGD with large minibatches (You et al.)"

SEEDS = range(6)
SIZES = (128, 256, 512, 1024)
FAILURE = 20.0  # error in %


def sgd(lr: float) -> Callable[..., Any]:
    return partial(optim.SGD, lr=lr, momentum=0.9, weight_decay=1e-4)


LARS = partial(optim.LARS, lr=1.0, momentum=0.9, weight_decay=1e-4, trust_coefficient=0.02)
FROM_ZERO: dict[str, Any] = {"scaling": "fixed", "start_factor": 0.0}  # one peak for all sizes
RULES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {  # optimizer, settings of LargeBatchLR
    "SGD, scaled linearly": (sgd(0.04), {"scaling": "linear"}),
    "SGD, rate 0.1": (sgd(0.1), FROM_ZERO),
    "SGD, rate 0.2": (sgd(0.2), FROM_ZERO),
    "SGD, rate 0.4": (sgd(0.4), FROM_ZERO),
    "LARS": (LARS, FROM_ZERO),
}
PILOT = {
    "SGD, scaled linearly": (3.0, 36.9, 90.0, 90.0),
    "SGD, rate 0.2": (3.2, 3.4, 4.6, 11.7),
    "LARS": (2.6, 2.9, 3.7, 5.7),
}

Errors = dict[tuple[str, int], list[float]]  # of a rule and a minibatch: in %, of every seed


def experiment(reproduction: Reproduction) -> None:
    """Train with every rule at every size."""
    errors = {(rule, size): run(rule, size) for rule in RULES for size in SIZES}
    reproduction.table(
        ["rule", "minibatch", "mean error %", "deviation", f"runs above {FAILURE:g} %", "pilot's mean error %"],
        [
            [
                rule,
                size,
                float(np.mean(errors[rule, size])),
                float(np.std(errors[rule, size])),
                failures(errors[rule, size]),
                PILOT[rule][i] if rule in PILOT else "",
            ]
            for rule in RULES
            for i, size in enumerate(SIZES)
        ],
        "the pilot's LARS had a rate of 0.03; its SGD the same rates as here",
    )
    reproduction.picture(picture(errors))
    judge(reproduction, errors)


def run(rule: str, size: int) -> list[float]:
    """The test error in % of every seed."""
    splits = data.digits()
    optimizer, settings = RULES[rule]
    schedule = partial(
        optim.LargeBatchLR,
        batch_size=size,
        base_batch_size=16,
        warmup_epochs=5,
        total_epochs=30,
        power=2.0,
        **settings,
    )
    model = partial(he_mlp, 64, 64, 64, 64, 64, 10)
    jobs = (
        job(model=model, data=splits, optimizer=optimizer, schedule=schedule, batch_size=size, epochs=30, seed=seed)
        for seed in SEEDS
    )
    return [100 * error(train(of)) for of in jobs]


def failures(errors: list[float]) -> int:
    return sum(error > FAILURE for error in errors)


def judge(reproduction: Reproduction, errors: Errors) -> None:
    """Compare with what the paper shows."""
    means = {key: float(np.mean(values)) for key, values in errors.items()}
    linear = [means["SGD, scaled linearly", size] for size in (512, 1024)]
    reproduction.accept(
        min(linear) > 50, f"linearly scaled SGD: {linear[0]:.1f} % error at 512, {linear[1]:.1f} % at 1,024"
    )
    failed = sum(failures(errors["LARS", size]) for size in SIZES)
    reproduction.accept(failed == 0, f"of {len(SEEDS) * len(SIZES)} runs with LARS {failed} failed")
    lars, fixed = means["LARS", 1024], means["SGD, rate 0.2", 1024]
    reproduction.accept(lars < fixed, f"at 1,024 LARS has {lars:.2f} %, SGD with rate 0.2 {fixed:.2f} %")
    behind = {
        size: means["LARS", size] - min(means[f"SGD, rate {rate}", size] for rate in (0.1, 0.2, 0.4)) for size in SIZES
    }
    reproduction.accept(
        max(behind.values()) < 0.5,
        "against the best of SGD's three rates, in points: "
        + ", ".join(f"{value:+.2f} at {size}" for size, value in behind.items()),
    )


@style.applied()
def picture(errors: Errors) -> Figure:
    """Mean error against the minibatch, a line a rule, with the runs as dots."""
    figure, (axes,) = style.new_figure(8.0, 3.8)
    for i, rule in enumerate(RULES):
        color = style.SERIES[i]
        means = [float(np.mean(errors[rule, size])) for size in SIZES]
        axes.plot(SIZES, means, linestyle=style.DASHES[i], marker="os^Dv"[i], color=color, label=rule)
        for size in SIZES:
            axes.plot([size * (0.96 + 0.02 * i)] * len(SEEDS), errors[rule, size], ".", color=color, ms=3, alpha=0.6)
    axes.axhline(FAILURE, color="0.6", lw=0.8)
    axes.set(xscale="log", yscale="log", xlabel="minibatch (samples)", ylabel="test error (%)")
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set_yticks([2, 3, 5, 10, 20, 50, 90], ["2", "3", "5", "10", "20", "50", "90"])
    axes.minorticks_off()
    axes.grid(color="0.92", linewidth=0.6)
    figure.legend(loc="outside right upper", fontsize=8)
    style.label_source(figure, "measured", "MLP with five layers of weights on digits; dots: runs, lines: means")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
