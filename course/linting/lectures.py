"""The form of a lecture's text: guesses in cells of their own, panels with words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MOST_CELLS_TO_ANSWER = 3  # other guesses and definitions may come first
SHORT = 20
"""A text with fewer characters is no sentence on what to see."""

WORDS_AT = {"explore": 1, "step_through": 1, "see": 1}
"""The position of the words among the arguments."""


def unlike_lectures(root: Path) -> Iterator[str]:
    """What is wrong with the texts in course/lectures, and chapters without a what-if panel."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted((root / "course/lectures").glob("*.py"))}
    for name, text in texts.items():
        yield from (f"course/lectures/{name}.py: {complaint}" for complaint in complaints(text))
    turned = {name[:2] for name, text in texts.items() if any(calls(cell, "explore") for cell in code_cells(text))}
    for chapter in sorted({name[:2] for name in texts} - turned - {"00"}):
        yield f"course/lectures: chapter {chapter} has no what-if panel (explore)"


def complaints(text: str) -> Iterator[str]:
    """What is wrong with the form of one lecture."""
    if slides := re.findall(r"\bS[1-5]\b", text):
        yield f"names slides that no student has: {', '.join(slides)}"
    cells = code_cells(text)
    for place, cell in enumerate(cells):
        yield from guess_complaints(cell, cells[place + 1 :][:MOST_CELLS_TO_ANSWER])
        for call in calls(cell, "print"):
            if names_compared(ast.unparse(call)):
                yield f"prints how far off a guess is; that is HTML, for say and table: {ast.unparse(call)}"
        for name, position in WORDS_AT.items():
            for call in calls(cell, name):
                said = call.args[position] if len(call.args) > position else ast.Constant("")
                if isinstance(said, ast.Constant) and len(str(said.value)) < SHORT:
                    yield f"a panel or picture without a sentence that says what to see: {ast.unparse(call)}"


def guess_complaints(cell: str, next_cells: list[str]) -> Iterator[str]:
    """What is wrong with the guess in a cell."""
    if not calls(cell, "guess"):
        return
    if len(ast.parse(cell).body) != 1 or not (guesses := names_of_guesses(cell)):
        yield f"a guess stands alone in its cell, assigned to a variable: {cell.strip()}"
    elif not any(guesses & names_compared(each) for each in next_cells):
        yield f"no code cell soon after shows the guess with its distance, by guess.against(answer): {cell.strip()}"


def code_cells(text: str) -> list[str]:
    """The code cells of a lecture's text."""
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)[1:]
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


def names_compared(cell: str) -> set[str]:
    """The variables whose method `against` a cell uses."""
    return {
        node.value.id
        for node in ast.walk(ast.parse(cell))
        if isinstance(node, ast.Attribute) and node.attr == "against" and isinstance(node.value, ast.Name)
    }
