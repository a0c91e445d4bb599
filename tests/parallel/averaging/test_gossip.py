"""Gossip: the mean is kept and moves as in SGD, messages go to neighbours alone, nobody waits who need not."""

import itertools
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from minidl import cluster, parallel
from minidl.parallel import Gossip
from tests.parallel.jobs import blobs, plain_job, small_job, weights, wide
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

NAMED = ("ring", "torus", "full", "random")
ONE_WAY = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.5, 0.5], [0.5, 0.0, 0.0, 0.5]]


@dataclass(frozen=True)
class Watched(Gossip):
    """The nodes begin at different places; before every step, and at the end, weights and gradients are recorded."""

    scatter: float = 0.0

    def run(self, session):
        rng = np.random.default_rng((3, session.comm.rank))
        session.set_weights(session.weights() + self.scatter * rng.normal(size=session.weights().shape))
        session.record("path", session.weights())
        update = session.update

        def watched(*arguments, **named):
            session.record("gradients", session.gradient())
            update(*arguments, **named)
            session.record("path", session.weights())

        session.update = watched
        super().run(session)
        session.record("end", session.weights())


def paths(report, name="path"):
    """Of that record, an array (nodes, steps, weights)."""
    return np.array(report.recorded[name])


@pytest.mark.parametrize("topology", [*NAMED, "none", "exponential", ONE_WAY])
def test_averages_keep_the_mean_which_moves_by_the_gradients(topology):
    job = plain_job(epochs=2)
    report = parallel.train(job, Watched(topology, scatter=10.0), 4, on="simulation")
    means, gradients = paths(report).mean(axis=0), paths(report, "gradients").mean(axis=0)
    np.testing.assert_allclose(means[1:], means[:-1] - 0.1 * gradients, atol=1e-12)
    spread = np.linalg.norm(paths(report) - means, axis=(0, 2))
    assert (spread[-1] < 0.2 * spread[0]) == (topology != "none")


def test_the_mean_gradient_is_that_of_the_whole_minibatch():
    """Each share is taken at its own node's weights, and counted by its samples: 5, 5, 4 and 4 of 18."""
    job = plain_job(batch_size=18, epochs=1)
    report = parallel.train(job, Watched("ring"), 4, on="simulation")
    gradients = paths(report, "gradients").mean(axis=0)
    truth = parallel.train(job, Watched("full"), 1, on="simulation")
    np.testing.assert_allclose(gradients[0], paths(truth, "gradients")[0, 0], atol=1e-13)


@pytest.mark.parametrize("nodes", [4, 7])
def test_on_the_ring_the_distance_to_the_mean_shrinks_by_the_second_eigenvalue(nodes):
    job = plain_job(lr=0.0, batch_size=nodes, data=partial(blobs, 60 * nodes), epochs=1)
    path = paths(parallel.train(job, Watched("ring", scatter=1.0), nodes, on="simulation"))
    distances = np.linalg.norm(path - path.mean(axis=0), axis=(0, 2))
    factor = (1 + 2 * np.cos(2 * np.pi / nodes)) / 3
    # The slowest direction alone is left after some steps; before all is lost in rounding.
    last = 15 if nodes == 4 else 60
    gone = (max(1 / 3, abs(1 + 2 * np.cos(4 * np.pi / nodes)) / 3) / factor) ** last
    assert distances[last] / distances[last - 1] == pytest.approx(factor, abs=max(1e-8, gone**2))
    assert (distances[1:last] <= factor * distances[: last - 1] * (1 + 1e-9)).all()


@pytest.mark.parametrize("nodes", [4, 9])
def test_on_the_ring_a_node_sends_two_messages_a_step_however_many_there_are(nodes):
    job = plain_job(batch_size=16, epochs=2)
    report = parallel.train(job, Gossip("ring"), nodes, on="simulation")
    for traffic in report.trace.ledger():
        assert traffic["isend"].messages == 2 * 4 * 2  # neighbours, steps an epoch, epochs
        assert traffic["isend"].nbytes == 2 * 4 * 2 * 75 * 8
    torus = parallel.train(job, Gossip("torus"), 16, on="simulation")
    assert {traffic["isend"].messages for traffic in torus.trace.ledger()} == {4 * 4 * 2}
    for topology in ("random", "exponential", "none"):  # pairs of the step, and nodes that train alone
        ledgers = parallel.train(job, Gossip(topology), 4, on="simulation").trace.ledger()
        sent = {ledger["isend"].messages if "isend" in ledger else 0 for ledger in ledgers}
        assert sent == {0 if topology == "none" else 4 * 2}


