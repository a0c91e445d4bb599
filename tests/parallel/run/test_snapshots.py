"""Nodes with weights of their own: snapshots at the ends of epochs, evaluated after the run."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from minidl import nn, optim, parallel
from tests.parallel.jobs import blobs, small_job, weights


@dataclass(frozen=True)
class Alone(parallel.Strategy):
    """Each node trains on its shard by itself; the mean of the weights is evaluated."""

    is_asynchronous: ClassVar[bool] = True

    def run(self, session):
        for batch in session.shard_batches():
            session.model.zero_grad()
            session.loss(batch).backward()
            session.update()


def test_the_mean_of_the_nodes_weights_is_evaluated_at_each_epoch():
    report = parallel.train(small_job(batch_size=4), Alone(), nodes=3, on="simulation")
    local = [result.snapshots[-1].weights for result in report.results]
    assert np.abs(weights(report) - np.mean(local, axis=0)).max() < 1e-15
    assert [row["epoch"] for row in report.history] == [1, 2, 3]
    assert report.accuracy > 0.5


def test_minibatches_that_grow_are_those_of_each_epochs_size():
    job = small_job(batch_schedule=lambda epoch: 10 * 2**epoch)
    report = parallel.train(job, on="simulation")
    assert [row["steps"] for row in report.history] == [6, 6 + 3, 6 + 3 + 2]


def test_what_does_not_fit_is_said_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="2 samples cannot be dealt to 3 nodes: use at most 2 nodes"):
        parallel.train(small_job(data=partial(blobs, 2)), Alone(), nodes=3)
    with pytest.raises(ValueError, match="ParameterServer cannot go on from a checkpoint"):
        parallel.train(small_job(), parallel.ParameterServer(), resume=tmp_path)
    with pytest.raises(ValueError, match=r"batch_schedule\(2\) must be at least 1, got 0"):
        small_job(batch_schedule=lambda epoch: 2 - epoch)
    with pytest.raises(ValueError, match="a minibatch of 2 samples cannot be shared by 4 nodes"):
        parallel.train(small_job(batch_schedule=lambda epoch: 8 - 3 * epoch), parallel.Synchronous(), nodes=4)


def every_step(optimizer, steps_per_epoch):
    return optim.StepLR(optimizer, step_size=1, gamma=0.5)


@pytest.mark.parametrize(
    "strategy",
    [
        parallel.BackupWorkers(1, abandon=True),
        parallel.EagerSGD(),
        parallel.EagerSGD(coordinator=False),
        parallel.Gossip(asynchronous=True),
        parallel.ParameterServer(),
        parallel.Downpour(push_every=3),
        parallel.ElasticAveraging(period=1, variant="round_robin"),
        parallel.Hogwild(),
    ],
    ids=repr,
)
def test_after_equal_samples_the_rate_is_that_of_serial_though_shards_end_with_small_minibatches(strategy):
    """Shards of 14, 13 and 13 samples make twelve minibatches of at most 4, the whole training set makes ten."""
    job = small_job(data=partial(blobs, 40), batch_size=4, schedule=every_step)
    report = parallel.train(job, strategy, 3, on="simulation")
    for row in report.history:
        halvings = np.log2(0.1 / row["lr"])
        assert halvings == pytest.approx(10 * row["epoch"], abs=1.01)  # an update may carry samples of the next epoch


def test_whole_minibatches_are_counted_epoch_by_epoch():
    job = small_job(batch_schedule=lambda epoch: (16, 20, 60)[epoch])
    assert [job.steps_after(samples, 60) for samples in (0, 15, 16, 59, 60, 79, 80, 120, 179, 180)] == [
        *(0, 0, 1, 3, 4, 4, 5, 7, 7, 8)
    ]
    assert job.steps_after(240, 60) == 9  # after the last epoch it goes on as in the last


class HalfFrozen(nn.Module):
    def __init__(self):
        self.frozen = nn.Linear(5, 4)
        self.frozen.weight.requires_grad = False
        self.rest = nn.Linear(4, 3)

    def forward(self, x):
        return self.rest(self.frozen(x))


@pytest.mark.parametrize(
    "strategy",
    [
        parallel.Gossip(),
        parallel.Gossip("full"),
        parallel.Gossip(asynchronous=True),
        parallel.SlowMo(2),
        parallel.OneShotAveraging(),
        parallel.ElasticAveraging(period=2),
        parallel.EagerSGD(),
    ],
    ids=repr,
)
def test_averages_leave_frozen_weights_as_they_are_to_the_bit(strategy):
    """The mean of three equal numbers may differ from them in the last bit."""
    job = small_job(model=HalfFrozen, data=partial(blobs, dtype="float32"), batch_size=6)
    report = parallel.train(job, strategy, 3, on="simulation")
    before, after = job.build_model(), report.model()
    assert (after.frozen.weight.numpy() == before.frozen.weight.numpy()).all()
    assert (after.rest.weight.numpy() != before.rest.weight.numpy()).any()
