"""An answer that is forked from a warm parent is as separate from others and as restricted as one that is started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from course.judging.process import strays, student_process, warm_parent
from course.judging.process.student_session import StudentSession
from course.sandbox import confinement, landlock
from course.sandbox.errors.ending import Died, TooLong
from course.sandbox.forked import ROOM
from course.sandbox.supervisor import TOKEN
from tests.tiers import exhaustively

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere answers are started by execve"),
]

needs_scope = pytest.mark.skipif(landlock.version() < landlock.SCOPE_SINCE, reason="its Landlock has no signal scope")

ROOT = Path(__file__).parents[3]

ANSWER = """
import ctypes, gc, os, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(8)
AREA = struct.pack("PN", ctypes.addressof(buffer), 8)

def run(source):
    names = dict(globals())
    exec(source, names)
    return names.get("result")

def refused(code):
    "Whether a system call has failed, with the name of the error."
    import errno
    return code < 0 and errno.errorcode[ctypes.get_errno()]
"""


def new_session(**options: Any) -> StudentSession:
    return StudentSession(lambda session: session.request("run_cell", ("cell 1", ANSWER), 30.0), **options)


def call(session: StudentSession, source: str) -> Any:
    return call_alone(session, source.replace("PARENT", str(parent_of(session))))


def call_alone(session: StudentSession, source: str) -> Any:
    kind, value = session.request("call", (None, "run", (source,)))
    return value[0] if kind == "value" else f"{value['type']}: {value['text']}"


def parent_of(session: StudentSession) -> int:
    """The process number of the warm parent."""
    session.prepare()
    parent = psutil.Process(session.process.supervisor.pid).ppid()
    assert parent > 1  # a signal to 1, or -1, is for others
    return parent


@pytest.fixture(scope="module")
def session() -> Iterator[StudentSession]:
    with new_session() as session:
        session.prepare()
        yield session


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> Iterator[warm_parent.WarmParent]:
    """Another warm parent, in place of the one of this process."""
    parent = warm_parent.WarmParent()
    monkeypatch.setattr(student_process, "warm_parent", parent)
    yield parent
    if parent._process is not None:
        parent._end()


# What a program of its own would have


def test_answers_of_one_parent_are_forked_from_it(session: StudentSession) -> None:
    with new_session() as other:
        other.prepare()
        assert parent_of(other) == parent_of(session)
        assert psutil.Process(parent_of(session)).num_threads() == 1


def test_two_answers_draw_different_random_numbers(session: StudentSession) -> None:
    draws = (
        "import random, uuid, numpy as np\nfrom minidl.random import generator\n"
        "rng = np.random.default_rng()\n"
        "result = np.random.rand(), random.random(), str(uuid.uuid4()), generator().random(), rng.random()"
    )
    with new_session() as other:
        for one, two in zip(call(session, draws), call(other, draws), strict=True):
            assert one != two


def test_the_environment_is_the_answer_s_own_in_all_places(session: StudentSession, monkeypatch) -> None:
    monkeypatch.setenv("SET_LATER", "x" * 100)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with new_session() as other:
        found = call(
            other,
            "import posix, subprocess, time\nblock = open('/proc/self/environ', 'rb').read()\n"
            "in_posix = {os.fsdecode(name): os.fsdecode(value) for name, value in posix.environ.items()}\n"
            "in_a_child = subprocess.run(['env', '-0'], capture_output=True, text=True).stdout\n"
            "result = dict(os.environ), in_posix, os.fsdecode(block), in_a_child, time.tzname[0]",
        )
        mine, in_posix, block, in_a_child, zone = found
        assert mine == in_posix == variables(block) == variables(in_a_child)
        assert (mine[TOKEN], mine["SET_LATER"], mine.get(ROOM)) == (other.process._mark, "x" * 100, None)
        assert zone == "JST"
        assert [process.pid for process in strays.marked(other.process._mark)] == [other.process.pid]
    assert "SET_LATER" not in call(session, "result = dict(os.environ)")


def variables(block: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in block.split("\0") if entry)


def test_an_environment_larger_than_the_parent_s_still_shows_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_LARGE_ONE", "x" * 10 * warm_parent.ROOM_BYTES)
    with new_session() as second:
        second.prepare()
        assert [process.pid for process in strays.marked(second.process._mark)] == [second.process.pid]
        assert call(second, "result = len(os.environ['A_LARGE_ONE'])") == 10 * warm_parent.ROOM_BYTES


def test_a_variable_that_counts_at_the_start_starts_another_parent(another, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_session() as early:
        before = parent_of(early)
        monkeypatch.setenv("OMP_NUM_THREADS", "1" if os.environ.get("OMP_NUM_THREADS") != "1" else "2")
        with new_session() as late:
            assert parent_of(late) != before


def test_an_answer_has_only_its_own_descriptors_signals_and_folders(session: StudentSession) -> None:
    state = (
        "import tempfile\nfiles = sorted(int(d) for d in os.listdir('/proc/self/fd'))\n"
        "signals = [signal.getsignal(s) for s in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)]\n"
        "files = [d for d in files if d > 2 and d < 900 and os.path.exists(f'/proc/self/fd/{d}')]\n"
        "as_new = signals == [0, 0, signal.default_int_handler], signal.set_wakeup_fd(-1), sys.argv[1:]\n"
        "result = len(files), *as_new, tempfile.gettempdir(), os.getcwd(), os.getsid(0) == os.getpid()"
    )
    files, *rest = call(session, state)
    scratch = session.process.scratch
    assert files <= 5  # requests, replies, passed, stack, and IPython's
    assert rest == [True, -1, [], str(scratch.temporary), str(scratch.folder), True]


def test_numba_and_matplotlib_are_each_answer_s_own(session: StudentSession) -> None:
    assert call(session, "result = [name for name in ('numba', 'matplotlib', 'torch') if name in sys.modules]") == []
    where = "import numba, matplotlib\nresult = numba.config.CACHE_DIR, matplotlib.get_configdir()"
    with new_session() as other:
        assert all(place.startswith(str(other.process.scratch.root)) for place in call(other, where))


# What a hostile answer tries

RIGHTS = {
    "remounts the root": "refused(libc.mount(b'none', b'/', None, 32, None))",
    "makes all writable": "refused(libc.syscall(442, -100, b'/', 0x8000, bytes(8) + b'\\1' + bytes(23), 32))",
    "unmounts": "refused(libc.umount2(b'/dev/shm', 2))",
    "enters another view": "refused(libc.setns(os.open('/proc/PARENT/ns/mnt', os.O_RDONLY), 0))",
    "changes the root": "refused(libc.chroot(b'/tmp'))",
    "raises its rights": "refused(libc.capset((0x20080522).to_bytes(4, 'little') + bytes(4), b'\\xff' * 24))",
    "raises a limit": "refused(libc.prlimit(PARENT, 0, bytes(16), None))",
    "sets the time": "refused(libc.settimeofday(bytes(16), None))",
    "makes a device": "refused(libc.mknod(b'device', 0o60600, 0xfe00))",
    "makes the parent its child": "refused(libc.ptrace(16, PARENT, 0, 0))",
    "reads the parent's memory": "refused(libc.process_vm_readv(PARENT, AREA, 1, AREA, 1, 0))",
    "takes a descriptor": "refused(libc.syscall(438, os.pidfd_open(PARENT), 3, 0))",
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHTS)
def test_an_answer_has_no_rights_of_its_parent(name: str, session: StudentSession) -> None:
    found = call(session, f"result = {RIGHTS[name]}")
    assert str(found).startswith(("EPERM", "EACCES", "PermissionError")), found


def test_an_answer_has_no_capabilities_but_those_to_open_files(session: StudentSession) -> None:
    lines = call(session, "result = open('/proc/self/status').read()").splitlines()
    sets = {line[:6]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}
    of_files = sum(1 << one for one in confinement.OF_FILES) if os.geteuid() == 0 else 0
    for name in ("CapPrm", "CapEff"):
        assert sets[name] & ~of_files == 0
    assert (sets["CapInh"], sets["CapAmb"]) == (0, 0)


REACHES = {
    "signals it": "os.kill(PARENT, signal.SIGKILL)",
    "signals it by the C library": "result = refused(libc.kill(PARENT, 9))",
    "signals its group": "result = refused(libc.kill(-PARENT, 9))",
    "opens its memory": "open('/proc/PARENT/mem', 'rb+', buffering=0)",
    "opens its descriptors": "os.readlink('/proc/PARENT/fd/0')",
    "opens its root": "os.listdir('/proc/PARENT/root')",
    "reads its environment": "open('/proc/PARENT/environ').read()",
    "raises its turn to be ended": "open('/proc/PARENT/oom_score_adj', 'w').write('1000')",
}


@needs_scope
@pytest.mark.parametrize("name", REACHES)
def test_an_answer_does_not_reach_the_warm_parent(name: str, session: StudentSession) -> None:
    found = str(call(session, REACHES[name]))
    assert found.startswith(("EPERM", "EACCES", "PermissionError")), found
    assert psutil.pid_exists(parent_of(session))


def test_what_an_answer_changes_is_not_in_the_next_one() -> None:
    changes = (
        "import builtins, minidl, numpy, IPython\nbuiltins.left = minidl.left = numpy.left = IPython.left = 1\n"
        "sys.modules['left'] = sys\nsys.path.insert(0, 'left')\nos.environ['LEFT'] = '1'\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ngc.disable()"
    )
    with new_session() as one:
        call(one, changes)
    found = (
        "import builtins, minidl, numpy, IPython\n"
        "result = [hasattr(m, 'left') for m in (builtins, minidl, numpy, IPython)]\n"
        "result += ['left' in names for names in (sys.modules, sys.path)]\n"
        "result += ['LEFT' in os.environ, signal.getsignal(signal.SIGTERM) == signal.SIG_IGN, not gc.isenabled()]"
    )
    with new_session() as two:
        assert call(two, found) == [False] * 9


def test_no_memory_is_shared_with_the_parent(session: StudentSession) -> None:
    maps = call(session, "result = open('/proc/self/maps').read()")
    writable = [line for line in maps.splitlines() if line.split()[1].startswith("rw") and line.split()[1][3] == "s"]
    assert len(writable) == 1  # the fence's count of started processes
    with new_session() as other:
        maps = call(other, "result = open('/proc/self/maps').read()")
        theirs = [line for line in maps.splitlines() if line.split()[1].startswith("rw") and line.split()[1][3] == "s"]
    assert [line.split()[4] for line in theirs] != [line.split()[4] for line in writable]  # another inode


def test_an_answer_that_closes_and_writes_everywhere_harms_only_itself(session: StudentSession) -> None:
    sources = (
        "os.closerange(0, 4096)",
        "for d in range(3, 100):\n    try: os.write(d, b'x' * 100)\n    except OSError: pass",
        "os.killpg(0, signal.SIGKILL)",
        "while True: os.fork()",
        "os._exit(0)",
    )
    for source in sources:
        with new_session() as other:
            other.prepare()
            with contextlib.suppress(Died, TooLong):
                call(other, source)
    assert call(session, "result = 1") == 1
    with new_session() as other:
        assert call(other, "result = 2") == 2
        assert parent_of(other) == parent_of(session)


def test_nothing_of_the_checks_is_in_a_warm_process(session: StudentSession) -> None:
    loaded = call(session, "result = sorted(sys.modules)")
    assert [name for name in loaded if name.startswith(("course.checks", "course.judging", "course.grading"))] == []
    found = call(session, "result = [type(one).__name__ for one in gc.get_objects() if type(one) is socket.socket]")
    assert len(found) <= 1  # the one that passes descriptors of ranks


# How it ends, and is replaced


@pytest.mark.parametrize("how", [signal.SIGSTOP, *exhaustively(signal.SIGKILL)])
def test_a_killed_or_stopped_parent_is_replaced_and_its_answers_go_on(how, another, monkeypatch) -> None:
    monkeypatch.setattr(warm_parent, "FORK_SECONDS", 1.0)
    with new_session() as early:
        before = parent_of(early)
        os.kill(before, how)
        with new_session() as late:
            assert parent_of(late) != before
        assert not psutil.pid_exists(before)
        assert call_alone(early, "result = 4") == 4
        root = early.process.scratch.root
    assert not root.exists()


def test_threads_may_request_forks_concurrently() -> None:
    def one(number: int) -> Any:
        with new_session() as session:
            return call(session, f"result = {number}")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(4))) == [0, 1, 2, 3]


def test_a_fork_of_the_check_has_a_parent_of_its_own(session: StudentSession) -> None:
    mine, (read, write) = parent_of(session), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with new_session() as other:
                other.prepare()
                os.write(write, str(parent_of(other)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        its = int(pipe.read())
    os.waitpid(child, 0)
    assert its != mine
    assert call(session, "result = 1") == 1
    assert ends(its)


PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from course.judging.process.student_session import StudentSession
session = StudentSession(lambda session: None)
session.prepare()
process = session.process
print(process.supervisor.pid, process.pid, process.scratch.root, flush=True)
sys.stdin.read()
try:
    session.request("parameters", ("f",))
finally:
    session.close()
"""


