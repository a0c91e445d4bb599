"""`python3 -m course start NN`: give the student a copy of a chapter's exercises in `work/`, and never touch it again.

What the student wrote is never overwritten: if the exercises have changed since, the new ones are laid beside, with
the student's answers in them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from itertools import count
from pathlib import Path
from typing import Any

from course.chapters import UnknownChapterError, chapter_with_exercises
from course.setup.bootstrap import ROOT

Cell = dict[str, Any]


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Start one chapter, or go on with it; 2 if there is none of that name."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course start", description="Copy a chapter's exercises into work/; nothing is overwritten."
    )
    parser.add_argument("chapter", help="its number, 4 or 04, or its name")
    options = parser.parse_args(arguments)
    try:
        chapter = chapter_with_exercises(options.chapter, root)
    except UnknownChapterError as error:
        print(error, file=sys.stderr)
        return 2
    print(begin(chapter.exercises(root), chapter.work(root), root))
    if chapter.lectures(root):
        print(f"  read   python3 -m course lab {chapter.number}")
    print(f"  write  python3 -m course lab work/{chapter.number}")
    print(f"  check  python3 -m course check {chapter.number}")
    return 0


def begin(exercises: Path, work: Path, root: Path) -> str:
    """Copy what is not there yet, and say what was done."""
    new = not work.exists()
    for source in sorted(path for path in exercises.parent.rglob("*") if path.is_file()):
        target = work.parent / source.relative_to(exercises.parent)
        if not target.exists():
            copy_whole(source, target)
    if new:
        return f"Your copy is {shown(work, root)}."
    yours, theirs = notebook(work), notebook(exercises)
    if yours is None:
        return f"{shown(work, root)} is there, but is not a notebook: move it away and start again for a new copy."
    if theirs is None:
        return f"{shown(exercises, root)} is damaged: `git checkout exercises` brings it back. Yours was left as it is."
    if version(yours) == version(theirs):
        return f"{shown(work, root)} is there already and was left as it is."
    beside = place_beside(work, version(theirs))
    if not beside.exists():
        write_whole(beside, merged(theirs, yours))
    return (
        f"The exercises have changed since you started: {'; '.join(changes(theirs, yours))}.\n"
        f"{shown(work, root)} was left as it is.\n"
        f"Beside it lies {beside.name}: the new exercises with your answers in them. To go on with it:\n"
        f"  mv {shown(beside, root)} {shown(work, root)}"
    )


def notebook(path: Path) -> dict[str, Any] | None:
    """A notebook's JSON; None if it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return content if isinstance(content, dict) and isinstance(content.get("cells"), list) else None


def version(content: dict[str, Any]) -> str:
    """The hash of the text from which a notebook was built: Jupyter keeps it in a student's copy."""
    return str(content.get("metadata", {}).get("minidl", {}).get("sha256", ""))


def place_beside(work: Path, wanted: str) -> Path:
    """Where new exercises go: NAME.new.ipynb, with a number if an older one lies there; the same again if it is it."""
    for number in count(1):
        path = work.with_suffix(".new.ipynb" if number == 1 else f".new-{number}.ipynb")
        if not path.exists() or ((there := notebook(path)) is not None and version(there) == wanted):
            return path
    raise AssertionError


def changes(theirs: dict[str, Any], yours: dict[str, Any]) -> list[str]:
    """What is new or different in the exercises, in words; what students write in does not count."""
    before = {key(cell): text(cell) for cell in yours["cells"]}
    new, different = [], []
    for number, cell in enumerate(theirs["cells"], start=1):
        name = f"{number} ({key(cell)})" if role(cell) else str(number)
        if key(cell) not in before:
            new.append(name)
        elif not is_answer(cell) and before[key(cell)] != text(cell):
            different.append(name)
    found = [f"{how} cells: {', '.join(names)}" for names, how in ((different, "different"), (new, "new")) if names]
    return found or ["only small things"]


def merged(theirs: dict[str, Any], yours: dict[str, Any]) -> dict[str, Any]:
    """The new exercises with the student's answers, and the cells that the student added where they stood."""
    known = {key(cell) for cell in theirs["cells"]}
    answers = {key(cell): cell for cell in yours["cells"] if is_answer(cell)}
    cells: list[Cell] = []
    added = own_cells(yours["cells"], known)
    for cell in theirs["cells"]:
        answer = answers.get(key(cell))
        if answer is not None and is_answer(cell):
            cell = {**cell, "source": answer["source"]}
        cells += [cell, *added.pop(key(cell), [])]
    for rest in added.values():  # in front of everything, or after a cell that is gone
        cells += rest
    return {**theirs, "cells": cells}


def own_cells(cells: list[Cell], known: set[str]) -> dict[str, list[Cell]]:
    """What the student added, by the cell of the exercises after which it stands."""
    after, result = "", {}
    for cell in cells:
        if key(cell) in known:
            after = key(cell)
        elif not role(cell).get("locked") and not is_builders(cell) and text(cell).strip():
            result.setdefault(after, []).append(cell)
    return result


def is_builders(cell: Cell) -> bool:
    """Whether a cell's id is one that the builder gives to plain cells: c00, c01 and so on."""
    name = str(cell.get("id", ""))
    return name.startswith("c") and name[1:].isdecimal()


def role(cell: Cell) -> dict[str, Any]:
    """nbgrader's metadata of a cell; empty for a plain one."""
    found = cell.get("metadata", {}).get("nbgrader", {})
    return found if isinstance(found, dict) else {}


def key(cell: Cell) -> str:
    """What a cell is known by in every version: its name, or its id."""
    return str(role(cell).get("grade_id") or cell.get("id", ""))


def is_answer(cell: Cell) -> bool:
    """Whether students write in this cell."""
    return bool(role(cell).get("solution"))


def text(cell: Cell) -> str:
    """A cell's source; in the file it is a list of lines or one string."""
    return "".join(cell["source"])


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file so that half of it is never seen, and one that has come meanwhile stays."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(target.name + ".tmp")
    shutil.copyfile(source, new)
    place(new, target)


def write_whole(target: Path, content: dict[str, Any]) -> None:
    """Write a notebook in the same way."""
    new = target.with_name(target.name + ".tmp")
    new.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    place(new, target)


def place(new: Path, target: Path) -> None:
    """Give `new` the name `target` unless that is taken."""
    try:
        os.link(new, target)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(new, target)
        return
    new.unlink()


def shown(path: Path, root: Path) -> str:
    """A path as it is typed from the root of the clone."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
