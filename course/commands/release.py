"""`python3 -m course release FOLDER [NN ...]`: write the students' edition, of all chapters or of some."""

from __future__ import annotations

import argparse
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from course.building.imports import imported, reached
from course.chapters import Chapter, UnknownChapterError, chapter_with_exercises
from course.command_line import COMMANDS, FOR_STUDENTS
from course.setup.bootstrap import ROOT

TEACHERS = (
    "solutions", "course/assignments", "course/building", "course/linting", "course/sandboxes.md", "course/slides",
    "course/teaching.md", "course/writing.md", "nbgrader_config.py",
    *(f"course/commands/{name}.py" for name in ("build", "grade", "lint", "redraw", "release", "slides")),
    "tests/mutants", "tests/course", "tests/test_solutions.py", "CONTRIBUTING.md", ".ci", ".github/workflows",
    ".pre-commit-config.yaml", "benchmarks/rows.csv", "benchmarks/rows.py", "tests/benchmarks/test_rows.py",
)  # fmt: skip
"""The teacher's files: solutions, hidden tests, known answers, and what needs these or is about them."""

ONLY_IF_REACHED = ("course/grading/", "course/notebooks/")
"""Of these folders students get only what their own commands import."""

LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")
NOTEBOOK_LINK = re.compile(r"\[([^\[\]]*)\]\(([\w./]+\.ipynb)\)")
OF_CHAPTER = re.compile(r"(?:notebooks|exercises|course/lectures)/(\d\d)[a-z]?_")
"""A lecture or an exercise, with its chapter's number."""

CHAPTERS_THERE = re.compile(r"Today\s+chapters\s+[\d,\sand]+\sare\s+there")
"""What README says of the chapters."""

NUMBER = re.compile(r"\d{1,2}")
"""How a chapter is chosen."""

FOLDER = "students"
"""The edition's folder if none is named."""

ROW_OF_FOLDERS = re.compile(r"^\| `([\w/]+)/`")


def run(arguments: list[str]) -> int:
    """Copy the students' files into a new folder, all or none; exit code 2 if the folder cannot be made."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course release",
        description="Write the students' edition: no solutions, no hidden tests. With numbers of chapters (05 11) it "
        "has the lectures and exercises of these alone.",
    )
    parser.add_argument(
        "words", nargs="+", metavar="FOLDER|NN", help=f"a folder that is not there yet ({FOLDER}), and chapters (all)"
    )
    words = parser.parse_args(arguments).words
    folders = [word for word in words if not NUMBER.fullmatch(word)]
    if len(folders) > 1:
        parser.error(f"one folder is written, and {' and '.join(folders)} are {len(folders)}: chapters are numbers")
    folder = Path(*folders or [FOLDER])
    try:
        chapters = [chapter_with_exercises(word, ROOT) for word in words if NUMBER.fullmatch(word)]
    except UnknownChapterError as error:
        print(error, file=sys.stderr)
        return 2
    if folder.exists():
        print(f"{folder} is already there: name a folder that is not.", file=sys.stderr)
        return 2
    if not (ROOT / "solutions").is_dir():
        print("This is a students' edition already.", file=sys.stderr)
        return 2
    try:
        files = of_chapters(students_files({name: ROOT / name for name in tracked(ROOT)}), chapters)
    except (OSError, subprocess.CalledProcessError):
        print(f"{ROOT} is not a git clone: the edition is made of the files that git knows.", file=sys.stderr)
        return 2
    try:
        copy(files, folder)
    except OSError as error:
        print(f"{folder} cannot be written: {error.strerror}.", file=sys.stderr)
        return 2
    chosen = f" Chapters: {', '.join(chapter.number for chapter in chapters)}." if chapters else ""
    print(
        f"{len(files)} files are in {folder}/, none of the teacher's side.{chosen} "
        "Students start with: python3 -m course"
    )
    return 0


def copy(files: Sequence[str], folder: Path) -> None:
    """Copy files of the course into a new folder. It gets its name when complete, and is removed after an error."""
    unfinished = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        for name in files:
            (unfinished / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, unfinished / name)
        for name in files:
            if name.endswith(".md"):
                page = (ROOT / name).read_text(encoding="utf-8")
                (unfinished / name).write_text(students_page(page, files, posixpath.dirname(name)), encoding="utf-8")
            elif name.endswith(".ipynb"):
                text = (ROOT / name).read_text(encoding="utf-8")
                linked = students_notebook(text, files, posixpath.dirname(name))
                if linked != text:
                    (unfinished / name).write_text(linked, encoding="utf-8")
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def students_page(page: str, files: Sequence[str], folder: str = "") -> str:
    """A page without what leads to a file or folder of the teacher's: paragraphs, or single rows of a table.

    It names the chapters of the edition.
    """
    chapters = sorted({found[1] for name in files if (found := OF_CHAPTER.match(name))} - {"00"})
    page = CHAPTERS_THERE.sub(f"Today chapters {', '.join(chapters)} are there", page)
    folders = {posixpath.dirname(name) for name in files}
    there = {*files, *(parent.as_posix() for name in folders for parent in Path(name, "_").parents)}

    def leads_on(text: str) -> bool:
        return all(posixpath.normpath(posixpath.join(folder, name)) in there for name in LINK.findall(text))

    paragraphs = []
    for paragraph in page.split("\n\n"):
        if paragraph.startswith("|"):
            rows = paragraph.split("\n")
            kept = (row for row in rows if leads_on(row) and all(name in there for name in ROW_OF_FOLDERS.findall(row)))
            paragraphs.append("\n".join(kept))
        elif leads_on(paragraph):
            paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def students_notebook(text: str, files: Sequence[str], folder: str) -> str:
    """A notebook's JSON, in which links to notebooks that are not in the edition are their texts alone."""

    def linked(found: re.Match[str]) -> str:
        return found[0] if posixpath.normpath(posixpath.join(folder, found[2])) in files else found[1]

    return NOTEBOOK_LINK.sub(linked, text)


def of_chapters(files: Sequence[str], chapters: Sequence[Chapter]) -> list[str]:
    """The files without the lectures and exercises of other chapters; all files if no chapter is chosen."""
    numbers = {"00", *(chapter.number for chapter in chapters)}
    return [name for name in files if not chapters or not (found := OF_CHAPTER.match(name)) or found[1] in numbers]


def tracked(root: Path) -> list[str]:
    """The files that git tracks, so not work/ and .venv/."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (root / name).is_file()]


def students_files(files: Mapping[str, Path]) -> list[str]:
    """The files that are not the teacher's and import none of the teacher's, so that they work without them."""
    left_out = {name for name in files if any(name == part or name.startswith(f"{part}/") for part in TEACHERS)}
    imports = {
        name: imported(name, path.read_text(encoding="utf-8"), files)
        for name, path in files.items()
        if name.endswith(".py") and name not in left_out
    }
    for_students = reached(students_commands(), imports)
    left_out |= {name for name in files if name.startswith(ONLY_IF_REACHED) and name not in for_students}
    while more := {name for name, those in imports.items() if those & left_out} - left_out:
        left_out |= more
    return [name for name in files if name not in left_out]


def students_commands() -> list[str]:
    """The files of the students' commands."""
    modules = ["course.__main__", "course.commands.overview", *(COMMANDS[name].module for name in FOR_STUDENTS)]
    return [f"{module.replace('.', '/')}.py" for module in modules]
