"""Grow the minibatch instead of decaying the rate: the same training with fewer updates.

Smith et al. (arXiv:1711.00489): the noise of SGD goes with the ratio of the rate to the minibatch. Where a schedule
divides the rate by a number, the minibatch may as well be multiplied by it: the same curves over the same number of
epochs, with fewer updates, each of which has more samples to share between nodes.

Here: an MLP 64-64-10 on the digits, momentum 0.9, 45 epochs, from minibatches of 32 and rate 0.1; after epochs 15 and
30 either the rate is divided by 4 or the minibatch is multiplied by 4 (`Job(batch_schedule=…)`); or, for comparison,
neither. 3 seeds. One node: Synchronous on many makes the same steps.

It must show: final training loss within 10 % of one another, test error within 0.6 points, less than 45 % of the
updates (900 of 2,025); and, so that the comparison means something, a training loss over 30 % from both without
either.

What does not show: that decay helps at all. A net that fits the digits perfectly has no noise left at the end, and
trains further without decay; the test error is the same.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from benchmarks.reproductions.digits import job, mean_column, train
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, optim, parallel
from minidl.plots import style

TITLE = "Grow the minibatch instead of decaying the rate (Smith et al.)"

SEEDS = range(3)
EPOCHS, MILESTONES, FACTOR, SIZE = 45, (15, 30), 4, 32
PILOT = {"decay the rate": (2.28, 0.0074, 1980), "grow the minibatch": (2.28, 0.0074, 855), "neither": ("", "", "")}


def decay(optimizer: optim.Optimizer, steps_per_epoch: int) -> optim.LRScheduler:
    """The rate, divided by FACTOR at the milestones."""
    return optim.MultiStepLR(optimizer, [epoch * steps_per_epoch for epoch in MILESTONES], gamma=1 / FACTOR)


def grow(epoch: int) -> int:
    """The minibatch, multiplied by FACTOR at the milestones."""
    return int(SIZE * FACTOR ** sum(epoch >= milestone for milestone in MILESTONES))


WAYS: dict[str, dict[str, Any]] = {
    "decay the rate": {"schedule": decay},
    "grow the minibatch": {"batch_schedule": grow},
    "neither": {},
}


def experiment(reproduction: Reproduction) -> None:
    """Train in each way, and compare losses, errors and updates."""
    runs = {way: [run(seed, **settings) for seed in SEEDS] for way, settings in WAYS.items()}
    means = {way: mean_column(reports, "loss") for way, reports in runs.items()}
    errors = {way: 100 * (1 - mean_column(reports, "accuracy")[-1]) for way, reports in runs.items()}
    steps = {way: reports[0].history[-1]["steps"] for way, reports in runs.items()}
    reproduction.table(
        ["after epochs 15 and 30", "error %", "pilot's", "training loss", "pilot's", "updates", "pilot's"],
        [[way, errors[way], PILOT[way][0], means[way][-1], PILOT[way][1], steps[way], PILOT[way][2]] for way in WAYS],
        "the pilot left out the last, smaller minibatch of each epoch",
    )
    reproduction.picture(picture(means, {way: mean_column(reports, "steps") for way, reports in runs.items()}))

    rate, batch, neither = WAYS
    apart = abs(means[batch][-1] / means[rate][-1] - 1)
    reproduction.accept(apart < 0.1, f"the training losses end within {100 * apart:.1f} % of one another")
    difference = abs(errors[batch] - errors[rate])
    reproduction.accept(difference < 0.6, f"the test errors within {difference:.2f} points")
    share = steps[batch] / steps[rate]
    reproduction.accept(share < 0.45, f"with {steps[batch]} updates instead of {steps[rate]}: {100 * share:.0f} %")
    other = min(abs(means[neither][-1] / means[way][-1] - 1) for way in (rate, batch))
    reproduction.accept(other > 0.3, f"without either the training loss ends at least {100 * other:.0f} % from both")


def run(seed: int, **settings: Any) -> parallel.Report:
    """Train in one way; digits never diverge at this rate."""
    report = train(job(lr=0.1, momentum=0.9, batch_size=SIZE, epochs=EPOCHS, data=data.digits, seed=seed, **settings))
    if report is None:
        raise ArithmeticError(f"seed {seed} diverged")
    return report


@style.applied()
def picture(losses: dict[str, list[float]], steps: dict[str, list[float]]) -> Figure:
    """Training loss against epochs, where two ways agree, and against updates, where one is shorter."""
    figure, (epochs, updates) = style.new_figure(9.6, 3.4, columns=2, sharey=True)
    for i, way in enumerate(WAYS):
        look: dict[str, Any] = {"color": style.SERIES[i], "linestyle": style.DASHES[i], "label": way}
        epochs.plot(range(1, EPOCHS + 1), losses[way], **look)
        updates.plot(steps[way], losses[way], **look)
    for axes, name in ((epochs, "epochs"), (updates, "updates")):
        axes.set(yscale="log", xlabel=name, ylabel="training loss")
        axes.grid(color="0.92", linewidth=0.6)
    epochs.legend()
    style.label_source(figure, "measured", f"MLP 64-64-10 on digits, means of {len(SEEDS)} seeds")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
