"""Learning per second is learning per sample times samples per second."""

import pytest

from minidl import cluster, parallel
from minidl.parallel.measures.learning_speed import learning_speed
from tests.parallel.jobs import small_job


@pytest.fixture(scope="module")
def report() -> parallel.Report:
    simulation = cluster.Simulation(network="1gbe", node=cluster.Node(1e9, 1e10), trace="ledger")
    return parallel.train(small_job(), parallel.Synchronous(), nodes=2, on=simulation)


@pytest.mark.parametrize("column", ["loss", "test_loss"])
def test_the_product_is_the_fall_of_the_loss_in_a_second(report, column):
    speed = learning_speed(report.history, loss=column)
    begin, end = report.history[0], report.history[-1]
    fall = (begin[column] - end[column]) / (end["seconds"] - begin["seconds"])
    assert speed.learning_per_second == pytest.approx(fall, rel=1e-12)
    assert speed.samples_per_second == pytest.approx(120 / (end["seconds"] - begin["seconds"]))


def test_without_time_there_is_no_speed():
    report = parallel.train(small_job(epochs=2), on=cluster.Simulation())
    with pytest.raises(ValueError, match=r"60 samples and 0\.0 seconds lie between the rows"):
        learning_speed(report.history)
    with pytest.raises(ValueError, match="0 samples"):
        learning_speed(report.history, 1, 1)
