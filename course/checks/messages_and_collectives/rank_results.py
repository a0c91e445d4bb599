"""The result that every rank must return, and likely mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.checks.messages_and_collectives.rank_messages import by_own_messages
from course.checks.messages_and_collectives.rank_words import listed
from course.checks.messages_and_collectives.sum_parts import chunk_made_of, made_of, other_chunks
from course.judging import expect
from course.judging.ranks.rank_run import RankRun, could_have_carried
from course.judging.wrong import Wrong
from course.plural import counted

ROUNDING = 1e-12
"""Tolerance relative to the sum of absolute values; float64 sums of up to 1,000 ranks in any order are within it."""

FLOAT32 = 1e-6
"""The same for numbers that were float32 in between."""


def in_words(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else expect.shown(value)


def copied(run: RankRun, x: np.ndarray) -> None:
    """Raise Wrong unless every rank returned the array of rank 0."""
    by_own_messages(run, "broadcast_tree")
    p = len(run.results)
    for rank, got in enumerate(run.results):
        called = f"broadcast_tree(comm, x) on rank {rank} of {p}, x of {counted(len(x), 'element')} on rank 0"
        if got is None:
            came = any(destination == rank for _, destination, *_ in run.sends)
            cause = "A message came to this rank: the array that comm.recv returns is to be returned here."
            if not came:
                cause = "No message came to this rank."
            if rank == 0 or all(result is None for result in run.results):
                cause = expect.FORGOTTEN_RETURN
            raise Wrong(f"{called}: expected an array of shape {x.shape}, got None.", cause)
        mistakes = {"Something was added to what came: -0.0 + 0.0 is 0.0.": x + 0.0}
        if nearly(got, x, np.abs(x)):
            mistakes[ALMOST] = got
        expect.same_bits(got, x, called, mistakes=mistakes)
        if rank and x.size:
            could_have_carried(run, "rank 0's array", rank, [0], x.nbytes)


def sums(run: RankRun, vectors: list[np.ndarray], name: str, in_place: bool = False) -> None:
    """Raise Wrong unless every rank returned the sum of all vectors; in_place: unless its x contains the sum."""
    by_own_messages(run, name)
    p, total, magnitude = len(vectors), np.sum(vectors, axis=0), np.sum(np.abs(vectors), axis=0)
    n = len(total)
    for rank, got in enumerate(run.results):
        called = f"{name}(comm, x) on rank {rank} of {p}, x of {counted(n, 'element')}"
        mistakes: dict[str, np.ndarray] = {}
        if in_place:
            (got,) = run.arguments[rank]
            called = f"x on rank {rank} of {p}, {counted(n, 'element')}, after {name}(comm, x)"
            mistakes["x is as it was: the sum was made in a new array only."] = vectors[rank]
        else:
            something(run, rank, f"{called}: expected an array of shape {total.shape}")
            mistakes["This is what the rank had at first: nothing was added."] = vectors[rank]
        if isinstance(got, np.ndarray) and got.shape == total.shape:
            mistakes[made_of(got, vectors) or (ALMOST if nearly(got, total, magnitude) else "")] = got
        if name == "ring_all_reduce":
            halfway = [np.copy(chunk) for chunk in np.array_split(vectors[rank], p)]
            halfway[rank] = np.array_split(total, p)[rank]
            mistakes["Only this rank's own chunk is the sum: the all-gather is missing."] = np.concatenate(halfway)
        mistakes["The last n % p elements were left out."] = np.append(total[: n - n % p], vectors[rank][n - n % p :])
        if name == "ring_all_reduce" and isinstance(got, np.ndarray) and got.shape == total.shape:
            mistakes[chunk_made_of(got, vectors)] = got
        mistakes.pop("", None)
        rounding = ROUNDING * magnitude
        expect.array(got, total, called, rtol=0.0, atol=rounding, mistakes=mistakes, dtype=np.float64)
    for rank in range(p if n else 0):
        could_have_carried(run, "the sum of all ranks", rank, range(p), total.nbytes if p > 1 else 0)


def something(run: RankRun, rank: int, expected: str) -> None:
    """Raise Wrong if this rank returned None, and another did not."""
    others = [other for other, result in enumerate(run.results) if result is not None]
    if run.results[rank] is None and others:
        raise Wrong(f"{expected}, got None.", f"Rank {others[0]} returned something; this rank has to, as well.")


ALMOST = "Almost: the numbers were rounded on the way, to float32 perhaps."


def nearly(got: Any, want: np.ndarray, magnitude: np.ndarray) -> bool:
    """Whether numbers are what they should be but for the rounding of float32."""
    if not isinstance(got, np.ndarray) or got.shape != want.shape or got.dtype.kind != "f":
        return False
    both_nan = np.isnan(got) & np.isnan(want)
    with np.errstate(over="ignore"):
        close = expect.same_numbers(got, want, 0.0, FLOAT32 * magnitude)
        return bool(np.all(close | both_nan) and not np.all((got == want) | both_nan))


def kept(run: RankRun, shares: list[list[np.ndarray]], name: str) -> None:
    """Raise Wrong unless every rank's arrays are unchanged; shares[rank] is the list of arrays that it added up."""
    p = len(shares)
    for rank, own in enumerate(shares):
        (after,) = run.arguments[rank]
        is_list = len(own) > 1 or isinstance(after, list)
        unchanged(after if is_list else [after], own, f"{name} on rank {rank} of {p}")


