"""The notebooks in a folder of submissions: whose each is, and which assignment it answers.

The layout may be nbgrader's (`STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb`), one folder per student, one flat folder, or what a
learning platform packs. The assignment is read from the notebook's metadata, else from a name in its path. The student
is the rest of the path.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat

from course.grading.submissions.files import Entry
from course.notebooks.notebook_file import NotANotebookError, NotebookFile, read_file

DATE = re.compile(r"(?<!\d)(\d{4}[-_. ]?\d{2}[-_. ]?\d{2}|\d{1,2}[-_. ]\d{1,2}[-_. ](\d{4}|\d{2}))(?!\d)")
"""A date in a file's name; its numbers are not those of an assignment."""

CONTROLS = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that no name should contain: control characters, surrogates, line and paragraph separators."""

COPY = re.compile(r"[ _-]*(\(\d+\)|copy ?\d*)$", re.IGNORECASE)
"""What a browser, Jupyter or the system adds to the name of a second file: "x (1)", "x-Copy1", "x copy 2"."""

ENDING = re.compile(
    r"(?<=.)(\.(ipynb|zip|tar|gz|tgz|bz2|xz|7z|rar|docx?|odt|pages|pdf|rtf|txt|html?|md|py))+$",
    re.IGNORECASE | re.DOTALL,
)
"""What the name of a file that is handed in ends with; other letters after a dot belong to the name ("J.Doe")."""

UNKNOWN_ASSIGNMENT = "its assignment is not known: name it with --assignment"
"""The problem of a notebook that can be read."""

REORDERING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "?")
"""Characters that change the order in which a name is displayed."""


@dataclass(frozen=True)
class Submission:
    """A student's answer to an assignment. The file itself is read when it is needed.

    assignment: empty if it is unknown.
    path: the path below the folder of submissions; for a file in an archive see Entry.
    problem: why it cannot be graded; empty if it can be.
    remark: what is odd about it.
    digest: a hash of the file's content.
    unpacked: where the file is, if it was in an archive.
    """

    student: str
    assignment: str
    path: Path
    problem: str = ""
    remark: str = ""
    digest: str = ""
    unpacked: Path | None = None

    @property
    def file(self) -> Path:
        """Where the file can be read."""
        return self.unpacked or self.path

    def read(self) -> NotebookFile:
        """The file as it is now; its problem is this submission's, if it has one."""
        return NotebookFile(self.path, problem=self.problem) if self.problem else read_file(self.file, False)

    @property
    def notebook(self) -> nbformat.NotebookNode | None:
        """The notebook in the file now, without outputs; None if the file holds none."""
        try:
            return without_outputs(self.read().notebook())
        except NotANotebookError:
            return None


def submission(entry: Entry, folder: Path, assignments: Sequence[str], chosen: str = "") -> Submission:
    """The submission in one file."""
    path, notebook, problem, remark, digest = entry.path, None, entry.problem, entry.remark, ""
    if not problem:
        file = read_file(entry.file or path, follow_links=False)
        digest = file.digest
        try:
            notebook = file.notebook()
        except NotANotebookError as error:
            problem = printable(" ".join(str(error).replace(str(file.path), path.name).split()))[:300]
    relative = path.relative_to(folder)
    said = assignment_of(notebook, assignments)
    if chosen and said not in ("", chosen):
        other = f"the notebook says that it answers {said}; it was graded as {chosen}, as --assignment says"
        remark = "; ".join(filter(None, (remark, other)))
    assignment = chosen or said
    named, is_guess = assignment_in(relative, assignments)
    if said and not chosen and not is_guess and named != said:
        other = f"the notebook says that it answers {said}, and was graded as that; its path says {named}"
        remark = "; ".join(filter(None, (remark, other)))
    if not assignment:
        assignment = named
        if named and is_guess and not problem:
            guess = f"the assignment was guessed from the number in the name {printable(path.name)[:80]!r}"
            remark = "; ".join(filter(None, (remark, guess)))
    if not assignment and not problem:
        problem = UNKNOWN_ASSIGNMENT
    student = printable(student_in(relative, assignment))
    return Submission(student, assignment, path, problem, remark, digest, entry.file)


