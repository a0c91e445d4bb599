"""Elastic averaging: the published equations, the sum that is kept, what a round costs."""

from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import pytest

from minidl import cluster, optim, parallel
from minidl.parallel import ElasticAveraging
from tests.parallel.jobs import blobs, plain_job, small_job, weights, wide
from tests.parallel.quadratic import quadratic_job

pytestmark = pytest.mark.timeout(300)

VARIANTS = ("synchronous", "round_robin", "asynchronous")
NO_WORK = cluster.Node(float("inf"), float("inf"))


def centre_path(report):
    """The weight of the quadratic's centre at the end of each epoch."""
    rank = report.nodes if report.strategy.servers else 0
    return [float(snapshot.weights[0]) for snapshot in report.results[rank].snapshots]


def one_turn(p, worker, eta, alpha):
    """What a worker's turn in round robin does to (x_1, ..., x_p, centre) on the quadratic."""
    m = np.eye(p + 1)
    m[worker, worker] -= eta + alpha
    m[worker, p] = m[p, worker] = alpha
    m[p, p] -= alpha
    return m


def one_round(p, eta, alpha):
    """What a synchronous step does to (x_1, ..., x_p, centre) on the quadratic."""
    m = np.diag([1 - eta - alpha] * p + [1 - p * alpha])
    m[:p, p] = m[p, :p] = alpha
    return m


def radius(m):
    return np.abs(np.linalg.eigvals(m)).max()


def test_the_synchronous_centre_follows_the_two_equations():
    eta, alpha, steps, nodes = 0.3, 0.2, 12, 3
    job = quadratic_job(nodes, eta, batch_size=nodes, epochs=steps)
    report = parallel.train(job, ElasticAveraging(alpha, variant="synchronous"), nodes, on="simulation")
    state, truth = np.ones(nodes + 1), []
    for _ in range(steps):
        state = one_round(nodes, eta, alpha) @ state
        truth.append(state[-1])
    np.testing.assert_allclose(centre_path(report), truth, rtol=1e-12)


