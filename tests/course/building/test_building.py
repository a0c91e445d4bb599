"""Texts become notebooks: only where something changed, whole or not at all, and --check sees whatever is amiss."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from course.building import execution, making, text
from course.building.sources import chosen, sources
from course.commands import build
from course.interaction.without_kernel import with_present_script
from course.setup.bootstrap import ROOT
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

LECTURE = """\
# %% [markdown]
# # A lecture

# %%
import numpy as np

x = np.arange(3)

# %%
print("one line")
print("another")
x.sum()
"""

ASSIGNMENT = '''\
# %% [markdown]
# # An assignment

# %% given="setup"
from course.checks import messages_and_collectives as check

half = 0.5


# %% solution="double"
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return x / half
    ### END SOLUTION


# %% test="double" points=1
float(double(3) == 6)
### BEGIN HIDDEN TESTS
float(double(-4) == -8)
### END HIDDEN TESTS

# %% [markdown] manual="why" points=1
# Because.
'''

LECTURE_NOTEBOOK = "notebooks/01_lecture.ipynb"
SOLUTION = "solutions/01_exercises/01_exercises.ipynb"
CHECKS = "course/checks/messages_and_collectives.py"
EXERCISE = "exercises/01_exercises/01_exercises.ipynb"


def write_lecture(root: Path, content: str, name: str = "01_lecture") -> Path:
    path = root / "course" / "lectures" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A root with a lecture and an assignment that were built: to be copied, not to be changed."""
    root = tmp_path_factory.mktemp("built")
    write_lecture(root, LECTURE)
    (root / "course" / "assignments").mkdir()
    (root / "course" / "assignments" / "01_exercises.py").write_text(ASSIGNMENT)
    (root / CHECKS).parent.mkdir()
    (root / CHECKS).touch()
    assert build.run([], root) == 0
    return root


@pytest.fixture
def root(built, tmp_path):
    """A copy of the built root."""
    return Path(shutil.copytree(built, tmp_path / "root"))


def contents(root: Path) -> dict[str, bytes]:
    """Every file under the folders of notebooks."""
    files = [path for folder in ("notebooks", "solutions", "exercises") for path in (root / folder).rglob("*")]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files if path.is_file()}


def edited(change: Callable[[dict], object], name: str = LECTURE_NOTEBOOK) -> Callable[[Path], object]:
    """What changes a notebook's JSON by hand."""

    def edit(root: Path) -> None:
        notebook = json.loads((root / name).read_text())
        change(notebook)
        (root / name).write_text(json.dumps(notebook, indent=1))

    return edit


def appended(name: str, line: str) -> Callable[[Path], object]:
    def append(root: Path) -> None:
        with (root / name).open("a") as file:
            file.write(line)

    return append


STDERR = {"output_type": "stream", "name": "stderr", "text": "DeprecationWarning: old"}
OLD_PANEL = '<div class="minidl-panel" data-panel="7"></div>\n<script>old()</script>'
PANEL = {"output_type": "display_data", "metadata": {}, "data": {"text/html": OLD_PANEL}}
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}

DAMAGES = {
    "the text": (appended("course/lectures/01_lecture.py", "\nx\n"), LECTURE_NOTEBOOK, "has changed since"),
    "the checks": (appended(CHECKS, "x = 1"), SOLUTION, "its checks have changed"),
    "missing": (lambda root: (root / LECTURE_NOTEBOOK).unlink(), LECTURE_NOTEBOOK, "not there"),
    "half": (lambda root: (root / LECTURE_NOTEBOOK).write_text('{"cells": ['), LECTURE_NOTEBOOK, "damaged"),
    "no notebook": (lambda root: (root / LECTURE_NOTEBOOK).write_text("[]"), LECTURE_NOTEBOOK, "damaged"),
    "a source": (edited(lambda nb: nb["cells"][1]["source"].append("#")), LECTURE_NOTEBOOK, "cell 2 .* its source"),
    "an id": (edited(lambda nb: nb["cells"][1].update(id="x1")), LECTURE_NOTEBOOK, "cell 2 .* its id"),
    "metadata": (edited(lambda nb: nb["cells"][1]["metadata"].update(tags=["x"])), LECTURE_NOTEBOOK, "its metadata"),
    "notebook metadata": (edited(lambda nb: nb["metadata"].update(x=1)), LECTURE_NOTEBOOK, "its metadata was"),
    "a cell less": (edited(lambda nb: nb["cells"].pop()), LECTURE_NOTEBOOK, "it has 2 cells, the text 3"),
    "order": (edited(lambda nb: nb["cells"][1].update(execution_count=7)), LECTURE_NOTEBOOK, "top to bottom"),
    "an error": (edited(lambda nb: nb["cells"][2]["outputs"].append(ERROR)), LECTURE_NOTEBOOK, "cell 3: ValueError"),
    "a warning": (edited(lambda nb: nb["cells"][2]["outputs"].append(STDERR)), LECTURE_NOTEBOOK, "no warnings"),
    "a script": (edited(lambda nb: nb["cells"][2]["outputs"].append(PANEL)), LECTURE_NOTEBOOK, "cell 3: the script"),
    "the release": (edited(lambda nb: nb["cells"][0].update(source=["#"]), EXERCISE), EXERCISE, "not the release"),
    "a byte of it": (appended(EXERCISE, " "), EXERCISE, "not the release"),
    "no release": (lambda root: (root / EXERCISE).unlink(), EXERCISE, "not there"),
    "no solution": (lambda root: (root / SOLUTION).unlink(), SOLUTION, "not there"),
    "an orphan": (lambda root: (root / "notebooks/99_old.ipynb").write_text("{}"), "notebooks/99_old.ipynb", "no text"),
}


