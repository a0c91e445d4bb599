"""Bytes that a rank keeps and numbers that it sends, in each of ZeRO's stages, and what known mistakes give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course.judging import expect

Case = tuple[int, int]
"""(P, N)"""

STAGES = (0, 1, 2, 3)
NAMES = ("nbytes", "sent")

BYTES = {True: (12, 2, 2), False: (8, 4, 4)}
"""Bytes of a weight's optimizer state, gradient and value, by whether precision is mixed."""


def own(P: int, N: int, r: int) -> int:
    """The numbers in range r of N."""
    return P // N + (r % N < P % N)


def kept(P: int, share: float, stage: int, each: tuple[int, int, int]) -> float:
    """The bytes of a rank whose range has `share` numbers. each: bytes of state, gradient and weight."""
    return sum(size * (share if stage > place else P) for place, size in enumerate(each))


def nbytes(P: int, N: int, stage: int, is_mixed: bool, r: int) -> float:
    """The oracle for bytes: Rajbhandari et al. (arXiv:1910.02054), section 5."""
    return kept(P, own(P, N, r), stage, BYTES[is_mixed])


def sent(P: int, N: int, stage: int, r: int) -> int:
    """The oracle for numbers: a reduce-scatter, and one all-gather, or two of them in stage 3."""
    return P - own(P, N, r) + (1 + (stage == 3)) * (P - own(P, N, r + 1))


def mistaken_bytes(P: int, N: int, stage: int, is_mixed: bool, r: int) -> dict[str, float]:
    each, share = BYTES[is_mixed], own(P, N, r)
    state, gradient, weight = each

    def of(state: int, gradient: int, weight: int) -> float:
        return kept(P, share, stage, (state, gradient, weight))

    of_precision = {
        "With 16-bit weights the state has 32-bit weights, too: 4 + 4 + 4 bytes.": of(8, 2, 2),
        "Momentum and variance have 32 bits also with 16-bit weights.": of(4, 2, 2),
        "Gradients have as many bits as the weights: 16.": of(12, 4, 2),
    } if is_mixed else {
        "Adam has two numbers for each weight, momentum and variance.": of(4, 4, 4),
        "With 32-bit weights there is no second copy of the weights: the state has 8 bytes.": of(12, 4, 4),
        "Without mixed precision weights and gradients have 4 bytes, not 2.": of(8, 2, 2),
    }  # fmt: skip
    other = (
        "With 16-bit weights the state has 12 bytes a weight, its 32-bit copy among them: look at is_mixed."
        if is_mixed
        else "These are the bytes of the other precision: look at is_mixed."
    )
    return of_precision | {
        other: of(*BYTES[not is_mixed]),
        "This is what a rank keeps without sharding.": kept(P, P, 0, each),
        "This is what all ranks together keep.": N * nbytes(P, N, stage, is_mixed, r),
        "Ranges have whole numbers: the first P % N ranks have one more than the others.": kept(P, P / N, stage, each),
        "Ranges that are one number longer: only the first P % N ranks have them.": kept(P, -(-P // N), stage, each),
        "P // N is the shorter range: the first P % N ranks have one more.": kept(P, P // N, stage, each),
        "This is one stage less: stage 1 divides the states, 2 the gradients too, 3 the weights too.": kept(
            P, share, max(stage - 1, 0), each
        ),
        "This is one stage more: stage 1 divides only the states, stage 2 not the weights.": kept(
            P, share, stage + 1, each
        ),
        "A stage also divides what the stages before it divide.": sum(
            size * (share if stage == place + 1 else P) for place, size in enumerate(each)
        ),
        "The order is state, gradients, weights: the state is the largest, so it is divided first.": kept(
            P, share, stage, (weight, gradient, state)
        ),
        "The pair is (nbytes, sent), in this order.": sent(P, N, stage, r),
        "This is in GB.": nbytes(P, N, stage, is_mixed, r) / 1e9,
        "These are bits.": nbytes(P, N, stage, is_mixed, r) * 8,
    }


def mistaken_numbers(P: int, N: int, stage: int, is_mixed: bool, r: int) -> dict[str, float]:
    here, after, gathers = own(P, N, r), own(P, N, r + 1), 1 + (stage == 3)
    right = sent(P, N, stage, r)
    known = {
        "These are bytes; how many numbers are sent does not depend on the precision.": right * BYTES[is_mixed][2],
        "An all-reduce is a reduce-scatter and an all-gather: two passes, not one.": P - here,
        "In stage 3 the weights are gathered twice, before forward and before backward.": sent(P, N, 0, r),
        "Only stage 3 gathers the weights twice.": sent(P, N, 3, r),
        "A rank does not send all ranges: in a reduce-scatter all but its own.": (1 + gathers) * P,
        "In an all-gather, the range that a rank does not send is that of the next rank, r + 1.": (1 + gathers)
        * (P - here),
        "In a reduce-scatter, the range that a rank does not send is its own.": (1 + gathers) * (P - after),
        "In an all-gather, the range that a rank does not send is that of the next rank, not of the one before.": P
        - here + gathers * (P - own(P, N, r - 1)),
        "This is the mean over the ranks; ranges may differ by one number.": (1 + gathers) * P * (N - 1) / N,
        "This is what all ranks together send.": (1 + gathers) * P * (N - 1),
        "This is what arrives if every rank sends its own range once: the ranges go round the ring.": (1 + gathers)
        * here,
    }  # fmt: skip
    known["The pair is (nbytes, sent), in this order."] = nbytes(P, N, stage, is_mixed, r)
    if not is_mixed:
        known["How many numbers are sent does not depend on the precision."] = 2 * right
    if stage == 3:
        known["Stage 3 gathers the weights twice and scatters the gradients once: three passes."] = 4 * (P - here)
    if stage == 0:
        known["Stage 0 sends, too: an all-reduce of the gradients."] = 0
    wrap = {"After rank N - 1 comes rank 0: the next rank is (r + 1) % N.": P - here + gathers * (P - P // N)}
    return wrap | known if r == N - 1 else known


def ranks(P: int, N: int) -> list[int]:
    """First and last, and those next to the first shorter range."""
    return sorted({0, max(P % N - 1, 0), P % N, N - 1})


def compare(result: Callable[..., Any], case: Case, which: int, precisions: tuple[bool, ...] = (True, False)) -> None:
    """Raise Wrong unless number `which` of each pair is right. result: what the answer returns for its arguments."""
    P, N = case
    for is_mixed in precisions:
        for stage in STAGES:
            for r in ranks(P, N):
                called = f"memory_and_traffic({P}, {N}, {stage}, {is_mixed}, {r})"
                got = result(P, N, stage, is_mixed, r)
                if isinstance(got, np.ndarray) and got.ndim == 1:
                    got = got.tolist()
                expect.listed(got, called, "a pair (nbytes, sent)", 2)
                if which == 0:
                    want, known = nbytes(P, N, stage, is_mixed, r), mistaken_bytes(P, N, stage, is_mixed, r)
                else:
                    want, known = sent(P, N, stage, r), mistaken_numbers(P, N, stage, is_mixed, r)
                wrong = {sentence: value for sentence, value in known.items() if abs(value - want) > 0.01}
                expect.number(got[which], want, f"{called}: {NAMES[which]}", rtol=0.0, atol=0.01, mistakes=wrong)
