"""A class of hostile notebooks is graded: none gains a point, stops the others, leaves anything, or gets a secret.

Some of each sort; with `--all`, every one.
"""

from __future__ import annotations

import csv
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest

from course.commands import grade
from course.judging import judged_notebook
from course.notebooks.roles import role_of
from course.sandbox import landlock, scratch
from course.sandbox.supervisor import TOKEN
from tests.course.grading.submitted_class import FLAT, ROOT
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(1800)

NAME = "04_messages_and_collectives"
TREE = "broadcast_tree"
SECRET_SEED, SECRET_WORDS = "seed=918273", "the words of the solution alone"

LOOPS = "def broadcast_tree(comm, x):\n    while True: pass"

EACH_CALL_SLOW = (
    "import time\ndef broadcast_tree(comm, x):\n    if comm.rank == 0: time.sleep(2.7)\n" + FLAT.partition("\n")[2]
)

SLOW = "slow in each call"

Change = Callable[[nbformat.NotebookNode], None]


@dataclass(frozen=True)
class Hostile:
    """A notebook: cells in front, the answer ("" for the solution's own), what else is changed, and its points.

    says: what a remark or a message says.
    """

    name: str
    cells: tuple[str, ...] = ()
    answer: str = FLAT
    change: Change | None = None
    points: float = 1.0
    says: str = ""


def role(notebook: nbformat.NotebookNode, name: str) -> dict[str, object]:
    """nbgrader's metadata of a cell."""
    return next(cell.metadata["nbgrader"] for cell in notebook.cells if role_of(cell).get("grade_id") == name)


def new_code_cell(source: str, metadata: object = None) -> nbformat.NotebookNode:
    """A cell with whatever metadata, which nbformat's own function refuses."""
    cell = {"cell_type": "code", "source": source, "metadata": metadata or {}, "outputs": [], "execution_count": None}
    return nbformat.from_dict(cell)


def new_markdown_cell(source: str) -> nbformat.NotebookNode:
    return nbformat.from_dict({"cell_type": "markdown", "source": source, "metadata": {}})


def worth_a_thousand(notebook: nbformat.NotebookNode) -> None:
    for cell in notebook.cells:
        if role_of(cell):
            cell.metadata["nbgrader"]["points"] = 1000
            cell.metadata["nbgrader"]["grade"] = True


def swapped(notebook: nbformat.NotebookNode) -> None:
    answer, check = role(notebook, TREE), role(notebook, f"check_{TREE}")
    answer["grade_id"], check["grade_id"] = check["grade_id"], answer["grade_id"]


def check_made_an_answer(notebook: nbformat.NotebookNode) -> None:
    for cell in notebook.cells:
        if role_of(cell).get("grade_id") == f"check_{TREE}":
            cell.metadata["nbgrader"] |= {"solution": True, "grade": False, "locked": False, "grade_id": "mine"}
            cell.source = "2.0"


def odd_names(notebook: nbformat.NotebookNode) -> None:
    for number, name in enumerate((["a", "list"], {"a": "dict"}, 7, None, True, "x" * 10**6, "../../up", "<script>")):
        notebook.cells.append(new_code_cell("1", metadata={"nbgrader": {"grade_id": name, "grade": True}}))
        notebook.cells.append(new_code_cell("2", metadata={"nbgrader": [number], "tags": {"a": 3}, "id": [1]}))


def everything_again(notebook: nbformat.NotebookNode) -> None:
    notebook.cells += notebook.cells * 3


def no_metadata_and_no_ids(notebook: nbformat.NotebookNode) -> None:
    notebook.metadata.clear()
    for cell in notebook.cells:
        cell.metadata.clear()
        cell.pop("id", None)


def scripts(notebook: nbformat.NotebookNode) -> None:
    evil = "<script>steal()</script><img src=x onerror=steal()><a href='javascript:steal()'>x</a><iframe src=//e.org>"
    evil += "<img src='https://spy.example/who.png'><svg onload=steal()><style>*{display:none}</style>"
    evil += "<a href='data:text/html,<script>steal()</script>'>y</a><form action=//e.org><input name=x>"
    notebook.cells.insert(0, new_markdown_cell(evil))
    notebook.cells.insert(0, new_code_cell(evil, metadata={"tags": ['"><script>steal()</script>']}))
    notebook.cells[0]["id"] = '"><script>steal()</script>'
    notebook.metadata["title"] = "</title><script>steal()</script>"
    notebook.metadata["widgets"] = {
        "application/vnd.jupyter.widget-state+json": {"state": {"a": "</script><script>steal()"}}
    }
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": '"><script>steal()</script>'}


