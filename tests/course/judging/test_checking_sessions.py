"""The student's process is bounded, watched and ended, and leaves nothing, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

import multiprocess
import pytest

from course.judging import Answer
from course.judging.process import strays
from course.judging.process.student_session import StudentSession
from course.sandbox.errors.ending import Died, TooLong
from course.sandbox.limits import Limits, starved
from course.setup.bootstrap import ROOT

pytestmark = pytest.mark.timeout(300)


def loading(source: str):
    def load(session: StudentSession) -> None:
        session.sources.add("<cell 1>", "cell 1", source)
        session.request("run_cell", ("cell 1", source), 30.0)

    return load


def call(session: StudentSession, name: str = "f", *arguments: object) -> object:
    kind, reply = session.request("call", (None, name, arguments))
    assert kind == "value", reply
    return reply[0]


def test_an_answer_can_launch_processes_and_leaves_none() -> None:
    source = (
        "from minidl import cluster\ndef f(x):\n    run = cluster.launch(lambda comm: comm.all_reduce(x), nodes=2)\n"
    )
    with StudentSession(loading(source + "    return run.results\n")) as session:
        assert call(session, "f", 1.5) == [3.0, 3.0]
        mark = session.process._mark
        assert len(strays.marked(mark)) >= 2
    assert strays.marked(mark) == []


def test_shared_memory_goes_with_the_process() -> None:
    name = f"psm_{uuid.uuid4().hex[:12]}"
    source = f"from multiprocessing import shared_memory\nkept = shared_memory.SharedMemory({name!r}, True, 1000)\n"
    kept = shared_memory.SharedMemory(create=True, size=1000)  # of somebody else, in the same seconds
    try:
        with StudentSession(
            loading(source + f"import os\ndef f():\n    return {name!r} in os.listdir('/dev/shm')")
        ) as session:
            assert call(session) is True
        assert not os.path.exists(f"/dev/shm/{name}")
        assert os.path.exists(f"/dev/shm/{kept.name}")
    finally:
        kept.close()
        kept.unlink()


def test_common_shared_memory_that_no_process_has_mapped_is_removed() -> None:
    before = strays.shared_memory()
    left, mapped = (shared_memory.SharedMemory(create=True, size=1000) for _ in range(2))
    left.close()
    try:
        strays.remove_shared_memory(before)
        assert not os.path.exists(f"/dev/shm/{left.name}")
        assert os.path.exists(f"/dev/shm/{mapped.name}")
    finally:
        resource_tracker.unregister(f"/{left.name}", "shared_memory")
        mapped.close()
        mapped.unlink()


def test_memory_of_all_processes_together_is_bounded() -> None:
    source = "import os, time\ndef f():\n    for _ in range(3):\n        if not os.fork():\n"
    source += "            kept = bytes(range(1, 251)) * 10**6\n            time.sleep(100)\n    time.sleep(100)"
    with StudentSession(loading(source), Limits(seconds=20.0, memory=600 * 2**20 + 10**9)) as session:
        session.limits = Limits(seconds=20.0, memory=500 * 2**20)
        with pytest.raises(Died, match=r"used more than 0.488 GB of memory"):
            call(session)


def test_a_session_starts_a_new_process_with_its_code_after_one_ended() -> None:
    with StudentSession(
        loading("import os\ncount = 0\ndef f(end):\n    return os._exit(7) if end else 'there'")
    ) as session:
        assert call(session, "f", False) == "there"
        with pytest.raises(Died, match="exit code 7"):
            call(session, "f", True)
        assert call(session, "f", False) == "there"


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds by which the wall clock is ahead: its only item, to be changed."""
    ahead, monotonic = [0.0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + ahead[0])
    return ahead


SLEEPS = "import time\ndef f(seconds):\n    time.sleep(seconds)"


