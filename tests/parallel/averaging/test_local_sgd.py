"""Local SGD: rounds, what a period of one equals, what is averaged and what is not."""

from functools import partial

import numpy as np
import pytest

from minidl import data, nn, optim, parallel
from minidl.parallel import LocalSGD, PostLocalSGD, Synchronous
from minidl.random import Purpose, stream
from tests.parallel.jobs import blobs, small_job, weights

plain = partial(optim.SGD, lr=0.1, weight_decay=1e-3)


def test_a_period_of_one_with_plain_sgd_is_synchronous():
    """The last minibatch has one sample, so that two of three shares are empty."""
    job = small_job(data=partial(blobs, 61), batch_size=15, optimizer=plain)
    truth = parallel.train(job, Synchronous(), nodes=3, on="simulation")
    report = parallel.train(job, LocalSGD(period=1), nodes=3, on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    assert len(set(report.digests)) == 1
    for row, true in zip(report.history, truth.history, strict=True):
        assert row["test_loss"] == pytest.approx(true["test_loss"], rel=1e-9)
        assert row["loss"] == pytest.approx(true["loss"], rel=1e-9)
        assert (row["steps"], row["samples"], row["lr"]) == (true["steps"], true["samples"], true["lr"])


@pytest.mark.parametrize("period", [1, 5, 12, 13])
def test_there_are_t_over_h_rounds_in_the_ledger(period):
    steps, ring = 12, 2 * (3 - 1)  # messages of a node in one all-reduce
    report = parallel.train(small_job(), LocalSGD(period, algorithm="ring"), nodes=3, on="simulation")
    rounds = -(-steps // period)
    assert [len(steps) for steps in report.recorded["rounds"]] == [rounds] * 3
    for ledger in report.trace.ledger():
        assert set(ledger) == {"all_reduce"}
        assert ledger["all_reduce"].messages == rounds * ring
    assert len(set(report.digests)) == 1  # the last round was after the last step


def test_post_local_sgd_is_synchronous_until_it_begins():
    job = small_job(optimizer=plain)
    truth = parallel.train(job, Synchronous(), nodes=3, on="simulation")
    report = parallel.train(job, PostLocalSGD(period=3, post_local_after=2), nodes=3, on="simulation")
    assert report.recorded["rounds"][0] == [1, 2, 3, 4, 5, 6, 7, 8, 11, 12]
    for row, true in zip(report.history[:2], truth.history[:2], strict=True):
        assert row["test_loss"] == pytest.approx(true["test_loss"], rel=1e-12)
    assert np.abs(weights(report) - weights(truth)).max() > 1e-6


def test_between_two_rounds_nodes_train_as_if_alone_and_the_mean_is_weighted_by_samples():
    job = small_job(data=partial(blobs, 5), batch_size=5, epochs=1, optimizer=plain)  # parts of 3 and 2 samples
    report = parallel.train(job, LocalSGD(period=10), nodes=2, on="simulation")
    train, _ = job.build_data()
    order = stream(Purpose.SHUFFLE, job.seed, 0).permutation(5)
    alone = []
    for rank in range(2):
        part = data.Dataset(*train[order[rank::2]])
        alone.append(
            parallel.train(small_job(data=data.Splits(part, part), epochs=1, optimizer=plain), on="simulation")
        )
    expected = 3 / 5 * weights(alone[0]) + 2 / 5 * weights(alone[1])
    assert np.abs(weights(report) - expected).max() < 1e-12


@pytest.mark.parametrize(("n", "is_synchronous"), [(60, True), (61, False)])
def test_momentum_stays_on_its_node(n, is_synchronous):
    """As long as all parts are equal the mean of the local momenta is the momentum of the mean; else it is not."""
    job = small_job(data=partial(blobs, n), batch_size=15, schedule=None, epochs=2)
    truth = parallel.train(job, Synchronous(), nodes=3, on="simulation")
    report = parallel.train(job, LocalSGD(period=1), nodes=3, on="simulation")
    assert (np.abs(weights(report) - weights(truth)).max() < 1e-12) == is_synchronous


class Normed(nn.Module):
    """Batch norm over images of one pixel."""

    def __init__(self) -> None:
        self.norm, self.last = nn.BatchNorm2d(5), nn.Linear(5, 3)
        self.double()

    def forward(self, x):
        return self.last(self.norm(x.reshape(-1, 5, 1, 1)).reshape(-1, 5))


def test_the_running_statistics_of_batch_norm_are_averaged():
    job = small_job(model=Normed, batch_size=60, epochs=1, shards="by_label")
    report = parallel.train(job, LocalSGD(period=1), nodes=3, on="simulation")
    x = job.build_data().train.x
    assert np.abs(report.checkpoint.model["norm.running_mean"] - 0.1 * x.mean(axis=0)).max() < 1e-12
    assert report.checkpoint.model["norm.num_batches_tracked"] == 1


def test_the_bytes_of_a_row_are_those_of_the_rounds_up_to_then():
    report = parallel.train(small_job(), PostLocalSGD(4), 3, "simulation")  # 4 rounds, 1 and 1
    rounds = [6 * row["bytes"] / report.history[-1]["bytes"] for row in report.history]
    assert rounds == [4, 5, 6]
