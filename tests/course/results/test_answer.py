"""The reader's function is found in a notebook, with what it needs and without the notebook's experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from course.results.answer import NoAnswerError, answer
from tests.course import small_course


def notebook(tmp_path: Path, *sources: str, check: str = "") -> Path:
    cells = [small_course.cell("code", f"c{i:02}", source) for i, source in enumerate(sources)]
    cells.append(small_course.cell("code", "check_f", check, grade=True, points=1))
    path = tmp_path / "04_x.ipynb"
    small_course.write(path, small_course.notebook(cells, "1"))
    return path


def test_a_function_comes_with_the_imports_and_functions_of_other_cells(tmp_path):
    path = notebook(
        tmp_path,
        "import numpy as np",
        "TWO = 2\n\ndef twice(x):\n    return TWO * x",
        "def f(x):\n    return np.sum(twice(x))",
    )
    assert answer(path, "f")(np.ones(3)) == 6


def test_experiments_checks_magics_and_broken_cells_do_no_harm(tmp_path):
    path = notebook(
        tmp_path,
        "print(1 / 0)",
        "%matplotlib inline\ndef g():\n    return 1",
        "def broken(:",
        "wrong = 1 / 0",
        "def f():\n    return g()",
        check="raise SystemExit",
    )
    assert answer(path, "f")() == 1


def test_a_missing_function_and_a_missing_notebook_are_said_in_a_sentence(tmp_path):
    with pytest.raises(NoAnswerError, match="defines no function f"):
        answer(notebook(tmp_path, "x = 1"), "f")
    with pytest.raises(NoAnswerError, match="nowhere"):
        answer(tmp_path / "nowhere.ipynb", "f")
