"""Activation checkpointing: a chain of n layers trains with 2 sqrt(n) activations, for one more forward pass.

Chen et al. (arXiv:1604.06174, section 4) cut a network into k segments, keep what passes between them, and run each
segment again when backward reaches it. For n equal layers, k + n / k activations live at a time. That is least for
k = sqrt(n). One forward pass more is a third of a training step, since backward computes two products for each product
of forward. Kusumoto et al. (arXiv:1905.11722) ask for the least recomputation under a budget of memory, and solve it by
dynamic programming.

Here: `nn.checkpointing` and `nn.segments`. Activations are counted from the arrays that live when a segment has run
again: tanh layers on a vector, one after another, whose gradient is subtracted. Models of `nn.models` train a step with
and without. The time is that of an MLP of 16 layers of 512 x 512 on minibatches of 256, in turns, on one thread.

What must show: (1) n layers in k segments keep k + n / k activations where k divides n; the least over all k is 2
sqrt(n): 8, 12, 16, 20, 24 for n = 16, 36, 64, 100, 144. (2) Losses, gradients and running statistics are equal to the
bit; backward computes exactly one forward pass more, and every stage is called twice. (3) Under every budget the best
division recomputes no more than every division into equal segments that keeps within it, and it keeps within the
budget. (4) A training step takes about 4/3 of the time: between 1.15 and 1.55, which leaves room for the machine.

Measured: unequal segments keep less than 2 sqrt(n), 10 instead of 12 for n = 36. They become shorter towards the end,
where more outputs are held, and the last stages are kept, since backward begins with them.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from math import ceil, isqrt
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import Tensor, kernels, nn, random
from minidl.grad_mode import recomputing
from minidl.nn import segments
from minidl.plots import style

TITLE = "Activation checkpointing: 2 sqrt(n) activations for one more forward pass (Chen et al. 2016)"

LAYERS = (16, 36, 64, 100, 144)
UNIT = segments.StageCost(flops=1, kept=1, output=1)
RNG = np.random.default_rng(0)


def mlp() -> nn.Module:
    return nn.models.MLP(64, *[48] * 7, 10)


def gpt() -> nn.Module:
    return nn.models.GPT(vocab_size=17, block_size=16, n_layer=6, n_head=2, n_embd=32, dropout=0.2)


def images(channels: int, size: int) -> np.ndarray:
    return RNG.normal(size=(8, channels, size, size)).astype(np.float32)


MODELS: dict[str, tuple[Callable[[], nn.Module], np.ndarray]] = {
    "MLP of 8 layers": (mlp, images(1, 8)),
    "LeNet": (partial(nn.models.LeNet, 28), images(1, 28)),
    "ResNet-20, batch norm": (partial(nn.models.ResNet, 20), images(3, 32)),
    "GPT, dropout 0.2, tied": (gpt, RNG.integers(0, 17, (4, 16))),
}

Curve = list[tuple[float, float]]
"""Peak in MB and recomputed part of a forward pass, of several divisions."""


def experiment(reproduction: Reproduction) -> None:
    counts = activations(reproduction)
    one_more_forward(reproduction)
    best, equal = budgets(reproduction)
    step_time(reproduction)
    reproduction.picture(draw(counts, best, equal))


# Activations that live


def activations(reproduction: Reproduction) -> dict[int, dict[int, int]]:
    """Count what lives for each n; returns the counts by the number of segments."""
    counts, rows = {}, []
    for n in LAYERS:
        counts[n] = {k: live_activations(n, k) for k in numbers_of_segments(n)}
        formula = {k: k + ceil(n / k) for k in range(1, n + 1)}
        least = min(counts[n].values())
        best = segments.least_peak([UNIT] * n)
        unequal = live_activations(n, best)
        rows.append([n, 2 * isqrt(n), min(formula.values()), least, counts[n][isqrt(n)], unequal, n])
        reproduction.accept(
            least == min(formula.values()) == counts[n][isqrt(n)] == 2 * isqrt(n)
            and all(kept == formula[k] or (n % k and kept < formula[k]) for k, kept in counts[n].items())
            and unequal == segments.peak([UNIT] * n, best) < least,
            f"n = {n}: k + n / k activations live where k divides n; the least is {least}, with unequal segments "
            f"{unequal}",
        )
    columns = ["layers n", "published", "min k + ceil(n/k)", "least", "k = sqrt(n)", "unequal segments", "plain"]
    reproduction.table(columns, rows, "activations that live at a time, counted from arrays")
    return counts


def numbers_of_segments(n: int) -> list[int]:
    """All for short chains; for long ones those that divide n, and those near sqrt(n)."""
    return [k for k in range(1, n + 1) if n <= 36 or n % k == 0 or abs(k - isqrt(n)) <= 3]


def array_bytes() -> int:
    """The bytes of numpy's arrays that live and were made since tracemalloc began."""
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([arrays]).traces)


