"""The checks of chapter 14: putting it together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from course.checks.library_versions import BUILDS
from course.checks.putting_it_together import expert_ranks, hidden_plans, step_seconds, token_slots
from course.checks.tensor_parallelism.divided_runs import compare_runs, returned
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("14_putting_it_together", BUILDS["14_putting_it_together"])
hint = chapter.hint
__all__ = ["best_plan", "chapter", "hint", "moe_step", "route", "step_time"]


@chapter.exercise(
    points=5,
    hints=[
        "np.argsort(-scores, axis=1, kind='stable')[:, :k] has the experts that each token chooses, the first choice "
        "in column 0; among equal scores the lower number comes first.",
        "Two loops: for j in range(k), and within it for t in range(T). An array taken, one number for each expert, "
        "counts its occupied slots. If taken[e] < capacity, choice j of token t gets slot e * capacity + taken[e].",
        "Gates: take the probabilities of the chosen experts; with k > 1 divide them by their sum, which contains "
        "the dropped ones. Only then set those of dropped choices to 0.",
        "Loss: np.bincount(first_choices, minlength=E) / T is f, probabilities.mean(axis=0) is P. Whether a choice "
        "was dropped does not matter here.",
    ],
)
def route(
    answer: Answer,
    part: Part,
    *,
    single: Sequence[token_slots.Case] = ((9, 3, 1, 4), (17, 5, 1, 3), (6, 4, 1, 6), (1, 3, 1, 1), (11, 1, 1, 5)),
    several: Sequence[token_slots.Case] = ((9, 3, 2, 5), (21, 6, 2, 7), (13, 5, 3, 6), (7, 3, 3, 4), (1, 5, 2, 1)),
    ties: Sequence[token_slots.Case] = ((23, 5, 1, 4), (19, 6, 2, 7)),
    long: token_slots.Case = (1103, 7, 2, 290),
    seed: int = 0,
) -> None:
    """Slots in order of priority; half of it is for what comes of them: gates, and the loss that evens out the load."""

    @cache
    def routed(case: token_slots.Case, kind: str = "plain") -> token_slots.Routed:
        return token_slots.Routed(answer, case, seed, kind)

    one_each = [(case[0], case[1], case[2], case[3]) for case in single]
    more = [(case[0], case[1], case[2], case[3]) for case in several]
    tied = [(case[0], case[1], case[2], case[3]) for case in ties]
    last = (long[0], long[1], long[2], long[3])
    with part(1, "slots for one choice of each token"):
        for case in one_each:
            routed(case).compare("slots")
    with part(1, "slots for several choices: first choices before second ones"):
        for case in (*more, last):
            routed(case).compare("slots")
    with part(0.5, "equal scores: the expert of the lower number first"):
        for case in tied:
            routed(case, "tied").compare("slots")
    with part(1, "gates"):
        for case in (*one_each, *more, last):
            routed(case).compare("gates")
        for case in tied:
            routed(case, "large").compare("gates")
    with part(1.5, "the load-balancing loss"):
        for case in (*one_each, *more, last):
            routed(case).compare("loss")


@chapter.exercise(
    points=6,
    hints=[
        "kept = slots >= 0 marks the choices that have a slot. np.nonzero(kept)[0] has the token of each, "
        "slots[kept] its slot, gates[kept] its gate, all three in the same order.",
        "A function that takes a row for each kept choice to the experts: buffer = np.zeros((E * capacity, d)), then "
        "buffer[slots[kept]] = rows. buffer.reshape(p, n, capacity, d)[r] goes to rank r. What comes has the shape "
        "(n, capacity, d) from each rank; np.concatenate(received, axis=1) has the rows of each own expert together.",
        "A function that takes the experts' rows back: np.split(rows, p, axis=1) has a share for each rank. "
        "np.concatenate(received) has all E experts in order: reshaped to (E * capacity, d), its rows slots[kept] "
        "are those of the kept choices.",
        "y = x + gate times output, np.add.at(y, tokens, ...) adds up several choices of a token. Backward: g = y - "
        "target. The rows that go to the experts are gate times g; the gate's own gradient is g · output, of the "
        "output that came back in forward.",
        "gx = g, plus what comes back from expert_gradients. The gradients of the weights stay where they are: the "
        "rank of an expert has seen all its tokens.",
    ],
)
def moe_step(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[expert_ranks.Case] = (
        (2, 1, 3, 4, 1, 5), (3, 2, 2, 3, 1, 9), (4, 1, 4, 5, 2, 7), (3, 3, 3, 4, 2, 2), (1, 4, 2, 3, 2, 6),
        (5, 2, 3, 2, 3, 8), (2, 1, 1, 1, 1, 2), (2, 1, 30, 33, 1, 43),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """The results of one node; a third is for four all-to-alls with the slots of the others' experts."""

    run = cache(partial(expert_ranks.divided, answer, seed=seed))
    with part(1.5, "y on each rank is that of one node"):
        compare_runs(run, cases, returned("y"))
    with part(1.5, "the gradients of x and of the gates"):
        compare_runs(run, cases, returned("gx", "ggates"))
    with part(1, "the gradients of this rank's experts"):
        compare_runs(run, cases, returned("gw"))
    with part(2, "four all-to-alls, each with the slots of the other ranks' experts"):
        for case in cases:
            expert_ranks.compare_messages(run(tuple(case)), tuple(case))
        compare_runs(run, cases, returned("y", "gx", "gw"))


