"""A rehearsal of grading: `python -m benchmarks.class_of_300 FOLDER` writes a class there and grades it.

The class hands in notebooks of all chapters: right and known wrong answers, empty and broken notebooks, and code that
loops, forks, fills the memory, deletes files or leaves processes behind. One command of course/teaching.md grades it.
Each exercise must get the outcome and points of its answer, and nothing may be left over; else the exit code is 1.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import psutil  # type: ignore[import-untyped]

from course.building.known_answers import known_answers
from course.notebooks.notebook_file import as_bytes, read_notebook
from tests.course.grading.submitted_class import ROOT, SOLUTIONS, notebook, role, rows

DEADLINE = datetime.fromisoformat("2026-11-30T18:00+01:00")
NAMES = ("Anna Müller", "Anna Müller", "Zoë Ødegård", "王小明", "Ольга Иванова", "محمد علي", "김민준", "O'Neil, Pat")
PART = re.compile(r"✓ +[\d.]+/([\d.]+)  (.*?)(?=\\n|['\"]])")  # in the output of a check: points and title
FUNCTIONS = {  # the body of a function, and the outcome of its exercise
    "endless loop": ("while True: print('still here')", "deadlock or time-out"),
    "endless forks": ("import os\n    while True: os.fork()", "your code raised"),
    "endless memory": ("held = []\n    while True: held.append(b'x' * 10**8)", "your code raised"),
}
CELLS = {  # in front of right answers, whose points they must not change; FOLDER holds submissions and results
    "deletes files": "import os, shlex, shutil\nos.system('rm -rf ' + shlex.quote(FOLDER))\nshutil.rmtree(FOLDER)",
    "leaves a process": "import subprocess\nsubprocess.Popen(['sleep', '3000'], start_new_session=True)",
    "endless cell": "while True: pass",
}
SHARES = {"right": 30, "unusual": 8, "wrong": 25, "mixture": 12, "empty": 6, "late": 5, "broken": 3, "no notebook": 2,
          **dict.fromkeys([*FUNCTIONS, *CELLS], 1.5)}  # fmt: skip
"""How often each kind of submission is drawn. The first submissions are one of each kind."""

Expected = dict[str, tuple[str, float]]
"""The outcome and the points that each exercise must get."""


def answer(assignment: str, kind: str, draw: random.Random, folder: Path) -> tuple[bytes, Expected]:
    """The file of a submission, and the outcome and points that each exercise must get."""
    if kind in ("broken", "no notebook"):
        return b"{ my homework", {}
    parts = {  # of each check: titles and points
        cell.id.removeprefix("check_"): {title: float(points) for points, title in PART.findall(str(cell.outputs))}
        for cell in read_notebook(SOLUTIONS[assignment]).cells
        if cell.cell_type == "code" and role(cell, "grade")
    }
    known = known_answers(assignment.split("_", 1)[1])
    student: Any = notebook(assignment, "empty" if kind == "empty" else "right", exercises=None)
    if kind == "empty":
        return as_bytes(student), dict.fromkeys(parts, ("not attempted", 0.0))
    cells = {cell.id: cell for cell in student.cells if role(cell, "solution")}
    called = {name for name in parts for other, cell in cells.items() if name != other and name in cell.source}
    free = [name for name in parts if name not in called]
    expected = {name: ("correct", sum(points.values())) for name, points in parts.items()}
    for one in known.ALTERNATIVES:
        if kind in ("unusual", "mixture") and one.exercise in free and draw.random() < 0.7:
            cells[one.exercise].source = one.code
    for name in draw.sample(free, {"wrong": 1, "mixture": min(3, len(free))}.get(kind, 0)):
        one = draw.choice([one for one in known.MUTANTS if one.exercise == name and {*one.loses} <= {*parts[name]}])
        cells[name].source, lost = one.code, sum(parts[name][title] for title in one.loses)
        expected[name] = one.status.value, expected[name][1] - lost
    if kind in FUNCTIONS:
        name, (body, outcome) = draw.choice(free), FUNCTIONS[kind]
        cells[name].source, expected[name] = f"def {name}(*values, **named):\n    {body}", (outcome, 0.0)
    if kind in CELLS:
        source = CELLS[kind].replace("FOLDER", repr(str(folder)))
        student.cells.insert(1, nbformat.v4.new_code_cell(source, id="mine"))  # type: ignore[no-untyped-call]
    return as_bytes(student), expected


def hand_in(options: argparse.Namespace) -> dict[Path, tuple[str, bytes, Expected]]:
    """Write the class and its roster; by file (STUDENT/ASSIGNMENT.ipynb) the kind, the content, and what it gets."""
    draw, handed_in = random.Random(options.seed), {}
    names = [f"{draw.choice(NAMES)} s{1001 + number}" for number in range(options.students)]
    with (options.folder / "roster.csv").open("w", encoding="utf-8") as file:
        csv.writer(file).writerows([("name", "student number"), *(name.rsplit(" ", 1) for name in names)])
    keys = [(student, assignment) for student in names for assignment in draw.sample([*SOLUTIONS], options.assignments)]
    kinds = [*SHARES, *draw.choices([*SHARES], [*SHARES.values()], k=len(keys))]
    for (student, assignment), kind in zip(keys, kinds, strict=False):
        path = options.folder / "class" / student / f"{assignment}.{'docx' if kind == 'no notebook' else 'ipynb'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        content, expected = answer(assignment, kind, draw, options.folder)
        path.write_bytes(content)
        came = (DEADLINE + timedelta(hours=30 if kind == "late" else -30)).timestamp()
        os.utime(path, (came, came))
        handed_in[path] = kind, content, expected
    return handed_in


def grade(folder: Path) -> tuple[float, list[tuple[int, int]]]:
    """Type the command; its seconds, and the bytes of memory of all its processes and of its own, each second."""
    options = f"--roster roster.csv --deadline {DEADLINE.isoformat()} --late 10%/day --similarity"
    command = [sys.executable, "-m", "course", *f"grade class --to graded {options}".split()]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT)}
    began, memory = time.monotonic(), [(0, 0)]
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        while process.poll() is None:
            with suppress(psutil.Error):  # of processes that end meanwhile
                grader = psutil.Process(process.pid)
                everything = sum(one.memory_full_info().pss for one in [grader, *grader.children(recursive=True)])
                memory.append((everything, grader.memory_info().rss))
            time.sleep(1)
    return time.monotonic() - began, memory


def differences(folder: Path, handed_in: dict[Path, tuple[str, bytes, Expected]]) -> list[str]:
    """A sentence for everything that is not as it must be."""
    exercises, table = (rows(folder / "graded" / name) for name in ("exercises.csv", "class.csv"))
    got = {(row["student"], row["assignment"], row["exercise"]): (row["outcome"], row["points"]) for row in exercises}
    of_class = {(f"{row['student']} {row['student_number']}", row["assignment"]): row for row in table}
    found = [f"left over: {path}" for path in (folder / "tmp").iterdir()]
    found += [] if (folder / "graded" / "similar.html").exists() else ["the grader did not write its last file"]
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("TMPDIR", "").startswith(str(folder)):
                found.append(f"left over: process {process.pid}, {' '.join(process.cmdline())[:80]}")
    for path, (kind, content, expected) in handed_in.items():
        who = path.parent.name, path.stem
        row, total = of_class[who], sum(points for _, points in expected.values())
        for name, (outcome, points) in expected.items():
            said, given = got.get((*who, name), ("missing", "0"))
            if said != outcome or abs(float(given) - points) > 1e-6:
                found.append(f"{who}, {kind}, {name}: {said}, {given} points instead of {outcome}, {points:g}")
        penalty = 0.2 * total * (kind == "late")  # 30 hours are two days that have begun
        if (row["status"] == "handed in") != bool(expected) or abs(float(row["penalty"] or 0) - penalty) > 0.006:
            found.append(f"{who}, {kind}: {row['status']}, and the penalty is {row['penalty']} of {total:g} points")
        if not path.exists() or path.read_bytes() != content:
            found.append(f"{who}, {kind}: the file was changed")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: Path(text).resolve(), metavar="FOLDER", help="a new folder")
    parser.add_argument("--students", type=int, default=300, help="how many (300)")
    parser.add_argument("--assignments", type=int, default=1, help="how many each of them hands in, drawn (1)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    (options.folder / "tmp").mkdir(parents=True)
    handed_in = hand_in(options)
    seconds, memory = grade(options.folder)
    problems = differences(options.folder, handed_in)
    disk = sum(path.stat().st_size for path in (options.folder / "graded").rglob("*") if path.is_file())
    again, _ = grade(options.folder)
    everything, own = zip(*memory, strict=True)
    print(dict(Counter(kind for kind, _, _ in handed_in.values())), *problems, sep="\n")
    print(f"{len(handed_in)} submissions in {seconds:.0f} s, {seconds / len(handed_in):.1f} s each; the same command "
          f"again took {again:.0f} s; {os.cpu_count()} cores, load {os.getloadavg()[2]:.1f}\nmemory at most: "
          f"{max(everything) / 1e9:.1f} GB; of the grader's own process {max(own[: len(own) // 2 + 1]) / 1e6:.0f} MB "
          f"in the first half, {max(own) / 1e6:.0f} in all\nresults: {disk / 1e6:.0f} MB\n{len(problems)} differences"
          )  # fmt: skip
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
