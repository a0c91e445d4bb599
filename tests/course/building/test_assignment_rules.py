"""What an assignment lacks is named: points, cells, docstrings, hints, and whatever else stands in a test cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from course.building import text
from course.building.assignment_rules import broken_rules
from course.judging import ChapterChecks

NAME = "99_example"
TEXT = '''\
# %% solution="double"
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% test="double" points=18
check.double(double)
### BEGIN HIDDEN TESTS
check.double(double, numbers=[-1], seed=3)
### END HIDDEN TESTS

# %% [markdown] manual="why" points=2
# Because.
'''


def chapter(name: str = NAME, points: float = 18, hints: int = 2, exercise: str = "double") -> ChapterChecks:
    """A chapter with one exercise."""
    made = ChapterChecks(name)

    def check(answer: object, part: object) -> None: ...

    check.__name__ = exercise
    made.exercise(points, ["a hint"] * hints)(check)
    return made


def rules(content: str, checks: ChapterChecks, folder: Path) -> list[str]:
    path = folder / f"{NAME}.py"
    path.write_text(content)
    return broken_rules(text.read(path, folder), NAME, checks)


def test_an_assignment_that_keeps_to_the_rules_breaks_none(tmp_path):
    assert rules(TEXT, chapter(), tmp_path) == []


UNFIT = "double: its test cell is not check.double(double), then check.double(double, …) between"
EXAMPLES: dict[str, tuple[Callable[[str], str], ChapterChecks, str]] = {
    "other name": (str, chapter("98_example"), "its checks call themselves '98_example'"),
    "other points": (str, chapter(points=17), "double: its test cell gives 18 points, its check 17"),
    "one hint": (str, chapter(hints=1), "double: has 1 hints, 2 are the least"),
    "19 points": (lambda t: t.replace('"why" points=2', '"why" points=1'), chapter(), "it gives 19 points"),
    "no short answer": (lambda t: t.partition("# %% [markdown]")[0], chapter(), "it has no short answer"),
    "no cell": (str, chapter(exercise="triple"), "triple: has a check, and no solution cell"),
    "no check": (str, chapter(exercise="triple"), "double: has a cell, and no check"),
    "no docstring": (lambda t: t.replace('"""Twice x."""', "y = 0"), chapter(), "the function has no docstring"),
    "other function": (lambda t: t.replace("def double", "def twice"), chapter(), "defines no function of this name"),
    "no markers": (lambda t: t.replace("### BEGIN SOLUTION", "").replace("### END SOLUTION", ""), chapter(), "nothing"),
    "no hidden test": (lambda t: t.replace("check.double(double, numbers=[-1], seed=3)\n", ""), chapter(), UNFIT),
    "a public hidden test": (lambda t: t.replace(", numbers=[-1], seed=3", ""), chapter(), UNFIT),
    "cases in public": (lambda t: t.replace("(double)", "(double, seed=1)"), chapter(), UNFIT),
    "another function": (lambda t: t.replace("check.double(double)", "check.double(twice)"), chapter(), UNFIT),
    "another statement": (lambda t: t.replace("check.double(double)", "check.double(double); x = 1"), chapter(), UNFIT),
    "no call": (lambda t: t.replace("check.double(double)\n", "double\n"), chapter(), UNFIT),
    "the markers elsewhere": (
        lambda t: t.replace("### BEGIN HIDDEN TESTS\n", "").replace("check.d", "### BEGIN HIDDEN TESTS\ncheck.d", 1),
        chapter(),
        UNFIT,
    ),
}  # fmt: skip


def test_a_broken_rule_is_named(tmp_path):
    for example, (change, checks, sentence) in EXAMPLES.items():
        assert [rule for rule in rules(change(TEXT), checks, tmp_path) if sentence in rule], example
