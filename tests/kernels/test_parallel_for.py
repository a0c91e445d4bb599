"""A loop in several threads: each turn runs once, errors arrive, and no lock is left behind."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from minidl.kernels import parallel_for as module
from minidl.kernels.parallel_for import parallel_for

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "threads", lambda: request.param)
    return int(request.param)


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "threads", lambda: 2)


def test_each_turn_runs_once_in_as_many_shares_as_are_worth_a_thread(threads: int) -> None:
    for turns, most in itertools.product((0, 1, 2, 7, 100), (0, 1, 3, 1000)):
        shares: list[tuple[int, int]] = []
        parallel_for(turns, most, lambda begin, end, shares=shares: shares.append((begin, end)))
        shares.sort()
        assert [i for begin, end in shares for i in range(begin, end)] == list(range(turns))
        assert len(shares) == max(1, min(threads, turns, most))


@pytest.mark.usefixtures("two_threads")
def test_shares_run_at_the_same_time_and_an_error_of_one_is_raised_when_none_runs_any_more() -> None:
    for error, failing in itertools.product((MemoryError, KeyboardInterrupt), (0, 1)):
        both_began, finished = threading.Barrier(2, timeout=60), []

        def body(begin: int, end: int, error=error, failing=failing, began=both_began, finished=finished) -> None:
            began.wait()
            if begin == failing:
                raise error("here")
            finished.append(begin)

        with pytest.raises(error, match="here"):
            parallel_for(2, 2, body)
        assert finished == [1 - failing]


@pytest.mark.usefixtures("two_threads")
def test_every_share_has_the_errstate_of_the_caller() -> None:
    both_began, found = threading.Barrier(2, timeout=60), []

    def body(begin: int, end: int) -> None:
        both_began.wait()
        found.append(np.geterr()["over"])

    with np.errstate(over="raise"):
        parallel_for(2, 2, body)
    assert found == ["raise", "raise"]


@pytest.mark.usefixtures("two_threads")
def test_what_a_loop_holds_is_freed_when_it_has_ended() -> None:
    class Held:
        pass

    def run(failing: tuple[int, ...]) -> weakref.ref[Held]:
        held = Held()

        def body(begin: int, end: int, held: Held = held) -> None:
            if begin in failing:
                raise ValueError

        with contextlib.suppress(ValueError):
            parallel_for(2, 2, body)
        return weakref.ref(held)

    gc.disable()
    try:
        for failing in ((), (0,), (1,), (0, 1)):
            held = run(failing)
            deadline = time.monotonic() + 60
            while held() is not None and time.monotonic() < deadline:  # a helper may just be returning from its share
                time.sleep(0.001)
            assert held() is None, failing
    finally:
        gc.enable()


def test_loops_of_several_threads_and_loops_in_loops_all_end(threads: int) -> None:
    done = []

    def inside(begin: int, end: int) -> None:
        parallel_for(10, 10, lambda first, last: done.extend([0] * (end - begin) * (last - first)))

    def loops() -> None:
        for _ in range(50):
            parallel_for(4, 4, inside)

    callers = [threading.Thread(target=loops) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(done) == 6 * 50 * 4 * 10


def test_a_loop_ends_where_no_thread_can_be_started(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "_helpers", module._Helpers())
    monkeypatch.setattr(threading.Thread, "start", start)
    turns: list[int] = []
    parallel_for(4, 4, lambda begin, end: turns.extend(range(begin, end)))
    assert sorted(turns) == [0, 1, 2, 3]


BEGINNING = """
import os, sys, threading
from minidl.kernels import parallel_for as module
module.threads = lambda: 2
def loop():
    barrier = threading.Barrier(2, timeout=60)  # passed by two threads only
    module.parallel_for(2, 2, lambda begin, end: barrier.wait() and None)
"""

FORKED = """
loop()
began, may_end = threading.Event(), threading.Event()
def body(begin, end):
    began.set()
    may_end.wait()
threading.Thread(target=module.parallel_for, args=(2, 2, body), daemon=True).start()
began.wait()
child = os.fork()
if child == 0:
    loop()
    os._exit(7)
may_end.set()
loop()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

ENDS = """
began = threading.Barrier(3)
def body(begin, end):
    began.wait()
    threading.Event().wait()
threading.Thread(target=module.parallel_for, args=(2, 2, body), daemon=True).start()
began.wait()
print("the end")
"""

AT_EXIT = """
import atexit
turns = []
def at_exit():
    module.parallel_for(2, 2, lambda begin, end: turns.extend(range(begin, end)))
    print(sorted(turns))
atexit.register(at_exit)
"""

IMPORTED = """
import sys, threading
from threadpoolctl import threadpool_info
import numpy
before = [pool["num_threads"] for pool in threadpool_info()]
from minidl.kernels import jit
print(threading.active_count(), [pool["num_threads"] for pool in threadpool_info()][: len(before)] == before)
"""


def printed(program: str) -> str:
    """What a program prints; it must end in time."""
    run = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, stdout=subprocess.PIPE, text=True, check=True, timeout=100
    )
    return run.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_forked_process_has_helpers_of_its_own() -> None:
    assert printed(BEGINNING + FORKED) == "7"


def test_a_process_ends_without_waiting_for_helpers_and_may_loop_at_its_exit() -> None:
    assert printed(BEGINNING + AT_EXIT + ENDS) == "the end\n[0, 1]"


def test_importing_starts_no_thread_and_changes_no_limit() -> None:
    assert printed(IMPORTED) == "1 True"
