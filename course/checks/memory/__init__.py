"""The checks of chapter 13: memory shared out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from course.checks.library_versions import BUILDS
from course.checks.memory import kept_inputs, node_bytes, sharded_steps, unit_schedules
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("13_memory", BUILDS["13_memory"])
hint = chapter.hint
__all__ = [
    "chapter", "checkpoints", "fetch_schedule", "hint", "memory_and_traffic", "recomputed_gradients", "shard_optimizer",
]  # fmt: skip

Two = tuple[int, int]


@chapter.exercise(
    points=3,
    hints=[
        "Three components: the optimizer's state, the gradients and the weights. For each, how many bytes does one "
        "weight need? From which stage on is it divided?",
        "share = P // N + (r < P % N) numbers are in the range of rank r. A component that is divided takes its bytes "
        "times share, any other its bytes times P.",
        "A reduce-scatter sends P - (numbers of range r), an all-gather P - (numbers of the next rank's range). After "
        "rank N - 1 comes rank 0. Stage 3 has one all-gather more.",
    ],
)
def memory_and_traffic(
    answer: Answer,
    part: Part,
    *,
    even: Sequence[Two] = ((7_500_000_000, 64), (1_000_000, 8), (12, 4), (91, 7), (1_500_000_000, 1)),
    ragged: Sequence[Two] = ((1_000_003, 6), (11, 4), (7_500_000_000, 11), (3, 5), (1, 2)),
) -> None:
    """ZeRO's closed forms; the last part has ranges that differ by one number."""
    result = cache(answer)
    with part(1, "bytes with 16-bit weights"):
        for case in even:
            node_bytes.compare(result, (case[0], case[1]), 0, (True,))
    with part(0.5, "bytes with 32-bit weights"):
        for case in even:
            node_bytes.compare(result, (case[0], case[1]), 0, (False,))
    with part(1, "numbers that a rank sends in a step"):
        for case in even:
            node_bytes.compare(result, (case[0], case[1]), 1)
    with part(0.5, "ranges that differ by one number"):
        for which in (0, 1):
            for case in ragged:
                node_bytes.compare(result, (case[0], case[1]), which)


@chapter.exercise(
    points=6,
    hints=[
        "Make one vector of all parameters, np.concatenate([w.ravel() for w in weights]), and one of the gradients. "
        "comm.reduce_scatter(g) returns this rank's range of the sum; np.array_split(w, comm.size)[comm.rank] is the "
        "same range of the weights.",
        "new, state = update(own_weights, own_gradient, state). Then np.concatenate(comm.all_gather(new)) is a vector "
        "of all new weights. np.split at np.cumsum of the sizes, and reshape, make parameters of it.",
        "Clipping: each rank has the mean gradient of its own range. The square of the whole norm is the sum over the "
        "ranks of the squares of theirs, one number each. Divide by the norm only if it is larger than max_norm.",
    ],
)
def shard_optimizer(
    answer: Answer,
    part: Part,
    *,
    even: Sequence[sharded_steps.Case] = ((4, "momentum", 40), (2, "Adam", 18), (1, "Adam", 9)),
    ragged: Sequence[sharded_steps.Case] = ((3, "Adam", 41), (5, "momentum", 3), (4, "Adam", 1)),
    clipped: Sequence[sharded_steps.Case] = ((3, "momentum", 29), (2, "Adam", 1007), (4, "momentum", 2)),
    costs: Sequence[sharded_steps.Case] = ((5, "Adam", 33), (4, "momentum", 29)),
    rooms: Sequence[sharded_steps.Case] = ((3, "momentum", 29), (4, "Adam", 27), (5, "Adam", 3)),
    seed: int = 0,
) -> None:
    """The weights of one node; half of it is for the messages, and for the state that a rank does not have."""
    with part(1, "the weights after each step are those of one node"):
        for case in even:
            sharded_steps.compare_weights(answer, sharded_steps.drawn((case[0], case[1], case[2]), seed))
    with part(1, "P not divisible by N, fewer numbers than ranks"):
        for case in ragged:
            sharded_steps.compare_weights(answer, sharded_steps.drawn((case[0], case[1], case[2]), seed))
    with part(1, "clipped by the norm of the whole gradient"):
        for case in clipped:
            one = sharded_steps.drawn((case[0], case[1], case[2]), seed, is_clipped=True)
            sharded_steps.compare_weights(answer, one)
    with part(1.5, "one reduce-scatter, one all-gather, and for clipping one number"):
        for number, case in enumerate(costs):
            one = sharded_steps.drawn((case[0], case[1], case[2]), seed, is_clipped=bool(number % 2))
            sharded_steps.compare_messages(answer, one)
    with part(1.5, "no rank has optimizer state but that of its range"):
        for case in rooms:
            sharded_steps.compare_state(answer, sharded_steps.drawn((case[0], case[1], case[2]), seed))