def live_activations(n: int, division: Any) -> int:
    """The most activations that live when a segment of a chain of tanh layers has run again."""
    model = nn.Sequential(*(nn.Tanh() for _ in range(n)))
    x = Tensor(np.zeros(10_000, np.float32), requires_grad=True)
    forward: Any = nn.checkpointing(model, division).forward
    ends = {part.end - 1 for part in forward.segments}
    seen = []

    def counted(number: int, layer: nn.Module, value: Any) -> Any:
        out = layer(value)
        if number in ends and recomputing.get():
            seen.append(array_bytes() / x.data.nbytes - 1)  # 1: the gradient of `out`
        return out

    vars(model)["stages"] = lambda: [nn.Stage(partial(counted, i, layer), layer) for i, layer in enumerate(model)]
    g = np.ones_like(x.data)
    tracemalloc.start()
    try:
        out = model(x)
        seen.append(array_bytes() / x.data.nbytes)  # segments that are not recomputed are all here
        out.backward(g)
    finally:
        tracemalloc.stop()
    return round(max(seen))


# The same bits, one more forward pass


def one_more_forward(reproduction: Reproduction) -> None:
    rows, are_equal, are_one = [], True, True
    for name, (build, x) in MODELS.items():
        plain, forward, _ = step(build, x, None)
        again, _, calls = step(build, x, "sqrt")
        equal = all(np.array_equal(a, b) for a, b in zip(plain[1:], again[1:], strict=True))
        extra = (again[0] - plain[0]) / forward
        rows.append([name, len(calls), len(segments.equal(len(calls))), extra, again[0] / plain[0], equal])
        are_equal &= equal
        are_one &= extra == 1 and set(calls) == {2}
    reproduction.table(
        ["model", "stages", "segments", "forward passes more", "flops of a step, ratio", "equal bits"],
        rows,
        "counted",
    )
    reproduction.accept(are_equal, "losses, gradients and running statistics of four models are equal to the bit")
    reproduction.accept(are_one, "backward computes the flops of one forward pass more; every stage is called twice")


def step(build: Callable[[], nn.Module], x: Any, division: str | None) -> tuple[list[Any], int, list[int]]:
    """One step: its flops, loss, gradients and state; the flops of its forward pass; the calls of each stage."""
    random.manual_seed(0)
    model = build()
    stages = model.stages
    calls = [0] * len(stages())

    def counted(number: int, stage: nn.Stage, value: Any) -> Any:
        calls[number] += 1
        return stage(value)

    vars(model)["stages"] = lambda: [
        nn.Stage(partial(counted, i, stage), *stage.modules) for i, stage in enumerate(stages())
    ]
    if division is not None:
        nn.checkpointing(model)
    with kernels.counted() as forward:
        out = model(x) if division is not None else nn.run_stages(model.stages(), x)
    with kernels.counted() as both:
        loss = (out * out).mean()
        loss.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    found = [forward.flops + both.flops, loss.numpy(), *gradients, *model.state_dict().values()]
    return found, forward.flops, calls


# The best under a budget