def without_outputs(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with empty outputs; grading does not need them."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def assignment_of(notebook: nbformat.NotebookNode | None, assignments: Sequence[str]) -> str:
    """The assignment that a notebook was made from."""
    if notebook is None:
        return ""
    source = notebook.metadata.get("minidl", {})
    name = Path(str(source.get("source", ""))).stem if isinstance(source, dict) else ""
    return name if name in assignments else ""


def assignment_in(path: Path, assignments: Sequence[str]) -> tuple[str, bool]:
    """The assignment whose name is in a path, else whose number is in the file's name; and whether that is a guess."""
    for part in reversed(path.parts):
        for assignment in assignments:
            if assignment in part:
                return assignment, False
    numbers = re.findall(r"(?<!\d)\d{2}(?!\d)", DATE.sub(" ", path.name))
    return next((name for name in assignments if name.split("_")[0] in numbers), ""), True


def student_in(path: Path, assignment: str) -> str:
    """The student: the path without the assignment's name and without the endings of files.

    >>> student_in(Path("Jane Doe.zip/04_messages/mine.ipynb"), "04_messages"), student_in(Path("J. R. Doe"), "")
    ('Jane Doe/mine', 'J. R. Doe')
    """
    parts = [ENDING.sub("", part) for part in path.parts]
    words = [part.replace(assignment, "").strip(" _-.") if assignment else part for part in parts]
    return "/".join(word for word in words if word) or parts[-1]


def with_distinct_names(submissions: list[Submission], folder: Path) -> list[Submission]:
    """The same submissions; where two have the same student and assignment, the student is named by the file's path."""
    count = Counter((one.student, one.assignment) for one in submissions)
    named = [
        with_remark(
            replace(one, student=shown_place(one.path.with_suffix(""), folder)),
            f"one of {count[one.student, one.assignment]} files of {one.student} for this assignment",
        )
        if count[one.student, one.assignment] > 1
        else one
        for one in submissions
    ]
    seen: Counter[tuple[str, str]] = Counter()
    for place, one in enumerate(named):  # names that differ only in unprintable characters, or in .ipynb and .IPYNB
        seen[one.student, one.assignment] += 1
        if (number := seen[one.student, one.assignment]) > 1:
            named[place] = replace(one, student=f"{one.student} ({number})")
    return named


def with_alike_remarked(submissions: list[Submission]) -> list[Submission]:
    """The same submissions, with remarks on names that look alike, on copies of a file, and on files with two names."""
    names = groups(submissions, lambda one: (looks(one.student), one.assignment))
    copies = groups(submissions, lambda one: (copied_from(one.path), one.assignment))
    files = groups((one for one in submissions if not one.problem), lambda one: file_of(one.path))
    for place, one in enumerate(submissions):
        if alike := [other.student for other in names[looks(one.student), one.assignment] if other is not one]:
            sentence = "the name differs only by upper and lower case, or by the form of its letters, from that of "
            one = with_remark(one, sentence + ", ".join(alike[:3]))
        of_copies = copies[copied_from(one.path), one.assignment]
        if others := [other.student for other in of_copies if looks(other.path.stem) != looks(one.path.stem)]:
            one = with_remark(
                one, f"it may be a second file of the same student, beside that of {', '.join(others[:3])}"
            )
        if not one.problem and (same := [other for other in files[file_of(one.path)] if other.path != one.path]):
            linked = ", ".join(other.student for other in same[:3])
            one = with_remark(one, f"it is the same file as the submission of {linked} (a hard link)")
        submissions[place] = one
    return submissions


def groups(
    submissions: Iterable[Submission], key: Callable[[Submission], Hashable]
) -> dict[Hashable, list[Submission]]:
    """The submissions by key."""
    found: dict[Hashable, list[Submission]] = defaultdict(list)
    for one in submissions:
        found[key(one)].append(one)
    return found


def copied_from(path: Path) -> Hashable:
    """The folder and the name of the file of which a file may be a copy."""
    return path.parent, looks(COPY.sub("", path.stem))


def file_of(path: Path) -> Hashable:
    """What identifies a file on the disk; the path if the file no longer exists."""
    try:
        status = path.lstat()
    except OSError:
        return path
    return status.st_dev, status.st_ino


def looks(name: str) -> str:
    """A form of a name that is equal for names that some file systems treat as the same."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


def with_remark(submission: Submission, remark: str) -> Submission:
    """The submission with one more remark."""
    return replace(submission, remark="; ".join(filter(None, (submission.remark, remark))))


def shown_place(path: Path, folder: Path) -> str:
    """A path relative to the folder, printable."""
    return printable(path.relative_to(folder).as_posix())


def printable(name: str) -> str:
    """A name in which characters that would break a line or a terminal are question marks."""
    kept = ("?" if unicodedata.category(letter) in CONTROLS else letter for letter in name)
    return "".join(kept).translate(REORDERING)
