"""SUMMA on a grid: cases, the right blocks, words received, words in a message, and what known mistakes give."""

from __future__ import annotations

from course.checks.tensor_parallelism.divided_runs import Divided, Rank
from course.checks.tensor_parallelism.linear_layers import TINY
from course.judging import Answer, expect
from course.plural import counted
from minidl.random import Purpose, stream

Case = tuple[int, int, int, int, int, int]
"""(pr, pc, width, m, k, n)"""

SETTING_UP = ("mesh", "split")
"""Operations of `row_and_column`, which do not count."""


def grid(answer: Answer, case: Case, seed: int) -> Divided:
    """`summa` on pr times pc ranks."""
    pr, pc, width, m, k, n = case
    rng = stream(Purpose.MANUAL, seed, "SUMMA", *case)
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    b[:, 0] *= TINY
    ranks = []
    for rank in range(pr * pc):
        i, j = divmod(rank, pc)
        rows, columns = slice(i * m // pr, (i + 1) * m // pr), slice(j * n // pc, (j + 1) * n // pc)
        of_a, of_b = slice(j * k // pc, (j + 1) * k // pc), slice(i * k // pr, (i + 1) * k // pr)
        both = range(max(of_a.start, of_b.start), min(of_a.stop, of_b.stop))
        last = slice(k - width, k)
        mistakes = {
            "This is the block of the sum, divided by the number of ranks.": a[rows]
            @ b[:, columns]
            / len(range(pr * pc)),
            "This is the product of the panels that this rank has itself.": a[rows][:, both] @ b[both][:, columns],
            "Only the last panels are in it: add up the products of all.": a[rows][:, last] @ b[last][:, columns],
            "Only the first panels are in it: add up the products of all.": a[rows][:, :width] @ b[:width, columns],
            "This is the transposed block.": (a[rows] @ b[:, columns]).T,
            "This is all of C. Each rank returns its own block.": a @ b,
        }
        if pr * pc > 1 and (m, n) == (m // pr * pc, n // pc * pr):
            other = divmod(rank, pr)[::-1]
            mistakes["Rank r is in row r // pc and column r % pc."] = (
                a[slice(other[0] * m // pr, (other[0] + 1) * m // pr)] @ b
            )[:, columns]
        given = {"pr": pr, "pc": pc, "width": width, "a": a[rows, of_a].copy(), "b": b[of_b, columns].copy()}
        ranks.append(Rank(given, {"C": a[rows] @ b[:, columns]}, {"C": mistakes}))
    return Divided(answer, f"grid of {pr} times {pc}, A {m} x {k}, B {k} x {n}, panels of {width}", ranks)


def words(case: Case) -> float:
    """Words of panels that a rank receives: the oracle."""
    pr, pc, _, m, k, n = case
    return m * k / pr * (1 - 1 / pc) + k * n / pc * (1 - 1 / pr)


def compare_words(one: Divided, case: Case) -> None:
    """Raise Wrong unless each rank received the words of the panels that others have, and no more."""
    pr, pc, _, m, k, n = case
    want = words(case)
    for rank in range(one.p):
        got = sum(
            event[4] / 8 for event in one.run.events
            if event[0] == rank and event[1] == "receive" and event[7] not in SETTING_UP
        )  # fmt: skip
        causes = [
            (got == (m * k + k * n) * (1 - 1 / one.p), "Whole matrices are gathered: a rank needs the panels of its "
             "own row and column only."),
            (got == m * k / pr + k * n / pc, "A rank need not be sent its own panels."),
            (got < want, "A rank cannot compute its block without the panels of its row and of its column."),
            (got > want, "Each part of a panel comes to a rank once: A along the rows of the grid, B along its "
             "columns."),
        ]  # fmt: skip
        expect.true(
            abs(got - want) < 1e-9,
            f"{one.called(rank)}: expected {want:g} words received, got {got:g}.",
            next((sentence for holds, sentence in causes if holds), ""),
        )


def compare_panels(one: Divided, case: Case) -> None:
    """Raise Wrong if a message is longer than a part of a panel, or the groups of ranks are made again and again."""
    pr, pc, width, m, _, n = case
    most = 8 * width * max(m // pr if pc > 1 else 0, n // pc if pr > 1 else 0)
    for rank in range(one.p):
        events = [event for event in one.run.events if event[0] == rank and event[1] == "receive"]
        longest = max((event[4] for event in events if event[7] not in SETTING_UP), default=0)
        expect.true(
            longest <= most,
            f"{one.called(rank)}: expected messages of at most {counted(most // 8, 'word')}, got one of "
            f"{longest // 8}.",
            "Whole blocks are sent: a rank has room for one panel at a time.",
        )
        made = sum(each.operation in SETTING_UP for each in one.run.collectives[rank])
        expect.true(
            made <= 1,
            f"{one.called(rank)}: expected one call of row_and_column, got {made}.",
            "The groups of ranks stay the same: make them once, before the first panel.",
        )
