"""The variance of a minibatch gradient, right and under the classic mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect

Array = NDArray[Any]


LARGE_MEAN = 1e8
SMALL = 1e-9
CANCELLED = (
    "Without the mean the answer is right, so the digits were lost. E[x^2] - E[x]^2, or a sum of products, is the "
    "difference of two numbers near 1e16, and a float32 near 1e8 has no digits for the differences: subtract the mean "
    "first, in float64, then square."
)


def compare_variance(answer: Answer, gradients: Array, batch_size: int, replacement: bool, unit: float = 1.0) -> None:
    """Raise Wrong unless the answer is the variance of the mean of batch_size of these gradients, of about `unit`."""
    shown = f"np.array({gradients.tolist()})" if gradients.size <= 8 else "gradients"
    called = f"gradient_variance({shown}, batch_size={batch_size}, replacement={replacement})"
    called += "" if gradients.size <= 8 else f" with gradients of shape {gradients.shape}"
    got = answer(gradients, batch_size, replacement)
    if isinstance(got, np.ndarray) and got.ndim:
        message = f"{called}: expected a number, got an array of shape {got.shape}."
        raise Wrong(message, "The variances of the coordinates are to be added up.")
    if isinstance(got, float) and np.isnan(got) and len(gradients) == 1:
        cause = "With a single sample there is nothing to draw, and n - 1 is 0: answer 0."
        raise Wrong(f"{called}: expected 0, got nan.", cause)
    known = variance_mistakes(gradients, batch_size, replacement)
    values = list(known.values())
    mistakes = {  # where several give the same number, none is named
        sentence: value for sentence, value in known.items() if np.isclose(value, values).sum() == 1
    }
    want = variance(gradients, batch_size, replacement)
    expect.number(got, want, called, atol=1e-12 * unit**2, mistakes=mistakes)


def compare_large_mean(answer: Answer, rng: np.random.Generator) -> None:
    """Raise Wrong unless the variance is right, first of some gradients, then of these with LARGE_MEAN added."""
    gradients = LARGE_MEAN + np.round(rng.normal(0.0, 2.0, (50, 3)), 2)
    for batch_size, replacement in ((4, True), (4, False)):
        compare_variance(answer, gradients - LARGE_MEAN, batch_size, replacement)
        called = (
            f"gradient_variance(gradients, batch_size={batch_size}, replacement={replacement}) with gradients of shape "
            f"{gradients.shape}, all near {LARGE_MEAN:g}"
        )
        got = answer(gradients, batch_size, replacement)
        want = variance(gradients, batch_size, replacement)  # running means near 1e8 lose 4e-9 of it
        expect.number(got, want, called, rtol=1e-6, mistakes={CANCELLED: got})


def variance(gradients: Array, batch_size: int, replacement: bool) -> float:
    """E |g_B - g|^2 for the mean g_B of batch_size rows and the mean g of all."""
    n = len(gradients)
    one = float(((gradients - gradients.mean(axis=0)) ** 2).sum()) / n
    if replacement:
        return one / batch_size
    return one / batch_size * (n - batch_size) / (n - 1) if n > 1 else 0.0


def variance_mistakes(gradients: Array, batch_size: int, replacement: bool) -> dict[str, float]:
    """The results of the classic mistakes."""
    n, d = gradients.shape
    right, one = variance(gradients, batch_size, replacement), variance(gradients, 1, True)
    mistakes: dict[str, float] = {}
    if n > 1:
        mistakes[
            "Divided by n - 1. That estimates the variance of a larger population from n samples of it; here the n "
            "samples are the population: divide by n."
        ] = right * n / (n - 1)
    if replacement and batch_size <= n:
        mistakes["This is the variance without replacement."] = variance(gradients, batch_size, False)
    if replacement and batch_size > n:
        mistakes["This is a batch of n: with replacement it may be larger than n."] = one / n
    if n > 1 and not replacement:
        mistakes["The factor (n - B)/(n - 1) is upside down: it is 0 for B = n."] = (
            one / batch_size * (n - 1) / max(n - batch_size, 1)
        )
        mistakes["This is the variance with replacement."] = one / batch_size
        mistakes["The factor is (n - B)/(n - 1), not (n - B)/n: for B = 1 it must be 1."] = (
            one / batch_size * (n - batch_size) / n
        )
    return mistakes | {
        "It was not divided by batch_size: this is the variance of one sample's gradient.": right * batch_size,
        "The variance of a mean of B draws is 1/B of that of one; its root, the standard deviation, falls as "
        "1/sqrt(B).": right * np.sqrt(batch_size),
        "This is the standard deviation: the variance is its square.": np.sqrt(right),
        "This is a sum over the batch, not a mean.": right * batch_size**2,
        "The squared distances of all samples were added up: their mean is wanted.": right * n,
        "This is the mean over the coordinates; the trace of the covariance is their sum.": right / d,
        "The mean gradient was not subtracted: this is a mean square, not a variance.": float((gradients**2).sum())
        / n
        / batch_size,
        "All entries of the covariance matrix were added up: the trace is the sum of its diagonal.": right
        * float(((gradients - gradients.mean(axis=0)).sum(axis=1) ** 2).mean())
        / one
        if one
        else 0.0,
        "The distances were not squared.": right
        * float(np.linalg.norm(gradients - gradients.mean(axis=0), axis=1).mean())
        / one
        if one
        else 0.0,
        "The entries of all coordinates were thrown together: take the variance of each column.": gradients.var()
        / batch_size,
        "The variance was taken along the wrong axis: a row is a sample.": gradients.var(axis=1).sum() / batch_size,
    }
