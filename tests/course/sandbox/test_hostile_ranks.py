"""On ranks, too, no answer can hang, crash or cheat: what it knows has come by messages, and these are counted."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from course.checks import messages_and_collectives
from course.judging import Answer, AnswerFailed, Status
from course.judging.process import strays
from course.judging.ranks import rank_calls
from course.judging.ranks.forked_ranks import ForkedRanks
from course.sandbox import landlock
from course.sandbox.fence import MOST_STARTED
from tests.course.student_on_ranks import Student
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


def processes_of(student: Student) -> int:
    """How many there are: looked for until only the student's own is left, or for 100 seconds."""
    until = time.monotonic() + 100.0
    while len(found := strays.marked(student.session.process._mark)) > 1 and time.monotonic() < until:
        time.sleep(0.05)
    return len(found)


# What ends a run

ENDINGS = [
    ("while True: pass", Status.STUCK,
     "did not finish within 5 s; rank 1 of 3 was in cell program, line 5: while True: pass"),
    ("import os; os._exit(7)", Status.RAISED, "on rank 1 of 3 it ended its process with exit code 7"),
    ("import os; [os.write(d, b'garbage of any kind') for d in range(3, 60) if os.path.exists(f'/proc/self/fd/{d}')"
     " and 'socket' in os.readlink(f'/proc/self/fd/{d}')]", Status.RAISED,
     "on rank 1 of 3 it wrote into the connection"),
    ("import os; os.kill(os.getpid(), 9)", Status.RAISED, "on rank 1 of 3 its process was ended by SIGKILL"),
    ("import ctypes; ctypes.string_at(0)", Status.RAISED, "on rank 1 of 3 its process was ended by SIGSEGV"),
    ("import os; os.closerange(0, 100); os.kill(os.getpid(), 19)", Status.RAISED,
     "on rank 1 of 3 it closed the connection"),
    ("raise KeyError('mine')", Status.RAISED,
     "raised KeyError on rank 1 of 3: 'mine'\nIt was raised in cell program, line 5"),
    ("raise SystemExit(3)", Status.RAISED, "raised SystemExit on rank 1 of 3: 3"),
    ("raise NotImplementedError", Status.RAISED,
     "raised NotImplementedError on rank 1 of 3\nIt was raised in cell program, line 5: raise"),
    ("comm.irecv(0) + np.ones(2)", Status.RAISED, "what irecv returns is no array: its wait() returns what came"),
    ("return np.ones(2**20)", Status.RAISED, "the check takes at most"),
    ("comm.send(np.ones(2**20), 0)", Status.RAISED, "the check takes at most"),
]  # fmt: skip


@pytest.mark.parametrize("endings", [ENDINGS[1:8:3], *exhaustively(ENDINGS)], ids=["some", "all"])
def test_one_rank_ends_the_run_and_is_named(student, endings):
    for what, status, says in endings:
        program = f"def program(comm):\n    if comm.rank == 1:\n        {what}\n    comm.barrier()"
        with pytest.raises(AnswerFailed) as failed:
            student.on_ranks(program, [()] * 3)
        assert failed.value.status is status, what
        assert says in f"{failed.value.message}\n"
        if student.session.process is not None:
            assert processes_of(student) == 1, what


def test_what_a_rank_sends_in_a_run_is_bounded(student, monkeypatch):
    monkeypatch.setattr(rank_calls, "MOST_SENT", 2**20)
    program = "def program(comm):\n    while True: comm.isend(np.ones(1000), 1 - comm.rank)"
    assert "a rank sends at most 1 MB in a check" in student.failure(program)


def test_texts_of_calls_count_as_sent_since_the_trace_keeps_them(student, monkeypatch):
    monkeypatch.setattr(rank_calls, "MOST_SENT", 2**20)
    for call in ("mark('x' * 100_000)", "barrier(label='x' * 100_000)"):
        program = f"def program(comm):\n    for _ in range(30): comm.{call}"
        assert "a rank sends at most 1 MB in a check" in student.failure(program)


