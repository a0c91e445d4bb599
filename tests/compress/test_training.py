"""Training with compressed gradients: as dense training where it must be, the same on all nodes; and it learns."""

from functools import partial

import numpy as np
import pytest

from minidl import optim, parallel
from minidl.compress import (
    DGC,
    QSGD,
    ErrorFeedback,
    Half,
    Lossless,
    OneBit,
    PowerSGD,
    QuantizedAllReduce,
    RandomK,
    TernGrad,
    Threshold,
    TopK,
)
from minidl.nn import clip_grad_norm_
from minidl.parallel import Synchronous
from tests.parallel.jobs import small_job
from tests.together import naming

pytestmark = pytest.mark.timeout(300)

plain_sgd = partial(optim.SGD, lr=0.1)
momentum_sgd = partial(optim.SGD, lr=0.1, momentum=0.9)


def weights(report):
    return np.concatenate([array.reshape(-1) for array in report.checkpoint.model.values()])


def trained(compressor, optimizer=plain_sgd, nodes=3, on="simulation"):
    return parallel.train(small_job(optimizer=optimizer), Synchronous(compressor=compressor), nodes=nodes, on=on)


def test_what_loses_nothing_trains_as_one_node():
    truth = weights(parallel.train(small_job(optimizer=momentum_sgd), on="simulation"))
    for lossless in (
        TopK(1.0),
        TopK(1.0, all_reduce="split"),
        Threshold(0.0, all_reduce="recursive_doubling"),
        RandomK(1.0),
        ErrorFeedback(TopK(1.0)),
        PowerSGD(5),  # the rank of the largest matrix
    ):
        with naming(lossless):
            report = trained(lossless, momentum_sgd)
            assert np.abs(weights(report) - truth).max() < 1e-10
            assert len(set(report.digests)) == 1
    assert 0 < np.abs(weights(trained(Half("fp16"), momentum_sgd)) - truth).max() < 1e-2


@pytest.mark.parametrize(
    "compressor",
    [
        TernGrad(),
        ErrorFeedback(OneBit()),
        ErrorFeedback(PowerSGD(1)),
        ErrorFeedback(QuantizedAllReduce(QSGD(15, 64))),
    ],
    ids=repr,
)
def test_nodes_agree_to_the_bit_and_learn(compressor):
    report = parallel.train(small_job(epochs=10), Synchronous(compressor=compressor), 3, "simulation")
    assert len(set(report.digests)) == 1
    assert report.history[-1]["loss"] < 0.6 * report.history[0]["loss"]
    assert report.accuracy > 0.6  # three classes


@pytest.mark.parametrize("compressor", [DGC(0.1, clip=1.0), Lossless(QSGD(3, 16))], ids=repr)
def test_processes_train_to_the_bits_of_the_simulation(compressor):
    assert trained(compressor, on="processes").digests == trained(compressor).digests


def test_dense_dgc_without_masking_trains_as_momentum_sgd_on_one_node_also_when_it_clips():
    class Clipped(optim.SGD):
        def step(self):
            clip_grad_norm_([p for group in self.param_groups for p in group["params"]], 0.1)
            super().step()

    dgc = partial(DGC, 1.0, 0.9, warmup=(), masking=False)
    for clip, optimizer, nodes, tolerance in [
        (None, momentum_sgd, 3, 1e-10),
        (1e6, momentum_sgd, 3, 1e-10),
        (0.1, partial(Clipped, lr=0.1, momentum=0.9), 1, 1e-5),  # clip_grad_norm_ adds 1e-6 to the norm
    ]:
        with naming(clip):
            truth = weights(parallel.train(small_job(optimizer=optimizer), on="simulation"))
            report = trained(dgc(clip=clip), nodes=nodes)
            assert np.abs(weights(report) - truth).max() < tolerance
            assert len(set(report.digests)) == 1


def test_the_epoch_reaches_the_warm_up_and_the_messages_become_shorter():
    report = trained(DGC(0.02, warmup=(1.0, 0.5)))
    nbytes = np.diff([0, *(row["bytes"] for row in report.history)])
    assert nbytes[0] > nbytes[1] > nbytes[2]


def test_a_run_whose_nodes_remember_gradients_cannot_be_resumed(tmp_path):
    parallel.train(small_job(optimizer=plain_sgd), on="simulation", folder=tmp_path)
    for compressor in (ErrorFeedback(TopK(0.1)), DGC(0.1), PowerSGD(1)):
        with naming(compressor), pytest.raises(ValueError, match="cannot go on from a checkpoint"):
            job, strategy = small_job(optimizer=plain_sgd, epochs=5), Synchronous(compressor=compressor)
            parallel.train(job, strategy, 2, "simulation", resume=tmp_path / "checkpoint.npz")
