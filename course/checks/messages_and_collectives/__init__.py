"""The checks of chapter 04: messages and collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course.checking import Answer, Chapter, Part, expect
from course.checking.carried import could_have_carried
from course.checking.wrong import Wrong
from course.checks.messages_and_collectives import collective_costs, rank_messages, rank_results, ring_lookalikes
from course.checks.messages_and_collectives.all_reduce_timeline import timeline
from course.checks.messages_and_collectives.library_versions import BUILDS
from course.checks.messages_and_collectives.rank_messages import A_SECOND_A_MESSAGE, NOT_EAGER
from course.checks.messages_and_collectives.rank_results import random, vectors_of
from course.checks.messages_and_collectives.rank_words import counted

chapter = Chapter("04_messages_and_collectives", BUILDS)
hint = chapter.hint
__all__ = [
    "broadcast_tree", "chapter", "crossover", "hint", "is_ring", "recursive_doubling", "recursive_doubling_seconds",
    "ring_all_gather", "ring_all_reduce", "ring_reduce_scatter", "ring_seconds", "timeline",
]  # fmt: skip

Sizes = Sequence[tuple[int, int]]
"""Pairs (ranks, elements)."""


@chapter.exercise(
    points=2,
    hints=[
        "If everyone who has the array sends it on, how many ranks have it after 1, 2, 3 rounds?",
        "After k rounds ranks 0 to 2^k - 1 have it. In the next round each of them tells one rank that has not: rank r "
        "tells r + 2^k, if there is one.",
        "Let `have = 1` and double it while it is less than comm.size: `if comm.rank < have` send to comm.rank + have "
        "(if that is a rank), `elif comm.rank < 2 * have` receive from comm.rank - have, otherwise wait for a later "
        "round.",
    ],
)
def broadcast_tree(
    answer: Answer, part: Part, *, sizes: Sizes = ((1, 4), (2, 3), (5, 7), (8, 8), (6, 0)), seed: int = 0
) -> None:
    """Every rank returns rank 0's array, by p - 1 messages in ceil(log2 p) rounds."""
    with part(0.5, "every rank returns rank 0's array"):
        for p, n in sizes:
            x = random(seed, n)
            run = answer.on_ranks([(x if rank == 0 else None,) for rank in range(p)])
            rank_messages.by_own_messages(run, "broadcast_tree")
            for rank, got in enumerate(run.results):
                called = f"broadcast_tree(comm, x) on rank {rank} of {p}, x of {n} elements on rank 0"
                if got is None:
                    cause = "The array never came to this rank, or the function does not return it."
                    raise Wrong(f"{called}: expected an array of shape ({n},), got None.", cause)
                expect.array(got, x, called)
                if rank and n:
                    could_have_carried(run, "rank 0's array", rank, [0], x.nbytes)
    with part(0.5, "p - 1 messages, by send and recv"):
        for p, n in sizes:
            run = rank_messages.broadcast(answer, p, n)
            sent = sum(run.messages)
            expect.true(
                sent == p - 1,
                f"broadcast_tree among {counted(p, 'rank')} sent {counted(sent, 'message')}, a tree sends {p - 1}.",
                "Each rank but one gets one message; these are more." if sent >= p else "Somebody never gets it.",
            )
    with part(1, "ceil(log2 p) rounds"):
        for p, n in sizes:
            run = rank_messages.broadcast(answer, p, n + NOT_EAGER)  # or sends would not wait for one another
            rounds, needed = round(run.seconds), (p - 1).bit_length()
            expect.true(
                rounds == needed,
                f"broadcast_tree among {counted(p, 'rank')} took {counted(rounds, 'round')} (messages one after the "
                f"other), a tree takes {needed}. Rank 0 sent {counted(run.messages[0], 'message')}.",
                rank_messages.cause_of_rounds(run, p, rounds, needed),
            )


