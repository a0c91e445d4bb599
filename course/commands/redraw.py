"""`python3 -m course redraw 04`: draw the sizes and seeds of hidden tests anew, and prove that they judge rightly."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from course.building import text
from course.building.drawing import drawn
from course.building.hidden_tests import HiddenTest, hidden_tests, with_values
from course.building.known_answers import Classroom, known_answers, misjudged
from course.building.sources import Source, chosen, sources
from course.commands import build
from course.setup.bootstrap import ROOT
from course.whole_file import replace
from minidl.random import Purpose, stream

ATTEMPTS = 5
"""Draws for one hidden test, of which each has to be proven."""

Note = Callable[[str], None]


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Draw, prove, write and build; 1 if a hidden test has to stay as it is, 2 for a wrong name."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course redraw",
        description="Draw the sizes and seeds of an assignment's hidden tests anew. What is drawn has to give the "
        "solution all points, and known wrong answers none; then it is written into the assignment's text, and the "
        "notebooks are built.",
    )
    parser.add_argument("names", nargs="+", metavar="NN", help="assignments, by the beginnings of their names")
    parser.add_argument("--seed", type=int, help="the same seed draws the same; keep it to yourself (else random)")
    options = parser.parse_args(arguments)
    try:
        assignments = [source for source in chosen(sources(root), options.names) if not source.is_lecture]
    except ValueError as unknown:
        print(unknown, file=sys.stderr)
        return 2
    if not assignments:
        print(f"{', '.join(options.names)}: these are lectures; only assignments have hidden tests.", file=sys.stderr)
        return 2
    if options.seed is not None and options.seed < 0:
        print(f"--seed {options.seed}: a seed is 0 or more.", file=sys.stderr)
        return 2
    seed = secrets.randbits(63) if options.seed is None else options.seed
    unchanged = [problem for source in assignments for problem in redraw(source, seed)]
    for problem in unchanged:
        print(problem, file=sys.stderr)
    built = build.run([source.name for source in assignments], root)
    if not built:
        print("The cases are in this clone alone: do not publish it. Students get what `release` writes.")
    return int(bool(unchanged or built))


def redraw(source: Source, seed: int) -> list[str]:
    """Draw the hidden tests of an assignment anew, and write those that are proven; a sentence for each that is not."""
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
    """New values with which all known answers are judged rightly, or why none of ATTEMPTS draws did."""
    problem = ""
    for attempt in range(ATTEMPTS):
        rng = stream(Purpose.MANUAL, seed, "hidden test", test.exercise, attempt)
        values = {name: value if name in test.kept else drawn(name, value, rng) for name, value in test.values.items()}
        problem = first_problem(test, values, known, classroom, advance)
        if not problem:
            return values, ""
    return {}, f"the last of {ATTEMPTS} draws was not fair: {problem}"


def answers_to(test: HiddenTest, known: Any) -> list[tuple[str, str, Any]]:
    """The known answers to the exercise of a test: what each is called, its code, and the mutant if it is wrong."""
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
