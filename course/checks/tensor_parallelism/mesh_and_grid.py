"""The groups of a mesh and the cheapest grid: the right results, and what known mistakes give."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from course.judging import Answer, Wrong, expect

Mesh = tuple[int, int, int]
"""(dp, pp, tp)"""

Cluster = tuple[int, int, int, int]
"""(p, B, d, h)"""

CASES: tuple[Cluster, ...] = (
    (12, 24, 6, 12), (8, 16, 4, 64), (8, 4096, 4, 8), (16, 64, 3, 256), (1, 2, 3, 4), (6, 30, 5, 36), (8, 24, 5, 104),
    (16, 16, 3, 256), (64, 192_000, 100_003, 12_352),
)  # fmt: skip
"""The clusters on which `best_grid` is checked; hidden tests have others."""

NAMES = ("dp", "pp", "tp")


def groups(extents: Mesh, order: Sequence[int] = (0, 1, 2)) -> dict[str, list[list[int]]]:
    """The groups of each axis. order: the axes, that of the slowest coordinate first."""
    shape = [extents[axis] for axis in order]
    ranks = np.arange(int(np.prod(shape))).reshape(shape)
    found = {}
    for place, axis in enumerate(order):
        found[NAMES[axis]] = sorted(np.moveaxis(ranks, place, -1).reshape(-1, shape[place]).tolist())
    return found


def judge_groups(answer: Answer, extents: Mesh, names: Sequence[str]) -> None:
    """Raise Wrong unless the answer has the right groups of these axes."""
    called = f"mesh_groups({', '.join(map(str, extents))})"
    got = answer(*extents)
    if not isinstance(got, dict) or set(got) != set(NAMES):
        raise Wrong(
            f'{called}: expected a dictionary with the keys "dp", "pp" and "tp", got {expect.shown(got)}.',
            expect.not_a_value(got),
        )
    want = groups(extents)
    for name in names:
        listed = plain(got[name], f'{called}["{name}"]')
        if sorted(listed) != want[name]:
            raise Wrong(
                f'{called}["{name}"]: expected the groups {expect.shown(want[name])} in any order, got '
                f"{expect.shown(listed)}.",
                cause(extents, name, listed),
            )


def plain(value: Any, called: str) -> list[list[int]]:
    """Groups as lists of integers; tuples and arrays of integers will do."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        value = value.tolist()
    value = expect.listed(value, called, "a list of groups")
    found = []
    for group in value:
        ranks = group.tolist() if isinstance(group, np.ndarray) and group.dtype.kind in "iu" else group
        if not isinstance(ranks, (list, tuple)) or not all(type(rank) is int for rank in ranks):
            raise Wrong(f"{called}: expected a list of ranks for each group, got {expect.shown(group)}.")
        found.append(list(ranks))
    return found


def cause(extents: Mesh, name: str, listed: list[list[int]]) -> str:
    """The likely mistake."""
    want = groups(extents)
    if sorted(map(sorted, listed)) == want[name]:
        return "The ranks of a group are in ascending order."
    for order in permutations(range(3)):
        if order != (0, 1, 2) and sorted(listed) == groups(extents, order)[name]:
            if order[2] == 2:
                return "The tensor coordinate changes first, then the stage: here the stage changes after the replica."
            return "From one rank to the next, the tensor coordinate changes first: here another one does."
    if any(sorted(listed) == want[other] for other in NAMES if other != name):
        return "These are the groups of another axis: in a group only one coordinate differs."
    if len({rank for group in listed for rank in group}) != sum(map(len, listed)):
        return "A rank is in one group of each kind, not in several."
    if {rank for group in listed for rank in group} != set(range(int(np.prod(extents)))):
        return "Each rank is in a group of each kind, also if it is alone in it."
    return "In a group only one coordinate differs; the two others are the same."


def words(p: int, tp: int, B: int, d: int, h: int) -> float:
    """Words that a rank sends in a step on p / tp replicas of tp ranks each: the oracle."""
    dp = p // tp
    return 4 * (tp - 1) / tp * (B / dp) * d + 2 * (dp - 1) / dp * 2 * d * h / tp


def grids(p: int) -> list[int]:
    """The possible tp."""
    return [tp for tp in range(1, p + 1) if p % tp == 0]


def returned(answer: Answer, cluster: Cluster) -> tuple[str, int, int, Any]:
    """The call, and dp, tp and the words of the answer."""
    p = cluster[0]
    called = f"best_grid({', '.join(map(str, cluster))})"
    dp, tp, sent = expect.listed(answer(*cluster), called, "(dp, tp, words)", 3)
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (dp, tp)) or dp < 1 or dp * tp != p:
        raise Wrong(
            f"{called}: expected integers dp and tp with dp tp = {p}, got {expect.shown(dp)} and {expect.shown(tp)}.",
            "`//` divides integers." if isinstance(dp, float) or isinstance(tp, float) else "",
        )
    return called, dp, tp, sent


def judge_choice(answer: Answer, cluster: Cluster) -> None:
    """Raise Wrong unless the grid sends the fewest words."""
    p, B, d, h = cluster
    called, dp, tp, _ = returned(answer, cluster)
    least = min(words(p, each, B, d, h) for each in grids(p))
    got = words(p, tp, B, d, h)
    if got > least * (1 + 1e-9):
        most = max(words(p, each, B, d, h) for each in grids(p))
        raise Wrong(
            f"{called}: expected a grid on which a rank sends {least:g} words, got {dp} times {tp}, on which it sends "
            f"{got:g}.",
            "This grid sends the most." if got == most and most > least else
            "There are grids between data parallelism and tensor parallelism." if 1 in (dp, tp) else "",
        )  # fmt: skip


def judge_words(answer: Answer, cluster: Cluster) -> None:
    """Raise Wrong unless the number of words is that of the grid which the answer chose."""
    p, B, d, h = cluster
    called, dp, tp, sent = returned(answer, cluster)
    want = words(p, tp, B, d, h)
    activations, gradients = 2 * (tp - 1) / tp * (B / dp) * d, 2 * (dp - 1) / dp * 2 * d * h / tp
    mistakes = {
        "There are two all-reduces of activations: one in the forward, one in the backward.": activations + gradients,
        "The gradients of both weights are all-reduced, w1 and w2.": 2 * activations + gradients / 2,
        "A replica has B / dp samples.": 2 * activations * dp + gradients,
        "A rank has the gradients of its shards only: d h / tp each.": 2 * activations + gradients * tp,
        "In a ring all-reduce a rank sends 2 (q - 1) / q n words.": want / 2,
        "The gradients are missing.": 2 * activations,
        "The activations are missing.": gradients,
        "The factor (q - 1) / q is missing.": 4 * (B / dp) * d * (tp > 1) + 4 * d * h / tp * (dp > 1),
        "These are the words of all p ranks together.": want * p,
        "These are bytes.": 8 * want,
    }
    wrong = {sentence: value for sentence, value in mistakes.items() if abs(value - want) > 1e-9}
    expect.number(sent, want, f"{called}: words on the grid of {dp} times {tp}", rtol=1e-9, mistakes=wrong)
