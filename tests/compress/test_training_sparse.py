"""Training with sparse gradients: equal to dense training where it must be, on every engine the same on all nodes."""

from functools import partial

import numpy as np
import pytest

from minidl import optim, parallel
from minidl.compress import DGC, ErrorFeedback, RandomK, Threshold, TopK
from tests.parallel.jobs import small_job

pytestmark = pytest.mark.timeout(300)

plain_sgd = partial(optim.SGD, lr=0.1)
momentum_sgd = partial(optim.SGD, lr=0.1, momentum=0.9)


def weights(report):
    return np.concatenate([array.reshape(-1) for array in report.checkpoint.model.values()])


def trained(compressor, optimizer=plain_sgd, nodes=3, on="simulation"):
    strategy = parallel.Synchronous(compressor=compressor)
    return parallel.train(small_job(optimizer=optimizer), strategy, nodes=nodes, on=on)


@pytest.mark.parametrize(
    "lossless",
    [
        TopK(1.0),
        TopK(1.0, all_reduce="split"),
        Threshold(0.0, all_reduce="recursive_doubling"),
        RandomK(1.0),
        ErrorFeedback(TopK(1.0)),
    ],
    ids=str,
)
def test_what_loses_nothing_trains_as_one_node(lossless):
    truth, report = parallel.train(small_job(optimizer=momentum_sgd)), trained(lossless, momentum_sgd)
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10
    assert len(set(report.digests)) == 1


@pytest.mark.parametrize("compressor", [DGC(0.1, clip=1.0), ErrorFeedback(TopK(0.1, all_reduce="split"))], ids=str)
def test_processes_train_to_the_bits_of_the_simulation(compressor):
    assert trained(compressor, on="processes").digests == trained(compressor).digests


def test_dense_dgc_without_masking_trains_as_momentum_sgd_on_one_node():
    truth = parallel.train(small_job(optimizer=momentum_sgd))
    for clip in (None, 1e6):
        report = trained(DGC(1.0, 0.9, clip=clip, warmup=(), masking=False))
        assert np.abs(weights(report) - weights(truth)).max() < 1e-10
        assert len(set(report.digests)) == 1


def test_one_node_clips_as_clip_grad_norm_does():
    from minidl.nn import clip_grad_norm_

    class Clipped(optim.SGD):
        def step(self):
            clip_grad_norm_([p for group in self.param_groups for p in group["params"]], 0.1)
            super().step()

    truth = parallel.train(small_job(optimizer=partial(Clipped, lr=0.1, momentum=0.9)))
    report = trained(DGC(1.0, 0.9, clip=0.1, warmup=(), masking=False), nodes=1)
    assert np.abs(weights(report) - weights(truth)).max() < 1e-5  # clip_grad_norm_ adds 1e-6 to the norm
    assert np.abs(weights(trained(DGC(1.0, 0.9, warmup=(), masking=False), nodes=1)) - weights(truth)).max() > 1e-3


@pytest.mark.parametrize("compressor", [TopK(0.2), Threshold(0.02), RandomK(0.2, seed=None)], ids=str)
def test_however_the_messages_are_added_up_training_is_the_same_to_rounding(compressor):
    def with_way(way):
        settings = {"density": 0.2} if hasattr(compressor, "density") else {"tau": 0.02}
        settings |= {"seed": None} if isinstance(compressor, RandomK) else {}
        return ErrorFeedback(type(compressor)(**settings, all_reduce=way))

    reports = [trained(with_way(way)) for way in ("gather", "split", "recursive_doubling")]
    for report in reports:
        assert len(set(report.digests)) == 1
        assert np.abs(weights(report) - weights(reports[0])).max() < 1e-12


def test_the_epoch_reaches_the_warm_up_and_the_messages_become_shorter():
    report = trained(DGC(0.02, warmup=(1.0, 0.5)))
    nbytes = np.diff([0, *(row["bytes"] for row in report.history)])
    assert nbytes[0] > nbytes[1] > nbytes[2]


def test_dgc_and_momentum_in_the_optimizer_are_refused_before_the_run():
    with pytest.raises(ValueError, match="DGC has momentum of its own"):
        trained(DGC(0.1), momentum_sgd)
    trained(DGC(0.1, momentum_correction=False), momentum_sgd)


def test_a_run_whose_nodes_keep_residuals_cannot_be_resumed(tmp_path):
    parallel.train(small_job(optimizer=plain_sgd), folder=tmp_path)
    for compressor in (ErrorFeedback(TopK(0.1)), DGC(0.1)):
        with pytest.raises(ValueError, match="cannot go on from a checkpoint"):
            job, strategy = small_job(optimizer=plain_sgd, epochs=5), parallel.Synchronous(compressor=compressor)
            parallel.train(job, strategy, nodes=2, resume=tmp_path / "checkpoint.npz")


def test_error_feedback_trains_where_top_k_alone_stays_behind():
    job = partial(small_job, optimizer=plain_sgd, schedule=None, epochs=8)
    losses = [
        parallel.train(job(), parallel.Synchronous(compressor=c), 2, "simulation").history[-1]["loss"]
        for c in (None, ErrorFeedback(TopK(0.02)), TopK(0.02))
    ]
    dense, kept, lost = losses
    assert dense < lost
    assert kept < lost
    assert abs(kept - dense) < 0.5 * abs(lost - dense)
