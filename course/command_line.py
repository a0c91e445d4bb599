"""The commands of the course, and dispatching `python3 -m course NAME …` to one of them.

Every command is a module with `run(arguments) -> exit code`. It is imported after the environment has been set up;
until then only the standard library is used.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper

from course.setup import bootstrap


@dataclass(frozen=True)
class Command:
    """A command.

    module: its `run` is called.
    meaning: what it does, in one line.
    extras: the extras of pyproject.toml that it needs.
    operand: what is typed after its name.
    calls_answers: whether it runs a student's code in a process of its own.
    """

    module: str
    meaning: str
    extras: tuple[str, ...] = ()
    operand: str = ""
    calls_answers: bool = False


OVERVIEW = Command("course.commands.overview", "the map of the course, your points, and what to do next", ("course",))

COMMANDS = {
    "demo": Command("course.commands.demo", "four nodes train a network on scanned digits"),
    "lab": Command("course.commands.lab", "open JupyterLab: the lectures, your exercises", ("course",), "[NN]"),
    "start": Command("course.commands.start", "your own copy of a chapter's exercises, in work/", ("course",), "NN"),
    "check": Command("course.commands.check", "check what you wrote, count the points", ("course",), "NN", True),
    "progress": Command("course.commands.progress", "your points in all chapters", ("course",)),
    "result": Command("course.commands.result", "train a network with what you wrote, 1 or 2", ("course",), "PART"),
    "leaderboard": Command("course.commands.leaderboard", "rank the entries of the capstone", ("course",), "FILE"),
    "book": Command("course.commands.book", "all that there is to read, as web pages", ("course", "book")),
    "test": Command("course.commands.test", "run the tests; what follows goes to pytest", ("dev",)),
    "lint": Command("course.commands.lint", "check style, types, floors and words of the sources", ("course", "dev")),
    "build": Command("course.commands.build", "make the notebooks from their texts in course/lectures/", ("course",)),
    "slides": Command("course.commands.slides", "lectures as slides; alone: the list of them", ("course",), "[NN]"),
    "grade": Command("course.commands.grade", "grade a folder of submissions", ("course",), "FOLDER", True),
    "redraw": Command("course.commands.redraw", "draw the hidden tests of an assignment anew", ("course",), "NN"),
    "release": Command("course.commands.release", "the students' edition, without solutions", ("course",), "FOLDER"),
}

FOR_STUDENTS = ("demo", "lab", "start", "check", "progress", "result", "leaderboard", "book")

USAGE = """\
usage: python3 -m course [COMMAND] [ARGUMENTS]

For students
{students}

For teachers and authors
{others}

Without a command: {overview}.
NN is a chapter's number. Most commands explain their options, for instance
`python3 -m course check --help`. The first start makes the environment .venv;
with MINIDL_NO_VENV=1 the Python that you start is used as it is.
"""


def main(arguments: list[str]) -> int:
    """Run one command of the course and return its exit code (2 for a command that does not exist)."""
    for stream in (sys.stdout, sys.stderr):  # a character that the terminal lacks becomes a question mark
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    name = arguments[0] if arguments else None
    if name in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0
    if name is not None and name not in available():
        print(f"Unknown command {name!r}: use {', '.join(available())}, or none for the overview.", file=sys.stderr)
        return 2
    command = COMMANDS[name] if name else OVERVIEW
    try:
        bootstrap.ensure_environment(arguments, command.extras)
        if command.calls_answers:
            start_warm_parent()
        exit_code: int = import_module(command.module).run(arguments[1:])
    except bootstrap.SetupError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    return exit_code


def start_warm_parent() -> None:
    """Let the parent of answers import what they need, while this process imports what the command needs."""
    from course.judging.process.student_process import FORKS, warm_parent

    if FORKS:
        warm_parent.start()


def available() -> list[str]:
    """The commands that exist; the students' edition of the course lacks those of teachers."""
    return [name for name, command in COMMANDS.items() if find_spec(command.module) is not None]


def usage() -> str:
    """The help text, one line per command."""
    lines = {name: f"  {f'{name} {COMMANDS[name].operand}':<15} {COMMANDS[name].meaning}" for name in available()}
    students = "\n".join(lines[name] for name in FOR_STUDENTS)
    others = "\n".join(line for name, line in lines.items() if name not in FOR_STUDENTS)
    return USAGE.format(students=students, others=others, overview=OVERVIEW.meaning)