def test_the_time_of_all_calls_is_bounded(ahead: list[float]) -> None:
    with StudentSession(loading(SLEEPS), Limits(total=900.0)) as session:
        call(session, "f", 0)
        ahead[0] += 2000.0  # before the check, so it does not count
        session.begin_check()
        call(session, "f", 0)
        ahead[0] += 898.0
        with pytest.raises(TooLong, match=r"all calls together did not finish within 900 s; it was in cell 1, line 3"):
            call(session, "f", 1000)


def test_starvation_does_not_count_in_the_time_of_all_calls(
    ahead: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    starving = [0.0]
    monkeypatch.setattr("course.judging.process.student_process.starved", lambda pid: starving[0])
    with StudentSession(loading(SLEEPS), Limits(total=900.0)) as session:
        session.begin_check()
        call(session, "f", 0)
        ahead[0], starving[0] = 1400.0, 600.0
        call(session, "f", 0)
        ahead[0] = 1700.0
        with pytest.raises(TooLong):
            call(session, "f", 1000)


def test_an_answer_calls_the_check_s_functions_by_messages_within_the_time_limit() -> None:
    source = "def f(g, x):\n    return g(x) + g(x + 1)\ndef without_end(g):\n    while True:\n        g(1)\n"
    source += "def with_text(g):\n    return g('one')\ndef seen(g):\n    return vars(g), g.__doc__, repr(g)\n"
    with StudentSession(loading(source), Limits(seconds=2.0)) as session:
        double = Answer("f", session).offered(lambda x: 2.0 * x, "double")
        assert call(session, "f", double, 3.0) == 14.0
        assert "lambda" not in str(call(session, "seen", double))
        kind, error = session.request("call", (None, "with_text", (double,)))
        assert (kind, error["type"]) == ("error", "TypeError")
        with pytest.raises(TooLong, match="did not finish within 2 s; it was in cell 1, line"):
            call(session, "without_end", double)


def test_printed_text_is_complete_when_the_reply_has_come() -> None:
    with StudentSession(loading("def f():\n    print('printed')\nprint('by a cell')")) as session:
        session.begin_check()
        call(session)
        assert session.output.text == "printed\n"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells how long a process waited for a core")
def test_time_without_a_core_is_measured() -> None:
    """While three others compute on the same core; the clock of an answer stands then."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    crowd = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        pid, begin = os.getpid(), time.monotonic()
        before = starved(pid)
        while starved(pid) - before < 0.2 and time.monotonic() - begin < 100.0:
            pass
        assert 0.2 <= starved(pid) - before <= time.monotonic() - begin
    finally:
        os.sched_setaffinity(0, cores)
        for process in crowd:
            process.kill()
            process.wait()


@pytest.mark.parametrize("goes_on", ['session.request("call", (None, "f", ()))', "import time; time.sleep(1000)"])
def test_when_the_process_of_the_check_is_killed_the_student_s_ends(tmp_path: Path, goes_on: str) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from course.judging.process.student_session import StudentSession
def load(session):
    source = "import os, time\\ndef f():\\n  os.fork() or (os.setsid(), time.sleep(1000))\\n  while True: pass"
    session.request("run_cell", ("cell 1", source))
session = StudentSession(load)
session.request("prepare", ((),))
print(session.process._mark, session.process.scratch.root, flush=True)
{goes_on}
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    mark, scratch = process.stdout.readline().split()
    assert strays.marked(mark)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 100
    while (strays.marked(mark) or os.path.exists(scratch)) and time.monotonic() < until:
        time.sleep(0.1)
    assert strays.marked(mark) == []
    assert not os.path.exists(scratch)


def test_semaphores_of_a_running_process_are_not_removed() -> None:
    before = strays.shared_memory()
    lock = multiprocess.get_context("spawn").Lock()
    mine = strays.shared_memory() - before
    strays.remove_shared_memory(before)
    assert mine
    assert mine <= strays.shared_memory()
    with lock:
        pass
