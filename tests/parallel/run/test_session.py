"""A strategy may put another model in the place of the job's."""

import numpy as np

from minidl import parallel
from minidl.parallel import Serial
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
