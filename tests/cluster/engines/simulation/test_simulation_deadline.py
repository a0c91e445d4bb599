"""The deadline of a simulation ends ranks that make no call, in this process and without a child."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from greenlet import getcurrent  # type: ignore[import-untyped]

from minidl import cluster
from minidl.cluster.engines.simulation import deadline

pytestmark = pytest.mark.timeout(300)


def compute() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(600)


def wait_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def catch_exceptions() -> None:
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


def program(comm: cluster.Communicator, without_end: Callable[[], None]) -> None:
    comm.barrier()
    if comm.rank == 1:
        without_end()
    comm.barrier()


def late(program: Any, nodes: int = 3, seconds: float = 0.5, **keywords: Any) -> cluster.ClusterError:
    handler = signal.getsignal(deadline.SIGNAL)
    with pytest.raises(cluster.CommTimeout) as caught:
        cluster.launch(program, nodes=nodes, on="simulation", deadline=np.float32(seconds), **keywords)  # type: ignore[arg-type]
    assert signal.getsignal(deadline.SIGNAL) == handler
    assert not deadline._deadlines
    return caught.value


@pytest.mark.parametrize("without_end", [compute, wait_for_a_lock, catch_exceptions])
def test_a_rank_that_makes_no_call_is_ended_and_named_with_its_line(without_end: Callable[[], None]) -> None:
    error = late(program, args=(without_end,))
    assert error.rank == 1
    (line,) = [line for line in str(error).splitlines() if line.startswith("rank 1 was not waiting, at ")]
    file, _, number = line.removeprefix("rank 1 was not waiting, at ").rpartition(":")
    first = without_end.__code__.co_firstlineno
    assert file == str(Path(__file__))
    assert first < int(number) <= first + 6


def test_an_isolated_rank_that_makes_no_call_is_named_too() -> None:
    with pytest.raises(cluster.CommTimeout) as caught:
        cluster.launch(program, args=(sleep,), nodes=2, on=cluster.Simulation(isolated=True), deadline=10)
    text = str(caught.value)
    place = f"{Path(__file__)}:{sleep.__code__.co_firstlineno + 1}"
    line = sleep.__code__.co_firstlineno + 1
    slow = f'File "{Path(__file__)}", line {line}, in sleep'  # where the child was too slow
    assert (caught.value.rank == 1 and f"rank 1 was not waiting, at {place}" in text) or slow in text


def test_a_rank_cleans_up_before_the_run_ends(capsys: pytest.CaptureFixture[str]) -> None:
    def tidy(comm: cluster.Communicator) -> None:
        try:
            time.sleep(600)
        finally:
            time.sleep(0.3)
            print("cleaned")

    late(tidy, nodes=1)
    assert capsys.readouterr().out == "[rank 0] cleaned\n"


def test_a_rank_that_cleans_up_without_end_is_ended_as_well() -> None:
    def stubborn(comm: cluster.Communicator) -> None:
        try:
            time.sleep(600)
        finally:
            time.sleep(600)

    assert late(stubborn, nodes=1).rank == 0


def test_a_run_that_makes_calls_without_end_is_nobodys_fault() -> None:
    def busy(comm: cluster.Communicator) -> None:
        while True:
            comm.barrier()

    error = late(busy)
    assert error.rank is None
    assert all(wait.seconds == 0 for wait in error.waits)


def test_the_grace_begins_when_the_main_thread_sees_that_the_deadline_has_passed() -> None:
    held_up = deadline._Deadline(time.monotonic() - 5.0, getcurrent(), lambda: True)
    assert not held_up.is_over()
    time.sleep(1.1 * deadline.GRACE_SECONDS)
    assert held_up.is_over()


def test_the_deadline_of_an_outer_simulation_ends_an_inner_one() -> None:
    def outer(comm: cluster.Communicator) -> None:
        cluster.launch(program, args=(sleep,), nodes=2, on="simulation", deadline=100)

    late(outer, nodes=2)


def test_ctrl_c_while_a_simulation_begins_leaves_no_deadline_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(threading.Thread, "start", interrupted)
        cluster.launch(lambda comm: None, nodes=2, on="simulation", deadline=60.0)
    assert not deadline._deadlines
    assert not [thread for thread in threading.enumerate() if getattr(thread, "_target", None) is deadline._watch]
