"""`python3 -m course lab`: JupyterLab on the lectures and on your exercises."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from course.chapters import FIRST_LECTURE, LECTURES, UnknownChapterError, chapter_called
from course.setup.bootstrap import ROOT
from course.setup.child import one_thread_each, run_child
from course.student.lecture_copies import copy_lectures, copy_of
from minidl.instruction_set import of_children


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Open JupyterLab and wait until it ends.

    The first argument, unless it is an option, names a chapter, a lecture or a notebook's path: `lab 04` and `lab 04b`
    open the student's copy of the lecture, without outputs; `lab work/04` opens the student's own exercises;
    `lab notebooks/04b_collectives.ipynb` opens that very file. Further arguments go to JupyterLab (`--no-browser`,
    `--port=8889`).
    """
    wanted, rest = "", arguments
    if arguments and not arguments[0].startswith("-"):
        wanted, rest = arguments[0], arguments[1:]
    try:
        notebook = place(wanted, root)
    except UnknownChapterError as error:
        print(error, file=sys.stderr)
        return 2
    if os.geteuid() == 0 and "--allow-root" not in rest:
        print("JupyterLab does not start as root: everyone who reached it could do anything here.", file=sys.stderr)
        print("In a container of your own, type:", file=sys.stderr)
        print(f"    python3 -m course lab {' '.join([*arguments, '--allow-root'])}", file=sys.stderr)
        print("Elsewhere start it as another user, to whom this folder belongs.", file=sys.stderr)
        return 2
    try:
        sentences = copy_lectures(root)
    except OSError as error:
        place_of_copies = error.filename or "work/"
        print(f"The copies of the lectures cannot be written: {place_of_copies}: {error.strerror}.", file=sys.stderr)
        print("Move the course into a folder in which you may write.", file=sys.stderr)
        return 2
    for sentence in sentences:
        print(sentence)
    options = [f"--ServerApp.root_dir={root}", f"--LabApp.default_url=/lab/tree/{notebook}"]
    return run_child(
        [sys.executable, "-m", "jupyterlab", *options, *rest], environment(root) | one_thread_each() | of_children()
    )


def place(wanted: str, root: Path) -> str:
    """The path of the notebook to open, relative to `root`. Raises UnknownChapterError if there is none.

    A lecture that is named by its chapter stands for the student's copy of it, which `copy_lectures` makes.
    """
    if not wanted and not (root / FIRST_LECTURE).exists():
        return ""
    path = Path(wanted) if Path(wanted).is_absolute() else root / wanted
    if wanted and path.is_file() and path.resolve().is_relative_to(root.resolve()):
        return path.resolve().relative_to(root.resolve()).as_posix()
    if wanted.endswith(".ipynb"):
        raise UnknownChapterError(f"There is no notebook {wanted!r} in this folder.")
    if wanted.startswith("work/"):
        chapter = chapter_called(wanted)
        if not chapter.work(root).exists():
            raise UnknownChapterError(
                f"Chapter {chapter.number} was not started: python3 -m course start {chapter.typed}"
            )
        return chapter.work(root).relative_to(root).as_posix()
    return copy_of(lecture(wanted, root), root).relative_to(root).as_posix()


def lecture(wanted: str, root: Path) -> Path:
    """The lecture called "04b", or the first one of the chapter called "04". Raises UnknownChapterError."""
    if wanted in ("", "0", "00"):
        return root / FIRST_LECTURE
    for name in (f"{wanted}.ipynb", f"{wanted}_*.ipynb"):
        if found := sorted((root / LECTURES).glob(name)):
            return found[0]
    chapter = chapter_called(wanted)
    lectures = chapter.lectures(root)
    if not lectures:
        raise UnknownChapterError(f"Chapter {chapter.number} ({chapter.title}) has no lecture yet.")
    return lectures[0]


def environment(root: Path) -> dict[str, str]:
    """The environment in which JupyterLab and its kernels find `course`, `minidl` and the course's settings.

    The settings disable what needs the internet (news, updates, the list of extensions), and what confuses students:
    nbgrader's Validate, which may contradict the checks, and its side bar, which turns cells into assignments.
    """
    own = {"PYTHONPATH": str(root), "JUPYTER_CONFIG_PATH": str(root / "course" / "jupyter")}
    return {name: os.pathsep.join(filter(None, [path, os.environ.get(name)])) for name, path in own.items()}
