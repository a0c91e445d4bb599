"""The largest moving rate of synchronous elastic averaging: the closed form, and what known mistakes give.

On the parabola curvature x²/2, p equal workers and their centre are multiplied in a round by

    [ q (1 - a - alpha)   q alpha     ]        a = lr curvature,  q = (1 - a)^(period - 1)
    [ p alpha             1 - p alpha ]

As alpha grows, the smaller eigenvalue falls. It is -1 where det(A + I) = 0, a linear equation in alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect

Setting = tuple[int, float, float, int]
"""(p, lr, curvature, period)"""

TOLERANCE = 1e-6


def limit(p: float, a: float, period: float) -> float:
    """The largest alpha at which a round does not increase distances."""
    q, s = (1 - a) ** (period - 1), (1 - a) ** period
    return 2 * (1 + s) / (2 * q + p * (1 + s))


def growth(alpha: float, p: int, a: float, period: int) -> float:
    """The factor by which a round multiplies distances in the long run."""
    q = (1 - a) ** (period - 1)
    matrix: NDArray[Any] = np.array([[q * (1 - a - alpha), q * alpha], [p * alpha, 1 - p * alpha]])
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def judge(answer: Answer, settings: Sequence[Setting]) -> None:
    """Raise Wrong unless the answer is the limit for each of the settings."""
    for p, lr, curvature, period in settings:
        a = lr * curvature
        want = limit(p, a, period)
        mistakes = {
            "This is the limit of one worker. The pulls of all p workers move the centre at once.": limit(1, a, period),
            "This is the limit for a pull in every step.": limit(p, a, 1),
            "The curvature is missing: a step multiplies the distance to the minimum by 1 - lr curvature.": limit(
                p, lr, period
            ),
            "The step with the pull is one of the `period` steps: only period - 1 plain steps follow it.": limit(
                p, a, period + 1
            ),
            "This is p alpha; asked for is alpha.": p * want,
            "This is rho = alpha / lr; asked for is alpha.": want / lr,
            "This is what minidl takes where no alpha is given. It is not the limit.": 0.9 / p,
            "This is the limit of p - 1 workers.": limit(p - 1, a, period),
            "This is the limit of p + 1 workers.": limit(p + 1, a, period),
            "At the limit the smaller eigenvalue is -1; here it is 0.": (1 - a) ** period
            / (p * (1 - a) ** period + (1 - a) ** (period - 1)),
        }
        called = f"elastic_limit(p={p}, lr={lr:g}, curvature={curvature:g}, period={period})"
        got = answer(p, lr, curvature, period)
        slips = {sentence: value for sentence, value in mistakes.items() if not np.isclose(value, want, rtol=1e-5)}
        try:
            expect.number(got, want, called, rtol=TOLERANCE, mistakes=slips)
        except Wrong as wrong:
            if wrong.cause or not isinstance(got, int | float) or not 0 < got < 1e6:
                raise
            there = growth(got, p, a, period)
            cause = f"With alpha = {got:.9g} a round multiplies distances by {there:.6g} in the long run: " + (
                "they grow." if there > 1 else "they still shrink, and a larger alpha is stable, too."
            )
            raise Wrong(wrong.message, cause) from None
