"""An embedding and a loss whose vocabulary is divided: cases, the right results, and what known mistakes give."""

from __future__ import annotations

import numpy as np

from course.checks.tensor_parallelism.divided_runs import Array, Divided, Named, Rank, uneven_shards
from course.checks.tensor_parallelism.linear_layers import TINY
from course.judging import Answer
from minidl.random import Purpose, stream

Lookup = tuple[int, int, int, int]
"""(p, n, V, d)"""

Loss = tuple[int, int, int]
"""(p, n, V)"""

NOT_SUMMED = "Each rank has the gradient of its own rows, complete: it is not summed over the ranks."


def lookup(answer: Answer, case: Lookup, seed: int, *, is_repeated: bool = True) -> Divided:
    """`embedding` on p ranks. is_repeated: some tokens are there several times; else each at most once."""
    p, n, V, d = case
    rng = stream(Purpose.MANUAL, seed, "embedding", p, n, V, d, is_repeated)
    table = rng.normal(size=(V, d))
    table[:, 0] *= TINY
    ids = rng.integers(0, V, n) if is_repeated else rng.permutation(V)[:n]
    if is_repeated:
        ids[-2:] = (0, V - 1) if n > 2 else ids[-2:]
        ids[:2] = V // 2
    g = rng.normal(size=(len(ids), d))
    g[:, 0] *= TINY
    cuts = uneven_shards(V, p, seed)
    clipped = sum(table[np.clip(ids, own.start, own.stop - 1)] for own in cuts)
    wrapped = sum(
        np.where((ids < own.stop)[:, None], table[own][(ids - own.start) % (own.stop - own.start)], 0.0) for own in cuts
    )
    ranks = []
    for own in cuts:
        here = (ids >= own.start) & (ids < own.stop)
        mine = np.where(here[:, None], table[ids], 0.0)
        total, once, outside = np.zeros((V, d)), np.zeros((V, d)), np.zeros((V, d))
        np.add.at(total, ids, g)
        once[ids] = g
        np.add.at(outside, np.clip(ids, own.start, own.stop - 1), g)
        ones = np.zeros((V, d))
        np.add.at(ones, ids, 1.0)
        counts = np.maximum(np.bincount(ids, minlength=V), 1)[:, None]
        mistakes: dict[str, Named] = {
            "y": {
                "These are this rank's rows alone: the sum over the ranks is missing.": mine,
                "Tokens of other ranks are clipped to the first or the last row: their rows have to be zero.": clipped,
                "Tokens of other ranks take rows of this one: `ids - start` is negative or too large for them, and "
                "their rows have to be zero.": wrapped,
                "Every row is added p times.": p * table[ids],
                "This is the mean over the ranks, not the sum.": table[ids] / p,
            },
            "gtable": {
                "A token that is there several times has the sum of its rows of g: here one of them is lost. "
                "`gtable[rows] += g` adds each row once.": once[own],
                "Tokens of other ranks are clipped to the first or the last row: they belong to no row of this "
                "rank.": outside[own],
                NOT_SUMMED: p * total[own],
                "This is the gradient of the whole table. Each rank returns that of its own rows.": total,
                "This is the right gradient divided by p.": total[own] / p,
                "This is the mean over a token's positions, not the sum.": (total / counts)[own],
                "These are the numbers of positions: each adds its row of g.": ones[own],
            },
        }
        given: Named = {"ids": ids, "table": table[own].copy(), "start": own.start, "g": g}
        ranks.append(Rank(given, {"y": table[ids], "gtable": total[own]}, mistakes))
    return Divided(answer, f"n={len(ids)}, V={V}, d={d}", ranks)


def softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def losses(logits: Array, targets: Array) -> Array:
    """The cross entropy of each sample."""
    largest = logits.max(axis=1)
    chosen = logits[np.arange(len(logits)), targets]
    return largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1)) - chosen


