"""Ensembles: members are serial runs from other seeds, and together they are no worse than they are on average."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import cluster, nn, parallel
from minidl.parallel import Ensemble
from minidl.parallel.run.evaluation import evaluate_ensemble
from tests.parallel.jobs import dropout_job, small_job


def test_member_k_is_serial_from_seed_plus_k_and_predictions_are_averaged():
    """Dropout and shards too: each member has the masks and the samples of its own seed."""
    job = dropout_job(shards="by_label")
    report = parallel.train(job, Ensemble(), nodes=3, on="simulation")
    assert report.trace.ledger() == [{}, {}, {}]  # members exchange nothing
    truths = [parallel.train(replace(job, seed=job.seed + k), on="simulation") for k in range(3)]
    assert report.digests == [truth.digests[0] for truth in truths]
    for name in ("test_loss", "accuracy"):
        members = [numbers[0] for numbers in report.recorded[name]]
        assert members == pytest.approx([truth.history[-1][name] for truth in truths], rel=1e-12)
    together = evaluate_ensemble(job, [truth.model() for truth in truths], job.build_data().test)
    assert (report.history[-1]["test_loss"], report.accuracy) == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize("members", ["all", "shard"])
def test_the_rate_falls_with_a_members_own_passes(members):
    report = parallel.train(small_job(epochs=4), Ensemble(members), 5, "simulation")  # halved every two epochs
    assert [row["lr"] for row in report.history] == pytest.approx([0.1, 0.05, 0.05, 0.025])


@pytest.mark.parametrize("members", ["all", "shard"])
def test_the_loss_of_the_ensemble_is_at_most_the_mean_loss_of_its_members(members):
    job = small_job(shards="fixed", batch_size=8)
    report = parallel.train(job, Ensemble(members), nodes=4, on="simulation")
    losses = [numbers[0] for numbers in report.recorded["test_loss"]]
    assert report.history[-1]["test_loss"] < np.mean(losses)  # strictly: the members differ
    assert len(set(report.digests)) == 4


@pytest.mark.parametrize(("members", "readings", "steps"), [("all", 3, 4), ("shard", 1, 2)])
def test_the_history_counts_a_members_steps_and_the_samples_that_all_members_read(members, readings, steps):
    """60 samples, or 20, in minibatches of 16."""
    node = cluster.Node(flops_per_s=1e6, bytes_per_s=1e10)
    report = parallel.train(small_job(), Ensemble(members), 3, cluster.Simulation(node=node))
    assert [row["samples"] for row in report.history] == [epoch * 60 * readings for epoch in (1, 2, 3)]
    assert report.history[-1]["steps"] == 3 * steps
    assert all(row["samples_per_second"] == row["samples"] / row["seconds"] for row in report.history)
    assert sum(samples for rank in report.results for _, samples in rank.losses) == report.history[-1]["samples"]


def test_what_does_not_fit_is_said_in_a_sentence():
    with pytest.raises(ValueError, match="give Job a function that makes the model"):
        parallel.train(small_job(model=nn.models.MLP(5, 8, 3)), Ensemble(), nodes=2)
    with pytest.raises(ValueError, match="this model has buffers"):
        parallel.train(small_job(model=partial(nn.BatchNorm2d, 5)), Ensemble(), nodes=2)


class Failing(Ensemble):
    """Member 2 fails in its second pass."""

    def run(self, session):
        if session.comm.rank == 2:
            session.advance_schedule = lambda samples: 1 / (session.epoch == 0)
        super().run(session)


def test_without_a_member_that_failed_the_others_are_the_ensemble():
    job = small_job()
    report = parallel.train(job, Failing(), 3, "simulation", on_failure="continue")
    assert list(report.failures) == [2]
    truths = [parallel.train(replace(job, seed=job.seed + k), on="simulation") for k in range(2)]
    together = evaluate_ensemble(job, [truth.model() for truth in truths], job.build_data().test)
    assert (report.history[-1]["test_loss"], report.accuracy) == pytest.approx(together, rel=1e-12)