SAID = [
    ("def program(comm):\n    comm.recv(1 - comm.rank)",
     ["rank 0: recv (call 1) waits for rank 1", "rank 1: recv (call 1) waits for rank 0",
      "all at cell program, line 4"]),
    ("def program(comm):\n    if comm.rank:\n        return helper(comm)\n    comm.recv(1)\n"
     "def helper(comm):\n    comm.send(np.ones(10**5), 0, tag=3)",
     ["rank 0: recv (call 1) waits for rank 1, at cell program, line 6: comm.recv(1)",
      "rank 1: send (call 1) waits for rank 0, at cell program, line 8: comm.send("]),
    ("def program(comm):\n    work = comm.irecv(1 - comm.rank)\n    work.wait()",
     ["rank 0: irecv (call 2) waits for rank 1", "all at cell program, line 5: work.wait()"]),
    ("def program(comm):\n    comm.send(1, 5)",
     ["raised ValueError on rank 0 of 2: dst must be from 0 to 1, got 5: this communicator has 2 ranks",
      "It was raised in cell program, line 4: comm.send(1, 5)"]),
    ("def program(comm):\n    comm.all_reduce(np.broadcast_to(1.0, 3))", ["x is read-only: pass a copy, x.copy()"]),
    ("def program(comm):\n    x = np.ones(2)\n    comm.all_reduce(x, async_op=True)\n    comm.send(x, 0)",
     ["raised RuntimeError on rank", "send uses an array that all_reduce at <cell program>:5 still writes"]),
    ("def program(comm):\n    comm.shared_array('a', 3)", ["comm.shared_array cannot be used in a check"]),
]  # fmt: skip


def test_errors_of_the_simulation_have_their_words_and_the_student_s_lines(student):
    for program, lines in SAID:
        message = student.failure(program)
        assert [line for line in lines if line not in message] == [], message
    assert processes_of(student) == 1


def test_swapped_collectives_are_distinguished_by_the_student_s_lines(student):
    program = (
        "def one(comm): comm.all_reduce(1.0)\ndef two(comm): comm.all_reduce(2.0)\n"
        "def program(comm):\n    for call in (one, two) if comm.rank < 2 else (two, one):\n        call(comm)\n"
    )
    message = student.failure(program, nodes=4)
    assert "raised CollectiveMismatch" in message
    assert "<cell program>:3" in message
    assert "<cell program>:4" in message


def test_a_copy_made_by_fork_ends_where_it_calls_or_returns(student):
    seen = student.on_ranks("def program(comm):\n    import os; os.fork()\n    return comm.all_reduce(1)", [()] * 2)
    assert seen.results == [2, 2]
    student.session.drop_ranks()
    assert processes_of(student) == 1


def test_ranks_are_forked_once_and_anew_when_a_cell_has_run(student):
    student.on_ranks("def program(comm): return comm.rank", [()] * 3)
    ranks = student.session.ranks
    answer = Answer("program", student.session)
    assert answer.on_ranks([()] * 2).results == [0, 1]
    assert isinstance(ranks, ForkedRanks)
    assert student.session.ranks is ranks
    student._load(student.session)
    assert student.session.ranks is None
    assert processes_of(student) == 1


THREADS = """
import threading
def run():
    while True: pass
for _ in range(2): threading.Thread(target=run, daemon=True).start()
"""


def test_threads_that_a_cell_left_running_hold_no_rank_up(student):
    program = f"{THREADS}\ndef program(comm): return comm.all_reduce(1)"
    assert student.on_ranks(program, [()] * 4).results == [4] * 4
    for _ in range(3):
        student.session.drop_ranks()
        assert Answer("program", student.session).on_ranks([()] * 4).results == [4] * 4
    student.session.close()


START_NEARLY_ALL = f"""
import os
for _ in range({MOST_STARTED - 2}):
    process = os.fork() or os._exit(0)
    os.waitpid(process, 0)
def program(comm): return comm.rank
"""


def test_a_check_may_fork_more_ranks_than_an_answer_may_start_processes(student):
    student.session.close()  # what others have started counts as well
    assert student.on_ranks(START_NEARLY_ALL, [()] * 10).results == list(range(10))
    student.session.close()


def test_memory_of_cells_that_ranks_share_counts_once(student, monkeypatch):
    program = "much = np.ones(2**25)\ndef program(comm): return comm.all_reduce(1)"
    assert student.on_ranks(program, [()] * 9).results == [9] * 9
    monkeypatch.setattr(student.session.process, "limits", replace(student.session.limits, memory=2**30))
    student.session.watch()  # a quarter of that is the array


def test_a_rank_can_import_what_asks_for_a_temporary_folder(student):
    program = "def program(comm):\n    import tempfile\n    return bool(tempfile.gettempdir())"
    assert student.on_ranks(program, [()] * 2).results == [True, True]


# Knowing without being told

SHARES = [np.full(7, 10.0**rank) for rank in range(3)]