@chapter.exercise(
    points=3,
    hints=[
        "Follow one chunk. It starts somewhere with one rank's numbers, goes round the ring once, and every rank that "
        "it comes to adds its own. Where must it start to end, complete, on the rank of its number?",
        "Chunk i ends on rank i after p - 1 steps to the right, so it starts on rank i + 1. Rank r hence sends chunk "
        "r - 1 first; in step k (counted from 0) it sends chunk r - 1 - k and receives chunk r - 2 - k, all modulo p.",
        "All ranks send at once: use comm.sendrecv(growing, right, left), add your own share of the chunk that came "
        "to what came, as a new array, and send that in the next step.",
        "growing = chunks[(r - 1) % p]; then for k in range(p - 1): growing = comm.sendrecv(growing, right, left) + "
        "chunks[(r - 2 - k) % p]. What is to be returned if p is 1?",
    ],
)
def ring_reduce_scatter(
    answer: Answer,
    part: Part,
    *,
    sizes: Sizes = ((1, 4), (2, 6), (4, 80), (3, 7), (5, 3), (3, 0)),
    large: Sizes = ((3, 30_000),),
    seed: int = 0,
) -> None:
    """Rank r returns chunk r of the sum, by p - 1 messages of a chunk to one neighbour."""
    with part(1, "rank r returns chunk r of the sum"):
        for p, n in sizes:
            shares = [np.array_split(x, p) for x in vectors_of(p, n, seed)]
            rank_results.scattered(answer.on_ranks([(own,) for own in shares]), shares, n)
    with part(1, "p - 1 messages a rank, each a chunk, to one neighbour"):
        for p, n in sorted(sizes, reverse=True):  # the more ranks, the clearer what is wrong
            if n >= p:
                shares = [np.array_split(x, p) for x in vectors_of(p, n, seed)]
                run = answer.on_ranks([(own,) for own in shares], A_SECOND_A_MESSAGE)
                rank_messages.round_the_ring(run, "ring_reduce_scatter", n, times=1)
    with part(0.5, "the caller's chunks stay as they are"):
        for p, n in sizes:
            shares = [np.array_split(x, p) for x in vectors_of(p, n, seed)]
            run = answer.on_ranks([(own,) for own in shares])
            rank_messages.by_own_messages(run, "ring_reduce_scatter")
            for rank, (chunks,) in enumerate(run.arguments):
                rank_results.unchanged(chunks, shares[rank], f"ring_reduce_scatter on rank {rank} of {p}, {n} elements")
    with part(0.5, "no deadlock with chunks of more than 64 KiB"):
        for p, n in large:
            shares = [np.array_split(x, p) for x in vectors_of(p, n, seed)]
            rank_results.scattered(answer.on_ranks([(own,) for own in shares]), shares, n)


@chapter.exercise(
    points=2,
    hints=[
        "In the first step everyone sends their own chunk to the right. What should a rank send in the second step?",
        "What came in one step is what goes out in the next; after p - 1 steps everyone has seen every chunk. Which "
        "rank's chunk is it that comes in step k?",
        "With steps counted from 0, what comes in step k from the left began on rank r - 1 - k (modulo p): put it at "
        "that place of the list. Use comm.sendrecv, so that all send at once.",
    ],
)
def ring_all_gather(
    answer: Answer,
    part: Part,
    *,
    sizes: Sizes = ((1, 4), (2, 6), (4, 12), (3, 7), (5, 3), (3, 0)),
    large: Sizes = ((3, 30_000),),
    seed: int = 0,
) -> None:
    """Every rank returns the list of all chunks in the order of the ranks, by p - 1 messages to one neighbour."""
    with part(0.5, "every rank returns all chunks in the order of the ranks"):
        for p, n in sizes:
            chunks = np.array_split(random(seed, n), p)
            rank_results.gathered(answer.on_ranks([(chunk,) for chunk in chunks]), chunks)
    with part(1, "p - 1 messages a rank, each a chunk, to one neighbour"):
        for p, n in sorted(sizes, reverse=True):  # the more ranks, the clearer what is wrong
            if n >= p:
                chunks = np.array_split(random(seed, n), p)
                run = answer.on_ranks([(chunk,) for chunk in chunks], A_SECOND_A_MESSAGE)
                rank_messages.round_the_ring(run, "ring_all_gather", n, times=1)
    with part(0.5, "no deadlock with chunks of more than 64 KiB"):
        for p, n in large:
            chunks = np.array_split(random(seed, n), p)
            rank_results.gathered(answer.on_ranks([(chunk,) for chunk in chunks]), chunks)


