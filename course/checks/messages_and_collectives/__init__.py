"""The checks of chapter 04: messages and collectives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from course.checks.library_versions import BUILDS
from course.checks.messages_and_collectives import collective_costs, rank_messages, rank_results, ring_lookalikes
from course.checks.messages_and_collectives.all_reduce_timeline import timeline
from course.checks.messages_and_collectives.collective_costs import ANY_NUMBER, POWERS_OF_TWO
from course.checks.messages_and_collectives.rank_inputs import (
    Sizes,
    cut,
    none_empty,
    telling_first,
    to_be_copied,
    vectors_of,
)
from course.checks.messages_and_collectives.rank_messages import A_SECOND_A_MESSAGE, NOT_EAGER
from course.checks.messages_and_collectives.ring_lookalikes import TRACES
from course.judging import Answer, ChapterChecks, Part
from course.judging.ranks.rank_run import RankRun

chapter = ChapterChecks("04_messages_and_collectives", BUILDS["04_messages_and_collectives"])
hint = chapter.hint
__all__ = [
    "broadcast_tree", "chapter", "crossover", "hint", "is_ring", "recursive_doubling", "recursive_doubling_seconds",
    "ring_all_gather", "ring_all_reduce", "ring_reduce_scatter", "ring_seconds", "timeline",
]  # fmt: skip


@chapter.exercise(
    points=2,
    hints=[
        "If everyone who has the array sends it on, how many ranks have it after 1, 2, 3 rounds?",
        "After k rounds ranks 0 to 2^k - 1 have it. In the next round each of them tells one rank that has not: rank r "
        "tells r + 2^k, if there is one.",
        "A rank asks three things in each round: have I the array already, do I get it now, or later? In the last "
        "round not everyone who has it has somebody to send it to.",
    ],
)
def broadcast_tree(
    answer: Answer, part: Part, *, sizes: Sizes = ((1, 4), (2, 3), (5, 7), (8, 8), (6, 0)), seed: int = 0
) -> None:
    """Every rank returns rank 0's array, by p - 1 messages in ceil(log2 p) rounds: half of it is for the rounds."""

    @cache
    def run(p: int, n: int) -> RankRun:
        x = to_be_copied(p, n, seed)
        return answer.on_ranks([(x if rank == 0 else None,) for rank in range(p)])

    with part(0.5, "every rank returns rank 0's array"):
        for p, n in telling_first(sizes):
            rank_results.copied(run(p, n), to_be_copied(p, n, seed))
    with part(0.5, "p - 1 messages, by send and recv"):
        for p, n in sizes:
            rank_messages.p_minus_1_messages(run(p, n))
    with part(1, "ceil(log2 p) rounds"):
        for p, n in sizes:  # with small messages sends would not wait for one another
            x = to_be_copied(p, n + NOT_EAGER, seed)
            rank_messages.log2_p_rounds(rank_messages.broadcast(answer, x, p))