def halves_of_characters(notebook: nbformat.NotebookNode) -> None:
    notebook.cells.append(new_code_cell("s = 'HALF'\nraise ValueError(chr(0xd800) + chr(0) + chr(27) + '[2J')"))
    notebook.cells.append(new_markdown_cell("HALF"))


def endless(notebook: nbformat.NotebookNode) -> None:
    notebook.cells[1]["outputs"] = [nbformat.v4.new_output("stream", text="x" * 40 * 2**20)]
    notebook.cells.append(new_markdown_cell("a" + " " * 4 * 10**5 + "b" + "*_[" * 10**5))
    notebook.cells.append(new_code_cell("#" + "(" * 4 * 10**5))
    notebook.cells += [new_markdown_cell("> " * 3000) for _ in range(20)]


def looks_finished(notebook: nbformat.NotebookNode) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            data = {"text/plain": "2.0"}
            cell["outputs"] = [nbformat.v4.new_output("execute_result", data=data, execution_count=1)]


def odd_in_every_way(notebook: nbformat.NotebookNode) -> None:
    for change in (worth_a_thousand, looks_finished, halves_of_characters, odd_names, scripts):
        change(notebook)


FROM_THE_SOLUTION = """
import json
file = {root!r} + "/solutions/04_messages_and_collectives/04_messages_and_collectives.ipynb"
for cell in json.load(open(file))["cells"]:
    if "def broadcast_tree" in "".join(cell["source"]):
        exec("".join(cell["source"]))
"""

SEARCH_MEMORY = """
import gc, sys
def broadcast_tree(comm, x):
    found = [o for o in gc.get_objects() if type(o) is tuple and "918273" in str(o)]
    print(comm.size, x, sys._getframe(1).f_locals, found)
    raise ValueError(str(comm.size) * 3000 + "end")
"""

FORGE = """
import os, stat
from course.sandbox.exchange import plain_data, channel
def broadcast_tree(comm, x):
    for d in range(3, 40):
        try:
            if stat.S_ISFIFO(os.fstat(d).st_mode):
                for n in range(60):
                    for reply in FORGED:
                        channel.write_message(d, plain_data.dumps(reply(n)))
        except OSError:
            pass
"""

ROUND_PYTHON = """
import contextlib, ctypes, os
libc = ctypes.CDLL(None)
def attempt(what):
    with contextlib.suppress(OSError, ValueError): what()
other = {other!r}
attempt(lambda: os.open("left", os.O_CREAT | os.O_WRONLY, dir_fd=os.open(other, os.O_RDONLY)))
attempt(lambda: os.mkfifo(other + "/left_pipe"))
attempt(lambda: os.mknod(other + "/left_node"))
attempt(lambda: __import__("readline").write_history_file(other + "/left_history"))
libc.open(other.encode() + b"/left_by_c", os.O_CREAT | os.O_WRONLY, 0o600)
libc.shm_open(b"/left_by_an_answer", os.O_CREAT | os.O_RDWR, 0o600)
os.system("echo left > {root}/solutions/left; echo left > {other}/left_by_shell; echo left > {other}/kept")
os.system("echo left > /dev/shm/left_by_an_answer; mkdir -p ~/.local/left_by_an_answer /var/tmp/left_by_an_answer")
"""

KILLS = """
import contextlib, ctypes, os, signal
grader = int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1])
libc = ctypes.CDLL(None)
for pid in (os.getppid(), grader):
    os.system(f"kill -9 {pid}")
    libc.kill(pid, 9)
    with contextlib.suppress(OSError): os.kill(pid, 9)
    with contextlib.suppress(OSError): signal.pidfd_send_signal(os.pidfd_open(pid), 9)
"""

