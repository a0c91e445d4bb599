"""The checks of chapter 05: synchronous data parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from course.checks.library_versions import BUILDS
from course.checks.synchronous_data_parallelism import (
    gradient_buckets,
    last_of_p,
    serial_steps,
    sharded_minibatches,
    simulated_clusters,
)
from course.checks.synchronous_data_parallelism.gradient_buckets import Backward, Model, passes, timed_passes
from course.checks.synchronous_data_parallelism.overlap_timeline import timeline
from course.checks.synchronous_data_parallelism.serial_steps import Step, cases_in, run_step
from course.checks.synchronous_data_parallelism.sharded_minibatches import EPOCHS, Epoch
from course.checks.synchronous_data_parallelism.simulated_clusters import clusters
from course.judging import Answer, ChapterChecks, Part
from course.judging.ranks.rank_run import RankRun

chapter = ChapterChecks("05_synchronous_data_parallelism", BUILDS["05_synchronous_data_parallelism"])
hint = chapter.hint
__all__ = [
    "barrier_time", "bucketed_all_reduce", "chapter", "data_parallel_step", "efficiency", "hint", "sharded_sampler",
    "timeline",
]  # fmt: skip

Cluster = tuple[int, int, float, float, float, float, float]
OverlappedCluster = tuple[int, int, float, float, float, float, float, int]


@chapter.exercise(
    points=4,
    hints=[
        "What must be the same on all ranks, so that no sample is read twice? What must differ?",
        "Every rank computes the order of the whole epoch, and cuts it into minibatches as the serial run does. Only "
        "then it takes its shard of each.",
        "np.array_split(minibatch, p)[rank] is an even shard, and so is minibatch[rank::p]. Both may be empty. Keep "
        "the empty ones in the list.",
    ],
)
def sharded_sampler(
    answer: Answer,
    part: Part,
    *,
    even: Sequence[sharded_minibatches.Case] = ((24, 6, 2), (12, 4, 1), (18, 6, 3), (0, 4, 2), (2100, 2100, 2)),
    ragged: Sequence[sharded_minibatches.Case] = ((23, 6, 4), (11, 3, 2), (10, 6, 5), (7, 2, 3)),
    seed: int = 0,
) -> None:
    """Every sample once an epoch; minibatches as the serial run's; even shards, which may be empty."""

    @cache
    def epoch(case: sharded_minibatches.Case, later: int, number: int) -> Epoch:
        return Epoch(answer, case, seed + later, number)

    def epochs(cases: Sequence[sharded_minibatches.Case]) -> list[Epoch]:
        return [epoch(tuple(case), *which) for case in cases for which in EPOCHS]

    with part(1, "every sample once an epoch over all ranks"):
        for one in epochs([*even, *ragged]):
            sharded_minibatches.each_sample_once(one)
    with part(1.5, "the minibatches of the serial run, p divides batch_size"):
        for one in epochs(even):
            sharded_minibatches.serial_minibatches(one)
    with part(1.5, "the minibatches of the serial run in even shards, p divides neither them nor the last one"):
        for one in epochs(ragged):
            sharded_minibatches.even_shards(one)