@chapter.exercise(
    points=3,
    hints=[
        "Follow one chunk. It starts somewhere with one rank's numbers, goes round the ring once, and every rank that "
        "it comes to adds its own. Where must it start to end, complete, on the rank of its number?",
        "Chunk i ends on rank i after p - 1 steps to the right, so it starts on rank i + 1. Rank r hence sends chunk "
        "r - 1 first; in step k (counted from 0) it sends chunk r - 1 - k and receives chunk r - 2 - k, all modulo p.",
        "All ranks send at once: use comm.sendrecv, add your own share of the chunk that came to what came, as a new "
        "array, and send that in the next step. What is to be returned if p is 1?",
    ],
)
def ring_reduce_scatter(
    answer: Answer,
    part: Part,
    *,
    sizes: Sizes = ((1, 4), (2, 6), (3, 30), (4, 13), (5, 3), (3, 0)),
    large: Sizes = ((3, 30_000),),
    seed: int = 0,
) -> None:
    """Rank r returns chunk r of the sum; half of it is for p - 1 messages of a chunk to one neighbour."""

    @cache
    def shares(p: int, n: int) -> list[list[np.ndarray]]:
        return [cut(x, p) for x in vectors_of(p, n, seed)]

    @cache
    def run(p: int, n: int) -> RankRun:
        return answer.on_ranks([(own,) for own in shares(p, n)], A_SECOND_A_MESSAGE, may_change=[0])

    with part(0.5, "rank r returns chunk r of the sum"):
        for p, n in telling_first(sizes):
            rank_results.scattered(run(p, n), shares(p, n))
    with part(1.5, "p - 1 messages a rank, each a chunk, to one neighbour"):
        for p, n in sorted(sizes, reverse=True):  # the more ranks, the clearer what is wrong
            if none_empty(shares(p, n)[0]):
                lengths = [len(chunk) for chunk in shares(p, n)[0]]
                rank_messages.round_the_ring(run(p, n), "ring_reduce_scatter", lengths, times=1)
    with part(0.5, "the caller's chunks stay as they are"):
        for p, n in telling_first(sizes):
            if n >= p:
                rank_results.scattered(run(p, n), shares(p, n))
                rank_results.kept(run(p, n), shares(p, n), "ring_reduce_scatter")
    with part(0.5, "no deadlock with chunks of more than 64 KiB"):
        for p, n in large:
            rank_results.scattered(run(p, n), shares(p, n))
            rank_messages.as_few_rounds(run(p, n), run(p, p), "ring_reduce_scatter")


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
    sizes: Sizes = ((1, 4), (2, 6), (4, 12), (3, 8), (5, 3), (3, 0)),
    large: Sizes = ((3, 30_000),),
    seed: int = 0,
) -> None:
    """Every rank returns the list of all chunks; half of it is for p - 1 messages to one neighbour."""

    @cache
    def chunks(p: int, n: int) -> list[np.ndarray]:
        return cut(to_be_copied(p, n, seed), p)

    @cache
    def run(p: int, n: int) -> RankRun:
        return answer.on_ranks([(chunk,) for chunk in chunks(p, n)], A_SECOND_A_MESSAGE)

    with part(0.5, "every rank returns all chunks in the order of the ranks"):
        for p, n in telling_first(sizes):
            rank_results.gathered(run(p, n), chunks(p, n))
    with part(1, "p - 1 messages a rank, each a chunk, to one neighbour"):
        for p, n in sorted(sizes, reverse=True):  # the more ranks, the clearer what is wrong
            if none_empty(chunks(p, n)):
                lengths = [len(chunk) for chunk in chunks(p, n)]
                rank_messages.round_the_ring(run(p, n), "ring_all_gather", lengths, times=1)
    with part(0.5, "no deadlock with chunks of more than 64 KiB"):
        for p, n in large:
            rank_results.gathered(run(p, n), chunks(p, n))
            rank_messages.as_few_rounds(run(p, n), run(p, p), "ring_all_gather")


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
    sizes: Sizes = ((1, 4), (2, 6), (4, 24), (3, 8), (5, 3), (3, 0)),
    large: Sizes = ((3, 30_000),),
    seed: int = 0,
) -> None:
    """x becomes the sum on every rank; half of it is for 2(p - 1) messages a rank, none longer than a chunk."""

    @cache
    def run(p: int, n: int) -> RankRun:
        return answer.on_ranks([(x,) for x in vectors_of(p, n, seed)], A_SECOND_A_MESSAGE, may_change=[0])

    with part(0.5, "every rank returns the sum"):
        for p, n in telling_first(sizes):
            rank_results.sums(run(p, n), vectors_of(p, n, seed), "ring_all_reduce")
    with part(0.5, "x itself has become the sum"):
        for p, n in telling_first(sizes):
            rank_results.sums(run(p, n), vectors_of(p, n, seed), "ring_all_reduce", in_place=True)
    with part(1.5, "2(p - 1) messages a rank, each a chunk, to one neighbour"):
        for p, n in sorted(sizes, reverse=True):  # the more ranks, the clearer what is wrong
            if n >= p:
                lengths = [len(chunk) for chunk in np.array_split(range(n), p)]
                rank_messages.round_the_ring(run(p, n), "ring_all_reduce", lengths, times=2)
        for p, n in sizes:
            if n < p:  # an empty chunk need not be sent
                among = f"ring_all_reduce among {p} ranks, {n} elements"
                rank_messages.chunks_only(run(p, n), among, n, min(n, 1) * rank_messages.ITEMSIZE)
    with part(0.5, "no deadlock with chunks of more than 64 KiB"):
        for p, n in large:
            rank_results.sums(run(p, n), vectors_of(p, n, seed), "ring_all_reduce")
            rank_messages.as_few_rounds(run(p, n), run(p, p), "ring_all_reduce")