SEARCH = """
import gc, inspect, sys
def arrays():
    seen, found = set(), []
    todo = gc.get_objects() + [f.frame.f_locals for f in inspect.stack()]
    todo += [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
    while todo and len(seen) < 10**6:
        one = todo.pop()
        if id(one) in seen: continue
        seen.add(id(one))
        if isinstance(one, np.ndarray) and one.shape == (7,): found.append(one)
        if isinstance(one, (list, tuple, dict)): todo += gc.get_referents(one)
    return found
def program(comm, x):
    comm.barrier()
    return sorted({float(one[0]) for one in arrays()})
"""


def test_a_search_of_memory_finds_this_rank_s_numbers_alone(student):
    seen = student.on_ranks(SEARCH, [(x,) for x in SHARES])
    assert seen.results == [[1.0], [10.0], [100.0]]


CELLS = """
import ctypes, mmap, os, signal, socket, tempfile
shared, (reading, writing), heard = mmap.mmap(-1, 4096), os.pipe(), []
os.set_blocking(reading, False)
left, right = socket.socketpair()
left.setblocking(False)
kept = tempfile.TemporaryFile()
file = open("mapped", "w+b")
file.truncate(4096)
mapped = mmap.mmap(file.fileno(), 4096)
signal.signal(signal.SIGUSR2, lambda *_: heard.append(1))
def ask():
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\\0minidl-test-of-ranks")
    listening.listen()
    listening.setblocking(False)
    return listening
def tcp():
    listening = socket.create_server(("127.0.0.1", 47123))
    listening.setblocking(False)
    return listening
def others():
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if int(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[1]) == os.getppid(): yield int(name)
            except (OSError, IndexError): pass
def attempt(what):
    try: return what()
    except Exception as error: return None
def program(comm, x):
    heard_by = {}
    for way, listen, tell, hear in WAYS:
        place = attempt(lambda: eval(listen, globals(), {"comm": comm, "x": x}))
        comm.barrier()
        if comm.rank == 0:
            attempt(lambda: eval(tell, globals(), {"comm": comm, "x": x}))
        comm.barrier()
        heard_by[way] = comm.rank == 1 and attempt(lambda: eval(hear, globals(), {"comm": comm, "place": place}))
    return heard_by
"""

WAYS = {
    "a message": ("0", "comm.send(x, 1)", "comm.recv(0)[0] == 1.0"),
    "a mapping": ("0", "shared.write(b'told')", "shared[:4] == b'told'"),
    "a mapped file": ("0", "mapped.write(b'told')", "mapped[:4] == b'told'"),
    "a pipe": ("0", "os.write(writing, b'told')", "os.read(reading, 4) == b'told'"),
    "a socket": ("0", "right.send(b'told')", "left.recv(4) == b'told'"),
    "an open file": ("0", "os.pwrite(kept.fileno(), b'told', 0)", "os.pread(kept.fileno(), 4, 0) == b'told'"),
    "the environment": ("0", "os.environ.update(TOLD='1')", "'TOLD' in os.environ"),
    "standard output": ("0", "os.write(1, b'told')", "os.read(os.open('/proc/self/fd/1', os.O_RDONLY), 4) == b'told'"),
}
"""The statements with which rank 1 listens, rank 0 tells and rank 1 hears."""

FORBIDDEN = {
    1: {
        "a file": ("0", "open('told', 'w').close()", "os.path.exists('told')"),
        "a temporary file": ("0", "open('/tmp/minidl-told', 'w').close()", "os.path.exists('/tmp/minidl-told')"),
        "a file by ctypes": ("0", "ctypes.CDLL(None).creat(b'told2', 0o600)", "os.path.exists('told2')"),
        "shared memory": ("0", "open('/dev/shm/minidl-told', 'w').close()", "os.path.exists('/dev/shm/minidl-told')"),
        "a shell": ("0", "os.system('touch told3')", "os.path.exists('told3')"),
        "another's memory": ("0", "0", "[open(f'/proc/{one}/mem', 'rb') for one in others()] != [] or None"),
    },
    4: {"a port": ("tcp()", "socket.create_connection(('127.0.0.1', 47123))", "place.accept() is not None")},
    6: {
        "a signal": ("0", "[ctypes.CDLL(None).kill(one, signal.SIGUSR2) for one in others()]", "heard == [1]"),
        "an abstract socket": (
            "ask() if comm.rank == 1 else 0",
            "socket.socket(socket.AF_UNIX).connect('\\0minidl-test-of-ranks')", "place.accept() is not None",
        ),
    },
}  # fmt: skip
"""More of them, by the version of Landlock that forbids them."""