@chapter.exercise(
    points=2,
    hints=[
        "Equal inputs: k segments of at most ceil(n / k) layers. Try every k, and let the segments begin at "
        "range(0, n, ceil(n / k)).",
        "Inputs that differ: suppose that a segment may have at most `bound` bytes. Then the fewest kept bytes for the "
        "first b layers follow from those for the first a < b layers, for each a from which a segment to b fits.",
        "Only the sums of consecutive sizes can be the bytes of the largest segment: try each of them as the bound, "
        "and take the one for which kept bytes + bound is the smallest.",
    ],
)
def checkpoints(
    answer: Answer,
    part: Part,
    *,
    equal: Sequence[Two] = ((16, 1), (36, 1), (7, 3), (1, 5), (2, 1), (40, 80_000), (3, 1)),
    drawn: Sequence[int] = (5, 9, 12, 24, 40),
    seed: int = 0,
) -> None:
    """The smallest peak, k + ceil(n / k) for equal inputs; half of it is for inputs that differ."""
    with part(1, "equal inputs: k + ceil(n / k) of them at the peak"):
        for n, size in equal:
            kept_inputs.judge(answer, [size] * n)
    with part(1, "inputs of different sizes: the smallest peak"):
        for sizes in (*kept_inputs.TRAPS, *(kept_inputs.drawn(n, seed) for n in drawn)):
            kept_inputs.judge(answer, list(sizes))


@chapter.exercise(
    points=3,
    hints=[
        "The first forward: a dictionary of the inputs of the layers in `keep`, and one variable x for all others.",
        "Segments, the last one first: for a segment of layers a to b - 1, make the list of their inputs, beginning "
        "with the kept one. The output of layer b - 1 is not needed: it is the loss, or the next kept input.",
        "Within the segment: for i from b - 1 down to a, g, gradients[i] = backward(i, inputs.pop(), g). When the next "
        "segment begins, no variable may refer to an input of this one.",
    ],
)
def recomputed_gradients(
    answer: Answer,
    part: Part,
    *,
    runs: Sequence[kept_inputs.Run] = (
        (9, (3, 6)), (10, (1, 2, 7)), (1, ()), (5, (1, 2, 3, 4)), (7, ()), (30, (6, 11, 18, 24)), (400, (140, 260)),
    ),
    measured: kept_inputs.Run = (50, (7, 14, 21, 28, 35, 42)),
    seed: int = 0,
) -> None:  # fmt: skip
    """The gradients of a chain that keeps everything; two thirds are for memory, and for what is computed again."""

    run = cache(partial(kept_inputs.Recomputed, answer, seed=seed))
    cases = [(case[0], tuple(case[1])) for case in runs]
    with part(1, "loss and gradients are those without checkpoints, to the bit"):
        for case in cases:
            run(case).compare_gradients()
    with part(1, "at most k + m inputs are alive"):
        for case in cases:
            run(case).compare_gradients()
            run(case).compare_live()
        run((measured[0], tuple(measured[1]))).compare_bytes()
    with part(1, "in this memory, each input is computed at most twice"):
        for case in cases:
            run(case).compare_gradients()
            run(case).compare_live()
            run(case).compare_calls()
        run((measured[0], tuple(measured[1]))).compare_bytes()


@chapter.exercise(
    points=4,
    hints=[
        "places = room // size units fit. Begin with as many fetches as there are places. After F0, unit 0 is evicted, "
        "and the next unit that is not yet there is fetched into its place.",
        "Backward begins with the last units. So at the end of forward, nothing more is evicted once all units "
        "have come: the last `places` units stay.",
        "In backward a place becomes free when a gradient is sent back. Directly behind each G comes the fetch of the "
        "unit that is needed next and is not on the device: i - places behind G of unit i.",
    ],
)
def fetch_schedule(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[unit_schedules.Case] = (
        (6, 10, 35), (3, 7, 14), (5, 4, 4), (4, 3, 12), (2, 1, 9), (1, 5, 5), (9, 100, 440), (120, 3, 10),
    ),
) -> None:  # fmt: skip
    """Complete and within the device's memory; three quarters are for what is not fetched again, and for the time."""

    @cache
    def schedule(case: unit_schedules.Case) -> unit_schedules.Schedule:
        one = unit_schedules.Schedule(answer, case)
        one.compare_order()
        one.compare_places()
        return one

    each = [(case[0], case[1], case[2]) for case in cases]
    with part(1, "every action has what it needs, and the units fit"):
        for case in each:
            schedule(case)
    with part(1, "no unit is fetched more often than necessary"):
        for case in each:
            schedule(case).compare_fetches()
    with part(2, "the fewest seconds, however fast the link is"):
        for case in each:
            schedule(case).compare_time()
