"""The costs of all-reduces by the formulas of `minidl.cluster.cost`, and the results of common mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course.judging import Answer, expect
from minidl.cluster import cost

ITEMSIZE = 8

Case = tuple[int, int, float, float, float]
"""(p, nbytes, alpha, beta, gamma)"""

POWERS_OF_TWO = (
    (16, 64_000_000, 50e-6, 8e-9, 1e-9),
    (2, 800, 20e-6, 0.8e-9, 0.2e-9),
    (1, 4096, 50e-6, 8e-9, 1e-9),
    (8, 0, 50e-6, 8e-9, 1e-9),
    (4, 7_654_304, 23.9e-6, 0.613e-9, 0.171e-9),
)
ANY_NUMBER = (
    (3, 2400, 1e-6, 0.04e-9, 0.01e-9),
    (6, 4_800_000, 50e-6, 8e-9, 2e-9),
    (12, 960, 20e-6, 0.8e-9, 0.3e-9),
    (7, 1_234_576, 31.7e-6, 0.737e-9, 0.311e-9),
    (300, 4_800_007_200, 11.3e-6, 0.087e-9, 0.029e-9),
)
"""Cases of a cost function. nbytes is divisible into p chunks of whole float64 numbers."""

NEVER = 1e15
"""Bytes beyond which a crossover counts as infinite: it comes from the rounding of two equal slopes."""


def seconds(algorithm: str, p: int, nbytes: int, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """The seconds of `cost.all_reduce` for float64."""
    return cost.all_reduce(algorithm, p, nbytes, alpha, beta, gamma, itemsize=ITEMSIZE)


def ring_mistakes(p: int, n: int, alpha: float, beta: float, gamma: float) -> dict[str, float]:
    """For each slip in the ring's formula, a sentence and the seconds that it gives."""

    def ring(steps: float, moved: float, reduced: float) -> float:
        return steps * alpha + moved * n * beta + reduced * n * gamma

    steps, share = p - 1, (p - 1) / p
    return {
        "A chunk goes p - 1 steps, not p, each time round.": ring(2 * p, 2, 1),
        "There are p - 1 messages each time round, not p.": ring(2 * p, 2 * share, share),
        "2(p - 1) messages are right, but each is n/p bytes: (p - 1)/p, not 1, of n moves.": ring(2 * steps, 2, 1),
        "These are only p - 1 steps: after the reduce-scatter there is the all-gather.": ring(steps, share, share),
        "In each step a chunk of n/p bytes goes out, not the whole vector.": ring(2 * steps, 2 * steps, steps),
        "Only the reduce-scatter adds: (p - 1)/p n gamma, once.": ring(2 * steps, 2 * share, 2 * share),
        "gamma is missing: each byte that is added costs, too.": ring(2 * steps, 2 * share, 0),
        "Each rank reduces (p - 1)/p n bytes, not n.": ring(2 * steps, 2 * share, 1),
        "beta is seconds a byte: nbytes is not to be divided by 8.": ring(2 * steps, 2 * share / 8, share / 8),
        "beta is seconds a byte, not a bit.": ring(2 * steps, 2 * share * 8, share * 8),
        "The time of one message, alpha, is paid in every step.": ring(2, 2 * share, share),
        "The time of one message, alpha, is paid in each of the 2(p - 1) steps, not once.": ring(1, 2 * share, share),
        "Each of the 2(p - 1) messages takes a whole alpha, not a p-th of it.": ring(2 * share, 2 * share, share),
        "A ring has 2(p - 1) steps; 2 log2 p are another algorithm's.": ring(2 * math.log2(p), 2 * share, share),
        "All ranks send at the same time: what one of them takes is asked.": p * ring(2 * steps, 2 * share, share),
        "A rank sends and receives at the same time: a step takes one message's time.": ring(
            4 * steps, 4 * share, share
        ),
        "gamma is seconds a byte, not an element.": ring(2 * steps, 2 * share, share / 8),
        "A rank that is alone sends nothing.": alpha + n / p * beta if p == 1 else math.inf,
        **slips_of_any(ring(2 * steps, 2 * share, share), n),
    }


