"""Runs of `qsgd`: the levels for given random numbers, the exact mean and error, one byte a number, and corners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.probes.gradient_compression import moments_over_a_grid, warned_of
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int]
"""(n, s)"""

GRID = 128
"""Random numbers of an average, which is exact to a part of 1/256 of a level."""

NAN = "0 / 0 is NaN, which has no whole number: if norm is 0, all levels are 0."

LARGEST = "The largest magnitude was taken as the norm; take the Euclidean norm."


def norm_of(x: Array) -> float:
    """The Euclidean norm."""
    return float(np.sqrt((x**2).sum()))


def magnitudes(x: Array, s: int, norm: float | None = None) -> Array:
    """a = s |x| / norm."""
    return np.asarray(s * np.abs(x) / (norm_of(x) if norm is None else norm))


def rounded(x: Array, a: Array, uniform: Array) -> Array:
    """Magnitudes rounded up where the random number is below the rest, with the signs of x."""
    return np.asarray(np.sign(x) * (np.floor(a) + (uniform < a - np.floor(a)))) + 0.0  # no -0.0 in a message


def levels_of(x: Array, s: int, uniform: Array) -> Array:
    """The oracle, for a gradient that is not all zeros."""
    return rounded(x, magnitudes(x, s), uniform)


MISTAKES: dict[str, Callable[[Array, int, Array], Array]] = {
    "The first random number was taken for all entries: each has its own.": (
        lambda x, s, uniform: levels_of(x, s, np.full(len(x), uniform[0]))
    ),
    "The levels were rounded to the nearest: that is not right on average. Use the random numbers.": (
        lambda x, s, uniform: np.sign(x) * np.round(magnitudes(x, s))
    ),
    "The lower level was always taken.": lambda x, s, uniform: np.sign(x) * np.floor(magnitudes(x, s)),
    "The upper level was always taken.": lambda x, s, uniform: np.sign(x) * np.ceil(magnitudes(x, s)),
    "The upper level is taken if the random number is *below* a - floor(a); here it is the other way round.": (
        lambda x, s, uniform: (
            np.sign(x) * (np.floor(magnitudes(x, s)) + (uniform >= magnitudes(x, s) - np.floor(magnitudes(x, s))))
        )
    ),
    "np.floor(a + uniform) rounds up for *large* random numbers. It is right on average, too; here the upper level is "
    "taken where the random number is below a - floor(a).": (
        lambda x, s, uniform: np.sign(x) * np.floor(magnitudes(x, s) + uniform)
    ),
    "The signs are missing.": lambda x, s, uniform: np.abs(levels_of(x, s, uniform)),
    LARGEST: lambda x, s, uniform: rounded(x, magnitudes(x, s, float(np.abs(x).max())), uniform),
    "The sum of the magnitudes was taken as the norm; take the Euclidean norm.": (
        lambda x, s, uniform: rounded(x, magnitudes(x, s, float(np.abs(x).sum())), uniform)
    ),
    "The squared norm was taken.": lambda x, s, uniform: rounded(x, magnitudes(x, s, norm_of(x) ** 2), uniform),
    "np.floor of a negative number goes away from zero: take the magnitude first, and the sign last.": (
        lambda x, s, uniform: rounded(np.ones(len(x)), s * x / norm_of(x), uniform)
    ),
}


def numbers(case: Case, seed: int) -> tuple[Array, int, Array]:
    """A gradient of large and small numbers of both signs, s, and random numbers away from 0 and 1."""
    n, s = case
    rng = stream(Purpose.MANUAL, seed, "numbers to round", n, s)
    x = rng.normal(size=n) * 2.0 ** rng.integers(-2, 3, n)
    uniform = rng.uniform(0.01, 0.99, n)
    uniform[0] = 0.125  # far from 1/2: taken for all entries, it rounds otherwise than to the nearest
    return x, s, uniform


def called_with(x: Array, s: int) -> str:
    return f"qsgd, n={len(x)}, s={s}"


def returned(got: Any, called: str) -> tuple[Any, Any]:
    """The norm and the levels; Wrong if that is not what came back."""
    norm, levels = expect.listed(got, called, "(norm, levels)", 2)
    return norm, levels


def judge_levels(answer: Answer, case: Case, seed: int) -> None:
    """Raise Wrong unless the norm and all levels are those for the given random numbers."""
    x, s, uniform = numbers(case, seed)
    called = called_with(x, s)
    norm, levels = returned(answer(x, s, uniform), called)
    want = levels_of(x, s, uniform)
    slips = {sentence: rule(x, s, uniform) for sentence, rule in MISTAKES.items()}
    slips |= {
        "This is norm * levels / s; return the whole numbers.": norm_of(x) * want / s,
        "This is levels / s; return the whole numbers.": want / s,
    }
    slips = {sentence: value for sentence, value in slips.items() if not np.allclose(value, want)}
    expect.array(levels, want, f"{called}: levels", rtol=0, atol=1e-9, mistakes=slips)
    norms = {
        LARGEST: np.abs(x).max(),
        "The squared norm was returned.": norm_of(x) ** 2,
        "The norm was divided by s already.": norm_of(x) / s,
    }
    expect.number(norm, norm_of(x), f"{called}: norm", rtol=1e-9, mistakes=norms)


def judge_averages(answer: Answer, case: Case, seed: int) -> None:
    """Raise Wrong unless the mean over evenly spread random numbers is the gradient, and the error within its bound."""
    x, s, _ = numbers(case, seed)
    n, norm = len(x), norm_of(x)
    mean, squared, _ = answer.run(moments_over_a_grid, x, s, GRID)
    called = f"{called_with(x, s)}, the mean of norm * levels / s over {GRID} evenly spread random numbers"
    a = magnitudes(x, s)
    slips = {
        "Rounding to the nearest is not right on average.": norm * np.sign(x) * np.round(a) / s,
        "Always rounding down is not right on average.": norm * np.sign(x) * np.floor(a) / s,
        "The upper level is taken with the probability of the lower one.": (
            norm * np.sign(x) * (2 * np.floor(a) + 1 - a) / s
        ),
    }
    expect.array(mean, x, called, rtol=0, atol=norm / s / GRID, mistakes=slips)
    bound = min(n / s**2, np.sqrt(n) / s) * norm**2 * (1 + 1 / GRID)
    if squared > bound:
        raise Wrong(
            f"{called_with(x, s)}: the squared error is {squared:.4g} on average, above the bound min(n / s^2, "
            f"sqrt(n) / s) |x|^2 = {bound:.4g}.",
            "Round to one of the two levels next to a.",
        )


def judge_bytes(answer: Answer, case: Case, seed: int) -> None:
    """Raise Wrong unless the levels are right, and take one byte each."""
    judge_levels(answer, case, seed)
    x, s, uniform = numbers(case, seed)
    _, levels = returned(answer(x, s, uniform), called_with(x, s))
    if (kind := getattr(levels, "dtype", "a list")) != np.int8:
        raise Wrong(
            f"{called_with(x, s)}: levels: expected int8, one byte a number, got {kind}.",
            ".astype(np.int8) makes bytes of small whole numbers.",
        )


CORNERS: dict[str, tuple[list[float], int]] = {
    "all zeros": ([0.0, 0.0, 0.0], 4),
    "a zero": ([0.0], 7),
    "one number": ([-2.5], 5),
    "zeros among others": ([0.0, 3.0, 0.0, -4.0], 10),
    "whole multiples": ([3.0, -4.0], 5),
    "tiny numbers": ([3e-100, -4e-100, 1e-100], 3),
    "a hundred levels": ([1.0, 100.0, -10.0], 100),
    "a random number just below the rest": ([1.62500001, -((4 - 1.62500001**2) ** 0.5)], 2),  # float32 has 1.625
    "random numbers equal to the rest": ([4.0, -4.0, 4.0, 3.0, 2.0, -1.0, 1.0, 1.0], 5),  # 5 / 8, for a norm of 8
}


def judge_corner(answer: Answer, name: str) -> None:
    """Raise Wrong unless a corner has the right norm and levels."""
    row, s = CORNERS[name]
    x, uniform = np.array(row), np.full(len(row), 0.625)
    called = f"{called_with(x, s)}, {name}: gradient {row}"
    norm, levels = returned(answer(x, s, uniform), called)
    scale = np.abs(x).max()
    right = scale * norm_of(x / scale) if scale else 0.0
    expect.number(norm, right, f"{called}: norm", rtol=1e-9, atol=0.0)
    want = levels_of(x / scale, s, uniform) if scale else np.zeros(len(x))
    slips = {NAN: levels} if not scale else {}
    expect.array(levels, want, f"{called}: levels", rtol=0, atol=1e-9, mistakes=slips)
    if any("invalid value encountered in cast" in each for each in answer.run(warned_of, x, s, uniform)):
        raise Wrong(f"{called}: a NaN was made a whole number, which is another one on other machines.", NAN)