@chapter.exercise(
    points=4,
    hints=[
        "mean_gradient divides by the samples of this rank's shard. The serial run divides by all of them. What is to "
        "be added up over the ranks, so that the sum is the serial run's gradient?",
        "len(x) / total * mean_gradient(w, x, y), added up over all ranks, is the gradient of the whole minibatch. A "
        "rank without samples adds zeros: it takes part in the all-reduce.",
        "comm.all_reduce(g) writes the sum into g. Weight decay and momentum come after it, once, as in the three "
        "lines: all ranks compute the same.",
    ],
)
def data_parallel_step(
    answer: Answer,
    part: Part,
    *,
    even: Sequence[serial_steps.Case] = ((4, 8, 3), (1, 5, 2), (2, 6, 4), (2, 4, 1040)),
    ragged: Sequence[serial_steps.Case] = ((3, 8, 4), (2, 7, 3), (4, 2, 3)),
    seed: int = 0,
) -> None:
    """The serial run's weights and velocity, by one all-reduce of d numbers, on all ranks the same to the bit."""
    runs: dict[int, RankRun] = {}

    def run(step: Step) -> RankRun:
        if id(step) not in runs:
            runs[id(step)] = run_step(answer, step)
        return runs[id(step)]

    alike, uneven = cases_in(even, seed), cases_in(ragged, seed)
    with part(0.5, "one rank: the three lines"):
        for step in alike:
            if len(step.shards) == 1:
                serial_steps.compare(run(step), step)
    with part(0.5, "the serial run's steps, p divides the minibatch"):
        for step in alike:
            serial_steps.compare(run(step), step)
    with part(1, "the serial run's steps, uneven shards and ranks without samples"):
        for step in uneven:
            serial_steps.compare(run(step), step)
    with part(1, "one all-reduce of d numbers, and nothing else"):
        for step in alike:
            if step.number == 1:
                serial_steps.one_all_reduce(run(step), step)
                if len(step.shards) > 1:
                    other = serial_steps.other_samples(step)
                    serial_steps.depends_on_all(run(step), run_step(answer, other), step)
    with part(0.5, "the same weights on all ranks, to the bit"):
        for step in alike:
            serial_steps.same_bits(run(step), step)
    with part(0.5, "the arguments stay as they are"):
        for step in alike:
            serial_steps.moved(run(step), step)
            serial_steps.kept(run(step), step)


@chapter.exercise(
    points=5,
    hints=[
        "Go through backward(comm, layers) with a for loop, and put the gradients into a list until they have "
        "bucket_bytes. What has to happen then? And what after the loop?",
        "np.concatenate makes one array of the gradients in a bucket. comm.all_reduce(joined, async_op=True) starts "
        "its all-reduce; keep what it returns, and joined.",
        "After the loop: start the last bucket if it holds anything. Only then call wait() of everything that was "
        "started, in the same order.",
        "np.split(joined, np.cumsum(lengths)[:-1]) cuts a bucket into its gradients. They come with the last layer "
        "first; `[::-1]` reverses a list.",
    ],
)
def bucketed_all_reduce(
    answer: Answer,
    part: Part,
    *,
    ranks: Sequence[int] = (2, 3, 1),
    models: Sequence[Model] = (([10, 20, 30, 40, 5], 300), ([30, 20, 10], 80), ([5, 1100], 40_000), ([], 100)),
    ratios: Sequence[float] = (0.5, 1.0, 2.0, 2.5),
    seed: int = 0,
) -> None:
    """Exact sums, one all-reduce a bucket, each started when the bucket is full, hidden behind backward."""

    @cache
    def run(number: int) -> RankRun:
        return (exact + timed)[number].run(answer)

    exact, timed = list(passes(models, ranks, seed)), list(timed_passes(ratios, seed))

    def runs(chosen: list[Backward], first: int = 0) -> list[tuple[RankRun, Backward]]:
        return [(run(first + number), backward) for number, backward in enumerate(chosen)]

    with part(1, "every layer's sum, in the order of the layers"):
        for one, backward in runs(exact):
            gradient_buckets.sums(one, backward)
    with part(0.5, "the gradients stay as they are"):
        for one, backward in runs(exact):
            gradient_buckets.kept(one, backward)
    with part(1, "one all-reduce for each bucket, of the right size"):
        for one, backward in runs(exact):
            gradient_buckets.planned_buckets(one, backward)
    with part(1.5, "each starts as soon as its bucket is full"):
        for one, backward in runs(timed, len(exact)):
            gradient_buckets.started_when_full(one, backward)
    with part(1, "all end as early as they can"):
        for one, backward in runs(timed, len(exact)):
            gradient_buckets.total_seconds(one, backward)


