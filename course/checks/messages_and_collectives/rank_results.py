"""What checks of programs on several ranks have in common: the inputs, and what every rank must return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.checking import expect
from course.checking.carried import could_have_carried
from course.checking.ranks import RankRun
from course.checking.wrong import Wrong
from course.checks.messages_and_collectives.rank_messages import by_own_messages
from course.checks.messages_and_collectives.rank_words import counted, listed, ranks_named


def random(seed: int | Sequence[int], n: int) -> np.ndarray:
    """n numbers that no two ranks share."""
    return np.random.default_rng(seed).standard_normal(n)


def vectors_of(p: int, n: int, seed: int) -> list[np.ndarray]:
    """A vector of n elements for each of p ranks."""
    return [random((seed, rank), n) for rank in range(p)]


def told(value: Any) -> str:
    """What came, in a few words."""
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else expect.shown(value)


def sums(run: RankRun, vectors: list[np.ndarray], name: str) -> None:
    """Raise Wrong unless every rank returned the sum of all vectors."""
    by_own_messages(run, name)
    p, total = len(vectors), np.sum(vectors, axis=0)
    n = len(total)
    for rank, got in enumerate(run.results):
        called = f"{name}(comm, x) on rank {rank} of {p}, x of {n} elements"
        something(run, rank, f"{called}: expected an array of shape {total.shape}")
        mistakes: dict[str, np.ndarray] = {}
        if isinstance(got, np.ndarray) and got.shape == total.shape:
            mistakes[made_of(got, vectors) or less_exact(got, total)] = got
        if name == "ring_all_reduce":
            halfway = [np.copy(chunk) for chunk in np.array_split(vectors[rank], p)]
            halfway[rank] = np.array_split(total, p)[rank]
            mistakes["Only this rank's own chunk is the sum: the all-gather is missing."] = np.concatenate(halfway)
        mistakes["This is what the rank had at first: nothing was added."] = vectors[rank]
        mistakes["The last n % p elements were left out."] = np.append(total[: n - n % p], vectors[rank][n - n % p :])
        if name == "ring_all_reduce" and isinstance(got, np.ndarray) and got.shape == total.shape:
            mistakes[chunk_made_of(got, vectors)] = got
        expect.array(got, total, called, mistakes={cause: value for cause, value in mistakes.items() if cause})
    for rank in range(p if n else 0):
        could_have_carried(run, "the sum of all ranks", rank, range(p), total.nbytes if p > 1 else 0)


def something(run: RankRun, rank: int, expected: str) -> None:
    """Raise Wrong if this rank returned None, and another did not."""
    others = [other for other, result in enumerate(run.results) if result is not None]
    if run.results[rank] is None and others:
        raise Wrong(f"{expected}, got None.", f"Rank {others[0]} returned something; this rank has to, as well.")


def less_exact(got: np.ndarray, total: np.ndarray) -> str:
    """Whether a sum is that of numbers of four bytes."""
    near = got.dtype.kind == "f" and np.allclose(got, total, rtol=1e-4, atol=1e-5)
    return "Almost: the numbers were rounded on the way, to float32 perhaps." if near else ""


def chunk_made_of(got: np.ndarray, vectors: list[np.ndarray]) -> str:
    """How the first wrong chunk of a wrong sum is made of the ranks' chunks; see `made_of`."""
    p, total = len(vectors), np.sum(vectors, axis=0)
    cut = [np.array_split(x, p) for x in (got, total)]
    for i, (own, want) in enumerate(zip(*cut, strict=True)):
        if not np.allclose(own, want):
            cause = made_of(own, [np.array_split(x, p)[i] for x in vectors])
            return f"Look at chunk {i} of np.array_split(x, {p}) here. {cause}" if cause else ""
    return ""


def made_of(got: np.ndarray, vectors: list[np.ndarray]) -> str:
    """How a wrong sum is made of the ranks' vectors, if it is and they are long enough to tell."""
    p = len(vectors)
    if len(got) <= p or got.dtype.kind != "f" or not np.all(np.isfinite(got)):
        return ""
    table = np.stack(vectors, axis=1)
    weights = np.linalg.lstsq(table, got, rcond=None)[0]
    if not np.allclose(table @ weights, got):
        return ""
    if np.allclose(weights, 1 / p):
        return "This is the mean; the sum is asked."
    counts = np.round(weights)
    if not np.allclose(weights, counts):
        return ""
    missing, repeated = np.flatnonzero(counts == 0), np.flatnonzero(counts > 1)
    parts = [f"Missing in this sum: what {ranks_named(missing)} had."] if len(missing) else []
    parts += [f"Added more than once: what {ranks_named(repeated)} had."] if len(repeated) else []
    return " ".join(parts)


