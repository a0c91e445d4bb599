"""Shards of parameters that do not fit their ranks or their optimizer are refused."""

from dataclasses import replace
from functools import partial

import pytest

from minidl import cluster, nn, optim, parallel
from minidl.parallel import Hybrid, ParallelPlan, Strategy
from minidl.parallel.tensor import ColumnLinear, RowLinear
from tests.parallel.jobs import small_job

JOB = small_job()


@pytest.mark.parametrize("optimizer", [optim.LARS, optim.LAMB])
def test_an_optimizer_that_needs_norms_of_whole_parameters_is_refused_before_the_ranks_start(optimizer):
    strategy = Hybrid(tp=2, micro_batches=1, layout={"0": ColumnLinear, "3": RowLinear})
    with pytest.raises(ValueError, match=r"needs the norm of whole parameters, .* a shard of 0.weight"):
        parallel.train(replace(JOB, optimizer=partial(optimizer, lr=0.1)), strategy, 2, on="simulation")


class OtherShards(Strategy):
    """Cuts the second layer's weight in a way that the ranks' places do not allow."""

    def __init__(self, axis, index):
        self.axis, self.index = axis, index

    def plan(self, job, nodes):
        return ParallelPlan(dp=nodes // 2, tp=2)

    def build(self, job, mesh):
        def part(model):
            model[-1].weight.cut(nn.Shard(self.axis, self.index, 2, dim=1))
            return model

        with nn.building(part):
            return job.build_model()


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("tp", r"3.weight is Shard\(axis='tp', index=0, .*, but this rank is 1 of 2 along 'tp'"),
        ("pp", r"3.weight is Shard\(axis='pp', index=0, .*, but this rank is 0 of 1 along 'pp'"),
        ("dp", r"3.weight is Shard\(axis='dp', .*: a replica's ranks are along 'pp', 'ep', .*, not along 'dp'"),
    ],
)
def test_a_shard_is_that_of_the_ranks_place(axis, message):
    with pytest.raises(cluster.ClusterError, match=message):
        parallel.train(JOB, OtherShards(axis, 0), 2, on="simulation")


class HalfOnOneRank(OtherShards):
    def build(self, job, mesh):
        def part(model):
            if mesh.coordinates["tp"] == 0:
                return model[0], model[-1].weight.cut(nn.Shard("tp", 0, 2, dim=1)), model[-1].bias
            return model[0]

        with nn.building(part):
            return job.build_model()


def test_a_parameter_of_which_shards_are_missing_is_named():
    with pytest.raises(cluster.ClusterError, match=r"hold 1 different shards of 3.weight, which was cut into 2"):
        parallel.train(JOB, HalfOnOneRank("tp", 0), 2, on="simulation")
