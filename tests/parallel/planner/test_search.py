"""The search: what it tries, what fits, what it refuses, and why its first is first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from minidl import nn
from minidl.parallel.planner import (
    MACHINES,
    CountedModel,
    Machine,
    Transformer,
    memory,
    search,
    step_time,
)

SMALL = Machine(2, 20e12, 3e9, 300e9, inside=10e9, between=2e9, nodes=3)
TIGHT = replace(SMALL, memory=0.14e9)
GPT = Transformer(layers=6, width=576, heads=6, context=384, vocabulary=5003)


@pytest.fixture(scope="module")
def plans():
    return search(GPT, SMALL, batch=36)


@pytest.fixture(scope="module")
def tight():
    return search(GPT, TIGHT, batch=36)


def test_plans_are_sorted_fit_first_and_use_every_accelerator(plans):
    order = [(not plan.fits, plan.seconds) for plan in plans]
    assert order == sorted(order)
    assert {plan.arrangement.world for plan in plans} == {6}
    for plan in plans:
        assert plan.fits == (plan.memory.total <= SMALL.memory)
    for plan in plans[:: len(plans) // 7]:
        assert plan.seconds == step_time(GPT, plan.arrangement, SMALL).total
        assert plan.memory.by_component == memory(GPT, plan.arrangement).by_component


def test_all_axes_schedules_and_kinds_of_recomputation_are_tried(plans):
    tried = [plan.arrangement for plan in plans]
    assert {(a.dp, a.pp, a.tp) for a in tried} == {
        (6, 1, 1), (3, 2, 1), (3, 1, 2), (2, 3, 1), (2, 1, 3), (1, 6, 1), (1, 1, 6), (1, 3, 2), (1, 2, 3)
    }  # fmt: skip
    assert {a.schedule for a in tried} == {"1f1b", "interleaved", "zb-h1", "zb-h2"}
    assert {a.recompute for a in tried} == {"none", "selective", "full"}
    assert {a.shard for a in tried} == {0, 1, 2, 3}
    assert len({str(a) + str(a.sequence) for a in tried}) == len(tried)


def test_no_order_of_the_axes_is_faster_than_the_one_that_is_listed(plans):
    for plan in plans[:40]:
        for axes in (("dp", "pp", "tp"), ("pp", "dp", "tp"), ("tp", "dp", "pp"), ("tp", "pp", "dp")):
            assert step_time(GPT, replace(plan.arrangement, axes=axes), SMALL).total >= plan.seconds


def test_with_less_memory_the_best_is_the_fastest_that_still_fits(plans, tight):
    assert plans[0].seconds < tight[0].seconds
    assert tight[0].seconds == min(each.seconds for each in tight if each.memory.total <= 0.14e9)


def test_what_fits_nowhere_is_refused_with_what_is_missing():
    with pytest.raises(ValueError, match=r"no arrangement fits: .* so \d+ GB are missing: take more nodes"):
        search(Transformer(96, 12288, 96, 2048), MACHINES["a100x8"], 8)


def test_sizes_that_divide_nowhere_are_refused():
    with pytest.raises(ValueError, match="choose a minibatch that is a multiple of 14"):
        search(Transformer(5, 99, 3, 32), replace(SMALL, nodes=7), 25)


def test_a_large_node_may_divide_each_layer_over_all_its_accelerators():
    gpt = Transformer(layers=2, width=224, heads=16, context=96, vocabulary=303)
    tried = [
        {each.arrangement.tp for each in search(gpt, replace(SMALL, accelerators=a, nodes=16 // a), 1)} for a in (8, 16)
    ]
    assert tried == [{8}, {8, 16}]


def test_experts_are_shared_out():
    gpt = replace(GPT, experts=6, top=2)
    found = search(gpt, SMALL, 6)
    tried = {(each.arrangement.dp, each.arrangement.ep) for each in found}
    assert tried == {(6, 1), (6, 2), (6, 3), (6, 6), (3, 1), (3, 3), (2, 1), (2, 2), (1, 1)}
    by_ep = {
        e.arrangement.ep: e.memory.by_component["weights"]
        for e in found
        if (e.arrangement.dp, e.arrangement.shard) == (6, 0)
    }
    experts = 6 * 2 * 6 * (8 * 576**2 + 5 * 576)  # bytes of six experts in each of six blocks
    assert by_ep[1] == 2 * gpt.parameters
    assert by_ep[1] - by_ep[3] == experts - experts / 3


def test_a_model_of_any_kind_is_counted_without_contents_and_pipelined():
    model = nn.models.ResNet(8)
    planned = CountedModel.of(model, np.zeros((1, 3, 32, 32), np.float32))
    assert planned.parameters == sum(parameter.size for parameter in model.parameters())
    found = search(planned, SMALL, 36)
    assert {each.arrangement.tp for each in found} == {1}
    assert {each.arrangement.pp for each in found} == {1, 2, 3}
    whole, half = (
        next(e for e in found if (e.arrangement.pp, e.arrangement.dp, e.arrangement.shard) == which)
        for which in ((1, 6, 0), (2, 3, 0))
    )
    assert whole.memory.by_component["weights"] == 2 * planned.parameters
    assert half.memory.by_component["weights"] < 2 * planned.parameters
    with pytest.raises(ValueError, match="has no stages"):
        CountedModel.of(nn.Linear(3, 4), np.zeros((1, 3), np.float32))


def test_machines_that_cannot_be_are_refused():
    for change, says in (
        ({"memory": 0}, "memory"),
        ({"accelerators": 0}, "accelerators"),
        ({"efficiency": 1.2}, "efficiency"),
    ):
        with pytest.raises(ValueError, match=f"Machine: {says}"):
            replace(SMALL, **change)
