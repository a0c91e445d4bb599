"""Parameter servers when a worker or a server dies."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from minidl import cluster, nn, parallel
from minidl.parallel import BackupWorkers, Downpour, LockedParameterServer, ParameterServer
from tests.parallel.servers.test_parameter_server import plain_job
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


def survive(strategy, on, nodes=3, **terms):
    return parallel.train(plain_job(), strategy, nodes, on, on_failure="continue", timeout=150, **terms)


class Awaiting:
    """The others do not begin a gradient before the worker `victim` has begun its first, however slow it is."""

    def run(self, session):
        loss = session.local_loss

        def awaited(batch):
            if session.comm.rank == self.victim:
                self.ready.touch()
            while not self.ready.exists():
                time.sleep(0.005)
            return loss(batch)

        session.local_loss = awaited
        super().run(session)


@dataclass(frozen=True)
class Awaited(Awaiting, ParameterServer):
    victim: int = 0
    ready: Path = Path()  # a file that the victim makes


@dataclass(frozen=True)
class AwaitedLocked(Awaiting, LockedParameterServer):
    victim: int = 0
    ready: Path = Path()


def awaiting(on, victim, folder, strategy):
    """The strategy; the faults kill the victim when it exchanges its first gradient."""
    if on == "simulation":
        return strategy
    kind = AwaitedLocked if isinstance(strategy, LockedParameterServer) else Awaited
    return kind(strategy.servers, strategy.staleness, victim=victim, ready=folder / "ready")


STRATEGIES = [
    ParameterServer(servers=2),
    ParameterServer(servers=2, staleness=0),
    LockedParameterServer(servers=2),
    Downpour(servers=2, warm_start=9),
]


@pytest.mark.parametrize(
    ("strategy", "on"),
    [
        *((strategy, "simulation") for strategy in STRATEGIES),
        (STRATEGIES[0], "processes"),
        *exhaustively(*((strategy, "processes") for strategy in STRATEGIES[1:3])),
    ],
    ids=str,
)
def test_when_a_worker_dies_the_others_process_all_samples(on, strategy, tmp_path):
    faults = cluster.FaultPlan().kill(0, at=("recv", 4))
    report = survive(awaiting(on, 0, tmp_path, strategy), on, faults=faults)
    assert list(report.failures) == [0]
    assert report.history[-1]["samples"] == 180
    assert 36 <= report.history[-1]["steps"] <= 37  # each of 5 samples, or a few fewer where a shard ends
    assert report.accuracy > 0.5


def test_a_worker_that_dies_between_two_servers_leaves_them_a_gradient_apart():
    faults = cluster.FaultPlan().kill(1, at=("isend", 6))  # its third pair of requests: only one server gets it
    report = survive(ParameterServer(servers=2), "simulation", nodes=2, faults=faults)
    assert list(report.failures) == [1]
    assert [len(result.snapshots) for result in report.results if result is not None][-2:] == [3, 3]
    assert report.accuracy > 0.5


@pytest.mark.parametrize("on", ["simulation", *exhaustively("processes")])
def test_a_worker_that_dies_with_the_lock_gives_it_back(on, tmp_path):
    faults = cluster.FaultPlan().kill(2, at=("isend", 6))
    report = survive(awaiting(on, 2, tmp_path, LockedParameterServer(servers=2)), on, faults=faults)
    assert list(report.failures) == [2]
    assert report.history[-1]["samples"] == 180


class Normalised(nn.Module):
    """A model that has running statistics."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(5, 8), nn.BatchNorm2d(8), nn.Linear(8, 3)

    def forward(self, x):
        hidden = self.norm(self.first(x).reshape(-1, 8, 1, 1)).relu()
        return self.last(hidden.reshape(-1, 8))


@pytest.mark.parametrize("strategy", [ParameterServer(), BackupWorkers(1)])
def test_without_node_0_the_running_statistics_are_those_of_the_next_node(strategy):
    job = plain_job(model=lambda: Normalised().double())
    faults = cluster.FaultPlan().kill(0, at=6)
    report = parallel.train(job, strategy, 3, "simulation", on_failure="continue", faults=faults)
    assert list(report.failures) == [0]
    variance = report.model().norm.running_var.numpy()
    assert np.abs(variance - 1).min() > 0.01  # as they begin
    assert variance == pytest.approx(report.results[1].buffers[-1][1])


@pytest.mark.parametrize(("on", "on_failure"), [("simulation", "raise"), ("processes", "continue")])
def test_when_a_server_dies_the_run_ends_with_that_failure(on, on_failure):
    faults = cluster.FaultPlan().kill(4, at=("recv", 8))
    with pytest.raises(cluster.RankFailed, match="killed") as caught:
        parallel.train(
            plain_job(), ParameterServer(servers=2), 3, on, on_failure=on_failure, faults=faults, timeout=150
        )
    assert caught.value.rank == 4


def test_when_all_workers_die_the_run_ends_with_the_first_failure():
    faults = cluster.FaultPlan().kill(0, at=("recv", 4)).kill(1, at=("recv", 6))
    with pytest.raises(cluster.RankFailed, match="killed"):
        survive(ParameterServer(), "simulation", nodes=2, faults=faults)


def test_without_leave_to_continue_a_dead_worker_ends_the_run():
    faults = cluster.FaultPlan().kill(1, at=("recv", 6))
    with pytest.raises(cluster.RankFailed, match="rank 1"):
        parallel.train(plain_job(), ParameterServer(), 3, "simulation", faults=faults)
