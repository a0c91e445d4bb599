"""Parameter servers: one worker is Serial, several are stale, a bound keeps them together."""

from functools import partial

import numpy as np
import pytest

from minidl import cluster, optim, parallel
from minidl.parallel import ParameterServer
from tests.parallel.jobs import small_job

pytestmark = pytest.mark.timeout(60)

ENGINES = ["simulation", "processes"]


def weights(report):
    return np.concatenate([array.reshape(-1) for array in report.checkpoint.model.values()])


def plain_job(lr=0.05, **changes):
    return small_job(**({"optimizer": partial(optim.SGD, lr=lr), "schedule": None, "batch_size": 5} | changes))


@pytest.mark.parametrize("on", ENGINES)
@pytest.mark.parametrize("servers", [1, 3])
def test_one_worker_equals_serial_to_the_bit_however_many_servers(on, servers):
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), ParameterServer(servers), on=on)
    assert (weights(report) == weights(truth)).all()
    assert report.staleness == {0: 12}
    for row, true in zip(report.history, truth.history, strict=True):
        for column in ("steps", "samples", "lr", "loss", "test_loss", "accuracy"):
            assert row[column] == pytest.approx(true[column], rel=1e-12), column


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("servers", [1, 2])
def test_equal_workers_take_turns_so_that_every_gradient_is_as_many_updates_old_as_there_are_others(workers, servers):
    node = cluster.Node(1e9, 1e9)
    report = parallel.train(plain_job(batch_size=2), ParameterServer(servers), workers, cluster.Simulation(node=node))
    ages = report.recorded["staleness"][workers]
    assert ages[:workers] == list(range(workers))  # they all began with the first weights
    assert set(ages[workers:]) == {workers - 1}
    assert len(ages) == report.history[-1]["steps"] >= 3 * 30


def test_staleness_zero_equals_synchronous_on_a_minibatch_and_a_rate_as_many_times_as_large_as_there_are_workers():
    truth = parallel.train(plain_job(lr=0.2, batch_size=20), parallel.Synchronous(), nodes=4, on="simulation")
    for servers in (1, 2):
        report = parallel.train(plain_job(), ParameterServer(servers, staleness=0), nodes=4, on="simulation")
        assert np.abs(weights(report) - weights(truth)).max() < 1e-14
        assert set(report.recorded["lead"][4]) == {0}
    asynchronous = parallel.train(plain_job(), ParameterServer(), nodes=4, on="simulation")
    assert np.abs(weights(asynchronous) - weights(truth)).max() > 1e-3


def test_on_processes_staleness_zero_is_in_step_too():
    truth = parallel.train(plain_job(lr=0.1, batch_size=10), parallel.Synchronous(), nodes=2, on="simulation")
    report = parallel.train(plain_job(), ParameterServer(servers=2, staleness=0), nodes=2)
    assert np.abs(weights(report) - weights(truth)).max() < 1e-14


class InWorkerOrder(parallel.Strategy):
    """Bulk synchronous, on one node: every worker's gradient of the same weights, then one update after the other."""

    def __init__(self, workers):
        self.workers = workers

    def run(self, session):
        for batch in session.batches():
            gradients = []
            for worker in range(self.workers):
                session.model.zero_grad()
                part = type(batch)(batch.x[worker :: self.workers], batch.y[worker :: self.workers], 0)
                session.local_loss(part).backward()
                gradients.append(session.gradient())
            for gradient in gradients:
                session.set_gradient(gradient)
                session.optimizer.step()


def test_staleness_zero_equals_a_loop_over_the_workers_to_the_bit_with_momentum_too():
    optimizer = partial(optim.SGD, lr=0.02, momentum=0.9, weight_decay=1e-3)
    truth = parallel.train(plain_job(optimizer=optimizer, batch_size=20), InWorkerOrder(4), on="simulation")
    node = cluster.Simulation(node=cluster.Node(1e9, 1e9))
    report = parallel.train(plain_job(optimizer=optimizer), ParameterServer(staleness=0), nodes=4, on=node)
    assert (weights(report) == weights(truth)).all()


@pytest.mark.parametrize("bound", [0, 1, 3])
@pytest.mark.parametrize("servers", [1, 3])
def test_nobody_begins_a_clock_more_than_the_bound_ahead_and_a_fast_one_gets_as_far(bound, servers):
    node = cluster.Node(1e9, 1e9, jitter=0.3, speeds={1: 0.2})
    strategy = ParameterServer(servers, staleness=bound)
    report = parallel.train(plain_job(epochs=5), strategy, 3, cluster.Simulation(node=node))
    for server in range(3, 3 + servers):
        assert max(report.recorded["lead"][server]) == bound
    unbounded = parallel.train(plain_job(epochs=5), ParameterServer(servers), 3, cluster.Simulation(node=node))
    assert max(unbounded.recorded["lead"][3]) > 5


class Counting(ParameterServer):
    """Each gradient is a unit vector of its worker: the weights then count what each worker has pushed."""

    def run(self, session):
        first, clock = session.weights(), 0

        def gradient():
            nonlocal clock
            counts = (first - session.weights()).round()
            session.record("seen", (clock, counts[: session.nodes].min()))
            clock += 1
            return np.eye(len(first))[session.comm.rank]

        session.gradient = gradient
        super().run(session)


@pytest.mark.parametrize("bound", [0, 2])
def test_who_begins_clock_c_sees_all_updates_of_the_clocks_before_c_minus_the_bound(bound):
    node = cluster.Node(1e9, 1e9, jitter=0.5, speeds={0: 0.4})
    report = parallel.train(plain_job(lr=1.0), Counting(2, staleness=bound), 3, cluster.Simulation(node=node))
    seen = [pair for pairs in report.recorded["seen"] for pair in pairs]
    assert len(seen) >= 36
    assert all(fewest >= clock - bound for clock, fewest in seen)
    assert any(fewest == clock - bound for clock, fewest in seen)