@pytest.mark.parametrize("strategy", [Gossip("ring"), Gossip("random"), Gossip([[1.0]]), Gossip(asynchronous=True)])
def test_one_node_is_serial(strategy):
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), strategy, 1, on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    assert [row["loss"] for row in report.history] == pytest.approx([row["loss"] for row in truth.history], rel=1e-12)


# Asynchronous


@pytest.mark.parametrize(("topology", "nodes"), [("ring", 5), ("torus", 6), ("full", 2), ("random", 4)])
def test_asynchronous_averages_keep_the_mean(topology, nodes):
    job = plain_job(lr=0.0, batch_size=2, epochs=12)
    node = cluster.Node(1e8, 1e8, jitter=0.3)
    strategy = Watched(topology, asynchronous=True, scatter=10.0)
    report = parallel.train(job, strategy, nodes, cluster.Simulation(cluster.Network(1e-5, 1e-9), node))
    first = np.array([path[0] for path in report.recorded["path"]])
    last = np.array([end for ends in report.recorded["end"] for end in ends])
    np.testing.assert_allclose(last.mean(axis=0), first.mean(axis=0), atol=1e-12)
    spread = [np.linalg.norm(x - x.mean(axis=0)) for x in (first, last)]
    assert spread[1] < 0.01 * spread[0]


def timed(speeds, topology="ring", nodes=8, epochs=8):
    """Equal nodes but for the speeds; 15 gradients of 4 samples an epoch and all nodes."""
    job = plain_job(lr=0.0, batch_size=4, epochs=epochs, data=partial(blobs, 480))
    engine = cluster.Simulation(node=cluster.Node(1e8, 1e8, speeds=speeds), trace="ledger")
    return parallel.train(job, Gossip(topology, asynchronous=True), nodes, engine)


@pytest.mark.parametrize(("slow", "topology"), [(1, "ring"), *exhaustively((0, "full"))])
def test_asynchronous_nodes_take_the_time_of_their_summed_speed_with_a_slow_one_among_them(slow, topology):
    """An active one (0) and a passive one (1). The run ends when the slow node has ended the gradient that it is at."""
    speed = 1 / 10
    alike = timed({}, topology)
    report = timed({slow: speed}, topology)
    assert report.history[-1]["seconds"] / alike.history[-1]["seconds"] == pytest.approx(8 / (7 + speed), rel=0.06)
    samples = np.array(report.recorded["samples"])[:, 0]
    others = np.delete(samples, slow)
    assert samples[slow] / others.mean() == pytest.approx(speed, rel=0.2)
    assert others.max() < 1.05 * others.min()


@pytest.mark.parametrize("speeds", [{}, {0: 0.1}])
def test_asynchronous_nodes_process_the_samples_of_the_epochs_and_a_bounded_number_more(speeds):
    for epochs in (2, 4):
        report = timed(speeds, epochs=epochs)
        extra = np.array(report.recorded["samples"]).sum() - epochs * 480
        assert 0 <= extra <= 8 * 4 * 6  # six gradients of 4 samples a node, however long the run
        assert [row["epoch"] for row in report.history] == list(range(1, epochs + 1))
        assert report.history[-1]["steps"] == pytest.approx(epochs * 120, abs=8 * 6)


def test_asynchronous_nodes_stop_though_one_of_them_is_far_behind():
    """While it computes its first gradient the others process everything."""
    for slow in (0, 1):
        report = timed({slow: 1e-4}, nodes=4, epochs=2)
        samples = np.array(report.recorded["samples"])[:, 0]
        assert samples[slow] <= 4
        assert 960 <= samples.sum() <= 960 + 4 * 4 * 6
        assert [row["epoch"] for row in report.history] == [1, 2]


