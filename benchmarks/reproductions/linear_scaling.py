"""The linear scaling rule: a minibatch k times as large, a rate k times as high, and the same training, up to a point.

Goyal et al. (arXiv:1706.02677) train ResNet-50 on ImageNet with minibatches from 64 to 65,536. With the rate scaled
linearly and a gradual warm-up the error stays at 23.5 to 23.7 % from 64 to 8,192 and then rises: 24.8, 27.6 and 34.0 %
at 16k, 32k and 64k (their figure 3). At 8,192 a rate scaled by the square root ends at 26.22 %, an unscaled one at
41.67 % (table 2a).

Here: an MLP 64-64-10 on the 1,437 digits, momentum 0.9, weight decay 1e-4, 30 epochs with drops by 10 after 60 and
85 % of them, rate 0.05 for 16 samples, 5 epochs of gradual warm-up above 16; each of the three rules at eight sizes,
means of 5 seeds, on one node: Synchronous on many nodes makes the same steps. The published sizes belong to
another net and data set, so they are in a separate table.

It must show: up to 128 the linear rule trains as 16 does (error within 0.6 points, training loss within 30 %); from 32
on the training loss is ordered linear < sqrt < fixed, and at 128 the test error too, as in table 2a; at 1,024 the fixed
rate has over three times the error of the scaled one; the linear rule has its own limit, an elbow: at 512 its error is
over 0.7 points higher than at 64. The elbow (where the error is a quarter higher than at 16 to 64) does not come from
the size of the data set: with half of the digits it moves by less than a factor of 2.

What does not show: that beyond 128 the linear rule beats the square root on the test set. The training losses differ by
a factor of 10 and more, but the test errors are equal within their deviations, with PyTorch's first weights (used here)
as with He's, 10 seeds. (The pilot saw sqrt at 6.78 % at 1,024; it seems to have left out the last, smaller minibatch.)
The order is clear where steps are few: with 1,024 samples in one step an epoch, the last table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.digits import error, job, train, training_loss
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, optim
from minidl.plots import style

TITLE = "The linear scaling rule holds up to a point (Goyal et al., figure 3 and table 2a)"

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
SCALINGS = ("linear", "sqrt", "fixed")
SEEDS = range(5)
BASE = 16
PILOT = {  # error in %, an independent implementation in plain numpy
    "linear": (2.28, 2.22, 2.39, 2.33, 2.44, 3.00, 3.78, 3.61),
    "sqrt": (2.39, 2.22, 2.39, 2.28, 2.89, 3.50, 4.17, 6.78),
    "fixed": (2.33, 2.22, 2.22, 3.00, 3.56, 4.83, 10.28, 20.2),
}
PUBLISHED = (  # ImageNet, ResNet-50: minibatch, rule, error in %
    ("256", "linear", 23.60),
    ("8k", "linear", 23.74),
    ("8k", "sqrt", 26.22),
    ("8k", "fixed", 41.67),
    ("16k", "linear", 24.79),
    ("32k", "linear", 27.55),
    ("64k", "linear", 33.96),
)

Mean = tuple[float, float, float]  # error in %, its deviation over the seeds, training loss
Means = dict[tuple[str, int], Mean]  # of a rule and a size


def experiment(reproduction: Reproduction) -> None:
    """Train with every rule at every size."""
    means = {(scaling, size): run(scaling, size) for scaling in SCALINGS for size in SIZES}
    half = {size: run("linear", size, samples=718) for size in SIZES}
    reproduction.table(
        ["rate", "minibatch", "error %", "deviation", "pilot's error %", "training loss"],
        [
            [scaling, size, *means[scaling, size][:2], PILOT[scaling][i], means[scaling, size][2]]
            for scaling in SCALINGS
            for i, size in enumerate(SIZES)
        ],
    )
    reproduction.table(["published: minibatch", "rate", "error %"], PUBLISHED, "ResNet-50 on ImageNet, 90 epochs")
    reproduction.table(
        ["minibatch", "error % on all 1,437", "error % on 718"],
        [[size, means["linear", size][0], half[size][0]] for size in SIZES],
        "the linear rule on half of the training set",
    )
    few = {scaling: run(scaling, 1024, samples=1024) for scaling in SCALINGS}
    reproduction.table(
        ["rate", "error %", "deviation", "training loss"],
        [[rule, *few[rule]] for rule in SCALINGS],
        "1,024 samples in minibatches of 1,024: one step an epoch",
    )
    reproduction.picture(picture(means, half))
    judge(reproduction, means, half, few)


def run(scaling: str, size: int, samples: int | None = None) -> Mean:
    """Error in %, its standard deviation, and the last epoch's training loss, over the seeds."""
    schedule = partial(
        optim.LargeBatchLR,
        batch_size=size,
        base_batch_size=BASE,
        scaling=scaling,
        warmup_epochs=5 if size > BASE else 0,
        milestones=(18, 25.5),
    )
    digits = data.digits()
    splits = data.Splits(data.Dataset(*digits.train[:samples]), digits.test)
    reports = [
        train(
            job(
                lr=0.05,
                momentum=0.9,
                weight_decay=1e-4,
                data=splits,
                schedule=schedule,
                batch_size=size,
                epochs=30,
                seed=seed,
            )
        )
        for seed in SEEDS
    ]
    errors = [100 * error(report) for report in reports]
    return float(np.mean(errors)), float(np.std(errors)), float(np.mean([training_loss(r) for r in reports]))


