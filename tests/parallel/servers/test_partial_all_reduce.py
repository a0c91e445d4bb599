"""Eager SGD without a coordinator: every gradient is used once, and all workers make the same updates."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from minidl import cluster, parallel
from minidl.parallel import EagerSGD, Synchronous
from minidl.parallel.servers.partial_all_reduce import PartialAllReduce
from tests.parallel.jobs import blobs
from tests.parallel.quadratic import Point, half_square, quadratic_job
from tests.parallel.servers.test_quorum import OPTIMIZERS, Constant, Memoryless, plain_job
from tests.parallel.test_strategies import weights
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

SAME = cluster.Simulation(node=cluster.Node(1e9, 1e9))
JITTER = cluster.Simulation(cluster.Network(1e-6, 1e-9), cluster.Node(1e7, 1e7, jitter=1.0))
QUORUMS = ("solo", "majority")


@pytest.mark.parametrize(("quorum", "optimizer"), [("solo", "momentum"), ("majority", "adam")])
def test_workers_that_are_all_ready_are_synchronous(quorum, optimizer):
    job = plain_job(optimizer=OPTIMIZERS[optimizer])
    truth = parallel.train(plain_job(optimizer=OPTIMIZERS[optimizer], batch_size=20), Synchronous(), 4, "simulation")
    report = parallel.train(job, EagerSGD(quorum, coordinator=False), 4, SAME)
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    assert report.staleness == {0: 4 * 9}
    for row, true in zip(report.history, truth.history, strict=True):
        assert row["steps"] == true["steps"]
        assert row["loss"] == pytest.approx(true["loss"], rel=1e-9)


def test_unequal_gradients_weigh_as_their_samples():
    this = partial(plain_job, data=partial(blobs, 34), epochs=1)  # of 20 and 14: the last shares have 4, 4, 3 and 3
    truth = parallel.train(this(batch_size=20), Synchronous(), 4, "simulation")
    report = parallel.train(this(), EagerSGD("majority", coordinator=False), 4, "simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12


@pytest.mark.parametrize(("quorum", "nodes"), [("solo", 1), ("solo", 3), ("majority", 4), ("majority", 6)])
def test_all_workers_end_with_the_same_bits_and_every_gradient_is_used_once_or_left(quorum, nodes):
    job = plain_job(model=Constant, loss=lambda outputs, y: outputs.sum() * (1 / len(y)), epochs=6)
    report = parallel.train(job, EagerSGD(quorum, coordinator=False), nodes, JITTER)
    assert len(set(report.digests)) == 1
    used = report.staleness.total()
    assert report.checkpoint.model["w"] == pytest.approx(-0.1 * used / nodes, rel=1e-12)  # each gradient is 1
    computed = sum(samples for result in report.results for _, samples in result.losses) // 5
    assert used == pytest.approx(6 * 12, abs=nodes)
    assert 0 <= computed - used <= nodes - 1  # of each other worker, the one it was at when the run was over
    if nodes > 1:
        assert max(report.staleness) > 0


@dataclass(frozen=True)
class Paced(EagerSGD):
    """A gradient takes 1 s, on worker 0 5 s."""

    def run(self, session):
        loss = session.local_loss

        def timed(batch):
            session.comm.compute(seconds=5.0 if session.comm.rank == 0 else 1.0)
            return loss(batch)

        session.local_loss = timed
        super().run(session)


def test_solo_rounds_go_on_while_a_slow_worker_computes():
    report = parallel.train(plain_job(epochs=10), Paced("solo", coordinator=False), 4, "simulation")
    assert report.history[-1]["seconds"] == pytest.approx(120 / (3 + 1 / 5), abs=5)  # 120 gradients, the summed speed
    assert max(report.recorded["staleness"][0]) >= 4
    assert len(set(report.digests)) == 1


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("quorum", "gradients", "seconds", "updates", "within"),
    [("majority", 4.5, 1, 400, 0.15), *exhaustively(("solo", 1, 1 / 8, 4000, 0.05))],
)
def test_a_partial_round_takes_the_time_of_whoever_begins_it(quorum, gradients, seconds, updates, within):
    """Solo: the first of 8 exponential times. A drawn worker: one exponential time, by which each of the 7 others is
    ready with probability 1/2. Who is not ready computes on, and the rest of an exponential time is exponential.
    The bounds are three standard errors of the mean of as many exponential times.
    """
    job = quadratic_job(int(updates * gradients), lr=0.0)
    strategy = Memoryless(quorum, coordinator=False)
    report = parallel.train(job, strategy, 8, cluster.Simulation(trace="ledger"), timeout=1e6)
    steps = report.history[-1]["steps"]
    assert report.history[-1]["seconds"] / steps == pytest.approx(seconds, rel=within)
    assert report.staleness.total() / steps == pytest.approx(gradients, rel=within)


@pytest.mark.parametrize("quorum", ["majority", *exhaustively("solo")])
def test_on_processes_as_well(quorum):
    report = parallel.train(plain_job(epochs=4), EagerSGD(quorum, coordinator=False), 3, timeout=20.0)
    assert len(set(report.digests)) == 1
    assert 48 <= report.staleness.total() <= 51


def test_a_round_sends_one_activation_to_each_neighbour_of_the_hypercube():
    def program(comm):
        rounds = PartialAllReduce(comm.split(0), limit=10, like=np.zeros(3))
        rounds.contribute(np.ones(3), samples=2)
        return sorted(rounds.neighbours)

    run = cluster.launch(program, nodes=8, on="simulation")
    assert run.results[5] == [1, 4, 7]
    assert {traffic["send"].messages for traffic in run.trace.ledger()} == {3 + 1}  # and one to itself


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_samples_are_counted_exactly_and_sums_are_finite_in_every_type(dtype):
    """3 * 2,049 samples are no number of float16, and 3 * 2,049 * 16 is above its largest."""

    def program(comm):
        rounds = PartialAllReduce(comm.split(0), limit=3 * 2049, like=np.zeros(2, dtype))
        return rounds.contribute(np.full(2, 16, dtype), samples=2049)

    for rounds, is_used in cluster.launch(program, nodes=3, on="simulation").results:
        assert is_used
        assert [(one.samples, one.gradients, one.total.tolist()) for one in rounds] == [(6147, 3, [98352.0] * 2)]


def test_weights_in_float16_move_as_those_of_synchronous():
    """The loss is 8 w^2 on shares of 3,000 samples: 3,000 times the gradient 16 w, of three nodes, is above 65,504."""

    def final_weight(strategy, batch_size):
        job = quadratic_job(18_000, 1 / 64, batch_size=batch_size, loss=lambda out, y: half_square(out, y) * 16)
        return parallel.train(replace(job, model=partial(Point, np.float16)), strategy, 3, SAME).checkpoint.model["w"]

    eager = final_weight(EagerSGD(coordinator=False), 3000)
    assert eager.dtype == np.float16
    assert eager == final_weight(Synchronous(), 9000) == [0.5625]


def test_only_a_coordinator_counts_to_a_number():
    with pytest.raises(ValueError, match="only a coordinator can count to quorum=3: use 'majority' or 'solo'"):
        EagerSGD(3, coordinator=False)
    assert EagerSGD(3).servers == 1
    assert EagerSGD("solo", coordinator=False).servers == 0


def test_ordered_sums_are_those_of_a_loop_over_the_ranks():
    def program(comm):
        sums = PartialAllReduce(comm.split(0), limit=4, like=np.zeros(1), initiator=lambda _: 0, algorithm="ordered")
        comm.compute(seconds=1.0 - 0.1 * comm.rank)  # rank 0, which begins, is the last
        rounds, _ = sums.contribute(np.array([1e16, 1.0, 1.0, -1e16])[[comm.rank]], samples=1)
        return rounds[0].total.tolist()

    assert cluster.launch(program, nodes=4, on="simulation").results == [[0.0]] * 4  # pair by pair it would be 2
