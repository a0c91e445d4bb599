"""A strategy may put another model in the place of the job's; real time decides nothing in a simulation."""

import numpy as np

from minidl import cluster, parallel
from minidl import functional as F
from minidl.parallel import Serial
from minidl.parallel.run import session
from tests.parallel.jobs import small_job, two_layers


class Other(Serial):
    def run(self, session):
        model = two_layers()
        for parameter in model.parameters():
            parameter.data[...] = 0.25
        session.model = model
        super().run(session)


def test_a_model_that_a_strategy_assigns_is_trained_clipped_evaluated_and_saved():
    def constant():
        model = two_layers()
        for parameter in model.parameters():
            parameter.data[...] = 0.25
        return model

    report = parallel.train(small_job(clip_norm=0.1), Other(), on="simulation")
    truth = parallel.train(small_job(clip_norm=0.1, model=constant), on="simulation")
    assert report.history == truth.history
    np.testing.assert_equal(report.checkpoint.model, truth.checkpoint.model)
    np.testing.assert_equal(report.checkpoint.optimizer, truth.checkpoint.optimizer)
    assert report.digests == truth.digests


SEEN: list[float] = []


def seen_loss(outputs, labels):
    SEEN.append(float(outputs.data.sum()))
    return F.cross_entropy(outputs, labels)


def test_reports_to_the_caller_which_come_by_real_time_change_no_turn_of_a_simulated_rank(monkeypatch):
    orders = []
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(session, "PROGRESS_SECONDS", seconds)
        engine = cluster.Simulation(node=cluster.Node(1e8, 1e9, speeds={0: 1.3}))
        parallel.train(small_job(loss=seen_loss), parallel.Pipeline(1), 3, engine)
        orders.append(SEEN[:])
        SEEN.clear()
    assert orders[0] == orders[1]
