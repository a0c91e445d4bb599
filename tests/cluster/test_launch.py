"""launch: what a program finds in its process, and what comes back from it."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minidl import cluster, kernels
from tests.cluster import process_census

pytestmark = pytest.mark.timeout(300)

METHODS = ["forkserver", "spawn"]


def test_closures_classes_and_functions_that_call_each_other_run_on_every_rank() -> None:
    class Layer:
        scale = 3

        def __call__(self, x: float) -> float:
            return twice(x) * self.scale

    def twice(x: float) -> float:
        return 2 * x

    def program(comm: cluster.Communicator, offset: float, layer: Layer) -> tuple[int, int, Any]:
        total = comm.all_reduce(layer(comm.rank + offset))
        return comm.rank, comm.size, (total, layer)

    run = cluster.launch(program, args=(0.5, Layer()), nodes=3)
    assert [(rank, size) for rank, size, _ in run.results] == [(0, 3), (1, 3), (2, 3)]
    for _, _, (total, layer) in run.results:
        assert total == 6 * (0.5 + 1.5 + 2.5)
        assert isinstance(layer, Layer)
    assert run.seconds > 0


def test_ranks_are_processes_of_their_own_that_are_gone_after_the_launch(tmp_path: Path) -> None:
    told, counted = [], []

    def listener(rank: int, pid: int) -> None:
        told.append(pid)
        if len(told) == 3:
            counted.extend(process_census.ranks(os.getpid()))
            (tmp_path / "counted").touch()

    def program(comm: cluster.Communicator, path: str) -> None:
        comm.tell(os.getpid())
        while not os.path.exists(path):
            time.sleep(0.005)

    cluster.launch(program, args=(str(tmp_path / "counted"),), nodes=3, listener=listener, deadline=150)
    assert len(set(told)) == 3
    assert sorted(counted) == sorted(told)
    assert process_census.alive(told) == []


@pytest.mark.parametrize("method", METHODS)
def test_ranks_see_the_callers_environment_folder_and_kernels_and_their_share_of_the_cores(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MINIDL_TEST_VARIABLE", "set after the fork server began")
    monkeypatch.chdir(tmp_path)

    def program(comm: cluster.Communicator) -> tuple[Any, ...]:
        import threadpoolctl

        from minidl import kernels

        threads = {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        return (
            os.environ["MINIDL_TEST_VARIABLE"],
            os.getcwd(),
            kernels.active(),
            threads,
            os.environ["NUMBA_NUM_THREADS"],
        )

    before = kernels.active()
    with kernels.use("numpy"):
        run = cluster.launch(program, nodes=2, on=cluster.Processes(start_method=method, threads=1))
    assert run.results == [("set after the fork server began", str(tmp_path), "numpy", {1}, "1")] * 2
    assert kernels.active() == before


def test_prints_are_replayed_in_the_order_of_the_ranks(capfd: pytest.CaptureFixture[str]) -> None:
    def program(comm: cluster.Communicator) -> None:
        time.sleep(0.05 * (comm.size - comm.rank))
        print("hello from", comm.rank)
        os.write(1, b"written below Python\n")
        print("é without an end", end="")
        print(f"a word on stderr from {comm.rank}", file=sys.stderr)

    cluster.launch(program, nodes=3)
    out, err = capfd.readouterr()
    lines = [("hello from %d", r) for r in range(3)]
    assert out == "".join(
        f"[rank {r}] {text % r}\n[rank {r}] written below Python\n[rank {r}] é without an end\n" for text, r in lines
    )
    assert sorted(err.splitlines()) == [f"a word on stderr from {r}" for r in range(3)]


def test_what_a_rank_tells_arrives_while_the_run_goes_on_and_in_order(tmp_path: Path) -> None:
    told: list[tuple[int, Any]] = []

    def listener(rank: int, obj: Any) -> None:
        told.append((rank, obj))
        if obj == "go on":
            (tmp_path / "heard").touch()

    def program(comm: cluster.Communicator, path: str) -> None:
        comm.tell({"array": np.arange(100_000)})
        if comm.rank == 0:
            comm.tell("go on")
        while not os.path.exists(path):
            time.sleep(0.005)

    cluster.launch(program, args=(str(tmp_path / "heard"),), nodes=2, listener=listener, deadline=150)
    assert [obj for rank, obj in told if rank == 0][1] == "go on"
    assert sum(obj["array"][-1] == 99_999 for _, obj in told if isinstance(obj, dict)) == 2


def test_without_a_listener_telling_does_nothing() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.tell(lambda: "not even pickled")

    assert cluster.launch(program, nodes=2).results == [None, None]


def test_results_and_arguments_may_be_large() -> None:
    def program(comm: cluster.Communicator, x: np.ndarray) -> np.ndarray:
        return x + comm.rank

    run = cluster.launch(program, args=(np.zeros(1_000_000),), nodes=2)
    assert [result[-1] for result in run.results] == [0, 1]
    assert run.results[1].size == 1_000_000


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"nodes": 0}, ValueError, "nodes must be at least 1, got 0"),
        ({"nodes": 65}, ValueError, "at most 64 nodes"),
        ({"nodes": 2.5}, TypeError, "nodes must be a whole number .* got 2.5"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": "a"}, TypeError, "seed must be a whole number .* got 'a'"),
        ({"on": "simulator"}, ValueError, "on must be 'processes', 'simulation' or 'mpi', got 'simulator'"),
        ({"on": "threads"}, ValueError, r"pass one of these, or an engine such as cluster.Simulation\(\)"),
        ({"on_failure": "raises"}, ValueError, "on_failure must be 'raise' or 'continue', got 'raises'"),
        ({"timeout": 0}, ValueError, "timeout must be above 0, got 0: give seconds"),
        ({"timeout": "60"}, TypeError, "timeout must be a number above 0, got '60' of type str: write 60"),
        ({"deadline": -1}, ValueError, "deadline must be above 0, got -1: give seconds"),
        ({"program": 3}, TypeError, "the program must be a function"),
        ({"args": (threading.Lock(),), "on": "simulation"}, TypeError, "make open files, locks, connections"),
        ({"args": 5}, TypeError, r"write args=\(x,\)"),
        ({"args": (threading.Lock(),)}, TypeError, "make open files, locks, connections"),
    ],
)
def test_bad_arguments_are_refused_before_anything_starts(keywords: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        cluster.launch(keywords.pop("program", lambda comm, *args: None), **{"nodes": 2, **keywords})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start_method": "fork"}, "'forkserver' or 'spawn'"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"trace_events": -1}, "trace_events must be at least 0"),
    ],
)
def test_unknown_start_methods_and_senseless_numbers_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cluster.Processes(**options)


def test_a_rank_that_launches_ranks_is_told_that_it_cannot() -> None:
    def program(comm: cluster.Communicator) -> None:
        cluster.launch(lambda comm: None, nodes=2)

    with pytest.raises(cluster.RankFailed, match="a rank cannot launch ranks of its own"):
        cluster.launch(program, nodes=2)
