"""Attention by heads: cases, the output of one node, and what known mistakes give."""

from __future__ import annotations

import numpy as np

from course.checks.tensor_parallelism.divided_runs import Array, Divided, Named, Rank
from course.checks.tensor_parallelism.linear_layers import TINY
from course.judging import Answer, AnswerFailed, Wrong
from course.probes.tensor_parallelism import Stored
from minidl.random import Purpose, stream

Case = tuple[int, int, int, int]
"""(p, T, d, heads)"""


def one_head(q: Array, k: Array, v: Array) -> Array:
    """A head, as in the assignment."""
    scores = q @ k.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


def outputs(q: Array, k: Array, v: Array, heads: int) -> Array:
    """The outputs of all heads, side by side; q, k and v have the columns of all heads."""
    cut = [np.split(each, heads, axis=1) for each in (q, k, v)]
    return np.concatenate([one_head(*head) for head in zip(*cut, strict=True)], axis=1)


def heads_of(answer: Answer, case: Case, seed: int, *, is_limited: bool = False) -> Divided:
    """`attention` on p ranks. is_limited: a rank reads its heads' weights only, once."""
    p, T, d, heads = case
    rng = stream(Purpose.MANUAL, seed, "attention", p, T, d, heads)
    x, wqkv, wo = rng.normal(size=(T, d)), rng.normal(size=(d, 3 * d)), rng.normal(size=(d, d))
    wo[:, 0] *= TINY
    q, k, v = np.split(x @ wqkv, 3, axis=1)
    a = outputs(q, k, v, heads)
    y, width = a @ wo, d // p
    each_has_three = outputs(
        *np.split((x @ wqkv).reshape(T, heads, 3, -1).transpose(0, 2, 1, 3).reshape(T, -1), 3, 1), heads
    )
    ranks = []
    for rank in range(p):
        own = slice(rank * width, (rank + 1) * width)
        in_a_row = np.concatenate([
            outputs(*np.split(each, 3, axis=1), max(1, heads // p)) for each in np.split(x @ wqkv, p, axis=1)
        ], axis=1) if d % p == 0 and heads % p == 0 else a  # fmt: skip
        mistakes = {
            "This is a partial sum: the other ranks have the other heads.": a[:, own] @ wo[own],
            "These are the outputs of the heads; the product with wo is missing.": a,
            "These are this rank's columns of a; the product with wo is missing.": a[:, own],
            "This is the mean over the ranks, not the sum.": y / p,
            "The columns of wqkv are those of Q, then of K, then of V, each for all heads: this rank's shard is no "
            "consecutive block of them.": in_a_row @ wo,
            "Q, K and V of a head are not next to each other: the columns of Q of all heads come first.": each_has_three
            @ wo,
            "Each rank's columns are computed as one wide head.": (outputs(q, k, v, p) if d % p == 0 else a) @ wo,
            "All heads are computed as one.": outputs(q, k, v, 1) @ wo,
            "The columns are in the order Q, K, V.": outputs(v, q, k, heads) @ wo,
            "K and Q are interchanged.": outputs(k, q, v, heads) @ wo,
            "K and V are interchanged.": outputs(q, v, k, heads) @ wo,
            "The columns of each rank's heads go with the same rows of wo.": a @ np.roll(wo, width, axis=0),
            "wo has a row for each column of a: it is not transposed.": a @ wo.T,
        }
        rows = np.zeros(wo.shape, bool)
        rows[own] = True
        room = (np.tile(rows.T, 3), rows) if is_limited else (None, None)
        given: Named = {"x": x, "wqkv": Stored("wqkv", wqkv, room[0]), "wo": Stored("wo", wo, room[1]), "heads": heads}
        ranks.append(Rank(given, {"y": y}, {"y": mistakes}))
    return Divided(answer, f"T={T}, d={d}, {heads} heads", ranks)


def refused(answer: Answer, p: int, heads: int, seed: int) -> None:
    """Raise Wrong unless each rank raises ValueError, with both numbers, if p does not divide the number of heads.

    Each rank runs the answer while the others do nothing: a rank that waits for them is found, too.
    """
    one = heads_of(answer, (p, 3, 12 * heads, heads), seed)
    for rank in range(p):
        refused_on(one, rank, heads)


def refused_on(one: Divided, rank: int, heads: int) -> None:
    """Raise Wrong unless this rank raises the ValueError by itself."""
    answer, p = one.answer, one.p
    expected = f"{one.called(rank)}: expected a ValueError with the numbers {heads} and {p}, before anything is sent"
    arguments = [tuple(each.given.values()) if number == rank else () for number, each in enumerate(one.ranks)]
    try:
        answer.on_ranks(arguments, played={other: lambda comm: None for other in range(p) if other != rank})
    except AnswerFailed as failed:
        if failed.last:
            raise
        error = failed.message.partition("\n")[0]
        text = error.partition(" raised ")[2].partition(":")[2] if "ValueError" in failed.classes else ""
        if not text:
            raise Wrong(f"{expected}; {error}", "Each rank refuses it, before it computes or sends anything.") from None
        if "matmul" in text or not all(str(number) in text for number in (heads, p)):
            raise Wrong(f"{expected}; {error}", "The message says how many heads and how many ranks.") from None
    else:
        raise Wrong(f"{expected}, got a result.", "A head that is cut in two computes other weights: it is refused.")
