"""Large minibatches on many nodes: the rules for the rate are the serial run's, and there is less to send."""

from functools import partial

import numpy as np
import pytest

from minidl import optim, parallel
from tests.parallel.jobs import small_job

pytestmark = pytest.mark.timeout(300)

RULE = partial(optim.LargeBatchLR, batch_size=32, base_batch_size=8, warmup_epochs=1, milestones=[2])


def test_a_scaled_and_warmed_up_rate_trains_many_nodes_as_it_trains_one():
    job = small_job(schedule=RULE, batch_size=32)
    truth = parallel.train(job, on="simulation")
    report = parallel.train(job, parallel.Synchronous(), 4, "simulation")
    for name, array in truth.checkpoint.model.items():
        assert np.abs(report.checkpoint.model[name] - array).max() < 1e-10
    assert [row["lr"] for row in report.history] == [row["lr"] for row in truth.history]


def warm_up(optimizer, steps_per_epoch, momentum_correction):
    return optim.LargeBatchLR(
        optimizer,
        steps_per_epoch,
        batch_size=64,
        base_batch_size=8,
        warmup_epochs=2,
        momentum_correction=momentum_correction,
    )


def test_corrected_v_form_equals_the_u_form_where_an_update_takes_several_steps_of_the_schedule():
    models = [
        parallel.train(
            small_job(
                batch_size=4,
                schedule=partial(warm_up, momentum_correction=form == "v"),
                optimizer=partial(optim.SGD, lr=0.01, momentum=0.9, momentum_form=form),
            ),
            parallel.EagerSGD(4),
            4,
            on="simulation",
        ).model()
        for form in "uv"
    ]
    for u, v in zip(*(model.parameters() for model in models), strict=True):
        np.testing.assert_allclose(v.numpy(), u.numpy(), rtol=0, atol=1e-12)
