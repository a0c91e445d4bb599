"""The checks of chapter 08: large minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from course.checks.large_minibatches import (
    best_times,
    corrected_paths,
    lars_runs,
    measured_steps,
    noise_estimates,
    rank_noise,
    rate_schedules,
)
from course.checks.large_minibatches.lars_rules import Settings
from course.checks.library_versions import BUILDS
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("08_large_minibatches", BUILDS["08_large_minibatches"])
hint = chapter.hint
__all__ = [
    "best_batch", "best_measured_batch", "chapter", "corrected_run", "gradient_noise_scale", "hint", "lars_step",
    "noise_of_ranks", "scheduled_rate",
]  # fmt: skip


@chapter.exercise(
    points=3,
    hints=[
        "Count everything in steps first. How many steps has an epoch, and how many the warm-up?",
        "steps_an_epoch = -(-samples // batch) rounds up. The warm-up has W = warm_up * steps_an_epoch steps: 0 to "
        "W - 1. At step t it has made t / W of its way.",
        "On the whole way of the warm-up the rate rises by (k - 1) * base_lr. After it, count the drops with step "
        ">= epoch * steps_an_epoch.",
    ],
)
def scheduled_rate(
    answer: Answer,
    part: Part,
    *,
    plain: Sequence[rate_schedules.Case] = (
        (0.1, 32, 128, 1280, 0, ()),
        (0.4, 64, 64, 640, 0, ()),
        (0.2, 16, 40, 400, 0, ()),
    ),
    warmed: Sequence[rate_schedules.Case] = (
        (0.05, 16, 144, 1440, 3, ()), (0.1, 32, 128, 512, 1, ()), (0.2, 20, 50, 300, 2, ()),
        (0.1, 32, 64, 1_200_000, 5, ()),
    ),
    dropped: Sequence[rate_schedules.Case] = (
        (0.1, 32, 160, 1000, 2, (4, 6)), (0.3, 16, 48, 500, 0, (2, 3)), (0.05, 32, 256, 2000, 1, (2, 5, 9)),
        (2e-4, 8, 24, 20, 0, (1, 3, 4, 8, 90)),
    ),
) -> None:  # fmt: skip
    """k times the rate; two thirds are for the steps where the warm-up and the drops begin and end."""
    with part(1, "k times the rate without warm-up"):
        for schedule in rate_schedules.schedules(plain):
            rate_schedules.judge(answer, schedule)
    with part(1, "the warm-up: its first step, its last one, and equal increments"):
        for schedule in rate_schedules.schedules(warmed):
            rate_schedules.judge(answer, schedule)
    with part(1, "warm-up and drops in the right steps, the last minibatch of an epoch is smaller"):
        for schedule in rate_schedules.schedules(dropped):
            rate_schedules.judge(answer, schedule)


@chapter.exercise(
    points=2,
    hints=[
        "The velocity holds all past gradients, each with the rate of the step before. Which factor gives them the "
        "rate of this step?",
        "Divide by the rate of the step before, and multiply by that of this step; the new gradient needs lr alone. "
        "The velocity is zero at first, so any rate before will do for step 0: take rates[0].",
    ],
)
def corrected_run(
    answer: Answer,
    part: Part,
    *,
    constant: Sequence[corrected_paths.Case] = ((2, 6, 0.9), (1, 1, 0.9), (2, 3, 0.0), (1100, 3, 0.9)),
    rising: Sequence[corrected_paths.Case] = ((3, 8, 0.9), (2, 5, 0.5), (2, 300, 0.9)),
    falling: Sequence[corrected_paths.Case] = ((2, 9, 0.9), (1, 7, 0.7)),
    seed: int = 0,
) -> None:
    """The path of the form with the rate outside; a quarter each for warm-up, drops, a constant rate, and calls."""

    @cache
    def runs(kind: str) -> list[corrected_paths.Run]:
        cases = {"constant": constant, "rising": rising, "falling": falling}[kind]
        return corrected_paths.runs(answer, cases, kind, seed)

    for kind, title in (
        ("constant", "a constant rate"),
        ("rising", "the rate rises in the warm-up"),
        ("falling", "the rate drops"),
    ):
        with part(0.5, title):
            for one in runs(kind):
                corrected_paths.compare_path(one)
    with part(0.5, "one gradient for each step, in order"):
        for kind in ("constant", "rising", "falling"):
            for one in runs(kind):
                corrected_paths.compare_calls(one)


@chapter.exercise(
    points=2,
    hints=[
        "Square the norm of each row, and take the mean over the rows: for both sizes. These are the two left sides of "
        "the equation.",
        "Two equations, two unknowns: subtract them, and |G|^2 is gone: trace = (square_small - square_large) / "
        "(1 / b_small - 1 / b_large).",
        "Put the trace back into the equation of the large size: that gives |G|^2. Divide the two only at the very "
        "end.",
    ],
)
def gradient_noise_scale(
    answer: Answer,
    part: Part,
    *,
    drawn: Sequence[noise_estimates.Drawn] = ((6, 4, 3, 2, 8), (1, 1, 5, 1, 4), (4, 9, 8, 4, 16)),
    populations: Sequence[noise_estimates.Population] = ((3, 2, 1, 2), (4, 3, 1, 4), (3, 5, 2, 3)),
    seed: int = 0,
) -> None:
    """The ratio of means, exact on all minibatches of a population, the same in all units, infinite without |G|^2."""
    with part(0.5, "the ratio of the two means over the draws"):
        for case in drawn:
            noise_estimates.judge_drawn(answer, case, seed)
    with part(1, "exact, if all possible minibatches are drawn"):
        for case in populations:
            noise_estimates.judge_all(answer, case, seed)
    with part(0.5, "the same in every unit; infinite, if no |G|^2 is left"):
        for case in drawn:
            noise_estimates.judge_identities(answer, case, seed)


@chapter.exercise(
    points=3,
    hints=[
        "comm.all_reduce(x) writes into x the sum of the x of all ranks. Which two sums are needed? What can each rank "
        "compute alone after that?",
        "One array of n + 1 numbers: message = np.append(gradient, gradient @ gradient). After the all-reduce, divide "
        "it by comm.size.",
        "Then the last number of the message is the mean square of the small minibatches, and the rest is the "
        "gradient of the large one. What are the two sizes of 2a here?",
    ],
)
def noise_of_ranks(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[rank_noise.Case] = ((2, 5, 4), (3, 4, 2), (2, 1, 3), (5, 6, 1), (2, 1100, 2)),
    seed: int = 0,
) -> None:
    """The mean gradient and the two estimates; half is for one all-reduce of n + 1 numbers, and the same bits."""

    step = cache(partial(rank_noise.step, answer, seed=seed))
    steps = [tuple(case) for case in cases]

    @cache
    def near_a_minimum() -> rank_noise.Step:
        return rank_noise.step(answer, steps[0], seed, rank_noise.tiny)

    with part(0.5, "the mean gradient"):
        for case in steps:
            rank_noise.compare_mean(step(case))
    with part(1, "the estimates of |G|^2 and tr(Sigma)"):
        for case in steps:
            rank_noise.compare_estimates(step(case))
        rank_noise.compare_estimates(rank_noise.step(answer, steps[0], seed, rank_noise.without_mean))
        rank_noise.compare_estimates(near_a_minimum())
    with part(1, "one all-reduce of n + 1 numbers, and nothing else"):
        for case in steps:
            rank_noise.compare_traffic(step(case))
    with part(0.5, "the same on all ranks to the bit, and the gradient as it was"):
        for case in steps:
            rank_noise.compare_bits(step(case))
        rank_noise.compare_bits(near_a_minimum())


@chapter.exercise(
    points=4,
    hints=[
        "A loop over the layers: for w, g, v in zip(weights, gradients, velocities). What is written into w and v by "
        "v *= ..., v += ... and w -= v is written into the arrays of the lists.",
        "np.linalg.norm(w) is the norm of a whole matrix. Begin with ratio = 1, and compute it only if w.ndim > 1 and "
        "both norms are above 0.",
        "Then the formula, in three lines: v *= momentum, v += what is new, and w -= v.",
    ],
)
def lars_step(
    answer: Answer,
    part: Part,
    *,
    networks: Sequence[lars_runs.Shapes] = (((4, 3), (4,), (2, 4), (2,)), ((1, 5), (5, 1), (5,))),
    settings: Settings = (0.8, 0.1, 0.02),
    layers: int = 12,
    width: int = 100,
    seed: int = 0,
) -> None:
    """The paper's steps, layer by layer; half is for norms of zero and units, arrays in place, and memory."""
    momentum, decay, trust = settings
    rates = (0.5, 0.5, 1.0, 0.25, 0.125)
    matrices = [[shape for shape in shapes if len(shape) > 1] for shapes in networks]
    with part(1, "a first step: the ratio of each matrix, and 1 for biases"):
        for shapes in networks:
            lars_runs.compare(lars_runs.run(answer, shapes, rates[:1], (momentum, decay, trust), seed))
            lars_runs.compare(lars_runs.run(answer, shapes, rates[:1], (momentum, 0.0, trust), seed))
    with part(1, "many steps with momentum, while the rate changes"):
        for shapes in networks:
            lars_runs.compare(lars_runs.run(answer, shapes, rates, settings, seed), lars_runs.ROUNDING)
    with part(0.5, "norms of 0 have ratio 1"):
        for change in lars_runs.ZEROS:
            lars_runs.compare(lars_runs.run(answer, matrices[0], rates, settings, seed, change))
    with part(0.5, "another unit of a gradient makes the same step"):
        for shapes in matrices:
            lars_runs.compare(
                lars_runs.run(answer, shapes, rates, (momentum, 0.0, trust), seed, lars_runs.in_other_units)
            )
    with part(0.5, "in place: the same array objects, and the gradients as they were"):
        for shapes in networks:
            lars_runs.compare_place(lars_runs.run(answer, shapes, rates, settings, seed))
    with part(0.5, "memory for a few arrays of one layer"):
        lars_runs.compare_memory(answer, layers, width, settings, seed)


