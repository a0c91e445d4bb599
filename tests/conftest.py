"""The two tiers of tests, and the order of their files.

`pytest` runs the first tier, which proves every claim at least once. `pytest --all` also runs the tests marked
`exhaustive`: the remaining cases of a sweep, every wrong answer of every exercise, every lecture.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent

LONGEST_FIRST = (
    "course/test_hostile_submissions.py",
    "course/test_grading.py",
    "cli/test_interrupts.py",
    "cluster/conformance/test_conformance.py",
    "cluster/test_mpi.py",
    "cli/test_train.py",
    "parallel/test_learning.py",
    "kernels/test_compiled.py",
    "course/test_release.py",
    "course/test_student_check.py",
    "course/test_hostile_answers.py",
    "cluster/test_scripts.py",
    "course/test_checking_notebooks.py",
    "reproductions/test_reproductions.py",
    "test_solutions.py",
    "house/test_style.py",
    "house/test_readme.py",
    "cli/test_resume.py",
)
"""Files that take longest. They start first, so that all processes of a parallel run end at about the same time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", dest="exhaustive", help="also run the tests marked `exhaustive`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("exhaustive"):
        left_out = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    places = {TESTS / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))  # stable: the others keep their order
