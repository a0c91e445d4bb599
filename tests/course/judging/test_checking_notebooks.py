"""A whole notebook is judged: whatever its cells do, each exercise gets its outcome, and odd things are remarked."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from course.checks import messages_and_collectives
from course.grading.feedback.graded_notebook import graded_notebook
from course.judging import Outcome, PartResult, Status, judged_notebook
from course.judging.judged_notebook import Judgement, code_cells, judge_notebook, remarks_on_answers
from course.notebooks.notebook_file import read_notebook
from course.notebooks.roles import role_of, with_roles
from course.plural import counted
from tests.course.grading.submitted_class import FLAT, ROOT

pytestmark = pytest.mark.timeout(300)

NAME = "04_messages_and_collectives"
TREE = "broadcast_tree"

FORMULA = "crossover"
"""An exercise whose check starts no ranks, for what does not depend on the exercise: it takes a third of the time."""

WRONG_FORMULA = "def crossover(*arguments):\n    return 0.0"


@cache
def solution() -> nbformat.NotebookNode:
    """The solution of chapter 04, read once; to be copied."""
    return read_notebook(ROOT / "solutions" / NAME / f"{NAME}.ipynb")


def reference(exercise: str = TREE) -> nbformat.NotebookNode:
    """The solution of chapter 04 with the check of one exercise."""
    notebook = copy.deepcopy(solution())
    notebook.cells = [c for c in notebook.cells if not role_of(c).get("grade") or c.id == f"check_{exercise}"]
    return notebook


def student(*before: str, answer: str | None = None, exercise: str = TREE) -> nbformat.NotebookNode:
    """A student's notebook: the solution's, with cells in front, and perhaps another answer."""
    notebook = reference(exercise)
    notebook.cells = [new_code_cell(source) for source in before] + notebook.cells
    for cell in notebook.cells:
        if answer is not None and cell.get("id") == exercise:
            cell.source = answer
    return notebook


def judged(notebook: nbformat.NotebookNode) -> tuple[Outcome, Judgement]:
    """Judge a notebook with one check: the public outcome of its exercise, and the whole judgement."""
    (exercise,) = (cell.id.removeprefix("check_") for cell in notebook.cells if role_of(cell).get("grade"))
    judgement = judge_notebook(notebook, reference(exercise))
    return judgement.outcomes[f"check_{exercise}"][0], judgement


def test_magics_top_level_await_and_pictures_run_as_in_a_kernel() -> None:
    cells = (
        "!echo from a shell",
        "%timeit -n1 -r1 1 + 1",
        "%%bash\necho from bash",
        "import asyncio\nawait asyncio.sleep(0)\nwaited = True",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        "%cd ..\n%pip --version\nassert waited",
        "from IPython.display import display\ndisplay({'text/plain': 'shown'}, raw=True)",
    )
    outcome, judgement = judged(student(*cells, exercise=FORMULA))
    assert judgement.remarks == []
    assert outcome.status is Status.CORRECT


OWN_CHECKS = (
    "before = check if 'check' in dir() else None",
    "from course.checks import messages_and_collectives as check\nassert check.broadcast_tree(len) == 0.0",
    "import course.checks\nassert course.checks.messages_and_collectives.timeline(None, p=4) is None",
    "import course.checks.messages_and_collectives as c\nassert c.ring_seconds(None, cases=[]) == 0.0",
    "from course.checks.messages_and_collectives import crossover, hint\nassert hint('crossover') is None",
    "points = sum(e.points for e in check.chapter.exercises.values())\nassert points == 18, points",
    "assert [check.crossover.hints[0][:4], str(check.crossover)] == ['Both', '<check of crossover>']",
    "from course.checks import backpropagation, minibatch_sgd\nbackpropagation.vjp_mul(len)",
    "model, train_set, validation_set, test_set = minibatch_sgd.digits_with_noise(seed=0)\n"
    "assert 0.5 < validation_set.error(model) <= 1 and len(train_set) == 300",
)


def test_a_check_in_a_cell_of_the_student_s_own_does_nothing_and_is_no_remark() -> None:
    outcome, judgement = judged(student(*OWN_CHECKS, exercise=FORMULA))
    assert judgement.remarks == []
    assert outcome.status is Status.CORRECT


def test_only_one_check_is_made_if_one_exercise_is_named() -> None:
    changed = copy.deepcopy(solution())
    next(
        cell for cell in changed.cells if cell.get("id") == f"check_{TREE}"
    ).source = "check.broadcast_tree(broadcast_tree) + 1"
    judgement = judge_notebook(changed, solution(), only=f"check_{FORMULA}")
    assert list(judgement.outcomes) == [f"check_{FORMULA}"]
    assert judgement.remarks == []
    assert judgement.points == judgement.possible


def test_cells_that_block_exit_or_fail_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_notebook, "CELL_SECONDS", 5.0)
    cells = ("import time\ntime.sleep(1000)", "import os\nos._exit(3)", "exit()", "x = 1\n1 / 0", "%%nosuchmagic")
    outcome, judgement = judged(student(*cells, exercise=FORMULA))
    assert outcome.status is Status.CORRECT
    loops, exits, zero, *_ = judgement.remarks
    assert loops == "cell 1 was left out: did not finish within 5 s; it was in cell 1, line 2: time.sleep(1000)"
    assert exits == "cell 2 was left out: it ended its process with exit code 3, as `os._exit(3)` does"
    assert zero == "cell 4 raised ZeroDivisionError: division by zero (at cell 4, line 2: 1 / 0)"


def test_a_function_that_is_missing_because_its_cell_failed_is_no_missing_attempt() -> None:
    for answer, says in (
        ("def crossover(*arguments:\n    return 0.0", "cell crossover raised SyntaxError"),
        (f"import os\nos._exit(0)\n{WRONG_FORMULA}", "cell crossover was left out"),
    ):
        outcome, _ = judged(student(answer=answer, exercise=FORMULA))
        assert outcome.status is Status.RAISED
        assert "crossover is not defined: " in outcome.first_fault.message
        assert says in outcome.first_fault.message


def test_a_deleted_or_renamed_answer_is_not_attempted_and_of_two_the_later_counts() -> None:
    outcome, _ = judged(student(answer="def my_crossover(*arguments):\n    return 0.0", exercise=FORMULA))
    assert outcome.status is Status.NOT_ATTEMPTED
    assert outcome.first_fault.message == "crossover is not defined in this notebook."
    notebook = student(exercise=FORMULA)
    later = copy.deepcopy(next(cell for cell in notebook.cells if cell.get("id") == FORMULA))
    later.source = WRONG_FORMULA
    notebook.cells.append(later)
    outcome, judgement = judged(notebook)
    assert outcome.status is Status.WRONG
    assert "two cells are called 'crossover'" in judgement.remarks[0]


def brief_whole() -> tuple[nbformat.NotebookNode, str]:
    """A solution of one exercise and one short answer, and the short answer's name."""
    whole = copy.deepcopy(solution())
    text = min(role_of(cell)["grade_id"] for cell in whole.cells if cell.cell_type == "markdown" and role_of(cell))
    whole.cells = [cell for cell in whole.cells if cell.id in {"setup", TREE, f"check_{TREE}", text}]
    return whole, text


