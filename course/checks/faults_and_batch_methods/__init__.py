"""The checks of chapter 15: faults and batch methods."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from course.checks.faults_and_batch_methods import killed_runs, portion_orders, save_intervals, sharded_vectors
from course.checks.library_versions import BUILDS
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("15_faults_and_batch_methods", BUILDS["15_faults_and_batch_methods"])
hint = chapter.hint
__all__ = ["best_interval", "chapter", "hint", "lbfgs_direction", "run_portions", "train_with_checkpoints"]


@chapter.exercise(
    points=6,
    hints=[
        "Write two functions first: dot(x, y), which adds up shard.dot(x, y) over all shards, and one that sends axpy "
        "to all shards. Everything else is the algorithm on one node.",
        "First loop, from the newest pair to the oldest: alpha = dot(s, d) / sy, then axpy(-alpha, y, d). Keep alpha "
        "and sy of each pair that is used, in two dicts for example.",
        "Between the loops, scale d by sy / dot(y, y) of the newest pair that is used, if there is one. Second loop, "
        "from the oldest to the newest: beta = dot(y, d) / sy, axpy(alpha - beta, s, d). In the end scale d by -1.",
    ],
)
def lbfgs_direction(
    answer: Answer,
    part: Part,
    *,
    empty: Sequence[sharded_vectors.Case] = (((5,), ""), ((3, 0, 4), "")),
    one: Sequence[sharded_vectors.Case] = (((7,), "+"), ((4, 0, 3, 1), "+")),
    several: Sequence[sharded_vectors.Case] = (((9,), "++"), ((5, 0, 7), "+++++"), ((1, 1, 30), "++++++")),
    rejected: Sequence[sharded_vectors.Case] = (((6, 5), "++-"), ((3, 0, 8), "-+o+-+"), ((4, 3), "o-"), ((5,), "o")),
    seed: int = 0,
) -> None:
    """The direction of one node; half of it is for scalars being all that goes over the network."""

    stored = cache(partial(sharded_vectors.Stored, answer, seed=seed))

    def runs(*groups: Sequence[sharded_vectors.Case]) -> list[sharded_vectors.Stored]:
        return [stored((tuple(case[0]), case[1])) for group in groups for case in group]

    for points, title, group in (
        (0.5, "no pairs", empty),
        (0.5, "one pair", one),
        (1, "several pairs", several),
        (1, "pairs with s·y <= 0 are left out", rejected),
    ):
        with part(points, title):
            sharded_vectors.compare_directions(runs(group))
    with part(3, "only scalars come back, from few commands"):
        sharded_vectors.compare_directions(runs(several, rejected, one, empty))
        for run in runs(several, rejected, one, empty):
            run.compare_commands()


@chapter.exercise(
    points=5,
    hints=[
        "Two lists of n items: how often each portion was handed out, and its gradient, None as long as there is none. "
        "A function hand_out(w) chooses the portion for worker w, calls give and counts it.",
        "min(unfinished, key=lambda i: times[i]) is the unfinished portion that was handed out least often; if "
        "unfinished is in ascending order, the first of equal ones. It serves for first portions and for copies.",
        "After the first portion for each worker: while any portion is unfinished, w, i, gradient = wait(). Keep the "
        "gradient if i has none yet. Then, if a portion is still unfinished, hand_out(w). In the end add them up in "
        "the order of the portions, not in that of arrival: a sum has other bits in another order.",
    ],
)
def run_portions(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[portion_orders.Case] = ((1, 1, 0), (5, 1, 0), (17, 4, 0), (25, 6, 0), (3, 7, 0), (9, 9, 0)),
    stopping: Sequence[portion_orders.Case] = ((1, 3, 2), (19, 3, 1), (22, 7, 5), (5, 9, 6)),
    speeds: int = 3,
    seed: int = 0,
) -> None:
    """The gradient of the batch; half of it is for copies at the end, also of what a stopped worker has."""

    @cache
    def run(case: portion_orders.Case, draw: int = 0) -> portion_orders.Portions:
        return portion_orders.Portions(answer, case, seed, draw)

    every = [(case[0], case[1], case[2]) for case in cases]
    with part(1, "each portion counts once"):
        for case in every:
            run(case).compare_sum()
    with part(1, "a free worker gets the next portion"):
        for case in every:
            run(case).compare_first()
    with part(1, "at the end, copies of what is unfinished"):
        for case in every:
            run(case).compare_all()
    with part(0.5, "the same bits whatever the speeds"):
        for case in [case for case in every if min(case[:2]) > 3]:
            runs = [run(case, draw) for draw in range(speeds)]
            for one in runs:
                one.compare_sum()
            portion_orders.compare_bits(runs)
    with part(1.5, "workers that never return"):
        for case in stopping:
            run((case[0], case[1], case[2])).compare_all()
            run((case[0], case[1], case[2])).compare_sum()


@chapter.exercise(
    points=3,
    hints=[
        "M = mtbf / nodes. What takes x seconds without failures takes M exp(R / M) (exp(x / M) - 1) on average with "
        "them, if each is followed by a restart of R seconds. What is x here?",
        "Goodput is the interval over this time. It is small for very short and for very long intervals, and largest "
        "in between, at an interval shorter than M.",
        "The best interval can be searched: try 10,000 intervals between 0 and M and take the best one. Young's "
        "sqrt(2 write M) is near it only if write is much less than M.",
    ],
)
def best_interval(
    answer: Answer,
    part: Part,
    *,
    fast: Sequence[save_intervals.Case] = (
        (16_384, 0.003, 0.02), (16_384, 0.0004, 0.3), (1, 0.00005, 0.001), (700, 0.0012, 0.0),
    ),
    slow: Sequence[save_intervals.Case] = ((1000, 0.15, 0.1), (37, 0.45, 0.7), (4096, 1.1, 0.3), (5, 2.3, 1.6)),
    seed: int = 0,
) -> None:  # fmt: skip
    """An interval within 0.2 % of the best one, also where Young's is not, and its goodput."""

    asked = cache(partial(save_intervals.Asked, answer, seed=seed))

    def jobs(group: Sequence[save_intervals.Case]) -> list[save_intervals.Asked]:
        return [asked((case[0], case[1], case[2])) for case in group]

    with part(0.5, "the best interval, writing takes little time"):
        save_intervals.compare_intervals(jobs(fast))
    with part(1.5, "the best interval, writing takes long"):
        save_intervals.compare_intervals(jobs(slow))
    with part(1, "goodput"):
        for job in (*jobs(fast), *jobs(slow)):
            job.compare_goodput()


@chapter.exercise(
    points=4,
    hints=[
        "Keep (t, state) as one value: t is the number of steps that state has behind it. If the file is there at the "
        "start, read both from it, and go on with step t.",
        "A write may be killed in the middle. So write under another name, and when this is complete, rename it. At "
        "each moment there is then a complete file, the old one or the new one.",
    ],
)
def train_with_checkpoints(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[killed_runs.Case] = ((8, 3, 5), (5, 2, 3), (3, 5, 4), (3, 1, 7)),
    seed: int = 0,
) -> None:
    """The bits of an undisturbed run after a kill at every operation, and at most k steps made again."""

    training = cache(partial(killed_runs.Training, answer, seed=seed))
    trainings = [training((case[0], case[1], case[2])) for case in cases]
    with part(0.5, "without a kill"):
        for one in trainings:
            one.compare_plain()
    with part(1, "killed between two operations"):
        for one in trainings:
            one.compare_killed(is_inside=False)
    with part(1.5, "killed in the middle of a write"):
        for one in trainings:
            one.compare_killed(is_inside=True)
    with part(1, "killed again on the way back"):
        for one in trainings[:2]:
            one.compare_killed_twice()
