"""Backup workers: what an update waits for where minibatches are abandoned, and where they are finished."""

import heapq
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from minidl import cluster, nn, optim, parallel
from minidl import functional as F
from minidl.data import Dataset, Splits
from minidl.parallel import BackupWorkers, Job
from minidl.random import Purpose, stream
from minidl.tensor import record
from tests.parallel.jobs import small_job, take

pytestmark = pytest.mark.timeout(300)

MODES = pytest.mark.parametrize("abandon", [True, False], ids=["abandon", "finish"])


# ---- workers whose gradients take exponential times of mean 1 ----


@dataclass(frozen=True)
class Timed(BackupWorkers):
    """Computes a gradient in the times of `times(rank)`; the coordinator records when it updates the weights."""

    def times(self, session):
        return iter(session.comm.rng.exponential, None)

    def run(self, session):
        take(session, partial(next, self.times(session)))
        super().run(session)

    def serve(self, session):
        update = session.update

        def recorded(*args, **options):
            session.record("updated", session.comm.now())
            update(*args, **options)

        session.update = recorded
        super().serve(session)


class Quadratic(nn.Module):
    """The loss is |w|^2 / 2, whatever the data: a gradient tells at which weights it was taken."""

    def __init__(self, size=3):
        self.w = nn.Parameter(np.ones(size))

    def forward(self, x):
        return (self.w * self.w).sum() * 0.5


def one_sample_each(samples):
    data = Dataset(np.zeros((samples, 1)), np.zeros(samples, int))
    return Splits(data, data, classes=("a",))


def quadratic(updates, needed, size=3):
    """Makes so many updates of `needed` gradients of one sample each."""
    return Job(
        model=partial(Quadratic, size),
        data=partial(one_sample_each, updates * needed),
        loss=lambda outputs, y: outputs,
        optimizer=partial(optim.SGD, lr=1e-3),
        batch_size=1,
        epochs=1,
        seed=3,
    )


def trained(strategy, updates, needed, engine=None, size=3, **options):
    job = quadratic(updates, needed, size)
    engine = engine or cluster.Simulation(trace="ledger")
    return parallel.train(job, strategy, needed + strategy.backups, engine, timeout=1e9, **options)


def plain_simulation(needed, workers, updates, draw, abandon):
    """When the updates are made, by a list of who is ready when; `draw(worker)` is the time of its next gradient."""
    ready = [(draw(worker), worker, 0) for worker in range(workers)]
    heapq.heapify(ready)
    updated, waiting = [], []
    while len(updated) < updates:
        now, worker, version = heapq.heappop(ready)
        if version < len(updated):  # it has finished what was no longer wanted
            heapq.heappush(ready, (now + draw(worker), worker, len(updated)))
            continue
        waiting.append(worker)
        if len(waiting) == needed:
            updated.append(now)
            beginning = range(workers) if abandon else waiting
            if abandon:
                ready.clear()
            for other in beginning:
                heapq.heappush(ready, (now + draw(other), other, len(updated)))
            waiting = []
    return np.array(updated)


@MODES
def test_every_update_is_made_when_a_plain_simulation_of_the_same_times_makes_it(abandon):
    backups = 2
    report = trained(Timed(backups, abandon=abandon), 50, 8)
    rngs = [stream(Purpose.PROGRAM, 3, rank) for rank in range(8 + backups)]
    expected = plain_simulation(8, 8 + backups, 50, lambda worker: rngs[worker].exponential(), abandon)
    np.testing.assert_allclose(report.recorded["updated"][-1], expected, rtol=1e-9)


# ---- what is used, dropped and abandoned ----


@pytest.mark.parametrize(
    ("abandon", "size"), [(True, 3), (True, 10_000), (False, 3)], ids=["eager messages", "synchronous", "finish"]
)
def test_no_gradient_of_old_weights_is_ever_applied_while_messages_cross(abandon, size):
    engine = cluster.Simulation(network=cluster.Network(alpha=0.2, beta=1e-6), trace="ledger")
    report = trained(Timed(2, abandon=abandon), 60, 4, engine, size)
    assert report.checkpoint.model["w"] == pytest.approx(np.full(size, (1 - 1e-3) ** 60), rel=1e-12)
    assert report.staleness == {0: 4 * 60}
    assert report.recorded["dropped"][-1]  # a gradient was on its way when the weights that it belongs to were gone
    assert ("abandoned" in report.recorded) == abandon
    assert report.history[-1]["steps"] == 60