def test_ranks_can_communicate_by_nothing_but_messages(student):
    """One run, in which rank 0 tries every way that is closed on this machine."""
    version = landlock.version()
    ways = WAYS | {name: way for since, ways in FORBIDDEN.items() if version >= since for name, way in ways.items()}
    text = f"WAYS = {[(name, *way) for name, way in ways.items()]!r}\n{CELLS}"
    heard = student.on_ranks(text, [(x,) for x in SHARES]).results[1]
    assert heard.keys() == ways.keys()
    assert [way for way, told in heard.items() if told] == ["a message"]


LIE = """
import sys, time
def program(comm, x):
    line, other = comm._line, 1 - comm.rank
    type(line).work = lambda self: (10**30, -1)
    type(comm).size, comm._ranks, comm._state.network = 1, (0,), b''
    time.monotonic = time.time = lambda: 0.0
    for name, module in list(sys.modules.items()):
        if name.startswith("minidl.cluster"):
            for each in list(vars(module)): setattr(module, each, None)
    for _ in range(3): comm.send(x, other)
    for _ in range(3): comm.recv(other)
"""


def test_what_an_answer_replaces_in_its_process_changes_no_count(student):
    seen = student.on_ranks(LIE, [(np.ones(4),)] * 2)
    assert seen.messages == [3, 3]
    assert seen.nbytes == [96, 96]
    assert seen.seconds == 3.0
    assert seen.heard_of == [{0, 1}] * 2


FORGED = [
    "['call', 0, '_collective', [], {}, 0, False, '', 0, 0]", "['call', 9, 'send', [1, 1], {}, 0, False, '', 0, 0]",
    "['call', 0, 'send', [1, 1], {}, [0, [['/dev/zero', 'f', 'f', 1, 2, 'x']]], False, '', 0, 0]",
    "['call', 0, 'send', [1, 1], {}, [0, [['a', 'f', 'f', 10**40, -5, 'x'] ] * 999], True, 'x' * 10**6, -1, 'y']",
    "['call', 0, 'recv', [1, 0, ('room', 'f8', [10**9, 10**9], True, True)], {}, 0, False, '', 0, 0]",
    "['call', 0, 'recv', [1, 0, ('room', 'O', [2], True, True)], {}, 0, False, '', 0, 0]",
    "['call', 0, 'all_reduce', [('array', np.ones(9), True, False)], {'algorithm': 'pipelined_chain', "
    "'segments': 10**9}, 0, False, '', 0, 0]",
    "['returned', 1, '', 0, 0]", "['raised', {'kind': 1}, '', 0, 0]", "7",
]  # fmt: skip


@pytest.mark.parametrize("requests", [FORGED[::4], *exhaustively(FORGED)], ids=["some", "all"])
def test_a_forged_request_is_refused_or_ends_the_run(student, requests):
    for request_ in requests:
        program = (
            "from course.sandbox.exchange import plain_data\ndef program(comm):\n"
            "    if comm.rank:\n        return comm.barrier()\n"
            f"    comm._line.write(plain_data.dumps({request_}))\n    comm.barrier()\n    comm.barrier()"
        )
        with pytest.raises(AnswerFailed) as failed:
            student.on_ranks(program, [()] * 2)
        assert "no fault of your answer" not in failed.value.message, request_


# Right results that no message has carried

OUT_OF_NOTHING = {
    "ring_all_reduce": "x[...] = sum(np.random.default_rng((0, r)).standard_normal(len(x)) for r in range(comm.size))\n"
                       "    return x",
    "broadcast_tree": "return np.random.default_rng(0).standard_normal({1: 4, 2: 3, 5: 7, 8: 8, 6: 0}[comm.size])",
}  # fmt: skip


def test_a_result_that_is_computed_from_the_seed_is_no_result_of_messages(student):
    for name, says in (
        ("ring_all_reduce", "the sum of all ranks cannot be known on rank 0: no message from rank 1 could have"),
        ("broadcast_tree", "rank 0's array cannot be known on rank 1: no message from rank 0 could have reached it"),
    ):
        exercise = messages_and_collectives.chapter.exercises[name]
        student.source = f"import numpy as np\ndef {name}(comm, x):\n    {OUT_OF_NOTHING[name]}"
        student._load(student.session)
        fault = exercise.judge(Answer(name, student.session)).first_fault
        assert fault is not None
        assert says in fault.message
