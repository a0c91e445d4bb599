"""SandblasterLBFGS: equal to serial L-BFGS, with the same bits whoever computes what; only scalars are commanded."""

from collections import defaultdict
from functools import partial

import numpy as np
import pytest

from minidl import Tensor, cluster, functional, nn, optim, parallel
from minidl.data import Splits
from minidl.parallel import SandblasterLBFGS
from minidl.parallel.batch import LBFGS
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.servers.vectors import Vectors
from tests.parallel.jobs import blobs, normalized, small_job, two_layers, weights, wide

pytestmark = pytest.mark.timeout(300)


class Weighted(nn.CrossEntropyLoss):
    """Classes count 0.4, 1.7 and 0.9."""

    def __init__(self):
        super().__init__(weight=np.array([0.4, 1.7, 0.9]))


def job(**changes):
    """60 samples in portions of 7, the last of 4."""
    settings = {"optimizer": partial(optim.SGD, lr=0.1), "schedule": None, "batch_size": 7, "epochs": 12}
    return small_job(**(settings | changes))


def trained(job, strategy, nodes, on="simulation", **terms):
    return parallel.train(job, strategy, nodes, on, timeout=120, **terms)


def serial(job):
    """L-BFGS on the gradient of the whole training set at once: weights and losses of the steps."""
    model, (x, y) = job.build_model(), job.build_data().train[:]
    parameters = list(model.parameters())
    vectors, losses, evaluations = Vectors({"w": vector.weights(parameters)}), [], 0

    def evaluate():
        nonlocal evaluations
        evaluations += 1
        vector.set_weights(parameters, vectors.arrays["trial"])
        model.zero_grad()
        loss = job.loss(model(Tensor(x)), y)
        loss.backward()
        vectors.arrays["trial g"] = vector.gradient(parameters)
        return loss.item()

    lbfgs = LBFGS(vectors, evaluate, history=3)
    while evaluations < job.epochs and lbfgs.step(job.epochs - evaluations):
        losses.append(lbfgs.loss)
    return vectors.arrays["w"], losses