@chapter.exercise(
    points=3,
    hints=[
        "You have both halves already: first every rank gets its chunk of the sum, then all chunks go to all.",
        "np.array_split(x, comm.size) gives chunks for any length of x, empty ones included; they are views of x.",
        "x is to be changed in place: copy each of the gathered chunks into its place in x (a view, too, can be "
        "written: view[...] = values), and return x.",
    ],
)
def ring_all_reduce(
    answer: Answer,
    part: Part,
    *,
    sizes: Sizes = ((1, 4), (2, 6), (4, 12), (3, 8), (5, 3), (3, 0)),
    large: Sizes = ((3, 30_000),),
    seed: int = 0,
) -> None:
    """x becomes the sum on every rank, by 2(p - 1) messages a rank, none longer than a chunk."""
    with part(0.5, "every rank returns the sum"):
        for p, n in sizes:
            vectors = vectors_of(p, n, seed)
            rank_results.sums(answer.on_ranks([(x,) for x in vectors]), vectors, "ring_all_reduce")
    with part(0.5, "x itself has become the sum"):
        for p, n in sizes:
            vectors = vectors_of(p, n, seed)
            run = answer.on_ranks([(x,) for x in vectors])
            rank_messages.by_own_messages(run, "ring_all_reduce")
            for rank, (x,) in enumerate(run.arguments):
                mistakes = {"x is as it was: the sum was made in a new array only.": vectors[rank]}
                called = f"x on rank {rank} of {p}, {n} elements, after ring_all_reduce(comm, x)"
                expect.array(x, np.sum(vectors, axis=0), called, mistakes=mistakes)
    with part(1.5, "2(p - 1) messages a rank, each a chunk, to one neighbour"):
        for p, n in sorted(sizes, reverse=True):  # the more ranks, the clearer what is wrong
            if n >= p:
                vectors = vectors_of(p, n, seed)
                run = answer.on_ranks([(x,) for x in vectors], A_SECOND_A_MESSAGE)
                rank_messages.round_the_ring(run, "ring_all_reduce", n, times=2)
    with part(0.5, "no deadlock with chunks of more than 64 KiB"):
        for p, n in large:
            vectors = vectors_of(p, n, seed)
            rank_results.sums(answer.on_ranks([(x,) for x in vectors]), vectors, "ring_all_reduce")


@chapter.exercise(
    points=3,
    hints=[
        "Let p be a power of two. In round k, rank r and its partner exchange all that they have and both add. Who has "
        "to be the partner so that, after the round, groups of 2^(k + 1) ranks agree?",
        "The partner of r differs from it in bit k alone: `r ^ 2**k` (exclusive or). After log2 p rounds all agree.",
        "Begin with `first, total = fold_in(comm, x)`, let the ranks below `first` do the rounds on `total`, and end "
        "with `return fold_out(comm, first, total)`.",
        "distance = 1; while distance < first: total = total + comm.sendrecv(total, partner, partner) with partner = "
        "comm.rank ^ distance; then distance doubles. Ranks from `first` on skip the loop.",
    ],
)
def recursive_doubling(
    answer: Answer,
    part: Part,
    *,
    sizes: Sizes = ((1, 4), (2, 3), (4, 5), (6, 7), (7, 0), (8, 12)),
    large: Sizes = ((4, 10_000), (8, 9_000)),
    seed: int = 0,
) -> None:
    """Every rank returns the sum, by log2 p messages of n elements a rank and those of the fold."""
    with part(1, "every rank returns the sum, for any p"):
        for p, n in sizes:
            vectors = vectors_of(p, n, seed)
            rank_results.sums(answer.on_ranks([(x,) for x in vectors]), vectors, "recursive_doubling")
    with part(1, "log2 p messages of n elements a rank, in as many rounds, and the fold's"):
        for p, n in sizes:
            run = answer.on_ranks([(x,) for x in vectors_of(p, n, seed)], A_SECOND_A_MESSAGE)
            rank_messages.doubled(run, n)
    with part(0.5, "x stays as it is"):
        for p, n in sizes:
            vectors = vectors_of(p, n, seed)
            run = answer.on_ranks([(x,) for x in vectors])
            rank_messages.by_own_messages(run, "recursive_doubling")
            for rank, (x,) in enumerate(run.arguments):
                rank_results.unchanged([x], [vectors[rank]], f"recursive_doubling on rank {rank} of {p}, {n} elements")
    with part(0.5, "no deadlock with more than 64 KiB"):
        for p, n in large:
            vectors = vectors_of(p, n, seed)
            rank_results.sums(answer.on_ranks([(x,) for x in vectors]), vectors, "recursive_doubling")


POWERS_OF_TWO = ((16, 64_000_000, 50e-6, 8e-9, 1e-9), (2, 800, 20e-6, 0.8e-9, 0.2e-9), (1, 4096, 50e-6, 8e-9, 1e-9))
ANY_NUMBER = ((3, 2400, 1e-6, 0.04e-9, 0.01e-9), (6, 4_800_000, 50e-6, 8e-9, 2e-9), (12, 960, 20e-6, 0.8e-9, 0.3e-9))
"""Cases of a cost function: (p, nbytes, alpha, beta, gamma), where p chunks of whole float64 make nbytes."""


