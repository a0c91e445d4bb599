"""Hogwild: one set of weights for all nodes, on processes that race and in a simulation that does not."""

from functools import partial

import numpy as np
import pytest

from minidl import cluster, nn, optim, parallel
from minidl.parallel import Hogwild
from tests.parallel.jobs import assert_same_run, small_job, weights

pytestmark = pytest.mark.timeout(300)

EQUAL = cluster.Simulation(node=cluster.Node(1e9, 1e9))


@pytest.mark.parametrize(("on", "locked"), [("simulation", True), ("processes", False)])
def test_one_node_is_serial(on, locked):
    truth = parallel.train(small_job(), on="simulation")
    report = parallel.train(small_job(), Hogwild(locked), on=on)
    assert (weights(report) == weights(truth)).all()
    assert_same_run(report, truth, 1e-12)
    assert report.staleness == {0: 12}


@pytest.mark.parametrize("locked", [False, True])
def test_processes_that_race_learn_and_end_with_the_same_weights(locked):
    plain = partial(optim.SGD, lr=0.05)
    job = small_job(batch_size=5, epochs=10, schedule=None, optimizer=plain)
    report = parallel.train(job, Hogwild(locked), nodes=2, on="processes")
    assert len(set(report.digests)) == 1
    assert [row["epoch"] for row in report.history] == list(range(1, 11))
    assert 10 * 12 <= report.history[-1]["steps"] <= 10 * 12 + 1  # the last update may be made by both at once
    assert report.history[-1]["test_loss"] < report.history[0]["test_loss"]
    assert sum(report.staleness.values()) == report.history[-1]["steps"]


def test_nodes_of_equal_speed_are_at_most_p_minus_1_updates_stale_and_who_takes_turns_just_so_much():
    report = parallel.train(small_job(batch_size=5, epochs=10), Hogwild(), nodes=4, on=EQUAL)
    assert (min(report.staleness), max(report.staleness)) == (0, 3)
    report = parallel.train(small_job(batch_size=5, epochs=10), Hogwild(locked=True), nodes=4, on=EQUAL)
    assert report.staleness == {0: 1, 1: 1, 2: 1, 3: 117}
    turns = [len(steps) for steps in report.recorded["staleness"]]
    assert turns == [30, 30, 30, 30]


def test_without_a_lock_a_slow_node_holds_nobody_up_and_its_gradients_are_old():
    slow = cluster.Simulation(node=cluster.Node(1e9, 1e9, speeds={0: 0.1}))
    job = small_job(batch_size=5, epochs=10)
    free, locked = (parallel.train(job, Hogwild(locked), nodes=3, on=slow) for locked in (False, True))
    assert 2 * free.seconds < locked.seconds
    assert np.mean(free.recorded["staleness"][0]) > 5 * np.mean(free.recorded["staleness"][1])
    made = [len(steps) for steps in free.recorded["staleness"]]
    assert 5 * made[0] < made[1]
    assert [len(steps) for steps in locked.recorded["staleness"]] == [40, 40, 40]


@pytest.mark.parametrize("locked", [False, True])
def test_the_run_ends_when_all_samples_are_processed_and_the_schedule_goes_by_all_updates(locked):
    job = small_job(batch_size=5)
    report = parallel.train(job, Hogwild(locked), nodes=3, on=EQUAL)
    truth = parallel.train(job, on="simulation")
    for row, true in zip(report.history, truth.history, strict=True):
        assert row["steps"] == pytest.approx(true["steps"], abs=1)
    assert report.history[-1]["steps"] == 36
    assert [row["lr"] for row in report.history] == [row["lr"] for row in truth.history]


class TwoTypes(nn.Module):
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(5, 4).double(), nn.Linear(4, 3)

    def forward(self, x):
        return self.second(self.first(x))


def test_what_does_not_fit_is_said_in_a_sentence():
    with pytest.raises(ValueError, match="this model's are float32 and float64: convert the model to one type"):
        parallel.train(small_job(model=TwoTypes), Hogwild(), nodes=2)