def judge(reproduction: Reproduction, means: Means, half: dict[int, Mean], few: dict[str, Mean]) -> None:
    """Compare with what the paper shows."""
    linear = {size: means["linear", size] for size in SIZES}
    within = max(abs(linear[size][0] - linear[BASE][0]) for size in (8, 32, 64, 128))
    reproduction.accept(within < 0.6, f"up to 128 the linear rule's error is within {within:.2f} points of that at 16")
    loss = max(abs(linear[size][2] / linear[BASE][2] - 1) for size in (8, 32, 64, 128))
    reproduction.accept(loss < 0.3, f"and its training loss within {100 * loss:.0f} %")
    ordered = all(linear[size][2] < means["sqrt", size][2] < means["fixed", size][2] for size in SIZES if size > BASE)
    losses = [means[rule, 1024][2] for rule in SCALINGS]
    reproduction.accept(
        ordered, f"above {BASE} the training loss is linear < sqrt < fixed, at 1,024 {numbers(losses, ' < ', '.4f')}"
    )
    errors = [means[rule, 128][0] for rule in SCALINGS]
    reproduction.accept(errors == sorted(set(errors)), f"so is the error at 128: {numbers(errors, ' < ')} %")
    errors = [few[rule][0] for rule in SCALINGS]
    reproduction.accept(errors == sorted(set(errors)), f"and with one step an epoch: {numbers(errors, ' < ')} %")
    ratio = means["fixed", 1024][0] / linear[1024][0]
    reproduction.accept(ratio > 3, f"at 1,024 the fixed rate has {ratio:.1f} times the linear rule's error")
    rise = linear[512][0] - linear[64][0]
    reproduction.accept(rise > 0.7, f"from 64 to 512 even the linear rule's error rises by {rise:.2f} points")
    elbows = elbow({size: linear[size][0] for size in SIZES}), elbow({size: half[size][0] for size in SIZES})
    reproduction.accept(
        0.5 <= elbows[1] / elbows[0] <= 2,
        f"the elbow is at {elbows[0]:.0f} on all digits and at {elbows[1]:.0f} on half of them",
    )


def numbers(values: Sequence[float], between: str, digits: str = ".2f") -> str:
    return between.join(format(value, digits) for value in values)


def elbow(errors: dict[int, float]) -> float:
    """The size (between two of them, by their logarithms) from which the error stays 1.25 times that of 16 to 64."""
    level = 1.25 * float(np.mean([errors[size] for size in (16, 32, 64)]))
    above = next((i for i in range(1, len(SIZES)) if all(errors[size] > level for size in SIZES[i:])), None)
    if above is None:
        return float(SIZES[-1])
    low, high = SIZES[above - 1], SIZES[above]
    share = (level - errors[low]) / (errors[high] - errors[low])
    return float(low * (high / low) ** share)


@style.applied()
def picture(means: Means, half: dict[int, Mean]) -> Figure:
    """Error against minibatch, one line per rule, with the deviation over the seeds."""
    figure, (axes, losses) = style.new_figure(9.6, 3.6, columns=2)
    for i, scaling in enumerate(SCALINGS):
        rows = [means[scaling, size] for size in SIZES]
        look: dict[str, Any] = {"color": style.SERIES[i], "linestyle": style.DASHES[i], "marker": "os^"[i]}
        axes.errorbar(SIZES, [row[0] for row in rows], [row[1] for row in rows], capsize=2, label=scaling, **look)
        losses.plot(SIZES, [row[2] for row in rows], label=scaling, **look)
    axes.plot(
        SIZES, [half[size][0] for size in SIZES], ":", color="0.4", marker="D", ms=4, label="linear, half the data"
    )
    for each, name in ((axes, "test error (%)"), (losses, "training loss")):
        each.set(xscale="log", yscale="log", xlabel="minibatch (samples)", ylabel=name)
        each.set_xticks(SIZES, [str(size) for size in SIZES], minor=False)
        each.minorticks_off()
        each.grid(color="0.92", linewidth=0.6)
    axes.set_yticks([2, 3, 5, 10, 20], ["2", "3", "5", "10", "20"])
    axes.legend()
    style.label_source(figure, "measured", "MLP 64-64-10 on digits, 30 epochs, means of 5 seeds")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
