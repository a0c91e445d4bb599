"""One-shot averaging: one round, and the mean of runs that know nothing of each other."""

import numpy as np
import pytest

from minidl import data, parallel
from minidl.parallel import OneShotAveraging
from minidl.random import Purpose, stream
from tests.parallel.jobs import small_job, weights


def test_it_is_the_mean_of_serial_runs_on_the_shards():
    job = small_job(batch_size=7, shards="by_label")
    report = parallel.train(job, OneShotAveraging(), nodes=3, on="simulation")
    alone = [serial_on_class(job, label) for label in range(3)]
    assert np.abs(weights(report) - np.mean(alone, axis=0)).max() < 1e-12
    assert len(set(report.digests)) == 1


def serial_on_class(job: parallel.Job, label: int) -> np.ndarray:
    """The weights after a plain loop over the samples of one class, which are one node's shard."""
    train, _ = job.build_data()
    shard = np.flatnonzero(train.y == label)
    model = job.build_model()
    optimizer = job.optimizer(model.parameters())
    schedule = job.build_schedule(optimizer, len(shard))
    for epoch in range(job.epochs):
        order = stream(Purpose.SHARD_SHUFFLE, job.seed, epoch, label).permutation(shard)
        for x, y in data.DataLoader(data.Dataset(train.x[order], train.y[order]), job.batch_size):
            model.zero_grad()
            job.loss(model(x), y).backward()
            optimizer.step()
            schedule.step()
    return np.concatenate([parameter.numpy().reshape(-1) for parameter in model.parameters()])


def test_there_is_one_round():
    report = parallel.train(small_job(), OneShotAveraging(), nodes=4, on="simulation")
    assert [len(rounds) for rounds in report.recorded["rounds"]] == [1] * 4
    for ledger in report.trace.ledger():
        assert set(ledger) == {"all_reduce"}
        assert ledger["all_reduce"].messages == 2  # of one recursive doubling among four


@pytest.mark.parametrize(("nodes", "batch_size"), [(3, 5), (7, 60)])
def test_the_rate_falls_with_the_passes_over_a_shard_however_many_nodes_there_are(nodes, batch_size):
    job = small_job(batch_size=batch_size, epochs=4)  # halved every two epochs
    report = parallel.train(job, OneShotAveraging(), nodes, "simulation")
    assert [row["lr"] for row in report.history] == pytest.approx([0.1, 0.05, 0.05, 0.025])


def test_one_node_is_serial():
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), OneShotAveraging(), on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
