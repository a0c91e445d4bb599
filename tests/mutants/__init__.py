"""Known answers: wrong ones that a check must reject for the right reason, and unusual right ones that it must accept.

One folder for each chapter, named as in `course/checks/`, and in it for each exercise a file `EXERCISE_answers.py` with
ANSWERS: the titles of the parts of its check, in their order and under short names, and the answers, each below a line
`=== ...`

        === parts
        values: the right numbers
        memory: no second array
        === base
        def f(x):
            y = x + 1
            return 2 * y
        === wrong: no factor :: values, memory :: expected 4
        -    return 2 * y
        +    return y
        === wrong: no result :: all :: without a `return`
        def f(x):
            pass
        === right: in one line
        def f(x):
            return 2 * x + 2

A wrong answer has a name, the parts that it must lose, and text that the message or the likely cause must contain; then
perhaps "raised" or "stuck", where it does not end with a wrong result, and "hidden only", where only the hidden cases
find it. Lines that begin with `::` continue such a line. An answer is a student's cell, or it changes the closest
base or right answer above it: lines with `-` (below lines with a space, which stay) become those with `+`; an empty
line separates two changes that would run together. What is replaced must be there exactly once. Lines with `+` alone
replace what the wrong answer above replaces:

        === wrong: half of it :: values :: expected 4
        +    return y / 2

`tests/course/checks/test_mutants.py` judges all answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import SimpleNamespace

from course.judging import Status

CHANGE = re.compile(r"((?:[ -].*\n)+)((?:[+].*\n)*)")
"""Lines that stay or go, and the lines that come in their place."""


@dataclass(frozen=True)
class Mutant:
    """A plausible wrong answer to `exercise`.

    Attributes
        mistake       its name, in a few words
        code          the student's cell
        loses         the titles of all parts that it must lose
        says          text that the message or the likely cause of the first of these must contain
        status        the outcome
        hidden_only   whether only the hidden cases find it
    """

    exercise: str
    mistake: str
    code: str
    loses: tuple[str, ...]
    says: str
    status: Status = Status.WRONG
    hidden_only: bool = False


@dataclass(frozen=True)
class Alternative:
    """A right answer to `exercise`, written differently from the solution: it must get all points."""

    exercise: str
    idea: str
    code: str


@cache
def of_chapter(chapter: str) -> SimpleNamespace:
    """The wrong answers of a chapter, `MUTANTS`, and the right ones, `ALTERNATIVES`; none if it has no folder."""
    files = iter_modules([f"{__path__[0]}/{chapter}"])
    found = [(file, import_module(f"{__name__}.{chapter}.{file.name}")) for file in files]
    both = [answers(file.name.removesuffix("_answers"), one.ANSWERS) for file, one in found]
    return SimpleNamespace(
        MUTANTS=[each for wrong, _ in both for each in wrong],
        ALTERNATIVES=[each for _, right in both for each in right],
    )


def answers(exercise: str, text: str) -> tuple[list[Mutant], list[Alternative]]:
    """Read the answers to an exercise."""
    base, replaced, wrong, right = "", "", [], []
    titles, *blocks = re.split(r"^=== ", text.strip("\n").removeprefix("=== parts\n"), flags=re.MULTILINE)
    parts = dict(line.split(": ", 1) for line in titles.splitlines())
    for block in blocks:
        header, _, body = block.replace("\n::", " ::").strip("\n").partition("\n")
        kind, _, words = header.partition(": ")
        mistake, *of_wrong = (word.strip() for word in words.split("::"))
        body = replaced + body if body[0] == "+" else body
        replaced = "".join(before for before, _ in CHANGE.findall(f"{body}\n")[:1])
        code = changed(base, body, f"{exercise}, {mistake!r}") if body[0] in " -+" else body
        if kind == "wrong":
            names, says, *more = of_wrong
            loses = [name.strip() for name in names.split(",")]
            lost = tuple(title for name, title in parts.items() if name in loses or names == "all")
            status = next((each for each in Status if each.name.lower() in more), Status.WRONG)
            wrong.append(Mutant(exercise, mistake, code, lost, says, status, "hidden only" in more))
            if unknown := {*loses, *more} - {*parts, "all", status.name.lower(), "hidden only"}:
                raise ValueError(f"{exercise}, {mistake!r}: no part and no outcome is called {', '.join(unknown)}")
        else:
            base = code
            right += [Alternative(exercise, words, code)] if kind == "right" else []
    return wrong, right


def changed(base: str, changes: str, name: str) -> str:
    r"""`base` with these lines changed.

    >>> changed("a\nb\nc", " a\n-b\n+B", "an example")
    'a\nB\nc'
    >>> changed("a\nb\nc", "-x\n+y", "an example")
    Traceback (most recent call last):
        ...
    ValueError: an example: these lines are in the base 0 times, not once:
    x
    <BLANKLINE>
    """
    if rest := CHANGE.sub("", f"{changes}\n").strip():
        raise ValueError(f"{name}: these lines change nothing: {rest}")
    code = f"\n{base}\n"
    for before, after in CHANGE.findall(f"{changes}\n"):
        old = "\n" + "".join(line[1:] for line in before.splitlines(keepends=True))
        new = "\n" + "".join(line[1:] for line in (before + after).splitlines(keepends=True) if line[0] != "-")
        if code.count(old) != 1:
            raise ValueError(f"{name}: these lines are in the base {code.count(old)} times, not once:{old}")
        code = code.replace(old, new)
    return code.strip("\n")