def budgets(reproduction: Reproduction) -> tuple[Curve, Curve]:
    """The divisions of a ResNet with least recomputation, and those into equal segments."""
    build, x = MODELS["ResNet-20, batch norm"]
    costs = nn.stage_costs(build(), x)
    forward, whole = sum(cost.flops for cost in costs), sum(cost.kept for cost in costs)
    n, least = len(costs), segments.peak(costs, segments.least_peak(costs))
    equal = {k: segments.equal(n, k) for k in range(1, n + 1)}
    rows, best = [], []
    holds = True
    for budget in np.linspace(least, whole, 21):
        chosen = segments.least_recomputation(costs, budget)
        flops = segments.recomputed_flops(costs, chosen)
        within = [k for k, parts in equal.items() if segments.peak(costs, parts) <= budget]
        holds &= segments.peak(costs, chosen) <= budget and all(
            flops <= segments.recomputed_flops(costs, equal[k]) for k in within
        )
        best.append((budget / 1e6, flops / forward))
        text = " ".join(f"{part.start}-{part.end - 1}{'' if part.recomputed else ' kept'}" for part in chosen)
        rows.append([budget / 1e6, flops / forward, len(within), text])
    reproduction.table(
        ["budget, MB", "forward passes more", "equal divisions within", "segments: stages"],
        rows,
        f"ResNet-20 on {len(x)} images: {n} stages keep {whole / 1e6:.2f} MB; MB are 1e6 bytes, measured",
    )
    smallest = min(segments.peak(costs, parts) for parts in equal.values())
    reproduction.accept(
        holds and best[0][1] < 1 and best[-1][1] == 0,
        f"ResNet-20: the best division recomputes {best[0][1]:.0%} of a forward pass with {best[0][0]:.2f} MB, the "
        f"least possible, {best[10][1]:.0%} with {best[10][0]:.2f} MB, nothing with {best[-1][0]:.2f} MB; equal "
        f"segments recompute all of it with {smallest / 1e6:.2f} MB or more",
    )
    return best, [(segments.peak(costs, parts) / 1e6, 1.0) for parts in equal.values()]


# The time of a step


def step_time(reproduction: Reproduction, rounds: int = 15) -> None:
    """Plain and checkpointed steps in turns; the ratio of each pair."""
    x = RNG.normal(size=(256, 512)).astype(np.float32)
    models = [nn.models.MLP(*[512] * 17), nn.checkpointing(nn.models.MLP(*[512] * 17))]
    flops = []
    for model in models:
        with kernels.counted() as work:
            model(x).sum().backward()
        flops.append(work.flops)
    seconds: list[list[float]] = []
    for _ in range(rounds):
        pair = []
        for model in models:
            model.zero_grad()
            began = time.perf_counter()
            model(x).sum().backward()
            pair.append(time.perf_counter() - began)
        seconds.append(pair)
    ratios = [checkpointed / plain for plain, checkpointed in seconds]
    low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    plain, checkpointed = np.median(seconds, axis=0)
    reproduction.table(
        ["plain, ms", "checkpointed, ms", "ratio", "quartiles", "ratio of flops"],
        [[1e3 * plain, 1e3 * checkpointed, ratio, f"{low:.2f} to {high:.2f}", flops[1] / flops[0]]],
        f"measured: medians of {rounds} pairs, MLP of 16 layers of 512 x 512, minibatches of 256",
    )
    reproduction.accept(
        1.15 < ratio < 1.55,
        f"a step takes {ratio:.2f} times as long (quartiles {low:.2f} to {high:.2f}), for {flops[1] / flops[0]:.3f} "
        "times the flops; 4/3 is expected",
    )


# The picture


@style.applied()
def draw(counts: dict[int, dict[int, int]], best: Curve, equal: Curve) -> Figure:
    """Activations against the number of segments, and recomputation against the budget."""
    figure, (left, right) = style.new_figure(9.6, 3.6, columns=2)
    for tone, n in enumerate(counts):
        left.plot(*zip(*counts[n].items(), strict=True), color=style.SERIES[tone], label=f"n = {n}")
        left.plot(isqrt(n), counts[n][isqrt(n)], "o", color=style.SERIES[tone], ms=5)
    left.set(xscale="log", yscale="log", xlabel="segments k", ylabel="activations that live")
    left.set(title="Counted; dots: k = sqrt(n)")
    left.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    left.set_yticks([10, 20, 50, 100], ["10", "20", "50", "100"])
    left.minorticks_off()
    left.legend(fontsize=8)
    right.plot(*zip(*best, strict=True), color=style.SERIES[0], marker="o", ms=4, label="least recomputation")
    right.plot(*zip(*equal, strict=True), "s", color=style.SERIES[1], ms=4, label="equal segments")
    right.set(title="ResNet-20, 11 stages", xlabel="peak of activations (MB)", ylabel="recomputed part of forward")
    right.set(ylim=(-0.05, 1.15))
    right.legend(loc="upper right", bbox_to_anchor=(1, 0.9))
    style.label_source(figure, "measured", "bytes of arrays and flops, counted; tanh layers; ResNet-20 on 8 images")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
