"""Checks the number and the total words of an answer's all-reduces, and that it communicates in no other way."""

from __future__ import annotations

from course.checks.tensor_parallelism.divided_runs import Divided
from course.judging import Wrong
from course.judging.ranks.counted_all_reduces import WHY_NOT, all_reduces, words_sent
from course.judging.ranks.rank_run import could_have_carried
from course.plural import counted


def compare_all_reduces(one: Divided, name: str, words: int, why_more: str, most: int = 1) -> None:
    """Raise Wrong unless the answer made at most `most` all-reduces of this many words, and nothing else.

    Parameters
        name      the result that they carry to each rank, of `words` words
        why_more  the likely cause if there are more calls or more words
    """
    p, total = one.p, most * words
    calls = "one all-reduce" if most == 1 else f"{counted(most, 'all-reduce')}, together"
    expected = f"expected {'at most ' if most > 1 else ''}{calls} of {counted(total, 'word')}"
    for rank in range(p):
        count, others = all_reduces(one.run, rank)
        if others:
            raise Wrong(f"{one.called(rank)}: {expected}, and no comm.{others[0]}.", WHY_NOT.get(others[0], ""))
        if count > most:
            raise Wrong(f"{one.called(rank)}: {expected}, got {counted(count, 'all-reduce')}.", why_more)
        if p > 1 and not count:
            raise Wrong(f"{one.called(rank)}: {expected}, got none.", "Which result is only a partial sum here?")
    sent, allowed = sum(one.run.nbytes) / 8, words_sent(p, total)
    if sent > allowed:
        raise Wrong(
            f"{one.answer.name} on {p} ranks, {one.sizes}: {expected}; that is at most {counted(allowed, 'word')} sent "
            f"by all ranks, got {sent:g}.",
            why_more,
        )
    for rank in range(p) if p > 1 else ():
        could_have_carried(one.run, f"{one.called(rank)}: {name}", rank, range(p), 8 * words)
