"""Small reports: ten tricks, each planted in one report, and ten clean reports that look like them."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from course.judging import Answer, Wrong, expect
from minidl.random import Purpose, stream

TRICKS = {
    "hardware": "ours and baseline ran on different hardware",
    "options": "ours has its seconds with one precision, and its accuracy with another",
    "training": "the claimed accuracy is the mean training accuracy of ours",
    "best": "the claimed accuracy is that of the best seed of ours, not the mean",
    "left out": "ours has fewer seeds than baseline",
    "worse": "ours is less accurate than baseline on the claimed nodes, by more than two standard errors",
    "minibatch": "the scaling is called strong, and ours has another minibatch than baseline on the claimed nodes",
    "peak": "ours has more samples per second than its samples and seconds give",
    "sizes": "baseline ran on numbers of nodes on which ours did not",
    "extrapolated": "ours did not run on the claimed nodes",
}
TWINS = {
    "hardware": "both ran on the same hardware, whatever it is called",
    "options": "seconds and accuracy of ours are in rows of their own, with one precision",
    "training": "the claimed accuracy is the mean test accuracy; that it is below the training accuracy is usual",
    "best": "the claimed accuracy is the mean of the seeds, though one of them is better",
    "left out": "both have the same seeds, though some numbers are skipped",
    "worse": "ours is less accurate by less than two standard errors",
    "minibatch": "the minibatch differs, but the scaling is called weak",
    "peak": "samples per second are samples / seconds",
    "sizes": "both ran on the same numbers of nodes",
    "extrapolated": "ours ran on the claimed nodes, the most that there are",
}
HARDWARE = ("A100", "H100", "V100", "MI300", "EPYC 9654", "Xeon 8480")
Row = dict[str, Any]


@dataclass
class Report:
    """A report about one trick.

    trick      the planted one, or of which this is the clean twin
    is_planted whether it is there
    claim      the headline; rows: one per run, or per speed and per accuracy of a run
    """

    trick: str
    is_planted: bool
    claim: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    @property
    def right(self) -> str:
        """What `find_trick` must return."""
        return self.trick if self.is_planted else "clean"

    def judge(self, answer: Answer) -> None:
        """Raise Wrong unless the answer names the trick, or finds none in a clean twin."""
        got = answer(self.claim, self.rows)
        about = (TRICKS if self.is_planted else TWINS)[self.trick]
        called = f"find_trick({self.claim}, {len(self.rows)} rows)"
        if not isinstance(got, str):
            raise Wrong(f"{called}: expected a name, got {expect.shown(got)}.", expect.not_a_value(got))
        if got != self.right:
            kind = "A false alarm" if not self.is_planted else "A miss" if got == "clean" else "Another trick"
            raise Wrong(f"{called}: expected {self.right!r}, got {got!r}.", f"{kind}: in this report {about}.")


def pair(trick: str, seed: int) -> list[Report]:
    """The report with the trick and its clean twin, each with numbers of its own."""
    return [drawn(trick, is_planted, seed) for is_planted in (True, False)]


def drawn(trick: str, is_planted: bool, seed: int) -> Report:
    rng = stream(Purpose.MANUAL, seed, "report", trick, int(is_planted))
    one = Report(trick, is_planted)
    nodes = sorted(int(n) for n in rng.choice([2, 3, 4, 6, 8, 12, 16], 3, replace=False))
    count = int(rng.integers(4, 7))
    seeds = sorted(int(s) for s in rng.choice(9, count, replace=False)) if trick == "left out" else list(range(count))
    batch, samples = int(rng.integers(3, 20)) * 48, int(rng.integers(50, 400)) * 1000
    hardware = [str(name) for name in rng.choice(HARDWARE, 2, replace=False)] if trick == "hardware" else ["A100"]
    precision = [str(name) for name in rng.permutation(["float16", "float32", "bfloat16"])[:2]]
    work, share = rng.uniform(300, 900), {"baseline": rng.uniform(0.55, 0.7), "ours": rng.uniform(0.75, 0.95)}
    level, deviations = rng.uniform(0.75, 0.93), np.sort(rng.normal(0, 0.004, len(seeds)))
    deviations[-1] += 0.004  # one seed that is clearly the best
    shift = {"worse": -0.03 if is_planted else -0.001}.get(trick, 0.001)
    counts = {"ours": nodes[:2]} if (trick, is_planted) == ("sizes", True) else {}
    for method in ("baseline", "ours"):
        is_ours, order = method == "ours", rng.permutation(len(seeds))
        for n in counts.get(method, nodes):
            for place, s in enumerate(seeds):
                if is_ours and (trick, is_planted) == ("left out", True) and place < len(seeds) // 2:
                    continue
                seconds = work / n ** share[method] * rng.uniform(0.97, 1.03)
                accuracy = level + deviations[order[place]] + (shift if is_ours else 0.0)
                larger = n if is_ours and trick == "minibatch" else 1
                row = {
                    "method": method,
                    "nodes": n,
                    "hardware": hardware[is_ours and (trick, is_planted) == ("hardware", True)],
                    "precision": precision[0],
                    "batch_size": batch * larger,
                    "seed": s,
                    "samples": samples,
                    "seconds": seconds,
                    "samples_per_second": samples / seconds,
                    "accuracy": accuracy,
                    "training_accuracy": accuracy + rng.uniform(0.02, 0.04),
                }
                if is_ours and (trick, is_planted) == ("peak", True):
                    row["samples_per_second"] *= rng.uniform(1.3, 1.9)
                if is_ours and trick == "options":
                    speed = {"accuracy": None, "training_accuracy": None}
                    other = precision[1] if is_planted else precision[0]
                    quality = {"seconds": None, "samples_per_second": None, "precision": other}
                    one.rows += [row | speed, row | quality]
                else:
                    one.rows.append(row)
    one.rows = [one.rows[i] for i in rng.permutation(len(one.rows))]
    one.claim = _claim(one, nodes[2 if trick == "extrapolated" else 1], rng)
    return one


def _claim(one: Report, nodes: int, rng: np.random.Generator) -> dict[str, Any]:
    def numbers(method: str, column: str) -> list[float]:
        rows = [row for row in one.rows if row["method"] == method and row["nodes"] == nodes]
        return [row[column] for row in rows if row[column] is not None]

    planted = one.trick if one.is_planted else ""
    accuracy = fmean(numbers("ours", "training_accuracy" if planted == "training" else "accuracy"))
    if planted == "best":
        accuracy = max(numbers("ours", "accuracy"))
    is_weak = one.trick == "minibatch" and not one.is_planted
    return {
        "nodes": nodes + int(rng.integers(1, 40)) if planted == "extrapolated" else nodes,
        "speedup": fmean(numbers("baseline", "seconds")) / fmean(numbers("ours", "seconds")),
        "accuracy": accuracy,
        "scaling": "weak" if is_weak else "strong",
    }
