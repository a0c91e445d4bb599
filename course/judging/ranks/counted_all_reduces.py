"""How many all-reduces a rank made, and how many words all ranks may send in one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course.judging.ranks.rank_run import RankRun

WHY_NOT = {
    "all_gather": "An all-gather alone brings every rank the arrays of all others: more words than their sum needs.",
    "gather": "To gather arrays on one rank needs p - 1 times the words, and the others wait for it.",
    "broadcast": "What is computed from sums that all ranks have need not be sent to anybody.",
    "barrier": "The all-reduce itself waits for all ranks.",
    "reduce": "A reduce gives one rank the sum; all ranks need it.",
}
"""For other operations, why an answer needs none of them."""


def all_reduces(run: RankRun, rank: int) -> tuple[int, list[str]]:
    """The all-reduces that a rank made, and the names of other operations that it called.

    A reduce-scatter and an all-gather together are an all-reduce.
    """
    made = Counter(each.operation for each in run.collectives[rank])
    pairs = min(made["reduce_scatter"], made["all_gather"])
    others = [name for name in run.operations[rank] if name not in ("all_reduce", "reduce_scatter", "all_gather")]
    others += [name for name in ("all_gather", "reduce_scatter") if made[name] > pairs]
    return made["all_reduce"] + pairs, others


def words_sent(p: int, words: int) -> int:
    """Words that p ranks together send in an all-reduce, by the more talkative of a ring and recursive doubling.

    With 2 and with 3 ranks both send 2 (p - 1) words for each element.

    >>> words_sent(2, 5), words_sent(4, 5)
    (10, 40)
    """
    doubling = p.bit_length() - 1  # rounds among the largest power of two of the ranks; the others fold into them
    return words * max(2 * (p - 1), 2**doubling * doubling + 2 * (p - 2**doubling))
