"""`python3 -m course result 1` (or 2): train the result of a part of the course with the function that you wrote.

Part I: a ResNet reads letters, by your `adam_step` (chapter 02). Part II: a GPT writes Python-like text, by your
`ring_all_reduce` (chapter 04). Each takes at most ten minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.table import Table

from course.chapters import UnknownChapterError, chapter_with_exercises
from course.notebooks.notebook_file import NotANotebookError, read_notebook
from course.results import history as histories
from course.results import pictures, trial
from course.results.answer import NoAnswerError, definitions, function_of
from course.results.history import History, Row
from course.results.parts import PARTS, Function, Part
from course.setup.bootstrap import ROOT
from minidl import cluster
from minidl.cli.display import LiveBar

LIBRARY = "library"
INSTEAD = f"With `--by {LIBRARY}` minidl's own function trains instead."
LIBRARYS_OWN = "the library's own function"


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Train one part's result; exit code 2 if there is no function that can train."""
    options = parsed(arguments)
    part = PARTS[options.part - 1]
    console = Console(file=sys.stdout, highlight=False)
    settings = part.settings if options.steps is None else replace(part.settings, steps=options.steps)
    machine = histories.this_machine()
    try:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):  # for what the reader's function prints
            function, source = chosen(part, options.by, root, console)
            console.print(f"{part.title}, trained by {source}", style="bold", soft_wrap=True)
            with running(console, settings.steps) as tell:
                trained = part.train(function, settings, tell)
    except NoAnswerError as error:
        print(error, file=sys.stderr)
        return 2
    except cluster.ClusterError as error:
        print(f"The training failed. {trial.in_a_sentence(str(error))}", file=sys.stderr)
        return 2
    names = (f"part_{part.number}{f'-{i}' if i > 1 else ''}" for i in count(1))
    folder = next(new for name in names if not (new := root / "runs" / name).exists())  # no run is overwritten
    folder.mkdir(parents=True)
    text = part.show(trained, folder)
    history = History(part.number, source, asdict(settings), trained.rows, machine, text, trained.function)
    report(console, part, history, folder, root)
    if options.record:
        history.write(histories.RECORDED / f"part_{part.number}.json")
    return 0


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course result",
        description="Train the result of a part of the course with the function that you wrote. "
        + " ".join(f"Part {part.number}: {part.title}, by your {part.function}." for part in PARTS),
    )
    parser.add_argument("part", type=int, choices=[part.number for part in PARTS])
    parser.add_argument(
        "--by", metavar="NOTEBOOK", help="train with the function of this notebook, or of the `library`"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="train for N steps instead of all of them")
    parser.add_argument("--record", action="store_true", help="for authors: the course shows this run from now on")
    options = parser.parse_args(arguments)
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps: a whole number of at least 1 is needed, not {options.steps}")
    return options


def chosen(part: Part, by: str | None, root: Path, console: Console) -> tuple[Function, str]:
    """The function to train with, tried before, and whose it is. Raises NoAnswerError.

    by: a notebook, "library", or None for the student's own notebook in work/.
    """
    if by == LIBRARY:
        return part.library, LIBRARYS_OWN
    try:
        chapter, name = chapter_with_exercises(part.chapter, ROOT), part.function
    except UnknownChapterError as error:
        raise NoAnswerError(f"{error}\n{INSTEAD}") from None
    path = chapter.work(root) if by is None else Path(by).resolve()
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    try:
        if by is None and not path.exists():
            start = f"`python3 -m course start {chapter.number}` makes it"
            raise NoAnswerError(f"There is no {shown} yet: {start}, for you to write {name}.")
        reference = read_notebook(chapter.exercises(ROOT))
        notebook = definitions(read_notebook(path), reference, name)
        console.print(f"Trying {name} of {shown} on small cases.", soft_wrap=True)
        check = f"python3 -m course check {chapter.number if by is None else shown} {name}"
        trial.judge(notebook, reference, name, path, check)
        function = function_of(notebook, name, path)
        trial.rehearse(part.calls, function, name)
    except (NoAnswerError, NotANotebookError) as error:
        raise NoAnswerError(f"{error}\n{INSTEAD}") from None
    return function, f"{name} of {shown}"


@contextmanager
def running(console: Console, steps: int) -> Iterator[Callable[[int, Row | None], None]]:
    """A progress bar. Yields a function to call with each step that is done, and with the row of an evaluation."""
    with LiveBar(console, "starting") as bar:

        def tell(step: int, row: Row | None) -> None:
            if row is not None:
                _, *measures = (f"{name.replace('_', ' ')} {value:g}" for name, value in row.items())
                bar.say(", ".join([f"step {step:,} of {steps:,}", *measures]))
            bar.show(step, steps, f"step {step:,} of {steps:,}", "")

        yield tell


def report(console: Console, part: Part, history: History, folder: Path, root: Path) -> None:
    """Print the last rows, what the function took, the generated text, and the names of the files."""
    history.write(folder / "history.json")
    known = {"this run": history, "the course's run": histories.recorded(part.number)}
    floor = part.floor and ("frequencies of characters alone", part.floor())
    pictures.losses([(label, each.rows) for label, each in known.items()], floor).savefig(folder / "loss.png")
    rows = [[label, *(f"{value:g}" for value in each.last.values())] for label, each in known.items()]
    console.print(table(["", *(name.replace("_", " ") for name in history.last)], rows))
    if history.answer != LIBRARYS_OWN:
        console.print("", table(["", f"your {part.function}", "minidl's own"], history.function))
    if history.text:
        console.print("\nA text that the network made up:\n", style="bold")
        console.print(history.text, markup=False, soft_wrap=True)
    shown = folder.relative_to(root) if folder.is_relative_to(root) else folder
    files = ", ".join(sorted(path.name for path in folder.iterdir()))
    console.print(f"\nIn {shown}: {files}", soft_wrap=True)


def table(head: list[str], rows: list[list[str]]) -> Table:
    """A table of numbers, the first column of words."""
    result = Table(box=None, pad_edge=False)
    for name in head:
        result.add_column(name, justify="right" if name else "left")
    for row in rows:
        result.add_row(*row)
    return result
