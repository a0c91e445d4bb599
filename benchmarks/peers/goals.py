"""The goals that minidl's speed should reach. The tables show each beside what was measured."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from benchmarks.peers.comparisons import Comparison
from benchmarks.peers.step import gpu
from benchmarks.peers.step.run import PEERS, alike
from benchmarks.peers.step.side import COMPILED
from benchmarks.peers.step.workloads import WORKLOADS
from minidl.plots.style import seconds_text


class Goal(NamedTuple):
    """An upper bound on the ratio, or on minidl's seconds, of the cases that it matches.

    Parameters
        benchmark   the benchmark that measures it
        most        the largest value that meets the goal
        case        "" matches every case
        setting     "" matches every setting
        is_seconds  whether `most` bounds minidl's median time; by default it bounds the median ratio
        against     libraries without which the goal is not judged
    """

    benchmark: str
    most: float
    case: str = ""
    setting: str = ""
    is_seconds: bool = False
    against: frozenset[str] = frozenset()

    def matches(self, one: Comparison) -> bool:
        return self.benchmark == one.benchmark and self.case in ("", one.case) and self.setting in ("", one.setting)


MPICH = frozenset(["MPICH"])
GOALS = (
    *(
        Goal("step", 1.0, f"compiled {case}" if side == COMPILED else case, against=frozenset(peers))
        for case, workload in WORKLOADS.items()
        for side, peers in alike(workload, [*PEERS]).items()
    ),
    # 1.7 times the samples a second, where a step takes more than 1 ms
    *(Goal("scaling", 1 / 1.7, case, "2 nodes") for case in ("mlp-large", "lenet", "resnet-8", "gpt")),
    Goal("collectives", 3.0, "4 KB", "2 nodes", against=MPICH),
    Goal("collectives", 1.3, "64 KB", "2 nodes", against=MPICH),
    Goal("collectives", 1.1, "1 MB", "2 nodes", against=MPICH),
    Goal("collectives", 0.5, "100 MB", "2 nodes", against=MPICH),
    Goal("compressors", 6.0, setting="encode"),
    Goal("compressors", 2.0, setting="decode"),
    Goal("simulation", 1 / 200_000, "a message by messages", "64 ranks", is_seconds=True),
    Goal("start", 15.0, "kernels of all models", is_seconds=True),
    *(Goal("start", 6.0, f"kernels of {model}", is_seconds=True) for model in ("mlp", "lenet", "resnet", "gpt")),
    Goal("start", 0.25, "minidl --help", is_seconds=True),
    Goal("start", 0.3, "import minidl.parallel", is_seconds=True),
    Goal("gpu", 2.0, against=frozenset(gpu.PEERS)),
)


def verdict(one: Comparison, measured: set[str]) -> str:
    """The goal and whether it is met: "≤ 1.00: met"; the goal alone if its libraries are missing; "" without a goal."""
    goal = next((goal for goal in GOALS if goal.matches(one)), None)
    if goal is None:
        return ""
    said = f"≤ {seconds_text(goal.most) if goal.is_seconds else f'{goal.most:.2f}'}"
    if not goal.against <= measured:
        return said
    value = statistics.median(one.ours) if goal.is_seconds else one.ratio
    return f"{said}: {'met' if value <= goal.most else 'missed'}"
