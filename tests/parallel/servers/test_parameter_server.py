"""Parameter servers: one worker is Serial, several are stale, a bound keeps them together."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from minidl import cluster, nn, optim, parallel
from minidl.cluster.engines.payload import encode
from minidl.parallel import Downpour, LockedParameterServer, ParameterServer, StalenessAwareSGD
from tests.parallel import jobs
from tests.parallel.jobs import assert_same_run, small_job, two_groups, two_layers, weights

pytestmark = pytest.mark.timeout(300)

plain_job = partial(jobs.plain_job, lr=0.05, batch_size=5)


@pytest.mark.parametrize(("servers", "on"), [(1, "simulation"), (3, "simulation"), (3, "processes")])
def test_one_worker_equals_serial_to_the_bit_however_many_servers(servers, on):
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), ParameterServer(servers), on=on)
    assert (weights(report) == weights(truth)).all()
    assert report.staleness == {0: 12}
    assert_same_run(report, truth, 1e-12)


@pytest.mark.parametrize(("workers", "servers"), [(2, 1), (5, 2)])
def test_equal_workers_take_turns_so_that_every_gradient_is_as_many_updates_old_as_there_are_others(workers, servers):
    node = cluster.Node(1e9, 1e9)
    report = parallel.train(plain_job(batch_size=2), ParameterServer(servers), workers, cluster.Simulation(node=node))
    ages = report.recorded["staleness"][workers]
    assert ages[:workers] == list(range(workers))  # they all began with the first weights
    assert set(ages[workers:]) == {workers - 1}
    assert len(ages) == report.history[-1]["steps"] >= 3 * 30


@dataclass(frozen=True)
class Late(ParameterServer):
    """Worker 0 begins so much later than the others."""

    seconds: float = 0.0

    def run(self, session):
        if session.comm.rank == 0:
            session.comm.compute(seconds=self.seconds)
        super().run(session)


def test_staleness_zero_equals_synchronous_on_a_minibatch_and_a_rate_as_many_times_as_large_as_there_are_workers():
    truth = parallel.train(plain_job(lr=0.2, batch_size=20), parallel.Synchronous(), nodes=4, on="simulation")
    for servers in (1, 2):
        strategy = Late(servers, staleness=0, seconds=9.0)  # nobody updates before it has the first weights
        report = parallel.train(plain_job(), strategy, nodes=4, on="simulation")
        assert np.abs(weights(report) - weights(truth)).max() < 1e-14
        assert set(report.recorded["lead"][4]) == {0}
    asynchronous = parallel.train(plain_job(), ParameterServer(), nodes=4, on="simulation")
    assert np.abs(weights(asynchronous) - weights(truth)).max() > 1e-3


def very_wide():
    """Half of it is more than what is sent eagerly."""
    return nn.models.MLP(5, 2000, 3).double()


def test_on_processes_staleness_zero_is_in_step_too():
    synchronous = plain_job(lr=0.1, batch_size=10, model=very_wide)
    truth = parallel.train(synchronous, parallel.Synchronous(), nodes=2, on="simulation")
    report = parallel.train(plain_job(model=very_wide), ParameterServer(servers=2, staleness=0), nodes=2)
    assert np.abs(weights(report) - weights(truth)).max() < 1e-14


@pytest.mark.parametrize(("bound", "servers"), [(0, 1), (1, 3), (3, 3)])
def test_nobody_begins_a_clock_more_than_the_bound_ahead_and_a_fast_one_gets_as_far(bound, servers):
    node = cluster.Node(1e9, 1e9, jitter=0.3, speeds={1: 0.2})
    strategy = ParameterServer(servers, staleness=bound)
    report = parallel.train(plain_job(epochs=5), strategy, 3, cluster.Simulation(node=node))
    for server in range(3, 3 + servers):
        assert max(report.recorded["lead"][server]) == bound
    unbounded = parallel.train(plain_job(epochs=5), ParameterServer(servers), 3, cluster.Simulation(node=node))
    assert max(unbounded.recorded["lead"][3]) > 5


class UnitGradients:
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


class Counting(UnitGradients, ParameterServer):
    pass


class SeldomCounting(UnitGradients, Downpour):
    pass


class AwareCounting(UnitGradients, StalenessAwareSGD):
    pass


@pytest.mark.parametrize("bound", [0, 2])
def test_who_begins_clock_c_sees_all_updates_of_the_clocks_before_c_minus_the_bound(bound):
    node = cluster.Node(1e9, 1e9, jitter=0.5, speeds={0: 0.4})
    report = parallel.train(plain_job(lr=1.0), Counting(2, staleness=bound), 3, cluster.Simulation(node=node))
    seen = [pair for pairs in report.recorded["seen"] for pair in pairs]
    assert len(seen) >= 36
    assert all(fewest >= clock - bound for clock, fewest in seen)
    assert any(fewest == clock - bound for clock, fewest in seen)


@pytest.mark.parametrize("settings", [{"fetch_every": 3}, {"fetch_every": 3, "push_every": 3}], ids=str)
def test_one_worker_that_steps_its_own_copy_between_fetches_equals_serial(settings):
    """With plain SGD its copy is what the server has, or will have with the next push."""
    truth = parallel.train(plain_job(), on="simulation")
    report = parallel.train(plain_job(), Downpour(servers=2, **settings), on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-14
    assert report.history[-1]["steps"] == 36 / settings.get("push_every", 1)


def test_pushes_are_the_sums_of_what_has_been_accumulated():
    once = parallel.train(plain_job(lr=1.0), Counting(), nodes=2, on="simulation")
    summed = parallel.train(plain_job(lr=1.0), SeldomCounting(push_every=3), nodes=2, on="simulation")
    assert summed.history[-1]["steps"] == once.history[-1]["steps"] / 3
    assert np.abs(weights(summed) - weights(once)).max() < 1e-12  # as many gradients, each a unit vector


def test_the_rate_is_divided_by_the_staleness():
    node = cluster.Node(1e9, 1e9, jitter=0.5)
    job = plain_job(lr=0.5)
    report = parallel.train(job, AwareCounting(), 3, cluster.Simulation(node=node))
    first = np.concatenate([parameter.numpy().reshape(-1) for parameter in job.build_model().parameters()])
    moved = sum(first - weights(report))
    assert moved == pytest.approx(sum(0.5 * many / max(1, age) for age, many in report.staleness.items()))
    assert len(report.staleness) > 3
    assert report.history[-1]["lr"] == 0.5


def test_a_warm_start_is_made_by_one_worker_alone():
    node = cluster.Node(1e9, 1e9, speeds={0: 0.5})
    report = parallel.train(plain_job(), Downpour(warm_start=7), 3, cluster.Simulation(node=node))
    ages = report.recorded["staleness"][3]
    assert ages[:7] == [0] * 7
    assert max(ages[7:14]) >= 2
    bounded = parallel.train(plain_job(), Downpour(warm_start=7, staleness=0), 3, cluster.Simulation(node=node))
    assert bounded.recorded["staleness"][3][:7] == [0] * 7
    assert set(bounded.recorded["lead"][3]) == {0}  # these updates put it ahead of nobody


@pytest.mark.parametrize(
    ("on", "strategy"),
    [
        ("simulation", ParameterServer(servers=2, staleness=1)),
        ("simulation", Downpour(servers=2, fetch_every=2, push_every=3)),
        ("processes", LockedParameterServer(servers=2)),
    ],
)
def test_in_the_end_every_message_has_been_received(on, strategy):
    ledger = parallel.train(plain_job(), strategy, 3, on).trace.ledger()
    traffic = [entry for rank in ledger for entry in rank.values()]
    assert sum(entry.messages for entry in traffic) == sum(entry.messages_received for entry in traffic) > 0
    assert sum(entry.nbytes for entry in traffic) == sum(entry.nbytes_received for entry in traffic)


def test_a_worker_that_makes_more_passes_than_there_are_epochs_keeps_to_the_last_batch_size():
    node = cluster.Node(1e9, 1e9, speeds={0: 0.01})
    job = plain_job(batch_schedule=lambda epoch: [2, 3, 5][epoch])
    report = parallel.train(job, ParameterServer(), 2, cluster.Simulation(node=node))
    slow, fast = (len(result.losses) for result in report.results[:2])
    assert slow < 3 < fast
    assert report.history[-1]["samples"] == 180


def wire_bytes(*fields):
    return encode(fields)[3]


@pytest.mark.parametrize("servers", [1, 3])
def test_gradients_a_second_are_bounded_by_the_servers_port(servers):
    """A server's port takes alpha + n beta a gradient; workers that compute in no time keep it busy."""
    alpha, beta, size = 1e-5, 1e-7, 75
    piece = np.zeros(-(-size // servers))
    time_in = alpha + beta * wire_bytes(5, piece, True)
    time_out = alpha + beta * wire_bytes(False, 0.05, piece)
    engine = cluster.Simulation(cluster.Network(alpha, beta), cluster.Node(float("inf"), float("inf")))
    job = plain_job(epochs=10)

    def seconds_a_gradient(workers):
        rows = parallel.train(job, ParameterServer(servers), workers, engine).history
        return (rows[-1]["seconds"] - rows[1]["seconds"]) / (8 * 12)

    if servers == 1:
        assert seconds_a_gradient(1) == pytest.approx(time_in + time_out, rel=1e-3)
    assert seconds_a_gradient(12) == pytest.approx(max(time_in, time_out), rel=0.02)


@pytest.mark.parametrize(
    ("servers", "optimizer"), [(1, partial(optim.LARS, lr=0.1)), (1, partial(optim.LAMB, lr=0.1)), (5, two_groups)]
)
def test_one_worker_with_groups_and_norms_of_parameters_equals_serial(servers, optimizer):
    job = small_job(optimizer=optimizer, clip_norm=0.5)
    truth = parallel.train(job, on="simulation")
    report = parallel.train(job, ParameterServer(servers), on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10


def partly_frozen():
    model = two_layers()
    model[0].weight.requires_grad = False
    return model


def test_frozen_weights_are_neither_sent_nor_updated():
    servers = 2
    job = small_job(model=partly_frozen)  # with momentum and weight decay
    truth = parallel.train(job, on="simulation")
    report = parallel.train(job, ParameterServer(servers), on="simulation")
    assert (weights(report) == weights(truth)).all()
    several = parallel.train(job, ParameterServer(servers), 3, on="simulation")
    first = job.build_model().state_dict()
    for name, array in several.checkpoint.model.items():
        assert (array == first[name]).all() == (name == "0.weight")
    all_trained = parallel.train(small_job(), ParameterServer(servers), on="simulation")
    per_request = 2 * 40 * 8  # to the servers and back, 40 weights less of 8 bytes; no push at first, no fetch at last
    sent = [sum(result.bytes_sent for result in run.results) for run in (all_trained, report)]
    assert sent[0] - sent[1] == pytest.approx(12.5 * per_request, rel=0.1)


def test_a_setting_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="a worker fetches whenever it pushes, got fetch_every=2 and push_every=1"):
        Downpour(staleness=1, fetch_every=2)
    with pytest.raises(ValueError, match="LockedParameterServer: leave out staleness"):
        LockedParameterServer(staleness=1)


@pytest.mark.parametrize(
    ("changes", "strategy", "nodes", "sentence"),
    [
        ({}, ParameterServer(servers=76), 1, "75 weights cannot be shared by 76 servers: use at most 75"),
        ({"optimizer": partial(optim.LAMB, lr=0.1)}, ParameterServer(2), 2, "LAMB .* 0.weight lies on several servers"),
        ({"optimizer": two_groups}, Downpour(fetch_every=2), 2, "groups have 2 learning rates, but with fetch_"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(changes, strategy, nodes, sentence):
    with pytest.raises(ValueError, match=sentence):
        parallel.train(plain_job(**changes), strategy, nodes)


def test_what_diverges_ends_the_run():
    with pytest.raises(parallel.NonFiniteLoss):
        parallel.train(plain_job(lr=1e308), ParameterServer(), 2, "simulation")
