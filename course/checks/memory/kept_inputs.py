"""Checkpoints of a chain: the bytes of the best ones, by closed form and by a table, and runs that recompute."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.pipelines import layer_cuts
from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.memory import Chain, recomputed, recomputed_bytes
from minidl.random import Purpose, stream

Array = NDArray[Any]

TRAPS: tuple[list[int], ...] = (
    [1, 9, 9, 1, 9, 9, 1, 9, 9],
    [30, 2, 2, 2, 2, 2, 2],
    [5, 5, 5, 1, 5, 5, 5],
    [4, 4, 1, 1, 1, 1, 1, 40, 1, 1],
    [3_000_000_001, 1, 3, 3_000_000_000, 2, 5],
    [4, 1, 1, 1, 9, 6, 10, 6, 5, 1, 3, 3],
    [1, 9] * 10,
)
"""Sizes for which equal segments, segments of equal bytes, or the smallest inputs are not best, nor what is found from
equal segments by changing two at a time, nor a number of checkpoints near the square root of n."""


def peak(sizes: Sequence[int], keep: Sequence[int]) -> int:
    """The bytes of the kept inputs and of the inputs of the largest segment, as Chen et al. (2016) count them."""
    return sum(sizes[i] for i in keep) + max(sum(sizes[a:b]) for a, b in pairwise([*keep, len(sizes)]))


def best(sizes: Sequence[int]) -> list[int]:
    """The oracle: checkpoints of the smallest peak. For each bound of a segment, those that keep the fewest bytes."""
    n, before = len(sizes), [0]
    for size in sizes:
        before.append(before[-1] + size)
    found: list[list[int]] = []
    for bound in sorted({before[b] - before[a] for a in range(n) for b in range(a + 1, n + 1)}):
        least: list[tuple[float, int]] = [(0, -1)]  # of the first b layers: the bytes kept, and the last checkpoint
        for b in range(1, n + 1):
            choices = [(least[a][0] + sizes[a], a) for a in range(b) if before[b] - before[a] <= bound]
            least.append(min(choices, default=(float("inf"), -1)))
        if least[n][0] < float("inf"):
            keep, end = [], n
            while end:
                end = least[end][1]
                keep.append(end)
            found.append(keep[::-1])
    return min(found, key=lambda keep: peak(sizes, keep))


def least_of_equal(n: int) -> int:
    """The oracle for n inputs of one byte: the smallest k + ceil(n / k)."""
    return min(k + -(-n // k) for k in range(1, n + 1))


def drawn(n: int, seed: int) -> list[int]:
    """n sizes, a few of them large."""
    rng = stream(Purpose.MANUAL, seed, "bytes of inputs", n)
    return [int(size) for size in rng.integers(1, 40, n) * np.where(rng.random(n) < 0.25, 6, 1)]


def judge(answer: Answer, sizes: list[int]) -> None:
    """Raise Wrong unless the answer's checkpoints have the smallest peak."""
    n, is_equal = len(sizes), len(set(sizes)) == 1
    given = f"[{sizes[0]}] * {n}" if is_equal else expect.shown(sizes) if n <= 12 else f"{n} sizes"
    called = f"checkpoints({given})"
    got = answer(list(sizes))
    keep = got.tolist() if isinstance(got, np.ndarray) else got
    if not isinstance(keep, (list, tuple)) or not all(type(i) is int for i in keep):
        raise Wrong(
            f"{called}: expected a list of whole numbers, got {expect.shown(got)}.",
            "A set has no order; sorted(…) makes a list of it." if isinstance(got, (set, frozenset))
            else expect.not_a_value(got),
        )  # fmt: skip
    if not keep or keep[0] != 0 or any(a >= b for a, b in pairwise(keep)) or keep[-1] >= n:
        raise Wrong(
            f"{called}: expected numbers of layers in ascending order, from 0 to at most {n - 1}, the first of them 0; "
            f"got {expect.shown(keep)}.",
            "Layer 0 has no layer before it: its input cannot be recomputed, so it is kept."
            if not keep or (keep[0] and sorted(set(keep)) == list(keep) and keep[-1] < n)
            else "A segment begins at a kept input; the end of the last layer, n, is none."
            if keep[-1] == n
            else "A layer is there once." if len(set(keep)) < len(keep) else "",
        )  # fmt: skip
    want, came = (least_of_equal(n) * sizes[0] if is_equal else peak(sizes, best(sizes))), peak(sizes, keep)
    better = f", with {best(sizes)} for example" if n <= 12 else ""
    expect.true(
        came == want,
        f"{called}: {came} bytes at the peak with {expect.shown(list(keep))}, {want} are possible{better}.",
        cause_of(sizes, list(keep)),
    )


