"""Cases for a step of Adam, early and late ones, and the move of w: right, and under the classic mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.minibatch_sgd.momentum_forms import shortened, vectors

Array = NDArray[Any]

STILL = (0.3, 0.03, 0.003)
"""beta**t at the steps after the first ones: large enough to matter in every compared digit."""

CORRECTED = 100_000
"""A step at which 1 - beta**t is 1."""


def adam_cases(rng: np.random.Generator, d: int, beta1: float, beta2: float, steps: int) -> list[Any]:
    """(w, m, v, t, gradient) before each of the first steps, some later ones, and one that is CORRECTED.

    At the later ones beta1**t or beta2**t is STILL of some size. The first step comes last of the first ones: there m
    and v are 0, and several mistakes give the same.
    """
    m, v = np.zeros(d), np.zeros(d)
    cases = []
    for t in range(1, steps + 1):
        w, gradient = vectors(rng, d, 2)
        cases.append((w, m, v, t, gradient))
        m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
        m, v = shortened(m), np.round(v, 8)
    cases = [*cases[1:], cases[0]]
    later = sorted({math.ceil(math.log(share) / math.log(beta)) for beta in (beta1, beta2) for share in STILL})
    for t in (*later, CORRECTED):
        w, m, gradient = vectors(rng, d, 3)
        cases.append((w, m, np.round(rng.uniform(0.01, 0.3, d), 3), t, shortened(gradient / 10)))
    return cases


def mean_mistakes(
    m: Array, v: Array, t: int, gradient: Array, betas: tuple[float, float]
) -> tuple[tuple[Array, Array], dict[str, dict[str, Array]]]:
    """m and v after step t, and for each name the values under the classic mistakes."""
    beta1, beta2 = betas
    want_m, want_v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    corrected = "The corrected mean was returned: the division by 1 - beta**t is for the step only."
    of_m = {
        "They came in another order: return w, m, v.": want_v,
        corrected: want_m / (1 - beta1**t),
        "The mean before the step is missing.": (1 - beta1) * gradient,
        "beta and 1 - beta have changed places.": (1 - beta1) * m + beta1 * gradient,
        "The gradient was not multiplied by 1 - beta1.": beta1 * m + gradient,
        "This is beta2's mean: m decays with beta1.": beta2 * m + (1 - beta2) * gradient,
    }
    of_v = {
        corrected: want_v / (1 - beta2**t),
        "v is the mean of the squares.": beta2 * v + (1 - beta2) * gradient,
        "beta and 1 - beta have changed places.": (1 - beta2) * v + beta2 * gradient**2,
        "The square was not multiplied by 1 - beta2.": beta2 * v + gradient**2,
        "This is beta1's mean: v decays with beta2.": beta1 * v + (1 - beta1) * gradient**2,
        "v is the mean of the squares, not of absolute values.": beta2 * v + (1 - beta2) * abs(gradient),
        "v is the mean of the gradient's squares, not of m's.": beta2 * v + (1 - beta2) * want_m**2,
        "Each element has a mean of its own: the squares of all were added up.": beta2 * v
        + (1 - beta2) * (gradient**2).sum(),
        "The mean before the step is missing.": (1 - beta2) * gradient**2,
    }
    return (want_m, want_v), {"m": of_m, "v": of_v}


def adam_moves(
    m: Array, v: Array, t: int, gradient: Array, betas: tuple[float, float], eps: float
) -> tuple[Array, dict[str, Array]]:
    """The factor of lr in Adam's step, and the factors under the classic mistakes."""
    beta1, beta2 = betas
    before = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    return m_hat / (np.sqrt(v_hat) + eps), {
        "eps stands inside the root here; it belongs outside: sqrt(v_hat) + eps.": m_hat / np.sqrt(v_hat + eps),
        "The root is missing.": m_hat / (v_hat + eps),
        "eps was not added.": m_hat / np.sqrt(v_hat),
        "w moved by the means before the step: first m and v, then w.": before,
        "The correction is 1 - beta**t, not (1 - beta)**t.": powers(m, 1 - beta1, v, 1 - beta2, t, eps),
        "The correction is 1 - beta**t, not 1 - beta * t.": m
        / (1 - beta1 * t) / (np.sqrt(abs(v / (1 - beta2 * t))) + eps),
        "m and v were not corrected for their start at zero.": m / (np.sqrt(v) + eps),
        "Only m was corrected for its start at zero, not v.": m_hat / (np.sqrt(v) + eps),
        "Only v was corrected for its start at zero, not m.": m / (np.sqrt(v_hat) + eps),
        "eps was added to the root of v, and that was corrected; it belongs to the root of the corrected v_hat.": m_hat
        * np.sqrt(1 - beta2**t) / (np.sqrt(v) + eps),
        "The corrections are those of step t - 1; t counts from 1 and is this step's number.": powers(
            m, 1 - beta1 ** (t - 1), v, 1 - beta2 ** (t - 1), 1, eps
        ),
        "The corrections are those of step t + 1; t counts from 1 and is this step's number.": (
            m / (1 - beta1 ** (t + 1)) / (np.sqrt(v / (1 - beta2 ** (t + 1))) + eps)
        ),
        "The gradient itself was divided by the root, not the mean m_hat: this is RMSProp's step.": gradient
        / (np.sqrt(v_hat) + eps),
        "The step went up: w - lr * …": -m_hat / (np.sqrt(v_hat) + eps),
    }  # fmt: skip


def powers(m: Array, of_m: float, v: Array, of_v: float, t: int, eps: float) -> Array:
    """Adam's step with the corrections of_m**t and of_v**t, which may be too small for a number."""
    with np.errstate(all="ignore"):
        return np.asarray(m / np.float64(of_m) ** t / (np.sqrt(v / np.float64(of_v) ** t) + eps))
