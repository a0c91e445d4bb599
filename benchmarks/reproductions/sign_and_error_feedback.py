"""The sign of the gradient fails on convex functions of one and two variables; error feedback mends it.

Karimireddy et al., Error feedback fixes SignSGD (arXiv:1901.09847), give three counter-examples.

1. f(x) = x/4 on [-1, 1]; the gradient is 4 with probability 1/4, else -1. Its sign is -1 three times out of four, so
   signSGD climbs to x = 1. The scaled sign of a single number is the number itself: error feedback around it is SGD.
2. f(x) = |x1 + x2|/2 + |x1 - x2| from (1, 1): the signs of every subgradient are (1, -1) or (-1, 1), so x1 + x2
   stays 2, and f at least 1.
3. f(x) = (a x)^2 + (b x)^2 with a = (1.5, -0.5), b = (-0.5, 1.5), one of the two a step at random: the same signs, but
   smooth. Both terms are zero at the minimum, so SGD converges at a constant rate, and so does error feedback.

What must show: SGD and error feedback get near the minimum, in examples 2 and 3 to less than 1 % of f's first value;
the sign, scaled or not, ends at the maximum in example 1, and in the others keeps x1 + x2 to 1e-9 and f at its minimum
on that line or above. The rates (0.01, 0.001, 0.05) and the 4,000 steps are our choice; example 1 is the mean of 200
runs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl.compress import Compressor, ErrorFeedback, Sign, TopK
from minidl.kernels import Array
from minidl.plots.style import DASHES, SERIES, applied, label_source, new_figure

TITLE = "Signs fail, error feedback mends them (Karimireddy et al.)"

RATE_1, STEPS_1, RUNS = 0.01, 4000, 200
START = np.ones(2)
EPSILON = 0.5
A, B = np.array([1 + EPSILON, EPSILON - 1]), np.array([EPSILON - 1, 1 + EPSILON])

Gradient = Callable[[Array, np.random.Generator], Array]


def f_2(x: Array) -> float:
    return float(EPSILON * abs(x[0] + x[1]) + abs(x[0] - x[1]))


def gradient_2(x: Array, rng: np.random.Generator) -> Array:
    sum_sign, difference_sign = (1.0 if side >= 0 else -1.0 for side in (x[0] + x[1], x[0] - x[1]))
    return EPSILON * sum_sign * np.ones(2) + difference_sign * np.array([1.0, -1.0])


def f_3(x: Array) -> float:
    return float((A @ x) ** 2 + (B @ x) ** 2)


def gradient_3(x: Array, rng: np.random.Generator) -> Array:
    row = A if rng.random() < 0.5 else B
    return 2 * (row @ x) * row


def one_variable(gradients: Array, update: Callable[[Array], Array]) -> Array:
    """Example 1: x of each run, step by step."""
    path = [np.zeros(gradients.shape[1])]
    for gradient in gradients:
        path.append(np.clip(path[-1] - RATE_1 * update(gradient), -1, 1))
    return np.array(path)


def two_variables(compressor: Compressor, gradient: Gradient, rate: float, steps: int) -> Array:
    """Examples 2 and 3: x after every step."""
    rng, x = np.random.default_rng(1), START.copy()
    path = [x]
    for _ in range(steps):
        x = x - rate * compressor.decode(compressor.encode(gradient(x, rng)))
        path.append(x)
    return np.array(path)


def experiment(reproduction: Reproduction) -> None:
    gradients = np.where(np.random.default_rng(0).random((STEPS_1, RUNS)) < 0.25, 4.0, -1.0)
    feedback = ErrorFeedback(Sign())
    first = {
        "SGD": one_variable(gradients, lambda gradient: gradient),
        "sign": one_variable(gradients, np.sign),
        "error feedback": one_variable(gradients[:, :1], lambda gradient: feedback.decode(feedback.encode(gradient))),
    }
    methods: dict[str, Compressor] = {"SGD": TopK(1.0), "scaled sign": Sign(), "error feedback": ErrorFeedback(Sign())}
    second = {name: two_variables(copy.deepcopy(c), gradient_2, 0.001, 4000) for name, c in methods.items()}
    third = {name: two_variables(copy.deepcopy(c), gradient_3, 0.05, 4000) for name, c in methods.items()}

    rows: list[list[object]] = []
    for name, pilot in (("SGD", -0.927), ("sign", 0.995), ("error feedback", -0.927)):
        rows.append(["1", name, f"final x, mean of {first[name].shape[1]}", float(first[name][-1].mean()), pilot])
    for number, f, paths, pilots in (
        ("2", f_2, second, ("", ">= 1", 0.0016)),
        ("3", f_3, third, ("", ">= 2", "< 1e-40")),
    ):
        for (name, path), published in zip(paths.items(), pilots, strict=True):
            rows.append([number, name, "final f", f(path[-1]), published])
    reproduction.table(["example", "method", "what", "here", "pilot"], rows)
    reproduction.picture(picture(first, second, third))

    final = {name: float(path[-1].mean()) for name, path in first.items()}
    reproduction.accept(final["sign"] > 0.95, f"1: signs end at the maximum, x = {final['sign']:.3f}")
    reproduction.accept(final["SGD"] < -0.85, f"1: SGD ends near the minimum, x = {final['SGD']:.3f}")
    same = np.array_equal(first["SGD"][:, :1], first["error feedback"])
    reproduction.accept(same, "1: error feedback around the scaled sign of one number is SGD to the bit")
    for number, f, paths, lowest in (("2", f_2, second, 1.0), ("3", f_3, third, 2.0)):
        on_line = np.abs(paths["scaled sign"].sum(1) - 2).max()
        least = min(f(x) for x in paths["scaled sign"])
        reproduction.accept(on_line < 1e-9, f"{number}: signs keep x1 + x2 = 2, to {on_line:.1e}")
        reproduction.accept(least > lowest - 1e-9, f"{number}: signs never get below f = {least:.4f}")
        for name in ("SGD", "error feedback"):
            last, start = f(paths[name][-1]), f(START)
            reproduction.accept(last < 0.01 * start, f"{number}: {name} gets from f = {start:.3g} to {last:.3g}")


def picture(first: dict[str, Array], second: dict[str, Array], third: dict[str, Array]) -> Figure:
    """x over the steps of example 1, f over those of the others."""
    colours = {"SGD": 0, "sign": 1, "scaled sign": 1, "error feedback": 2}
    widths = {"SGD": 3.0, "sign": 1.5, "scaled sign": 1.5, "error feedback": 1.5}
    with applied():
        figure, axes = new_figure(9.0, 3.2, 3)
        panels = (
            (axes[0], first, None, "1: x / 4, noisy", "x, mean of 200 runs"),
            (axes[1], second, f_2, "2: |x1 + x2|/2 + |x1 - x2|", "f(x)"),
            (axes[2], third, f_3, "3: two squares, one a step", "f(x)"),
        )
        for axis, paths, f, title, label in panels:
            for name, path in paths.items():
                values = path.mean(1) if f is None else [f(x) for x in path[: 3000 if f is f_2 else 800]]
                i = colours[name]
                style: dict[str, Any] = {"color": SERIES[i], "linestyle": DASHES[i], "linewidth": widths[name]}
                axis.plot(values, label="error feedback: one run" if f is None and "error" in name else name, **style)
            if f is f_3:
                axis.set_yscale("log")
            axis.set(title=title, xlabel="step", ylabel=label)
            axis.legend()
        label_source(figure, "measured")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
