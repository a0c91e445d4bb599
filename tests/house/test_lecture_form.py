"""The texts of the lectures have the form of a lecture: guesses in cells of their own, panels with words, one page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LECTURES = sorted((ROOT / "course" / "lectures").glob("*.py"))
MOST_LINES = 620  # code and text
MOST_WORDS = 2100  # of text: with the code and the pictures 20 to 40 minutes
MOST_CELLS_TO_ANSWER = 3  # other guesses and definitions may come first
SLIDES = re.compile(r"\bS[1-5]\b")
WORDS_AT = {"explore": 1, "step_through": 1, "see": 1}
"""The place of the words among the arguments."""

each_lecture = pytest.mark.parametrize("lecture", LECTURES, ids=lambda path: path.stem)


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
        elif not any(names_of_guesses(cell) & names_used(each) for each in cells[place + 1 :][:MOST_CELLS_TO_ANSWER]):
            found.append(f"no code cell soon after shows the guess next to the answer: {cell.strip()}")
    return found


@each_lecture
def test_a_guess_stands_alone_and_a_cell_soon_after_shows_it_next_to_the_answer(lecture: Path) -> None:
    assert complaints(code_cells(lecture)) == []


def test_a_guess_in_the_cell_of_its_answer_and_one_that_is_never_shown_are_found() -> None:
    assert len(complaints(['best = guess("Which?")\nprint(best)'])) == 1
    assert len(complaints(['best = guess("Which?")', *["print(7)"] * 3, "print(best)"])) == 1
    assert complaints(['best = guess("Which?")', "print(best)"]) == []


@each_lecture
def test_no_guess_of_the_former_form_and_no_slide_that_no_student_has(lecture: Path) -> None:
    text = lecture.read_text(encoding="utf-8")
    assert "my_guess" not in text
    assert SLIDES.findall(text) == []


@each_lecture
def test_panels_and_pictures_have_words(lecture: Path) -> None:
    for cell in code_cells(lecture):
        for name, place in WORDS_AT.items():
            for call in calls(cell, name):
                assert len(call.args) > place, ast.unparse(call)
                words = call.args[place]
                assert not (isinstance(words, ast.Constant) and len(str(words.value)) < 20), ast.unparse(call)


@each_lecture
def test_a_lecture_is_read_in_one_sitting(lecture: Path) -> None:
    lines = lecture.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    text = [line for line in lines if line.startswith("# ") and not line.startswith("# %%")]
    assert len(" ".join(text).split()) <= MOST_WORDS


def test_every_chapter_with_lectures_has_a_what_if_panel() -> None:
    chapters = {lecture.name[:2] for lecture in LECTURES} - {"00"}
    turned = {lecture.name[:2] for lecture in LECTURES if any(calls(cell, "explore") for cell in code_cells(lecture))}
    assert chapters - turned == set()