@chapter.exercise(
    points=4,
    hints=[
        "First m = batch // (dp * b), layers = L // pp, and weights = layers * 12 * h * h / tp. A pass forward "
        "through the stage has 2 * weights * b * s operations, a pass backward twice as many.",
        "A function ring(q, nbytes, alpha, beta) for an all-reduce serves for tp and for dp: 2 (q - 1) messages, one "
        "after the other, each of nbytes / q.",
        "tensor: m * layers * 4 all-reduces over tp of 2 b s h bytes. handover: m * 2 messages of 2 b s h bytes; 0 "
        "with pp = 1. bubble: (pp - 1) times what one micro-batch takes, (compute + tensor + handover) / m.",
        "Distances: ranks along tp are 1 apart, along pp tp, along dp tp pp. The link is inside if distance times "
        "size of the group divides per_node.",
    ],
)
def step_time(
    answer: Answer,
    part: Part,
    *,
    pure: Sequence[step_seconds.Case] = (
        (1, 1, 1, 3, 5, 7, 5, 8), (6, 1, 1, 2, 3, 5, 3, 6), (1, 5, 1, 3, 7, 3, 2, 5), (1, 1, 7, 2, 3, 6, 1, 7),
        (3, 1, 1, 5, 1, 2, 4, 1), (1, 3, 1, 1, 1, 2, 5, 1), (1, 1, 6, 3, 2, 3, 2, 1),
    ),
    mixed: Sequence[step_seconds.Case] = (
        (3, 4, 2, 3, 5, 3, 5, 24),
        (2, 3, 5, 1, 7, 2, 3, 1),
        (5, 2, 3, 7, 1, 6, 2, 30),
    ),
    links: Sequence[step_seconds.Case] = (
        (4, 2, 3, 2, 5, 3, 2, 6), (3, 5, 2, 3, 4, 2, 3, 2), (2, 3, 3, 1, 6, 4, 2, 8), (2, 2, 4, 3, 3, 2, 3, 16),
        (7, 1, 2, 3, 2, 3, 4, 14), (3, 4, 1, 2, 3, 2, 5, 6),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """The five terms of the time of a step; one part has links of two kinds."""

    timed = cache(partial(step_seconds.Timed, answer, seed=seed))

    def cases(of: Sequence[step_seconds.Case]) -> list[step_seconds.Timed]:
        return [timed((a, b, c, d, e, f, g, h)) for a, b, c, d, e, f, g, h in of]

    for points, name in ((0.5, "compute"), (1, "tensor"), (0.5, "handover"), (0.5, "bubble"), (1, "data")):
        with part(points, TITLES[name]):
            for one in cases((*pure, *mixed)):
                one.compare(name)
    with part(0.5, "which groups are within a node"):
        for one in cases(links):
            for name in step_seconds.NAMES:
                one.compare(name)


TITLES = {
    "compute": "compute",
    "tensor": "the all-reduces along tp",
    "handover": "what stages hand over",
    "bubble": "the bubble, with all that a micro-batch takes",
    "data": "the all-reduce of the gradients along dp",
}


@chapter.exercise(
    points=3,
    hints=[
        "Loops over pp and tp from 1 to p; dp = p // (pp * tp). Skip what does not divide p, the layers, the heads "
        "or the minibatch. Innermost, a loop over b from 1 to batch // dp.",
        "A rank's bytes: layers = L // pp; 16 * layers * 12 * h * h // tp, and min(pp, m) * 34 * layers * b * s * h "
        "// tp with m = batch // (dp * b). If these are more than cluster.memory, skip the plan.",
        "Keep the plan with the fewest seconds. It begins as None, and stays None if nothing fits.",
    ],
)
def best_plan(answer: Answer, part: Part, *, seed: int = 0) -> None:
    """The fastest plan that fits, or one as fast; half of it is for clusters on which memory decides."""
    kept: dict[int, hidden_plans.Plan | None] = {}

    def choose(one: hidden_plans.Problem) -> hidden_plans.Plan | None:
        if id(one) not in kept:
            kept[id(one)] = hidden_plans.asked(answer, one)
        return kept[id(one)]

    roomy = hidden_plans.roomy(seed)
    with part(0.5, "one rank; no plan at all"):
        hidden_plans.judge(choose, hidden_plans.edges(seed))
    with part(1, "enough memory: each kind of plan is the best one on some cluster"):
        hidden_plans.judge(choose, roomy)
    with part(1.5, "little memory, too: the fastest of the plans that fit"):
        hidden_plans.judge(choose, [*roomy, *hidden_plans.tight(seed)])
