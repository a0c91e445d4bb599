"""An answer changes nothing outside its folder, reads no secret, ends with all that it started; honest work goes on.

Whatever way it takes: Python, a shell, or the C library.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from course.judging.process import strays
from course.judging.process.student_session import StudentSession
from course.sandbox import landlock, supervisor
from course.sandbox.errors.ending import Died
from course.sandbox.terms import MAY_WRITE
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

needs_landlock = pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")
needs_scope = pytest.mark.skipif(landlock.version() < landlock.SCOPE_SINCE, reason="its Landlock has no signal scope")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")

ANSWER = """
import ctypes, errno, os, signal, sqlite3, subprocess
libc = ctypes.CDLL(None, use_errno=True)

def run(source):
    names = dict(globals())
    exec(source, names)
    return names.get("result")

def shell(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout + done.stderr
"""


class Room:
    """One answer's process beside folders that it must not touch: `other` may be read, `secret` may not."""

    def __init__(self, folder: Path) -> None:
        self.other, self.secret = folder / "other", folder / "secret"
        for place in (self.other, self.secret):
            place.mkdir()
            (place / "kept").write_text("the words of the solution")
        (folder / "link").symlink_to(self.secret / "kept")
        os.link(self.secret / "kept", self.secret / "hard")
        self.session = StudentSession(self._load, secret=[self.secret])

    def _load(self, session: StudentSession) -> None:
        self.process = session.process
        session.request("run_cell", ("cell 1", ANSWER), 30.0)

    def call(self, name: str, text: str) -> object:
        text = text.replace("OTHER", str(self.other)).replace("SECRET", str(self.secret))
        kind, value = self.session.request("call", (None, name, (text.replace("CHECK", str(os.getpid())),)))
        return value[0] if kind == "value" else f"{value['type']}: {value['text']}"

    def is_as_it_was(self) -> bool:
        places = {path.name: path for place in (self.other, self.secret) for path in place.iterdir()}
        return sorted(places) == ["hard", "kept"] and places["kept"].read_text() == "the words of the solution"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    room = Room(tmp_path_factory.mktemp("room"))
    yield room
    room.session.close()


REFUSALS = (
    "PermissionError", "[Errno 18]", "[Errno 30]", "unable to open database", "denied", "not permitted", "ross-device",
    "Read-only",
)  # fmt: skip
"""What Python, the C library and the shell's commands say when the kernel refuses."""

WRITES = {
    "opens": "open('OTHER/left', 'w').close()",
    "opens relative to a folder": "os.open('left', os.O_CREAT | os.O_WRONLY, dir_fd=os.open('OTHER', os.O_RDONLY))",
    "makes a pipe": "os.mkfifo('OTHER/left')",
    "makes a node": "os.mknod('OTHER/left')",
    "makes a folder": "os.mkdir('OTHER/left')",
    "makes a link": "os.symlink('/', 'OTHER/left')",
    "links a secret to itself": "os.link('SECRET/kept', 'mine')",
    "moves": "os.rename('OTHER/kept', 'mine')",
    "moves there": "open('mine', 'w').close(); os.rename('mine', 'OTHER/kept')",
    "removes": "os.remove('OTHER/kept')",
    "removes relative to a folder": "os.remove('kept', dir_fd=os.open('OTHER', os.O_RDONLY))",
    "follows a link": "os.symlink('OTHER/kept', 'link'); open('link', 'w').close()",
    "changes rights": "os.chmod('OTHER/kept', 0)",
    "writes into the home": "open(os.path.expanduser('~/left_by_an_answer'), 'w').close()",
    "shortens": "os.truncate('OTHER/kept', 0)",
    "keeps a data base": "sqlite3.connect('file:OTHER/left?mode=rwc', uri=True).execute('create table t (a)')",
    "keeps a history": "import readline; readline.write_history_file('OTHER/left')",
    "opens without Python": "f = libc.open(b'OTHER/left', os.O_CREAT | os.O_WRONLY, 0o600)\n"
    "if f < 0: raise OSError(ctypes.get_errno(), 'refused')",
    "binds a socket": "import socket; socket.socket(socket.AF_UNIX).bind('OTHER/left')",
    "writes into /tmp": f"open('{tempfile.gettempdir()}/left_by_an_answer', 'w').close()",
    "writes into /var/tmp": "os.mkdir('/var/tmp/left_by_an_answer')",
    "makes a disk": "os.mknod('disk', 0o60600, os.makedev(254, 0))",
}


@needs_landlock
def test_outside_its_folder_an_answer_changes_nothing(room: Room) -> None:
    for way, source in WRITES.items():
        said = str(room.call("run", f"{source}\nresult = 'done'"))
        assert any(refusal in said for refusal in REFUSALS), (way, said)
        assert room.is_as_it_was(), way


def test_what_is_refused_says_what_was_tried_and_what_is_allowed(room: Room) -> None:
    said = room.call("run", "os.remove('OTHER/kept')")
    assert said == f"PermissionError: os.remove of {room.other}/kept: {MAY_WRITE}"
    said = room.call("run", "import socket; socket.create_connection(('127.0.0.1', 9))")
    assert said == "PermissionError: an answer may not use the network, and it tried ('127.0.0.1', 9)"


@needs_landlock
def test_what_only_the_kernel_refuses_says_what_is_allowed_as_well(room: Room) -> None:
    assert str(room.call("run", "os.mkfifo('OTHER/left')")).endswith(f": {MAY_WRITE}")


SWITCHES = {
    "names": "from course.sandbox import fence\nfence.WATCHED = fence.FOLLOWED = ()\nfence.CHANGES.clear()\n"
    "fence.place_of = lambda *a: ''\nfence.os = None",
    "methods": "from course.sandbox import fence\nfence.Fence.put_up = fence.Fence.__init__ = lambda *a: None",
    "code": "import gc, types\ngc.unfreeze()\nfor one in gc.get_objects():\n"
    "  if isinstance(one, types.FunctionType) and one.__qualname__ == 'audit_hook.<locals>.hook':\n"
    "    try: one.__code__ = (lambda event, arguments: None).__code__\n    except PermissionError: result = 'refused'\n"
    "assert result == 'refused'",
}


def test_an_answer_cannot_switch_the_fence_off(room: Room) -> None:
    for way, switch in SWITCHES.items():
        assert "PermissionError: open of" in str(room.call("run", f"{switch}\nopen('OTHER/left', 'w').close()")), way
        assert room.is_as_it_was(), way


SHELL = [
    "echo no > OTHER/left", "echo no > OTHER/kept", "echo no > SECRET/left", "rm -rf OTHER SECRET", "mkfifo OTHER/left",
    "mv OTHER/kept .", "cp /bin/sh OTHER/left", "rm -f mine; ln SECRET/kept mine", "ln -s / OTHER/left",
    "truncate -s 0 OTHER/kept", "touch /tmp/left_by_an_answer /var/tmp/left_by_an_answer",
]  # fmt: skip


@needs_landlock
def test_outside_its_folder_a_shell_changes_nothing(room: Room) -> None:
    for command in SHELL:
        said = str(room.call("shell", command))
        assert any(refusal in said for refusal in REFUSALS), (command, said)
        assert room.is_as_it_was(), command


def test_with_a_view_of_its_own_a_shell_changes_no_rights_and_dates(room: Room) -> None:
    room.call("run", "")
    if not room.session.process.has_own_view:
        pytest.skip("no administrator, and no namespaces of users")
    before = (room.other / "kept").stat()
    said = str(room.call("shell", "chmod 0 OTHER/kept SECRET; touch -d 2001-01-01 OTHER/kept; chown 7 OTHER/kept"))
    assert said.count("Read-only") == 4
    assert (room.other / "kept").stat() == before


READS = [
    "cat SECRET/kept", "cat SECRET/*", "ls SECRET", "find SECRET -type f", "cat SECRET/../link",
    "cp SECRET/kept x; cat x",
    "ln -s SECRET/kept x; cat x", "cat /proc/self/root/SECRET/kept", "cat /proc/CHECK/root/SECRET/kept",
    "cat /proc/CHECK/environ", "head -c 1 /proc/CHECK/mem", "exec 3< SECRET/kept; cat <&3", "grep -r words SECRET",
]  # fmt: skip


@needs_landlock
def test_a_secret_folder_can_be_neither_read_nor_listed(room: Room) -> None:
    for command in READS:
        said = str(room.call("shell", command))
        assert "words of the solution" not in said, command
        assert "hard" not in said, command
        refusals = ("denied", "not permitted", "No such file")  # the last one of a pattern that matches nothing
        assert any(refusal in said for refusal in refusals), (command, said)


@needs_landlock
def test_other_folders_can_be_read_and_listed(room: Room) -> None:
    assert room.call("shell", "cat OTHER/kept; ls OTHER") == "the words of the solutionkept\n"


REFUSED = "if ctypes.get_errno(): raise OSError(ctypes.get_errno(), '')"

KILLS = {
    "Python": "os.kill(OUTSIDER, signal.SIGTERM)",
    "its supervisor": f"libc.kill(os.getppid(), signal.SIGKILL)\n{REFUSED}",
    "the C library": f"libc.kill(OUTSIDER, signal.SIGTERM)\n{REFUSED}",
    "a descriptor": "signal.pidfd_send_signal(os.pidfd_open(OUTSIDER), signal.SIGTERM)",
    "ptrace": f"libc.ptrace(16, OUTSIDER, 0, 0)\n{REFUSED}",
    "a shell": "if 'not permitted' in shell('kill -9 OUTSIDER'): raise PermissionError",
}


@needs_scope
def test_an_answer_cannot_signal_or_trace_processes_that_it_did_not_start(room: Room) -> None:
    with subprocess.Popen(["sleep", "1000"]) as outsider:
        try:
            for way, source in KILLS.items():
                source = source.replace("OUTSIDER", str(outsider.pid))
                said = str(room.call("run", f"ctypes.set_errno(0)\n{source}\nresult = 'done'"))
                assert "PermissionError" in said, way
                assert outsider.poll() is None, way
                assert room.session.process.supervisor.poll() is None, way
        finally:
            outsider.kill()


@on_linux
def test_an_answer_may_signal_what_it_has_started(room: Room) -> None:
    started = "subprocess.Popen(['sleep', '1000'], start_new_session=True, env={})"
    assert room.call("run", f"child = {started}\nchild.kill()\nresult = child.wait()") == -9
    orphan = "subprocess.run('sleep 1000 > /dev/null 2>&1 & echo $!', shell=True, capture_output=True).stdout"
    assert room.call("run", f"result = os.kill(int({orphan}), signal.SIGTERM)") is None


def test_ordinary_work_is_not_refused_by_the_fence(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("42")
    source = """
import logging, os, pickle, shutil, sqlite3, subprocess, tempfile, threading
import matplotlib.pyplot as plt, numba, numpy as np
from multiprocessing import Lock
from minidl import cluster

@numba.njit
def doubled(x):
    return 2 * x

def f():
    plt.plot([1, 2]); plt.savefig("figure.png")
    logging.basicConfig(filename="run.log", level=logging.INFO); logging.info("here")
    np.save("array.npy", np.arange(3.0)); pickle.dump([1], open("list.pickle", "wb"))
    with tempfile.NamedTemporaryFile("w") as file: file.write("x")
    with tempfile.TemporaryDirectory() as folder: shutil.move("list.pickle", folder + "/moved")
    with Lock(): pass
    open(os.devnull, "w").write("x")
    sqlite3.connect("mine.db").execute("create table t (a)")
    listed = subprocess.run("ls > listed; cat listed", shell=True, capture_output=True, text=True)
    run = cluster.launch(lambda comm: comm.all_reduce(float(doubled(comm.rank))), nodes=2)
    started = threading.Thread(target=lambda: None); started.start(); started.join()
    return run.results, listed.stderr, listed.stdout.split(), open("data.txt").read()
"""
    with StudentSession(
        lambda session: session.request("run_cell", ("cell 1", source), 60.0), folder=tmp_path
    ) as session:
        kind, (value, *_) = session.request("call", (None, "f", ()), 60.0)
    there = ["array.npy", "data.txt", "figure.png", "listed", "mine.db", "run.log"]
    assert (kind, value) == ("value", ([2.0, 2.0], "", there, "42"))
    assert [path.name for path in tmp_path.iterdir()] == ["data.txt"]


LEAVE = {
    "forks twice": "import time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  time.sleep(1000)",
    "closes all": "import time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n"
    "  os.closerange(0, 1000)\n  os.environ.clear()\n  time.sleep(1000)",
    "drops its mark": "shell('(env -i prlimit --msgqueue=1:1 setsid sleep 1000 > /dev/null 2>&1 &)')",
    "ignores signals": "shell(\"trap '' 1 2 3 13 15; setsid sh -c 'while true; do sleep 1; done' > /dev/null 2>&1 &\")",
    "stops": "shell('setsid sh -c \"kill -STOP \\\\$\\\\$\" > /dev/null 2>&1 &')",
    "starts 90": "shell('for n in $(seq 90); do sleep 1000 > /dev/null 2>&1 & done')",
    "starts generations": "open('g.sh', 'w').write('(sh -c \"sleep 1000 & sleep 1000\" &) & ' * 9)\n"
    "shell('sh g.sh > /dev/null 2>&1')",
}
TOGETHER = [["closes all", "drops its mark", "ignores signals"], *exhaustively(*([name] for name in LEAVE))]
"""What one answer leaves: several at once in the first tier."""


@on_linux
@pytest.mark.parametrize("names", TOGETHER, ids=", ".join)
def test_all_that_an_answer_has_started_ends_with_it(names: list[str], room: Room) -> None:
    for name in names:
        assert room.call("run", f"{LEAVE[name]}\nresult = 'done'") == "done"
    process = room.session.process
    left = set(supervisor.descendants(process.supervisor.pid)) - {process.pid}
    assert len(left) >= len(names)
    room.session.close()
    assert [pid for pid in left if os.path.exists(f"/proc/{pid}") and "zombie" not in status_of(pid)] == []


def status_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "zombie"


@on_linux
def test_200_processes_are_too_many_and_none_is_left(room: Room) -> None:
    with pytest.raises(Died, match="more than 100 are not allowed"):
        room.call("shell", "for n in $(seq 200); do setsid sleep 1000 > /dev/null 2>&1 & done; sleep 1000")
    assert strays.marked(room.process._mark) == []


@on_linux
def test_shared_memory_that_a_shell_leaves_is_removed(room: Room) -> None:
    assert room.call("shell", "echo kept > /dev/shm/left_by_an_answer; cat /dev/shm/left_by_an_answer") == "kept\n"
    if not room.session.process.has_own_view:
        room.session.close()
        Path("/dev/shm/left_by_an_answer").unlink()
        pytest.skip("no administrator, and no namespaces of users: shared memory is that of the machine")
    key = random.randrange(2**24, 2**31)
    assert room.call("run", f"result = libc.shmget({key}, 4096, 0o1600) >= 0 and 'made'") == "made"
    assert f" {key} " not in Path("/proc/sysvipc/shm").read_text()
    room.session.close()
    assert not os.path.exists("/dev/shm/left_by_an_answer")


def test_each_version_of_landlock_says_what_it_protects() -> None:
    assert "has no Landlock" in landlock.protected(0)[0]
    assert [len(landlock.protected(version)) for version in range(1, 8)] == [1, 2, 3, 4, 5, 6, 6]