@pytest.mark.parametrize(("nodes", "period"), [(1, 2), (3, 1), (3, 2)])
def test_the_round_robin_centre_follows_the_turns(nodes, period):
    eta, alpha, turns = 0.3, 0.4, 18
    job = quadratic_job(nodes * period, eta, epochs=turns // nodes)
    strategy = ElasticAveraging(alpha, period, variant="round_robin")
    report = parallel.train(job, strategy, nodes, on="simulation")
    state, distances = np.ones(nodes + 1), []
    for turn in range(turns):
        worker = turn % nodes
        distances.append(abs(state[worker] - state[-1]))
        state = one_turn(nodes, worker, eta, alpha) @ state
        state[worker] *= (1 - eta) ** (period - 1)
    np.testing.assert_allclose(report.recorded["distance"][nodes][:turns], distances, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("variant", VARIANTS)
def test_eamsgd_of_one_worker_is_its_algorithm(variant):
    eta, alpha, delta, period, steps = 0.1, 0.3, 0.8, 3, 15
    job = quadratic_job(1, eta, epochs=steps)
    strategy = ElasticAveraging(alpha, period, variant, momentum=delta)
    report = parallel.train(job, strategy, 1, on="simulation")
    x, v, centre, truth = 1.0, 0.0, 1.0, []
    for t in range(steps + 1):
        before = x
        if t % period == 0:
            x, centre = x - alpha * (before - centre), centre + alpha * (before - centre)
        v = delta * v - eta * (before + delta * v)
        x += v
        truth.append(centre)
    if variant == "synchronous":
        np.testing.assert_allclose(centre_path(report), truth[:steps], rtol=1e-12)
    else:  # the server learns of the steps when the worker comes
        assert centre_path(report)[-1] == pytest.approx(truth[steps], rel=1e-12)


@dataclass(frozen=True)
class Scattered(ElasticAveraging):
    """The workers begin at different places; where everything ends is recorded."""

    def run(self, session):
        local_batches, until_finished = session.local_batches, session.batches_until_finished
        session.local_batches = lambda weights: scatter(session, local_batches(keep(session, weights)))
        session.batches_until_finished = lambda: scatter(session, until_finished())
        super().run(session)
        session.record("end", session.weights())
        if not self.servers and session.comm.rank == 0:
            session.record("centre", session.centre())

    def serve(self, session):
        processed = session.processed
        session.processed = lambda samples, weights: (keep(session, weights), processed(samples, weights))
        super().serve(session)
        session.record("centre", session.centre())


def keep(session, weights):
    session.centre = weights
    return weights


def scatter(session, batches):
    session.set_weights(session.weights() + 10.0**session.comm.rank)
    yield from batches


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_gradients_the_centre_and_the_workers_keep_their_sum(variant):
    job = plain_job(optimizer=partial(optim.SGD, lr=0.0), batch_size=6)
    report = parallel.train(job, Scattered(0.2, 2, variant), 3, on="simulation")
    start = plain_job().build_model()
    begin = np.concatenate([parameter.numpy().reshape(-1) for parameter in start.parameters()])
    ends = [end for rank in report.recorded["end"] for end in rank]
    centre = next(centre for rank in report.recorded["centre"] for centre in rank)
    np.testing.assert_allclose(sum(ends) + centre, 4 * begin + 111.0, rtol=1e-13)
    assert np.abs(centre - begin).min() > 1.0  # and they have met


def test_round_robin_is_stable_up_to_its_published_bound():
    """At the bound an eigenvalue of a whole round is -1 (to 1e-6 on both sides); runs beside it grow and shrink."""
    eta, nodes = 0.5, 3
    bound = (4 - 2 * eta) / (4 - eta)

    def whole_round(alpha):
        return reduce(np.matmul, [one_turn(nodes, worker, eta, alpha) for worker in reversed(range(nodes))])

    assert radius(whole_round(bound - 1e-6)) < 1 < radius(whole_round(bound + 1e-6))
    ends = []
    for alpha in (bound - 0.05, bound + 0.05):
        job = quadratic_job(60 * nodes, eta)
        report = parallel.train(job, ElasticAveraging(alpha, variant="round_robin"), nodes, on="simulation")
        ends.append(report.recorded["distance"][nodes][-1])
    assert ends[0] < 0.01
    assert ends[1] > 10


def test_the_synchronous_form_is_stable_up_to_its_published_bound():
    eta, nodes = 0.1, 8
    bound = (4 - 2 * eta) / (2 + 2 * nodes - nodes * eta)
    assert bound == pytest.approx(0.221, abs=1e-3)
    assert radius(one_round(nodes, eta, bound - 1e-6)) < 1 < radius(one_round(nodes, eta, bound + 1e-6))
    ends = []
    for alpha in (bound * 0.95, bound * 1.05):
        job = quadratic_job(80 * nodes, eta, batch_size=nodes)
        report = parallel.train(job, ElasticAveraging(alpha, variant="synchronous"), nodes, on="simulation")
        ends.append(abs(centre_path(report)[-1]))
    assert ends[0] < 0.01
    assert ends[1] > 10


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_worker_without_a_pull_is_serial(variant):
    """And so are its losses with a schedule and a last minibatch that is smaller."""
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), ElasticAveraging(1e-300, 3, variant), 1, on="simulation")
    assert [row["loss"] for row in report.history[:2]] == [row["loss"] for row in truth.history[:2]]
    if variant == "synchronous":  # else the worker makes more steps, up to its next visit, which ends the run
        assert report.digests == truth.digests


@pytest.mark.parametrize("variant", ["synchronous", "round_robin"])  # whose order is fixed
def test_workers_on_processes_learn_with_the_bits_of_the_simulation(variant):
    job = plain_job(batch_size=12 if variant == "synchronous" else 4, epochs=3)
    strategy = ElasticAveraging(period=3, variant=variant, algorithm="ring", overlap=variant == "synchronous")
    report = parallel.train(job, strategy, 3)
    assert [row["epoch"] for row in report.history] == [1, 2, 3]
    assert report.history[-1]["test_loss"] < report.history[0]["test_loss"]
    assert report.digests == parallel.train(job, strategy, 3, on="simulation").digests


def test_faster_workers_visit_the_centre_more_often_and_nobody_waits_for_the_slow_one():
    job = plain_job(batch_size=4, epochs=8)
    seconds = {}
    for variant in ("asynchronous", "round_robin"):
        node = cluster.Node(1e9, 1e9, speeds={0: 0.25})
        report = parallel.train(job, ElasticAveraging(period=2, variant=variant), 3, cluster.Simulation(node=node))
        visits = [result.bytes_sent for result in report.results[:3]]
        seconds[variant] = report.history[-1]["seconds"]
        if variant == "asynchronous":
            assert 3 * visits[0] < visits[1] < 5 * visits[0]
        else:
            assert max(visits) - min(visits) <= visits[0] / 10
    assert seconds["asynchronous"] < 0.5 * seconds["round_robin"]  # 12 rounds of the slow one against 9 of 4 + 4 + 1