@chapter.exercise(
    points=3,
    hints=[
        "Let p be a power of two. In round k, rank r and its partner exchange all that they have and both add. Who has "
        "to be the partner so that, after the round, groups of 2^(k + 1) ranks agree?",
        "The partner of r differs from it in bit k alone: `r ^ 2**k` (exclusive or). After log2 p rounds all agree.",
        "Begin with `first, total = fold_in(comm, x)`, let the ranks below `first` do the rounds on `total`, and end "
        "with `return fold_out(comm, first, total)`.",
    ],
)
def recursive_doubling(
    answer: Answer,
    part: Part,
    *,
    sizes: Sizes = ((1, 4), (2, 3), (4, 5), (6, 16), (7, 0), (8, 12)),
    large: Sizes = ((4, 10_000), (8, 9_000)),
    seed: int = 0,
) -> None:
    """Every rank returns the sum; half of it is for log2 p messages of n elements a rank, and those of the fold."""

    @cache
    def run(p: int, n: int) -> RankRun:
        return answer.on_ranks([(x,) for x in vectors_of(p, n, seed)], A_SECOND_A_MESSAGE, may_change=[0])

    with part(0.5, "every rank returns the sum, for any p"):
        for p, n in telling_first(sizes):
            rank_results.sums(run(p, n), vectors_of(p, n, seed), "recursive_doubling")
    with part(1.5, "log2 p messages of n elements a rank, in as many rounds, and the fold's"):
        for p, n in sorted(sizes, reverse=True):  # the more ranks, the clearer what is wrong
            rank_messages.doubled(run(p, n), n)
            rank_results.sums(run(p, n), vectors_of(p, n, seed), "recursive_doubling")  # or they were others
    with part(0.5, "x stays as it is"):
        for p, n in telling_first(sizes):
            if n >= p:
                vectors = vectors_of(p, n, seed)
                rank_results.sums(run(p, n), vectors, "recursive_doubling")
                rank_results.kept(run(p, n), [[x] for x in vectors], "recursive_doubling")
    with part(0.5, "no deadlock with more than 64 KiB"):
        for p, n in large:
            rank_results.sums(run(p, n), vectors_of(p, n, seed), "recursive_doubling")
            rank_messages.as_few_rounds(run(p, n), run(p, p), "recursive_doubling")


@chapter.exercise(
    points=1,
    hints=[
        "How many messages does a rank send, one after the other, and how many bytes are in each?",
        "There are 2(p - 1) messages, and each is a chunk. In how many of these steps is a chunk added?",
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
    others: Sequence[collective_costs.Case] = (*ANY_NUMBER, (9, 1_234_577, 31.7e-6, 0.737e-9, 0.311e-9)),
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
        "How many more start-ups has the ring, with those of the fold counted? And how much less does it pay for a "
        "byte? With beta and gamma these are two differences between exercises 4a and 4b.",
        "The crossover is the first divided by the second; where nothing is gained with a byte, it is math.inf.",
    ],
)
def crossover(
    answer: Answer,
    part: Part,
    *,
    powers_of_two: Sequence[int] = (16, 4, 256),
    others: Sequence[int] = (6, 3, 12, 2, 1000),
    alpha: float = 50e-6,
    beta: float = 8e-9,
    gamma: float = 1.25e-9,
) -> None:
    """The bytes from which the ring is faster than recursive doubling."""
    with part(0.5, "p a power of two, gamma = 0"):
        for p in powers_of_two:
            collective_costs.judge_crossover(answer, (p, alpha, beta, 0.0))
    with part(0.5, "any p, and gamma; infinite where the ring never is faster"):
        for p in others:
            collective_costs.judge_crossover(answer, (p, alpha, beta, gamma))
        collective_costs.judge_crossover(answer, (2, alpha, beta, 0.0))


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
def is_ring(answer: Answer, part: Part, *, traces: Sequence[Sequence[ring_lookalikes.Trace]] = TRACES) -> None:
    """Traces of rings and of look-alikes are distinguished; a group gives points if all of its verdicts are right."""
    for number, group in enumerate(traces):
        with part(0.5, f"group {number + 1}"):
            for name, p, n in group:
                ring_lookalikes.judge(answer, name, p, n)
