"""What synchronous training sends: the weights once, and the gradients once a minibatch, however large that is."""

from functools import partial

import pytest

from minidl import nn, parallel
from minidl.parallel import Synchronous
from tests.parallel.jobs import blobs, small_job

pytestmark = pytest.mark.timeout(300)


def traffic(operation, **changes):
    """Messages and bytes that rank 1 of four sends in that operation."""

    def model():
        return nn.Linear(5, 3).double()  # 18 weights; with them travels who has a gradient, of two parameters

    job = small_job(model=model, data=partial(blobs, 64), **({"epochs": 1, "batch_size": 8} | changes))
    report = parallel.train(job, Synchronous(algorithm="ring"), 4, on="simulation")
    return report.trace.ledger()[1][operation]


def test_the_weights_travel_once_and_each_node_updates_its_own_copy():
    assert traffic("broadcast", epochs=1) == traffic("broadcast", epochs=3)


def test_the_bytes_a_sample_halve_when_the_minibatch_doubles():
    sent = {batch_size: traffic("all_reduce", batch_size=batch_size).nbytes for batch_size in (8, 16, 32)}
    a_minibatch = 2 * 3 * (18 + 2) * 8 // 4  # 2 (p - 1)/p n
    assert sent[8] - sent[16] == (8 - 4) * a_minibatch  # minibatches an epoch; the rest is the evaluation after it
    assert sent[16] - sent[32] == (4 - 2) * a_minibatch
