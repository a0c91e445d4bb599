"""The messages that a rank's program may send: its calls, the bytes to each rank, and the rounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course.checks.messages_and_collectives.rank_words import listed
from course.judging import Answer, expect
from course.judging.ranks.rank_run import RankRun
from course.judging.wrong import Wrong
from course.plural import counted
from minidl.cluster import Network

OWN_MESSAGES = {"send", "recv", "sendrecv", "isend", "irecv"}
ITEMSIZE = 8  # all arrays are float64

NOT_EAGER = 65536 // ITEMSIZE + 1
"""Elements of a message whose send returns only when the receiver has it."""

A_SECOND_A_MESSAGE = Network(alpha=1.0, beta=0.0)
"""On this network the seconds of a run are its rounds: the longest sequence of messages one after the other."""

A_MOMENT = 1e-3  # seconds; far less than a round


def by_own_messages(run: RankRun, name: str) -> None:
    """Raise Wrong if a rank called anything of the communicator but sends and receives."""
    for rank, operations in enumerate(run.operations):
        others = [operation for operation in operations if operation not in OWN_MESSAGES]
        if others:
            raise Wrong(
                f"{name} on rank {rank} of {len(run.results)} called comm.{others[0]}; only comm.send, recv, sendrecv, "
                "isend and irecv may be used.",
                "The collective is what you are to write yourself.",
            )


def all_ended(run: RankRun, name: str) -> None:
    """Raise Wrong if a function returned while a send or a receive of its own was under way."""
    for rank, left in enumerate(run.unfinished):
        expect.true(
            not left,
            f"{name} on rank {rank} of {len(run.results)} returned without waiting for the end of "
            f"{counted(left, 'call')} of isend or irecv.",
            "isend only begins to send: keep what it returns, and call .wait() of it.",
        )


def round_the_ring(run: RankRun, name: str, chunks: Sequence[int], times: int) -> None:
    """Raise Wrong unless a run on A_SECOND_A_MESSAGE passed chunks of these lengths around one ring `times` times.

    Each time takes p - 1 messages a rank, none longer than the longest chunk, in p - 1 rounds. The order of the ranks
    in the ring is free. Chunks may be padded. Each chunk passes p - 1 ranks, so all ranks together send at least
    (p - 1) n elements.
    """
    p, n, longest = len(run.results), sum(chunks), max(chunks) * ITEMSIZE
    among = f"{name} among {p} ranks, {n} elements"
    messages, in_all = times * (p - 1), times * (p - 1) * n * ITEMSIZE
    by_own_messages(run, name)
    all_ended(run, name)
    one_ring(run, among)
    chunks_only(run, among, n, longest, sum(run.nbytes) == in_all)
    for rank in range(p):
        expect.true(
            run.messages[rank] == messages,
            f"{among}: rank {rank} sent {counted(run.messages[rank], 'message')}, {messages} needed.",
            "To go round once takes p - 1 steps, not p." if p > 2 and run.messages[rank] == times * p else "",
        )
    expect.true(
        sum(run.nbytes) >= in_all,
        f"{among}: all ranks together sent {sum(run.nbytes)} bytes, {in_all} are needed.",
        "These are numbers of 4 bytes; a float64 has 8."
        if 2 * sum(run.nbytes) == in_all
        else "Some elements never go round, or go in a smaller type than float64.",
    )
    rounds = round(run.seconds)
    expect.true(
        rounds <= messages,
        f"{among} took {counted(rounds, 'round')} (messages one after the other), {messages} needed.",
        "In each step all ranks should send at once (comm.sendrecv); here some wait for others.",
    )


def chunks_only(run: RankRun, among: str, n: int, longest: int, is_all_needed: bool = False) -> None:
    """Raise Wrong if a message has more than `longest` bytes, those of the longest chunk of n elements."""
    for source, destination, nbytes, *_ in run.sends:
        expect.true(
            nbytes <= longest,
            f"{among}: rank {source} sent {nbytes} bytes in a message to rank {destination}; the longest chunk has "
            f"{longest} ({longest // ITEMSIZE} elements of {ITEMSIZE} bytes).",
            cause_of_bytes(nbytes, n, is_all_needed),
        )


def as_few_rounds(run: RankRun, short: RankRun, name: str) -> None:
    """Raise Wrong if long messages, whose sends wait for the receiver, took more rounds than short ones."""
    rounds, needed = round(run.seconds), round(short.seconds)
    expect.true(
        rounds <= needed,
        f"{name} among {len(run.results)} ranks took {counted(rounds, 'round')} with messages of more than 64 KiB, and "
        f"{needed} with short ones.",
        "A send of more than 64 KiB waits for the receiver: to send and receive at the same time, use comm.sendrecv.",
    )


def one_ring(run: RankRun, among: str) -> None:
    """Raise Wrong unless every rank that sends has one destination, and these make one ring of all ranks.

    A rank that sends nothing is found by the count of messages.
    """
    p = len(run.results)
    destinations = [run.destinations(rank) for rank in range(p)]
    through_0 = p > 2 and len(destinations[0]) > 1 and all(to == {0} for to in destinations[1:])
    for rank, to in enumerate(destinations):
        cause = ""
        if through_0:
            cause = "Everything goes through rank 0, whose port is then busy p - 1 times as long as the others'."
        elif p > 3 and len(to) == p - 1:
            cause = "Here a rank sends to every other one; in a ring it passes on what came from the one before it."
        elif to == {(rank + 1) % p, (rank - 1) % p}:
            cause = "That is to its left and to its right; all messages should go the same way round."
        if len(to) > 1:
            raise Wrong(f"{among}: rank {rank} sent to ranks {listed(sorted(to))}; one neighbour is asked.", cause)
    if p == 1 or not all(destinations):
        return
    way = [0]
    while len(way) <= p and (following := min(destinations[way[-1]])) not in way:
        way.append(following)
    if len(way) < p or following != 0:
        raise Wrong(
            f"{among}: the messages go from rank {' to '.join(map(str, [*way, following]))}, which is no ring of all "
            "ranks.",
        )


def cause_of_bytes(nbytes: int, n: int, is_all_needed: bool) -> str:
    """Why a message is longer than the longest chunk of n elements.

    is_all_needed: whether all messages together have only the bytes that have to be sent.
    """
    if nbytes == n * ITEMSIZE:
        return "The whole vector goes out in each step; only one chunk should."
    if is_all_needed:
        return "The chunks are not as even as they can be: np.array_split gives none of more than ceil(n/p) elements."
    if nbytes % ITEMSIZE == 0:
        return "The message holds more numbers than the chunk has."
    return "The message holds more than the chunk's numbers: send the array itself."


def broadcast(answer: Answer, x: np.ndarray, p: int) -> RankRun:
    """A broadcast of x among p ranks, on the network on which rounds can be counted.

    Rank 0 begins when all others wait, so that its messages leave in the order of its calls.
    """
    starts = [A_MOMENT] + [0.0] * (p - 1)
    return answer.on_ranks([(x if rank == 0 else None,) for rank in range(p)], A_SECOND_A_MESSAGE, starts=starts)


def p_minus_1_messages(run: RankRun) -> None:
    """Raise Wrong unless a broadcast sent p - 1 messages of its own."""
    by_own_messages(run, "broadcast_tree")
    all_ended(run, "broadcast_tree")
    p, sent = len(run.results), sum(run.messages)
    cause = "Each rank but one gets one message; these are more." if sent >= p else "Somebody never gets it."
    message = f"broadcast_tree among {counted(p, 'rank')} sent {counted(sent, 'message')}, a tree sends {p - 1}."
    expect.true(sent == p - 1, message, cause)


def log2_p_rounds(run: RankRun) -> None:
    """Raise Wrong unless a broadcast took ceil(log2 p) rounds."""
    by_own_messages(run, "broadcast_tree")
    p, rounds = len(run.results), round(run.seconds)
    needed = (p - 1).bit_length()
    expect.true(
        rounds == needed,
        f"broadcast_tree among {counted(p, 'rank')} took {counted(rounds, 'round')} (messages one after the "
        f"other), a tree takes {needed}. Rank 0 sent {counted(run.messages[0], 'message')}.",
        cause_of_rounds(run, p, rounds, needed),
    )


def cause_of_rounds(run: RankRun, p: int, rounds: int, needed: int) -> str:
    """The likely cause of too many, or too few, rounds of a broadcast."""
    if rounds == 0:
        return "Nothing was sent."
    if rounds < needed:
        return f"In {counted(rounds, 'round')} at most {2**rounds} ranks can know."
    if sum(run.messages) > p - 1:
        return "There are more messages than a tree has; some of the rounds are theirs."
    if run.messages[0] == p - 1:
        return "Rank 0 sends to everyone itself; those who have the array already could help."
    if max(run.messages) == 1:
        return "The array goes from one rank to the next; in a tree all who have it send at the same time."
    if run.messages[0] < needed:
        return (
            f"Rank 0 sends in {counted(run.messages[0], 'round')} of {needed} only: in every round all who have the "
            "array should send it on, so that twice as many have it."
        )
    return "In every round all who have the array should send it on, so that twice as many have it."


def doubled(run: RankRun, n: int) -> None:
    """Raise Wrong unless a run on A_SECOND_A_MESSAGE had the messages, bytes and rounds of recursive doubling.

    For a power of two fewer are impossible. For other p another fold is accepted if it costs at most as much.
    """
    by_own_messages(run, "recursive_doubling")
    all_ended(run, "recursive_doubling")
    p = len(run.results)
    doublings = p.bit_length() - 1
    fold = p > 1 << doublings
    for rank in range(p):
        called = f"recursive_doubling(comm, x) among {counted(p, 'rank')}, x of {n} elements: rank {rank}"
        sent, most = run.messages[rank], doublings + fold
        expect.true(
            sent <= most if fold else sent == most,
            f"{called} sent {counted(sent, 'message')}, {f'at most {most}' if fold else most} needed.",
            f"One in each of {counted(doublings, 'round')}"
            + (f" among {1 << doublings} ranks, and one to hand over or to give back." if fold else "."),
        )
        expect.true(
            run.nbytes[rank] == sent * n * ITEMSIZE,
            f"{called} sent {run.nbytes[rank]} bytes in {counted(sent, 'message')}, each needs {n * ITEMSIZE}.",
            "In each message goes the sum so far, n numbers, and nothing else: send the array itself."
            if run.nbytes[rank] > sent * n * ITEMSIZE
            else "These are numbers of 4 bytes; a float64 has 8."
            if 2 * run.nbytes[rank] == sent * n * ITEMSIZE
            else "",
        )
    rounds, needed = round(run.seconds), doublings + 2 * fold
    expect.true(
        rounds <= needed,
        f"recursive_doubling among {counted(p, 'rank')} took {counted(rounds, 'round')} (messages one after the "
        f"other), {needed} needed.",
        "Both partners can send at once: comm.sendrecv.",
    )