def loss(answer: Answer, case: Loss, seed: int, *, is_large: bool = False) -> Divided:
    """`cross_entropy` on p ranks. is_large: logits that overflow unless the maximum is subtracted."""
    p, n, V = case
    rng = stream(Purpose.MANUAL, seed, "cross entropy", p, n, V, is_large)
    logits, targets = rng.normal(size=(n, V)), rng.integers(0, V, n)
    targets[:2] = (0, V - 1)[: len(targets[:2])]
    logits[:, V // 2] -= 17.0  # small is not 0
    cuts = uneven_shards(V, p, seed)
    if is_large:  # one rank has all the large logits of a sample; the last sample has none
        for sample in range(n):
            logits[sample] -= 1900.0
            if sample < n - 1:
                logits[sample, cuts[sample % p]] += 3800.0
    want = losses(logits, targets)
    hot = np.zeros((n, V))
    hot[np.arange(n), targets] = 1.0
    gradient = (softmax(logits) - hot) / n
    ranks = []
    for own in cuts:
        here = (targets >= own.start) & (targets < own.stop)
        local = [logits[:, each] for each in cuts]
        with np.errstate(all="ignore"):
            own_sums = [np.exp(each - each.max(axis=1, keepdims=True)).sum(axis=1) for each in local]
            largest, chosen = logits.max(axis=1), logits[np.arange(n), targets]
            mixed = np.mean(np.log(sum(own_sums)) + largest - chosen)
            mixed_to_the_end = np.mean(np.log(sum(own_sums)) + logits[:, own].max(axis=1) - chosen)
        part = logits[:, own]
        mean = float(np.mean(want))
        mistakes: dict[str, Named] = {
            "loss": {
                "This is the sum over the samples, not the mean.": mean * n,
                "The exponentials of each rank are taken with the rank's own maximum: the sums have different "
                "scales.": mixed,
                "The exponentials of each rank are taken with the rank's own maximum, which the ranks do not "
                "share.": mixed_to_the_end,
                "The logit of the target is missing.": np.mean(want + chosen),
                "The logit of the target is added p times.": np.mean(want + chosen - p * chosen),
                "The maximum that was subtracted is missing from the loss.": np.mean(want - largest),
                "This is the loss of this rank's samples only: all n belong to it.": float(np.sum(want[here]) / n),
                "These are the rank's own columns of the logits only.": np.mean(
                    part.max(axis=1) + np.log(softmax_sum(part)) - np.where(here, chosen, 0.0)
                ),
                "The sign is wrong.": -mean,
                "The loss is divided by p.": mean / p,
                "Each sample gives a loss: their mean is wanted.": want,
            },
            "glogits": {
                "This is the gradient of the sum over the samples: divide by n.": n * gradient[:, own],
                "1 is to be subtracted in the column of each target.": softmax(logits)[:, own] / n,
                "This is the softmax of this rank's columns alone.": (softmax(part) - hot[:, own]) / n,
                "This is the gradient of all V columns. Each rank returns that of its own.": gradient,
                "The sign is wrong.": -gradient[:, own],
                "This is the right gradient divided by p.": gradient[:, own] / p,
                "Targets of other ranks are clipped to the first or the last column.": (
                    softmax(logits)[:, own] - at(np.clip(targets, own.start, own.stop - 1) - own.start, part.shape)
                )
                / n,
                "Targets of other ranks take columns of this one: `targets - start` is negative for them.": (
                    softmax(logits)[:, own] - at((targets - own.start) % part.shape[1], part.shape)
                )
                / n,
            },
        }
        given: Named = {"logits": part.copy(), "targets": targets, "start": own.start}
        ranks.append(Rank(given, {"loss": mean, "glogits": gradient[:, own]}, mistakes))
    return Divided(answer, f"n={n}, V={V}{', logits of about ±1900' if is_large else ''}", ranks)


def softmax_sum(part: Array) -> Array:
    return np.exp(part - part.max(axis=1, keepdims=True)).sum(axis=1)


def at(columns: Array, shape: tuple[int, ...]) -> Array:
    """1 in one column of each row."""
    found = np.zeros(shape)
    found[np.arange(len(columns)), columns] = 1.0
    return found
