"""Updates that wait for some of the workers: all of them are Synchronous, and who is late blocks nobody."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from minidl import cluster, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import BackupWorkers, EagerSGD, Synchronous
from tests.parallel import jobs
from tests.parallel.jobs import blobs, momentum_sgd, small_job, take, weights
from tests.parallel.quadratic import quadratic_job
from tests.parallel.test_strategies import Uneven
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

plain_job = partial(jobs.plain_job, batch_size=5)
SLOW = cluster.Simulation(node=cluster.Node(1e9, 1e9, speeds={0: 0.2}))  # worker 0 is five times as slow
OPTIMIZERS = {"momentum": momentum_sgd, "adam": partial(optim.Adam, lr=0.01)}
SAME = cluster.Simulation(node=cluster.Node(1e9, 1e9))
ALL = {
    "backup workers": (BackupWorkers(0), "adam", SLOW),
    "abandoning": (BackupWorkers(0, abandon=True), "momentum", SLOW),
    "eager": (EagerSGD(4), "momentum", SLOW),
    "solo": (EagerSGD("solo", coordinator=False), "momentum", SAME),  # all are ready at the same time
    "majority": (EagerSGD("majority", coordinator=False), "adam", SAME),
}


@pytest.mark.parametrize(("strategy", "optimizer", "engine"), ALL.values(), ids=ALL)
def test_waiting_for_all_equals_synchronous_on_the_minibatch_of_all(strategy, optimizer, engine):
    job = plain_job(optimizer=OPTIMIZERS[optimizer])
    truth = parallel.train(plain_job(optimizer=OPTIMIZERS[optimizer], batch_size=20), Synchronous(), 4, "simulation")
    report = parallel.train(job, strategy, 4, engine)
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    assert report.staleness == {0: 4 * 9}
    for row, true in zip(report.history, truth.history, strict=True):
        assert row["steps"] == true["steps"]
        assert row["loss"] == pytest.approx(true["loss"], rel=1e-9)


def test_a_schedule_counts_the_samples_of_the_gradients_that_are_used():
    def steps(optimizer, steps_per_epoch):
        return optim.StepLR(optimizer, step_size=steps_per_epoch, gamma=0.5)

    truth = parallel.train(plain_job(schedule=steps, batch_size=20), Synchronous(), 4, "simulation")
    for strategy in (BackupWorkers(0), BackupWorkers(0, abandon=True), EagerSGD(4)):
        report = parallel.train(plain_job(schedule=steps), strategy, 4, SLOW)
        assert np.abs(weights(report) - weights(truth)).max() < 1e-12
        assert [row["lr"] for row in report.history] == [0.05, 0.025, 0.0125]
    for strategy in (BackupWorkers(1), BackupWorkers(1, abandon=True), EagerSGD("solo")):
        report = parallel.train(plain_job(schedule=steps), strategy, 4, SLOW)
        assert report.history[-1]["lr"] == 0.1 * 0.5 ** (report.staleness.total() // 12)
        assert report.history[-1]["lr"] <= 0.0125


def test_unequal_gradients_weigh_as_their_samples():
    this = partial(plain_job, data=partial(blobs, 34), epochs=1)  # of 20 and 14: the last parts have 4, 4, 3 and 3
    truth = parallel.train(this(batch_size=20), Synchronous(), 4, "simulation")
    for strategy, *_ in ALL.values():
        report = parallel.train(this(), strategy, 4, "simulation")
        assert np.abs(weights(report) - weights(truth)).max() < 1e-12


def test_on_processes_as_well():
    truth = parallel.train(plain_job(batch_size=10, epochs=1), Synchronous(), 2, "simulation")
    report = parallel.train(plain_job(epochs=1), BackupWorkers(0, abandon=True), 2)
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    report = parallel.train(plain_job(), EagerSGD(coordinator=False), 3)
    assert len(set(report.digests)) == 1
    assert 36 <= report.staleness.total() <= 39


def test_a_slow_worker_blocks_nobody_and_its_gradients_are_dropped():
    waiting = parallel.train(plain_job(), BackupWorkers(0), 4, SLOW)
    report = parallel.train(plain_job(), BackupWorkers(1), 4, SLOW)
    assert report.seconds < 0.5 * waiting.seconds
    assert set(report.staleness) == {0}
    assert report.staleness.total() == 3 * report.history[-1]["steps"]
    (dropped,) = [ages for ages in report.recorded["dropped"] if ages]
    assert len(dropped) > 1
    assert min(dropped) >= 3  # updates have passed while it computed
    assert report.history[-1]["samples"] == 3 * 60
    assert report.accuracy > 0.5


def test_without_backups_a_gradient_is_never_dropped_and_with_them_those_used_are_counted():
    node = cluster.Simulation(node=cluster.Node(1e9, 1e9, jitter=1.0))
    report = parallel.train(plain_job(), BackupWorkers(2), 6, node)
    used = report.staleness.total()
    assert used == 4 * report.history[-1]["steps"] == 4 * 9
    computed = sum(samples for result in report.results for _, samples in result.losses) // 5
    dropped = sum(map(len, report.recorded["dropped"]))
    assert 0 < dropped <= computed - used  # the others came when the run was over


def test_a_late_gradient_counts_in_the_next_update_once():
    report = parallel.train(plain_job(), EagerSGD(3), 4, SLOW)
    assert "dropped" not in report.recorded
    assert report.staleness.total() == 3 * report.history[-1]["steps"]
    late = {age: count for age, count in report.staleness.items() if age}
    assert sum(late.values()) > 1
    computed = sum(samples for result in report.results for _, samples in result.losses) // 5
    assert computed - report.staleness.total() <= 4  # of each worker, what it sent when the run was over


@dataclass(frozen=True)
class Memoryless(EagerSGD):
    """Computing a gradient takes an exponential time of mean 1 s."""

    def run(self, session):
        take(session, session.comm.rng.exponential)
        super().run(session)


def harmonic(n):
    return sum(1 / k for k in range(1, n + 1))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("quorum", "needed", "updates", "within"), [("majority", 4, 300, 0.1), *exhaustively((7, 7, 2000, 0.05))]
)
def test_an_eager_update_takes_the_time_until_the_quorum_is_ready(quorum, needed, updates, within):
    """H_8 - H_(8-n) mean times; every gradient counts, so all eight workers compute between two updates."""
    job = quadratic_job(updates * needed, lr=0.0)
    report = parallel.train(job, Memoryless(quorum), 8, cluster.Simulation(trace="ledger"), timeout=1e6)
    assert report.history[-1]["steps"] == updates
    assert report.history[-1]["seconds"] / updates == pytest.approx(harmonic(8) - harmonic(8 - needed), rel=within)


class Constant(nn.Module):
    """A model whose outputs are its weights: the gradient of their sum is 1 everywhere."""

    def __init__(self):
        self.w = nn.Parameter(np.zeros(3))

    def forward(self, x):
        return F.add(np.zeros((len(x), 3)), self.w)


@pytest.mark.parametrize("quorum", ["solo", "majority", 3])
def test_every_gradient_counts_a_share_of_the_nodes_in_eager_updates_and_of_the_quorum_with_backups(quorum):
    job = plain_job(model=Constant, loss=lambda outputs, y: outputs.sum() * (1 / len(y)))
    report = parallel.train(job, EagerSGD(quorum), 5, SLOW)
    assert sum(count for age, count in report.staleness.items() if age) > 0
    assert report.checkpoint.model["w"] == pytest.approx(-0.1 * report.staleness.total() / 5, rel=1e-12)
    report = parallel.train(job, BackupWorkers(2), 5, SLOW)
    assert report.checkpoint.model["w"] == pytest.approx(-0.1 * report.history[-1]["steps"], rel=1e-12)


def test_the_quorum_is_half_of_the_workers_rounded_up_or_one():
    assert [EagerSGD().needed(nodes) for nodes in (1, 2, 7, 8)] == [1, 1, 4, 4]
    assert EagerSGD("solo").needed(8) == 1
    assert EagerSGD(3).needed(8) == 3


@pytest.mark.parametrize(
    "strategy",
    [BackupWorkers(1), BackupWorkers(1, abandon=True), EagerSGD(3)],
    ids=["backup workers", "abandoning", "eager"],
)
def test_training_outlives_a_worker_that_is_not_needed(strategy):
    faults = cluster.FaultPlan().kill(1, at=10)
    report = parallel.train(plain_job(), strategy, 4, SLOW, on_failure="continue", faults=faults)
    assert list(report.failures) == [1]
    losses = [row["test_loss"] for row in report.history]
    assert losses[2] < losses[1] < losses[0]


def test_without_enough_workers_the_run_ends_with_what_happened_to_the_others():
    faults = cluster.FaultPlan().kill(1, at=10).kill(2, at=10)
    with pytest.raises(cluster.RankFailed, match=r"rank [12]"):
        parallel.train(plain_job(), BackupWorkers(1), 4, SLOW, on_failure="continue", faults=faults)


def test_frozen_weights_stay_as_they_are():
    job = small_job(model=Uneven, batch_size=5)  # with momentum and weight decay
    start = job.build_model().state_dict()
    report = parallel.train(job, BackupWorkers(1), 3, "simulation")
    for name, array in report.checkpoint.model.items():
        assert (array == start[name]).all() == name.startswith("frozen")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: parallel.train(plain_job(), BackupWorkers(4), 4),
            "BackupWorkers with 4 workers: an update would wait for 0 gradients, but .* 1 to 4",
        ),
        (
            lambda: parallel.train(plain_job(), EagerSGD(5), 4),
            "EagerSGD with 4 workers: an update would wait for 5 gradients",
        ),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
