"""Outer momentum of local SGD: what it equals, that it stays bounded, and that it learns."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import Job, LocalSGD, Synchronous
from tests.parallel.averaging.test_local_sgd import Normed
from tests.parallel.jobs import blobs, small_job, weights
from tests.parallel.quadratic import Point

pytestmark = pytest.mark.timeout(300)

plain = partial(optim.SGD, lr=0.1, weight_decay=1e-3)
DILOCO = LocalSGD(period=4, outer_lr=0.7, outer_momentum=0.9, outer_nesterov=True, outer_form="v")


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("form", ["u", "v"])
def test_a_period_of_one_with_plain_sgd_is_synchronous_with_momentum(form, nesterov):
    """Also where the rate falls: the schedule is the inner one, and the rates of momentum SGD are outer_lr times it.

    The last minibatch has one sample, so that two of three shares are empty.
    """
    n = 61
    job = small_job(data=partial(blobs, n), batch_size=15, optimizer=plain, epochs=4)
    strategy = LocalSGD(period=1, outer_lr=0.5, outer_momentum=0.8, outer_nesterov=nesterov, outer_form=form)
    report = parallel.train(job, strategy, nodes=3, on="simulation")
    momentum = partial(optim.SGD, lr=0.05, weight_decay=1e-3, momentum=0.8, nesterov=nesterov, momentum_form=form)
    truth = parallel.train(
        small_job(data=partial(blobs, n), batch_size=15, optimizer=momentum, epochs=4), Synchronous(), 3, "simulation"
    )
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    assert len(set(report.digests)) == 1


def test_the_forms_differ_where_the_rate_changes_and_only_there():
    settings = {"period": 4, "outer_lr": 0.7, "outer_momentum": 0.9, "outer_nesterov": True}

    def trained(form, **changes):
        job = small_job(optimizer=plain, **changes)
        return weights(parallel.train(job, LocalSGD(**settings, outer_form=form), nodes=3, on="simulation"))

    assert np.abs(trained("u", schedule=None) - trained("v", schedule=None)).max() < 1e-12
    assert np.abs(trained("u") - trained("v")).max() > 1e-4


def test_without_outer_momentum_at_an_outer_rate_of_one_the_bits_are_those_of_the_mean():
    """And where the outer step is made all the same, it is the mean to rounding."""
    job = small_job(optimizer=plain)
    plain_mean = parallel.train(job, LocalSGD(period=4), nodes=3, on="simulation")
    same = parallel.train(job, LocalSGD(period=4, outer_form="v", outer_lr=1), nodes=3, on="simulation")
    nearly = parallel.train(job, LocalSGD(period=4, outer_lr=1 - 1e-12), nodes=3, on="simulation")
    assert same.digests == plain_mean.digests
    assert np.abs(weights(nearly) - weights(plain_mean)).max() < 1e-10


def test_an_outer_rate_of_a_half_goes_half_of_the_way_to_the_mean():
    job = small_job(optimizer=plain, epochs=1, batch_size=60)  # a single round of a single step
    start = np.concatenate([p.numpy().reshape(-1) for p in job.build_model().parameters()])
    whole, half = (weights(parallel.train(job, LocalSGD(outer_lr=lr), nodes=3, on="simulation")) for lr in (1.0, 0.5))
    assert np.abs(half - (start + whole) / 2).max() < 1e-14


def test_all_nodes_keep_the_same_weights_on_processes_as_well():
    job = small_job(data=partial(blobs, 61))
    reports = [parallel.train(job, DILOCO, nodes=2, on=on) for on in ("processes", "simulation")]
    assert len(set(reports[0].digests)) == 1
    assert np.abs(weights(reports[0]) - weights(reports[1])).max() < 1e-10


def test_every_group_of_parameters_has_its_own_inner_rate():
    """A group at rate 0 stays where it is; the other moves as if it was alone."""

    def grouped(parameters, second, momentum):
        first, *rest = parameters
        return optim.SGD([{"params": [first], "lr": 0.1}, {"params": rest, "lr": second}], momentum=momentum)

    for second in (0.0, 0.3):
        inner, momentum = (partial(grouped, second=second, momentum=momentum) for momentum in (0.0, 0.8))
        truth = parallel.train(small_job(optimizer=momentum), Synchronous(), 3, "simulation")
        report = parallel.train(small_job(optimizer=inner), LocalSGD(period=1, outer_momentum=0.8), 3, "simulation")
        assert np.abs(weights(report) - weights(truth)).max() < 1e-12


def test_the_outer_step_leaves_running_statistics_at_their_mean():
    job = small_job(model=Normed, batch_size=60, epochs=1, shards="by_label")
    report = parallel.train(job, LocalSGD(period=1, outer_lr=0.5), nodes=3, on="simulation")
    x = job.build_data().train.x
    assert np.abs(report.checkpoint.model["norm.running_mean"] - 0.1 * x.mean(axis=0)).max() < 1e-12


def apart() -> Splits:
    """Two nodes that pull towards 3 and -1: the mean of their optima is 1."""
    y = np.repeat([3, -1], 10)
    return Splits(Dataset(np.ones((20, 1)), y), Dataset(np.ones((20, 1)), y))


def distance(outputs, labels):
    return ((outputs.reshape(-1) - labels) ** 2).mean() * 0.5


@pytest.mark.parametrize(("lr", "strategy"), [(0.1, DILOCO), (0.5, replace(DILOCO, period=50))], ids=["4", "50"])
def test_many_steps_on_a_quadratic_stay_bounded(lr, strategy):
    job = Job(
        model=Point,
        data=apart,
        optimizer=partial(optim.SGD, lr=lr),
        loss=distance,
        batch_size=2,
        epochs=40,
        shards="by_label",
    )
    report = parallel.train(job, strategy, nodes=2, on="simulation")
    assert report.history[-1]["steps"] == 400
    lowest = 2.0  # of the loss, at 1
    assert max(row["test_loss"] for row in report.history) < 10
    assert report.history[-1]["test_loss"] == pytest.approx(lowest, abs=1e-3)
    assert len(set(report.digests)) == 1


def test_nesterovs_momentum_without_momentum_is_refused():
    with pytest.raises(ValueError, match="LocalSGD: outer_nesterov needs an outer_momentum above 0"):
        LocalSGD(outer_nesterov=True)
