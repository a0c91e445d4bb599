"""The checks of chapter 04: messages and collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course.checking import Answer, Chapter, Part, expect

chapter = Chapter("04_messages_and_collectives")
hint = chapter.hint


@chapter.exercise(points=3, hints=["Whom does rank r tell in the round in which 2^k ranks know?"])
def broadcast_tree(
    answer: Answer, part: Part, sizes: Sequence[tuple[int, int]] = ((1, 4), (2, 3), (5, 7), (8, 8)), seed: int = 0
) -> None:
    """Every rank ends with rank 0's array, and no rank sends more than ceil(log2 p) messages."""
    with part(2, "every rank has rank 0's array"):
        for nodes, n in sizes:
            x = np.random.default_rng(seed).standard_normal(n)
            run = answer.on_ranks([(x if rank == 0 else np.zeros(n),) for rank in range(nodes)])
            for rank, got in enumerate(run.results):
                expect.array(got, x, f"broadcast_tree(comm, x) on rank {rank} of {nodes}, x of {n} elements")
    with part(1, "ceil(log2 p) rounds"):
        for nodes, n in sizes:
            run = answer.on_ranks([(np.zeros(n),) for _ in range(nodes)])
            expect.same(sum(run.messages), nodes - 1, f"messages of all {nodes} ranks together")
            rounds = int(np.ceil(np.log2(nodes)))
            expect.true(
                run.messages[0] == rounds, f"rank 0 of {nodes} sent {run.messages[0]} messages, a tree needs {rounds}."
            )