def test_it_is_serial_lbfgs_on_any_number_of_shards_and_workers():
    given = job(loss=Weighted())
    expected, losses = serial(given)
    assert losses[-1] < 0.1 * losses[0]
    for shards, nodes in ((1, 1), (2, 3), (3, 1), (4, 4)):
        report = trained(given, SandblasterLBFGS(shards, history=3), nodes)
        np.testing.assert_allclose(weights(report), expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(report.recorded["loss"][nodes], losses, rtol=1e-10)
    assert [row["samples"] for row in report.history] == [60 * epoch for epoch in range(1, 13)]
    assert report.history[-1]["steps"] == len(losses)


def test_speeds_backups_dropout_and_engines_change_no_bit():
    given = job(model=partial(two_layers, 0.3), epochs=6)
    plain = weights(trained(given, SandblasterLBFGS(2), 1))
    node = cluster.Node(1e7, np.inf, jitter=0.5)
    for backups in (True, False):
        engine = cluster.Simulation(node=node, network="1gbe")
        faults = cluster.FaultPlan().slow(0, 20.0)
        report = trained(given, SandblasterLBFGS(2, backups=backups), 4, engine, faults=faults)
        np.testing.assert_array_equal(weights(report), plain)
    np.testing.assert_array_equal(weights(trained(given, SandblasterLBFGS(2), 2, "processes")), plain)


def test_between_coordinator_and_shards_only_scalars_travel():
    given, nodes = job(model=partial(wide, 40), epochs=4), 3
    report = trained(given, SandblasterLBFGS(2), nodes)
    coordinator, shards = nodes, (nodes + 1, nodes + 2)
    sent = defaultdict(list)
    for event in report.trace.events:
        if event.kind == "send":
            sent[event.rank, event.peer].append(event.nbytes)
    vectors = 8 * weights(report).size // 2
    for shard in shards:
        assert max(sent[coordinator, shard]) < 200 < vectors
        assert max(sent[shard, coordinator]) < 200
        assert max(max(sent[worker, shard]) for worker in range(nodes)) >= vectors
        assert max(max(sent[shard, worker]) for worker in range(nodes)) >= vectors
    assert all(max(sent[worker, coordinator]) < 200 for worker in range(nodes))


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_a_worker_that_dies_changes_no_bit(on):
    given = job(epochs=5)
    expected = weights(trained(given, SandblasterLBFGS(2), 1))
    faults = cluster.FaultPlan().kill(1, at=("isend", 9))
    report = trained(given, SandblasterLBFGS(2), 3, on, faults=faults, on_failure="continue")
    assert list(report.failures) == [1]
    np.testing.assert_array_equal(weights(report), expected)


def test_a_run_at_a_minimum_ends_and_its_remaining_epochs_have_those_weights():
    given = job(model=linear, loss=half_squares, epochs=300, batch_size=31)
    report = trained(given, SandblasterLBFGS(), 2)
    assert len(report.history) == 300
    assert report.history[-1]["steps"] < 40
    assert np.abs(report.recorded["loss"][2][-1] - report.recorded["loss"][2][-2]) < 1e-6


def barrier(outputs, labels):
    """Not finite where an output is above 1.7."""
    with np.errstate(all="ignore"):
        return outputs.mean() * -3.1 - 0.07 * functional.log(1.7 - outputs).mean()


def test_a_trial_with_a_loss_that_is_not_finite_is_a_step_too_long_as_in_serial_lbfgs():
    train = blobs().train
    given = job(model=from_zero, loss=barrier, data=Splits(train, train), epochs=15)
    expected, losses = serial(given)
    report = trained(given, SandblasterLBFGS(2, history=3), 3)
    assert not all(np.isfinite(row["loss"]) for row in report.history)
    np.testing.assert_allclose(report.recorded["loss"][3], losses, rtol=1e-10)
    np.testing.assert_allclose(weights(report), expected, rtol=1e-10, atol=1e-10)
    with pytest.raises(parallel.NonFiniteLoss, match="the loss is nan at epoch 1, step 1"):
        trained(job(loss=lambda outputs, labels: outputs.mean() * np.nan), SandblasterLBFGS(2), 3)


def from_zero():
    model = linear()
    for parameter in model.parameters():
        parameter.data[...] = 0.0
    return model


def linear():
    return nn.Linear(5, 3).double()


def mixture():
    return nn.Sequential(nn.Linear(5, 4), nn.MixtureOfExperts(4, 3, experts=2), nn.Linear(4, 3)).double()


def half_squares(outputs, labels):
    return ((outputs - np.eye(3)[labels]) ** 2).mean()


def test_in_sixteen_bits_the_shards_compute_with_more():
    given = job(precision="bfloat16", epochs=8)
    losses = trained(given, SandblasterLBFGS(2), 2).recorded["loss"][2]
    whole = trained(job(epochs=8), SandblasterLBFGS(2), 2).recorded["loss"][2]
    assert losses[-1] < 0.5 * losses[0]
    np.testing.assert_allclose(losses[:3], whole[:3], rtol=0.05)


def test_what_l_bfgs_cannot_minimise_is_refused():
    for changes, sentence in (
        ({"model": normalized}, "running statistics, as of batch norm"),
        ({"clip_norm": 1.0}, "leave out clip_norm"),
        ({"model": mixture}, "layers that add losses"),
        ({"batch_schedule": lambda epoch: 4 + epoch}, "leave out .*batch_schedule"),
        ({"optimizer": partial(optim.SGD, lr=0.1, weight_decay=1e-3)}, "use an optimizer with weight_decay=0"),
        ({"data": partial(blobs, 3)}, "3 samples cannot be dealt to 4 nodes"),
    ):
        with pytest.raises(ValueError, match=sentence):
            trained(job(**changes), SandblasterLBFGS(), 4)
