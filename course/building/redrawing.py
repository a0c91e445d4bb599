"""Draw new arguments for hidden tests, and prove with known answers that the new tests judge correctly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from course.building import text
from course.building.drawing import drawn
from course.building.hidden_tests import HiddenTest, hidden_tests, with_values
from course.building.known_answers import Classroom, known_answers, misjudged
from course.building.named_mistakes import named
from course.building.sources import Source
from course.whole_file import replace
from minidl.random import Purpose, stream

ATTEMPTS = 5
"""Draws for one hidden test; the first one that is proven is kept."""


def redraw(source: Source, seed: int) -> list[str]:
    """Draw new hidden tests for an assignment and write those that are proven; return a sentence for each other one."""
    before = source.path.read_text(encoding="utf-8")
    tests = hidden_tests(before)
    new: dict[int, Mapping[str, Any]] = {}
    problems = []
    known = known_answers(source.name.partition("_")[2])
    counts = [len(answers_to(test, known)) for test in tests]
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    classroom = Classroom(text.read(source.path, source.root))
    try:
        with Progress(*columns, console=Console(stderr=True)) as progress:
            bar = progress.add_task(source.name, total=sum(counts))
            for number, test in enumerate(tests):
                progress.update(bar, description=f"{source.name}: {test.exercise}", completed=sum(counts[:number]))
                values, problem = proven(test, seed, known, classroom, lambda: progress.advance(bar))
                if problem:
                    problems.append(f"{source.name}: {test.exercise} keeps its hidden test; {problem}")
                else:
                    new[number] = values
            progress.update(bar, description=source.name, completed=sum(counts))
    finally:
        classroom.close()
    replace(source.path, with_values(before, new).encode("utf-8"))
    print(f"{source.name}: {len(new)} of {len(tests)} hidden tests were drawn anew and proven.")
    return problems


def proven(
    test: HiddenTest, seed: int, known: Any, classroom: Classroom, advance: Callable[[], None]
) -> tuple[Mapping[str, Any], str]:
    """New values with which all known answers are judged correctly, or why none of ATTEMPTS draws had such values."""
    problem, before = "", mistakes_named(test, test.values, classroom)
    for attempt in range(ATTEMPTS):
        rng = stream(Purpose.MANUAL, seed, "hidden test", test.exercise, attempt)
        values = {name: value if name in test.kept else drawn(name, value, rng) for name, value in test.values.items()}
        problem = first_problem(test, values, known, classroom, advance)
        if not problem and (lost := before - mistakes_named(test, values, classroom)):
            problem = f"with {test.written(values)!r}, a mistake is right, or not named: {min(lost)}"
        if not problem:
            return values, ""
    return {}, f"the last of {ATTEMPTS} draws was not fair: {problem}"


def mistakes_named(test: HiddenTest, values: Mapping[str, Any], classroom: Classroom) -> set[str]:
    """The sentences of the mistakes that the check finds and names with these values."""
    with named() as said:
        classroom.outcomes(test.exercise, "", test.written(values))
    return {sentence for sentence, causes in said.items() if sentence in causes}


def answers_to(test: HiddenTest, known: Any) -> list[tuple[str, str, Any]]:
    """The known answers to the exercise of a test: its name, its code, and the mutant if it is wrong."""
    right = [(one.idea, one.code, None) for one in known.ALTERNATIVES if one.exercise == test.exercise]
    wrong = [(one.mistake, one.code, one) for one in known.MUTANTS if one.exercise == test.exercise]
    return [("the solution", "", None), *wrong, *right]


def first_problem(
    test: HiddenTest, values: Mapping[str, Any], known: Any, classroom: Classroom, advance: Callable[[], None]
) -> str:
    """The first known answer that is misjudged with these values, and how; "" if none is."""
    call = test.written(values)
    for name, code, wrong in answers_to(test, known):
        (outcome,) = classroom.outcomes(test.exercise, code, call)
        if wrong_because := misjudged(outcome, wrong):
            return f"with {call!r}, {name!r}: {wrong_because}"
        advance()
    return ""