@pytest.mark.parametrize(("topology", "nodes"), [("ring", 3), *exhaustively(("random", 4))])
def test_on_processes_asynchronous_nodes_end_whoever_is_first(topology, nodes):
    """Messages of more than 64 KiB wait for their receiver: no two nodes wait for each other all the same."""
    job = plain_job(lr=0.0, model=partial(wide, 120), batch_size=2, epochs=4)
    report = parallel.train(job, Watched(topology, asynchronous=True, scatter=1.0), nodes, timeout=150)
    assert [row["epoch"] for row in report.history] == [1, 2, 3, 4]
    first = np.array([path[0] for path in report.recorded["path"]])
    last = np.array([end for ends in report.recorded["end"] for end in ends])
    np.testing.assert_allclose(last.mean(axis=0), first.mean(axis=0), atol=1e-12)
    assert np.linalg.norm(last - last.mean(axis=0)) < np.linalg.norm(first - first.mean(axis=0))


@dataclass(frozen=True)
class Mortal(Gossip):
    """The node `victim` fails in its gradient number `last`."""

    victim: int = 0
    last: int = 1

    def run(self, session):
        loss, gradients = session.local_loss, itertools.count(1)

        def mortal(batch):
            if session.comm.rank == self.victim and next(gradients) == self.last:
                raise RuntimeError("out of memory")
            return loss(batch)

        session.local_loss = mortal
        super().run(session)


@pytest.mark.parametrize(("victim", "last"), [(0, 1), (0, 5), (1, 1), (1, 5)])  # one asks, one answers
def test_asynchronous_nodes_go_on_without_one_that_fails(victim, last):
    job, strategy = plain_job(batch_size=4, epochs=8), Mortal(asynchronous=True, victim=victim, last=last)
    engine = cluster.Simulation(node=cluster.Node(1e8, 1e8))
    report = parallel.train(job, strategy, 4, engine, on_failure="continue")
    assert list(report.failures) == [victim]
    samples = [node[0] for node in report.recorded["samples"] if node]
    assert len(samples) == 3
    assert max(samples) < 1.5 * min(samples)  # those that are left still hear of each other
    assert [row["epoch"] for row in report.history] == list(range(1, 9))
    assert report.accuracy > 0.5


@dataclass(frozen=True)
class Awaited(Gossip):
    """The victim fails in its gradient number `last`, when all have begun their first one, however slow they are.

    The others do not begin their own of that number before it has failed. A node that has not begun may be in a
    collective of all nodes, and would fail as well.
    """

    victim: int = 0
    last: int = 1
    folder: Path = Path()  # where nodes make files: that they have begun, or failed

    def run(self, session):
        loss, gradients, me = session.local_loss, itertools.count(1), session.comm.rank

        def awaited(batch):
            number = next(gradients)
            if number == 1:
                (self.folder / f"begun {me}").touch()
            if number == self.last and me == self.victim:
                until(lambda: len(list(self.folder.glob("begun *"))) == session.nodes)
                (self.folder / "failed").touch()
                raise RuntimeError("out of memory")
            if number == self.last:
                until((self.folder / "failed").exists)
            return loss(batch)

        session.local_loss = awaited
        super().run(session)


def until(is_so):
    """Return when `is_so()`; a test's deadline ends a run in which that never is."""
    while not is_so():
        time.sleep(0.005)


def test_on_processes_asynchronous_nodes_go_on_without_one_that_fails(tmp_path):
    job = plain_job(batch_size=4, epochs=4)
    strategy = Awaited(asynchronous=True, last=3, folder=tmp_path)
    report = parallel.train(job, strategy, 3, on_failure="continue", timeout=150)
    assert list(report.failures) == [0], report.failures
    assert report.history[-1]["epoch"] == 4


@pytest.mark.parametrize(
    ("make", "nodes", "sentence"),
    [
        (lambda: Gossip(ONE_WAY, asynchronous=True), 4, "asynchronous nodes average in pairs, not by a matrix"),
        (lambda: Gossip("none", asynchronous=True), 4, "count their updates by the messages of the averages"),
        (lambda: Gossip("exponential", asynchronous=True), 4, "has pairs in which one sends: use 'random' or 'ring'"),
        (lambda: Gossip(np.eye(4)), 4, "the nodes never agree"),
        (lambda: Gossip(ONE_WAY), 3, "the mixing matrix is for 4 nodes, the run has 3"),
        (lambda: Gossip("torus"), 5, "5 nodes make no grid"),
        (lambda: Gossip("torus", asynchronous=True), 5, "5 nodes make no grid"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(make, nodes, sentence):
    with pytest.raises(ValueError, match=sentence):
        parallel.train(small_job(), make(), nodes, on="simulation")
