"""Clusters for `best_plan`, the plans that fit, the fastest of them, and the plans that known mistakes choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations

import numpy as np

from course.checks.putting_it_together import step_seconds
from course.checks.putting_it_together.step_seconds import Plan
from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.putting_it_together import Cluster, Model
from minidl.random import Purpose, stream

TIE = 1e-9
"""Plans whose times differ by a smaller share are equally good."""

CLEAR = 0.02
"""A cluster catches a known mistake if its plan takes longer than the best one by more than this share."""

DRAWS = 3_000

KINDS = ("dp", "pp", "tp", "dp pp", "dp tp", "pp tp", "dp pp tp")
"""The axes along which the best plan divides the work: each wins on some cluster."""


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def kind_of(plan: Plan) -> str:
    return " ".join(name for name, extent in zip(("dp", "pp", "tp"), plan, strict=False) if extent > 1)


@dataclass(frozen=True)
class Problem:
    """A model, a cluster and a minibatch."""

    model: Model
    cluster: Cluster
    batch: int

    @property
    def called(self) -> str:
        model, cluster = self.model, self.cluster
        return (
            f"best_plan with {counted(cluster.ranks, 'rank')} of {cluster.memory} bytes and a batch of {self.batch}, "
            f"for {counted(model.layers, 'layer')} of width {model.width} with {counted(model.heads, 'head')} and "
            f"{counted(model.context, 'token')}"
        )

    def parts(self, plan: Plan) -> tuple[float, float, int]:
        """Bytes of a rank's state, of what it keeps of a micro-batch, and how many micro-batches it keeps."""
        dp, pp, tp, b = plan
        layers = self.model.layers // pp
        state = 16 * layers * 12 * self.model.width**2 / tp
        kept = 34 * layers * b * self.model.context * self.model.width / tp
        return state, kept, min(pp, self.batch // (dp * b))

    def nbytes(self, plan: Plan) -> float:
        state, kept, in_flight = self.parts(plan)
        return state + kept * in_flight

    def fits(self, plan: Plan) -> bool:
        return self.nbytes(plan) <= self.cluster.memory

    def refusal(self, plan: Plan) -> str:
        """Why the model cannot be divided so; "" if it can."""
        dp, pp, tp, b = plan
        if dp * pp * tp != self.cluster.ranks:
            return f"dp pp tp is {dp * pp * tp}, and the cluster has {counted(self.cluster.ranks, 'rank')}"
        if self.model.layers % pp:
            return f"{pp} stages cannot have equally many of {self.model.layers} layers"
        if self.model.heads % tp:
            return f"{tp} shards cannot have equally many of {self.model.heads} heads"
        if self.batch % (dp * b):
            return f"{dp} replicas with micro-batches of {b} samples do not divide a minibatch of {self.batch}"
        return ""

    def plans(self) -> Iterator[Plan]:
        """All ways to divide the model, whether they fit or not."""
        p = self.cluster.ranks
        for pp in divisors(p):
            for tp in divisors(p // pp):
                dp = p // (pp * tp)
                if self.model.layers % pp or self.model.heads % tp or self.batch % dp:
                    continue
                for b in divisors(self.batch // dp):
                    yield dp, pp, tp, b

    def seconds(self, plan: Plan) -> float:
        return step_seconds.seconds(plan, self.batch, self.model, self.cluster)

    @cached_property
    def timed(self) -> dict[Plan, float]:
        return {plan: self.seconds(plan) for plan in self.plans()}

    def fastest(self, allowed: Callable[[Plan], bool]) -> Plan | None:
        return min((plan for plan in self.timed if allowed(plan)), key=self.timed.__getitem__, default=None)

    @cached_property
    def best(self) -> Plan | None:
        return self.fastest(self.fits)

    def regret(self, plan: Plan) -> float:
        """The share by which a plan that fits takes longer than the best one."""
        assert self.best is not None
        return self.timed[plan] / self.timed[self.best] - 1


Mistake = Callable[[Problem], Plan | None]
"""The plan that a known mistake chooses."""


def of_memory(nbytes: Callable[[Problem, Plan], float]) -> Mistake:
    """A known mistake: the fastest of the plans that fit if a rank needed other bytes."""
    return lambda one: one.fastest(lambda plan: nbytes(one, plan) <= one.cluster.memory)


def among(allowed: Callable[[Problem, Plan], bool]) -> Mistake:
    """A known mistake: the fastest of fewer plans."""
    return lambda one: one.fastest(lambda plan: one.fits(plan) and allowed(one, plan))


OF_MEMORY: dict[str, Mistake] = {
    "The memory of a rank was not looked at.": of_memory(lambda one, plan: 0.0),
    "Activations need memory, too.": of_memory(lambda one, plan: one.parts(plan)[0]),
    "Weights, gradients and the optimizer's state need memory, too: 16 bytes a weight.": of_memory(
        lambda one, plan: one.nbytes(plan) - one.parts(plan)[0]
    ),
    "A stage keeps the activations of min(pp, m) micro-batches, not of one.": of_memory(
        lambda one, plan: sum(one.parts(plan)[:2])
    ),
    "A stage keeps the activations of min(pp, m) micro-batches, not of all m: this is 1F1B.": of_memory(
        lambda one, plan: one.parts(plan)[0] + one.parts(plan)[1] * (one.batch // (plan[0] * plan[3]))
    ),
    "A stage keeps the activations of min(pp, m) micro-batches: there may be fewer than pp.": of_memory(
        lambda one, plan: one.parts(plan)[0] + one.parts(plan)[1] * plan[1]
    ),
    "Every replica has all state: dp does not divide it.": of_memory(
        lambda one, plan: one.nbytes(plan) - one.parts(plan)[0] * (1 - 1 / plan[0])
    ),
    "A rank has the state of its stage and its shard only.": of_memory(
        lambda one, plan: one.nbytes(plan) + one.parts(plan)[0] * (plan[1] * plan[2] - 1)
    ),
    "The activations of a layer are divided over tp, too.": of_memory(
        lambda one, plan: one.nbytes(plan) + (plan[2] - 1) * one.parts(plan)[1] * one.parts(plan)[2]
    ),
}

OF_SEARCH: dict[str, Mistake] = {
    "Only micro-batches of one sample were tried.": among(lambda one, plan: plan[3] == 1),
    "Only one micro-batch, all samples of a replica, was tried.": among(
        lambda one, plan: plan[0] * plan[3] == one.batch
    ),
    "Only extents that are powers of two were tried.": among(
        lambda one, plan: all(extent & (extent - 1) == 0 for extent in plan[:3])
    ),
    "Only micro-batches of 1, 2, 4, 8, ... samples were tried.": among(lambda one, plan: plan[3] & (plan[3] - 1) == 0),
    "Plans with fewer micro-batches than stages were not tried.": among(
        lambda one, plan: plan[1] <= one.batch // (plan[0] * plan[3])
    ),
    "Plans that divide along all three axes were not tried.": among(lambda one, plan: min(plan[:3]) == 1),
    "Plans that divide along several axes were not tried.": among(
        lambda one, plan: sum(extent > 1 for extent in plan[:3]) < 2
    ),
    "Tensor parallelism may leave the node, if that is faster than what else fits.": among(
        lambda one, plan: one.cluster.per_node % plan[2] == 0
    ),
    "As many replicas as fit are not always the fastest.": lambda one: min(
        filter(one.fits, one.timed), key=lambda plan: (-plan[0], one.timed[plan]), default=None
    ),
    "The slowest plan was chosen.": lambda one: max(
        filter(one.fits, one.timed), key=one.timed.__getitem__, default=None
    ),
    "The plan with the least memory was chosen, not the fastest one.": lambda one: min(
        filter(one.fits, one.timed), key=one.nbytes, default=None
    ),
}

MISTAKES = OF_MEMORY | OF_SEARCH


def is_caught(one: Problem, plan: Plan | None) -> bool:
    """Whether a wrong plan is noticed: it does not fit, is none though some fit, or takes clearly longer."""
    if plan is None or one.best is None:
        return plan != one.best
    return not one.fits(plan) or one.regret(plan) > CLEAR


def draw(rng: np.random.Generator) -> Problem:
    """A model and a cluster with ordinary numbers, and memory for everything."""

    def between(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.2g}")

    heads = int(rng.choice([4, 6, 8, 9, 12, 15, 16, 20]))
    model = Model(int(rng.choice([4, 6, 9, 12, 15, 24, 36])), heads * 32 * int(rng.integers(1, 9)), heads,
                  int(rng.choice([200, 512, 750, 1024])))  # fmt: skip
    ranks = int(rng.choice([3, 4, 6, 8, 12, 18, 24, 32]))
    slow = between(1e-10, 3e-8)
    cluster = Cluster(
        ranks, int(rng.choice(divisors(ranks))), between(1e12, 3e14), 10**16,
        (between(1e-6, 6e-6), float(f"{slow * rng.choice([0.02, 0.1, 0.4]):.2g}")), (between(8e-6, 2e-4), slow),
    )  # fmt: skip
    return Problem(model, cluster, int(rng.choice([6, 12, 24, 30, 36, 48, 72, 90])))


def with_less(one: Problem, rng: np.random.Generator) -> Problem:
    """The same with memory for a share of the plans."""
    needs = sorted(map(one.nbytes, one.plans()))
    memory = needs[int(rng.choice([0.03, 0.1, 0.3, 0.9]) * (len(needs) - 1))] * rng.uniform(1.02, 1.2)
    return replace(one, cluster=replace(one.cluster, memory=int(float(f"{memory:.3g}"))))


def collected(
    rng: np.random.Generator, kinds: set[str], mistakes: Mapping[str, Mistake], is_tight: bool
) -> list[Problem]:
    """Problems on which each kind of plan is the best one, each mistake is caught, and no two choose the same plans."""
    found = []
    missing = {*mistakes, *combinations(mistakes, 2)}
    for _ in range(DRAWS):
        if not kinds and not missing:
            return found
        one = draw(rng)
        if one.best is None:
            continue
        one = with_less(one, rng) if is_tight else one
        assert one.best is not None
        plans = {sentence: choose(one) for sentence, choose in mistakes.items()}
        solved = {sentence for sentence, plan in plans.items() if is_caught(one, plan)}
        solved |= {pair for pair in combinations(mistakes, 2) if not is_alike(one, *(plans[each] for each in pair))}
        if solved & missing or kind_of(one.best) in kinds:
            found.append(one)
            missing -= solved
            kinds = kinds - {kind_of(one.best)}
    raise RuntimeError(f"no clusters were found: {missing} are not caught, {kinds} are never the best")


@cache
def roomy(seed: int) -> list[Problem]:
    """Everything fits; each kind of plan is the best one once."""
    return collected(stream(Purpose.MANUAL, seed, "roomy clusters"), set(KINDS), OF_SEARCH, is_tight=False)


@cache
def tight(seed: int) -> list[Problem]:
    """Memory decides."""
    return collected(stream(Purpose.MANUAL, seed, "tight clusters"), set(KINDS[3:]), OF_MEMORY, is_tight=True)


@cache
def edges(seed: int) -> list[Problem]:
    """One rank: memory that is just enough, one byte less, and micro-batches of any size; a cluster without a plan."""
    rng = stream(Purpose.MANUAL, seed, "edges of plans")
    heads = int(rng.choice([3, 5]))
    model = Model(
        int(rng.choice([2, 3, 4, 5])), heads * 8 * int(rng.integers(3, 30)), heads, int(rng.integers(90, 700))
    )
    alone = Cluster(1, 1, 1e13, 10**12, (1e-6, 1e-11), (1e-5, 1e-9))
    least = int(Problem(model, alone, 1).nbytes((1, 1, 1, 1)))
    return [
        Problem(model, replace(alone, memory=least), 1),
        Problem(model, replace(alone, memory=least - 1), 1),
        Problem(model, alone, int(rng.choice([6, 7, 9, 12]))),
        Problem(model, replace(alone, ranks=7), 6),
    ]


def asked(answer: Answer, one: Problem) -> Plan | None:
    """The plan that the answer returns, or None; Wrong if there is no such plan."""

    def seconds(dp: int, pp: int, tp: int, b: int) -> float:
        plan = (int(dp), int(pp), int(tp), int(b))
        if plan != (dp, pp, tp, b) or min(plan) < 1:
            raise ValueError(f"seconds{(dp, pp, tp, b)}: expected whole numbers from 1 on")
        if refusal := one.refusal(plan):
            raise ValueError(f"seconds{plan}: there is no such plan: {refusal}")
        return one.timed[plan]

    got = answer(one.model, one.cluster, one.batch, answer.offered(seconds, "seconds"))
    if got is None:
        return None
    numbers = got.tolist() if isinstance(got, np.ndarray) else got
    if not isinstance(numbers, (list, tuple)) or len(numbers) != 4:
        raise Wrong(
            f"{one.called}: expected (dp, pp, tp, b) or None, got {expect.shown(got)}.", expect.not_a_value(got)
        )
    if any(isinstance(each, bool) or not isinstance(each, (int, np.integer)) or each < 1 for each in numbers):
        raise Wrong(
            f"{one.called}: expected four whole numbers from 1 on, got {expect.shown(got)}.",
            "`//` divides whole numbers.",
        )
    plan: Plan = tuple(int(each) for each in numbers)  # type: ignore[assignment]
    if refusal := one.refusal(plan):
        raise Wrong(f"{one.called}: {plan} is no plan: {refusal}.")
    return plan


def is_possible(one: Problem, plan: Plan | None) -> bool:
    """Whether a plan fits, or is rightly None."""
    return one.best is None if plan is None else one.fits(plan)


def judge(choose: Callable[[Problem], Plan | None], group: list[Problem]) -> None:
    """Raise Wrong unless the plan is among the fastest on all problems of a group. choose: `asked`, or what it kept."""
    chosen = [choose(one) for one in group]
    both = list(zip(group, chosen, strict=True))
    causes = [sentence for sentence, wrong in MISTAKES.items() if all(is_alike(*each, wrong(each[0])) for each in both)]
    cause = causes[0] if len(causes) == 1 else ""
    for one, plan in both:
        if is_possible(one, plan):
            continue
        if plan is None:
            assert one.best is not None
            need = one.nbytes(one.best)
            raise Wrong(
                f"{one.called}: expected a plan, such as {one.best} with {need:.10g} bytes, got None.",
                cause or ("A plan that needs all of the memory fits." if need == one.cluster.memory else ""),
            )
        raise Wrong(
            f"{one.called}: {plan} needs {one.nbytes(plan):.10g} bytes on a rank, which has {one.cluster.memory}.",
            cause or ("Where no plan fits, the result is None." if one.best is None else ""),
        )
    late = [(one, plan) for one, plan in both if plan is not None and one.regret(plan) > TIE]
    if late:
        one, plan = max(late, key=lambda each: each[0].regret(each[1]))
        assert one.best is not None
        raise Wrong(
            f"{one.called}: with {plan} a step takes {one.timed[plan]:.6g} s, with {one.best} it takes "
            f"{one.timed[one.best]:.6g} s. A faster plan fits on {len(late)} of {counted(len(group), 'cluster')} of "
            "this kind.",
            cause,
        )


def is_alike(one: Problem, plan: Plan | None, other: Plan | None) -> bool:
    """Whether two plans are the same or equally fast."""
    if plan is None or other is None:
        return plan == other
    return abs(one.timed[plan] - one.timed[other]) <= TIE * one.timed[plan]
