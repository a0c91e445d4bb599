"""Nodes with weights of their own: snapshots at the ends of epochs, judged after the run."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from minidl import cluster, parallel
from tests.parallel.jobs import blobs, small_job

pytestmark = pytest.mark.timeout(60)


@dataclass(frozen=True)
class Alone(parallel.Strategy):
    """Each node trains on its shard by itself; the mean of the weights is what is judged."""

    is_asynchronous: ClassVar[bool] = True

    def run(self, session):
        for batch in session.passes():
            session.model.zero_grad()
            session.loss(batch).backward()
            session.update()


@dataclass(frozen=True)
class Central(parallel.Strategy):
    """One server holds the weights and updates them by each gradient that comes."""

    servers: int = 1
    is_asynchronous: ClassVar[bool] = True

    def run(self, session):
        server = session.nodes
        for batch in session.stream():
            session.model.zero_grad()
            session.loss(batch).backward()
            session.comm.send((session.gradient(), len(batch.x)), server)
            weights, session.finished = session.comm.recv(server)
            session.set_weights(weights)

    def serve(self, session):
        samples, ended = 0, 0
        while ended < session.nodes:
            gradient, count = session.comm.recv(cluster.ANY)
            worker = session.comm.last_source
            if not session.finished:
                session.set_gradient(gradient)
                session.update()
                session.record("staleness", 0)
                samples += count
                session.processed(samples, session.weights)
            ended += session.finished
            session.comm.send((session.weights(), session.finished), worker)


def weights(report):
    return np.concatenate([array.reshape(-1) for array in report.checkpoint.model.values()])


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_one_worker_with_a_server_equals_serial(on):
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), Central(), on=on)
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    for row, true in zip(report.history, truth.history, strict=True):
        assert row["steps"] == true["steps"]
        assert row["samples"] == true["samples"]
        for column in ("loss", "test_loss", "accuracy", "lr"):
            assert row[column] == pytest.approx(true[column], rel=1e-9)
    assert report.staleness == {0: 12}
    assert len(report.results) == 2
    assert len(report.digests) == 1


def test_the_mean_of_the_nodes_weights_is_judged_at_each_epoch():
    report = parallel.train(small_job(batch_size=4), Alone(), nodes=3, on="simulation")
    local = [result.snapshots[-1].weights for result in report.results]
    assert np.abs(weights(report) - np.mean(local, axis=0)).max() < 1e-15
    assert [row["epoch"] for row in report.history] == [1, 2, 3]
    assert report.accuracy > 0.5


def test_faster_workers_make_more_of_a_stream():
    node = cluster.Node(1e9, 1e9, speeds={0: 0.25})
    report = parallel.train(small_job(batch_size=5, epochs=8), Central(), 2, cluster.Simulation(node=node))
    slow, fast = (sum(samples for _, samples in result.losses) for result in report.results[:2])
    assert 2 * slow < fast
    assert report.history[-1]["steps"] == pytest.approx(8 * 12, abs=1)


def test_the_rows_reach_the_caller_and_the_last_state_its_folder(tmp_path):
    messages = []
    report = parallel.train(small_job(), Central(), on="simulation", folder=tmp_path, progress=messages.append)
    assert [message.row for message in messages if message.row] == report.history
    assert parallel.Checkpoint.load(tmp_path / "checkpoint.npz").epoch == 3


def test_minibatches_that_grow_are_those_of_each_epochs_size():
    job = small_job(batch_schedule=lambda epoch: 10 * 2**epoch)
    report = parallel.train(job, on="simulation")
    assert [row["steps"] for row in report.history] == [6, 6 + 3, 6 + 3 + 2]


def test_what_does_not_fit_is_said_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="2 samples cannot be dealt to 3 nodes: use at most 2 nodes"):
        parallel.train(small_job(data=partial(blobs, 2)), Alone(), nodes=3)
    with pytest.raises(ValueError, match="Central cannot go on from a checkpoint"):
        parallel.train(small_job(), Central(), resume=tmp_path)
    with pytest.raises(ValueError, match=r"batch_schedule\(2\) must be a whole number of at least 1"):
        small_job(batch_schedule=lambda epoch: 2 - epoch)
    with pytest.raises(ValueError, match="a minibatch of 2 samples cannot be shared by 4 nodes"):
        parallel.train(small_job(batch_schedule=lambda epoch: 8 - 3 * epoch), parallel.Synchronous(), nodes=4)