CLASS = [
    # the machinery
    Hostile("settrace, signals and pickle", (
        "import sys, threading\nsys.settrace(lambda *a: None)\nthreading.settrace(lambda *a: 1/0)",
        "import signal\nfor s in range(1, 32):\n  try: signal.signal(s, signal.SIG_IGN)\n"
        "  except (OSError, ValueError): pass",
        "import pickle, copy\npickle.loads = lambda *a: (1, 'call', (None, 'print', ()))\n"
        "copy.deepcopy = lambda x: x")),
    Hostile("import", ("import builtins\nbuiltins.__import__ = lambda *a, **k: 1/0",)),
    Hostile("no builtins", ("import builtins\nfor n in ('len', 'isinstance', 'sorted', 'sum', 'getattr', 'print'):\n"
            "    setattr(builtins, n, lambda *a, **k: 1)",)),
    Hostile("IPython", ("ip = get_ipython()\nip.run_cell = lambda *a, **k: 1/0\ntype(ip).run_cell = 1",), points=0.0),
    Hostile("false modules", ("import sys, types, minidl\nfake = types.SimpleNamespace(run=lambda *a: {}, launch=1)\n"
            "minidl.cluster = sys.modules['minidl.cluster'] = sys.modules['course.judging.ranks'] = fake",)),
    Hostile("no modules", ("import sys\nfor name in list(sys.modules):\n"
            "    if name.startswith(('minidl', 'course')): sys.modules[name] = None",)),
    Hostile("forged values", answer="FORGED = [lambda n: (n, 'value', {'results': 1})]\n" + FORGE, points=0.0),
    Hostile("no folder", ("import os, shutil\nshutil.rmtree(os.getcwd())",)),
    # without end
    Hostile("loops", ("while True: pass",) * 2, answer=LOOPS, points=0.0, says="did not finish"),
    Hostile(SLOW, answer=EACH_CALL_SLOW, points=0.0),
    Hostile("many files", ("for n in range(10**7): open(f'{n}.txt', 'w').close()",), says="too many"),
    # secrets
    Hostile("takes the solution", answer=FROM_THE_SOLUTION, points=0.0, says="may not read the teacher's files"),
    Hostile("searches memory", answer=SEARCH_MEMORY, points=0.0),
    # the notebook
    Hostile("odd in every way", change=odd_in_every_way),
    Hostile("swapped", change=swapped, points=0.0, says="was changed"),
    Hostile("a check made an answer", change=check_made_an_answer),
    Hostile("everything again", change=everything_again),
    Hostile("no metadata and no ids", change=no_metadata_and_no_ids, answer="", points=2.0),
    Hostile("endless", change=endless),
    Hostile("[/red] =1+1 ünï", answer="", points=2.0),
    # files and processes
    *([Hostile("round Python", (ROUND_PYTHON,))] if landlock.version() else []),
    *([Hostile("kills the grader", (KILLS,))] if landlock.version() >= landlock.SCOPE_SINCE else []),
]  # fmt: skip

FIRST = {
    "settrace, signals and pickle", "forged values", "many files", "takes the solution", "searches memory",
    "odd in every way", "round Python", "kills the grader",
}  # fmt: skip
"""Those of the first tier. What a single function can try is in `test_hostile_answers.py`, `test_hostile_ranks.py` and
`test_checking_fence.py`.
"""

some_of_the_class = pytest.mark.parametrize("is_first", [True, *exhaustively(False)], ids=["first", "others"])

FILES = 1000
"""Files that an answer may write here: so few that a slow disk takes them within the seconds of a call."""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher's folder."""
    root = tmp_path_factory.mktemp("course") / "teacher"
    set_up(root)
    return root


def set_up(root: Path) -> None:
    """One solution with one exercise, whose hidden test and words are known to nobody else; and a file of others."""
    reference = nbformat.read(ROOT / "solutions" / NAME / f"{NAME}.ipynb", as_version=4)
    reference.cells = [c for c in reference.cells if not role_of(c).get("grade") or c.id == f"check_{TREE}"]
    for cell in reference.cells:
        cell.source = cell.source.replace("seed=11", SECRET_SEED)
        if cell.id == TREE:
            cell.source += f"\n# {SECRET_WORDS}"
    path = root / "solutions" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(reference, path)
    (root / "other").mkdir()
    (root / "other" / "kept").write_text("kept")


def hand_in(one: Hostile, course: Path, folder: Path) -> None:
    """Write a hostile notebook where the class hands in."""
    notebook = nbformat.read(ROOT / "exercises" / NAME / f"{NAME}.ipynb", as_version=4)
    solution = nbformat.read(ROOT / "solutions" / NAME / f"{NAME}.ipynb", as_version=4)
    right = next(cell.source for cell in solution.cells if cell.id == TREE)
    notebook.cells = [
        c for c in notebook.cells if c.id in ("setup", TREE, f"check_{TREE}", "c00", "fold", "why_slower")
    ]
    places = {"root": str(course), "other": str(course / "other")}
    for cell in notebook.cells:
        if cell.id == TREE:
            cell.source = one.answer.replace("{root!r}", repr(places["root"])) or right
    in_front = [text.replace("{root!r}", repr(places["root"])).replace("{root}", places["root"]) for text in one.cells]
    in_front = [
        text.replace("{other!r}", repr(places["other"])).replace("{other}", places["other"]) for text in in_front
    ]
    notebook.cells[:0] = [new_code_cell(text) for text in in_front]
    if one.change:
        one.change(notebook)
    path = folder / one.name / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook).replace("HALF", "\\ud800"), encoding="utf-8")


