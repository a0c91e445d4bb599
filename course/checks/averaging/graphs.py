"""Graphs of machines, mixing matrices, and their consensus factor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from minidl.random import Purpose, stream

Array = NDArray[Any]
Graph = tuple[str, int]
"""A kind of graph, and its number of machines."""

ROUNDING = 1e-9


def neighbours(graph: Graph, seed: int) -> list[list[int]]:
    """For each machine, its neighbours; in ascending order but for random graphs."""
    kind, p = graph
    if kind == "ring":
        edges = {(i, (i + 1) % p) for i in range(p)} if p > 1 else set()
    elif kind == "path":
        edges = set(pairwise(range(p)))
    elif kind == "star":
        edges = {(0, i) for i in range(1, p)}
    elif kind == "full":
        edges = {(i, j) for i in range(p) for j in range(i)}
    elif kind == "two stars":  # whose centres are joined
        edges = {(i % 2, i) for i in range(2, p)} | {(0, 1)}
    else:  # a random tree, and some more edges
        rng = stream(Purpose.MANUAL, seed, "a random graph", p)
        edges = {(int(rng.integers(i)), i) for i in range(1, p)}
        edges |= {(int(i), int(j)) for i, j in rng.integers(0, p, (p // 2, 2)) if i != j}
    found: list[set[int]] = [set() for _ in range(p)]
    for i, j in edges:
        found[i].add(j)
        found[j].add(i)
    return [sorted(each, key=lambda j: j * 7 % p if kind == "random" else j) for each in found]


def equal_weights(near: Sequence[Sequence[int]]) -> Array:
    """The mixing matrix with weight 1 / (1 + largest number of neighbours) for each pair, the rest for itself."""
    weight = 1 / (1 + max(map(len, near)))
    w = np.zeros((len(near), len(near)))
    for i, others in enumerate(near):
        w[i, list(others)] = weight
        w[i, i] = 1 - weight * len(others)
    return w


def drawn_weights(graph: Graph, seed: int) -> Array:
    """A symmetric mixing matrix of this graph, in which each pair has another weight."""
    near = neighbours(graph, seed)
    rng, most = stream(Purpose.MANUAL, seed, "weights of a graph", *graph), 1 / (1 + max(map(len, near)))
    w = np.zeros((len(near), len(near)))
    for i, others in enumerate(near):
        for j in others:
            if j < i:
                w[i, j] = w[j, i] = most * rng.uniform(0.4, 1.0)
    return np.asarray(w + np.diag(1 - w.sum(axis=1)))


def factor(w: Array) -> float:
    """The second largest absolute value of an eigenvalue; 0 for one machine."""
    return float(np.sort(np.abs(np.linalg.eigvals(w)))[-2]) if len(w) > 1 else 0.0


def mixing(answer: Answer, graph: Graph, seed: int) -> tuple[str, Array, list[list[int]]]:
    """The call, the matrix that the answer made, and the graph. Raises Wrong unless it has a weight for each edge."""
    near = neighbours(graph, seed)
    shown = str(near) if len(near) < 7 else f"a graph of {counted(len(near), 'machine')}: {graph[0]}"
    called = f"mixing_matrix({shown})"
    p = len(near)
    got = answer(near)
    w = expect.number_array(expect.from_list(got, np.ones((p, p))), called, f"an array of shape {(p, p)}")
    if w.shape != (p, p):
        raise Wrong(f"{called}: expected an array of shape {(p, p)}, got shape {w.shape}.")
    if not np.isfinite(w).all():
        i, j = np.argwhere(~np.isfinite(w))[0]
        raise Wrong(f"{called}: expected finite numbers, got {w[i, j]} at [{i}, {j}].")
    w = w.astype(float)
    for i in range(p):
        for j in range(p):
            is_near = j in near[i]
            if i != j and not is_near and abs(w[i, j]) > ROUNDING:
                raise Wrong(
                    f"{called}: expected 0 at [{i}, {j}], got {w[i, j]:.6g}: machines {i} and {j} are no neighbours.",
                    "A machine averages with its neighbours and itself only.",
                )
            if w[i, j] < -ROUNDING or (is_near and w[i, j] < ROUNDING):
                wanted = "a weight above 0" if is_near else "a weight of at least 0"
                raise Wrong(f"{called}: expected {wanted} at [{i}, {j}], got {w[i, j]:.6g}.", why_weight(w, near, i, j))
    return called, w, near


def why_weight(w: Array, near: list[list[int]], i: int, j: int) -> str:
    """The likely cause of a weight that is 0 or negative."""
    if i == j:
        return "The weights of its neighbours are larger than 1 together: nothing is left for the machine itself."
    if j in near[i] and np.allclose(w, np.eye(len(w))):
        return "That is the identity: nobody hears of anybody."
    if np.allclose(w[j, i], 0) or w[j, i] > 0:
        return "Neighbours hear of each other: both entries of a pair are above 0."
    return ""


def judge_rows(answer: Answer, graphs: Sequence[Graph], seed: int) -> None:
    """Raise Wrong unless each machine takes an average of itself and its neighbours."""
    for graph in graphs:
        called, w, _ = mixing(answer, graph, seed)
        compare_sums(
            called, "row", w.sum(axis=1), "A machine's own weight is the rest: 1 less those of its neighbours."
        )


def judge_columns(answer: Answer, graphs: Sequence[Graph], seed: int) -> None:
    """Raise Wrong unless the mean of all machines stays, too."""
    for graph in graphs:
        called, w, near = mixing(answer, graph, seed)
        naive = [
            [1 / (1 + len(near[i])) if j == i or j in near[i] else 0 for j in range(len(w))] for i in range(len(w))
        ]
        cause = "What machine j gives away, in all, is one x_j: else the mean of all machines moves."
        if np.allclose(w, naive):
            cause = (
                "Each machine takes the mean of itself and its neighbours. Neighbours with different numbers of "
                "neighbours then give each other different weights, and the mean of all machines moves."
            )
        elif np.allclose(w, np.transpose(naive)):
            cause = "The columns are averages, the rows are not."
        compare_sums(called, "column", w.sum(axis=0), cause)
        compare_sums(called, "row", w.sum(axis=1), "Each machine takes an average, too: its weights sum to 1.")


def compare_sums(called: str, name: str, sums: Array, cause: str) -> None:
    """Raise Wrong unless all sums of rows, or of columns, are 1."""
    for i in np.flatnonzero(np.abs(sums - 1) > ROUNDING)[:1]:
        raise Wrong(f"{called}: expected 1 as the sum of {name} {i}, got {sums[i]:.9g}.", cause)


def judge_factor(answer: Answer, graphs: Sequence[Graph], seed: int) -> None:
    """Raise Wrong unless the consensus factor is at most that of equal weights for all pairs."""
    for graph in graphs:
        called, w, near = mixing(answer, graph, seed)
        compare_sums(
            called, "row", w.sum(axis=1), "A machine's own weight is the rest: 1 less those of its neighbours."
        )
        most, got = factor(equal_weights(near)), factor(w)
        if got > most + ROUNDING:
            is_negative = -np.linalg.eigvals(w).real.min() > got - ROUNDING
            raise Wrong(
                f"{called}: expected a consensus factor of at most {most:.6g}, got {got:.6g}.",
                "The machines may swap their numbers for ever, and never agree: each needs a weight for itself, too."
                if got > 1 - ROUNDING else
                "The slowest difference changes its sign in each step: a machine keeps too little of its own." if
                is_negative else
                "The slowest difference shrinks too little in each step: the weights of some pairs are too small. 1 / "
                "(1 + largest number of neighbours) for each pair would do.",
            )  # fmt: skip


def matrices(name: str, p: int, seed: int) -> Array:
    """A doubly stochastic matrix of p machines."""
    rng = stream(Purpose.MANUAL, seed, "a mixing matrix", name, p)
    one, moved = np.eye(p), np.roll(np.eye(p), 1, axis=1)
    if name == "ring":
        return equal_weights(neighbours(("ring", p), seed))
    if name == "random":
        return drawn_weights(("random", p), seed)
    if name == "full":
        return np.full((p, p), 1 / p)
    if name == "directed ring":  # a machine takes the mean of itself and the one before it
        return np.asarray((one + moved) / 2)
    if name == "no own weight":  # a ring in which all take the mean of their neighbours
        return np.asarray((moved + moved.T) / 2)
    if name == "two halves":  # which hear mostly of each other; p is even
        half = np.arange(p) < p // 2
        return np.asarray(0.2 * one + 0.8 * (half[:, None] != half) / (p // 2))
    if name == "two groups":  # which never hear of each other
        w = np.zeros((p, p))
        w[: p // 2, : p // 2], w[p // 2 :, p // 2 :] = 1 / (p // 2), 1 / (p - p // 2)
        return w
    if name == "two wheels":  # two directed rings that hear of each other; the slowest difference turns, p is 8 or 10
        half, back = np.eye(p // 2), np.roll(np.eye(p // 2), -1, axis=1)
        wheel = 0.2 * half + 0.2 * back @ back + 0.6 * back
        return np.kron([[0.65, 0.35], [0.35, 0.65]], wheel)
    shares = rng.dirichlet(np.ones(4))  # not symmetric, and not normal
    return np.asarray(sum(share * one[rng.permutation(p)] for share in shares))


def judge_consensus(answer: Answer, cases: Sequence[Graph], seed: int) -> None:
    """Raise Wrong unless the answer is the consensus factor of these matrices."""
    for name, p in cases:
        w = matrices(name, p, seed)
        want, values = factor(w), np.linalg.eigvals(w)
        mistakes: dict[str, float] = {}
        if not np.allclose(w, w.T):
            mistakes |= {
                "This matrix is not symmetric: its eigenvalues may be complex, and their absolute values count. "
                "`eigvalsh` is for symmetric matrices only.": float(np.sort(np.abs(np.linalg.eigvalsh(w)))[-2]),
                "This is a singular value. What counts in the long run are eigenvalues.": float(
                    np.linalg.svd(w, compute_uv=False)[1]
                ),
            }
        if want > 1 - 1e-6:
            mistakes |= {
                "Only one eigenvalue 1 belongs to the mean. Any other one with the absolute value 1 counts, too: then "
                "the machines never agree.": float(max((v for v in np.abs(values) if v < 1 - 1e-6), default=0.0))
            }
        mistakes |= {
            "This is the spectral gap, 1 less the consensus factor.": 1 - want,
            "This is the largest one, which belongs to the mean: it is always 1.": 1.0,
            "np.sort orders complex numbers by their real parts: take the absolute values first, and then sort.": float(
                np.abs(np.sort(values)[[0, -2]]).max() if p > 1 else 0
            ),
            "The absolute value counts: a negative eigenvalue near -1 shrinks slowly, too.": float(
                np.sort(values.real)[-2] if p > 1 else 0
            ),
            "This is the smallest absolute value; the second largest one is asked for.": float(np.abs(values).min()),
            "This is the square of the factor.": want**2,
        }
        slips = {sentence: value for sentence, value in mistakes.items() if abs(value - want) > 1e-5}
        shown = expect.shown(w) if p < 4 else f"a matrix of {p} machines: {name}"
        expect.number(answer(w), want, f"consensus_factor({shown})", rtol=0.0, atol=1e-6, mistakes=slips)
