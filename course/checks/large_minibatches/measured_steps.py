"""Clusters whose steps an answer measures: the seconds per step, the answer's calls, and its regret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.large_minibatches.best_times import REGRET
from course.judging import Answer, Wrong, expect
from minidl.random import Purpose, stream

Array = NDArray[Any]

MOST_CALLS = 50
"""Calls of seconds_per_step that an answer may make."""

FAR = 0.5
"""A regret above this earns no points for a small number of calls."""

GIVEN_UP = 1_000
"""Calls after which seconds_per_step raises."""


@dataclass
class Measured:
    """A cluster whose steps can be measured, and the measurements that were made.

    overhead, compute   seconds of a step with B samples: overhead + compute * B / p, at least
    idle_below          samples a node below which computing takes no less time
    slow_above          samples a node above which each further one takes 1 + slowdown times as long
    asked, returned     the minibatches that the answer measured, and the one that it returned
    """

    kind: str
    p: int
    most_per_node: int
    b_c: float
    overhead: float
    compute: float
    idle_below: float = 0.0
    slow_above: float = np.inf
    slowdown: float = 2.0
    asked: list[Any] = field(default_factory=list)
    returned: Any = None

    @property
    def called(self) -> str:
        return (
            f"best_measured_batch(seconds_per_step, b_c={self.b_c:g}, p={self.p}, most_per_node={self.most_per_node}), "
            f"{self.kind}"
        )

    def is_allowed(self, batch: Any) -> bool:
        if isinstance(batch, bool) or not isinstance(batch, int | float | np.integer | np.floating):
            return False
        return bool(batch % self.p == 0 and self.p <= batch <= self.p * self.most_per_node)

    def seconds_per_step(self, batch: Any) -> Any:
        """The seconds of a step, for one minibatch or an array of them."""
        each = batch / self.p
        computing = np.maximum(each, self.idle_below) + self.slowdown * np.maximum(each - self.slow_above, 0.0)
        return self.overhead + self.compute * computing

    def measure(self, batch: Any) -> float:
        """The function seconds_per_step that the answer calls; records each call in `asked`."""
        self.asked.append(batch)
        if len(self.asked) > GIVEN_UP:
            raise RuntimeError(f"seconds_per_step was called more than {GIVEN_UP:,} times; {MOST_CALLS} are enough")
        if not self.is_allowed(batch):
            raise ValueError(
                f"seconds_per_step: B is a multiple of p={self.p} from {self.p} to {self.p * self.most_per_node}, got "
                f"{expect.shown(batch)}"
            )
        return float(self.seconds_per_step(float(batch)))

    @cached_property
    def times(self) -> Array:
        """The seconds to the target for 1, 2, ... samples a node, in units of S_min."""
        batches = self.p * np.arange(1.0, self.most_per_node + 1)
        return np.asarray((1 + self.b_c / batches) * self.seconds_per_step(batches))


def draw(seed: int) -> list[Measured]:
    """Clusters of different kinds. As the minibatch grows, the time to the target falls, then rises."""
    rng = stream(Purpose.MANUAL, seed, "measured steps")

    def between(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")

    million = 10**6
    return [
        Measured("steps as in 4a", 8, million, between(500, 5000), between(0.05, 0.5), between(1e-3, 1e-2)),
        Measured("small minibatches leave a GPU idle", 4, million, between(2e3, 2e4), 1e-4, 1e-4, between(5e3, 2e4)),
        Measured("small minibatches leave a GPU idle", 2, million, between(2e3, 9e3), 0.0, 1e-3, between(30, 90)),
        Measured(
            "large minibatches do not fit into a cache", 16, million, between(3e5, 9e5), between(20, 90), 1e-3, 0.0,
            between(2e3, 5e3),
        ),
        Measured("the more the better", 4, int(rng.integers(20, 90)), between(5e5, 9e5), between(3, 9), 1e-3),
        Measured("the fewer the better", 8, int(rng.integers(2e5, 9e5)), between(0.1, 1), 1e-6, between(0.1, 0.9)),
        Measured("memory for one sample", 32, 1, between(100, 900), 0.1, 0.01),
        Measured("memory for two samples", 32, 2, between(2e3, 9e3), 0.1, 0.01),
        Measured("one node, and no network", 1, million, between(20, 200), 0.0, 2e-3, between(200, 900)),
        *(
            Measured(
                "what does not fit into memory is read from a disk", 4, million, between(1e7, 9e7), 1.0, 1e-6, 0.0,
                between(*edge), 1e6,
            )
            for edge in ((2e3, 9e3), (2e4, 9e4))
        ),
    ]  # fmt: skip


def runs(answer: Answer, seed: int) -> list[Measured]:
    """The answer's choice for each cluster."""
    found = draw(seed)
    for one in found:
        measure: Callable[..., Any] = one.measure
        one.returned = answer(answer.offered(measure, "seconds_per_step"), one.b_c, one.p, one.most_per_node)
    return found


def compare_regret(one: Measured, most: float = REGRET) -> None:
    """Raise Wrong unless the minibatch is allowed and among the best."""
    got = one.returned
    if not one.is_allowed(got):
        raise Wrong(
            f"{one.called}: expected a multiple of {one.p} from {one.p} to {one.p * one.most_per_node}, got "
            f"{expect.shown(got)}.",
            expect.not_a_value(got)
            or ("The samples of one node were returned: B has those of all nodes." if is_per_node(one, got) else ""),
        )
    each, least = int(got) // one.p, int(np.argmin(one.times)) + 1
    longer = one.times[each - 1] / one.times[least - 1]
    if longer <= 1 + most:
        return
    rates = (
        one.p
        * np.arange(1.0, one.most_per_node + 1)
        / one.seconds_per_step(one.p * np.arange(1.0, one.most_per_node + 1))
    )
    causes = {
        int(np.argmax(rates))
        + 1: "This minibatch has the most samples a second; how many samples are needed is not in it.",
        one.most_per_node: "The largest minibatch may have the most samples a second; most of them are wasted.",
        1: "This is the smallest minibatch.",
        min(max(round(one.b_c / one.p), 1), one.most_per_node): "B_c alone says nothing of what a step takes.",
    }
    raise Wrong(
        f"{one.called}: B = {int(got)} takes {longer:.4g} times as long to the target as B = {least * one.p}.",
        causes.get(each, ""),
    )


def is_per_node(one: Measured, got: Any) -> bool:
    """Whether an answer is within the numbers of samples that one node may have."""
    return isinstance(got, int | float) and 1 <= got <= one.most_per_node


def compare_calls(one: Measured) -> None:
    """Raise Wrong unless few calls were made, for a minibatch that is not far from the best one."""
    compare_regret(one, FAR)
    count = len(one.asked)
    if count > MOST_CALLS:
        raise Wrong(
            f"{one.called}: {count:,} calls of seconds_per_step, expected at most {MOST_CALLS}.",
            "To try all of them takes a million measurements; to halve what is left takes twenty times two."
            if count > 4 * MOST_CALLS
            else "Halve what is left in each round, or keep what was measured before.",
        )
