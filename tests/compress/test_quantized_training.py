"""Quantizers, codes and PowerSGD at work: a model trained by `Synchronous` with each of them."""

import numpy as np
import pytest

from minidl import parallel
from minidl.compress import (
    QSGD,
    ErrorFeedback,
    Half,
    Lossless,
    OneBit,
    PowerSGD,
    QuantizedAllReduce,
    Sign,
    TernGrad,
)
from minidl.parallel import Synchronous
from tests.parallel.jobs import small_job

pytestmark = pytest.mark.timeout(300)

COMPRESSORS = [
    Half("bf16"),
    Lossless(QSGD(15, 64)),
    QuantizedAllReduce(QSGD(15, 64)),
    TernGrad(),
    ErrorFeedback(OneBit()),
    ErrorFeedback(Sign()),
    ErrorFeedback(PowerSGD(1)),
    ErrorFeedback(QuantizedAllReduce(QSGD(15, 64))),
]


def weights(report: parallel.Report) -> np.ndarray:
    return np.concatenate([array.reshape(-1) for array in report.checkpoint.model.values()])


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=repr)
def test_nodes_agree_to_the_bit_and_learn(compressor):
    report = parallel.train(small_job(epochs=10), Synchronous(compressor=compressor), 3, "simulation")
    assert len(set(report.digests)) == 1
    assert report.history[-1]["loss"] < 0.6 * report.history[0]["loss"]
    assert report.accuracy > 0.6  # three classes


def test_on_processes_training_ends_with_the_bits_of_the_simulation():
    strategy = Synchronous(compressor=Lossless(QSGD(3, 16)))
    truth = parallel.train(small_job(), strategy, 2, "simulation")
    assert parallel.train(small_job(), strategy, 2).digests == truth.digests


def test_a_lossless_code_changes_nothing_but_the_bytes():
    plain = parallel.train(small_job(), Synchronous(compressor=QSGD(63, 64)), 2, "simulation")
    coded = parallel.train(small_job(), Synchronous(compressor=Lossless(QSGD(63, 64))), 2, "simulation")
    assert coded.digests == plain.digests


def test_power_sgd_of_the_full_rank_trains_as_one_node():
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), Synchronous(compressor=PowerSGD(5)), 3, "simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10


def test_half_precision_trains_nearly_as_one_node():
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), Synchronous(compressor=Half("fp16")), 3, "simulation")
    assert 0 < np.abs(weights(report) - weights(truth)).max() < 1e-2


def test_what_powers_remember_cannot_be_resumed(tmp_path):
    parallel.train(small_job(), Synchronous(compressor=PowerSGD(1)), 2, "simulation", folder=tmp_path)
    with pytest.raises(ValueError, match="cannot go on from a checkpoint"):
        checkpoint = tmp_path / "checkpoint.npz"
        parallel.train(small_job(epochs=4), Synchronous(compressor=PowerSGD(1)), 2, "simulation", resume=checkpoint)
