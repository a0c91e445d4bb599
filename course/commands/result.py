"""`python3 -m course result 1` (or 2): train the result of a part of the course with the function that you wrote.

Part I: a ResNet reads letters, by your `adam_step` (chapter 02). Part II: a GPT writes Python-like text, by your
`ring_all_reduce` (chapter 04). Each takes at most ten minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from course.chapters import chapter_called
from course.results import history as histories
from course.results import pictures
from course.results.answer import NoAnswerError, answer
from course.results.history import History, Row
from course.results.parts import PARTS, Function, Part
from course.setup.bootstrap import ROOT

LIBRARY = "library"


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Train one part's result; exit code 2 if the notebook that was named has no usable answer."""
    options = parsed(arguments)
    part = PARTS[options.part - 1]
    console = Console(highlight=False)
    try:
        function, source = chosen(part, options.by, root)
    except NoAnswerError as error:
        print(error, file=sys.stderr)
        return 2
    settings = part.settings if options.steps is None else replace(part.settings, steps=options.steps)
    console.print(f"{part.title}, trained by {source}", style="bold", soft_wrap=True)
    machine = histories.this_machine()
    with running(console, settings.steps) as tell:
        trained = part.train(function, settings, tell)
    folder = unused_folder(root / "runs", f"part_{part.number}")
    text = part.show(trained, folder)
    history = History(part.number, source, asdict(settings), trained.rows, machine, text)
    report(console, part, history, folder, root)
    if options.record:
        record(history, folder, root)
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
        "--by", metavar="NOTEBOOK", help="take the function from this notebook, or the library's own with `library`"
    )
    parser.add_argument("--steps", type=positive, metavar="N", help="train for N steps instead of all of them")
    parser.add_argument(
        "--record", action="store_true", help="for authors: keep this run as the one that the course shows"
    )
    return parser.parse_args(arguments)


def positive(typed: str) -> int:
    """A whole number of at least 1."""
    if not typed.isdecimal() or int(typed) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1 is needed, not {typed!r}")
    return int(typed)


def chosen(part: Part, by: str | None, root: Path) -> tuple[Function, str]:
    """The function to train with, and whose it is. Raises NoAnswerError if notebook `by` has none.

    Without a name: the student's own notebook in work/, and the library's own function if that has no usable one.
    """
    if by == LIBRARY:
        return part.library, "the library's own function"
    path = chapter_called(part.chapter).work(root) if by is None else Path(by).resolve()
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    try:
        return usable(part, path), f"{part.function} of {shown}"
    except NoAnswerError as error:
        if by is not None:
            raise
        missing = (
            str(error) if path.exists() else f"There is no {shown} yet (`python3 -m course start {part.chapter}`)."
        )
        print(f"{missing} The library's own function is used instead of your {part.function}.")
        return part.library, "the library's own function"


def usable(part: Part, path: Path) -> Function:
    """The function in a notebook, tried on a small case. Raises NoAnswerError."""
    function = answer(path, part.function)
    try:
        problem = part.problem(function)
    except NotImplementedError:
        raise NoAnswerError(f"{part.function} is not written yet.") from None
    except Exception as error:  # whatever a student's function raises is reported in one sentence
        problem = (
            f"It raises {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ") + "."
        )
    if problem:
        check = f"`python3 -m course check {part.chapter} {part.function}` says more"
        raise NoAnswerError(f"{part.function} cannot train yet. {problem} ({check}.)")
    return function


@contextmanager
def running(console: Console, steps: int) -> Iterator[Callable[[int, Row | None], None]]:
    """A progress bar. Yields a function to call with each step that is done, and with the row of an evaluation."""
    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=steps)

        def tell(step: int, row: Row | None) -> None:
            progress.update(task, completed=step)
            if row is not None:
                progress.update(task, description=in_words(row))
                if not console.is_terminal:
                    console.print(in_words(row))

        yield tell


def in_words(row: Row) -> str:
    """`step 100, test loss 2.41`."""
    accuracy = f", test accuracy {row['test_accuracy']:.1%}" if "test_accuracy" in row else ""
    return f"step {row['step']}, loss {row['loss']:.2f}, test loss {row['test_loss']:.2f}{accuracy}"


def unused_folder(runs: Path, name: str) -> Path:
    """runs/part_1, or runs/part_1-2 and so on: no run is ever overwritten."""
    for number in count(1):
        folder = runs / (name if number == 1 else f"{name}-{number}")
        if not folder.exists():
            folder.mkdir(parents=True)
            return folder
    raise AssertionError


def report(console: Console, part: Part, history: History, folder: Path, root: Path) -> None:
    """Print the last row of this run and of the course's run, the generated text, and the names of the files."""
    history.write(folder / "history.json")
    known = [("this run", history)]
    if (histories.RECORDED / f"part_{part.number}.json").exists():
        known.append(("the course's run", histories.recorded(part.number)))
    floor = part.floor and (part.floor[0], part.floor[1]())
    pictures.losses([(label, each.rows) for label, each in known], floor).savefig(folder / "loss.png")
    names = list(history.last)
    table = Table(box=None, pad_edge=False)
    for name in ("", *names):
        table.add_column(name.replace("_", " "), justify="left" if not name else "right")
    for label, each in known:
        table.add_row(label, *(f"{each.last[name]:g}" for name in names))
    console.print(table)
    if history.text:
        console.print("\nA text that the network made up:\n", style="bold")
        console.print(history.text, markup=False, soft_wrap=True)
    shown = folder.relative_to(root) if folder.is_relative_to(root) else folder
    files = ", ".join(sorted(path.name for path in folder.iterdir()))
    console.print(f"\nIn {shown}: {files}", soft_wrap=True)


def record(history: History, folder: Path, root: Path) -> None:
    """Keep the history and the picture of this run as those that the course shows."""
    history.write(histories.RECORDED / f"part_{history.part}.json")
    picture: Any = folder / ("hardest.png" if history.part == 1 else "loss.png")
    (root / "course" / "pictures" / f"result_{history.part}.png").write_bytes(picture.read_bytes())
