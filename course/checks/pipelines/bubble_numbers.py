"""The bubble in two conventions, by the closed form, and what known mistakes give."""

from __future__ import annotations

import numpy as np

from course.judging import Answer, expect

Case = tuple[int, int, int]
"""(K, M, v)"""

NAMES = ("of_ideal", "of_total")


def right(K: int, M: int, v: int) -> tuple[float, float]:
    """(of ideal, of total): Narayanan et al. (arXiv:2104.04473), section 2.2; GPipe (arXiv:1811.06965), section 2.3."""
    return (K - 1) / (v * M), (K - 1) / (v * M + K - 1)


def compare(answer: Answer, case: Case, which: int) -> None:
    """Raise Wrong unless number `which` of the returned pair is right."""
    K, M, v = case
    called = f"bubble({K}, {M}, {v})"
    got = answer(*case)
    if isinstance(got, np.ndarray) and got.ndim == 1:
        got = list(got)
    expect.listed(got, called, "a pair (of_ideal, of_total)", 2)
    ideal, total = right(*case)
    want = (ideal, total)[which]
    mistakes = {
        "This is the bubble of the total time." if which == 0 else "This is the bubble of the ideal time.": (
            total if which == 0 else ideal
        ),
        "v chunks a stage: only a v-th of the idle seconds is left.": right(K, M, 1)[which],
        "Of K stages, all but one wait when the first micro-batch comes: K - 1, not K.": (
            K / (v * M) if which == 0 else K / (v * M + K)
        ),
        "The total time has the idle seconds once: M + (K - 1) / v in units of t_F + t_B.": (K - 1) / (v * (M + K - 1)),
        "v times as many chunks: the idle seconds become fewer, not more.": (
            (K - 1) * v / M if which == 0 else (K - 1) * v / (M + (K - 1) * v)
        ),
        "This is the share of the time in which a stage computes.": 1 - want,
        "K stages with v chunks each are still K stages, not v K.": right(v * K, M, 1)[which],
        "K and M are the other way round.": right(M, K, v)[which],
        "A stage waits at the beginning and at the end, but (K - 1) (t_F + t_B) is both together.": (
            2 * ideal if which == 0 else 2 * (K - 1) / (v * M + 2 * (K - 1))
        ),
        "This is in percent.": 100 * want,
    }
    wrong = {sentence: number for sentence, number in mistakes.items() if abs(number - want) > 1e-9}
    expect.number(got[which], want, f"{called}: {NAMES[which]}", rtol=1e-9, mistakes=wrong)