def test_a_fresh_build_passes_the_check(built, capsys):
    assert set(contents(built)) == {LECTURE_NOTEBOOK, SOLUTION, EXERCISE}
    assert build.run(["--check"], built) == 0
    assert capsys.readouterr().out == "2 texts: every notebook is up to date with its text.\n"


def test_build_check_names_each_stale_notebook_the_reason_and_the_command(built, tmp_path, capsys):
    mend = r"Mend: (python3 -m course build 01_(lecture|exercises)|git rm"
    for damage, (do, name, reason) in DAMAGES.items():
        root = Path(shutil.copytree(built, tmp_path / damage))
        do(root)
        assert build.run(["--check"], root) == 1, damage
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{name}: ")]
        assert re.search(rf"{reason}.*\. {mend} {name})", lines[0]), damage


@pytest.fixture
def nothing_may_run(monkeypatch):
    async def fail(*_: object) -> None:
        pytest.fail("something was run")

    monkeypatch.setattr(making, "execute", fail)


@pytest.mark.usefixtures("nothing_may_run")
def test_what_is_up_to_date_is_left_alone_and_a_release_is_mended_without_running_the_solution(root):
    before = contents(root)
    assert build.run([], root) == 0
    assert contents(root) == before
    (root / EXERCISE).write_text("{}")
    assert build.run([], root) == 0
    assert contents(root) == before


@pytest.mark.usefixtures("nothing_may_run")
def test_a_stored_panel_gets_the_present_script_without_running_the_code_cells(root):
    edited(lambda notebook: notebook["cells"][2]["outputs"].append(PANEL))(root)
    assert build.run([], root) == build.run(["--check"], root) == 0
    page = "".join(json.loads((root / LECTURE_NOTEBOOK).read_text())["cells"][2]["outputs"][-1]["data"]["text/html"])
    assert page.startswith('<div class="minidl-panel" data-panel="7"></div>\n<script>')
    assert page == with_present_script(OLD_PANEL) != OLD_PANEL


@pytest.mark.parametrize("name", [LECTURE_NOTEBOOK, SOLUTION])
@pytest.mark.usefixtures("nothing_may_run")
def test_new_words_are_written_without_running_the_code_cells(root, name):
    before = json.loads((root / name).read_text())
    path = root / before["metadata"]["minidl"]["source"]
    path.write_text(f"# %% [markdown]\n# First.\n\n{path.read_text()}")
    assert build.run([], root) == build.run(["--check"], root) == 0
    after = json.loads((root / name).read_text())
    assert [cell["source"] for cell in after["cells"][:2]] == [["First."], before["cells"][0]["source"]]
    assert outputs_of(after) == outputs_of(before)