Graded = tuple[dict[str, dict[str, str]], dict[str, str]]
"""What grades.csv says of each notebook, and its page."""


@pytest.fixture(scope="module")
def graded(course: Path) -> Callable[[bool], Graded]:
    """Grades the notebooks of the first tier, or the others, once."""
    return cache(lambda is_first: grade_all(course, [one for one in CLASS if (one.name in FIRST) is is_first]))


def grade_all(course: Path, class_: list[Hostile]) -> Graded:
    """Grade the class; apart, in little time, those whose calls take all the time of a notebook together."""
    nothing_yet = left_on_the_machine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grade, "ROOT", course)
        patch.setattr(judged_notebook, "TEACHERS", [course / "solutions"])
        patch.setattr(scratch, "MOST_WRITTEN", FILES)
        rows, pages = grade_folder(course, f"submitted{len(class_)}", [one for one in class_ if one.name != SLOW])
        patch.setattr(
            judged_notebook, "NOTEBOOK_SECONDS", 8.0
        )  # three times that on a busy machine: below 2.7 s a call
        slow_rows, slow_pages = grade_folder(course, "submitted_slow", [one for one in class_ if one.name == SLOW])
    until = time.monotonic() + 100
    while left_on_the_machine() - nothing_yet and time.monotonic() < until:  # of a test in another process, perhaps
        time.sleep(0.1)
    assert left_on_the_machine() <= nothing_yet
    return rows | slow_rows, pages | slow_pages


def grade_folder(course: Path, name: str, class_: list[Hostile]) -> Graded:
    """The rows of grades.csv by student, with all messages among the remarks, and the feedback pages."""
    if not class_:
        return {}, {}
    for one in class_:
        hand_in(one, course, course / name)
    to = course / f"graded_{name}"
    grade.run([str(course / name), "--to", str(to), "--seconds", "6", "--workers", "2"])
    with (to / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    with (to / "exercises.csv").open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            rows[row["student"]]["remarks"] += row["message"]
    pages = {one.name: (to / "feedback" / one.name / f"{NAME}.html").read_text(encoding="utf-8") for one in class_}
    return rows, pages


def left_on_the_machine() -> set[str]:
    """Processes of answers without a parent, and files where they could be left."""
    import psutil

    left = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if "answer" in name}
    places = (Path.home() / ".local", Path.home() / ".ipython", Path("/var/tmp"))
    left |= {str(path) for folder in places for path in folder.glob("left_by*")}
    for process in psutil.process_iter():
        try:
            if process.ppid() == 1 and (TOKEN in process.environ() or "left_by" in " ".join(process.cmdline())):
                left.add(str(process))
        except psutil.Error:
            continue
    return left


@some_of_the_class
def test_a_hostile_notebook_gets_the_points_of_its_answer(is_first: bool, graded: Callable[[bool], Graded]) -> None:
    rows, _ = graded(is_first)
    for name, row in rows.items():
        one = next(one for one in CLASS if one.name == name)
        assert (float(row["points"]), float(row["of"])) == (one.points, 2.0), row
        assert one.says in row["remarks"], row


@some_of_the_class
def test_its_page_holds_no_secret_and_no_script(is_first: bool, graded: Callable[[bool], Graded]) -> None:
    of_an_attack = r"\son\w+=|(href|src)=\W*(javascript|data:text|https?://spy)|<iframe|<form|<svg|<style"
    _, pages = graded(is_first)
    for name, page in pages.items():
        tags = "".join(re.findall(r"<[^>]*>", page[page.find("<body") :]))
        for secret in (SECRET_SEED, SECRET_WORDS, "HIDDEN TESTS", "<script>steal", "¶"):
            assert secret not in page, name
        assert not re.search(of_an_attack, tags), name
        assert len(page) < 3_000_000, name


def test_a_page_does_not_show_what_an_answer_prints_in_hidden_cases(graded: Callable[[bool], Graded]) -> None:
    _, pages = graded(True)
    hidden = re.sub(r"<[^>]*>", "", pages["searches memory"].partition("(hidden cases)")[2])
    assert hidden
    assert "It printed" not in hidden
    assert "7777" * 50 not in hidden


@some_of_the_class
def test_hostile_notebooks_change_no_other_files(
    is_first: bool, graded: Callable[[bool], Graded], course: Path
) -> None:
    graded(is_first)
    assert [path.name for path in (course / "other").iterdir()] == ["kept"]
    assert (course / "other" / "kept").read_text() == "kept"
    assert (course / "other" / "kept").stat().st_mode & 0o400
    assert [path.name for path in (course / "solutions").iterdir()] == [NAME]