def unchanged(after: Sequence[Any], before: Sequence[np.ndarray], called: str) -> None:
    """Raise Wrong unless the arrays that the caller passed are as they were."""
    for i, (now, then) in enumerate(zip(after, before, strict=True)):
        if not np.array_equal(now, then):
            which = f"array {i} of those" if len(before) > 1 else "the array"
            cause = "`a += b` writes into the array that a names, here the caller's; `a = a + b` makes a new one."
            if len(before) > 1:
                cause += " And `chunks[i] = a` puts a into the caller's list."
            raise Wrong(f"{called}: {which} that the caller passed was changed.", cause)


def scattered(run: RankRun, shares: list[list[np.ndarray]], n: int) -> None:
    """Every rank has its chunk of the sum; shares[rank][i] is what rank `rank` had as chunk i."""
    by_own_messages(run, "ring_reduce_scatter")
    p = len(shares)
    sums = [np.sum([own[i] for own in shares], axis=0) for i in range(p)]
    for rank, got in enumerate(run.results):
        called = f"ring_reduce_scatter(comm, chunks) on rank {rank} of {p}, chunks of {n} elements in all"
        something(run, rank, f"{called}: expected an array of shape {sums[rank].shape}")
        mistakes = {
            "This is what this rank had at first: nothing was added to this chunk. Which one is complete here in the "
            "end?": shares[rank][rank],
            "This rank's own share is missing.": sums[rank] - shares[rank][rank],
            "This rank's own share was added twice.": sums[rank] + shares[rank][rank],
            "This is the mean; the sum is asked.": sums[rank] / p,
        }
        if isinstance(got, np.ndarray) and (cause := mixed_chunks(got, shares)):
            mistakes[cause] = got
        for i in range(p):
            if i != rank:
                mistakes[f"This is chunk {i} of the sum: the number of the chunk is off by {(i - rank) % p}."] = sums[i]
                mistakes[f"This is chunk {i} without the share of rank {i}: a step is missing."] = (
                    sums[i] - shares[i][i]
                )
        if isinstance(got, np.ndarray) and got.shape == sums[rank].shape:
            mistakes[made_of(got, [own[rank] for own in shares])] = got
        expect.array(got, sums[rank], called, mistakes=mistakes)
    for rank, total in enumerate(sums):
        if p > 1 and total.size:
            could_have_carried(run, f"chunk {rank} of the sum", rank, range(p), total.nbytes)


def mixed_chunks(got: np.ndarray, shares: list[list[np.ndarray]]) -> str:
    """Which chunks a wrong sum is made of, if their numbers differ and they are long enough to tell."""
    p = len(shares)
    if got.ndim != 1 or len(got) <= p * p or any(len(chunk) != len(got) for own in shares for chunk in own):
        return ""
    table = np.stack([chunk for own in shares for chunk in own], axis=1)
    weights = np.linalg.lstsq(table, got, rcond=None)[0].reshape(p, p)
    if not np.allclose(table @ weights.ravel(), got) or not np.allclose(weights, np.round(weights)):
        return ""
    numbers = np.flatnonzero(np.round(weights).any(axis=0))
    if len(numbers) < 2:
        return ""
    return (
        f"Chunks {listed(numbers)} were added up: do the messages go the way round that the numbers of the chunks do?"
    )


def gathered(run: RankRun, chunks: list[np.ndarray]) -> None:
    """Every rank has the list of all chunks."""
    by_own_messages(run, "ring_all_gather")
    p = len(chunks)
    for rank, got in enumerate(run.results):
        called = f"ring_all_gather(comm, chunk) on rank {rank} of {p}"
        something(run, rank, f"{called}: expected a list of {counted(p, 'array')}")
        if not isinstance(got, (list, tuple)) or len(got) != p:
            cause = expect.FORGOTTEN_RETURN if got is None else ""
            if isinstance(got, np.ndarray):
                cause = "The chunks were joined; the list of them is asked."
            if isinstance(got, dict):
                cause = "A list is asked, in the order of the ranks: [found[i] for i in range(p)]."
            raise Wrong(f"{called}: expected a list of {counted(p, 'array')}, got {told(got)}.", cause)
        for i, item in enumerate(got):
            if item is None:
                raise Wrong(f"{called}, item {i} of the list: expected an array, got None.", "Nothing was put there.")
            mistakes = {f"This is the chunk of rank {j}, in the place of rank {i}'s.": chunks[j] for j in range(p)}
            expect.array(item, chunks[i], f"{called}, item {i} of the list", mistakes=mistakes)
    for rank in range(p):
        others = [i for i, chunk in enumerate(chunks) if i != rank and chunk.size]
        could_have_carried(run, "the list of all chunks", rank, others, sum(chunks[i].nbytes for i in others))
