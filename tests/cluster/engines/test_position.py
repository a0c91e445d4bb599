"""A rank that cannot say where it was is named with its operation and its line all the same."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.engines import position
from minidl.cluster.engines.position import SLOTS, Notes, create_notes, position_of
from minidl.cluster.engines.supervisor import Supervisor
from minidl.kernels.jit.compiled import _once_per_machine

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def every_answer_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a rank takes longer to dump its stack than a launcher waits."""
    monkeypatch.setattr(position, "DUMP_SECONDS", 60.0)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Any], None]:
    """A listener that moves the deadline of the run to half a second after all ranks have told it something."""
    runs: list[Supervisor] = []
    told: set[int] = set()
    begin = Supervisor.supervise

    def supervise(run: Supervisor) -> Any:
        runs.append(run)
        return begin(run)

    def listener(rank: int, _: Any) -> None:
        told.add(rank)
        if len(told) == len(runs[-1].ranks):
            runs[-1]._ends_at = time.monotonic() + 0.5

    monkeypatch.setattr(Supervisor, "supervise", supervise)
    return listener


def failure_of(program: Any, nodes: int = 3, **keywords: Any) -> cluster.ClusterError:
    with pytest.raises(cluster.ClusterError) as caught:
        cluster.launch(program, nodes=nodes, **keywords)
    return caught.value


def line_of(program: Any, line: int) -> str:
    """The place that an error names for the n-th line of the function's body."""
    return f"{Path(__file__)}:{program.__code__.co_firstlineno + line}"


def test_a_rank_that_computes_without_end_is_named_with_its_line(late: Any) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        comm.tell("begun")
        while comm.rank == 1:
            pass
        comm.barrier()

    for limits in ({"timeout": 3.0}, {"timeout": 60.0, "deadline": 150.0, "listener": late}):
        error = failure_of(program, **limits)
        assert isinstance(error, cluster.CommTimeout)
        assert error.rank == 1
        (silence,) = [line for line in str(error).splitlines() if line.startswith("rank 1 did not answer")]
        places = [line_of(program, line) for line in (2, 3, 4)]
        said = [f"it was computing at {place}, after barrier (call 1) at {line_of(program, 1)}" for place in places]
        assert silence.removeprefix("rank 1 did not answer: ") in said


def test_a_rank_that_sleeps_below_a_hundred_frames_is_named_with_its_line() -> None:
    def program(comm: cluster.Communicator) -> None:
        def sleep_below(frames: int) -> None:
            time.sleep(600) if frames == 0 else sleep_below(frames - 1)

        if comm.rank == 1:
            sleep_below(300)
        comm.recv(1)

    error = failure_of(program, nodes=2, timeout=3.0)
    assert error.rank == 1
    assert f"it was computing at {line_of(program, 2)}, before its first communicator call" in str(error)
    assert "in sleep_below" in error.tracebacks[1]


def test_a_rank_that_compiles_a_kernel_is_named_with_the_line_that_called_it() -> None:
    def program(comm: cluster.Communicator) -> None:
        kernel = MagicMock(compile=time.sleep)
        kernel._cache._cache_file._load_index.return_value.__contains__.return_value = True
        if comm.rank == 1:
            _once_per_machine(kernel)(600)
        comm.recv(1)

    error = failure_of(program, nodes=2, timeout=3.0)
    assert f"computing at {line_of(program, 4)} (compiling a kernel, once on this computer), before" in str(error)


def test_a_crash_of_the_interpreter_is_named_with_its_line() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            ctypes.string_at(0)
        comm.barrier()

    error = failure_of(program)
    assert isinstance(error, cluster.RankFailed)
    first, second, *_ = str(error).splitlines()
    assert first == "the process was killed by SIGSEGV"
    assert second == f"rank 1 of 3, computing at {line_of(program, 2)}, before its first communicator call"
    assert "in string_at" in error.tracebacks[1]


def test_a_rank_that_exits_without_a_word_is_named_with_its_last_call() -> None:
    def program(comm: cluster.Communicator) -> None:
        for _ in range(3):
            comm.all_reduce(np.ones(4))
        if comm.rank == 1:
            os._exit(3)
        comm.barrier()

    error = failure_of(program)
    assert str(error).splitlines()[1] == f"rank 1 of 3, after all_reduce (call 3) at {line_of(program, 2)}"


def test_a_listener_of_its_own_signals_does_not_hide_a_rank(late: Any) -> None:
    def program(comm: cluster.Communicator) -> None:
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        comm.barrier()
        comm.tell("begun")
        while comm.rank == 0:
            time.sleep(0.01)

    error = failure_of(program, nodes=2, deadline=150.0, listener=late)
    assert error.rank == 0
    assert any(f"computing at {line_of(program, line)}" in str(error) for line in (4, 5, 6))


def test_notes_name_the_last_call_however_many_places_have_made_one() -> None:
    notes_file = create_notes()
    lines = [f"notes.entered('call{line}', {line})" for line in range(1, SLOTS + 100)]
    namespace: dict[str, Any] = {"notes": Notes(notes_file)}
    exec(compile("\n".join(lines), f"/{'long/' * 100}many_calls.py", "exec"), namespace)
    was_at = position_of(notes_file)
    os.close(notes_file)
    assert was_at.call == SLOTS + 99
    assert was_at.operation == f"call{SLOTS + 99}"
    assert was_at.is_inside
    assert was_at.call_site.endswith(f"long/many_calls.py:{len(lines)}")
