"""The right values of chapter 14's checks are those of differences, of counts, and of the library's formulas."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from course.checks.putting_it_together import expert_ranks, hidden_plans, step_seconds, token_slots
from course.probes.putting_it_together import Cluster, Model
from minidl import Tensor
from minidl.cluster import cost, launch
from minidl.nn import experts
from minidl.parallel import pipeline
from tests.tiers import exhaustively


@pytest.mark.parametrize("case", [(23, 5, 2, 7), (17, 4, 3, 9), (9, 6, 1, 2)])
def test_slots_and_the_load_balancing_loss_are_those_of_the_library(case: token_slots.Case) -> None:
    T, E, k, capacity = case
    for seed in range(4):
        scores = token_slots.drawn(case, seed, "tied")
        choices = token_slots.chosen(scores, k)
        routed = experts.route(choices, E, capacity).slots
        slots = token_slots.slots_of(choices, capacity, token_slots.in_order(T, k))
        np.testing.assert_array_equal(np.where(slots < 0, E * capacity, slots), routed)
        loss = experts.load_balancing_loss(Tensor(token_slots.probabilities(scores)), choices[:, 0]).item()
        assert token_slots.balance(scores, choices[:, 0]) == pytest.approx(loss, rel=1e-12)


def test_the_gradients_of_the_step_with_experts_are_those_of_differences() -> None:
    p, n, capacity = 2, 2, 2
    tokens, of_all = expert_ranks.drawn((p, n, capacity, 3, 2, 5), seed=4)

    def loss(changed: int, name: str, value: Any) -> float:
        weights = value if name == "experts" else of_all
        given = [{**one, name: value} if rank == changed else one for rank, one in enumerate(tokens)]
        outputs = [expert_ranks.on_one_node(one, weights, capacity)[0] for one in given]
        return 0.5 * sum(float(np.sum((y - one["target"]) ** 2)) for y, one in zip(outputs, tokens, strict=True))

    results = [expert_ranks.on_one_node(one, of_all, capacity) for one in tokens]
    wanted = [("x", rank, tokens[rank]["x"], results[rank][1]) for rank in range(p)]
    wanted += [("gates", rank, tokens[rank]["gates"], results[rank][2]) for rank in range(p)]
    wanted += [("experts", -1, of_all, sum(each[3] for each in results))]
    for name, rank, values, gradient in wanted:
        for index in np.ndindex(values.shape):
            step = np.zeros(values.shape)
            step[index] = 1e-5
            slope = (loss(rank, name, values + step) - loss(rank, name, values - step)) / 2e-5
            assert gradient[index] == pytest.approx(slope, abs=1e-7), (name, rank, index)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("p", [2, 3, 5])
def test_an_all_to_all_sends_the_slots_of_the_other_ranks_experts(p: int) -> None:
    def exchange(comm: Any, n: int, capacity: int, d: int) -> int:
        comm.all_to_all([np.zeros((n, capacity, d)) for _ in range(comm.size)])
        return int(comm.bytes_sent)

    n, capacity, d = 3, 2, 7
    sent = launch(exchange, args=(n, capacity, d), nodes=p, on="simulation").results
    assert sent == [8 * n * capacity * d * (p - 1)] * p


@pytest.mark.parametrize(("p", "nbytes"), [(1, 700), (3, 9_000), (7, 21_000)])
def test_an_all_reduce_takes_as_long_as_the_formula_of_the_library_says(p: int, nbytes: int) -> None:
    want = cost.all_reduce("ring", p, nbytes, 3e-6, 7e-10, 0.0, itemsize=1)
    assert step_seconds.ring(p, nbytes, (3e-6, 7e-10)) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(("pp", "m"), [(1, 3), (3, 5), (4, 2), *exhaustively((7, 11), (6, 1))])
def test_step_and_memory_have_the_bubble_and_the_peak_of_a_1f1b_schedule_that_is_played(pp: int, m: int) -> None:
    model, cluster = Model(3 * pp, 96, 4, 50), Cluster(pp, pp, 1e12, 10**9, (0.0, 0.0), (0.0, 0.0))
    terms = step_seconds.terms((1, pp, 1, 2), 2 * m, model, cluster)
    third = terms["compute"] / m / 3
    timeline = pipeline.simulate(pipeline.OneFOneB(pp, m), pipeline.Times(third, third, third))
    assert sum(terms.values()) == pytest.approx(timeline.seconds, rel=1e-12)
    peak = pipeline.peak_memory(pipeline.OneFOneB(pp, m))
    in_flight = hidden_plans.Problem(model, cluster, 2 * m).parts((1, pp, 1, 2))[2]
    assert in_flight == max(peak)


def test_a_link_within_a_node_is_used_where_all_groups_are_within_nodes_and_as_many_fit_in_each() -> None:
    for dp, pp, tp, per_node in product((1, 2, 3), (1, 2, 4), (1, 2, 3), (1, 2, 4, 6, 8, 12)):
        ranks = np.arange(dp * pp * tp).reshape(dp, pp, tp)
        cluster = Cluster(ranks.size, per_node, 1e12, 1, (1.0, 0.0), (2.0, 0.0))
        for axis, apart in enumerate((pp * tp, tp, 1)):
            groups = np.moveaxis(ranks, axis, -1).reshape(-1, ranks.shape[axis])
            if step_seconds.link(cluster, apart, ranks.shape[axis]) == cluster.inside:
                assert all(len(set(group // per_node)) == 1 for group in groups)


@pytest.mark.parametrize("seed", [3, *exhaustively(*range(4, 12))])
def test_each_kind_of_plan_is_the_best_one_once_and_each_known_mistake_is_caught(seed: int) -> None:
    roomy, tight = hidden_plans.roomy(seed), hidden_plans.tight(seed)
    assert {hidden_plans.kind_of(one.best or (1, 1, 1, 1)) for one in roomy} >= set(hidden_plans.KINDS)
    for mistakes, group in ((hidden_plans.OF_SEARCH, roomy), (hidden_plans.OF_MEMORY, tight)):
        for sentence, choose in mistakes.items():
            assert any(hidden_plans.is_caught(one, choose(one)) for one in group), sentence
    for one in (*roomy, *tight):
        fitting = [plan for plan in every_plan(one) if one.fits(plan)]
        assert min(map(one.seconds, fitting)) == pytest.approx(one.seconds(one.best or (1, 1, 1, 1)), rel=1e-12)


def every_plan(one: hidden_plans.Problem) -> list[hidden_plans.Plan]:
    """All plans, by trying every number up to the ranks and up to the minibatch."""
    p = one.cluster.ranks
    extents = [(dp, pp, tp) for dp, pp, tp in product(range(1, p + 1), repeat=3) if dp * pp * tp == p]
    plans = [(*extent, b) for extent in extents for b in range(1, one.batch + 1)]
    return [plan for plan in plans if not one.refusal(plan)]