@pytest.mark.parametrize("killed", ["check", "parent", "supervisor", "answer"])
def test_nothing_is_left_when_one_of_them_is_killed(killed: str) -> None:
    check = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    supervisor, answer, scratch = check.stdout.readline().split()
    parent = psutil.Process(int(supervisor)).ppid()
    pids = {"check": check.pid, "parent": parent, "supervisor": int(supervisor), "answer": int(answer)}
    os.kill(pids[killed], signal.SIGKILL)
    if killed == "check":
        check.wait()
    check.communicate("")  # it goes on, and ends
    assert [name for name, pid in pids.items() if not ends(pid)] == []
    assert gone(scratch)


def ends(pid: int, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def gone(folder: str, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while os.path.exists(folder) and time.monotonic() < until:
        time.sleep(0.05)
    return not os.path.exists(folder)


def test_the_check_receives_exit_codes_and_signals() -> None:
    for source, says in (
        ("os._exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ):
        with new_session() as session, pytest.raises(Died, match=says):
            call(session, source)


def test_a_parent_that_cannot_start_says_why(another, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "course.py").write_text("raise SystemExit('a damaged course')")
    monkeypatch.setattr(warm_parent, "ROOT", tmp_path)
    with new_session() as session, pytest.raises(RuntimeError, match="a damaged course"):
        session.prepare()


def test_without_the_warm_parent_a_session_starts_its_process_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(student_process, "FORKS", False)
    with new_session() as session:
        assert call(session, "result = 5") == 5
        root = session.process.scratch.root
        assert "answer_process" in " ".join(psutil.Process(session.process.pid).cmdline())
    assert not root.exists()