@chapter.exercise(
    points=1,
    hints=[
        "How many messages does a rank send, one after the other, and how many bytes are in each?",
        "2(p - 1) messages of n/p bytes; each takes alpha + n/p beta. In p - 1 of the steps a chunk is added, for "
        "n/p gamma.",
    ],
)
def ring_seconds(
    answer: Answer, part: Part, *, cases: Sequence[collective_costs.Case] = (*POWERS_OF_TWO, *ANY_NUMBER)
) -> None:
    """The ring's time by the formula, without and with gamma."""
    with part(0.5, "the messages: alpha and beta"):
        for case in cases:
            collective_costs.judge_seconds(answer, "ring", case, with_gamma=False)
    with part(0.5, "the additions: gamma"):
        for case in cases:
            collective_costs.judge_seconds(answer, "ring", case)


@chapter.exercise(
    points=1,
    hints=[
        "In each round partners exchange all n bytes and add them: alpha + n beta + n gamma. How many rounds are there "
        "for the greatest power of two that is not above p? (p.bit_length() - 1 gives its logarithm.)",
        "Where p is no power of two, the fold adds a message of n bytes and an addition before, and a message after.",
    ],
)
def recursive_doubling_seconds(
    answer: Answer,
    part: Part,
    *,
    powers_of_two: Sequence[collective_costs.Case] = POWERS_OF_TWO,
    others: Sequence[collective_costs.Case] = ANY_NUMBER,
) -> None:
    """Recursive doubling's time by the formula, for powers of two and for any p."""
    with part(0.5, "p a power of two"):
        for case in powers_of_two:
            collective_costs.judge_seconds(answer, "recursive_doubling", case)
    with part(0.5, "p not a power of two"):
        for case in others:
            collective_costs.judge_seconds(answer, "recursive_doubling", case)


@chapter.exercise(
    points=1,
    hints=[
        "Both times are straight lines in the number of bytes: at 0 bytes recursive doubling is ahead, but each "
        "further byte costs it more. Where do the lines meet?",
        "With f the fold (0 or 1) and l = floor(log2 p): the ring starts (2(p - 1) - l - 2f) alpha later, and gains "
        "(l + 2f - 2(p - 1)/p) beta + (l + f - (p - 1)/p) gamma with every byte.",
        "The crossover is the first divided by the second; where nothing is gained with a byte, it is math.inf.",
    ],
)
def crossover(
    answer: Answer,
    part: Part,
    *,
    powers_of_two: Sequence[int] = (8, 4, 64),
    others: Sequence[int] = (6, 3, 12, 2),
    alpha: float = 50e-6,
    beta: float = 8e-9,
    gamma: float = 1e-9,
) -> None:
    """The bytes from which the ring is faster than recursive doubling."""
    with part(0.5, "p a power of two, gamma = 0"):
        for p in powers_of_two:
            collective_costs.judge_crossover(answer, (p, alpha, beta, 0.0))
    with part(0.5, "any p, and gamma; infinite where the ring never is faster"):
        for p in others:
            collective_costs.judge_crossover(answer, (p, alpha, beta, gamma))
        collective_costs.judge_crossover(answer, (2, alpha, beta, 0.0))


Trace = tuple[str, int, int]
"""The name of a program in `ring_lookalikes.py`, ranks, elements."""

TRACES: Sequence[Sequence[Trace]] = (
    (("ring", 4, 8), ("parameter_server", 4, 8), ("chunks_in_halves", 4, 8)),
    (("ring", 3, 10), ("whole_vectors_twice_round", 3, 10), ("rest_in_one_chunk", 3, 11)),
    (("ring_to_the_left", 5, 15), ("pairwise", 5, 15), ("there_and_back", 5, 15)),
    (("ring", 2, 6), ("ring_in_another_order", 5, 10), ("rabenseifner", 4, 8)),
)


@chapter.exercise(
    points=2,
    hints=[
        "The text above has three conditions. Begin with the number of messages of each rank.",
        "For every rank collect the set of its destinations: it must have exactly one member. Then walk from rank 0 to "
        "its destination, to that one's destination and so on: after p steps, and not before, you are at 0 again.",
        "The largest chunk has ceil(n/p) elements, n = nbytes // 8; no message may have more than 8 times as many "
        "bytes. -(-n // p) is n/p rounded up.",
    ],
)
def is_ring(answer: Answer, part: Part, *, traces: Sequence[Sequence[Trace]] = TRACES) -> None:
    """Traces of rings and of look-alikes are told apart; a group counts if all of it are."""
    for number, group in enumerate(traces):
        with part(0.5, f"group {number + 1}"):
            for name, p, n in group:
                ring_lookalikes.judge(answer, name, p, n)
