"""No answer can hang, crash, cheat or litter: each of these ends with a clear outcome, and leaves nothing behind."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from course.judging import Answer, ChapterChecks, Outcome, Part, Status, expect
from course.judging.process import strays as stray_processes
from course.judging.process.student_process import START_SECONDS
from course.judging.process.student_session import StudentSession
from course.sandbox.limits import Limits
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

LIMITS = Limits(seconds=30.0, memory=2 * 2**30, file_size=2**20, reply=2**20, printed=1000, processes=30)
OF_STUCK = replace(LIMITS, seconds=1.0)  # of an answer that never comes
SECRET = f"a secret of the check: {uuid.uuid4()}"

chapter = ChapterChecks("99_hostile")


@chapter.exercise(points=2)
def twice(answer: Answer, part: Part, secret: str = SECRET) -> None:
    """twice(x) returns 2 x, of an array."""
    x = np.arange(3.0)
    with part(1, "doubles"):
        expect.array(answer(x), 2 * x, "twice(x)")
    with part(1, "knows no secret"):
        expect.true(secret not in str(answer(x)), "it knew the secret")


@dataclass(frozen=True)
class Case:
    """The body of `twice(x)`, what comes of it, and what the first message says."""

    name: str
    body: str
    status: Status
    says: str = ""


RAISED, STUCK, WRONG, CORRECT = Status.RAISED, Status.STUCK, Status.WRONG, Status.CORRECT

CASES = [
    # without end
    Case("loops", "while True: pass", STUCK, "twice: did not finish within 1 s; it was in cell twice, line"),
    Case("recurses", "return twice(x)", RAISED, "twice raised RecursionError"),
    Case("sleeps, deaf to signals", "import signal, time\nfor s in (1, 2, 14, 15): signal.signal(s, signal.SIG_IGN)\n"
         "time.sleep(1000)", STUCK, "time.sleep(1000)"),
    Case("runs in a C loop", "return sum(range(10**12))", STUCK, "did not finish within 1 s"),
    # ending the process
    Case("exits", "import os; os._exit(0)", RAISED, "ended its process with exit code 0"),
    Case("alarms itself", "import signal, time; signal.alarm(1); time.sleep(10)", RAISED, "SIGALRM"),
    Case("crashes", "import ctypes; ctypes.string_at(0)", RAISED, "SIGSEGV"),
    Case("kills the check", "import os; os.kill(os.getppid(), 9)", RAISED, "may not send a signal"),
    # memory
    Case("one big array", "import numpy; return numpy.ones(10**10)", RAISED, "MemoryError"),
    Case("many small things", "x = []\nwhile True: x.append(bytes(10**6))", RAISED, "Error: an answer may use 4 GB"),
    Case("returns a lot", "import numpy; return numpy.ones(10**6)", RAISED, "the check takes at most"),
    Case("returns many items", "return [0] * 600_000", RAISED, "return arrays"),
    # output
    Case("writes without end", "import os\nwhile True: os.write(2, b'x' * 10000)", STUCK, "did not finish"),
    Case("writes to the terminal", "open('/dev/tty', 'w').write('x')", RAISED, "OSError"),
    Case("asks", "return input('what is x?')", RAISED, "cannot ask with input()"),
    # the connection
    Case("closes all", "import os; os.closerange(0, 1000); return 2 * x", RAISED, "closed the connection"),
    Case("writes to all", "import os\nfor d in range(3, 60):\n  try: os.write(d, b'garbage of any kind')\n"
         "  except OSError: pass\nreturn 2 * x", RAISED, "wrote into the connection"),
    Case("promises a message", "import os, time\nfor d in range(3, 60):\n  try: os.write(d, bytes(7) + b'x')\n"
         "  except OSError: pass\ntime.sleep(100)", STUCK, "did not finish"),
    # other processes
    Case("forks, and both return", "import os; os.fork(); return 2 * x", CORRECT),
    Case("leaves threads", "import threading\ndef run():\n  while True: pass\n"
         "threading.Thread(target=run).start()\nreturn 2 * x", CORRECT),
    Case("leaves a process", "import subprocess; subprocess.Popen(['sleep', '1000']); return 2 * x", CORRECT),
    Case("leaves a daemon", "import os, sys\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
         "    os.closerange(0, 1000); os.execve('/bin/sleep', ['sleep', '1000'], {})\n"
         "  os._exit(0)\nreturn 2 * x", CORRECT),
    Case("forks without end", "import os\nwhile True: os.fork()", RAISED, "processes"),
    Case("ends, and leaves a child with its pipes", "import os, time\nif os.fork() == 0: time.sleep(1000)\nos._exit(5)",
         RAISED, "exit code 5"),
    Case("a thousand processes", "from minidl import cluster\n"
         "return cluster.launch(lambda comm: 0, nodes=1000).results", RAISED, "at most 64 nodes"),
    Case("a thousand simulated nodes", "from minidl import cluster\n"
         "r = cluster.launch(lambda comm: comm.all_reduce(1.0), nodes=1000, on='simulation').results\n"
         "return x * (r[0] / 500)", CORRECT),
    # files
    Case("removes its folder", "import shutil; shutil.rmtree('../work', ignore_errors=True); return 2 * x", CORRECT),
    Case("removes the student's file", "import os; os.remove(MINE); return 2 * x", RAISED,
         "may write only where it runs"),
    Case("reads it", "assert open('mine.txt').read() == 'kept' == open(MINE).read(); return 2 * x", CORRECT),
    Case("writes where it is", "open('mine.txt', 'w').write('new'); return 2 * x", CORRECT),
    Case("fills the disk", "open('much', 'wb').write(bytes(2**21))", RAISED, "File too large"),
    # values
    Case("a generator", "yield 1", WRONG, "got a generator"),
    Case("an endless number", "return 1 << 2**27", WRONG, "got a whole number of 40,403,563 digits"),
    Case("long numbers in lists", "return [10**4000] * 1000", WRONG, "got a list of 1000"),
    Case("a list in itself", "a = []; a.append(a); return a", WRONG, "got a list"),
    Case("lists in lists", "a = [1]\nfor _ in range(60): a = [a, a]\nreturn a", RAISED, "200,000 items"),
    Case("equal to everything", "class E:\n  __array_priority__ = 1e9\n  def __eq__(s, o): return True\n"
         "  __sub__ = __rsub__ = __le__ = __abs__ = __array__ = lambda s, *o: s\nreturn E()", WRONG, "got an E"),
    Case("an array equal to everything", "import numpy\nclass A(numpy.ndarray):\n"
         "  __eq__ = __le__ = lambda s, o: True\n"
         "return x.view(A)", WRONG, "expected 2"),
    Case("hostile when shown", "class R:\n  def __repr__(s): raise SystemExit\nreturn R()", RAISED, "SystemExit"),
    Case("long when shown", "class R:\n  def __repr__(s): return 'x' * 10**8\nreturn R()", WRONG, "got a R"),
    Case("runs when unpickled", "import os\nclass P:\n  def __reduce__(s): return os._exit, (1,)\nreturn P()", WRONG,
         "got a P"),
    Case("an error that cannot be shown", "class E(Exception):\n  def __str__(s): raise SystemExit\nraise E", RAISED,
         "twice raised E"),
    Case("arrays of objects", "import numpy; return numpy.array([x, None], dtype=object)", WRONG, "Python objects"),
    # secrets
    Case("looks for secrets", "import gc, os, sys, inspect\ngc.unfreeze()\n"
         "seen = [o for o in gc.get_objects() if isinstance(o, (dict, list, tuple))]\n"
         "seen += [f.frame.f_locals for f in inspect.stack()] + [dict(os.environ), sys.argv]\n"
         "for o in seen:\n  try:\n    for v in (o.values() if isinstance(o, dict) else o):\n"
         "      if isinstance(v, str) and v.startswith('a sec') and v.count('-') == 4: return v\n"
         "  except Exception: pass\nreturn 2 * x", CORRECT),
]  # fmt: skip

FIRST = [
    "loops", "recurses", "sleeps, deaf to signals", "crashes", "kills the check", "many small things", "returns a lot",
    "returns many items", "asks", "writes to all", "forks, and both return", "leaves a daemon", "forks without end",
    "removes its folder", "removes the student's file", "fills the disk", "a generator", "an endless number",
    "equal to everything", "hostile when shown", "runs when unpickled", "arrays of objects", "looks for secrets",
]  # fmt: skip
"""Those of the first tier."""


class Room:
    """One student's process, whose function is replaced from case to case."""

    def __init__(self, folder: Path) -> None:
        self.mine = folder / "mine.txt"
        self.mine.write_text("kept")
        self.source = ""
        self.session = StudentSession(self._load, LIMITS, folder)

    def _load(self, session: StudentSession) -> None:
        self.process = session.process
        session.sources.add("<cell twice>", "cell twice", self.source)
        session.request("run_cell", ("cell twice", self.source), START_SECONDS)

    def outcome(self, body: str) -> Outcome:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        self.source = f"MINE = {str(self.mine)!r}\ndef twice(x):\n{lines}\n"
        if self.session.process is not None:
            self._load(self.session)
        return twice.judge(Answer("twice", self.session))


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    room = Room(tmp_path_factory.mktemp("student"))
    yield room
    room.session.close()


@pytest.mark.parametrize("is_first", [True, *exhaustively(False)], ids=["first", "others"])
def test_an_answer_ends_with_a_clear_outcome(is_first: bool, room: Room, capfd: pytest.CaptureFixture[str]) -> None:
    for case in (case for case in CASES if (case.name in FIRST) is is_first):
        room.session.limits = OF_STUCK if case.status is STUCK else LIMITS
        outcome = room.outcome(case.body)
        assert outcome.status is case.status, (case.name, outcome)
        if case.says:
            assert case.says in f"{outcome.first_fault.message}\n", case.name
        assert len(outcome.printed) <= LIMITS.printed, case.name
        assert room.mine.read_text() == "kept", case.name
        assert capfd.readouterr() == ("", ""), case.name  # nothing reaches the terminal
        if case.name.startswith(("leaves", "removes", "writes where")):
            room.session.close()
        if room.session.process is None:
            assert stray_processes.marked(room.process._mark) == [], case.name
            assert not room.process.scratch.root.exists(), case.name
            assert not room.session.output._reader.is_alive(), case.name