def unchanged(after: Any, before: Sequence[np.ndarray], called: str) -> None:
    """Raise Wrong unless the caller's arrays, one or a list of them, are unchanged."""
    if not isinstance(after, (list, tuple)) or len(after) != len(before):
        raise Wrong(
            f"{called}: the caller passed a list of {counted(len(before), 'array')}, which is {in_words(after)} now.",
            "A list that is passed is the caller's own: what is appended or removed is so for the caller, too.",
        )
    for i, (now, then) in enumerate(zip(after, before, strict=True)):
        is_array = isinstance(now, np.ndarray) and now.shape == then.shape and now.dtype == then.dtype
        if not is_array or not np.all(expect.identical(now, then)):
            which = f"array {i} of those" if len(before) > 1 else "the array"
            cause = (
                "`a += b` and `a[...] = b` write into the array that a names, here the caller's; `a = a + b` makes a "
                "new one."
            )
            if len(before) > 1:
                cause += " And `chunks[i] = a` puts a into the caller's list."
            raise Wrong(f"{called}: {which} that the caller passed was changed.", cause)


def scattered(run: RankRun, shares: list[list[np.ndarray]]) -> None:
    """Raise Wrong unless every rank has its chunk of the sum; shares[rank][i] is chunk i of rank `rank`'s vector."""
    by_own_messages(run, "ring_reduce_scatter")
    p = len(shares)
    sums = [np.sum([own[i] for own in shares], axis=0) for i in range(p)]
    cut_anew = np.array_split(np.concatenate(sums), p)
    for rank, got in enumerate(run.results):
        called = f"ring_reduce_scatter(comm, chunks) on rank {rank} of {p}, chunks of {lengths(shares[0])}"
        something(run, rank, f"{called}: expected an array of shape {sums[rank].shape}")
        mistakes = {
            "This is what this rank had at first: nothing was added to this chunk. Which one is complete here in the "
            "end?": shares[rank][rank],
            "This rank's own share is missing.": sum_without(shares, rank, rank),
            "This rank's own share was added twice.": sums[rank] + shares[rank][rank],
            "This is the mean; the sum is asked.": sums[rank] / p,
            "The vectors were joined and cut anew, and not where the caller's chunks end.": cut_anew[rank],
        }
        for i in set(range(p)) - {rank}:
            mistakes[f"This is chunk {i} of the sum: the number of the chunk is off by {(i - rank) % p}."] = sums[i]
            without = sum_without(shares, i, i)
            mistakes[f"This is chunk {i} without the share of rank {i}: a step is missing."] = without
        if isinstance(got, np.ndarray) and (cause := other_chunks(got, shares, rank)):
            mistakes[cause] = got
        magnitude = np.sum([np.abs(own[rank]) for own in shares], axis=0)
        if isinstance(got, np.ndarray) and got.shape == sums[rank].shape:
            cause = made_of(got, [own[rank] for own in shares])
            mistakes[cause or (ALMOST if nearly(got, sums[rank], magnitude) else "")] = got
        mistakes.pop("", None)
        rounding = ROUNDING * magnitude
        expect.array(got, sums[rank], called, rtol=0.0, atol=rounding, mistakes=mistakes, dtype=np.float64)
    for rank, total in enumerate(sums):
        if p > 1 and total.size:
            could_have_carried(run, f"chunk {rank} of the sum", rank, range(p), total.nbytes)


