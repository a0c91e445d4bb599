"""No answer reaches the check's files, other processes, other answers or terminals by ways that have no audit event."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from course.judging import Answer, AnswerFailed
from course.judging.outcome import MOST_OF_MESSAGE, PartResult, Status
from course.judging.process.reply import LONGEST, reply_in
from course.judging.process.student_session import StudentSession
from course.judging.ranks.forked_ranks import is_process
from course.sandbox import landlock, scratch, system_calls
from course.sandbox.errors.ending import Died, TooLong
from course.sandbox.exchange import plain_data
from course.sandbox.limits import Limits
from tests.course.student_on_ranks import Student
from tests.tiers import all_but_first_exhaustive

pytestmark = pytest.mark.timeout(300)

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux's kernel knows and forbids")
needs_landlock = pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")


def loading(source: str):
    def load(session: StudentSession) -> None:
        session.sources.add("<cell 1>", "cell 1", source)
        kind, value = session.request("run_cell", ("cell 1", source), 30.0)
        assert kind == "value", value

    return load


def call(session: StudentSession, *arguments: object, seconds: float | None = None) -> object:
    kind, value = session.request("call", (None, "f", arguments), seconds)
    assert kind == "value", value
    return value[0]


# Files of the check


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A file of the teacher's, which is as it was at the end."""
    file = tmp_path / "grades of last year.csv"
    file.write_text("ada,18")
    yield file
    assert file.read_text() == "ada,18"


@needs_linux
def test_a_link_in_an_answer_s_folder_never_leads_the_check_to_another_file(precious: Path, student: Student) -> None:
    """It would empty `stack-0`, and give the answer the right to write there."""
    links = f"import os\nfor name in ('stack', 'stack-0', 'stack-1'): os.symlink({str(precious)!r}, f'../{{name}}')"
    opened = "[os.path.realpath(f'/proc/self/fd/{d}') for d in os.listdir('/proc/self/fd')]"
    program = f"{links}\ndef program(comm): return {opened}"
    results = student.on_ranks(program, [(), ()]).results
    assert not [name for result in results for name in result if precious.name in name]


@needs_linux
def test_a_pipe_in_an_answer_s_folder_holds_up_no_check() -> None:
    source = "import os, time\nos.mkfifo('../stack')\ndef f(): time.sleep(100)"
    with StudentSession(loading(source)) as session, pytest.raises(TooLong, match="it was in cell 1, line 3"):
        call(session, seconds=0.5)


DEEP = "import os\nfor _ in range(1500): os.mkdir('folder'); os.chdir('folder')\nopen('left', 'w').close()"


def test_folders_too_deep_to_be_walked_are_too_many_files_and_are_removed() -> None:
    source = "import os, time\ndef f():\n    " + DEEP.replace("\n", "\n    ") + "\n    time.sleep(1000)"
    with StudentSession(loading(source), Limits(seconds=100.0)) as session:
        assert session.request("parameters", ("f",)) == ("value", [])  # it is there
        root = session.process.scratch.root
        with pytest.raises(Died, match="too many of them"):
            call(session)
    assert not root.exists()


def test_removing_a_folder_of_an_answer_follows_no_link_and_needs_no_rights(tmp_path: Path, precious: Path) -> None:
    precious.chmod(0o600)
    room = scratch.Scratch()
    closed = room.folder / "closed"
    closed.mkdir()
    (closed / "link").symlink_to(precious)
    (room.folder / "folder").symlink_to(tmp_path)
    closed.chmod(0)
    room.remove()
    assert not room.root.exists()
    assert precious.stat().st_mode & 0o777 == 0o600


UNNAMED = {
    "removed while it is open": "f = open('x', 'wb'); os.remove('x'); f.write(bytes(2**25)); f.flush(); kept.append(f)",
    "memory as a file": "f = os.memfd_create('x'); os.write(f, bytes(2**25))",
    "removed while it is mapped": "f = open('x', 'wb+'); f.write(bytes(2**25)); f.flush(); os.remove('x')\n"
    "        kept.append(mmap.mmap(f.fileno(), 0)); f.close()",
}  # fmt: skip


@needs_linux
@pytest.mark.parametrize("way", all_but_first_exhaustive(list(UNNAMED)))
def test_files_without_a_name_count_as_written(way: str) -> None:
    source = "import mmap, os, time\nkept = []\ndef f():\n    for _ in range(4):\n"
    source += f"        {UNNAMED[way]}\n    time.sleep(1000)"
    limits = Limits(seconds=100.0, written=10**8)
    with StudentSession(loading(source), limits) as session, pytest.raises(Died, match="GB of files"):
        call(session)


@needs_linux
def test_memory_that_processes_share_counts() -> None:
    source = "import mmap, time\ndef f():\n    kept = mmap.mmap(-1, 2**29)\n    kept.write(bytes(2**29))\n"
    with StudentSession(loading(f"{source}    time.sleep(1000)"), Limits(seconds=100.0)) as session:
        assert session.request("parameters", ("f",)) == ("value", [])  # it is there
        session.process.limits = Limits(seconds=100.0, memory=3 * 2**27)
        with pytest.raises(Died, match="GB of memory"):
            call(session)


@needs_linux
def test_threads_are_bounded() -> None:
    source = "import threading, time\nthreading.stack_size(2**15)\ndef f():\n    for _ in range(300):\n"
    source += "        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n    time.sleep(1000)"
    with (
        StudentSession(loading(source), Limits(seconds=100.0, threads=200)) as session,
        pytest.raises(Died, match="more than 200 are not"),
    ):
        call(session)