def outputs_of(notebook: dict[str, Any]) -> list[object]:
    return [(cell["outputs"], cell["execution_count"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_building_again_gives_the_same_bytes(root):
    before = contents(root)
    for name in before:
        (root / name).unlink()
    assert build.run(["01_l"], root) == 0
    assert set(contents(root)) == {LECTURE_NOTEBOOK}
    assert build.run([], root) == 0
    assert contents(root) == before


def test_what_is_up_to_date_is_executed_if_that_is_forced(root, monkeypatch):
    executed: list[str] = []

    async def execute(notebook: Any, folder: Path, begins: object) -> None:
        executed.append(notebook.metadata.minidl.source)

    monkeypatch.setattr(making, "execute", execute)
    assert build.run(["--force", "01_e"], root) == 0
    assert executed == ["course/assignments/01_exercises.py"]


def test_a_notebook_computes_with_one_thread_unless_the_caller_wants_more(monkeypatch):
    """On two busy cores a second BLAS thread made one lecture's training ten times slower."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    for threads in (None, "2"):
        for name in names:
            monkeypatch.delenv(name, raising=False)
            if threads:
                monkeypatch.setenv(name, threads)
        assert [execution.environment("scratch")[name] for name in names] == [threads or "1"] * 2


FAILURES = {
    "an exception": ("x = 1\n\n1 / 0", r"line 7 \(cell 2\): ZeroDivisionError"),
    "a warning": ("import warnings\nwarnings.warn('old', DeprecationWarning)", r"line 5 \(cell 2\): .*no warnings"),
    "a cache": ("import numba\nnumba.njit(cache = True)", r"cell 2: numba's cache=True"),
    "a syntax error": ("x = 1\nx +", r"line 6 \(cell 2\): SyntaxError"),
    "an address": ("object()", r"line 5 \(cell 2\): it shows a memory address"),
    "a dead kernel": ("import os\nos._exit(3)", r"line 5 \(cell 2\): the kernel died"),
}


@pytest.mark.parametrize("failure", [*list(FAILURES)[:3], *exhaustively(*list(FAILURES)[3:])])
def test_an_error_in_a_lecture_is_reported_with_its_line_and_nothing_is_written(failure, tmp_path, capsys):
    cell, message = FAILURES[failure]
    write_lecture(tmp_path, f"# %% [markdown]\n# # A lecture\n\n# %%\n{cell}\n")
    assert build.run([], tmp_path) == 1
    told = capsys.readouterr()
    assert re.search(rf"course/lectures/01_lecture\.py.*{message}", told.out + told.err)
    assert contents(tmp_path) == {}


def test_a_failure_leaves_the_earlier_notebook_and_does_not_stop_the_others(root, monkeypatch):
    async def execute(notebook: Any, folder: Path, begins: object) -> None:
        if notebook.cells[0].source == "1 / 0":
            raise execution.Failed("ZeroDivisionError", 0)

    monkeypatch.setattr(making, "execute", execute)
    before = contents(root)[LECTURE_NOTEBOOK]
    write_lecture(root, "# %%\n1 / 0\n")
    write_lecture(root, "# %%\n1\n", "02_lecture")
    assert build.run([], root) == 1
    assert contents(root)[LECTURE_NOTEBOOK] == before
    assert "notebooks/02_lecture.ipynb" in contents(root)


def test_two_texts_run_concurrently_but_one_that_measures_runs_alone(tmp_path, monkeypatch):
    running: list[str] = []
    seen: list[set[str]] = []
    begun: set[str] = set()
    together = {"a.py", "c.py"}

    async def execute(notebook: Any, folder: Path, begins: object) -> None:
        name = notebook.metadata.minidl.source.removeprefix("course/lectures/")
        running.append(name)
        begun.add(name)
        until = time.monotonic() + 60  # reached only if the two are not run at once
        while name in together and not together <= begun and time.monotonic() < until:
            await asyncio.sleep(0.01)
        for _ in range(100):  # others have their turn
            await asyncio.sleep(0)
        seen.append(set(running))
        running.remove(name)

    monkeypatch.setattr(making, "execute", execute)
    for name, measures in {"a": "", "b": text.MEASURED, "c": "", "d": text.MEASURED}.items():
        write_lecture(tmp_path, f"# %%\n1  {measures}\n", name)
    assert build.run([], tmp_path) == 0
    assert together in seen
    assert [names for names in seen if names & {"b.py", "d.py"}] == [{"b.py"}, {"d.py"}]


ENDLESS = """\
# %%
import subprocess

child = subprocess.Popen(["sleep", "1000"])

# %%
import time

time.sleep(1000)
"""


def test_a_notebook_is_written_whole_or_not_at_all(root, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = contents(root)
    (root / EXERCISE).write_text("{}")
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build.run([], root)
    assert contents(root) == {**before, EXERCISE: b"{}"}


@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C cannot be sent to one process")
def test_ctrl_c_leaves_no_half_of_a_notebook_and_no_process(tmp_path):
    write_lecture(tmp_path, ENDLESS)
    program = f"from pathlib import Path; from course.commands.build import run; run([], Path({str(tmp_path)!r}))"
    started = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 200
    while not any(child.name() == "sleep" for child in children(started.pid)):
        assert time.monotonic() < deadline, "the lecture did not start"
        time.sleep(0.1)
    family = children(started.pid)
    started.send_signal(signal.SIGINT)
    _, complaint = started.communicate(timeout=200)
    assert complaint.strip().endswith(b"KeyboardInterrupt")
    assert psutil.wait_procs(family, timeout=60)[1] == []
    assert contents(tmp_path) == {}


def children(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def test_a_wrong_name_gets_a_sentence_and_exit_code_2(built, capsys):
    assert build.run(["02"], built) == 2
    assert capsys.readouterr().err == "No lecture or assignment is called '02': there are 01_lecture, 01_exercises.\n"


def test_texts_are_chosen_by_beginnings_and_files(built):
    for names, found in {
        (): ["01_lecture", "01_exercises"],
        ("01",): ["01_lecture", "01_exercises"],
        ("01_e", "01_exercises"): ["01_exercises"],
        ("course/lectures/01_lecture.py",): ["01_lecture"],
        ("solutions/01_exercises/01_exercises.ipynb",): ["01_exercises"],
    }.items():
        assert [source.name for source in chosen(sources(built), names)] == found
