"""Gradient clipping: the gradient that the optimizer gets has at most the norm asked for, alike on all nodes."""

from functools import partial

import numpy as np
import pytest

from minidl import compress, nn, optim, parallel
from minidl.parallel import (
    BackupWorkers,
    EagerSGD,
    ElasticAveraging,
    Ensemble,
    Gossip,
    Hogwild,
    LocalSGD,
    NonFiniteLoss,
    OneShotAveraging,
    ParameterServer,
    Serial,
    SufficientFactors,
    Synchronous,
)
from tests.parallel.jobs import blobs, momentum_sgd, small_job, weights
from tests.parallel.test_synchronized_batch_norm import job as batch_norm_job

CLIP = 0.2


class Measured(optim.SGD):
    """Fails for a gradient that is longer than CLIP."""

    def step(self):
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = np.sqrt(sum(float((g * g).sum()) for g in gradients))
        assert norm < CLIP * (1 + 1e-9), f"a gradient of norm {norm} reached the optimizer"
        super().step()


def clipped_job(**changes):
    return small_job(**{"clip_norm": CLIP, "optimizer": partial(Measured, lr=0.1, momentum=0.9)} | changes)


def serial(job):
    """One node's weights."""
    return weights(parallel.train(job, Serial(), on="simulation"))


def test_serial_clips_as_a_plain_loop_with_clip_grad_norm_does():
    class Clipped(optim.SGD):
        def step(self):
            nn.clip_grad_norm_(self.param_groups[0]["params"], CLIP)
            super().step()

    truth = serial(small_job(optimizer=partial(Clipped, lr=0.1, momentum=0.9)))
    np.testing.assert_array_equal(serial(clipped_job()), truth)
    assert np.abs(truth - serial(small_job(optimizer=partial(optim.SGD, lr=0.1, momentum=0.9)))).max() > 1e-2


RAGGED = clipped_job(data=partial(blobs, 34))  # the last minibatch has 2 samples, so that one of three shares is empty
SYNCHRONOUS = {
    "one bucket a parameter": (RAGGED, Synchronous(bucket_mb=1e-6, overlap=True)),
    "accumulated": (RAGGED, Synchronous(accumulate=3)),
    "with error feedback": (RAGGED, Synchronous(compressor=compress.ErrorFeedback(compress.TopK(1.0)))),
    "some factors": (RAGGED, SufficientFactors(hybrid=True)),
    "batch norm": (batch_norm_job(clip_norm=CLIP), Synchronous(1e-6, batch_norm="synchronized")),
}


@pytest.mark.parametrize(("job", "strategy"), SYNCHRONOUS.values(), ids=SYNCHRONOUS)
def test_synchronous_nodes_clip_the_mean_gradient_as_one_node_does(job, strategy):
    report = parallel.train(job, strategy, nodes=3, on="simulation")
    assert np.abs(weights(report) - serial(job)).max() < 1e-10
    assert len(set(report.digests)) == 1


ONE_NODE = {
    "parameter server": ParameterServer(),
    "three servers": ParameterServer(servers=3),
    "backup workers": BackupWorkers(0),
    "eager": EagerSGD(),
    "hogwild": Hogwild(),
    "locked hogwild": Hogwild(locked=True),
    "local": LocalSGD(period=4),
    "one shot": OneShotAveraging(),
    "gossip": Gossip("full"),
    "ensemble": Ensemble(),
}


def test_one_node_of_any_strategy_clips_as_serial_does():
    truth = serial(clipped_job(epochs=2))
    for name, strategy in ONE_NODE.items():
        report = parallel.train(clipped_job(epochs=2), strategy, nodes=1, on="simulation")
        assert np.abs(weights(report) - truth).max() < 1e-10, name


MANY_NODES = ONE_NODE | {
    "stale": ParameterServer(servers=2, staleness=1),
    "elastic": ElasticAveraging(alpha=0.3),
    "elastic in turn": ElasticAveraging(alpha=0.3, variant="round_robin"),
    "synchronous elastic": ElasticAveraging(alpha=0.3, variant="synchronous"),
    "random gossip": Gossip("random"),
    "asynchronous gossip": Gossip(asynchronous=True),
}


@pytest.mark.parametrize("strategy", MANY_NODES.values(), ids=MANY_NODES)
def test_no_strategy_gives_its_optimizer_a_longer_gradient(strategy):
    reports = [
        parallel.train(clipped_job(clip_norm=clip, optimizer=rule, epochs=1), strategy, nodes=4, on="simulation")
        for clip, rule in ((CLIP, partial(Measured, lr=0.1)), (None, partial(optim.SGD, lr=0.1)))
    ]
    assert np.abs(weights(reports[0]) - weights(reports[1])).max() > 1e-3  # there was something to clip


def test_workers_clip_before_they_push_a_quorum_clips_the_mean():
    """With all workers at the same weights: the mean of three clipped gradients, or the clipped mean of three."""
    settings = {"optimizer": partial(optim.SGD, lr=0.1), "schedule": None, "epochs": 1, "batch_size": 20}
    job = clipped_job(**settings)
    model = job.build_model()
    train = job.build_data().train
    order = job.order(train, 3, len(train))(0)
    vectors = []
    for worker in range(3):
        model.zero_grad()
        job.loss(model(train.x[order[worker::3]]), train.y[order[worker::3]]).backward()
        vectors.append(np.concatenate([p.grad.reshape(-1) for p in model.parameters()]))
    start = np.concatenate([p.numpy().reshape(-1) for p in model.parameters()])

    def clip(g):
        return g * min(1.0, CLIP / (np.linalg.norm(g) + 1e-6))

    pushed = parallel.train(job, ParameterServer(staleness=0), nodes=3, on="simulation")
    # the workers push one after the other, and all have fetched the first weights
    np.testing.assert_allclose(weights(pushed), start - 0.1 * sum(map(clip, vectors)), rtol=0, atol=1e-12)
    quorum = parallel.train(job, BackupWorkers(0), nodes=3, on="simulation")
    np.testing.assert_allclose(weights(quorum), start - 0.1 * clip(np.mean(vectors, axis=0)), rtol=0, atol=1e-12)


def test_an_infinite_gradient_ends_as_a_loss_that_is_not_finite():
    def steep(outputs, labels):
        return ((outputs - outputs.detach()) ** 0.5).mean()  # 0, where the slope is infinite

    job = clipped_job(optimizer=momentum_sgd, loss=steep)
    with pytest.raises(NonFiniteLoss):
        parallel.train(job, Synchronous(), nodes=2, on="simulation")


def test_a_norm_that_cannot_be_is_refused():
    for clip_norm in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"clip_norm must be .*above 0, got {clip_norm}: None switches"):
            small_job(clip_norm=clip_norm)
    for clip_norm in ("1", True, (1.0,)):
        with pytest.raises(TypeError, match="clip_norm must be a number above 0, got"):
            small_job(clip_norm=clip_norm)


def test_a_gradient_whose_squares_are_too_large_for_its_dtype_is_clipped_all_the_same():
    w = nn.Parameter(np.zeros(2, np.float32))
    w.grad = np.array([3e30, 4e30], np.float32)
    assert nn.clip_grad_norm_([w], 1.0) == pytest.approx(5e30)
    np.testing.assert_allclose(w.grad, [0.6, 0.8], rtol=1e-6)
