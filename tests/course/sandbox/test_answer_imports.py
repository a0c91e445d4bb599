"""An answer can neither import nor read what the checks compare with, however it goes about it."""

from __future__ import annotations

import ast
import ctypes
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from course.judging import check_names
from course.judging.judged_notebook import PREPARED
from course.judging.process.hidden import TEACHERS, history
from course.judging.process.student_session import StudentSession
from course.probes import backpropagation
from course.sandbox import landlock
from course.setup.bootstrap import ROOT

pytestmark = pytest.mark.timeout(300)

HOLDS = "course.checks holds what the checks compare with: an answer may not import it"
MAY_NOT_READ = r"may not read|[Pp]ermission denied|not permitted"
FILE = str(ROOT / "course" / "checks" / "backpropagation" / "chain_memory.py")


def has_landlock() -> bool:
    """Whether the kernel can forbid reading: it tells the version of its interface."""
    return ctypes.CDLL(None).syscall(landlock.CREATE_RULESET, None, 0, 1) > 0


@pytest.fixture(scope="module")
def session() -> Iterator[StudentSession]:
    """A student's process as it is when a notebook is judged."""

    def load(session: StudentSession) -> None:
        session.prepare(*PREPARED)
        session.request("stand_in", (check_names.of_chapters_in(os.listdir(ROOT / "course" / "checks")),))

    with StudentSession(load, secret=TEACHERS) as session:
        yield session


CHECK_S_SIDE = ("course.judging", "course.grading", "course.building", "course.commands", "tests")


def outcome(session: StudentSession, body: str) -> str:
    """What the lines of a function return, or the error that they raise, as text."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    kind, value = session.request("run_cell", ("cell 1", f"def f():\n{lines}\n"))
    assert (kind, value) == ("value", None)
    kind, value = session.request("call", (None, "f", ()))
    return f"{value['type']}: {value['text']}" if kind == "error" else str(value[0])


def test_the_process_of_an_answer_has_loaded_no_check_and_nothing_of_judging(session: StudentSession) -> None:
    body = "import sys\nreturn [n for n, m in sys.modules.items() if n.startswith(('course.', 'tests'))]"
    there = set(re.findall(r"'([\w.]+)'", outcome(session, body)))
    assert "course.probes.backpropagation" in there
    assert sorted(name for name in there if name.startswith(CHECK_S_SIDE)) == []
    files = "import sys\nreturn [getattr(m, '__file__', None) for n, m in sys.modules.items() if 'course.checks' in n]"
    assert set(re.findall(r"\w+", outcome(session, files))) == {"None"}


def test_probes_need_nothing_of_the_course_but_other_probes() -> None:
    for file in (ROOT / "course" / "probes").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        named += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        others = {name.partition(".")[0] for name in named if not f"{name}.".startswith("course.probes.")}
        assert others <= {"minidl", "numpy", "threadpoolctl", *sys.stdlib_module_names}, file


def test_a_probe_that_a_cell_replaced_is_restored(session: StudentSession) -> None:
    cell = """
import numpy as np
from course.probes import backpropagation as probes
probes.peak_bytes = lambda *arguments: 0
probes.walked.__code__ = (lambda function, *arguments: [7]).__code__
probes.tracemalloc.get_traced_memory = lambda: (0, 0)
def f(x):
    return np.ones(len(x) * 100)
def g(root):
    pass