@chapter.exercise(
    points=2,
    hints=[
        "Write the time as a function of B: (1 + b_c / B) * (seconds_per_sample * B / p + ring). Multiply it out. "
        "Which two terms depend on B?",
        "seconds_per_sample * B / p rises, b_c * ring / B falls. Their sum is smallest where they are equal: B = "
        "sqrt(b_c * p * ring / seconds_per_sample).",
        "Then the limits: of the two multiples of p around it take the one with the shorter time, between p and "
        "p * most_per_node. On one node, ring is 0.",
    ],
)
def best_batch(answer: Answer, part: Part, *, seed: int = 0) -> None:
    """Regret of at most 2 %; half of it is for clusters where a limit decides."""
    with part(1, "the best minibatch lies between the limits"):
        best_times.judge(answer, best_times.clusters(seed))
    with part(1, "limits: one node, a free network, little memory, a tiny B_c, two samples a node"):
        best_times.judge(answer, best_times.corners(seed))


@chapter.exercise(
    points=2,
    hints=[
        "The time of i samples a node is (1 + b_c / (i p)) * seconds_per_step(i p). Is it smaller for i or for i + 1? "
        "That says on which side of i the best one is.",
        "So halve the range in each round: compare the middle with its neighbour, and keep one half. A million is "
        "halved to one in 20 rounds, of two calls each.",
    ],
)
def best_measured_batch(answer: Answer, part: Part, *, seed: int = 0) -> None:
    """Regret of at most 2 %; half of it is for at most 50 measurements."""

    @cache
    def runs() -> list[measured_steps.Measured]:
        return measured_steps.runs(answer, seed)

    with part(1, "the target takes at most 2 % longer than with the best minibatch"):
        for one in runs():
            measured_steps.compare_regret(one)
    with part(1, "at most 50 measurements, for at most 1.5 times the best time"):
        for one in runs():
            measured_steps.compare_calls(one)
