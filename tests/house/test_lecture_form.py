"""The texts of the lectures have the form of a lecture: guesses in cells of their own, panels with words, one page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LECTURES = sorted((ROOT / "course" / "lectures").glob("*.py"))
TO_CONVERT = {
    "01a_backpropagation", "01b_memory_and_cost", "02a_from_a_unit_to_a_network", "02b_update_rules", "04a_messages",
    "04b_collectives", "04c_choosing",
}  # fmt: skip
"""Lectures of the former form; a new or revised one is not among them."""

MOST_LINES = 350
SLIDES = re.compile(r"\bS[1-5]\b")
WORDS_AT = {"explore": 1, "step_through": 1, "see": 1}
"""The place of the words among the arguments."""

revised = pytest.mark.parametrize(
    "lecture", [path for path in LECTURES if path.stem not in TO_CONVERT], ids=lambda path: path.stem
)


def code_cells(lecture: Path) -> list[str]:
    """The code cells of a lecture's text."""
    cells = re.split(r"^# %%", lecture.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [cell.partition("\n")[2] for cell in cells if not cell.startswith(" [markdown]")]


def calls(source: str, name: str) -> list[ast.Call]:
    """The calls of a function by its bare name."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [node for node in nodes if isinstance(node.func, ast.Name) and node.func.id == name]


def names_of_guesses(cell: str) -> set[str]:
    """The variables to which a cell assigns guesses."""
    return {
        target.id
        for node in ast.walk(ast.parse(cell))
        if isinstance(node, ast.Assign) and calls(ast.unparse(node.value), "guess")
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def names_used(cell: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Name)}


def complaints(cells: list[str]) -> list[str]:
    """What is wrong with the guesses of a lecture."""
    found = []
    for place, cell in enumerate(cells):
        if not calls(cell, "guess"):
            continue
        statements = ast.parse(cell).body
        if len(statements) != 1 or not names_of_guesses(cell):
            found.append(f"a guess stands alone in its cell, assigned to a variable: {cell.strip()}")
        elif place + 1 == len(cells) or not names_of_guesses(cell) & names_used(cells[place + 1]):
            found.append(f"the next code cell does not show the guess beside the answer: {cell.strip()}")
    return found


@revised
def test_a_guess_stands_alone_and_the_next_cell_shows_it_beside_the_answer(lecture: Path) -> None:
    assert complaints(code_cells(lecture)) == []


def test_a_guess_in_the_cell_of_its_answer_and_one_that_is_never_shown_are_found() -> None:
    assert len(complaints(['best = guess("Which?")\nprint(best)'])) == 1
    assert len(complaints(['best = guess("Which?")', "print(7)", "print(best)"])) == 1
    assert complaints(['best = guess("Which?")', "print(best)"]) == []


@revised
def test_no_guess_of_the_former_form_and_no_slide_that_no_student_has(lecture: Path) -> None:
    text = lecture.read_text(encoding="utf-8")
    assert "my_guess" not in text
    assert SLIDES.findall(text) == []


@revised
def test_panels_and_pictures_have_words(lecture: Path) -> None:
    for cell in code_cells(lecture):
        for name, place in WORDS_AT.items():
            for call in calls(cell, name):
                assert len(call.args) > place, ast.unparse(call)
                words = call.args[place]
                assert not (isinstance(words, ast.Constant) and len(str(words.value)) < 20), ast.unparse(call)


@revised
def test_a_lecture_has_at_most_350_lines(lecture: Path) -> None:
    assert len(lecture.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_chapter_of_revised_lectures_has_a_what_if_panel() -> None:
    by_chapter: dict[str, list[Path]] = {}
    for lecture in LECTURES:
        by_chapter.setdefault(lecture.name[:2], []).append(lecture)
    without = [
        chapter
        for chapter, lectures in by_chapter.items()
        if chapter != "00"
        and not any(lecture.stem in TO_CONVERT for lecture in lectures)
        and not any(calls(cell, "explore") for lecture in lectures for cell in code_cells(lecture))
    ]
    assert without == []
