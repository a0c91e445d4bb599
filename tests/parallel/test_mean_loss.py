"""Shares of a minibatch are weighted by what counts in the mean loss, so every strategy equals Serial."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from minidl import functional as F
from minidl import nn, parallel
from minidl.cluster import ClusterError
from minidl.data import Dataset, Splits
from minidl.parallel import (
    BackupWorkers,
    EagerSGD,
    Hybrid,
    LocalSGD,
    Pipeline,
    Serial,
    SufficientFactors,
    Synchronous,
)
from minidl.parallel.mean_loss import label_weights
from tests.parallel.jobs import plain_job, weights

CLASS_WEIGHTS = np.array([0.37, 2.9, 1.13])


def padded(label: int, n: int = 60, of_sample: tuple[int, ...] = ()) -> Splits:
    """Three classes in five dimensions; a third of the labels is padding, as are all of samples 8 to 23."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n + 29, *of_sample, 5))
    y = rng.integers(0, 3, size=(n + 29, *of_sample))
    y[rng.random(y.shape) < 0.33] = label
    y[8:24] = label
    return Splits(Dataset(x[:n], y[:n]), Dataset(x[n:], y[n:]))


def own_loss(outputs, labels):
    """The mean over the labels that are not 7."""
    counts = (labels != 7).astype(np.float64)
    losses = F.cross_entropy(outputs, np.where(labels == 7, 0, labels), reduction="none")
    return (losses * counts).sum() / counts.sum()


own_loss.label_weights = lambda labels: labels != 7

LOSSES = {
    "padding": {"data": partial(padded, -100)},
    "padding of sequences": {"data": partial(padded, -100, of_sample=(3,))},
    "class weights": {"data": partial(padded, 1), "loss": nn.CrossEntropyLoss(weight=CLASS_WEIGHTS)},
    "both": {"data": partial(padded, 0), "loss": nn.CrossEntropyLoss(weight=CLASS_WEIGHTS, ignore_index=0)},
    "a loss of one's own": {"data": partial(padded, 7), "loss": own_loss},
}

STRATEGIES = [
    (Serial(micro_batches=3), 1),
    (Serial(shards=4), 1),
    (Synchronous(), 4),
    (Synchronous(accumulate=3, algorithm="ordered"), 3),
    (SufficientFactors(), 3),
    (LocalSGD(period=1), 5),
    (Pipeline(stages=2, micro_batches=5), 2),
    (Pipeline(stages=2, micro_batches=3, recompute=True), 4),
    (Hybrid(dp=2, pp=2, micro_batches=3), 4),
]


def two_stages() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).double()


@pytest.mark.parametrize("changes", LOSSES.values(), ids=LOSSES)
def test_every_strategy_equals_serial_whatever_counts_in_its_mean(changes):
    job = plain_job(model=two_stages, batch_size=17, lr=0.31, epochs=1, **changes)
    truth = parallel.train(job, on="simulation")
    for strategy, nodes in STRATEGIES:
        report = parallel.train(job, strategy, nodes, "simulation")
        assert np.abs(weights(report) - weights(truth)).max() < 1e-12, strategy
        for row, true in zip(report.history, truth.history, strict=True):
            for name in ("loss", "test_loss", "accuracy"):
                assert row[name] == pytest.approx(true[name], rel=1e-12), (strategy, name)


@pytest.mark.parametrize("changes", LOSSES.values(), ids=LOSSES)
def test_quorums_weigh_gradients_by_what_counts(changes):
    job = partial(plain_job, model=two_stages, epochs=1, **changes)
    truth = parallel.train(job(batch_size=20), Synchronous(), 4, "simulation")
    for strategy in (BackupWorkers(0), BackupWorkers(0, abandon=True), EagerSGD(4), EagerSGD("solo", False)):
        report = parallel.train(job(batch_size=5), strategy, 4, "simulation")
        assert np.abs(weights(report) - weights(truth)).max() < 1e-12, strategy


