"""The checks of chapter 09: gradient compression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from course.checks.gradient_compression import (
    corrected_velocities,
    random_levels,
    sent_entries,
    sparse_rounds,
    sparse_steps,
)
from course.checks.library_versions import BUILDS
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("09_gradient_compression", BUILDS["09_gradient_compression"])
hint = chapter.hint
__all__ = ["chapter", "corrected_entries", "hint", "qsgd", "sparse_sum", "sparsify", "top_k_step"]


@chapter.exercise(
    points=3,
    hints=[
        "First add the gradient to the residual, in place: from then on the residual is the total. Which entries leave "
        "it?",
        "residual += gradient writes the total into the residual. np.flatnonzero(mask) has the indices where a "
        "mask is True.",
        "residual[indices] is a copy of these entries: take it before you clear them.",
    ],
)
def sparsify(
    answer: Answer, part: Part, *, sizes: Sequence[int] = (8, 25, 1, 1100), steps: int = 6, seed: int = 0
) -> None:
    """The entries above a threshold; two thirds are for the residual: that it is added, and loses no bit."""

    @cache
    def run(n: int, steps: int) -> sent_entries.Run:
        return sent_entries.run(answer, sent_entries.gradients_of(n, steps, seed), sent_entries.THRESHOLD)

    with part(0.5, "the first step: which entries are sent"):
        for n in sizes:
            sent_entries.compare_sent(run(n, 1))
    with part(1, "many steps: what was kept is sent later"):
        for n in sizes:
            sent_entries.compare_sent(run(n, steps))
            first, *others = sent_entries.gradients_of(n, 3, seed)  # with what earlier calls have kept
            sent_entries.compare_sent(sent_entries.run(answer, others, sent_entries.THRESHOLD / 2, kept=first / 8))
    with part(1, "to the bit: each entry is sent or kept, and nothing is lost"):
        for n in sizes:
            sent_entries.compare_bits(run(n, steps))
    with part(0.5, "nothing to send, everything, no entries, a threshold of 0"):
        for one in sent_entries.corners(answer):
            sent_entries.compare_bits(one)


@chapter.exercise(
    points=5,
    hints=[
        "The residual becomes the total: residual += gradient. np.argsort(-np.abs(residual), kind='stable')[:k] are "
        "the indices of the k largest magnitudes, equal ones in order.",
        "message = pairs(chosen, residual[chosen]); then clear these entries of the residual; then "
        "comm.all_gather(message) returns the messages of all ranks, yours among them.",
        "Start from zeros in float64, and add what each message has: the indices of one message are all different, "
        "so total[indices] += values adds each once. What is the mean of all ranks?",
    ],
)
def top_k_step(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[sparse_steps.Case] = ((2, 7, 2), (4, 9, 3), (3, 4, 4), (1, 6, 2), (2, 1100, 20)),
    steps: int = 3,
    seed: int = 0,
) -> None:
    """The serial step; 3.5 of 5 points are for the residuals, the one all-gather of 8 k bytes, and equal bits."""

    @cache
    def runs(case: sparse_steps.Case) -> sparse_steps.Made:
        return sparse_steps.runs(answer, case, steps, seed)

    @cache
    def tied() -> sparse_steps.Made:
        return sparse_steps.tied(answer)

    known = [(case[0], case[1], case[2]) for case in cases]
    with part(1.5, "the weights after each step"):
        for case in known:
            sparse_steps.compare_weights(runs(case))
    with part(1.5, "each rank keeps what it has not sent, to the bit"):
        for case in known:
            sparse_steps.compare_residuals(runs(case))
    with part(1, "one all-gather of 8 k bytes, and nothing else"):
        for case in known:
            sparse_steps.compare_traffic(runs(case))
        sparse_steps.compare_traffic(tied())
    with part(1, "equal magnitudes, and the same bits on all ranks"):
        sparse_steps.compare_residuals(tied())
        sparse_steps.compare_bits(tied())
        sparse_steps.compare_bits(sparse_steps.rounded(answer))
        for case in known:
            sparse_steps.compare_bits(runs(case))


@chapter.exercise(
    points=3,
    hints=[
        "In this order: v <- m v + g; waiting <- waiting + v; choose; send `waiting`; clear. All in place: velocity *= "
        "m; velocity += gradient; waiting += velocity.",
        "np.argsort(-np.abs(waiting), kind='stable')[:k] are the k largest, equal ones in order. Take their values "
        "before you clear them. What does masking clear besides?",
    ],
)
def corrected_entries(
    answer: Answer,
    part: Part,
    *,
    constant: Sequence[corrected_velocities.Constant] = ((0.9, 10, 1), (0.5, 4, 3), (0.0, 5, 2)),
    waits: Sequence[corrected_velocities.Case] = ((4, 8, 1, 0.9), (5, 6, 2, 0.5), (1100, 2, 20, 0.9)),
    masked: Sequence[corrected_velocities.Case] = ((5, 7, 2, 0.9), (4, 5, 1, 0.5)),
    seed: int = 0,
) -> None:
    """Two thirds are for the displacement of dense momentum: constant ones by closed form, and any other."""
    with part(1, "constant gradients: entries that wait move as far as with dense momentum"):
        for case in (*constant, *corrected_velocities.drawn_constant(seed)):
            corrected_velocities.compare_constant(answer, case, seed)
    with part(1, "any gradients: what was sent and what waits are the steps of dense momentum"):
        for each in waits:
            corrected_velocities.compare_displacement(corrected_velocities.random_run(answer, each, seed, False))
    with part(0.5, "the right entries are sent and cleared, also with equal magnitudes"):
        for each in waits:
            corrected_velocities.compare_steps(corrected_velocities.random_run(answer, each, seed, False))
        for one in corrected_velocities.tied_runs(answer):
            corrected_velocities.compare_steps(one)
    with part(0.5, "with masking"):
        for each in masked:
            corrected_velocities.compare_steps(corrected_velocities.random_run(answer, each, seed, True))


@chapter.exercise(
    points=3,
    hints=[
        "a = s * np.abs(gradient) / norm; lower = np.floor(a). With which probability must the upper level be taken so "
        "that the mean is a?",
        "A comparison of arrays gives True and False, which count as 1 and 0: which comparison says where the "
        "upper level is taken? The sign comes last.",
        "Before all that: if norm is 0, return 0.0 and np.zeros(n, np.int8). At the end: .astype(np.int8).",
    ],
)
def qsgd(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[random_levels.Case] = ((40, 30), (5, 4), (16, 1), (9, 2), (1100, 100)),
    seed: int = 0,
) -> None:
    """The levels for given random numbers; half is for the mean, the error's bound, and one byte a number."""
    with part(1, "the norm, and the levels for the given random numbers"):
        for case in cases:
            random_levels.judge_levels(answer, (case[0], case[1]), seed)
    with part(1, "right on average, and the squared error within its bound"):
        for case in cases:
            random_levels.judge_averages(answer, (case[0], case[1]), seed)
    with part(0.5, "one byte a number"):
        for case in cases:
            random_levels.judge_bytes(answer, (case[0], case[1]), seed)
    with part(0.5, "zeros, one number, whole multiples, tiny numbers, a hundred levels"):
        for name in random_levels.CORNERS:
            random_levels.judge_corner(answer, name)


