"""Simulations that run at the same time, or within each other, leave the process as it was."""

from __future__ import annotations

import contextlib
import gc
import io
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from minidl import cluster
from minidl.cluster import call_site

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def the_process_is_left_as_it_was() -> Iterator[None]:
    before = sys.stdout, gc.get_threshold(), gc.isenabled()
    yield
    assert (sys.stdout, gc.get_threshold(), gc.isenabled()) == before


def chatter(comm: cluster.Communicator, name: str, seconds: float = 0.0) -> Any:
    for turn in range(3):
        print(name, comm.rank, turn)
        time.sleep(seconds)
        comm.barrier()
    return comm.all_reduce(comm.rank)


def printed_lines(name: str, nodes: int) -> list[str]:
    return [f"[rank {rank}] {name} {rank} {turn}" for rank in range(nodes) for turn in range(3)]


def test_simulations_in_threads_leave_output_and_collector_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    starts = threading.Barrier(8)

    def simulate(number: int) -> list[Any]:
        starts.wait()
        run = cluster.launch(chatter, args=(f"run{number}", 1e-3 * number), nodes=3, on="simulation")
        return run.results

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(simulate, range(8))) == [[3] * 3] * 8
    lines = capsys.readouterr().out.splitlines()
    for number in range(8):
        assert [line for line in lines if f"run{number}" in line] == printed_lines(f"run{number}", 3)


def test_simulations_that_end_in_another_order_than_they_began_leave_the_process_as_it_was() -> None:
    inside, may_end = threading.Event(), threading.Event()

    def long() -> None:
        cluster.launch(wait, nodes=1, on="simulation", listener=lambda _, __: (inside.set(), may_end.wait(60)))

    def wait(comm: cluster.Communicator) -> None:
        comm.tell("inside")

    first = threading.Thread(target=long)
    first.start()
    assert inside.wait(60)
    may_end_soon = threading.Event()
    entered = threading.Event()

    def last() -> None:
        cluster.launch(wait, nodes=1, on="simulation", listener=lambda _, __: (entered.set(), may_end_soon.wait(60)))

    second = threading.Thread(target=last)
    second.start()
    assert entered.wait(60)
    may_end.set()
    first.join()
    may_end_soon.set()
    second.join()


@pytest.mark.parametrize("error", [ValueError("lost"), KeyboardInterrupt()], ids=str)
def test_a_simulation_that_fails_while_others_run_leaves_the_process_as_it_was(error: BaseException) -> None:
    def program(comm: cluster.Communicator, fails: bool) -> int:
        with contextlib.redirect_stdout(io.StringIO()):
            comm.barrier()
            gc.disable()
            if fails and comm.rank == 1:
                raise error
            comm.barrier()
        return comm.rank

    def simulate(number: int) -> Any:
        try:
            return cluster.launch(program, args=(number % 2 == 1,), nodes=2, on="simulation").results
        except (cluster.RankFailed, KeyboardInterrupt) as raised:
            return type(raised)

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(simulate, range(12)))
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else cluster.RankFailed
    assert results == [[0, 1], expected] * 6


def test_a_simulation_within_a_rank_that_has_redirected_its_output_prints_where_the_rank_does() -> None:
    def outer(comm: cluster.Communicator) -> list[str]:
        kept = io.StringIO()
        with contextlib.redirect_stdout(kept):
            comm.barrier()
            cluster.launch(chatter, args=("inner",), nodes=2, on="simulation")
            comm.barrier()
            assert sys.stdout is kept
        return kept.getvalue().splitlines()

    assert cluster.launch(outer, nodes=2, on="simulation").results == [printed_lines("inner", 2)] * 2


def test_many_launches_keep_no_code_objects() -> None:
    def program(comm: cluster.Communicator) -> Any:
        def inner(x: int) -> Any:
            return comm.all_reduce(x)

        return inner(comm.rank)

    def kept() -> int:
        gc.collect()
        return len(call_site._codes)

    cluster.launch(program, nodes=8, on="simulation")
    before = kept()
    for _ in range(40):
        cluster.launch(program, nodes=8, on="simulation")
    assert kept() <= before + 8
