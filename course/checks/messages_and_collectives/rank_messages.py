"""The messages that a rank's program may send: which calls it makes, how many bytes go to whom, in how many rounds."""

from __future__ import annotations

import math

import numpy as np

from course.checking import Answer, expect
from course.checking.ranks import RankRun
from course.checking.wrong import Wrong
from course.checks.messages_and_collectives.rank_words import counted
from minidl.cluster import Network

OWN_MESSAGES = {"send", "recv", "sendrecv", "isend", "irecv"}
ITEMSIZE = 8  # all arrays are float64

NOT_EAGER = 65536 // ITEMSIZE + 1
"""Elements of a message whose send returns only when the receiver has it."""

A_SECOND_A_MESSAGE = Network(alpha=1.0, beta=0.0)
"""On this network the seconds of a run are its rounds: how many messages come one after the other."""

A_MOMENT = 1e-3  # seconds; far less than a round


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

    Each time is p - 1 messages a rank, none longer than ceil(n/p) elements, as many rounds, and (p - 1) n elements of
    all ranks together.
    """
    p = len(run.results)
    among = f"{name} among {p} ranks, {n} elements"
    messages, longest, in_all = times * (p - 1), math.ceil(n / p) * ITEMSIZE, times * (p - 1) * n * ITEMSIZE
    by_own_messages(run, name)
    one_neighbour(run, among)
    for source, destination, nbytes, *_ in run.sends:
        expect.true(
            nbytes <= longest,
            f"{among}: rank {source} sent {nbytes} bytes in a message to rank {destination}; the longest chunk has "
            f"{longest} ({longest // ITEMSIZE} elements of {ITEMSIZE} bytes).",
            cause_of_bytes(nbytes, p, n),
        )
    for rank in range(p):
        expect.true(
            run.messages[rank] == messages,
            f"{among}: rank {rank} sent {counted(run.messages[rank], 'message')}, {messages} needed.",
            "To go round once takes p - 1 steps, not p." if run.messages[rank] == times * p else "",
        )
    expect.true(
        sum(run.nbytes) == in_all,
        f"{among}: all ranks together sent {sum(run.nbytes)} bytes, {in_all} are needed.",
        "These are numbers of 4 bytes; a float64 has 8."
        if 2 * sum(run.nbytes) == in_all
        else "Some elements never go round."
        if sum(run.nbytes) < in_all
        else "",
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
    if both := to_the_left & to_the_right:
        raise Wrong(f"{among}: rank {min(both)} sent to its left and to its right; one neighbour is asked.", cause)
    if to_the_left and to_the_right:
        raise Wrong(
            f"{among}: rank {min(to_the_left)} sent to its left and rank {min(to_the_right)} to its right; in a ring "
            "all messages go the same way round.",
            cause,
        )


def cause_of_bytes(nbytes: int, p: int, n: int) -> str:
    """Why a message is longer than the longest of p chunks of n elements."""
    if nbytes == n * ITEMSIZE:
        return "The whole vector goes out in each step; only one chunk should."
    if nbytes % ITEMSIZE == 0 and nbytes < (math.ceil(n / p) + p) * ITEMSIZE:
        return "The chunks are not as even as they can be: np.array_split gives none of more than ceil(n/p) elements."
    return "The message holds more than the chunk's numbers: send the array itself."


def broadcast(answer: Answer, p: int, n: int) -> RankRun:
    """A broadcast among p ranks, on the network on which rounds can be counted.

    Rank 0 begins when all others wait: then what it sends goes out in the order in which it says so.
    """
    starts = [A_MOMENT] + [0.0] * (p - 1)
    vectors = [(np.zeros(n) if rank == 0 else None,) for rank in range(p)]
    run = answer.on_ranks(vectors, A_SECOND_A_MESSAGE, starts=starts)
    by_own_messages(run, "broadcast_tree")
    return run


def cause_of_rounds(run: RankRun, p: int, rounds: int, needed: int) -> str:
    """What makes a broadcast take more, or fewer, rounds than it needs."""
    if rounds < needed:
        return f"In {rounds} rounds at most {2**rounds} ranks can know: log2 p has to be rounded up."
    if run.messages[0] == p - 1 == sum(run.messages):
        return "Rank 0 sends to everyone itself; those who have the array already could help."
    if max(run.messages) <= 1:
        return "The array goes from one rank to the next; in a tree all who have it send at the same time."
    if run.messages[0] < needed:
        return (
            f"Rank 0 sends in {counted(run.messages[0], 'round')} of {needed} only: in every round all who have the "
            "array should send it on, so that twice as many have it."
        )
    return "In every round all who have the array should send it on, so that twice as many have it."


def doubled(run: RankRun, n: int) -> None:
    """Messages, bytes and rounds of recursive doubling among the first 2^k ranks, with the others folded in."""
    by_own_messages(run, "recursive_doubling")
    p = len(run.results)
    doublings = p.bit_length() - 1
    first = 1 << doublings
    with_fold = [1 if rank >= first else doublings + (rank + first < p) for rank in range(p)]
    is_like_it = sorted(run.messages) == sorted(with_fold)  # another fold may leave other ranks
    for rank in range(p):
        needed = run.messages[rank] if is_like_it else with_fold[rank]
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
            "In each message goes the sum so far, n numbers, and nothing else: send the array itself."
            if run.nbytes[rank] > needed * n * ITEMSIZE
            else "",
        )
    rounds, needed = round(run.seconds), doublings + 2 * (p > first)
    expect.true(
        rounds == needed,
        f"recursive_doubling among {counted(p, 'rank')} took {counted(rounds, 'round')} (messages one after the "
        f"other), {needed} needed.",
        "Both partners can send at once: comm.sendrecv.",
    )
