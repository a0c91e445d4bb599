"""The noise scale from gradients of two minibatch sizes: right, exact by enumeration, and under known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from minidl.random import Purpose, stream

Array = NDArray[Any]

Drawn = tuple[int, int, int, int, int]
"""(draws of the small size, draws of the large one, n, b_small, b_large)"""

Population = tuple[int, int, int, int]
"""(samples, n, b_small, b_large)"""

NEGATIVE = "An estimate of |G|^2 may come out at 0 or below it. Then the result is np.inf."


BELOW = "The estimate of tr(Sigma) may be negative. Then the result is negative, too."


def estimates(square_small: Any, square_large: Any, b_small: float, b_large: float) -> tuple[Any, Any]:
    """The estimates of |G|^2 and tr(Sigma) from the mean squares of the norms."""
    trace = (square_small - square_large) / (1 / b_small - 1 / b_large)
    return square_large - trace / b_large, trace


def squares(gradients: Array) -> Array:
    """The squared norm of each row."""
    return np.asarray((gradients**2).sum(axis=1))


def scale(small: Array, large: Array, b_small: int, b_large: int) -> float:
    """The oracle: tr(Sigma) / |G|^2, both from means over all draws."""
    squared_norm, trace = estimates(squares(small).mean(), squares(large).mean(), b_small, b_large)
    return float(trace / squared_norm) if squared_norm > 0 else np.inf


def drawn(case: Drawn, seed: int) -> tuple[Array, Array, int, int]:
    """Gradients of minibatches whose noise is that of their size, so that |G|^2 is estimated above 0."""
    draws_small, draws_large, n, b_small, b_large = case
    rng = stream(Purpose.MANUAL, seed, "drawn gradients", *case)
    while True:
        mean = rng.uniform(1.0, 2.0, n)
        small, large = (
            np.round(mean + rng.normal(0.0, 1.5, (draws, n)) / np.sqrt(b), 2)
            for draws, b in ((draws_small, b_small), (draws_large, b_large))
        )
        squared_norm, trace = estimates(squares(small).mean(), squares(large).mean(), b_small, b_large)
        if squared_norm > 0.1 and trace > 0.1:
            return small, large, b_small, b_large


def enumerated(case: Population, seed: int) -> tuple[Array, Array, float]:
    """The mean gradients over all minibatches, drawn with replacement, of both sizes; and the exact noise scale."""
    samples, n, b_small, b_large = case
    rng = stream(Purpose.MANUAL, seed, "a population", *case)
    one = np.round(rng.normal(1.0, 2.0, (samples, n)), 1) + 0.5
    small, large = (
        np.array([one[list(chosen)].mean(axis=0) for chosen in product(range(samples), repeat=b)])
        for b in (b_small, b_large)
    )
    mean = one.mean(axis=0)
    return small, large, float(((one - mean) ** 2).sum() / samples / (mean @ mean))


def mistakes(small: Array, large: Array, b_small: int, b_large: int) -> dict[str, float]:
    """The results of known mistakes."""
    n = small.shape[1]
    square_small, square_large = squares(small).mean(), squares(large).mean()
    squared_norm, trace = estimates(square_small, square_large, b_small, b_large)
    shared = min(len(small), len(large))
    per_draw = estimates(squares(small)[:shared], squares(large)[:shared], b_small, b_large)
    of_means = estimates(squares(small.mean(axis=0)[None])[0], squares(large.mean(axis=0)[None])[0], b_small, b_large)
    of_norms = estimates(np.sqrt(squares(small)).mean() ** 2, np.sqrt(squares(large)).mean() ** 2, b_small, b_large)
    unsquared = estimates(np.sqrt(squares(small)).mean(), np.sqrt(squares(large)).mean(), b_small, b_large)
    swapped = estimates(square_small, square_large, b_large, b_small)
    sample_variance = large.var(axis=0).sum() * b_large

    def ratio(pair: tuple[Any, Any]) -> Any:
        with np.errstate(all="ignore"):
            return pair[1] / pair[0]

    return {
        "This is the mean of the ratios of single draws. |G|^2 is close to 0 in some of them: take the ratio of the "
        "two means.": float(np.mean(ratio(per_draw))),
        "This is the median of the ratios of single draws; the ratio of the two means is unbiased in both.": float(
            np.median(ratio(per_draw))
        ),
        "|G|^2 was taken from the large minibatch as it is: it has tr(Sigma) / b_large of noise in it.": trace
        / square_large,
        "|G|^2 was taken from the small minibatch as it is: it has tr(Sigma) / b_small of noise in it.": trace
        / square_small,
        "The two sizes were swapped.": ratio(swapped),
        "tr(Sigma) was divided by n: a trace is a sum over the coordinates.": trace / squared_norm / n,
        "|G|^2 was divided by n: it is a sum over the coordinates.": trace / squared_norm * n,
        "The root was taken: this is a ratio of a standard deviation to a norm.": np.sqrt(np.abs(trace / squared_norm)),
        "The gradients were averaged first, and squared then: the noise is gone. Square each draw.": ratio(of_means),
        "The norms were averaged, and then squared: square each norm first.": ratio(of_norms),
        "The norms were not squared.": ratio(unsquared),
        "The ratio is upside down.": squared_norm / trace,
        "tr(Sigma) is the difference divided by (1 / b_small - 1 / b_large): this was not divided.": (
            square_small - square_large
        )
        / squared_norm,
        "tr(Sigma) was taken from the spread of the large minibatches.": sample_variance / squared_norm,
    }


def judge(answer: Answer, small: Array, large: Array, b_small: int, b_large: int, want: float, where: str) -> None:
    """Raise Wrong unless the answer is `want`."""
    called = (
        f"gradient_noise_scale(small, large, {b_small}, {b_large}) with {len(small)} and {len(large)} draws of "
        f"{small.shape[1]} numbers{where}"
    )
    got = answer(small, large, b_small, b_large)
    if isinstance(got, np.ndarray) and got.ndim == 0:
        got = got.item()
    expect.number(got, want, called, rtol=1e-9, mistakes=mistakes(small, large, b_small, b_large))


def judge_drawn(answer: Answer, case: Drawn, seed: int) -> None:
    small, large, *sizes = drawn(case, seed)
    judge(answer, small, large, *sizes, scale(small, large, *sizes), "")


def judge_all(answer: Answer, case: Population, seed: int) -> None:
    """All minibatches of a population are the draws, so that the estimate is exact."""
    small, large, exact = enumerated(case, seed)
    samples, _, b_small, b_large = case
    where = f", all minibatches of {samples} samples"
    judge(answer, small, large, b_small, b_large, exact, where)


def judge_identities(answer: Answer, case: Drawn, seed: int) -> None:
    """Gradients of another unit, coordinates in another order, and estimates of |G|^2 below 0."""
    small, large, b_small, b_large = drawn(case, seed)
    want = scale(small, large, b_small, b_large)
    changes: dict[str, Callable[[Array], Array]] = {
        ", all multiplied by 1e-9": lambda gradients: gradients * 1e-9,
        ", in the other order of coordinates": lambda gradients: np.ascontiguousarray(gradients[:, ::-1]),
        ", with 50 coordinates of zeros added": lambda gradients: np.pad(gradients, ((0, 0), (0, 50))),
    }
    for where, change in changes.items():
        judge(answer, change(small), change(large), b_small, b_large, want, where)
    draws = np.array([[3.0, 4.0], [-3.0, -4.0]] * 500 + [[1.6, 4.8], [-1.6, -4.8]] * 100)
    one = np.array([[2.506, 0.0]])
    judge(answer, draws, one, 1, 4, scale(draws, one, 1, 4), ", much noise")
    columns = np.arange(1200)
    few, many = (each[:, columns % each.shape[1]] * (1 + columns / 1200) for each in (small, large))
    judge(answer, few, many, b_small, b_large, scale(few, many, b_small, b_large), "")
    opposite = np.array([[1.0, 0.5], [-1.0, -0.5]])
    for loud, squared_norm in ((np.array([[3.0, 1.0], [1.0, 3.0]]), -7.5), (np.array([[5.0, 0.0]]), -22.5)):
        judge_infinite(answer, loud, opposite, f"an estimate of |G|^2 of {squared_norm}")
    judge_infinite(answer, np.zeros((2, 3)), np.zeros((1, 3)), "gradients of 0")
    quiet, loud = np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]])
    got = answer(quiet, loud, 1, 4)
    called = "gradient_noise_scale(small, large, 1, 4) with small [[2., 0.]] and large [[0., 3.]]"
    expect.number(got, scale(quiet, loud, 1, 4), called, mistakes={BELOW: got})


def judge_infinite(answer: Answer, small: Array, large: Array, what: str) -> None:
    """Raise Wrong unless the answer is infinite."""
    called = f"gradient_noise_scale(small, large, 1, 2) with {what}"
    got = answer(small, large, 1, 2)
    if isinstance(got, float | np.floating) and not got > 0:
        raise Wrong(f"{called}: expected inf, got {expect.shown(got)}.", NEGATIVE)
    expect.number(got, np.inf, called)