def slips_of_any(want: float, n: int) -> dict[str, float]:
    """Mistakes about the unit, or about what is asked; for any formula."""
    slips = {
        "Seconds are asked, not milliseconds.": 1e3 * want,
        "Seconds are asked, not microseconds.": 1e6 * want,
        "An empty message takes time, too: alpha.": 0.0 if n == 0 else math.inf,
    }
    return {sentence: slip for sentence, slip in slips.items() if slip != want}


def is_rounded(got: Any, want: float) -> bool:
    """Whether a number is `want` with fewer digits."""
    if not isinstance(got, (int, float)) or not got or abs(got) > 1e300 or not math.isfinite(want):
        return False
    return any(round(got, digits) == got and abs(got - want) < 10.0**-digits for digits in range(12))


def recursive_doubling_mistakes(p: int, n: int, alpha: float, beta: float, gamma: float) -> dict[str, float]:
    """For each slip in recursive doubling's formula, a sentence and the seconds that it gives."""

    def rounds(messages: float, reductions: float) -> float:
        return messages * (alpha + n * beta) + reductions * n * gamma

    low, high = math.floor(math.log2(p)), math.ceil(math.log2(p))
    fold = 0 if low == high else 1
    return {
        "The fold is missing: where p is no power of two, a message before and one after.": rounds(low, low),
        "log2 p is no whole number here: the rounds are those of the power of two below p.": rounds(
            math.log2(p), math.log2(p)
        ),
        "This is log2 p rounded up, or a fold of one message; the fold is a message before and one after.": rounds(
            high, high
        ),
        "The rounds are those of the power of two below p: log2 p rounded down, and two for the fold.": rounds(
            high + 2 * fold, high + fold
        ),
        "Handing the result back is a message, but no addition.": rounds(low + 2 * fold, low + 2 * fold),
        "gamma is missing: each byte that is added costs, too.": rounds(low + 2 * fold, 0),
        "The rounds are log2 p, not p - 1.": rounds(p - 1, p - 1),
        "In each round the whole vector goes out, not a p-th.": (low + 2 * fold) * (alpha + n / p * beta)
        + (low + fold) * n / p * gamma,
        "beta is seconds a byte: nbytes is not to be divided by 8.": (low + 2 * fold) * (alpha + n / 8 * beta)
        + (low + fold) * n / 8 * gamma,
        "p.bit_length() - 1 is log2 p, rounded down; p.bit_length() is one more.": rounds(low + 1, low + 1),
        "Where p is a power of two there is no fold.": rounds(low + 2, low + 1),
        "The fold adds, too: what was handed over.": rounds(low + 2 * fold, low),
        "The logarithm to the base of 2 is asked: math.log2, or p.bit_length() - 1.": rounds(math.log(p), math.log(p)),
        "Partners send at the same time: a round takes one message's time, and there are log2 p, not 2 log2 p.": rounds(
            2 * (low + fold), low + fold
        ),
        "Each round's message takes an alpha.": alpha + (low + 2 * fold) * n * beta + (low + fold) * n * gamma,
        **slips_of_any(rounds(low + 2 * fold, low + fold), n),
    }


