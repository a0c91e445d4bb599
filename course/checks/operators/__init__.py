"""The checks of chapter 03: operators and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from course.checks.library_versions import BUILDS
from course.checks.operators import batch_plans, counted_filters, launches, patch_matrices
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("03_operators", BUILDS["03_operators"])
hint = chapter.hint
__all__ = ["chapter", "fuse", "hint", "im2col", "micro_batches", "winograd"]


@chapter.exercise(
    points=4,
    hints=[
        "Put the image into a larger array of zeros. For one position (r, s) of the filter, the numbers that it meets "
        "in all patches are one slice of that array, every stride-th row and column.",
        "R S such slices, each of shape (N, C, H', W'), are all of B. Write them into an array of shape "
        "(C, R, S, N, H', W'): which axes of a slice have to be moved?",
        "product has filters as rows and (n, i, j) as columns. Undo the reshape of the columns first; then move the "
        "axis of the images to the front.",
    ],
)
def im2col(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[patch_matrices.Case] = (
        (2, 3, 7, 6, 4, 3, 2, 1, 0), (1, 1, 5, 5, 1, 3, 3, 1, 1), (3, 2, 8, 9, 3, 2, 3, 3, 2),
        (2, 1, 4, 3, 2, 1, 1, 2, 1), (1, 2, 2, 1, 2, 4, 5, 1, 2), (0, 2, 6, 5, 3, 2, 2, 1, 1),
        (2, 5, 3, 4, 1, 3, 4, 2, 0), (1, 3, 79, 73, 2, 5, 4, 2, 3),
    ),
    simple: patch_matrices.Case = (1, 2, 6, 5, 1, 2, 3, 1, 0),
    large: Sequence[patch_matrices.Case] = ((1, 2, 8, 7, 2, 3, 2, 2, 1), (9, 2, 41, 48, 2, 3, 2, 2, 1)),
    seed: int = 0,
) -> None:  # fmt: skip
    """Patches and result; half of it is for one product and no loop over pixels."""
    given = patch_matrices.of_all(simple, cases, seed)

    @cache
    def run(number: int) -> dict[str, Any]:
        return patch_matrices.run(answer, given[number])

    with part(1, "each column of B is a patch"):
        for number, each in enumerate(given[1:], 1):
            patch_matrices.compare_patches(each, run(number))
    with part(1, "the result is the convolution"):
        for number, each in enumerate(given[1:], 1):
            patch_matrices.compare_result(each, run(number))
    with part(1, "one product of all filters with all patches"):
        for number, each in enumerate(given):
            patch_matrices.compare_product(each, run(number))
        patch_matrices.compare_patches(given[0], run(0))
        patch_matrices.compare_result(given[0], run(0))
    with part(1, "no loop of Python over images or pixels"):
        patch_matrices.compare_result(given[0], run(0))
        small, many = (patch_matrices.images(case, seed) for case in large)
        patch_matrices.compare_lines(answer, small, many)


@chapter.exercise(
    points=4,
    hints=[
        "Two neighbouring outputs need four numbers of x. Their four products each have a sum or a difference of two "
        "of these numbers, and one transformed weight.",
        "The outputs are m1 + m2 + m3 and m2 - m3 - m4, with m1 = (x0 - x2) w0 and m4 = (x1 - x3) w2. In m2 and m3 "
        "the numbers are x1 + x2 and x2 - x1. Which weights make the outputs right?",
        "Transform the weights before the loop, with the factor 1 / 2 in them. Two more steps are left: the loop over "
        "tiles, which begin at x[0], x[2], x[4] and so on, and an output that is left over.",
    ],
)
def winograd(
    answer: Answer,
    part: Part,
    *,
    lengths: Sequence[int] = (4, 6, 5, 3, 9, 2, 1, 0, 1203),
    counted: Sequence[int] = (4, 3, 7, 12, 51, 2),
    seed: int = 0,
) -> None:
    """The outputs; three quarters are for the multiplications of the tiles and of the filter."""

    @cache
    def run(n: int) -> dict[str, int]:
        return counted_filters.run(answer, *counted_filters.signal(n, seed))

    with part(1, "the outputs are those of the direct sum"):
        for n in lengths:
            for size in (1.0, 3e-9, -2e7):
                counted_filters.judge_outputs(answer, *counted_filters.signal(n, seed, size))
    with part(2, "4 multiplications for 2 outputs"):
        for n in counted:
            counted_filters.compare_products(counted_filters.signal(n, seed)[0], run(n))
    with part(1, "the filter is transformed once"):
        for n in counted:
            counted_filters.compare_transformation(counted_filters.signal(n, seed)[0], run(n))
            counted_filters.compare_products(counted_filters.signal(n, seed)[0], run(n))


@chapter.exercise(
    points=5,
    hints=[
        "Dynamic programming: the least time for b samples follows from the least times for fewer samples, whatever "
        "micro-batches those have.",
        "best[b] is the smallest of best[b - size] + time over all rows within the limit whose size is at most b. "
        "best[0] is 0. Some b may have no such row.",
        "Keep the row that gave each best[b]. Where do you start to follow these rows, and where does the row of b "
        "lead?",
    ],
)
def micro_batches(
    answer: Answer,
    part: Part,
    *,
    small: Sequence[int] = (5, 11, 16, 8, 13),
    large: Sequence[int] = (120, 300, 37),
    seed: int = 0,
) -> None:
    """The least time against all possibilities for small batches, and in few operations for large ones."""
    with part(2, "small batches: the least time of all micro-batches within the limit"):
        for B, rows, limit in batch_plans.TRAPS:
            batch_plans.judge(answer, B, list(rows), limit)
        for B in small:
            batch_plans.judge(answer, B, *batch_plans.measured(B, seed, is_small=True))
    with part(1, "no sample, nothing possible, a limit that is just reached"):
        for B, rows, limit in batch_plans.corners(seed):
            batch_plans.judge(answer, B, rows, limit)
    with part(2, "large batches, within 6 B n operations"):
        tables = [(B, *batch_plans.measured(B, seed, is_small=False)) for B in large]
        for B, rows, limit in [*batch_plans.LARGE_TRAPS, *tables]:
            batch_plans.judge(answer, B, list(rows), limit, 6 * B * len(rows))


@chapter.exercise(
    points=5,
    hints=[
        "An elementwise instruction cannot share a launch with one on which it depends through an instruction of "
        "another kind. So ask of each: how many elementwise launches must there be at least, up to its own?",
        "Its level: 1 if it depends on nothing. The level of what it depends on, if that is elementwise; one more, if "
        "it is not. An instruction of another kind has the level of what it depends on. All elementwise instructions "
        "of a level share a launch.",
        "What an instruction depends on: whoever wrote its arguments last; and if it overwrites an array, all that "
        "have read the array before. What is left: the order of the launches, and which results they store.",
    ],
)
def fuse(
    answer: Answer,
    part: Part,
    *,
    pure: Sequence[int] = (6, 17, 40),
    writing: Sequence[int] = (7, 19, 45),
    long: int = 1500,
    seed: int = 0,
) -> None:
    """The programs' results; three fifths are for few launches, few stored values, and writes in place."""
    programs = [*launches.PURE, *(launches.drawn(size, (0.3, 0.0), seed, name) for size in pure for name in ("a", "b"))]
    written = [*launches.WRITING]
    written += [launches.drawn(size, (0.15, 0.25), seed, name) for size in writing for name in ("a", "b", "c")]
    with part(1, "without writes in place: the program's results"):
        for program, results in programs:
            launches.judge(answer, program, results)
    with part(1.5, "without writes in place: the fewest launches"):
        for program, results in [*programs, launches.drawn(long, (0.3, 0.0), seed), launches.chain(long)]:
            launches.judge(answer, program, results, "launches")
    with part(1, "no value is stored that nobody reads"):
        for program, results in programs:
            launches.judge(answer, program, results, "launches, stored")
    with part(1.5, "with writes in place: the program's results, the fewest launches"):
        for program, results in written:
            launches.judge(answer, program, results, "launches")
