"""Portions of a batch on workers of several speeds: who computes what and when, and what known mistakes do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.faults_and_batch_methods import Workers
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int]
"""(portions, workers, workers of these that stop one day)"""

ATTEMPTS = 100
"""Draws of seconds, until one of two copies comes in vain before the end."""

Policy = Callable[[Sequence[int], set[int]], int | None]
"""The portion for a free worker, by how often each was handed out, and which are unfinished; None for none."""


def fewest(times: Sequence[int], left: set[int]) -> int | None:
    """The rule: the unfinished portion that was handed out least often; among these the lowest number."""
    return min(left, key=lambda i: (times[i], i), default=None)


def mistaken(times: Sequence[int], left: set[int]) -> dict[str, int | None]:
    """The portions that known mistakes choose."""

    def by_times(i: int) -> tuple[int, int]:
        return times[i], i

    return {
        "When all portions are handed out, a free worker gets a copy of one that is unfinished.": min(
            (i for i in left if not times[i]), default=None
        ),
        "A portion may need a third copy: the second worker may be slow, too, or never return.": min(
            (i for i in left if times[i] < 2), key=by_times, default=None
        ),
        "Copies go round: the portion that was handed out least often comes next, not the lowest number.": min(
            left, key=lambda i: (times[i] > 0, i), default=None
        ),
        "Among portions that were handed out equally often, the lowest number comes first.": min(
            left, key=lambda i: (times[i], i if not times[i] else -i), default=None
        ),
        "First every portion is handed out once, and only then are there copies.": min(left, default=None),
        "A copy is for an unfinished portion: this one has a result.": min(range(len(times)), key=by_times),
    }


def mistake(sentence: str) -> Policy:
    """The policy of a known mistake."""
    return lambda times, left: mistaken(times, left)[sentence]


def played(workers: Workers, policy: Policy) -> None:
    """Hand out the portions by a policy until all are finished, or no result will come."""
    n, p = len(workers.gradients), len(workers.seconds)
    times, left = [0] * n, set(range(n))

    def hand_out(w: int) -> None:
        i = policy(times, left)
        if i is not None:
            times[i] += 1
            workers.give(w, i)

    for w in range(p):
        hand_out(w)
    while left:
        try:
            w, i, _ = workers.wait()
        except RuntimeError:
            break
        left.discard(i)
        if left:
            hand_out(w)


class Portions:
    """A run of an answer on drawn workers, and what is right."""

    def __init__(self, answer: Answer, case: Case, seed: int, draw: int = 0) -> None:
        n, p, stopped = case
        same = stream(Purpose.MANUAL, seed, "gradients", *case)
        gradients = [same.normal(size=7) * 10.0 ** same.integers(-3, 4, 7) for _ in range(n)]
        self.n, self.gradients = n, gradients
        for attempt in range(ATTEMPTS):
            rng = stream(Purpose.MANUAL, seed, "seconds of portions", *case, draw, attempt)
            pace = np.exp(rng.uniform(-0.5, 0.5, (p, 1)))
            pace[rng.integers(p)] *= 6  # the straggler
            seconds = pace * rng.uniform(0.7, 1.9, (p, n))
            for w in rng.permutation(p)[:stopped]:
                seconds[w, rng.random(n) < 0.6] = np.inf
            self.workers, self.ideal = Workers(seconds.tolist(), gradients), Workers(seconds.tolist(), gradients)
            played(self.ideal, fewest)
            if len(self.ideal.returned) > n:
                break
        self.called = f"run_portions({n}, {p}, give, wait)"
        self.got = answer(n, p, answer.offered(self.workers.give, "give"), answer.offered(self.workers.wait, "wait"))

    def others(self) -> Iterator[tuple[str, Workers]]:
        """What the workers do under known mistakes, where that is something else."""
        for sentence in mistaken([0], set()):
            workers = Workers(self.ideal.seconds, self.gradients)
            played(workers, mistake(sentence))
            if workers.given != self.ideal.given:
                yield sentence, workers

    def compare_sum(self) -> None:
        """Raise Wrong unless the gradients of all portions were added up, each once."""
        want = np.sum(self.gradients, axis=0)
        mistakes = {
            "The sum is asked for, not the mean.": want / self.n,
            "This is the gradient of the portion that came last.": self.gradients[self.workers.returned[-1]]
            if self.workers.returned
            else want,
        }
        if len(self.workers.returned) > self.n:
            mistakes["A portion counts once: the later result of a copy is dropped."] = sum(
                self.gradients[i] for i in self.workers.returned
            )
        atol = 1e-12 * np.abs(self.gradients).sum(axis=0)
        mistakes = {sentence: value for sentence, value in mistakes.items() if np.any(np.abs(value - want) > atol)}
        expect.array(self.got, want, f"{self.called}: the sum", rtol=0.0, atol=atol, mistakes=mistakes)

    def compare_first(self) -> None:
        """Raise Wrong unless each portion was first handed out in its turn, to the worker that was free."""
        self._compare(*(self._first(each.given) for each in (self.workers, self.ideal)))

    def _first(self, given: list[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
        """What was handed out until every portion had been so once."""
        seen: set[int] = set()
        for place, (_, _, i) in enumerate(given):
            seen.add(i)
            if len(seen) == self.n:
                return given[: place + 1]
        return given

    def compare_all(self) -> None:
        """Raise Wrong unless all was handed out in its turn, and nothing was waited for in the end."""
        self._compare(self.workers.given, self.ideal.given)
        late, end = self.workers.clock, self.ideal.clock
        expect.true(
            late == end,
            f"{self.called}: returned at {late:.4g} s, the last portion was finished at {end:.4g} s.",
            "Copies that still run are not waited for."
            if late > end
            else "Every portion is waited for.",
        )  # fmt: skip

    def _compare(self, got: list[tuple[float, int, int]], want: list[tuple[float, int, int]]) -> None:
        if got == want:
            return
        place = next((k for k, both in enumerate(zip(got, want, strict=False)) if both[0] != both[1]), None)
        place = min(len(got), len(want)) if place is None else place
        causes = [sentence for sentence, other in self.others() if other.given == self.workers.given]
        told = [
            f"portion {each[place][2]} for worker {each[place][1]} at {each[place][0]:.4g} s"
            if place < len(each)
            else "nothing more"
            for each in (want, got)
        ]
        raise Wrong(
            f"{self.called}: after {counted(place, 'call')} of give, expected {told[0]}, got {told[1]}.",
            causes[0] if len(causes) == 1 else "",
        )


def compare_bits(runs: Sequence[Portions]) -> None:
    """Raise Wrong unless the sums of all runs, on workers of other speeds, have the same bits."""
    for one in runs[1:]:
        expect.same_bits(
            one.got,
            np.asarray(runs[0].got),
            f"{one.called}: the sum, on workers of other speeds than before",
        )
