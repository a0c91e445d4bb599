"""Micro-batches under a limit of workspace: measured tables, the least time, and known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from course.judging import Answer, Wrong, expect
from course.probes.operators import planned_counted
from minidl.random import Purpose, stream

Row = tuple[int, str, int, int]
"""(size, algorithm, microseconds, nbytes)"""

Table = list[Row]

ALGORITHMS = ("loops", "im2col", "fft", "winograd")

TRAPS: tuple[tuple[int, Table, int], ...] = (
    (6, [(4, "fft", 46, 90), (3, "im2col", 33, 60), (1, "loops", 25, 0)], 90),
    (13, [(6, "fft", 50, 7), (5, "fft", 38, 7), (5, "winograd", 30, 8), (4, "im2col", 31, 7), (2, "im2col", 27, 6),
          (1, "loops", 15, 0)], 7),
    (7, [(7, "fft", 20, 101), (7, "loops", 90, 0), (3, "winograd", 30, 100), (4, "im2col", 35, 100)], 100),
    (5, [(5, "im2col", 70, 40), (2, "im2col", 20, 40), (3, "winograd", 31, 41), (1, "loops", 30, 0)], 80),
    (7, [(1, "fft", 60, 1), *((size, name, 5 + size, size) for size in (6, 4) for name in ALGORITHMS)], 9),
    (31, [(15, "fft", 40, 55), (10, "im2col", 52, 44), (6, "winograd", 47, 33)], 60),
    (9, [(2, "fft", 9, 30), (3, "im2col", 50, 30), (5, "loops", 55, 0)], 30),
)  # fmt: skip
"""Tables for which these are not best: the largest size first, the best rate first, a row above the limit, equal sizes,
one algorithm, one micro-batch, the fastest row of each size before the limit, workspaces that are added up, the six
best rates, two rows; and a batch that the best rates do not add up to."""

LARGE_TRAPS: tuple[tuple[int, Table, int], ...] = (
    (300, [(24, "fft", 240, 80), (23, "winograd", 232, 80), (1, "loops", 90, 0)], 80),
    (290, [(4, "fft", 37, 60), (3, "im2col", 31, 60), (1, "loops", 70, 0)], 60),
)
"""Tables for which these are not best: the best rate for all but some tens of samples, a few dozen micro-batches."""


def measured(B: int, seed: int, is_small: bool) -> tuple[Table, int]:
    """A table as it may be measured, and a limit: of many, one in which most of the shortcuts are not the best.

    is_small: few rows, so that all possibilities can be tried.
    """
    rng = stream(Purpose.MANUAL, seed, "measured convolutions", B)
    tables = (drawn(B, rng, is_small) for _ in range(20))
    return max(tables, key=lambda one: sum(time != least(B, *one) for time in shortcuts(B, *one).values()))


def drawn(B: int, rng: np.random.Generator, is_small: bool) -> tuple[Table, int]:
    """A table in which some sizes are missing, and a limit. Larger sizes are faster for a sample, in the mean."""
    sizes = sorted({int(size) for size in rng.integers(2, max(4, min(B, 24)) + 2, 3 if is_small else 9)})
    rows = [(1, ALGORITHMS[0], int(rng.integers(200, 500)), 0)]
    for size in sizes:
        for number in rng.permutation(len(ALGORITHMS))[: 2 if is_small else 3].tolist():
            time = (310 - 60 * number + 13 * size * (6 - number)) * rng.uniform(0.6, 1.5)
            rows.append((size, ALGORITHMS[number], int(time), number * (1000 + 777 * size)))
    rows = [rows[place] for place in rng.permutation(len(rows)).tolist()]
    return rows, sorted(nbytes for _, _, _, nbytes in rows)[len(rows) * 2 // 3]


@cache
def fastest(rows: tuple[Row, ...], limit: int) -> dict[int, int]:
    """For each size the shortest time of a row within the limit."""
    times: dict[int, int] = {}
    for size, _, time, nbytes in rows:
        if nbytes <= limit:
            times[size] = min(time, times.get(size, time))
    return times


def least(B: int, rows: Sequence[Row], limit: int) -> int | None:
    """The oracle: the least time, by dynamic programming; None if no sizes add up to B."""
    times, best = fastest(tuple(rows), limit), [0, *[-1] * B]
    for b in range(1, B + 1):
        ways = [best[b - size] + time for size, time in times.items() if size <= b and best[b - size] >= 0]
        best[b] = min(ways, default=-1)
    return best[B] if best[B] >= 0 else None


def by_trying(B: int, rows: Sequence[Row], limit: int, largest: int | None = None) -> int | None:
    """The same by trying all lists of sizes in descending order."""
    if B == 0:
        return 0
    times = fastest(tuple(rows), limit)
    ways = []
    for size, time in times.items():
        if size <= min(B, B if largest is None else largest):
            rest = by_trying(B - size, rows, limit, size)
            ways += [] if rest is None else [time + rest]
    return min(ways, default=None)


def shortcuts(B: int, rows: Sequence[Row], limit: int) -> dict[str, int | None]:
    """The times that known mistakes lead to, by the sentence that explains each; None where they lead nowhere."""
    times = fastest(tuple(rows), limit)
    of_each = [least(B, [row for row in rows if row[1] == algorithm], limit) for algorithm in ALGORITHMS]
    best_rates = sorted((row for row in rows if row[3] <= limit), key=lambda row: row[2] / row[0])[:4]
    equal = [time * (B // size) for size, time in times.items() if B % size == 0]
    of_each_size = list({row[0]: row for row in sorted(rows, key=lambda row: -row[2])}.values())
    return {
        "A row whose workspace is the limit may be used.": least(B, rows, limit - 1),
        "If the fastest row of a size is above the limit, a slower one may fit.": least(B, of_each_size, limit),
        "Several small micro-batches may be faster than one large one.": times.get(B),
        "Taking the largest possible size each time is not always best.": greedy(B, times, lambda size: -size),
        "Taking the size with the shortest time for a sample each time is not always best.": greedy(
            B, times, lambda size: times[size] / size
        ),
        "A row with a longer time for a sample may be needed, too.": least(B, best_rates, limit),
        "The micro-batches may have different sizes.": min(equal, default=None),
        "Each micro-batch may have another algorithm.": min((time for time in of_each if time), default=None),
    }


def greedy(B: int, times: dict[int, int], key: Callable[[int], float]) -> int | None:
    """The time if each micro-batch has the possible size whose key is smallest."""
    total = 0
    while B:
        possible = [size for size in times if size <= B]
        if not possible:
            return None
        size = min(possible, key=key)
        total, B = total + times[size], B - size
    return total


def judge(answer: Answer, B: int, rows: Table, limit: int, most_operations: int = 0) -> None:
    """Raise Wrong unless the answer's micro-batches are possible, and take the least time.

    most_operations: with times; 0 for any number.
    """
    text = str(rows) if len(rows) <= 6 else f"{len(rows)} rows"
    called = f"micro_batches({B}, {text}, {limit})"
    if most_operations:
        got = answer.run(planned_counted, B, rows, limit, most_operations)
    else:
        got = answer(B, list(rows), limit)
    want = least(B, rows, limit)
    if want is None or got is None:
        expect.true(
            want is None and got is None,
            f"{called}: expected {'None' if want is None else 'a list of micro-batches'}, got {expect.shown(got)}.",
            "The sizes of the rows within the limit cannot add up to B." if want is None
            else "A batch of 0 samples has no micro-batch: the list is empty." if B == 0
            else "A row whose workspace is the limit may be used." if least(B, rows, limit - 1) is None
            else "",
        )  # fmt: skip
        return
    plan = pairs(got, called)
    times: dict[tuple[int, str], int] = {}
    for size, algorithm, time, nbytes in rows:
        if nbytes <= limit:
            times[size, algorithm] = time
    unknown = [pair for pair in plan if pair not in times]
    if unknown:
        is_measured = any(row[:2] == unknown[0] for row in rows)
        more = f"needs more than {limit} bytes" if is_measured else "is not in the table"
        raise Wrong(
            f"{called}: {unknown[0]} {more}.",
            "Every single micro-batch stays within the limit." if is_measured else "",
        )
    expect.true(
        sum(size for size, _ in plan) == B,
        f"{called}: the sizes add up to {sum(size for size, _ in plan)}, expected {B}.",
        "The last micro-batch has what the others leave." if plan else "",
    )
    total = sum(times[pair] for pair in plan)
    fits = [sentence for sentence, time in shortcuts(B, rows, limit).items() if time == total]
    expect.true(
        total <= want,
        f"{called}: {plan if len(plan) <= 8 else f'{len(plan)} micro-batches'} take {total} microseconds, "
        f"{want} are possible.",
        fits[0] if len(fits) == 1 else "",
    )


def pairs(got: Any, called: str) -> list[tuple[int, str]]:
    """The micro-batches as pairs, or Wrong."""
    for each in expect.listed(got, called, "a list of pairs"):
        if not (
            isinstance(each, (list, tuple)) and len(each) == 2 and type(each[0]) is int and isinstance(each[1], str)
        ):
            raise Wrong(
                f"{called}: expected pairs (size, algorithm), got {expect.shown(each)} among them.",
                "A micro-batch is its size and its algorithm alone."
                if isinstance(each, (list, tuple)) and len(each) == 4
                else "",
            )
    return [(each[0], each[1]) for each in got]


def corners(seed: int) -> list[tuple[int, Table, int]]:
    """No sample, nothing possible, a limit that is just reached, one row, sizes above B, time without workspace."""
    rows, limit = measured(9, seed, is_small=True)
    even = [(2, "fft", 35, 61), (4, "im2col", 47, 55)]
    return [
        (0, rows, limit),
        (0, [], 5),
        (3, [], 5),
        (7, even, 61),
        (6, even, 61),
        (6, even, 54),
        (6, [(6, "winograd", 31, 77), (3, "im2col", 16, 77)], 77),
        (6, [(6, "winograd", 31, 77), (3, "im2col", 16, 76)], 76),
        (5, [(1, "loops", 17, 0)], 0),
        (3, [(4, "fft", 1, 0), (3, "fft", 50, 0), (1, "loops", 18, 0)], 0),
        (1, [(2, "fft", 9, 3), (3, "fft", 4, 3)], 8),
    ]