def crossover_bytes(p: int, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """The bytes at which ring and recursive doubling take equal time; infinite if the ring is never faster.

    Both times are linear in the bytes: a cost at 0 bytes, and a cost for each byte.
    """
    far = p * ITEMSIZE * 2**20
    at_zero = [seconds(name, p, 0, alpha, beta, gamma) for name in ("ring", "recursive_doubling")]
    at_far = [seconds(name, p, far, alpha, beta, gamma) for name in ("ring", "recursive_doubling")]
    slope = [(end - start) / far for start, end in zip(at_zero, at_far, strict=True)]
    gained = slope[1] - slope[0]
    return (at_zero[0] - at_zero[1]) / gained if gained > 1e-9 * slope[1] else math.inf


def crossover_mistakes(p: int, alpha: float, beta: float, gamma: float) -> dict[str, float]:
    """For each slip, a sentence and the size that it gives."""
    size = crossover_bytes(p, alpha, beta, gamma)

    def meeting(steps: float, share: float, rounds: float, reductions: float) -> float:
        gained = (rounds - 2 * share) * beta + (reductions - share) * gamma
        return (2 * steps - rounds) * alpha / gained if gained > 0 else math.inf

    low = math.floor(math.log2(p))
    fold = 0 if p == 2**low else 1
    later = 2 * (p - 1) - low - 2 * fold

    def meeting_of(start_ups: float, share: float) -> float:
        gained = (low + 2 * fold - 2 * share) * beta + (low + fold - share) * gamma
        return start_ups * alpha / gained if gained > 0 else math.inf

    slips = {
        "This is the size in elements of 8 bytes; bytes are asked.": size / ITEMSIZE,
        "This is where Rabenseifner's algorithm beats recursive doubling; the ring is asked.": cost.crossover(
            p, alpha, beta, gamma
        ),
        "This is the crossover without gamma.": crossover_bytes(p, alpha, beta),
        "The fold is missing.": meeting(p - 1, (p - 1) / p, low, low),
        "Recursive doubling has start-ups, too: one a round.": meeting_of(2 * (p - 1), (p - 1) / p),
        "A byte of the vector costs the ring 2(p - 1)/p beta, not 2 beta.": meeting_of(later, 1),
        "log2 p is no whole number here: the rounds are those of the power of two below p, and the fold's.": meeting(
            p - 1, (p - 1) / p, math.log2(p), math.log2(p)
        ),
        "The ring has p - 1 steps a round, not p.": meeting(p, (p - 1) / p, low + 2 * fold, low + fold),
        "This is upside down: what the ring starts later is to be divided by what it gains a byte.": 1 / size,
        "Bytes are asked, not kilobytes.": size / 1e3,
        "Bytes are asked, not megabytes.": size / 1e6,
        "The sign is that of the other difference.": -size,
        "This is the size of a chunk; the bytes of the whole vector are asked.": size / p,
    }
    if p == ITEMSIZE:  # p chunks and 8 bytes an element: both mistakes give the same number
        both = [sentence for sentence, slip in slips.items() if slip == size / p]
        slips = {" Or: ".join(both): size / p} | {
            sentence: slips[sentence] for sentence in slips if sentence not in both
        }
    finite = {sentence: slip for sentence, slip in slips.items() if math.isfinite(slip)}
    return {**finite, "There is such a size here: the ring gains something with every byte.": math.inf}


def judge_seconds(answer: Answer, algorithm: str, case: Case, with_gamma: bool = True) -> None:
    """Raise Wrong unless the answer is what the formula gives; without gamma, the call leaves it out."""
    given = case if with_gamma else case[:4]
    names = ("p", "nbytes", "alpha", "beta", "gamma")
    called = f"{answer.name}({', '.join(f'{name}={value:g}' for name, value in zip(names, given, strict=False))})"
    p, nbytes, alpha, beta, gamma = case if with_gamma else (*case[:4], 0.0)
    slips = ring_mistakes if algorithm == "ring" else recursive_doubling_mistakes
    want = seconds(algorithm, p, nbytes, alpha, beta, gamma)
    got, mistakes = answer(*given), slips(p, nbytes, alpha, beta, gamma)
    if is_rounded(got, want):
        mistakes["The time is not to be rounded."] = got
    expect.number(got, want, called, rtol=1e-9, atol=1e-15, mistakes=mistakes)


def judge_crossover(answer: Answer, case: tuple[int, float, float, float]) -> None:
    """Raise Wrong unless the answer is the size at which the two formulas are equal."""
    p, alpha, beta, gamma = case
    called = f"crossover(p={p}, alpha={alpha:g}, beta={beta:g}, gamma={gamma:g})"
    want = crossover_bytes(*case)
    got = answer(*case)
    if want == math.inf:
        is_number = isinstance(got, float) or (isinstance(got, np.ndarray) and got.ndim == 0 and got.dtype.kind == "f")
        never = is_number and bool(got > NEVER)
        expect.true(
            never,
            f"{called}: expected math.inf, got {expect.shown(got)}.",
            "Two ranks send the same bytes in both ways, in more messages round the ring.",
        )
    else:
        mistakes = crossover_mistakes(*case)
        if is_rounded(got, want):
            mistakes["The size is not to be rounded."] = got
        expect.number(got, want, called, mistakes=mistakes)
