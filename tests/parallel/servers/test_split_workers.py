"""A worker is a replica: two ranks that hold half of the model each train as a worker of one rank does."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import cluster, nn, optim, parallel
from minidl.parallel import (
    BackupWorkers,
    Downpour,
    EagerSGD,
    ElasticAveraging,
    LockedParameterServer,
    ParallelPlan,
    ParameterServer,
)
from tests.parallel.jobs import small_job, two_groups
from tests.parallel.test_split_models import JOBS
from tests.parallel.two_stages import TwoStages

pytestmark = pytest.mark.timeout(300)


def in_two_stages(strategy):
    """The same strategy, each of whose workers is two ranks."""
    return replace(strategy, replica=TwoStages())


def mlp():
    return nn.models.MLP(5, 8, 8, 3).double()


def job(**changes):
    return small_job(**({"model": mlp, "batch_size": 5} | changes))


def assert_same(report, truth, tolerance=0.0):
    for name, array in truth.checkpoint.model.items():
        assert np.abs(report.checkpoint.model[name] - array).max() <= tolerance, name


STRATEGIES = {
    "one server": ParameterServer(staleness=0),
    "three servers": ParameterServer(3, staleness=0),
    "seldom": Downpour(2, push_every=2, fetch_every=2),
    "backup workers": BackupWorkers(0),
    "eager": EagerSGD(1),
    "elastic": ElasticAveraging(variant="round_robin"),
    "elastic in order of arrival": ElasticAveraging(period=2),
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_one_worker_of_two_ranks_trains_to_the_bits_of_one_of_one_rank(strategy):
    truth = parallel.train(job(), strategy, 1, "simulation")
    report = parallel.train(job(), in_two_stages(strategy), 2, "simulation")
    assert_same(report, truth)
    assert report.staleness == truth.staleness
    for row, true in zip(report.history, truth.history, strict=True):
        assert [row[name] for name in ("accuracy", "lr", "steps", "samples")] == [
            true[name] for name in ("accuracy", "lr", "steps", "samples")
        ]
        assert row["loss"] == pytest.approx(true["loss"], rel=1e-14)


def test_two_workers_of_two_ranks_train_to_the_numbers_of_two_of_one_rank():
    strategy = BackupWorkers(0)
    plain = job(optimizer=partial(optim.SGD, lr=0.05), schedule=None)  # for which the order in a clock does not matter
    truth = parallel.train(plain, strategy, 2, "simulation")
    report = parallel.train(plain, in_two_stages(strategy), 4, "simulation")
    assert_same(report, truth, 1e-12)
    assert report.history[-1]["steps"] == truth.history[-1]["steps"]


def test_staleness_counts_workers():
    node = cluster.Simulation(node=cluster.Node(1e9, 1e9))
    report = parallel.train(job(batch_size=2), in_two_stages(ParameterServer(2)), 6, node)
    ages = report.recorded["staleness"][6]
    assert ages[:3] == [0, 1, 2]
    assert set(ages[3:-3]) == {2}


def test_a_tied_weight_is_pushed_once_and_clipping_counts_every_weight_once():
    tied = replace(JOBS["tied GPT"], epochs=1)
    truth = parallel.train(tied, ParameterServer(2), 1, "simulation")
    report = parallel.train(tied, in_two_stages(ParameterServer(2)), 2, "simulation")
    assert_same(report, truth, 1e-10)


@pytest.mark.parametrize(
    ("settings", "rank", "at"),
    [
        ({}, 2, ("recv", 9)),
        ({}, 3, ("isend", 5)),
        ({"staleness": 0}, 2, ("isend", 6)),
        ({"staleness": 0}, 3, ("send", 2)),
    ],
)
def test_when_one_rank_dies_its_worker_leaves_and_the_others_finish(settings, rank, at):
    faults = cluster.FaultPlan().kill(rank, at=at)
    strategy = in_two_stages(ParameterServer(2, **settings))
    report = parallel.train(job(), strategy, 6, "simulation", on_failure="continue", faults=faults)
    assert set(report.failures) == {2, 3}
    assert report.history[-1]["samples"] == 180
    assert report.accuracy > 0.5


def test_a_quorum_goes_on_without_the_worker_that_has_lost_a_rank():
    faults = cluster.FaultPlan().kill(3, at=("recv", 9))
    report = parallel.train(
        job(), in_two_stages(BackupWorkers(1)), 6, "simulation", on_failure="continue", faults=faults
    )
    assert set(report.failures) == {2, 3}
    assert report.history[-1]["samples"] >= 175


@pytest.mark.parametrize(
    "strategy",
    [
        BackupWorkers(abandon=True),
        EagerSGD(coordinator=False),
        LockedParameterServer(),
        ElasticAveraging(variant="synchronous"),
    ],
    ids=str,
)
def test_where_a_worker_must_be_one_rank_a_split_is_refused(strategy):
    with pytest.raises(ValueError, match=r"a worker must be one rank .* with pp=2 is 2 ranks: leave out replica"):
        parallel.train(job(), in_two_stages(strategy), 4, "simulation")


def test_groups_of_parameters_keep_their_options_on_workers_of_two_ranks():
    servers = 3
    grouped = job(optimizer=two_groups)
    truth = parallel.train(grouped, on="simulation")
    report = parallel.train(grouped, in_two_stages(ParameterServer(servers)), 2, "simulation")
    assert_same(report, truth, 1e-10)


class SlicedColumns(parallel.Strategy):
    """Each rank of a worker computes the whole gradient, and holds half of the first layer's rows."""

    def plan(self, job, nodes):
        return ParallelPlan(dp=nodes // 2, tp=2)

    def build(self, job, mesh):
        model = job.build_model()
        shard = nn.Shard("tp", mesh.coordinates["tp"], 2)
        model[0].weight.cut(shard)
        model[0].bias.cut(shard)
        return model

    def backpropagation(self, session):
        return partial(self.forward_and_backward, session)

    def forward_and_backward(self, session, batch):
        group, own = session.mesh["tp"], session.model[0]
        whole = session.job.build_model()
        for mine, theirs in zip(session.model.parameters(), whole.parameters(), strict=True):
            values = mine.numpy()
            theirs.copy_(values if mine.shard is None else mine.shard.join(group.all_gather(values)))
        outputs = whole(batch.x)
        mean = session.mean_loss(outputs, batch) if group.rank == 0 else session.job.loss(outputs, batch.y)
        mean.backward()
        for mine, theirs in zip(session.model.parameters(), whole.parameters(), strict=True):
            mine.grad = theirs.grad if mine.shard is None else mine.shard.cut(theirs.grad)
        assert own.weight.grad.shape == (4, 5)


def test_tensor_shards_and_replicated_parameters_train_to_the_bits_of_the_whole():
    whole = small_job(batch_size=5)
    truth = parallel.train(whole, ParameterServer(3), 1, "simulation")
    report = parallel.train(whole, ParameterServer(3, replica=SlicedColumns()), 2, "simulation")
    assert_same(report, truth)
    assert report.history[-1]["loss"] == pytest.approx(truth.history[-1]["loss"], rel=1e-14)
