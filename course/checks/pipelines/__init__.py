"""The checks of chapter 11: pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from course.checks.library_versions import BUILDS
from course.checks.pipelines import (
    bubble_numbers,
    layer_cuts,
    stage_orders,
    stage_runs,
    version_counts,
    waiting_stages,
)
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("11_pipelines", BUILDS["11_pipelines"])
hint = chapter.hint
__all__ = [
    "bubble", "chapter", "cut", "deadlock", "gpipe", "hint", "one_f_one_b", "run_stage", "weights_to_stash",
]  # fmt: skip

Two = tuple[int, int]
Three = tuple[int, int, int]


@chapter.exercise(
    points=2,
    hints=[
        "The list does not depend on the stage: every stage does all forwards, then all backwards.",
        '[f"F{m}" for m in range(M)] has the forwards. What is missing are the backwards and the update.',
    ],
)
def gpipe(answer: Answer, part: Part, *, cases: Sequence[Two] = ((4, 8), (2, 3), (1, 2), (3, 1), (2, 101))) -> None:
    """Complete lists; half of it is for the order that the seconds and the update depend on."""

    @cache
    def orders(case: Two) -> stage_orders.Orders:
        return stage_orders.Orders(answer, case)

    with part(1, "every action once, the forwards first, the update last"):
        for case in cases:
            stage_orders.compare_actions(orders(tuple(case)), "F")
            stage_orders.compare_forwards_first(orders(tuple(case)))
    with part(1, "a minibatch takes (M + K - 1) (t_F + t_B) seconds"):
        for case in cases:
            stage_orders.compare_time(orders(tuple(case)), stage_orders.other_order)


@chapter.exercise(
    points=3,
    hints=[
        "The last stage has no warm-up: F0, B0, F1, B1 and so on. It can begin F1 directly after B0 only if the stage "
        "before it does F1 before its own B0. So how many forwards come before the first backward on stage s?",
        "warm_up = min(M, K - 1 - s) forwards. Then M - warm_up pairs: a forward, and the backward of the oldest "
        "micro-batch. Then the remaining warm_up backwards.",
        "After the warm-up, forward number warm_up + m is followed by backward number m. Which backwards are left "
        "at the end?",
    ],
)
def one_f_one_b(
    answer: Answer, part: Part, *, cases: Sequence[Two] = ((4, 8), (2, 3), (5, 3), (1, 2), (3, 1), (4, 4), (10, 101))
) -> None:
    """Complete lists; two thirds are for the seconds of GPipe and the memory of 1F1B."""

    @cache
    def orders(case: Two) -> stage_orders.Orders:
        return stage_orders.Orders(answer, case)

    with part(1, "every action once, in order, the update last"):
        for case in cases:
            stage_orders.compare_actions(orders(tuple(case)), "FB")
    with part(1, "a minibatch takes (M + K - 1) (t_F + t_B) seconds"):
        for case in cases:
            stage_orders.compare_time(orders(tuple(case)), stage_orders.too_slow)
    with part(1, "stage s keeps the activations of at most min(M, K - s) micro-batches"):
        for case in cases:
            stage_orders.compare_memory(orders(tuple(case)))


@chapter.exercise(
    points=5,
    hints=[
        "Keep a dictionary with the input of each micro-batch: F writes into it, B takes out of it with pop(m), which "
        "also releases it. Add up all gw in one array, which starts as np.zeros_like(w).",
        "F: x = inputs[m] on stage 0, else comm.recv(s - 1). Send the result to s + 1 unless this is the last stage. "
        "B: g = 1 / M on the last stage, else comm.recv(s + 1). Send gx to s - 1 unless this is stage 0.",
        "Use comm.isend instead of comm.send: with send, two neighbours that send large arrays to each other wait for "
        "ever. Keep what isend returns in a list, and call .wait() of each at the end.",
    ],
)
def run_stage(
    answer: Answer,
    part: Part,
    *,
    steps: Sequence[stage_runs.Case] = (
        ("1f1b", 3, 4), ("gpipe", 2, 3), ("naive", 3, 2), ("reversed", 2, 3), ("1f1b", 1, 2), ("1f1b", 4, 1),
        ("1f1b", 1, 101),
    ),
    large: Sequence[stage_runs.Case] = (("1f1b", 3, 4), ("gpipe", 2, 3), ("naive", 2, 2), ("last in bursts", 3, 4)),
    long: Sequence[stage_runs.Case] = (("1f1b", 3, 8), ("naive", 2, 6)),
    seed: int = 0,
) -> None:  # fmt: skip
    """The weights of one node; 3.5 of 5 points are for when messages are sent, for large ones, and for memory."""

    run = cache(partial(stage_runs.run, answer, seed=seed))
    cases = [(case[0], case[1], case[2]) for case in steps]
    with part(1.5, "the weights after the update are those of one node"):
        for case in cases:
            stage_runs.compare_weights(run(case))
    with part(1.5, "every message as soon as the schedule allows it, and no other"):
        for case in cases:
            stage_runs.compare_messages(run(case))
    with part(1, "large messages: no two neighbours wait for each other, and each message is received"):
        for case in large:
            one = stage_runs.run(answer, (case[0], case[1], case[2]), seed, is_large=True)
            stage_runs.compare_weights(one)
            stage_runs.compare_waited(one)
    with part(1, "the memory that the schedule promises"):
        for case in long:
            stage_runs.compare_weights(stage_runs.run(answer, (case[0], case[1], case[2]), seed, is_limited=True))


@chapter.exercise(
    points=3,
    hints=[
        "Dynamic programming: the slowest of k stages that have the first i layers follows from all ways to have the "
        "first j < i layers on k - 1 stages.",
        "before[i] is the cost of the first i layers, so layers j to i - 1 cost before[i] - before[j]. "
        "slowest[k][i] = the smallest, over j, of max(slowest[k - 1][j], before[i] - before[j]).",
        "Keep the best j of each pair (k, i), and follow them from (K, n) back. Every stage has at least one layer: j "
        "goes from k - 1 to i - 1.",
        "Another way: for a given bound, fill the stages from the left; then search the smallest bound for which K "
        "stages are enough. Fewer than K stages? Split one that has several layers.",
    ],
)
def cut(
    answer: Answer,
    part: Part,
    *,
    small: Sequence[Two] = ((5, 3), (8, 3), (12, 4), (9, 2)),
    large: Sequence[Two] = ((200, 8), (30, 6), (100, 12)),
    seed: int = 0,
) -> None:
    """The slowest stage of the best cut: against all cuts of few layers, and for many layers in few operations."""
    with part(1, "few layers: the slowest stage is that of the best of all cuts"):
        for n, stages in small:
            layer_cuts.judge(answer, layer_cuts.drawn(n, stages, seed), stages)
        for costs, stages in layer_cuts.TRAPS:
            layer_cuts.judge(answer, list(costs), stages)
    with part(0.5, "one stage, a layer a stage, equal layers, one layer much slower than all others"):
        for costs, stages in layer_cuts.corners(seed):
            layer_cuts.judge(answer, costs, stages)
    with part(1.5, "many layers, within 6 n^2 K operations"):
        for n, stages in large:
            costs, most = layer_cuts.drawn(n, stages, seed), layer_cuts.operations(n, stages)
            layer_cuts.judge(answer, costs, stages, most)


@chapter.exercise(
    points=3,
    hints=[
        "Play the schedule: keep the position of each stage in its list, and the set of all (stage, action) that are "
        "done. Go round the stages, and let each do what it can, until in a whole round nobody has moved.",
        "A stage that has not reached the end of its list then waits for ever. The action at its position is the first "
        "of the pair.",
        "The second of the pair: for F the stage s - 1. For B the stage s itself if its own F is not done, else s + 1.",
    ],
)
def deadlock(
    answer: Answer,
    part: Part,
    *,
    healthy: Sequence[Two] = ((3, 4), (1, 2), (4, 8), (2, 2), (2, 110)),
    circles: Sequence[Two] = ((2, 3), (4, 5), (3, 6)),
    seed: int = 0,
) -> None:
    """Half of the schedules are healthy: a false alarm costs a point, and so does a stage that was overlooked."""
    with part(1, "schedules that work, no false alarm; and one that does not work"):
        for case in healthy:
            waiting_stages.judge(answer, waiting_stages.healthy((case[0], case[1]), seed))
        waiting_stages.judge(answer, waiting_stages.circles((2, 3), seed)[:1])  # else always {} earns the points
    with part(1, "stages that wait for each other"):
        for case in circles:
            waiting_stages.judge(answer, waiting_stages.circles((case[0], case[1]), seed))
        waiting_stages.judge(answer, waiting_stages.healthy((3, 3), seed)[:2])
    with part(1, "actions that never come, and stages that wait for themselves"):
        for case in circles:
            waiting_stages.judge(answer, waiting_stages.missing((case[0], case[1]), seed))
        waiting_stages.judge(answer, waiting_stages.healthy((2, 4), seed)[:2])


@chapter.exercise(
    points=1,
    hints=[
        "Play the actions: the number of the newest version, and a dictionary from each micro-batch under way to the "
        "version of its forward.",
        "After each action, count the different versions: the newest one, and those of the micro-batches under "
        "way. Several of them may use one version.",
    ],
)
def weights_to_stash(
    answer: Answer,
    part: Part,
    *,
    straight: Sequence[Two] = ((4, 12), (2, 5), (1, 3), (5, 3)),
    rare: Sequence[Three] = ((4, 12, 4), (3, 8, 2)),
) -> None:
    """PipeDream's versions, K - s on stage s once it is busy; half of it is for updates that are rarer, or none."""
    with part(0.5, "an update after each backward, as in PipeDream"):
        for K, M in straight:
            version_counts.judge(answer, version_counts.straight(K, M))
    with part(0.5, "updates after several backwards, at the end, or never"):
        for K, M, period in rare:
            version_counts.judge(answer, version_counts.rare(K, M, period))
        version_counts.judge(answer, version_counts.straight(3, 7))


@chapter.exercise(
    points=1,
    hints=[
        "A stage computes for M (t_F + t_B), and the pipeline takes (M + K - 1) (t_F + t_B): how long is it idle?",
        "With v chunks a stage, only a v-th of these idle seconds is left. All seconds are those in which the "
        "stage computes and those in which it is idle.",
    ],
)
def bubble(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[Three] = ((4, 8, 1), (3, 3, 1), (4, 12, 2), (2, 6, 4), (1, 5, 1), (8, 2, 1), (3, 30, 10)),
) -> None:
    """The two conventions, half each."""
    with part(0.5, "relative to the ideal time"):
        for case in cases:
            bubble_numbers.compare(answer, (case[0], case[1], case[2]), 0)
    with part(0.5, "relative to the total time"):
        for case in cases:
            bubble_numbers.compare(answer, (case[0], case[1], case[2]), 1)
