"""Gradients accumulated over micro-batches equal those of the whole share of a minibatch."""

from functools import partial

import numpy as np
import pytest

from minidl import compress, parallel
from minidl.parallel import Synchronous
from tests.parallel.jobs import blobs, small_job
from tests.parallel.test_strategies import Uneven, weights

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(("nodes", "accumulate"), [(1, 3), (3, 2), (2, 7)])
def test_the_gradients_of_micro_batches_add_up_to_that_of_the_minibatch(nodes, accumulate):
    job = small_job(model=Uneven, data=partial(blobs, 34))  # 16, 16 and 2 samples: micro-batches are ragged, and empty
    truth = parallel.train(job, on="simulation")
    report = parallel.train(job, Synchronous(1e-6, accumulate=accumulate), nodes, on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10
    assert report.history[-1]["loss"] == pytest.approx(truth.history[-1]["loss"], rel=1e-10)
    whole = parallel.train(job, Synchronous(1e-6), nodes, on="simulation")
    assert [row["bytes"] for row in report.history] == [row["bytes"] for row in whole.history]


def test_a_compressor_gets_the_sum_over_the_micro_batches():
    strategies = [Synchronous(compressor=compress.TopK(0.5), accumulate=k) for k in (1, 3)]
    once, thrice = (weights(parallel.train(small_job(), strategy, 2, on="simulation")) for strategy in strategies)
    assert np.abs(once - thrice).max() < 1e-10


@pytest.mark.parametrize(("accumulate", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_the_number_of_micro_batches_is_a_whole_number_of_at_least_1(accumulate, error):
    with pytest.raises(error, match=r"accumulate must be .*at least 1, got"):
        Synchronous(accumulate=accumulate)
    assert Synchronous(accumulate=np.int64(2)) == Synchronous(accumulate=2)


def test_an_unknown_batch_norm_is_refused():
    with pytest.raises(ValueError, match="batch_norm must be 'local' or 'synchronized', got 'global'"):
        Synchronous(batch_norm="global")
