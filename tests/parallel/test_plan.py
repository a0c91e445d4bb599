"""A plan says which rank holds which part of which replica."""

import math

import pytest

from minidl import cluster, nn, parallel
from minidl.parallel import ParallelPlan, Strategy
from minidl.parallel.plan import AXES
from tests.parallel.jobs import small_job


@pytest.mark.parametrize(
    ("plan", "world"), [(ParallelPlan(), 1), (ParallelPlan(dp=3), 3), (ParallelPlan(dp=2, pp=3, tp=2, ep=2), 24)]
)
def test_the_world_is_the_product_of_the_axes(plan, world):
    assert plan.world == world == math.prod(plan.shape)
    assert plan.world == plan.dp * plan.ranks_of_replica
    assert plan.is_split == (plan.ranks_of_replica > 1)


def test_ranks_are_counted_row_by_row_with_tp_innermost_and_dp_outermost():
    plan = ParallelPlan(dp=2, pp=2, tp=3)
    assert plan.coordinates(1) == {"dp": 0, "ep": 0, "pp": 0, "spatial": 0, "tp": 1}
    assert plan.coordinates(3) == {"dp": 0, "ep": 0, "pp": 1, "spatial": 0, "tp": 0}
    assert plan.coordinates(6) == {"dp": 1, "ep": 0, "pp": 0, "spatial": 0, "tp": 0}
    assert len({tuple(plan.coordinates(rank).values()) for rank in range(plan.world)}) == plan.world
    assert tuple(plan.coordinates(0)) == AXES


def test_ranks_along_the_last_of_the_axes_are_neighbours():
    plan = ParallelPlan(dp=2, pp=2, tp=3, axes=("tp", "pp", "ep", "spatial", "dp"))
    assert [plan.coordinates(rank)["dp"] for rank in (0, 1, 2)] == [0, 1, 0]
    assert [plan.coordinates(rank)["tp"] for rank in (3, 4, 8)] == [0, 1, 2]
    assert plan.shape == (3, 2, 1, 1, 2)
    for axes, error in ((("dp", "tp"), ValueError), ((*AXES, "tp"), ValueError), ("dp", TypeError), (None, TypeError)):
        with pytest.raises(error, match="ParallelPlan: axes must"):
            ParallelPlan(axes=axes)


def test_the_outputs_are_on_the_last_stage_unless_the_plan_says_otherwise():
    assert ParallelPlan(pp=3).output_stage == 2 == ParallelPlan(pp=3, output_stage=2).output_stage
    assert ParallelPlan(pp=3, output_stage=0).output_stage == 0
    with pytest.raises(ValueError, match=r"ParallelPlan: output_stage must be .* 2, got 3"):
        ParallelPlan(pp=3, output_stage=3)


@pytest.mark.parametrize(
    ("axis", "number", "error"), [("dp", 0, ValueError), ("pp", 1.5, TypeError), ("tp", True, TypeError)]
)
def test_an_extent_is_a_whole_number_of_at_least_1(axis, number, error):
    with pytest.raises(error, match=f"ParallelPlan: {axis} must be .*at least 1, got"):
        ParallelPlan(**{axis: number})


class OfPairs(Strategy):
    def plan(self, job, nodes):
        return ParallelPlan(dp=nodes // 2, pp=2)


def test_a_plan_that_does_not_fit_the_run_is_refused():
    with pytest.raises(ValueError, match=r"plan has 2 ranks, .*pp=2.*, but the run has 3 nodes"):
        parallel.train(small_job(), OfPairs(), nodes=3, on="simulation")
    with pytest.raises(ValueError, match="OfPairs has no plan for nodes=1: ParallelPlan: dp must be at least 1, got 0"):
        parallel.train(small_job(), OfPairs(), nodes=1, on="simulation")
    with pytest.raises(ValueError, match="no rank may hold the whole: give Job a function"):
        parallel.train(small_job(model=nn.Linear(5, 3)), OfPairs(), nodes=2)


def traffic(program, nodes):
    run = cluster.launch(program, nodes=nodes, on="simulation", network="1gbe")
    return run.results, sum(each.messages for row in run.trace.ledger() for each in row.values()), run.seconds


def test_the_mesh_of_unsplit_replicas_sends_nothing_and_its_dp_is_the_whole_run():
    def program(comm):
        mesh = ParallelPlan(dp=4).mesh(comm)
        return mesh["dp"].size == comm.size, mesh["pp", "tp"].size, mesh.coordinates["dp"] == comm.rank

    assert traffic(program, 4) == ([(True, 1, True)] * 4, 0, 0.0)


def test_servers_take_no_part_in_the_mesh():
    def program(comm):
        if comm.rank == 4:
            return comm.recv(0)
        mesh = ParallelPlan(dp=2, pp=2).mesh(comm)
        if comm.rank == 0:
            comm.send("asked", 4)
        return mesh["dp"].all_gather(comm.rank), mesh["pp"].all_gather(comm.rank), mesh["dp", "pp"].size

    results, messages, _ = traffic(program, 5)
    assert results[2] == ([0, 2], [2, 3], 4)
    assert results[4] == "asked"
    # one all-reduce of a number along a tree of 4 ranks, two gathers in groups of 2 ranks, and one request
    assert messages == 2 * 3 + 4 * 2 + 1
