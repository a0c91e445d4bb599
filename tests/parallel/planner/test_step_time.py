"""The parts of a step's time: the bubble against the schedule's own clock, links, traffic, what is hidden."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from minidl import data, nn, optim, parallel
from minidl.cluster import Network, Node, Simulation, cost
from minidl.parallel.pipeline import Times, simulate
from minidl.parallel.planner import MACHINES, Arrangement, Machine, Transformer, memory, step_time, traffic, utilisation
from tests.tiers import exhaustively

A100 = replace(MACHINES["a100x8"], nodes=16)
GPT = Transformer(layers=48, width=1536, heads=16, context=1024, vocabulary=30011)


@pytest.mark.parametrize(
    ("schedule", "chunks"), [("1f1b", 1), ("gpipe", 1), ("interleaved", 2), ("interleaved", 3), ("zb-h1", 1)]
)
def test_a_pipelines_time_is_that_of_its_schedule_played_with_unequal_stages(schedule, chunks):
    arrangement = Arrangement(24, pp=4, tp=2, schedule=schedule, chunks=chunks)
    stages = GPT.passes(arrangement, A100)
    time = step_time(GPT, arrangement, A100)
    made = arrangement.made_schedule()
    times = Times(
        [stages[made.place(chunk)].forward.total / chunks for chunk in range(made.chunks)],
        [
            (stages[made.place(chunk)].again.total + stages[made.place(chunk)].input.total) / chunks
            for chunk in range(made.chunks)
        ],
        [stages[made.place(chunk)].weight.total / chunks for chunk in range(made.chunks)],
    )
    played = simulate(made, times).seconds
    assert time.bubble > 0
    assert time.total - time.optimizer - time.data - time.pipeline == pytest.approx(played, rel=0.025)


def test_the_bubble_of_equal_stages_is_the_closed_form():
    gpt = replace(GPT, vocabulary=1)
    arrangement = Arrangement(24, pp=4)
    time = step_time(gpt, arrangement, replace(A100, inside=1e30, inside_latency=0.0))
    busy = time.products + time.elementwise
    assert time.bubble / busy == pytest.approx(3 / 24, rel=0.01)
    halved = step_time(
        gpt, replace(arrangement, schedule="interleaved", chunks=3), replace(A100, inside=1e30, inside_latency=0.0)
    )
    assert halved.bubble == pytest.approx(time.bubble / 3, rel=1e-9)


@pytest.mark.parametrize(
    ("stride", "size", "share"),
    [
        (1, 8, "inside"),  # a node
        (1, 16, 1.0),  # two nodes, one ring over both: it has all cards
        (8, 4, 1 / 8),  # one of each node
        (2, 4, "inside"),
        (2, 8, 1 / 2),  # two such rings
        (4, 64, 1 / 4),
    ],
)
def test_rings_share_what_a_node_sends(stride, size, share):
    slow = replace(A100, between=100e9)
    rate = slow.inside if share == "inside" else share * slow.between
    latency = slow.inside_latency if share == "inside" else slow.between_latency
    assert slow.link(stride, size) == (latency, pytest.approx(1 / (0.8 * rate)))


def test_replicas_sum_gradients_in_the_time_of_a_ring_and_hide_it_behind_backward():
    exposed = step_time(GPT, Arrangement(128, dp=128, overlap=False), A100)
    weights = 2 * GPT.parameters
    alpha, beta = A100.link(1, 128)
    assert exposed.data == pytest.approx(cost.all_reduce("ring", 128, weights, alpha, beta, itemsize=1), rel=1e-9)
    hidden = step_time(GPT, Arrangement(128, dp=128), A100)
    (passes,) = GPT.passes(Arrangement(128, dp=128), A100)
    assert hidden.data == pytest.approx(max(exposed.data - passes.total + passes.forward.total, 0))


def test_a_pass_hides_as_much_of_gathers_and_sums_as_it_takes():
    slow = replace(A100, between=1e7)
    arrangement = Arrangement(3 * 128, dp=128, shard=3)
    exposed, hidden = (step_time(GPT, replace(arrangement, overlap=overlap), slow).data for overlap in (False, True))
    (passes,) = GPT.passes(arrangement, slow)
    assert exposed - hidden == pytest.approx(3 * passes.total, rel=1e-9)


def test_the_update_takes_as_long_as_the_memory_of_the_optimizers_state_has_numbers():
    gpt = replace(GPT, experts=6, top=2)
    for shard in range(4):
        arrangement = Arrangement(36, dp=6, ep=3, shard=shard)
        numbers = memory(gpt, arrangement).by_component["optimizer"] / 12
        found = step_time(gpt, arrangement, A100).optimizer
        assert found == pytest.approx(44 * numbers / (0.8 * A100.memory_rate), rel=1e-9)


def test_experts_use_links_between_nodes_for_every_accelerator():
    gpt, few = replace(GPT, experts=16), Arrangement(32, dp=16, ep=16)
    fast = replace(A100, inside=1e30, inside_latency=0.0, between_latency=0.0, between=1e9)
    leaves = 8 * 8 / 16 * 2 * 2 * 1024 * 1536  # bytes of 8 ranks in one exchange: to 8 of 16
    exchanges = 2 * 48 * 2 * 2  # of two micro-batches: to experts and back, forward and backward
    assert step_time(gpt, few, fast).experts == pytest.approx(exchanges / 2 * leaves / 0.8e9, rel=1e-6)


@pytest.mark.parametrize(("shard", "times"), [(0, 2), (1, 2), (2, 2), (3, 2 * 5 + 1)])
def test_numbers_sent_along_dp_are_those_of_hybrid(shard, times):
    arrangement = Arrangement(30, dp=6, shard=shard)
    sent = traffic(GPT, arrangement)
    assert sent == {"dp": pytest.approx(times * 2 * GPT.parameters * 5 / 6)}


def test_the_ends_of_a_pipeline_add_up_the_gradient_of_the_embedding():
    few = replace(GPT, vocabulary=1)
    times = [step_time(gpt, Arrangement(24, pp=8, tp=2), A100) for gpt in (GPT, few)]
    alpha, beta = A100.link(2, 8)
    tables = [cost.all_reduce("ring", 2, gpt.vocabulary * 1536, alpha, beta, itemsize=1) for gpt in (GPT, few)]
    assert times[0].pipeline - times[1].pipeline == pytest.approx(tables[0] - tables[1], rel=1e-6)


def test_interleaving_sends_more_along_pp():
    once = traffic(GPT, Arrangement(24, pp=4, tp=2))["pp"]
    assert once == 24 * 2 * (2 * 1024 * 1536) / 2
    assert traffic(GPT, Arrangement(24, pp=2, tp=2))["pp"] == once / 2  # the ends send in one direction
    assert traffic(GPT, Arrangement(24, pp=4, tp=2, schedule="interleaved", chunks=3))["pp"] == 3 * once


def test_doubled_links_halve_what_messages_take_and_nothing_else():
    arrangement = Arrangement(96, dp=4, pp=4, tp=8, overlap=False)
    before = step_time(GPT, arrangement, replace(A100, inside_latency=0.0, between_latency=0.0))
    better = replace(A100, inside_latency=0.0, between_latency=0.0, inside=2 * A100.inside, between=2 * A100.between)
    after = step_time(GPT, arrangement, better)
    for name in ("tensor", "pipeline", "data"):
        assert getattr(after, name) == pytest.approx(getattr(before, name) / 2, rel=1e-6)
    for name in ("products", "elementwise", "optimizer"):
        assert getattr(after, name) == getattr(before, name)


def test_the_order_of_the_axes_decides_which_messages_leave_a_node():
    inner = Arrangement(64, dp=8, tp=8, overlap=False)
    outer = replace(inner, axes=("tp", "pp", "dp"))
    first, second = (step_time(GPT, each, A100) for each in (inner, outer))
    assert first.tensor < second.tensor
    assert first.data > second.data


def test_utilisation_is_the_models_flops_by_the_peak():
    arrangement = Arrangement(24, dp=3, recompute="full")
    assert utilisation(GPT, arrangement, A100, 2.5) == pytest.approx(GPT.flops(24) / (2.5 * 3 * 312e12))


@pytest.mark.parametrize(
    "arrangement",
    [
        Arrangement(24, dp=2, pp=2, tp=2),
        Arrangement(24, pp=8, schedule="zb-h2"),
        *exhaustively(
            Arrangement(24, dp=4),
            Arrangement(24, pp=4),
            Arrangement(24, pp=4, schedule="zb-h1"),
            Arrangement(24, pp=4, schedule="zb-h2"),
            Arrangement(24, pp=2, schedule="interleaved", chunks=2),
            Arrangement(24, tp=3, recompute="full"),
            Arrangement(24, tp=2, sequence=True, recompute="selective"),
            Arrangement(24, dp=3, pp=4, tp=2, recompute="full"),
        ),
    ],
    ids=str,
)
def test_a_step_is_within_five_percent_of_the_one_that_is_simulated(arrangement):
    gpt = Transformer(layers=8, width=96, heads=6, context=64, vocabulary=204, fused=False)
    peak, alpha, beta = 1.1e9, 2.3e-6, 4.7e-9  # the simulation's numbers have 4 bytes, the planner's 2
    ideal = {"efficiency": 1.0, "half": 0.0, "inside_latency": alpha}
    machine = Machine(24, peak, 1e12, 1e30, inside=1 / (0.8 * beta), between=1.0, **ideal)
    tokens = np.zeros((24, 64), np.int64)
    dataset = data.Dataset(tokens, tokens)
    job = parallel.Job(
        lambda: nn.models.GPT(204, 64, 8, 6, 96),
        data.Splits(dataset, dataset),
        lambda parameters: optim.SGD(parameters, lr=0.1),
        batch_size=24,
    )
    on = Simulation(Network(alpha, beta / 2), Node(peak, 1e30))
    strategy = replace(arrangement.strategy(), overlap=False, algorithm="ring")
    played = parallel.simulated_step(job, strategy, arrangement.world, on).seconds
    assert step_time(gpt, replace(arrangement, overlap=False), machine).total == pytest.approx(played, rel=0.05)


def test_experts_are_typed_as_hybrid_counts_them():
    arrangement = Arrangement(48, dp=8, ep=4)
    assert str(arrangement) == "dp=2,ep=4,micro_batches=6"
    assert (arrangement.strategy().dp, arrangement.strategy().ep) == (2, 4)


def test_arrangements_that_do_not_divide_are_refused():
    for settings, says in (
        ({"dp": 5}, "do not divide a minibatch of 24: choose a multiple of 5"),
        ({"dp": 4, "micro_batch": 5}, "choose a multiple of 20"),
        ({"dp": 4, "ep": 3}, "no divisor of dp=4"),
        ({"pp": 2, "schedule": "zb-h1", "recompute": "full"}, "nothing is recomputed"),
        ({"shard": 4}, "shard must be"),
        ({"schedule": "1f2b"}, "schedule"),
    ):
        with pytest.raises(ValueError, match=says):
            Arrangement(24, **settings)
