"""What checks of programs on several ranks have in common: inputs, sums on every rank, messages round a ring."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from course.checking import Answer, expect
from course.checking.ranks import RankRun
from course.checking.wrong import Wrong
from minidl.cluster import Network

OWN_MESSAGES = {"send", "recv", "sendrecv", "isend", "irecv"}
ITEMSIZE = 8  # all arrays are float64

NOT_EAGER = 65536 // ITEMSIZE + 1
"""Elements of a message whose send returns only when the receiver has it."""

A_SECOND_A_MESSAGE = Network(alpha=1.0, beta=0.0)
"""On this network the seconds of a run are its rounds: how many messages come one after the other."""


def random(seed: int | Sequence[int], n: int) -> np.ndarray:
    """n numbers that no two ranks share."""
    return np.random.default_rng(seed).standard_normal(n)


def vectors_of(p: int, n: int, seed: int) -> list[np.ndarray]:
    """A vector of n elements for each of p ranks."""
    return [random((seed, rank), n) for rank in range(p)]


def listed(ranks: Iterable[int]) -> str:
    """`0, 1 and 3`."""
    *others, last = map(str, ranks)
    return f"{', '.join(others)} and {last}" if others else last


def counted(number: int, thing: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def told(value: Any) -> str:
    """What came, in a few words."""
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else expect.shown(value)


def sums(run: RankRun, vectors: list[np.ndarray], name: str) -> None:
    """Raise Wrong unless every rank returned the sum of all vectors."""
    p, total = len(vectors), np.sum(vectors, axis=0)
    n = len(total)
    for rank, got in enumerate(run.results):
        called = f"{name}(comm, x) on rank {rank} of {p}, x of {n} elements"
        mistakes = {made_of(got, vectors): got} if isinstance(got, np.ndarray) and got.shape == total.shape else {}
        if "all_reduce" in name:
            halfway = [np.copy(chunk) for chunk in np.array_split(vectors[rank], p)]
            halfway[rank] = np.array_split(total, p)[rank]
            mistakes["Only this rank's own chunk is the sum: the all-gather is missing."] = np.concatenate(halfway)
        mistakes["This is what the rank had at first: nothing was added."] = vectors[rank]
        mistakes["The last n % p elements were left out."] = np.append(total[: n - n % p], vectors[rank][n - n % p :])
        expect.array(got, total, called, mistakes={cause: value for cause, value in mistakes.items() if cause})


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
    parts = [f"Missing in this sum: what rank {listed(missing)} had."] if len(missing) else []
    parts += [f"Added more than once: what rank {listed(repeated)} had."] if len(repeated) else []
    return " ".join(parts)


def unchanged(after: Sequence[Any], before: Sequence[np.ndarray], called: str) -> None:
    """Raise Wrong unless the arrays that the caller passed are as they were."""
    for i, (now, then) in enumerate(zip(after, before, strict=True)):
        if not np.array_equal(now, then):
            which = f"array {i} of those" if len(before) > 1 else "the array"
            raise Wrong(
                f"{called}: {which} that the caller passed was changed.",
                "`a += b` writes into the array that a names, and that was the caller's; `a = a + b` makes a new one.",
            )


def by_own_messages(run: RankRun, name: str) -> None:
    """Raise Wrong if a rank called more of the communicator than its sends and receives."""
    for rank, operations in enumerate(run.operations):
        others = [operation for operation in operations if operation not in OWN_MESSAGES]
        if others:
            raise Wrong(
                f"{name} on rank {rank} of {len(run.results)} called comm.{others[0]}; only comm.send, recv, sendrecv, "
                "isend and irecv may be used.",
                "The collective is what you are to write yourself.",
            )


def round_the_ring(run: RankRun, name: str, n: int, times: int) -> None:
    """Raise Wrong unless a run on A_SECOND_A_MESSAGE took vectors of n elements round the ring so many times.

    Each time is p - 1 messages a rank, as many rounds, and (p - 1) n elements of all ranks together. A rank sends all
    chunks but one, which may be a short one: n - floor(n/p) elements.
    """
    p = len(run.results)
    among = f"{name} among {p} ranks, {n} elements"
    messages, most, in_all = times * (p - 1), times * (n - n // p) * ITEMSIZE, times * (p - 1) * n * ITEMSIZE
    by_own_messages(run, name)
    one_neighbour(run, among)
    for rank in range(p):
        expect.true(
            run.messages[rank] == messages,
            f"{among}: rank {rank} sent {counted(run.messages[rank], 'message')}, {messages} needed.",
        )
        expect.true(
            run.nbytes[rank] <= most,
            f"{among}: rank {rank} sent {run.nbytes[rank]} bytes in {messages} messages; at most {most} are needed "
            f"({most // ITEMSIZE} elements of {ITEMSIZE} bytes).",
            cause_of_bytes(run.nbytes[rank], messages, p, n, most),
        )
    expect.true(
        sum(run.nbytes) == in_all,
        f"{among}: all ranks together sent {sum(run.nbytes)} bytes, {in_all} are needed.",
        "Some elements never go round." if sum(run.nbytes) < in_all else "",
    )
    rounds = round(run.seconds)
    expect.true(
        rounds <= messages,
        f"{among} took {counted(rounds, 'round')} (messages one after the other), {messages} needed.",
        "In each step all ranks should send at once (comm.sendrecv); here some wait for others.",
    )


def one_neighbour(run: RankRun, among: str) -> None:
    """Raise Wrong unless all ranks send to the one on their right only, or all to the one on their left."""
    p = len(run.results)
    cause = ""
    if all(run.destinations(rank) <= {0} for rank in range(1, p)):
        cause = "Everything goes through rank 0, whose port is then busy p - 1 times as long as the others'."
    for rank in range(p):
        strangers = run.destinations(rank) - {(rank + 1) % p, (rank - 1) % p}
        if strangers:
            raise Wrong(f"{among}: rank {rank} sent to rank {min(strangers)}, no neighbour in the ring.", cause)
    to_the_left = {source for source, destination, *_ in run.sends if destination != (source + 1) % p}
    to_the_right = {source for source, destination, *_ in run.sends if destination != (source - 1) % p}
    if to_the_left and to_the_right:
        raise Wrong(
            f"{among}: rank {min(to_the_left)} sent to its left and rank {min(to_the_right)} to its right; in a ring "
            "all messages go the same way round.",
            cause,
        )


def cause_of_bytes(sent: int, messages: int, p: int, n: int, most: int) -> str:
    """Why a rank sent more than so many bytes."""
    if sent == messages * n * ITEMSIZE:
        return "The whole vector goes out in each step; only one chunk should."
    if messages * math.ceil(n / p) * ITEMSIZE < sent <= most + 1000 * messages:
        return "The messages hold more than the chunk's numbers: send the array itself."
    return ""


def broadcast(answer: Answer, p: int, n: int) -> RankRun:
    """A broadcast among p ranks, on the network on which rounds can be counted."""
    run = answer.on_ranks([(np.zeros(n) if rank == 0 else None,) for rank in range(p)], A_SECOND_A_MESSAGE)
    by_own_messages(run, "broadcast_tree")
    return run


def cause_of_rounds(run: RankRun, p: int, rounds: int, needed: int) -> str:
    """What makes a broadcast take more, or fewer, rounds than it needs."""
    if rounds < needed:
        return f"In {rounds} rounds at most {2**rounds} ranks can know: log2 p has to be rounded up."
    if run.messages[0] == p - 1 > needed:
        return "Rank 0 sends to everyone itself; those who have the array already could help."
    if max(run.messages) <= 1:
        return "The array goes from one rank to the next; in a tree all who have it send at the same time."
    return ""


def scattered(run: RankRun, shares: list[list[np.ndarray]], n: int) -> None:
    """Every rank has its chunk of the sum; shares[rank][i] is what rank `rank` had as chunk i."""
    p = len(shares)
    sums = [np.sum([own[i] for own in shares], axis=0) for i in range(p)]
    for rank, got in enumerate(run.results):
        called = f"ring_reduce_scatter(comm, chunks) on rank {rank} of {p}, chunks of {n} elements in all"
        mistakes = {
            "This is what this rank had at first: nothing was added.": shares[rank][rank],
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
        expect.array(got, sums[rank], called, mistakes=mistakes)


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
    p = len(chunks)
    for rank, got in enumerate(run.results):
        called = f"ring_all_gather(comm, chunk) on rank {rank} of {p}"
        if not isinstance(got, (list, tuple)) or len(got) != p:
            cause = expect.FORGOTTEN_RETURN if got is None else ""
            if isinstance(got, np.ndarray):
                cause = "The chunks were joined; the list of them is asked."
            raise Wrong(f"{called}: expected a list of {p} arrays, got {told(got)}.", cause)
        for i, item in enumerate(got):
            mistakes = {f"This is the chunk of rank {j}, in the place of rank {i}'s.": chunks[j] for j in range(p)}
            expect.array(item, chunks[i], f"{called}, item {i} of the list", mistakes=mistakes)


def doubled(run: RankRun, n: int) -> None:
    """Messages, bytes and rounds of recursive doubling among the first 2^k ranks, with the others folded in."""
    by_own_messages(run, "recursive_doubling")
    p = len(run.results)
    doublings = p.bit_length() - 1
    first = 1 << doublings
    for rank in range(p):
        needed = 1 if rank >= first else doublings + (rank + first < p)
        called = f"recursive_doubling(comm, x) among {p} ranks, x of {n} elements: rank {rank}"
        expect.true(
            run.messages[rank] == needed,
            f"{called} sent {counted(run.messages[rank], 'message')}, {needed} needed.",
            "It hands its vector over, and sends nothing else."
            if rank >= first
            else f"Among {first} ranks: one in each of {counted(doublings, 'round')}"
            + (", and one to give the result back." if rank + first < p else "."),
        )
        expect.true(
            run.nbytes[rank] == needed * n * ITEMSIZE,
            f"{called} sent {run.nbytes[rank]} bytes in {counted(needed, 'message')}, each needs {n * ITEMSIZE}.",
        )
    rounds, needed = round(run.seconds), doublings + 2 * (p > first)
    expect.true(
        rounds == needed,
        f"recursive_doubling among {counted(p, 'rank')} took {counted(rounds, 'round')} (messages one after the "
        f"other), {needed} needed.",
        "Both partners can send at once: comm.sendrecv.",
    )