@pytest.mark.parametrize("changes", LOSSES.values(), ids=LOSSES)
def test_evaluation_is_that_of_all_labels_that_count_at_once(changes, monkeypatch):
    monkeypatch.setattr("minidl.parallel.run.evaluation.EVALUATION_BATCH", 7)
    job = plain_job(model=two_stages, epochs=1, **changes)
    report = parallel.train(job, Synchronous(), 3, "simulation")
    x, y = job.build_data().test[:]
    outputs = report.model().eval()(x)
    assert report.history[-1]["test_loss"] == pytest.approx(job.loss(outputs, y).item(), rel=1e-12)
    counts = label_weights(job.loss, y) > 0
    right = (outputs.numpy().argmax(-1) == y)[counts]
    assert report.history[-1]["accuracy"] == pytest.approx(right.mean(), rel=1e-12)


def test_a_minibatch_of_padding_alone_changes_nothing():
    data = padded(-100)
    nothing = Splits(Dataset(data.train.x[8:24], data.train.y[8:24]), data.test)
    for strategy, nodes in [(Serial(), 1), *STRATEGIES]:
        job = plain_job(model=two_stages, data=nothing, epochs=1)
        report = parallel.train(job, strategy, nodes, "simulation")
        assert np.abs(report.checkpoint.model["0.weight"] - job.build_model().state_dict()["0.weight"]).max() < 1e-15, (
            strategy
        )
        assert np.isnan(report.history[-1]["loss"])


def test_a_loss_that_ignores_a_label_which_does_not_occur_is_a_mean_over_all_samples():
    data = padded(0)
    two = Splits(*(Dataset(one.x[one.y != 1], one.y[one.y != 1]) for one in data))
    job = plain_job(model=two_stages, data=two, batch_size=17)
    ignoring = plain_job(
        model=two_stages, data=two, batch_size=17, loss=lambda outputs, y: F.cross_entropy(outputs, y, ignore_index=1)
    )
    truth = parallel.train(job, on="simulation")
    assert np.abs(weights(parallel.train(ignoring, Synchronous(), 4, "simulation")) - weights(truth)).max() < 1e-12


@pytest.mark.parametrize(
    ("loss", "label", "sentence"),
    [
        (lambda outputs, labels: F.cross_entropy(outputs, labels), -100, "labels are -100, which marks padding"),
        (lambda outputs, labels: F.cross_entropy(outputs, labels, weight=CLASS_WEIGHTS), 1, "averages over weights of"),
        (
            lambda outputs, labels: F.cross_entropy(outputs, labels, ignore_index=2),
            2,
            r"averages over \d+ of \d+ labels",
        ),
        (nn.CrossEntropyLoss(reduction="sum"), 1, 'loss must be a mean, got reduction="sum"'),
    ],
)
def test_a_loss_that_does_not_say_what_counts_in_its_mean_is_refused(loss, label, sentence):
    with pytest.raises((ValueError, ClusterError), match=sentence):
        job = plain_job(model=two_stages, data=partial(padded, label), loss=loss)
        parallel.train(job, Synchronous(), 2, "simulation")


@pytest.mark.parametrize(
    "given",
    [lambda labels: labels.sum(), lambda labels: np.ones(2), lambda labels: -1.0 * labels, lambda labels: labels / 0.0],
    ids=["one number", "another number of labels", "negative", "not finite"],
)
def test_label_weights_that_are_not_one_for_each_label_are_refused(given):
    def loss(outputs, labels):
        return F.cross_entropy(outputs, labels)

    loss.label_weights = given
    with pytest.raises(ClusterError, match="label_weights of the loss must return how much each label counts"):
        parallel.train(plain_job(model=two_stages, loss=loss), on="simulation")


@pytest.mark.parametrize(("strategy", "nodes"), [(Serial(), 1), (Pipeline(2, 3), 2), (LocalSGD(), 3)])
def test_where_no_label_of_the_test_set_counts_its_loss_is_nan_and_the_run_goes_on(strategy, nodes):
    data = padded(-100)
    unlabelled = Splits(data.train, Dataset(data.test.x, np.full_like(data.test.y, -100)))
    report = parallel.train(plain_job(model=two_stages, data=unlabelled), strategy, nodes, "simulation")
    assert len(report.history) == 3
    assert np.isnan([row["test_loss"] for row in report.history]).all()
