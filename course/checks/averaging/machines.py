"""Machines that train separately on losses of their own, and the rounds in which an answer averages them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Wrong, expect
from course.judging.ranks.counted_all_reduces import WHY_NOT, all_reduces, words_sent
from course.judging.ranks.rank_run import RankRun, could_have_carried
from course.plural import counted
from course.probes.averaging import Slopes
from minidl.random import Purpose, stream

Array = NDArray[Any]

LR = 0.23
ROUNDING = 1e-9

TINY = 3e-7
"""Size of the second of three or more weights, relative to the others: an answer must not drop small weights."""


@dataclass(frozen=True)
class Machine:
    """A machine's weights at the beginning, and its loss in each step: a parabola with this curvature and minimum."""

    x: Array
    curvature: Array
    minima: Array

    def gradient(self, x: Array, step: int) -> Array:
        return np.asarray(self.curvature * (x - self.minima[step]))

    @property
    def slopes(self) -> Slopes:
        return Slopes(self.curvature, self.minima)


def machines(seed: int, p: int, n: int, steps: int, is_equal: bool = False) -> list[Machine]:
    """p machines with n weights; no two of them have the same curvature. is_equal: the weights are the same on all."""
    rng, scale = stream(Purpose.MANUAL, seed, "machines", p, n, steps), scales(n)
    x = scale * rng.normal(size=(p, n))
    return [
        Machine(x[0 if is_equal else i].copy(), rng.uniform(0.5, 2.0, n), 2 * scale * rng.normal(size=(steps, n)))
        for i in range(p)
    ]


def scales(n: int) -> Array:
    """How large each of n weights is."""
    scale = np.ones(n)
    scale[1 : n - 1][:1] = TINY
    return scale


def compare_rounds(
    run: RankRun, called: Callable[[int], str], n: int, rounds: int, why: Callable[[int], str] = lambda _: ""
) -> None:
    """Raise Wrong unless every machine made `rounds` all-reduces of n words, and sent nothing else.

    why: the likely cause of a wrong number of all-reduces.
    """
    p = len(run.results)
    expected = f"expected {counted(rounds, 'all-reduce')} of {counted(n, 'word')}"
    for rank in range(p) if p > 1 else ():
        count, others = all_reduces(run, rank)
        if others:
            raise Wrong(f"{called(rank)}: {expected}, and no comm.{others[0]}.", WHY_NOT.get(others[0], ""))
        if count != rounds:
            raise Wrong(f"{called(rank)}: {expected}, got {count}.", why(count))
        could_have_carried(run, f"{called(rank)}: the sum", rank, range(p) if rounds else (), 8 * n * rounds)
    sent, most = sum(run.nbytes) / 8, rounds * words_sent(p, n)
    if p > 1 and sent > most:
        raise Wrong(
            f"{called(0)}: {expected}; that is at most {counted(most, 'word')} sent by all machines, got {sent:g}.",
            "What goes into the sum has the shape of x.",
        )


def vector(value: Any, n: int, called: str) -> Array:
    """What was returned as n floats, or Wrong."""
    numbers = expect.number_array(value, called, f"an array of shape {(n,)}")
    if numbers.shape != (n,):
        raise Wrong(f"{called}: expected an array of shape {(n,)}, got shape {numbers.shape}.")
    if numbers.dtype.kind == "c":
        raise Wrong(f"{called}: expected real numbers, got {expect.shown(numbers)}.")
    return numbers.astype(float)
