"""Goodput of a job that saves and fails, the best interval between checkpoints, and what known mistakes give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from course.judging import Answer, Wrong, expect
from minidl.random import Purpose, stream

Case = tuple[int, float, float]
"""(nodes; seconds of writing and of restarting, both over the job's mean time between failures)"""

ALLOWED = 0.002
"""The share by which the job may take longer than with the best interval."""

MOST = 1e30
"""Seconds of no interval."""


def goodput(tau: float, M: float, write: float, restart: float) -> float:
    """The share of the time that counts, by Daly's exact formula (2006, section 3); infinitely long runs give 0."""
    x, r = (tau + write) / M, restart / M
    return 0.0 if x + r > 700 else tau / (M * math.exp(r) * math.expm1(x))


def best(M: float, write: float) -> float:
    """The oracle, by bisection: the goodput's derivative is 0 where (tau + write) / M + log(1 - tau / M) is."""
    low, high = 0.0, M
    for _ in range(200):
        middle = (low + high) / 2
        below = middle < M and (middle + write) / M + math.log1p(-middle / M) > 0
        low, high = (middle, high) if below else (low, middle)
    return low


def mistaken(nodes: int, mtbf: float, write: float, restart: float) -> dict[str, float]:
    """The intervals of known mistakes."""
    M = mtbf / nodes
    young = math.sqrt(2 * write * M)
    return {
        "This is Young's formula, for writes that take much less than the time between failures.": young,
        "This is Daly's formula of first order, for writes that take much less than the time between failures.": young
        - write,
        "This is a formula for writes that take much less than the time between failures.": math.sqrt(
            2 * write * (M + restart)
        ),
        "The job fails when any of its nodes fails: N times as often as a node.": best(mtbf, write),
        "The interval does not contain the writing.": best(M, write) + write,
        "This is the mean time between failures: with it most work is lost.": M,
    }


class Asked:
    """An answer for a job, and what is right."""

    def __init__(self, answer: Answer, case: Case, seed: int) -> None:
        nodes, write, restart = case
        rng = stream(Purpose.MANUAL, seed, "a cluster", nodes, f"{write} {restart}")
        self.mtbf = float(f"{86_400 * np.exp(rng.uniform(np.log(4), np.log(90))):.4g}")
        self.nodes, self.M = nodes, self.mtbf / nodes
        self.write, self.restart = (float(f"{self.M * share:.4g}") for share in (write, restart))
        self.given = nodes, self.mtbf, self.write, self.restart
        self.called = f"best_interval{self.given}"
        got = answer(*self.given)
        pair = got.tolist() if isinstance(got, np.ndarray) else got
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise Wrong(
                f"{self.called}: expected a pair (interval, goodput), got {expect.shown(got)}.", expect.not_a_value(got)
            )
        interval, self.goodput = pair
        if isinstance(interval, bool) or not isinstance(interval, (int, float)) or not 0 < interval < MOST:
            raise Wrong(
                f"{self.called}: expected an interval of more than 0 seconds, got {expect.shown(interval)}.",
                expect.not_a_value(interval),
            )
        self.interval = float(interval)

    def regret(self) -> float:
        """The share by which the job takes longer with this interval than with the best one."""
        reached = goodput(self.interval, self.M, self.write, self.restart)
        return goodput(best(self.M, self.write), self.M, self.write, self.restart) / max(reached, 1e-300) - 1

    def compare_goodput(self) -> None:
        """Raise Wrong unless the goodput is that of the interval."""
        tau, M, write, r = self.interval, self.M, self.write, self.restart / self.M
        want, e = goodput(tau, M, write, self.restart), min((tau + write) / M, 300.0)
        mistakes = {
            "Goodput is the work over the time, not the time over the work.": 1 / want if want else 0.0,
            "After each failure, the restart takes time, too.": tau / (M * math.expm1(e)),
            "Failures come during a restart, too.": tau / (M * (1 + r) * math.expm1(e)),
            "This is the restart once in each interval: there may be no failure, or several.": tau
            / (M * math.expm1(e) + self.restart),
            "A failure while saving loses the interval, too.": tau
            / (M * math.exp(r) * math.expm1(min(tau / M, 300.0)) + write),
            "Writing is no useful work: only the interval is.": (tau + write) / (M * math.exp(r) * math.expm1(e)),
            "The job fails when any of its nodes fails: N times as often as a node.": goodput(
                tau, self.mtbf, write, self.restart
            ),
            "This is the goodput without failures.": tau / (tau + write),
            "This is an approximation for failures that are rare: 1 - write / interval - interval / 2 M.": 1
            - write / tau - tau / (2 * M),
            "The goodput is a share of 1, not of 100.": 100 * want,
        }  # fmt: skip
        mistakes = {text: value for text, value in mistakes.items() if abs(value - want) > 1e-6 * want}
        called = f"{self.called}: the goodput with an interval of {tau:.6g} s"
        expect.number(self.goodput, want, called, rtol=1e-9, atol=0.0, mistakes=mistakes)


def compare_intervals(group: Sequence[Asked]) -> None:
    """Raise Wrong unless each job takes at most 1 % longer than with the best interval."""
    late = [one for one in group if one.regret() > ALLOWED]
    if not late:
        return
    worst = max(late, key=Asked.regret)
    regret = worst.regret()
    longer = f"{100 * regret:.3g} % longer than with" if regret < 10 else "more than ten times as long as with"
    causes = [
        sentence
        for sentence in mistaken(*worst.given)
        if all(math.isclose(one.interval, mistaken(*one.given)[sentence], rel_tol=1e-3) for one in group)
    ]
    raise Wrong(
        f"{worst.called}: with an interval of {worst.interval:.6g} s the job takes {longer} the best one, "
        f"expected at most {100 * ALLOWED:g} % longer. So it is on {len(late)} of {len(group)} jobs.",
        causes[0] if len(causes) == 1 else "",
    )