@chapter.exercise(
    points=4,
    hints=[
        "Keep the partial sum as a whole vector: total = np.zeros(n, np.float32); total[indices] = values. What it "
        "holds are np.flatnonzero(total).",
        "distance = 1; while distance < comm.size: partner = comm.rank ^ distance; ...; distance *= 2. The message is "
        "pairs(held, total[held]) if 8 * len(held) < 4 * n, else total.",
        "What comes is pairs if its dtype is np.int32: unpack them, and add them where they belong. Else it is a "
        "whole vector.",
    ],
)
def sparse_sum(
    answer: Answer,
    part: Part,
    *,
    sums: Sequence[sparse_rounds.Case] = ((2, 9, 2), (4, 12, 3), (1, 7, 2), (2, 20_000, 9_000)),
    sparse: Sequence[sparse_rounds.Case] = ((4, 60, 3), (8, 100, 2)),
    filling: Sequence[sparse_rounds.Case] = ((4, 16, 4), (4, 20, 8), (8, 24, 2), (2, 10, 8)),
    seed: int = 0,
) -> None:
    """The sum; three quarters are for partners, the bytes of every round, and the switch to the whole vector."""

    @cache
    def drawn(case: sparse_rounds.Case, kind: str = "random") -> sparse_rounds.Sum:
        return sparse_rounds.drawn(answer, case, seed, kind)

    def known(cases: Sequence[sparse_rounds.Case]) -> list[sparse_rounds.Case]:
        return [(case[0], case[1], case[2]) for case in cases]

    with part(1, "the sum, the same on all ranks"):
        for case in known(sums):
            sparse_rounds.compare_sums(drawn(case))
        for one in sparse_rounds.uneven(answer):
            sparse_rounds.compare_sums(one)
    with part(1, "one message to one partner in each of log2(p) rounds"):
        for case in known(sparse):
            sparse_rounds.compare_sums(drawn(case))
            sparse_rounds.compare_partners(drawn(case))
    with part(1, "8 bytes an entry: equal entries are added up before they are sent on"):
        for case in known(sparse):
            for kind in ("random", "same"):
                sparse_rounds.compare_sums(drawn(case, kind))
                sparse_rounds.compare_bytes(drawn(case, kind))
    with part(1, "the whole vector as soon as it has no more bytes than pairs, and not before"):
        for case in known(filling):
            p, n, k = case
            for kind in ("random", "disjoint") if p * k <= n else ("random",):
                sparse_rounds.compare_sums(drawn(case, kind))
                sparse_rounds.compare_bytes(drawn(case, kind))
        for one in sparse_rounds.uneven(answer):
            sparse_rounds.compare_sums(one)
            sparse_rounds.compare_bytes(one)
        for n, j in sparse_rounds.BORDERS:
            sparse_rounds.judge_border(answer, n, j)
