"""Eager SGD without a coordinator: every gradient is used once, and all workers make the same updates."""

from dataclasses import dataclass

import numpy as np
import pytest

from minidl import cluster, parallel
from minidl.parallel import EagerSGD
from minidl.parallel.servers.partial_all_reduce import PartialAllReduce
from minidl.random import Purpose, stream
from tests.parallel.jobs import take
from tests.parallel.quadratic import quadratic_job
from tests.parallel.servers.test_quorum import Constant, Memoryless, plain_job

pytestmark = pytest.mark.timeout(300)

SAME = cluster.Simulation(node=cluster.Node(1e9, 1e9))
JITTER = cluster.Simulation(cluster.Network(1e-6, 1e-9), cluster.Node(1e7, 1e7, jitter=1.0))


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
        take(session, lambda: 5.0 if session.comm.rank == 0 else 1.0)
        super().run(session)


def test_solo_rounds_go_on_while_a_slow_worker_computes():
    report = parallel.train(plain_job(epochs=10), Paced("solo", coordinator=False), 4, "simulation")
    assert report.history[-1]["seconds"] == pytest.approx(120 / (3 + 1 / 5), abs=5)  # 120 gradients, the summed speed
    assert max(report.recorded["staleness"][0]) >= 4
    assert len(set(report.digests)) == 1


def plain_rounds(times, initiator, gradients):
    """Rounds of `gradients` in all: for each worker those that it missed before each gradient, and the end of worker 0.

    times      for each worker, an iterator of the seconds that its gradients take
    initiator  maps a round's number and when each worker is ready to the worker that begins it
    """
    ready, missed, made = [next(each) for each in times], [0] * len(times), [[] for _ in times]
    round_, now, in_time = 0, 0.0, []
    while sum(map(len, made)) < gradients:
        now = max(now, ready[initiator(round_, ready)])
        in_time = [moment <= now for moment in ready]
        for worker in np.flatnonzero(in_time):
            made[worker].append(missed[worker])
            missed[worker], ready[worker] = -1, now + next(times[worker])
        missed, round_ = [each + 1 for each in missed], round_ + 1
    return made, now if in_time[0] else ready[0]


def first(round_, ready):
    return int(np.argmin(ready))


@pytest.mark.parametrize("quorum", ["solo", "majority"])
def test_every_round_is_made_when_a_plain_simulation_of_the_same_times_makes_it(quorum):
    job, nodes, gradients = quadratic_job(120, lr=0.0), 8, 120
    report = parallel.train(job, Memoryless(quorum, coordinator=False), nodes, cluster.Simulation(), timeout=1e6)
    rngs = [stream(Purpose.PROGRAM, job.seed, rank) for rank in range(nodes)]

    def drawn(round_, _):
        return int(stream(Purpose.QUORUM, job.seed, round_).integers(nodes))

    times = [iter(rng.exponential, None) for rng in rngs]
    made, seconds = plain_rounds(times, first if quorum == "solo" else drawn, gradients)
    assert report.recorded["staleness"] == made
    assert report.history[-1]["seconds"] == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize(("quorum", "gradients", "seconds"), [("majority", 4.5, 1), ("solo", 1, 1 / 8)])
def test_a_plain_round_takes_the_time_of_whoever_begins_it(quorum, gradients, seconds):
    """Solo: the first of 8 exponential times. A drawn worker: one exponential time, by which each of the 7 others is
    ready with probability 1/2. Who is not ready computes on, and the rest of an exponential time is exponential.
    """
    rng = np.random.default_rng(0)
    times, rounds = [iter(rng.exponential, None) for _ in range(8)], 10_000
    made, end = plain_rounds(times, first if quorum == "solo" else lambda *_: rng.integers(8), int(rounds * gradients))
    assert end == pytest.approx(rounds * seconds, rel=0.04)
    # of each gradient of worker 0, the round that it is in and those that it missed before
    assert sum(missed + 1 for missed in made[0]) == pytest.approx(rounds, rel=0.04)


def test_a_round_sends_one_activation_to_each_neighbour_of_the_hypercube():
    def program(comm):
        rounds = PartialAllReduce(comm.split(0), limit=10, like=np.zeros(3))
        rounds.contribute(np.ones(3), samples=2, counted=1.7)
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