"""
    assert session.request("run_cell", ("cell 1", cell)) == ("value", None)
    x = np.zeros(1000)
    kind, (nbytes, after, _) = session.request("call", (backpropagation.peak_bytes, "f", (x,)))
    assert (kind, nbytes >= 800_000) == ("value", True)
    assert np.array_equal(after[0], x)
    kind, (walked, *_) = session.request("call", (backpropagation.walked, "g", ([1.0], [])))
    assert kind == "value"
    assert walked != [7]


IMPORTS = {
    "import": "import course.checks.backpropagation.chain_memory",
    "from a chapter": "from course.checks.backpropagation import chain_memory",
    "importlib": "import importlib\nimportlib.import_module('course.checks.backpropagation.chain_memory')",
    "runpy": "import runpy\nrunpy.run_module('course.checks.backpropagation.chain_memory')",
    "removed": "import sys\nfor n in [n for n in sys.modules if n.startswith('course.checks')]: del sys.modules[n]\n"
    "import course.checks.backpropagation",
    "an attribute": "from course.checks import backpropagation\nbackpropagation.peak",
    "reload": "import importlib, course.checks\nimportlib.reload(course.checks)",
}


def test_importing_a_check_fails_with_one_sentence(session: StudentSession) -> None:
    for way, body in IMPORTS.items():
        assert HOLDS in outcome(session, body), way


READS = {
    "open": f"open({FILE!r}).read()",
    "os.open": f"import os\nos.open({FILE!r}, os.O_RDONLY)",
    "runpy": f"import runpy\nrunpy.run_path({FILE!r})",
    "a loader": f"import importlib.util as u\ns = u.spec_from_file_location('x', {FILE!r})\n"
    "s.loader.exec_module(u.module_from_spec(s))",
    "without finders": "import sys\nkept = sys.meta_path[:]\ndel sys.meta_path[0]\n"
    "for n in [n for n in sys.modules if n.startswith('course.checks')]: del sys.modules[n]\n"
    "try:\n    import course.checks.backpropagation.chain_memory\nfinally:\n    sys.meta_path[:] = kept",
    "a solution": f"import os\nreturn os.listdir({str(ROOT / 'solutions')!r})",
    "known answers": f"open({str(ROOT / 'tests' / 'mutants' / '__init__.py')!r}).read()",
    "git's history": f"import os\nreturn os.listdir({str(TEACHERS[-1])!r})",
}


def test_the_files_of_the_checks_cannot_be_read(session: StudentSession) -> None:
    for way, body in READS.items():
        assert re.search(f"{MAY_NOT_READ}|No module named", outcome(session, body)), way
    for way in ("open", "a solution"):  # whether the kernel has Landlock or not
        assert "may not read the teacher's files" in outcome(session, READS[way]), way


def test_a_link_next_to_a_notebook_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "helper.py").symlink_to(FILE)
    (tmp_path / "own.py").write_text("value = 7")
    (tmp_path / "linked.txt").symlink_to(tmp_path / "own.py")

    def load(session: StudentSession) -> None:
        session.request("run_cell", ("cell 1", "import own"))

    with StudentSession(load, folder=tmp_path, secret=TEACHERS) as session:
        assert re.search(MAY_NOT_READ, outcome(session, "import helper"))
        assert outcome(session, "import os\nreturn sorted(os.listdir())") == "['own.py']"
        read = f"return open({str(tmp_path / 'linked.txt')!r}).read()"
        assert outcome(session, read) == "value = 7"


def test_the_history_of_a_worktree_is_that_of_its_clone(tmp_path: Path) -> None:
    clone, tree = tmp_path / "clone", tmp_path / "tree"
    (clone / ".git" / "worktrees" / "tree").mkdir(parents=True)
    (clone / ".git" / "worktrees" / "tree" / "commondir").write_text("../..\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {clone}/.git/worktrees/tree\n")
    assert history(clone) == (clone / ".git",)
    assert [path.resolve() for path in history(tree)] == [
        tree / ".git", clone / ".git" / "worktrees" / "tree", clone / ".git"
    ]  # fmt: skip


SHELL = [
    f"cat {FILE}",
    f"git -C {ROOT} cat-file -p HEAD:course/checks/backpropagation/__init__.py",
    f"cd {ROOT} && {sys.executable} -c 'import course.checks.backpropagation as m; print(m.peak)'",
]


@pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")
def test_a_shell_cannot_read_the_files_of_the_checks(session: StudentSession) -> None:
    for command in SHELL:
        run = f"import subprocess\nr = subprocess.run({command!r}, shell=True, capture_output=True, text=True)\n"
        code, _, said = outcome(session, f"{run}return f'{{r.returncode}}|{{r.stdout}}{{r.stderr}}'").partition("|")
        assert code != "0", command
        assert "def " not in said, command
