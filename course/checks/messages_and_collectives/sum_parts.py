"""Decomposes a wrong sum: which ranks' vectors it contains, how many times each, and which chunks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course.checks.messages_and_collectives.rank_words import listed, ranks_named

LARGE = 1e100
"""Elements of this magnitude or more are left out: only special cases of a check have them."""


def made_of(got: np.ndarray, vectors: Sequence[np.ndarray]) -> str:
    """Says which ranks' vectors a wrong sum is made of; "" if it is made of something else, or they are too short."""
    p = len(vectors)
    weights = weights_of(got, vectors)
    if weights is None:
        return ""
    if p > 1 and np.allclose(weights, 1 / p):
        return "This is the mean; the sum is asked."
    counts = np.round(weights)
    if not np.allclose(weights, counts):
        return ""
    return counts_in_words(counts)


def counts_in_words(counts: np.ndarray) -> str:
    """Says whose vectors a sum lacks, or contains more than once. counts: how often it contains each rank's vector."""
    missing, repeated = np.flatnonzero(counts == 0), np.flatnonzero(counts > 1)
    parts = [f"Missing in this sum: what {ranks_named(missing)} had."] if len(missing) else []
    parts += [f"Added more than once: what {ranks_named(repeated)} had."] if len(repeated) else []
    return " ".join(parts)


def chunk_made_of(got: np.ndarray, vectors: Sequence[np.ndarray]) -> str:
    """Says which ranks' chunks the first wrong chunk of a sum is made of; see `made_of`."""
    p, total = len(vectors), np.sum(vectors, axis=0)
    if got.dtype.kind != "f":
        return ""
    cut = [np.array_split(x, p) for x in (got, total)]
    for i, (own, want) in enumerate(zip(*cut, strict=True)):
        if not np.allclose(own, want):
            cause = made_of(own, [np.array_split(x, p)[i] for x in vectors])
            return f"Look at chunk {i} of np.array_split(x, {p}) here. {cause}" if cause else ""
    return ""


def other_chunks(got: np.ndarray, shares: Sequence[Sequence[np.ndarray]], number: int) -> str:
    """Which chunks a wrong sum is made of, if not of chunk `number` only; shares[rank][i] is chunk i of rank `rank`."""
    p = len(shares)
    weights = weights_of(got, [chunk for own in shares for chunk in own])
    if weights is None or not np.allclose(weights, np.round(weights)) or not np.any(np.round(weights)):
        return ""
    counts = np.round(weights).reshape(p, p)
    numbers = np.flatnonzero(counts.any(axis=0))
    if len(numbers) == 1:
        what = counts_in_words(counts[:, numbers[0]])
        return f"These are numbers of chunk {numbers[0]}. {what}".strip() if numbers[0] != number else ""
    return f"Chunks {listed(numbers)} were added up: do the messages go the way round that their numbers do?"


def weights_of(got: np.ndarray, vectors: Sequence[np.ndarray]) -> np.ndarray | None:
    """The numbers w with got = w[0] vectors[0] + w[1] vectors[1] + ...; None if there are none, or several.

    Elements that are infinite or huge in a vector are left out.
    """
    if got.ndim != 1 or got.dtype.kind != "f" or any(len(x) != len(got) for x in vectors):
        return None
    table = np.stack(vectors, axis=1)
    usual = np.all(np.abs(table) < LARGE, axis=1)
    table, total = table[usual], got[usual].astype(float)
    if len(total) <= len(vectors) or not np.all(np.abs(total) < LARGE):
        return None
    weights: np.ndarray = np.linalg.lstsq(table, total, rcond=None)[0]
    return weights if np.allclose(table @ weights, total) else None