@pytest.mark.parametrize(("variant", "messages"), [("round_robin", 2 * 8), ("synchronous", 2 * 3)])
def test_a_tree_makes_lg_p_messages_one_after_the_other_of_what_are_p_in_round_robin(variant, messages):
    """You et al.: of P (alpha + |W| beta) for a round, there and back, lg P (alpha + |W| beta) remain."""
    nodes, rounds, alpha, beta = 8, 5, 1e-3, 1e-9
    model = partial(wide, 100)
    job = small_job(
        model=model,
        optimizer=partial(optim.SGD, lr=0.1),
        schedule=None,
        data=partial(blobs, nodes * rounds),
        batch_size=nodes if variant == "synchronous" else 1,
        epochs=1,
    )
    engine = cluster.Simulation(cluster.Network(alpha, beta), NO_WORK)
    report = parallel.train(job, ElasticAveraging(variant=variant, algorithm="tree"), nodes, engine)
    (traffic,) = report.trace.ledger()[0].values() if variant == "synchronous" else [report.trace.ledger()[0]["send"]]
    size = traffic.nbytes / traffic.messages
    length = len(weights(report)) * 8
    assert length <= size < 1.01 * length
    messages *= rounds
    if variant == "round_robin":  # a visit more to tell of the last step; all but the last hear of the end in the next
        messages += 2 * (nodes + nodes - 1)
        assert [sent["send"].messages for sent in report.trace.ledger()[:nodes]] == [rounds + 2] * 7 + [rounds + 1]
    assert report.seconds == pytest.approx(messages * (alpha + size * beta), rel=1e-3)


def serves(on, variant, *deaths, nodes=3):
    """A run that goes on while each worker of `deaths`, (rank, n), is killed at its n-th receive."""
    faults = cluster.FaultPlan()
    for rank, receive in deaths:
        faults = faults.kill(rank, at=("recv", receive))
    strategy = ElasticAveraging(period=2, variant=variant)
    job = plain_job(batch_size=4, epochs=6)
    return parallel.train(job, strategy, nodes, on, on_failure="continue", faults=faults, timeout=150)


@pytest.mark.parametrize(
    ("on", "variant"), [("simulation", "round_robin"), ("simulation", "asynchronous"), ("processes", "asynchronous")]
)
def test_when_a_worker_dies_the_others_process_all_samples(on, variant):
    report = serves(on, variant, (1, 1))  # which it reaches on any engine, however fast the others are
    assert list(report.failures) == [1]
    assert report.history[-1]["samples"] == 6 * 60
    assert report.history[-1]["test_loss"] < report.history[0]["test_loss"]


def test_when_all_workers_die_the_run_ends_with_a_failure():
    with pytest.raises(cluster.RankFailed, match="killed"):
        serves("simulation", "asynchronous", (0, 4), (1, 6), nodes=2)


def test_an_overlapped_all_reduce_gives_the_same_bits_and_hides_behind_the_gradient():
    engine = cluster.Simulation(cluster.Network(alpha=1e-3, beta=0.0), cluster.Node(1e5, float("inf")))
    seconds, found = [], []
    for overlap in (False, True):
        strategy = ElasticAveraging(0.2, 2, "synchronous", 0.5, algorithm="ring", overlap=overlap)
        report = parallel.train(plain_job(epochs=2), strategy, 4, engine)
        seconds.append(report.seconds)
        found.append(weights(report))
    np.testing.assert_array_equal(*found)
    pulls = len(report.recorded["distance"][0])
    assert seconds[0] - seconds[1] == pytest.approx(pulls * 2 * 3 * 1e-3)  # a ring of 4 has 2 * 3 messages in a row


@pytest.mark.parametrize(
    ("strategy", "nodes", "sentence"),
    [
        (
            ElasticAveraging(momentum=0.5),
            2,
            "ElasticAveraging has momentum=0.5, and the optimizer has momentum=0.9: set one",
        ),
        (ElasticAveraging(period=12), 1, "with period=12 the workers never meet the centre on the way"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(strategy, nodes, sentence):
    with pytest.raises(ValueError, match=sentence):
        parallel.train(small_job(), strategy, nodes, on="simulation")
    with pytest.raises(ValueError, match="with variant='round_robin' a worker waits for the server's answer: leave"):
        ElasticAveraging(variant="round_robin", overlap=True)
