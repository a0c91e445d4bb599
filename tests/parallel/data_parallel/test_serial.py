"""Serial is the oracle: it adds up as p replicas with m micro-batches do."""

from functools import partial

import numpy as np
import pytest

from minidl import nn, parallel
from minidl.parallel import Serial, Synchronous
from tests.parallel.jobs import blobs, dropout_job, small_job
from tests.parallel.test_strategies import weights

pytestmark = pytest.mark.timeout(300)


def normalized() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3)).double()


JOBS = {
    "dropout": partial(dropout_job, data=partial(blobs, 34)),  # 16, 16 and 2 samples: some micro-batches are empty
    "clipped": partial(small_job, clip_norm=0.1),
    "batch norm": partial(small_job, model=normalized, data=partial(blobs, 64)),  # no micro-batch of one sample
}


@pytest.mark.parametrize(
    ("name", "p", "m"), [("dropout", 1, 2), ("dropout", 3, 2), ("clipped", 3, 1), ("batch norm", 2, 2)]
)
def test_shards_and_micro_batches_have_the_bits_of_replicas_that_accumulate(name, p, m):
    job = JOBS[name]
    truth = parallel.train(job(), Serial(shards=p, micro_batches=m), on="simulation")
    report = parallel.train(job(), Synchronous(algorithm="ordered", accumulate=m), p, on="simulation")
    assert np.array_equal(weights(report), weights(truth))
    for name, array in truth.checkpoint.model.items():
        assert np.array_equal(report.checkpoint.model[name], array), name


def test_micro_batches_change_no_more_than_the_order_of_the_sum():
    truth, report = (parallel.train(small_job(), Serial(micro_batches=m), on="simulation") for m in (1, 5))
    assert 0 < np.abs(weights(report) - weights(truth)).max() < 1e-12


def test_numbers_that_cannot_be_are_refused():
    for setting, number, error in (("shards", 0, ValueError), ("micro_batches", True, TypeError)):
        with pytest.raises(error, match=f"Serial: {setting} must be .*at least 1, got"):
            Serial(**{setting: number})