def sum_without(shares: list[list[np.ndarray]], i: int, rank: int) -> np.ndarray:
    """The sum of chunk i of all ranks but one."""
    total: np.ndarray = np.sum([own[i] for other, own in enumerate(shares) if other != rank], axis=0)
    return total


def lengths(chunks: Sequence[np.ndarray]) -> str:
    """`2, 0 and 3 elements`, or `4 elements each`."""
    found = [len(chunk) for chunk in chunks]
    return f"{counted(found[0], 'element')} each" if len(set(found)) == 1 else f"{listed(found)} elements"


def gathered(run: RankRun, chunks: list[np.ndarray]) -> None:
    """Raise Wrong unless every rank has the list of all chunks."""
    by_own_messages(run, "ring_all_gather")
    p = len(chunks)
    for rank, got in enumerate(run.results):
        called = f"ring_all_gather(comm, chunk) on rank {rank} of {p}, chunks of {lengths(chunks)}"
        something(run, rank, f"{called}: expected a list of {counted(p, 'array')}")
        if not isinstance(got, (list, tuple)) or len(got) != p:
            cause = expect.not_a_value(got)
            if isinstance(got, np.ndarray):
                cause = "The chunks were joined; the list of them is asked."
                if got.ndim > 1:
                    cause = "A list of arrays is asked: their lengths may differ."
            if isinstance(got, dict):
                cause = "A list is asked, in the order of the ranks: [found[i] for i in range(p)]."
            raise Wrong(f"{called}: expected a list of {counted(p, 'array')}, got {in_words(got)}.", cause)
        for i, item in enumerate(got):
            if item is None:
                raise Wrong(f"{called}, item {i} of the list: expected an array, got None.", "Nothing was put there.")
            mistakes = {f"This is the chunk of rank {j}, in the place of rank {i}'s.": chunks[j] for j in range(p)}
            if i != rank and not is_same(item, chunks[rank]) and (cause := same_items(got, i)):
                mistakes = {cause: item}
            if nearly(item, chunks[i], np.abs(chunks[i])):
                mistakes[ALMOST] = item
            expect.same_bits(item, chunks[i], f"{called}, item {i} of the list", mistakes=mistakes)
    for rank in range(p):
        others = [i for i, chunk in enumerate(chunks) if i != rank and chunk.size]
        could_have_carried(run, "the list of all chunks", rank, others, sum(chunks[i].nbytes for i in others))


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are arrays with the same numbers, and have any."""
    both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return bool(both and one.size and one.shape == other.shape and one.tobytes() == other.tobytes())


def same_items(items: Sequence[Any], i: int) -> str:
    """The likely cause if other items of a list hold the numbers of item i."""
    same = [j for j, item in enumerate(items) if is_same(item, items[i])]
    if len(same) < 2:
        return ""
    return (
        f"Items {listed(same)} of this list hold the same numbers: was one array put there twice, or did the same "
        "chunk come in more than one step?"
    )
