"""Outer momentum of local SGD: what it equals, that it stays bounded, and that it learns."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from minidl import optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import DiLoCo, Job, LocalSGD, SlowMo, Synchronous
from minidl.parallel.averaging.local_sgd import OuterStep
from tests.parallel.averaging.test_local_sgd import Normed
from tests.parallel.jobs import blobs, small_job, weights
from tests.parallel.quadratic import Point

pytestmark = pytest.mark.timeout(300)

plain = partial(optim.SGD, lr=0.1, weight_decay=1e-3)
DILOCO = DiLoCo(period=4)


@dataclass(frozen=True)
class Outer(LocalSGD):
    """Local SGD with any outer step, those that neither SlowMo nor DiLoCo makes included."""

    lr: float = 0.7
    momentum: float = 0.9
    nesterov: bool = True
    form: str = "u"

    def after_mean(self, session):
        return OuterStep(session.optimizer, self.lr, self.momentum, self.nesterov, by_rate=self.form == "u").make


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("form", ["u", "v"])
def test_a_period_of_one_with_plain_sgd_is_synchronous_with_momentum(form, nesterov):
    """Also where the rate falls: the schedule is the inner one, and the rates of momentum SGD are outer_lr times it.

    The last minibatch has one sample, so that two of three shares are empty.
    """
    n = 61
    job = small_job(data=partial(blobs, n), batch_size=15, optimizer=plain, epochs=4)
    strategy = Outer(period=1, lr=0.5, momentum=0.8, nesterov=nesterov, form=form)
    report = parallel.train(job, strategy, nodes=3, on="simulation")
    momentum = partial(optim.SGD, lr=0.05, weight_decay=1e-3, momentum=0.8, nesterov=nesterov, momentum_form=form)
    truth = parallel.train(
        small_job(data=partial(blobs, n), batch_size=15, optimizer=momentum, epochs=4), Synchronous(), 3, "simulation"
    )
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
    assert len(set(report.digests)) == 1


def test_the_forms_differ_where_the_rate_changes_and_only_there():
    def trained(form, **changes):
        job = small_job(optimizer=plain, **changes)
        return weights(parallel.train(job, Outer(period=4, form=form), nodes=3, on="simulation"))

    assert np.abs(trained("u", schedule=None) - trained("v", schedule=None)).max() < 1e-12
    assert np.abs(trained("u") - trained("v")).max() > 1e-4


@pytest.mark.parametrize("form", ["u", "v"])
def test_without_momentum_at_an_outer_rate_of_one_the_outer_step_ends_at_the_mean(form):
    job = small_job(optimizer=plain)
    plain_mean = parallel.train(job, LocalSGD(period=4), nodes=3, on="simulation")
    outer = Outer(period=4, lr=1.0, momentum=0.0, nesterov=False, form=form)
    same = parallel.train(job, outer, nodes=3, on="simulation")
    assert np.abs(weights(same) - weights(plain_mean)).max() < 1e-10


def test_slowmo_and_diloco_are_the_outer_steps_of_their_papers():
    job = small_job(optimizer=plain)
    for strategy, outer in (
        (SlowMo(4, outer_lr=0.9, outer_momentum=0.6), Outer(4, "auto", 0.9, 0.6, nesterov=False, form="u")),
        (DiLoCo(4, outer_lr=0.6, outer_momentum=0.8), Outer(4, "auto", 0.6, 0.8, nesterov=True, form="v")),
    ):
        reports = [parallel.train(job, each, nodes=3, on="simulation") for each in (strategy, outer)]
        assert reports[0].digests == reports[1].digests


def test_an_outer_rate_of_a_half_goes_half_of_the_way_to_the_mean():
    job = small_job(optimizer=plain, epochs=1, batch_size=60)  # a single round of a single step
    start = np.concatenate([p.numpy().reshape(-1) for p in job.build_model().parameters()])
    outer = (SlowMo(outer_lr=lr, outer_momentum=0) for lr in (1.0, 0.5))
    whole, half = (weights(parallel.train(job, each, nodes=3, on="simulation")) for each in outer)
    assert np.abs(half - (start + whole) / 2).max() < 1e-14


def test_every_group_of_parameters_has_its_own_inner_rate():
    """A group at rate 0 stays where it is; the other moves as if it was alone."""

    def grouped(parameters, second, momentum):
        first, *rest = parameters
        return optim.SGD([{"params": [first], "lr": 0.1}, {"params": rest, "lr": second}], momentum=momentum)

    for second in (0.0, 0.3):
        inner, momentum = (partial(grouped, second=second, momentum=momentum) for momentum in (0.0, 0.8))
        truth = parallel.train(small_job(optimizer=momentum), Synchronous(), 3, "simulation")
        report = parallel.train(small_job(optimizer=inner), SlowMo(period=1, outer_momentum=0.8), 3, "simulation")
        assert np.abs(weights(report) - weights(truth)).max() < 1e-12


def test_the_outer_step_leaves_running_statistics_at_their_mean():
    job = small_job(model=Normed, batch_size=60, epochs=1, shards="by_label")
    report = parallel.train(job, SlowMo(period=1, outer_lr=0.5), nodes=3, on="simulation")
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
