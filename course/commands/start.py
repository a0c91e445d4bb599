"""`python3 -m course start NN`: give the student a copy of a chapter's exercises in `work/`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from course.chapters import UnknownChapterError, chapter_with_exercises
from course.setup.bootstrap import ROOT
from course.student.own_copy import begin


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Start or continue one chapter; exit code 2 for a chapter that does not exist."""
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
        print(f"  read   python3 -m course lab {chapter.typed}")
    print(f"  write  python3 -m course lab work/{chapter.typed}")
    print(f"  check  python3 -m course check {chapter.typed}")
    return 0
