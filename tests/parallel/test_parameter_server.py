"""Parameter servers: one worker is Serial, several are stale, a bound keeps them together."""

from functools import partial

import numpy as np
import pytest

from minidl import cluster, optim, parallel
from minidl.parallel import ParameterServer
from tests.parallel.jobs import small_job

pytestmark = pytest.mark.timeout(60)

ENGINES = ["simulation", "processes"]


def weights(report):
    return np.concatenate([array.reshape(-1) for array in report.checkpoint.model.values()])


def plain_job(lr=0.05, **changes):
    return small_job(**({"optimizer": partial(optim.SGD, lr=lr), "schedule": None, "batch_size": 5} | changes))


@pytest.mark.parametrize("on", ENGINES)
@pytest.mark.parametrize("servers", [1, 3])
def test_one_worker_equals_serial_to_the_bit_however_many_servers(on, servers):
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), ParameterServer(servers), on=on)
    assert (weights(report) == weights(truth)).all()
    assert report.staleness == {0: 12}
    for row, true in zip(report.history, truth.history, strict=True):
        for column in ("steps", "samples", "lr", "loss", "test_loss", "accuracy"):
            assert row[column] == pytest.approx(true[column], rel=1e-12), column


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("servers", [1, 2])
def test_equal_workers_take_turns_so_that_every_gradient_is_as_many_updates_old_as_there_are_others(workers, servers):
    node = cluster.Node(1e9, 1e9)
    report = parallel.train(plain_job(batch_size=2), ParameterServer(servers), workers, cluster.Simulation(node=node))
    ages = report.recorded["staleness"][workers]
    assert ages[:workers] == list(range(workers))  # they all began with the first weights
    assert set(ages[workers:]) == {workers - 1}
    assert len(ages) == report.history[-1]["steps"] >= 3 * 30