def without(name: str, cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    return [cell for cell in cells if cell.id != name]


def turned(kind: str) -> Callable[[str, list[nbformat.NotebookNode]], list[nbformat.NotebookNode]]:
    def change(name: str, cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
        next(cell for cell in cells if cell.id == name).cell_type = kind
        return cells

    return change


def forgotten(name: str, cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The cell is text, and its metadata are lost; its id is left."""
    del next(cell for cell in cells if cell.id == name).metadata["nbgrader"]
    return turned("markdown")(name, cells)


def twice(name: str, cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    return [*cells, copy.deepcopy(next(cell for cell in cells if cell.id == name))]


def unlocked(name: str, cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    next(cell for cell in cells if cell.id == name).metadata.nbgrader.update(locked=False, points=99)
    return cells


TEXT_ANSWER = "the cell of the answer {!r} was turned into text, and text is not run: this cost 2.5 points"
TEXT_CHECK = "the check {!r} was turned into text: the original was run, which costs nothing"
TAMPERED = [
    (TREE, without, "the cell of the answer {!r} is missing: this cost 2.5 points"),
    *((TREE, turned(kind), TEXT_ANSWER) for kind in ("markdown", "raw")),
    (TREE, forgotten, TEXT_ANSWER),
    (f"check_{TREE}", without, "the check {!r} was missing: the original was run, which costs nothing"),
    *((f"check_{TREE}", turned(kind), TEXT_CHECK) for kind in ("markdown", "raw")),
    (f"check_{TREE}", forgotten, TEXT_CHECK),
    (f"check_{TREE}", twice, "2 cells are called {!r}: the original was run, once, which costs nothing"),
    (f"check_{TREE}", unlocked,
     "settings of the cell {!r} were changed (locked, points): those of the original count, which costs nothing"),
    ("", without, "the cell of the short answer {!r} is missing: is its text in another cell?"),
    ("", turned("code"), "the short answer {!r} was turned into code: it was not run, and counts as text"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "says"), TAMPERED)
def test_a_cell_that_is_missing_of_another_kind_or_there_twice_has_a_remark_with_its_cost(name, change, says) -> None:
    whole, text = brief_whole()
    name = name or text
    lost = Outcome(TREE, 3.5, (PartResult("it runs", 1.0, Status.CORRECT), PartResult("in a tree", 2.5, Status.WRONG)))
    changed = copy.deepcopy(whole)
    changed.cells = change(name, changed.cells)
    assert remarks_on(changed, whole, {f"check_{TREE}": [lost]}) == [says.format(name)]
    assert remarks_on(changed, whole, {}, only="check_other") == []
    assert remarks_on(copy.deepcopy(whole), whole, {f"check_{TREE}": [lost]}) == []


def remarks_on(
    student: nbformat.NotebookNode, whole: nbformat.NotebookNode, outcomes: dict[str, list[Outcome]], only: str = ""
) -> list[str]:
    """The remarks of `judge_notebook` on the cells, for these outcomes of the checks."""
    remarks: list[str] = []
    student = with_roles(student, whole)
    code_cells(student, whole, remarks, only)
    return [*remarks, *remarks_on_answers(student, whole, outcomes, only)]


def test_an_answer_that_was_turned_into_text_gets_no_points_and_the_page_and_the_table_say_so() -> None:
    notebook = student(exercise=FORMULA)
    next(cell for cell in notebook.cells if cell.get("id") == FORMULA).cell_type = "markdown"
    outcome, judgement = judged(notebook)
    assert outcome.status is Status.NOT_ATTEMPTED
    cost = f"the cell of the answer {FORMULA!r} was turned into text, and text is not run: this cost"
    (remark,) = [remark for remark in judgement.remarks if remark.startswith(cost)]
    assert remark.endswith(f"{counted(outcome.possible, 'point')}")
    page = graded_notebook(notebook, reference(FORMULA), judgement)
    assert remark.replace("`", "'") in page.cells[0].source


def test_an_answer_in_another_cell_than_its_own_is_no_missing_answer() -> None:
    notebook = student(WRONG_FORMULA, exercise=FORMULA)
    notebook.cells = [cell for cell in notebook.cells if cell.get("id") != FORMULA]
    outcome, judgement = judged(notebook)
    assert outcome.status is Status.WRONG
    assert judgement.remarks == []


def test_cells_with_the_line_ends_of_windows_are_no_changed_cells() -> None:
    notebook = student(exercise=FORMULA)
    for cell in notebook.cells:
        cell.source = cell.source.replace("\n", "\r\n")
    outcome, judgement = judged(notebook)
    assert outcome.status is Status.CORRECT
    assert judgement.remarks == []


def test_the_check_judges_the_function_and_not_its_source() -> None:
    made = "broadcast_tree = (lambda flat: lambda comm, x: flat(comm, x))(broadcast_tree)"
    outcome, _ = judged(student(answer=f"{FLAT}\n{made}"))
    assert outcome.status is Status.WRONG
    assert outcome.parts[0].status is Status.CORRECT  # every rank has the array, but not by a tree


PATCHES = [
    "import numpy as np, builtins\nnp.allclose = np.all = np.array_equal = lambda *a, **k: True",
    "from course.judging import expect\nfor n in ('array', 'same', 'true'):\n"
    "    setattr(expect, n, lambda *a, **k: None)",
    "import course.judging.exercise as e\ne.Exercise.__call__ = e.Exercise.judge = lambda *a, **k: 20.0",
    "import course.judging.outcome as o\no.PartResult.earned = property(lambda s: s.points)",
    "from course.checks import messages_and_collectives as m\n"
    "m.broadcast_tree = check = lambda f: 2.0",
    "import minidl.cluster.launch\nfrom minidl import cluster\nreal = cluster.launch\n"
    "def launch(program, **k):\n    run = real(program, **k)\n    run.trace.events[:] = []\n    return run\n"
    "cluster.launch = launch",
    "from minidl.cluster.trace.trace import Trace\nTrace.ledger = lambda self: []",
    "from minidl.cluster.trace.trace import Trace\nTrace.ledger.__code__ = (lambda self: []).__code__",
    "from course.judging.ranks import rank_run\nrank_run.run = lambda *a: {}",
    "from course.sandbox.exchange import plain_data, channel\nplain_data.dumps = lambda value: b''",
]  # fmt: skip
"""What compares, judges, runs and connects."""


def test_checks_give_the_same_outcome_if_cells_patch_them() -> None:
    outcome, _ = judged(student(*PATCHES, answer=FLAT))
    assert outcome.status is Status.WRONG
    assert outcome.points < outcome.possible
    assert "rank 0 " in outcome.first_fault.message.lower()


def test_the_student_s_files_are_there_and_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("value = 7")
    (tmp_path / "data.txt").write_text("42")
    cells = "import own\nassert own.value == 7\nassert open('data.txt').read() == '42'", "!rm -rf * ; touch left"
    judgement = judge_notebook(student(*cells, exercise=FORMULA), reference(FORMULA), folder=str(tmp_path))
    assert judgement.remarks == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.txt", "own.py"]


def test_cells_and_checks_share_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_notebook, "NOTEBOOK_SECONDS", 4.0)
    outcome, judgement = judged(student("import time\ntime.sleep(1000)"))
    assert outcome.status is Status.STUCK
    assert "left out" in judgement.remarks[0]


def test_an_error_of_the_check_is_not_the_student_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(answer, part) -> None:
        with part(1, "works"):
            answer.on_ranks([(1,)])
        raise IndexError("of the check")

    monkeypatch.setattr(messages_and_collectives.broadcast_tree, "_check", defective)
    outcome, judgement = judged(student())
    assert outcome.points == 1
    assert "That is no fault of your answer" in outcome.first_fault.message
    assert "IndexError: of the check" in judgement.remarks[0]
    assert "by hand" in judgement.remarks[0]


def test_the_line_of_a_cell_that_begins_with_empty_lines_is_quoted_as_it_is() -> None:
    answer = "\n \ndef crossover(*x):\n    x = x\n    raise ValueError(x[0])\n"
    outcome, _ = judged(student(answer=answer, exercise=FORMULA))
    assert ": raise ValueError(x[0])" in outcome.parts[0].message
