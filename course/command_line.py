"""The commands of the course by name, and the way from `python3 -m course NAME …` to the function that does it.

Every command is a module with `run(arguments) -> exit code`, imported only once the environment stands. Up to there
nothing but the standard library is used.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module

from course import bootstrap


@dataclass(frozen=True)
class Command:
    """A command: the module whose `run` does it, what it does in a line, the extras of pyproject.toml that it needs."""

    module: str
    meaning: str
    extras: tuple[str, ...] = ()


OVERVIEW = Command("course.overview", "what the course is, what is there, and what to do next")

COMMANDS = {
    "demo": Command("course.demo", "four nodes train a convolutional network on scanned digits and write a report"),
    "test": Command("course.test", "run the tests; what follows goes to pytest, e.g. `test -k tensor`", ("dev",)),
    "lab": Command("course.lab", "open JupyterLab; what follows goes to it, e.g. `lab --no-browser`", ("course",)),
    "build": Command("course.build", "make the notebooks from their texts in course/lectures/", ("dev",)),
}

USAGE = """\
usage: python3 -m course [COMMAND] [ARGUMENTS]

{commands}

Without a command: {overview}. The first start makes the environment .venv;
with MINIDL_NO_VENV=1 the Python that you start is used as it is.
"""


def main(arguments: list[str]) -> int:
    """Run one command of the course and return its exit code (2 for a command that does not exist)."""
    name = arguments[0] if arguments else None
    if name in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0
    if name is not None and name not in COMMANDS:
        print(f"Unknown command {name!r}: use {', '.join(COMMANDS)}, or none for the overview.", file=sys.stderr)
        return 2
    command = COMMANDS[name] if name else OVERVIEW
    try:
        bootstrap.ensure_environment(arguments, command.extras)
        exit_code: int = import_module(command.module).run(arguments[1:])
    except bootstrap.SetupError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    return exit_code


def usage() -> str:
    """The help text, a line a command."""
    lines = [f"  {name:<6}{command.meaning}" for name, command in COMMANDS.items()]
    return USAGE.format(commands="\n".join(lines), overview=OVERVIEW.meaning)