@chapter.exercise(
    points=3,
    hints=[
        "Write a function for the seconds of a step on p nodes, with so many samples on the slowest one. For weak "
        "scaling the efficiency is that of one node divided by that of p nodes.",
        "An all-reduce of a bucket takes c = 2(p - 1)(alpha + nbytes / buckets / p * beta). With one bucket the step "
        "takes forward + backward + c.",
        "With b buckets, look at two extremes. If the network is always ready in time, only the last c comes after "
        "backward. If it is the slow part, it begins after a b-th of backward and is busy for b c. The later one "
        "counts.",
        "In strong scaling p nodes together do what one does alone. Which node counts, and how many samples has it? "
        "-(-a // b) is a / b, rounded up.",
    ],
)
def efficiency(
    answer: Answer,
    part: Part,
    *,
    plain: Sequence[Cluster] = (
        (8, 32, 6e9, 10e12, 100e6, 5e-5, 0.8e-9),
        (2, 64, 4e9, 6e12, 40e6, 5e-5, 1.0e-9),
        (32, 8, 0.4e9, 5e12, 2e6, 2e-5, 0.1e-9),
    ),
    overlapped: Sequence[OverlappedCluster] = (
        (8, 32, 6e9, 10e12, 100e6, 5e-5, 0.1e-9, 5), (2, 64, 4e9, 6e12, 40e6, 5e-5, 0.8e-9, 4),
        (20, 8, 1.2e9, 5e12, 2e6, 1e-5, 0.1e-9, 3), (4, 16, 3e9, 8e12, 100e6, 5e-6, 0.04e-9, 2),
        (6, 32, 6e9, 10e12, 48e6, 5e-6, 0.11e-9, 5), (4, 24, 5e9, 8e12, 100e6, 1e-5, 0.067e-9, 8),
        (3, 16, 3e9, 8e12, 20e6, 5e-6, 0.041e-9, 2),
    ),
    strong: Sequence[OverlappedCluster] = (
        (3, 90, 6e9, 10e12, 180e6, 5e-5, 0.3e-9, 3), (4, 64, 6e9, 8e12, 45e6, 5e-6, 0.2e-9, 6),
        (12, 30, 60e9, 8e12, 8e6, 5e-6, 0.1e-9, 4), (32, 64, 5e9, 5e12, 1e6, 5e-5, 0.1e-9, 1),
    ),
) -> None:  # fmt: skip
    """Within 10 % of simulated clusters: weak scaling without and with overlap, strong scaling; 1 on one node."""
    without, hidden, shared = clusters(plain), clusters(overlapped), clusters(strong, strong=True)
    with part(0.5, "one node has an efficiency of 1"):
        for one in [*without, *hidden, *shared]:
            simulated_clusters.judge_one_node(answer, one)
    with part(1, "weak scaling, one bucket"):
        for one in without:
            simulated_clusters.judge(answer, one)
    with part(1, "weak scaling, communication hidden behind backward"):
        for one in hidden:
            simulated_clusters.judge(answer, one)
    with part(0.5, "strong scaling"):
        for one in shared:
            simulated_clusters.judge(answer, one)


@chapter.exercise(
    points=2,
    hints=[
        "For exponentially distributed times: until the first of p workers is there it takes mean / p, then mean / "
        "(p - 1) until the next, and so on.",
        "For measured times: sort them. With which chance are all p workers among the i fastest of the m times?",
        "With (i/m)^p. With which chance does then the last of them take exactly the i-th time (counted from 1)?",
    ],
)
def barrier_time(
    answer: Answer,
    part: Part,
    *,
    exponential: Sequence[tuple[float, int]] = ((1.0, 8), (2.5, 3), (0.4, 1), (5.0, 1000)),
    samples: Sequence[tuple[int, int]] = ((6, 3), (10, 2), (4, 5), (1, 4), (5, 1)),
    many: Sequence[tuple[int, int]] = ((20_000, 9), (1500, 1000)),
    seed: int = 0,
) -> None:
    """mean * H_p for exponential times; the exact expectation of the maximum for measured ones, few or many."""
    with part(0.5, "exponentially distributed times"):
        for mean, p in exponential:
            last_of_p.judge_exponential(answer, mean, p)
    with part(1, "a few measured times"):
        for times, p in last_of_p.cases_in(samples, seed):
            last_of_p.judge_times(answer, times, p)
    with part(0.5, "many measured times and many workers"):
        for n, p in many:
            last_of_p.judge_times(answer, last_of_p.uniform_times(n, seed), p)