def cause_of(sizes: list[int], keep: list[int]) -> str:
    """The likely mistake of checkpoints that are not the best."""
    n, lengths = len(sizes), [b - a for a, b in pairwise([*keep, len(sizes)])]
    if len(keep) == n:
        return "Every input is kept: that is no checkpointing."
    if len(keep) == 1:
        return "Only the input of the model is kept: then its backward needs all inputs at once."
    if len(set(sizes)) == 1:
        if max(lengths) > -(-n // len(keep)):
            return "The longest segment counts: make the segments as equal as possible, at most ceil(n / k) layers."
        return "k + ceil(n / k) is smallest near k = sqrt(n): if sqrt(n) is no whole number, try those next to it."
    bound = max(sum(sizes[a:b]) for a, b in pairwise([*keep, n]))
    if keep == np.cumsum([0, *layer_cuts.filled(sizes, bound)])[:-1].tolist():
        return "Segments that are filled up to a bound may begin at large inputs. Begin them at small ones."
    if len(keep) + max(lengths) == least_of_equal(n) and max(lengths) - min(lengths[:-1]) <= 1:
        return "Segments of equally many layers are best only if all inputs have equally many bytes."
    return "Both count, the bytes that are kept and those of the largest segment: try every bound of a segment."


WORKING = 8
"""Arrays like an input that backward needs besides its inputs: gradients, and what a layer computes in between."""

Run = tuple[int, tuple[int, ...]]
"""(n, the layers whose inputs are kept)"""


class Recomputed:
    """A run of an answer that recomputes, and what is right."""

    def __init__(self, answer: Answer, case: Run, seed: int) -> None:
        self.answer, self.n, self.keep = answer, case[0], [0, *case[1]]
        rng = stream(Purpose.MANUAL, seed, "recomputed chain", self.n, len(self.keep))
        self.weights = [rng.normal(size=(3, 3)) for _ in range(self.n)]
        self.x = rng.normal(size=(2, 3)) + 0.3
        self.called = f"recomputed_gradients with n = {self.n}, keep = {expect.shown(self.keep)}"
        self.got = answer.run(recomputed, self.weights, list(self.keep), self.x.copy())
        self.longest = max(b - a for a, b in pairwise([*self.keep, self.n]))

    def compare_gradients(self) -> None:
        """Raise Wrong unless loss and gradients are those without checkpoints."""
        loss, gradients = expect.listed(self.got["returned"], self.called, "a pair (loss, gradients)", 2)
        right_loss, right, wrong_inputs = passed(self.weights, self.x, self.keep)
        expect.number(loss, right_loss, f"{self.called}: the loss", rtol=1e-12)
        if isinstance(gradients, np.ndarray):
            gradients = list(gradients)
        expect.listed(gradients, self.called, f"a list of {self.n} gradients, one for each layer", self.n)
        for i, want in enumerate(right):
            mistakes = {
                "The gradients are in the order of backward: the list begins with layer 0's.": right[self.n - 1 - i],
                "Every backward has the input of its segment's first layer: each layer needs its own.": wrong_inputs[i],
            }
            mistakes = {text: value for text, value in mistakes.items() if not np.allclose(value, want)}
            expect.same_bits(gradients[i], want, f"{self.called}: gradients[{i}]", mistakes)

    def compare_live(self) -> None:
        """Raise Wrong unless at most k + m inputs were alive."""
        most, k = self.got["most"], len(self.keep)
        expect.true(
            most <= k + self.longest,
            f"{self.called}: {most} inputs are alive at a time, expected at most k + m = {k} + {self.longest}, those "
            f"kept and the inputs of the longest segment.",
            "The first forward keeps the inputs of the layers in `keep` alone."
            if self.got["most_in_first"] > k + self.longest
            else "Release the inputs of a segment before those of the next one are recomputed."
            if most > k + self.longest + 1
            else "One too many: a variable still refers to an input, or the output of a segment is computed again.",
        )

    @cached_property
    def peak_inputs(self) -> float:
        """The peak memory of a call with large inputs, in bytes of such an input."""
        x = np.tile(self.x, (1500, 1))
        return float(self.answer.run(recomputed_bytes, self.weights, list(self.keep), x) / x.nbytes)

    def compare_bytes(self) -> None:
        """Raise Wrong unless the bytes of all arrays, with large inputs, are those of k + m inputs and a few more."""
        most, allowed = self.peak_inputs, len(self.keep) + self.longest
        expect.true(
            most <= allowed + WORKING,
            f"{self.called}, large inputs: at the peak a call needs the bytes of {most:.0f} inputs, expected at most "
            f"those of k + m = {allowed} inputs and of {WORKING} gradients and results in between.",
            "An input also takes memory in another form: as a copy, in a larger array, as bytes or in a list.",
        )

    def compare_calls(self) -> None:
        """Raise Wrong unless each input is computed at most twice, and kept ones once."""
        forwards, backwards = self.got["forwards"], self.got["backwards"]
        for i, count in enumerate(forwards):
            is_kept = i + 1 in self.keep or i == self.n - 1
            expect.true(
                count <= 2 - is_kept and count >= 1,
                f"{self.called}: forward of layer {i} was called {counted(count, 'time')}, expected "
                f"{'once' if is_kept else 'at most twice'}.",
                ("The loss" if i == self.n - 1 else f"The input of layer {i + 1}, which is kept,")
                + " need not be computed again."
                if is_kept
                else "Recompute the inputs of a segment once, and keep them until its backward is done: from its "
                "checkpoint on, not from the input of the model.",
            )
        wrong = next((i for i, count in enumerate(backwards) if count != 1), None)
        if wrong is not None:
            times = counted(backwards[wrong], "time")
            raise Wrong(f"{self.called}: backward of layer {wrong} was called {times}, expected once.")


def passed(weights: Sequence[Array], x: Array, keep: Sequence[int]) -> tuple[float, list[Array], list[Array]]:
    """The loss, the gradients of a chain that keeps everything, and those if only the inputs in `keep` were right."""
    chain, inputs, n = Chain(weights), [x], len(weights)
    for i in range(n - 1):
        inputs.append(chain.forward(i, inputs[-1]))
    found: list[list[Array]] = []
    for given in (inputs, [inputs[max(a for a in keep if a <= i)] for i in range(n)]):
        g: Any = 1.0
        gradients = []
        for i in reversed(range(n)):
            g, gw = chain.backward(i, given[i], g)
            gradients.append(gw)
        found.append(gradients[::-1])
    return chain.forward(n - 1, inputs[-1]), *found