def test_arithmetic_that_the_kernels_count_is_abandoned_too():
    job = small_job(optimizer=partial(optim.SGD, lr=0.1), schedule=None, batch_size=5)
    engine = cluster.Simulation(node=cluster.Node(1e9, 1e9, speeds={0: 0.01}))
    alone = cluster.Simulation(node=cluster.Node(1e9, 1e9))
    full = parallel.train(job, BackupWorkers(0), 3, alone)
    report = parallel.train(job, BackupWorkers(1, abandon=True), 4, engine)
    finishing = parallel.train(job, BackupWorkers(1), 4, engine)
    assert report.seconds < 1.3 * full.seconds < finishing.seconds  # whose slow worker ends long after the others
    assert report.staleness == {0: 3 * report.history[-1]["steps"]}
    assert sum(samples for _, samples in report.results[0].losses) == 0  # no forward pass of worker 0 has ended
    events = [event for event in report.trace.events if event.rank == 0]
    assert all(event.start <= event.end for event in events)
    assert report.accuracy > 0.5


def test_the_samples_of_an_epoch_are_those_of_the_gradients_that_are_used():
    report = trained(Timed(2, abandon=True), 60, 4)
    computed = sum(samples for result in report.results for _, samples in result.losses)
    assert report.history[-1]["samples"] == 4 * 60 == report.staleness.total() == computed
    assert report.recorded["abandoned"][-1] == [1] * (2 * 59)  # the run was over at the last update


# ---- processes ----


@dataclass(frozen=True)
class Sleeping(BackupWorkers):
    """Worker 0 sleeps for hours over each gradient."""

    def run(self, session):
        take(session, lambda: 1e4 * (session.comm.rank == 0))
        super().run(session)


def test_a_run_on_processes_ends_while_a_worker_would_sleep_for_hours():
    report = parallel.train(quadratic(20, 2), Sleeping(1, abandon=True), 3, "processes")
    assert report.staleness == {0: 2 * 20}
    assert report.checkpoint.model["w"] == pytest.approx(np.full(3, (1 - 1e-3) ** 20), rel=1e-12)


class Watched(nn.Module):
    """Two layers; backward calls `before_upper`, then `before_lower`, each before it goes through that layer."""

    def __init__(self):
        self.lower_layer, self.upper_layer = nn.Linear(1, 2).double(), nn.Linear(2, 1).double()
        self.before_lower = self.before_upper = lambda: None

    def forward(self, x):
        hidden = self._called(self.lower_layer(x), lambda: self.before_lower())
        return self._called(self.upper_layer(hidden), lambda: self.before_upper()).sum()

    @staticmethod
    def _called(x, function):
        def vjp(g, needs):
            function()
            return (g,)

        return record(F.reshape(x, x.shape).data.copy(), (x,), vjp)


@dataclass(frozen=True)
class Watching(BackupWorkers):
    """In its first minibatch, worker 0 waits before backward until worker 1 has left, so that new weights are there."""

    def run(self, session):
        comm, model = session.comm, session.model
        seen = comm.shared_array("seen", 3, np.int64)  # worker 1 has left, backwards begun, lower layers reached
        if comm.rank == 1:
            while not seen[1]:  # it does not finish before worker 0 has begun
                time.sleep(0.001)
            super().run(session)
            seen[0] = 1
            return

        def wait():
            seen[1] += 1
            while not seen[0]:
                time.sleep(0.001)

        def reached():
            seen[2] += seen[1] == 1

        model.before_upper, model.before_lower = wait, reached
        super().run(session)
        session.record("seen", seen.tolist())


def test_on_processes_backward_ends_between_two_layers():
    job = Job(
        model=Watched,
        data=partial(one_sample_each, 10),
        loss=lambda outputs, y: outputs,
        optimizer=partial(optim.SGD, lr=1e-3),
        batch_size=1,
        epochs=1,
    )
    report = parallel.train(job, Watching(1, abandon=True), 2)
    ((left, backwards, lower),) = report.recorded["seen"][0]
    assert left == 1
    assert backwards >= 1
    assert lower == 0
