"""Workers that a pipeline, divided layers or tiles split: one is Serial, several are as many whole workers."""

from dataclasses import replace

import numpy as np
import pytest

from minidl import cluster, nn, parallel
from minidl.data import Dataset, Splits
from minidl.nn import models
from minidl.parallel import (
    BackupWorkers,
    Downpour,
    EagerSGD,
    Hybrid,
    ParameterServer,
    Pipeline,
    Serial,
    StalenessAwareSGD,
    Synchronous,
)
from tests.parallel.jobs import assert_same_run, plain_job, small_job, two_groups, weights
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

SPEEDS = 1.0, 0.83, 0.61  # of the workers, so that no two of them push at the same time


def mlp() -> nn.Module:
    return models.MLP(5, 8, 6, 12, 3).double()


def gpt() -> nn.Module:
    return models.GPT(vocab_size=12, block_size=6, n_layer=2, n_head=2, n_embd=8, dropout=0.2).double()


def texts() -> Splits:
    tokens = np.random.default_rng(3).integers(12, size=(46, 7))
    x, y = tokens[:, :-1], tokens[:, 1:]
    return Splits(Dataset(x[:36], y[:36]), Dataset(x[36:], y[36:]))


def images(n: int = 30) -> Splits:
    y = np.arange(n + 9) % 3
    x = np.random.default_rng(5).normal(size=(n + 9, 1, 9, 8)) + y[:, None, None, None]
    return Splits(Dataset(x[:n], y[:n]), Dataset(x[n:], y[n:]), classes=("a", "b", "c"))