# Other processes

CALLS = {
    "bounds": "resource.prlimit(other, resource.RLIMIT_CPU, (1000, 1000))",
    "priority": "os.setpriority(os.PRIO_PROCESS, other, 19)",
    "priority of all": "os.setpriority(os.PRIO_USER, 0, 19)",
    "cores": "os.sched_setaffinity(other, {0})",
    "scheduling": "os.sched_setscheduler(other, os.SCHED_IDLE, os.sched_param(0))",
    "a lease": "fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK)",
}
OWN = (
    "resource.setrlimit(resource.RLIMIT_CPU, (900, 900)); os.nice(1); os.sched_setaffinity(0, os.sched_getaffinity(0))"
    "; os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); resource.prlimit(other, resource.RLIMIT_CPU)"
)


@needs_linux
@pytest.mark.skipif(os.uname().machine not in system_calls.NUMBERS, reason="another processor")
def test_an_answer_cannot_limit_slow_down_or_block_other_processes() -> None:
    source = "import fcntl, os, resource\ndef f(text, other):\n    try: exec(text)\n"
    source += "    except PermissionError as error: return str(error)\n    return 'done'"
    with StudentSession(loading(source)) as session, subprocess.Popen(["sleep", "60"]) as other:
        try:
            for name, text in CALLS.items():
                assert "not permitted" in str(
                    call(session, f"globals().update(other={other.pid}); {text}", other.pid)
                ), name
            assert call(session, f"global other; other = {other.pid}; {OWN}", other.pid) == "done"
        finally:
            other.kill()


def test_is_process_accepts_only_positive_whole_numbers() -> None:
    """os.kill(-1, SIGUSR1) would end everything that the teacher has running."""
    assert is_process(4711)
    assert not any(map(is_process, (-1, 0, -4711, True, 1.0, 2**31, "1", None)))


def test_forged_process_numbers_of_ranks_are_refused() -> None:
    program = "import os\nos.fork = lambda: -12345\ndef program(comm): return comm.rank"
    with StudentSession(loading(program)) as session, pytest.raises(AnswerFailed, match="wrote into the connection"):
        Answer("program", session).on_ranks([(), ()])


# Other answers, and terminals


@needs_landlock
def test_an_answer_reads_nothing_in_the_folder_of_another_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("ANSWER = 42")
    source = "def f(path):\n    try: return open(path).read()\n    except PermissionError: return 'refused'"
    with (
        StudentSession(loading(source)) as early,
        StudentSession(loading(source), folder=tmp_path) as other,
        StudentSession(loading(source)) as late,
    ):
        call(early, os.devnull)
        path = str(other.process.scratch.folder / "mine.py") if call(other, os.devnull) == "" else ""
        assert call(other, path) == "ANSWER = 42"
        assert (call(early, path), call(late, path)) == ("refused", "refused")


@needs_linux
def test_an_answer_writes_on_no_terminal_of_others() -> None:
    ours, terminal = os.openpty()
    try:
        source = "import os\ndef f(path):\n    try: return os.path.exists(path) and os.open(path, os.O_RDWR)\n"
        source += (
            "    except OSError: return False\ndef own():\n    ours, its = os.openpty()\n    return os.ttyname(its)"
        )
        with StudentSession(loading(source)) as session:
            call(session, os.devnull)
            if not session.process.has_own_view:
                pytest.skip("no view of its own here: its user's terminals are there")
            assert call(session, os.ttyname(terminal)) is False
            assert str(session.request("call", (None, "own", ()))[1][0]).startswith("/dev/pts/")
    finally:
        os.close(ours)
        os.close(terminal)


# Texts without end


def test_an_error_that_an_answer_has_written_itself_is_no_longer_than_the_check_s() -> None:
    error = {"kind": "raised", "type": "T" * 10**6, "text": "x" * 10**6, "place": "p" * 10**6, "rank": None}
    error["classes"] = "c" * 10**6
    _, _, read = reply_in(plain_data.dumps((1, "error", error)))
    assert {name: len(read[name]) for name in LONGEST} == {**LONGEST, "kind": len("raised")}


def test_an_error_without_one_of_its_texts_or_with_another_rank_is_no_reply() -> None:
    error = {"kind": "raised", "type": "T", "text": "x", "place": "", "rank": 1, "classes": "T"}
    assert reply_in(plain_data.dumps((1, "error", error))) == (1, "error", error)
    for damage in ({"kind": 1}, {"place": None}, {"rank": "1"}):
        with pytest.raises(plain_data.DamagedError):
            reply_in(plain_data.dumps((1, "error", error | damage)))


def test_an_error_s_text_commands_no_terminal() -> None:
    error = {
        "kind": "raised",
        "type": "\x1b[31mE",
        "text": "\x1b[2J\x1b]0;x\x07\u202eé\ttab\nline",
        "place": "",
        "rank": None,
        "classes": "E",
    }
    _, _, read = reply_in(plain_data.dumps((1, "error", error)))
    assert (read["type"], read["text"]) == ("?[31mE", "?[2J?]0;x??é\ttab\nline")


def test_the_message_of_a_part_is_bounded_for_names_of_any_length() -> None:
    part = PartResult("title", 1.0, Status.WRONG, "m" * 10**6, "c" * 10**6)
    assert len(part.message) == len(part.cause) == MOST_OF_MESSAGE
    assert PartResult("title", 1.0, Status.WRONG, "short").message == "short"
