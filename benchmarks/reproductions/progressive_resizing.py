"""Progressive resizing: training on small images first reaches the same test error with fewer operations.

fast.ai (blog, 2018) trained ResNet-50 on ImageNet to 93 % in 18 minutes on 16 machines with 8 GPUs each, for about 40
dollars. One reason was that the images grew during training. A network of convolutions that ends in
global average pooling takes images of any size, and half the width costs a quarter of the operations.

Here: three convolutions with batch norm on 1,500 glyphs, in 26 classes; the 1,000 test images have fonts that are not
trained on. At 14 x 14 the deeper maps have 4 x 4 pixels instead of 7 x 7: a third of the operations. Three schedules:
12 epochs at 28 x 28; 6 at 14 x 14 and then 6 at 28 x 28; and 8 at 28 x 28, which take as many operations as the second
schedule. SGD with momentum; the learning rate falls linearly to 0 in the last 6 epochs. 3 seeds. Operations are those
that minidl's kernels count in forward, backward and update.

What must show: growing images end within 1.5 points of the test error of 12 epochs at 28 x 28, with less than 70 % of
the operations; 8 epochs at 28 x 28, with as many operations, end at least 3 points higher.

What does not show: the same on the 8 x 8 digits. Few of them can be read at 4 x 4 pixels, and 360 test images are too
few to see the remaining differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, kernels, manual_seed, nn, no_grad, optim
from minidl import functional as F
from minidl.plots import style

TITLE = "Progressive resizing: small images first (fast.ai 2018)"

SEEDS = range(3)
RATE, BATCH = 0.05, 32
WAYS = {
    "28 x 28": [(28, 6), (28, 6)],
    "14 x 14, then 28 x 28": [(14, 6), (28, 6)],
    "28 x 28, fewer epochs": [(28, 2), (28, 6)],
}
"""For each schedule two phases: the side of the images in pixels, and the number of epochs."""


def network() -> nn.Module:
    """Three convolutions with batch norm, and the mean over all pixels."""
    layers: list[nn.Module] = []
    for inputs, outputs, stride in ((1, 16, 2), (16, 32, 2), (32, 48, 1)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 26))


def train(phases: Sequence[tuple[int, int]], splits: data.Splits, seed: int) -> tuple[list[float], list[float]]:
    """Train on images of each size in turn; return the operations so far and the test error in % after each epoch."""
    manual_seed(seed)
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    operations, errors = [0.0], []
    for phase, (size, epochs) in enumerate(phases, 1):
        loader = data.DataLoader(data.resized(splits, size).train, batch_size=BATCH, seed=seed)
        for epoch in range(epochs):
            optimizer.param_groups[0]["lr"] = RATE * (1 - epoch / epochs if phase == len(phases) else 1)
            with kernels.counted() as work:
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
            operations.append(operations[-1] + work.flops)
            errors.append(error(model, splits.test))
    return operations[1:], errors


def error(model: nn.Module, test: data.Dataset) -> float:
    """Test error in %."""
    model.eval()
    with no_grad():
        wrong = np.mean(model(test.x).numpy().argmax(axis=1) != test.y)
    model.train()
    return 100 * float(wrong)


def experiment(reproduction: Reproduction) -> None:
    """Train by each schedule, and compare test errors and operations."""
    splits = data.glyphs(1500, 1000)
    runs = {way: [train(phases, splits, seed) for seed in SEEDS] for way, phases in WAYS.items()}
    ends = {way: [errors[-1] for _, errors in each] for way, each in runs.items()}
    work = {way: each[0][0][-1] for way, each in runs.items()}
    whole, growing, short = WAYS
    reproduction.table(
        ["sizes", "epochs", "error %", "lowest", "highest", "operations / 10^9", "of the first"],
        [
            [
                way,
                " + ".join(str(epochs) for _, epochs in phases),
                *(f(ends[way]) for f in (mean, min, max)),
                work[way] / 1e9,
                work[way] / work[whole],
            ]
            for way, phases in WAYS.items()
        ],
    )
    reproduction.picture(picture(runs))
    apart = mean(ends[growing]) - mean(ends[whole])
    reproduction.accept(apart < 1.5, f"sizes that grow end {apart:+.1f} points from the largest size throughout")
    share = work[growing] / work[whole]
    reproduction.accept(share < 0.7, f"with {100 * share:.0f} % of the operations")
    worse = mean(ends[short]) - mean(ends[growing])
    reproduction.accept(
        worse > 3 and work[short] < 1.1 * work[growing],
        f"{100 * work[short] / work[whole]:.0f} % of them at the largest size alone end {worse:.1f} points higher",
    )


@style.applied()
def picture(runs: dict[str, list[tuple[list[float], list[float]]]]) -> Figure:
    """Test error against operations, a thin line a seed."""
    figure, [axes] = style.new_figure(6.4, 3.6)
    for tone, (way, each) in enumerate(runs.items()):
        for number, (operations, errors) in enumerate(each):
            label = way if number == 0 else ""
            look: dict[str, Any] = {"color": style.SERIES[tone], "linestyle": style.DASHES[tone], "linewidth": 1}
            axes.plot(np.array(operations) / 1e9, errors, label=label, **look)
    axes.set(ylim=(0, 100), xlabel="operations / 10^9, counted", ylabel="test error at 28 x 28, %")
    axes.grid(color="0.92", linewidth=0.6)
    axes.legend()
    style.label_source(figure, "measured", f"1,500 glyphs, {len(SEEDS)} seeds")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
