"""Serial is the oracle: it adds up as p replicas with m micro-batches do."""

from functools import partial

import numpy as np
import pytest

from minidl import compress, parallel
from minidl.parallel import Serial, Synchronous
from tests.parallel.jobs import blobs, dropout_job, normalized, small_job, weights
from tests.parallel.test_strategies import Uneven

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
    np.testing.assert_equal(report.checkpoint.model, truth.checkpoint.model)


@pytest.mark.parametrize(("nodes", "accumulate"), [(1, 3), (2, 7)])
def test_the_gradients_of_micro_batches_add_up_to_that_of_the_minibatch(nodes, accumulate):
    job = small_job(model=Uneven, data=partial(blobs, 34))  # 16, 16 and 2 samples: micro-batches are ragged, and empty
    truth = parallel.train(job, on="simulation")
    report, whole = (
        parallel.train(job, Synchronous(1e-6, accumulate=m), nodes, on="simulation") for m in (accumulate, 1)
    )
    assert 0 < np.abs(weights(report) - weights(truth)).max() < 1e-10
    assert report.history[-1]["loss"] == pytest.approx(truth.history[-1]["loss"], rel=1e-10)
    assert [row["bytes"] for row in report.history] == [row["bytes"] for row in whole.history]


def test_a_compressor_gets_the_sum_over_the_micro_batches():
    strategies = [Synchronous(compressor=compress.TopK(0.5), accumulate=k) for k in (1, 3)]
    once, thrice = (weights(parallel.train(small_job(), strategy, 2, on="simulation")) for strategy in strategies)
    assert np.abs(once - thrice).max() < 1e-10


def test_numbers_that_cannot_be_are_refused():
    for setting, number, error in (("shards", 0, ValueError), ("micro_batches", True, TypeError)):
        with pytest.raises(error, match=f"Serial: {setting} must be .*at least 1, got"):
            Serial(**{setting: number})
    with pytest.raises(TypeError, match=r"accumulate must be .*at least 1, got"):
        Synchronous(accumulate=1.5)
    with pytest.raises(ValueError, match="batch_norm must be 'local' or 'synchronized', got 'global'"):
        Synchronous(batch_norm="global")