def convolutions() -> nn.Module:
    """With batch norm, whose running statistics are those of the first worker."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
    ).double()


JOBS = {
    "mlp": small_job(model=mlp, batch_size=7, epochs=2, clip_norm=0.7),
    "gpt": small_job(model=gpt, data=texts, optimizer=two_groups, batch_size=6, epochs=1, clip_norm=0.4),
    "images": small_job(model=convolutions, data=images, batch_size=7, epochs=2),
}
OF_EQUAL_MINIBATCHES = {
    "mlp": replace(JOBS["mlp"], batch_size=5),
    "gpt": replace(JOBS["gpt"], epochs=3),
    "images": replace(JOBS["images"], batch_size=5),
}
"""Each of three workers has minibatches of one size, which take one time."""


@pytest.mark.parametrize(
    ("name", "strategy", "nodes"),
    [
        ("mlp", ParameterServer(3, replica=Pipeline(stages=2, micro_batches=4, schedule="interleaved")), 2),
        ("gpt", ParameterServer(2, replica=Hybrid(pp=2, tp=2, sequence=True, micro_batches=3)), 4),
        ("images", Downpour(2, replica=Hybrid(spatial=2, pp=2, micro_batches=3)), 4),
        *exhaustively(
            ("mlp", BackupWorkers(0, replica=Pipeline(stages=4, micro_batches=3, schedule="zb-h1")), 4),
            ("gpt", StalenessAwareSGD(replica=Hybrid(pp=3, micro_batches=3, recompute="full")), 3),
            ("gpt", ParameterServer(2, replica=Hybrid(tp=2, micro_batches=3, recompute="selective")), 2),
        ),
    ],
)
def test_one_worker_of_several_ranks_is_serial(name, strategy, nodes):
    report = parallel.train(JOBS[name], strategy, nodes, "simulation")
    micro_batches = strategy.plan(JOBS[name], nodes).micro_batches
    truth = parallel.train(JOBS[name], Serial(micro_batches=micro_batches), 1, "simulation")
    assert_same_run(report, truth)
    assert list(report.checkpoint.model) == list(truth.checkpoint.model)
    assert report.staleness.keys() == {0}


def first_update(job, strategy, nodes):
    """Seconds until the first update, by nodes of speed 1."""
    return updates(parallel.train(job, strategy, nodes, simulated([1.0] * nodes, strategy)))[0][0][1]


def simulated(speeds, strategy):
    """Nodes of these speeds, servers of speed 1, and messages that take no time."""
    return cluster.Simulation(node=cluster.Node(1e9, 1e15, speeds=[*speeds, *[1.0] * strategy.servers]))


def updates(report):
    """For each server, the worker whose gradient and the time at which each update begins."""
    plan = report.strategy.plan(report.job, report.nodes)
    found = []
    for server in range(report.nodes, report.nodes + report.strategy.servers):
        mine, sender = [], -1
        for event in report.trace.events:
            if event.rank == server and event.kind == "receive":
                sender = event.peer
            elif event.rank == server and event.label == "update":
                mine.append((plan.coordinates(sender)["dp"], event.start))
        found.append(mine)
    return found


@pytest.mark.parametrize(
    ("strategy", "split", "name"),
    [
        (ParameterServer(3), Hybrid(pp=2, micro_batches=1), "mlp"),
        (ParameterServer(staleness=1), Hybrid(pp=2, tp=2, micro_batches=3, axes=("pp", "dp", "tp")), "mlp"),
        *exhaustively(
            (StalenessAwareSGD(2), Hybrid(tp=2), "mlp"),
            (Downpour(2, push_every=2, fetch_every=3), Pipeline(stages=4, micro_batches=5), "mlp"),
            (EagerSGD("solo"), Hybrid(pp=2, tp=2, micro_batches=2), "mlp"),
            (ParameterServer(2, staleness=2), Hybrid(spatial=2), "images"),
            (ParameterServer(2), Hybrid(tp=2, sequence=True), "gpt"),
        ),
    ],
)
def test_several_split_workers_make_the_updates_of_as_many_whole_ones_event_for_event(strategy, split, name):
    """Where messages take no time and a worker takes as long as a whole one."""
    job, split = OF_EQUAL_MINIBATCHES[name], replace(strategy, replica=split)
    whole = replace(strategy, replica=Hybrid(micro_batches=split.replica.made_schedule().micro_batches))
    ranks = split.plan(job, 12).ranks_of_replica
    ratio = first_update(job, whole, 1) / first_update(job, split, ranks)
    plan = split.plan(job, 3 * ranks)
    of_ranks = [SPEEDS[plan.coordinates(rank)["dp"]] for rank in range(plan.world)]
    report = parallel.train(job, split, plan.world, simulated(of_ranks, strategy))
    truth = parallel.train(job, whole, 3, simulated([speed * ratio for speed in SPEEDS], strategy))
    for mine, theirs in zip(updates(report), updates(truth), strict=True):
        assert [worker for worker, _ in mine] == [worker for worker, _ in theirs]
        np.testing.assert_allclose([at for _, at in mine], [at for _, at in theirs], rtol=1e-9)
    for recorded in ("staleness", "lead"):
        assert report.recorded.get(recorded, [])[plan.world :] == truth.recorded.get(recorded, [])[3:]
    assert max(report.staleness) > 0
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10


@pytest.mark.timeout(300)
@pytest.mark.parametrize("servers", [1, *exhaustively(2)])
def test_pipelines_around_servers_on_processes_train_as_whole_workers(servers):
    """With one server, two pipelines of two stages are five processes."""
    job = plain_job(model=mlp, batch_size=5, epochs=2)  # plain SGD: in step, the order of the pushes does not matter
    split, whole = (ParameterServer(servers, staleness=0, replica=Hybrid(pp=pp, micro_batches=2)) for pp in (2, 1))
    report = parallel.train(job, split, 4, "processes", deadline=150)
    truth = parallel.train(job, whole, 2, "simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    assert report.history[-1]["steps"] == truth.history[-1]["steps"]


@pytest.mark.parametrize("at", [("all_reduce", 3), *exhaustively((("recv", 4),), (("isend", 6),))])
def test_when_a_rank_dies_within_a_gradient_its_worker_leaves_and_the_others_finish(at):
    job, faults = plain_job(model=mlp, batch_size=5, epochs=2), cluster.FaultPlan().kill(3, at=at)
    strategy = ParameterServer(2, replica=Hybrid(pp=2, tp=2, micro_batches=2))
    report = parallel.train(job, strategy, 12, "simulation", on_failure="continue", faults=faults)
    assert set(report.failures) == {0, 1, 2, 3}
    assert report.history[-1]["samples"] == 120


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hybrid(dp=2, pp=2), r"as many workers as the nodes suffice for: leave out dp=2"),
        (lambda: Pipeline(replicas=2), r"as many workers as the nodes suffice for: leave out replicas=2"),
        (lambda: Hybrid(pp=2, shard=3), r"workers have nothing to share out: leave out shard=3"),
        (lambda: Pipeline(schedule="pipedream"), r"schedule='pipedream' each stage updates .*: choose another"),
        (Synchronous, r"which Synchronous does not: give a strategy that splits it, such as Hybrid\(pp=2\)"),
        (ParameterServer, r"which ParameterServer does not"),
    ],
)
def test_what_cannot_be_a_worker_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=rf"^Downpour: replica.*{message}"):
        Downpour(replica=make())


def test_a_minibatch_is_that_of_one_worker():
    replica = Hybrid(pp=2, micro_batches=6)
    with pytest.raises(ValueError, match=r"5 samples, cannot be cut into 6 micro-batches: use at most 5"):
        parallel.train(plain_job(model=mlp, batch_size=5), ParameterServer(replica=replica), 4, "simulation")
    with pytest.raises(
        TypeError, match=r"ParameterServer: replica must be a Strategy, such as parallel.Hybrid\(pp=2\), got 'hybrid'"
    ):
        ParameterServer(replica="hybrid")
    whole = mlp()
    with pytest.raises(ValueError, match="give Job a function that makes the model"):
        parallel.train(plain_job(model=whole), ParameterServer(replica=replica), 4, "simulation")
