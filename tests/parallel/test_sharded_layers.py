"""A strategy that cuts layers over "tp": each weight counts once, and whole arrays are saved."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import Tensor, backward, cluster, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import Job, ParallelPlan, Serial, Strategy
from tests.parallel.jobs import blobs, decay, momentum_sgd
from tests.parallel.test_split_models import assert_same_run

pytestmark = pytest.mark.timeout(300)


class ColumnThenRow(Strategy):
    """The first linear layer is cut by its outputs, the second by its inputs, whose partial sums are all-reduced."""

    is_resumable = True

    def plan(self, job, nodes):
        return ParallelPlan(dp=nodes // 2, tp=2)

    def build(self, job, mesh):
        def part(model):
            shard = partial(nn.Shard, "tp", mesh.coordinates["tp"], 2)
            model[0].weight.cut(shard())
            model[0].bias.cut(shard())
            model[-1].weight.cut(shard(dim=1))
            return model

        with nn.building(part):
            return job.build_model()

    def partial_sum(self, session, x):
        first, *between, last = session.model
        h = F.linear(x, first.weight, first.bias)
        for layer in between:
            h = layer(h)
        return F.linear(h, last.weight)

    def run(self, session):
        comm, bias = session.mesh["tp"], session.model[-1].bias
        for batch in session.batches():
            session.model.zero_grad()
            out = self.partial_sum(session, batch.x)
            total = Tensor(comm.all_reduce(out.numpy().copy()), requires_grad=True)
            mean = session.job.loss(total + bias, batch.y)
            session.check_loss(mean)
            session.count_loss(mean, len(batch.x))
            (mean * batch.weight).backward()
            backward(out, total.grad)
            for parameter in session.parameters:  # every replica has samples: no minibatch of this job is that small
                session.mesh["dp"].all_reduce(parameter.grad)
            session.update()

    def predict(self, session, x):
        total = session.mesh["tp"].all_reduce(self.partial_sum(session, x).numpy().copy())
        return Tensor(total) + session.model[-1].bias


def two_layers():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def adam(parameters):
    vectors = [parameter for parameter in parameters if parameter.ndim < 2]
    matrices = [parameter for parameter in parameters if parameter.ndim >= 2]
    return optim.AdamW([{"params": vectors, "weight_decay": 0.0}, {"params": matrices}], lr=0.01)


JOB = Job(two_layers, partial(blobs, 60), momentum_sgd, decay, batch_size=16, epochs=3, seed=1, clip_norm=0.3)


@pytest.mark.parametrize(("optimizer", "nodes"), [(momentum_sgd, 2), (adam, 4)])
def test_cut_layers_train_to_the_numbers_of_whole_ones(optimizer, nodes):
    job = replace(JOB, optimizer=optimizer)
    truth = parallel.train(job, Serial(shards=nodes // 2), on="simulation")
    report = parallel.train(job, ColumnThenRow(), nodes, on="simulation")
    assert_same_run(report, truth)
    assert len(report.digests) == nodes // 2
    assert len(set(report.digests)) == 1
    assert report.model().state_dict().keys() == truth.checkpoint.model.keys()


@pytest.mark.parametrize("optimizer", [optim.LARS, optim.LAMB])
def test_an_optimizer_that_needs_norms_of_whole_parameters_is_refused(optimizer):
    with pytest.raises(cluster.ClusterError, match=r"needs the norm of whole parameters, .* a shard of 0.weight"):
        parallel.train(replace(JOB, optimizer=partial(optimizer, lr=0.1)), ColumnThenRow(), 2, on="simulation")


def test_shards_are_saved_whole_and_cut_again(tmp_path):
    job = replace(JOB, optimizer=adam)
    truth = parallel.train(replace(job, epochs=5), Serial(), on="simulation")
    parallel.train(job, ColumnThenRow(), 2, on="simulation", folder=tmp_path / "cut")
    saved = tmp_path / "cut" / "checkpoint.npz"
    parallel.train(replace(job, epochs=4), Serial(), on="simulation", folder=tmp_path / "one", resume=saved)
    saved = tmp_path / "one" / "checkpoint.npz"
    back = parallel.train(replace(job, epochs=5), ColumnThenRow(), 2, on="simulation", resume=saved)
    assert_same_run(back, truth, 1e-9)
    assert {np.shape(v) for v in back.checkpoint.optimizer["state"]["0.weight"].values()} <= {(8, 5), ()}


class OtherShards(ColumnThenRow):
    """Cuts the second layer's weight in a way that the ranks' places do not allow."""

    def __init__(self, axis, index):
        self.axis, self.index = axis, index

    def build(self, job, mesh):
        def part(model):
            model[-1].weight.cut(nn.Shard(self.axis, self.index, 2, dim=1))
            return model

        with nn.building(part):
            return job.build_model()


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("tp", r"2.weight is Shard\(axis='tp', index=0, .*, but this rank is 1 of 2 along 'tp'"),
        ("pp", r"2.weight is Shard\(axis='pp', index=0, .*, but this rank is 0 of 1 along 'pp'"),
        ("dp", r"2.weight is Shard\(axis='dp', .*: a replica's ranks are along 'pp', 'spatial', 'tp', not along 'dp'"),
    ],
)
def test_a_shard_is_that_of_the_ranks_place(axis, message):
    with pytest.raises(cluster.ClusterError, match=message):
        parallel.train(JOB, OtherShards(axis, 0), 2, on="simulation")


class HalfOnOneRank(ColumnThenRow):
    def build(self, job, mesh):
        def part(model):
            if mesh.coordinates["tp"] == 0:
                return model[0], model[-1].weight.cut(nn.Shard("tp", 0, 2, dim=1)), model[-1].bias
            return model[0]

        with nn.building(part):
            return job.build_model()


def test_a_parameter_of_which_shards_are_missing_is_named():
    with pytest.raises(cluster.ClusterError, match=r"hold 1 different shards of 2.weight, which was cut into 2"):
        parallel.train(JOB, HalfOnOneRank(), 2, on="simulation")
