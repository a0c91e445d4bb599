"""LARS: one rate for each layer, and large minibatches train where a linearly scaled rate diverges.

You, Gitman and Ginsburg (arXiv:1708.03888) find that linear scaling with warm-up may diverge, and train AlexNet with
minibatches of up to 8,192 and ResNet-50 of up to 32,768 samples without loss of accuracy by giving each layer a rate in
proportion to |w| / |g|.

Here: an MLP with five layers of weights, 64-64-64-64-64-10, on the digits, first weights of He et al., momentum 0.9,
weight decay 1e-4, 30 epochs, 5 of them warm-up, then polynomial decay of power 2; 12 seeds. SGD with the rate scaled
linearly (0.04 for 16 samples), SGD with rates of 0.1, 0.2 and 0.4 whatever the minibatch, and LARS (rate 1, trust
coefficient 0.02) in one setting for all minibatches: 128, 256, 512 and 1,024 of 1,437 training samples, and 1,024 of
1,024, which is one step an epoch, as in the pilot. One node: Synchronous on many makes the same steps.

It must show: linearly scaled SGD ends above 50 % error at 512 and 1,024; LARS trains in every case, no run above 20 %;
with one step an epoch it is better than SGD with rate 0.2 by more than a point (the pilot: 6 points; 2.8 in 24 seeds);
and LARS transfers best: its largest deficit, over all cases, against the best rule of the case is smaller than that
of every fixed rate.

What does not show: a lead over SGD with rate 0.2 at 1,024 of 1,437 samples, which is two steps an epoch: 3.8 and 4.0 %
in 24 seeds, with a deviation of 0.6 and 0.8. Nor is LARS the best rule of each case: a fixed rate tuned for the case is
as good. The advantage of LARS is that nothing has to be tuned again when the minibatch grows.
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

SEEDS = range(12)
ONE_STEP = "1,024 of 1,024"
CASES = {"128": 128, "256": 256, "512": 512, "1,024": 1024, ONE_STEP: 1024}  # minibatch
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
FIXED = ("SGD, rate 0.1", "SGD, rate 0.2", "SGD, rate 0.4")
PILOT = {  # its 1,024 samples made one step an epoch
    "SGD, scaled linearly": {"128": 3.0, "256": 36.9, "512": 90.0, ONE_STEP: 90.0},
    "SGD, rate 0.2": {"128": 3.2, "256": 3.4, "512": 4.6, ONE_STEP: 11.7},
    "LARS": {"128": 2.6, "256": 2.9, "512": 3.7, ONE_STEP: 5.7},
}

Errors = dict[tuple[str, str], list[float]]  # of a rule and a case: the test error of every seed, in %


def experiment(reproduction: Reproduction) -> None:
    """Train with every rule in every case."""
    errors = {(rule, case): run(rule, case) for rule in RULES for case in CASES}
    reproduction.table(
        ["rule", "minibatch", "mean error %", "deviation", f"runs above {FAILURE:g} %", "pilot's mean error %"],
        [
            [
                rule,
                case,
                float(np.mean(errors[rule, case])),
                float(np.std(errors[rule, case])),
                failures(errors[rule, case]),
                PILOT.get(rule, {}).get(case, ""),
            ]
            for rule in RULES
            for case in CASES
        ],
        f"{len(SEEDS)} seeds; the pilot's LARS had a rate of 0.03; its SGD the same rates as here",
    )
    reproduction.picture(picture(errors))
    judge(reproduction, errors)


def run(rule: str, case: str) -> list[float]:
    """The test error in % of every seed."""
    size, splits = CASES[case], data.digits()
    if case == ONE_STEP:
        splits = data.Splits(data.Dataset(*splits.train[:size]), splits.test)
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
    linear = [means["SGD, scaled linearly", case] for case in ("512", "1,024")]
    reproduction.accept(
        min(linear) > 50, f"linearly scaled SGD: {linear[0]:.1f} % error at 512, {linear[1]:.1f} % at 1,024"
    )
    failed = sum(failures(errors["LARS", case]) for case in CASES)
    reproduction.accept(failed == 0, f"of {len(SEEDS) * len(CASES)} runs with LARS {failed} failed")
    lars, fixed = means["LARS", ONE_STEP], means["SGD, rate 0.2", ONE_STEP]
    reproduction.accept(
        fixed - lars > 1, f"with one step an epoch LARS has {lars:.2f} %, SGD with rate 0.2 {fixed:.2f} %"
    )
    best = {case: min(means[rule, case] for rule in ("LARS", *FIXED)) for case in CASES}
    deficit = {rule: max(means[rule, case] - best[case] for case in CASES) for rule in ("LARS", *FIXED)}
    reproduction.accept(
        all(deficit["LARS"] < deficit[rule] for rule in FIXED),
        "largest deficit against the best rule of a case, in points: "
        + ", ".join(f"{rule} {points:.2f}" for rule, points in deficit.items()),
    )


@style.applied()
def picture(errors: Errors) -> Figure:
    """Mean error in each case, one line for each rule, with the runs as dots."""
    figure, (axes,) = style.new_figure(8.0, 3.8)
    places = np.arange(len(CASES))
    for i, rule in enumerate(RULES):
        color = style.SERIES[i]
        means = [float(np.mean(errors[rule, case])) for case in CASES]
        axes.plot(places, means, linestyle=style.DASHES[i], marker="os^Dv"[i], color=color, label=rule)
        for place, case in zip(places, CASES, strict=True):
            x = place + 0.06 * (i - 2)
            axes.plot([x] * len(SEEDS), errors[rule, case], ".", color=color, ms=3, alpha=0.6)
    axes.axhline(FAILURE, color="0.6", lw=0.8)
    axes.set(yscale="log", xlabel="minibatch (samples)", ylabel="test error (%)")
    axes.set_xticks(places, list(CASES))
    axes.set_yticks([2, 3, 5, 10, 20, 50, 90], ["2", "3", "5", "10", "20", "50", "90"])
    axes.minorticks_off()
    axes.grid(color="0.92", linewidth=0.6)
    figure.legend(loc="outside right upper", fontsize=8)
    style.label_source(figure, "measured", "MLP with five layers of weights on digits; dots: runs, lines: means")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
