"""Steps to a target against the minibatch: perfect scaling, diminishing returns, and a noise scale that predicts both.

Shallue et al. (JMLR 20(112), 2019) count the steps that training needs to reach a target, with the learning rate tuned
afresh for every minibatch: first they halve when the minibatch doubles, then the gain shrinks, and in the end
there is none. McCandlish et al. (arXiv:1812.06162) predict the bend from the noise of the gradient, tr(Sigma)/|G|^2.

Here: an MLP 64-32-10 on the digits, plain SGD; for minibatches from 1 to all 1,437 samples the rate is swept in
half-octaves from 2^-4 to 2^3; steps until the loss on the training set (looked at after every step) is 0.2, and 0.5:
the median of 5 seeds at the best rate. A run that is slower than the best rate so far is cut off, which changes no
result. The curve fitted is S = S_min (1 + B_c / B). The noise scale is measured along runs with 16 samples (the median
of 5 seeds).

It must show: steps fall as 1/B up to 8 (slope -1 +- 0.1 in log-log); from 256 to 1,437 less than 25 % is gained; the
curve fits to 0.12 in the logarithm, with B_c from 20 to 90; the noise scale on the way to the target is within a factor
of 10 of B_c, and rises as the loss falls; the estimate from two minibatch sizes is within 3 % of the exact scale.
A warning that the table shows: with rates up to 2 only, large minibatches stop gaining much earlier. What looks like a
law of large minibatches can be a sweep that ended too soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count
from math import inf

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.digits import he_mlp
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, nn, no_grad, optim, random
from minidl import functional as F
from minidl.parallel.measures import noise_scale
from minidl.plots import style

TITLE = "Steps to a target against the minibatch, and the noise scale (Shallue et al.; McCandlish et al.)"

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1437)
RATES = tuple(2.0 ** (exponent / 2) for exponent in range(-8, 7))  # half-octaves
TARGETS = (0.2, 0.5)
SEEDS = range(5)
MOST_STEPS = 1500.0
CAPPED = 2.0  # the highest rate of the sweep that ends too soon
PILOT = {  # steps: an independent implementation in plain numpy
    0.2: (484, 242, 121, 63, 40, 23, 17, 13, 12, 12, 11),
    0.5: (145, 73, 37, 23, 14, 11, 7, 7, 6, 6, 5),
}
PILOT_SCALE = {0: 37, 10: 44, 50: 82, 100: 206, 200: 543, 400: 1032, 600: 1719}  # steps: noise scale
DRAWS = 3000  # pairs of minibatches for the estimate

Sweep = dict[tuple[float, int, float], float]  # target, minibatch, rate: median steps


def experiment(reproduction: Reproduction) -> None:
    """Sweep the rates at every size, fit the curve, and measure the noise scale on the way."""
    sweep = {key: steps for size in SIZES for key, steps in swept(size).items()}
    best = {(target, size): fewest(sweep, target, size) for target in TARGETS for size in SIZES}
    capped = {size: fewest(sweep, 0.2, size, CAPPED)[0] for size in SIZES}
    reproduction.table(
        ["target loss", "minibatch", "steps", "pilot's steps", "best rate", f"steps with rates up to {CAPPED:g}"],
        [
            [
                target,
                size,
                best[target, size][0],
                PILOT[target][i],
                best[target, size][1],
                capped[size] if target == 0.2 else "",
            ]
            for target in TARGETS
            for i, size in enumerate(SIZES)
        ],
    )
    fits = {target: fit([best[target, size][0] for size in SIZES]) for target in TARGETS}
    fits_capped = fit([capped[size] for size in SIZES])
    rows = ((0.2, fits[0.2], 43), (0.5, fits[0.5], 25), (f"0.2, rates up to {CAPPED:g}", fits_capped, 24))
    reproduction.table(
        ["target loss", "S_min", "B_c", "E_min = S_min B_c", "rms of the log error", "pilot's B_c"],
        [[target, least, critical, least * critical, rms, pilot] for target, (least, critical, rms), pilot in rows],
        "S = S_min (1 + B_c / B)",
    )
    scales = noise_on_the_way()
    reproduction.table(
        ["step", "training loss", "noise scale", "pilot's"],
        [[step, loss, scale, PILOT_SCALE[step]] for step, (loss, scale) in scales.items()],
        "minibatches of 16, rate 0.5",
    )
    reproduction.picture(picture(best, capped, fits, scales))
    judge(reproduction, best, capped, fits, scales)


# Steps to the target


def swept(size: int) -> Sweep:
    """The median steps to each target for every rate; infinite where the best rates need fewer."""
    medians: Sweep = {}
    expected = min(0.125 * size, 4.0)
    for rate in sorted(RATES, key=lambda rate: abs(np.log(rate / expected))):  # first those that are likely the best
        rivals = [
            steps for (target, _, other), steps in medians.items() if target == min(TARGETS) and other <= cap(rate)
        ]
        limit = min([MOST_STEPS, *rivals])
        counts = [steps_to(size, rate, seed, limit) for seed in SEEDS]
        for target in TARGETS:
            medians[target, size, rate] = float(np.median([count[target] for count in counts]))
    return medians


def cap(rate: float) -> float:
    """The highest rate of the sweep that contains this rate."""
    return CAPPED if rate <= CAPPED else inf


def steps_to(size: int, rate: float, seed: int, limit: float) -> dict[float, float]:
    """The first step after which the loss on the whole training set is at most each target; infinite beyond `limit`."""
    model = new_model(seed)
    optimizer = optim.SGD(model.parameters(), lr=rate)
    reached = dict.fromkeys(TARGETS, inf)
    with np.errstate(all="ignore"):  # a rate too high ends as a loss that is not finite
        for step, (x, y) in enumerate(minibatches(size, seed), 1):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            loss = loss_on(model, digits().train)
            for target in TARGETS:
                if loss <= target:
                    reached[target] = min(reached[target], step)
            if not np.isfinite(loss) or loss <= min(TARGETS) or step >= limit:
                break
    return reached


def fewest(sweep: Sweep, target: float, size: int, highest: float = inf) -> tuple[float, float]:
    """The fewest median steps, and the rate that needs them."""
    return min((sweep[target, size, rate], rate) for rate in RATES if rate <= highest)


def fit(steps: list[float]) -> tuple[float, float, float]:
    """S_min and B_c of S = S_min (1 + B_c / B) that fit the logarithms best, and the rms of what remains."""
    sizes, logs = np.array(SIZES, float), np.log(steps)
    candidates = []
    for critical in np.geomspace(1, 1000, 2001):
        curve = np.log1p(critical / sizes)
        offset = float(np.mean(logs - curve))
        candidates.append((float(np.sqrt(np.mean(np.square(logs - curve - offset)))), critical, np.exp(offset)))
    rms, critical, least = min(candidates)
    return float(least), float(critical), rms


# The noise scale


def noise_on_the_way() -> dict[int, tuple[float, float]]:
    """Loss and exact noise scale after a number of steps with minibatches of 16: the medians of the seeds."""
    runs = [noise_of_one_run(seed) for seed in SEEDS]
    return {step: tuple(np.median([run[step] for run in runs], axis=0)) for step in PILOT_SCALE}


def noise_of_one_run(seed: int) -> dict[int, tuple[float, float]]:
    train, model = digits().train, new_model(seed)
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    found = {0: (loss_on(model, train), noise_scale.exact(model, train).scale)}
    for step, (x, y) in enumerate(minibatches(16, seed), 1):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step in PILOT_SCALE:
            found[step] = loss_on(model, train), noise_scale.exact(model, train).scale
        if step == max(PILOT_SCALE):
            break
    return found


def estimate() -> tuple[float, float]:
    """The noise scale at the start, from four nodes with 16 samples each, and the exact one."""
    train, model = digits().train, new_model(seed=0)
    rng = np.random.default_rng(0)
    estimates = []
    for _ in range(DRAWS):
        parts = [noise_scale.gradient(model, train, rng.integers(len(train), size=16)) for _ in range(4)]
        small = float(np.mean([part @ part for part in parts]))
        large = np.mean(parts, axis=0)
        estimates.append(noise_scale.from_two_sizes(16, small, 64, float(large @ large)))
    return noise_scale.mean(estimates).scale, noise_scale.exact(model, train).scale


def judge(
    reproduction: Reproduction,
    best: dict[tuple[float, int], tuple[float, float]],
    capped: dict[int, float],
    fits: dict[float, tuple[float, float, float]],
    scales: dict[int, tuple[float, float]],
) -> None:
    """Compare with what the papers show."""
    steps = {size: best[0.2, size][0] for size in SIZES}
    few = [1, 2, 4, 8]
    slope = float(np.polyfit(np.log2(few), np.log2([steps[size] for size in few]), 1)[0])
    reproduction.accept(abs(slope + 1) < 0.1, f"up to 8 samples the steps fall with slope {slope:.3f} in log-log")
    gain = 1 - steps[1437] / steps[256]
    reproduction.accept(gain < 0.25, f"from 256 to 1,437 little is gained: {steps[256]:g} and {steps[1437]:g} steps")
    floor = capped[256] / steps[256]
    reproduction.accept(
        floor > 1.25,
        f"with rates up to {CAPPED:g} only, 256 samples seem to need {capped[256]:g} steps, not {steps[256]:g}",
    )
    least, critical, rms = fits[0.2]
    reproduction.accept(rms < 0.12, f"S = {least:.1f} (1 + {critical:.0f} / B) fits to {rms:.3f} in the logarithm")
    reproduction.accept(20 < critical < 90, f"B_c = {critical:.0f}")
    on_the_way = [scale for loss, scale in scales.values() if loss > 0.2]
    reproduction.accept(
        all(critical / 10 < scale < critical * 10 for scale in on_the_way),
        f"the noise scale on the way to 0.2 is {on_the_way[0]:.0f} to {on_the_way[-1]:.0f}, B_c is {critical:.0f}",
    )
    first, last = scales[0], scales[max(scales)]
    reproduction.accept(
        last[1] > 5 * first[1],
        f"it rises as the loss falls: {first[1]:.0f} at loss {first[0]:.2f}, {last[1]:.0f} at loss {last[0]:.3f}",
    )
    estimated, exact = estimate()
    reproduction.accept(
        abs(estimated / exact - 1) < 0.03, f"from two minibatch sizes: {estimated:.1f}, exact {exact:.1f}"
    )


# Mechanics


@cache
def digits() -> data.Splits:
    return data.digits()


def new_model(seed: int) -> nn.Module:
    random.manual_seed(seed)
    return he_mlp(64, 32, 10)


def minibatches(size: int, seed: int) -> Iterator[data.Batch]:
    """Endless minibatches of equal size, epoch after epoch."""
    loader = data.DataLoader(digits().train, size, shuffle=True, seed=seed, drop_last=True)
    for epoch in count():
        loader.set_epoch(epoch)
        yield from loader


@no_grad()
def loss_on(model: nn.Module, dataset: data.Dataset) -> float:
    return F.cross_entropy(model(dataset.x), dataset.y).item()


@style.applied()
def picture(
    best: dict[tuple[float, int], tuple[float, float]],
    capped: dict[int, float],
    fits: dict[float, tuple[float, float, float]],
    scales: dict[int, tuple[float, float]],
) -> Figure:
    """Left: steps against the minibatch, with the fits. Right: the noise scale against the training loss."""
    figure, (axes, noise) = style.new_figure(9.6, 3.6, columns=2)
    smooth = np.geomspace(SIZES[0], SIZES[-1], 200)
    for i, target in enumerate(TARGETS):
        least, critical, _ = fits[target]
        color = style.SERIES[i]
        axes.plot(SIZES, [best[target, size][0] for size in SIZES], "os"[i], color=color, label=f"to loss {target}")
        axes.plot(smooth, least * (1 + critical / smooth), style.DASHES[i], color=color, lw=1)
        axes.axvline(critical, color=color, linestyle=":", lw=1)
    axes.plot(SIZES, list(capped.values()), "x", color="0.4", label=f"to loss 0.2, rates up to {CAPPED:g}")
    axes.set(xscale="log", yscale="log", xlabel="minibatch (samples)", ylabel="steps to the target")
    losses = [loss for loss, _ in scales.values()]
    noise.plot(losses, [scale for _, scale in scales.values()], "o-", color=style.SERIES[2], label="noise scale")
    for i, target in enumerate(TARGETS):
        noise.axhline(fits[target][1], color=style.SERIES[i], linestyle=":", label=f"B_c of the target {target}")
    noise.set(xscale="log", yscale="log", xlabel="training loss (falls to the right)", ylabel="samples")
    noise.invert_xaxis()
    for each in (axes, noise):
        each.grid(color="0.92", linewidth=0.6)
        each.legend(fontsize=8)
    style.label_source(
        figure,
        ("measured", "formula"),
        "dots: MLP 64-32-10 on digits, medians of 5 seeds; lines: S = S_min (1 + B_c/B)",
    )
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
