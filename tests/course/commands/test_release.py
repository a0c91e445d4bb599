"""What students get is nbgrader's release, gives nothing away, runs, and scores nothing."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course.building import text
from course.building.assignment_rules import broken_rules
from course.building.execution import execute
from course.building.sources import sources
from course.commands import release
from course.judging import Status
from course.judging.judged_notebook import check_cells, checks_of, judge_notebook
from course.setup.bootstrap import ROOT
from tests.course.building import lecture_record
from tests.course.grading.submitted_class import brief
from tests.tiers import all_but_first_exhaustive

ASSIGNMENTS = [source for source in sources() if not source.is_lecture]
TRACKED = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("[bcmt]*/**/*.py")}
BETWEEN = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(?P<lines>.*?)### END \1", re.S)
ORDINARY = re.compile(r"(else:|try:|return \w+|continue|break|pass|[\])}]+|return|\"\"\"|.{0,9})$")
"""Lines that say nothing: they may stand in a solution and in the release as well."""


def test_every_assignment_keeps_to_the_rules():
    for source in ASSIGNMENTS:
        notebook = text.read(source.path)
        assert broken_rules(notebook, source.name, checks_of(notebook).chapter) == [], source.name


def test_a_release_shows_no_outputs_and_no_line_of_a_solution_or_of_a_hidden_test():
    for source in ASSIGNMENTS:
        cells = nbformat.read(source.exercise, as_version=4).cells
        told = {line.strip() for cell in cells for line in cell.source.splitlines()}
        secret = {line.strip() for cell in text.read(source.path).cells for line in secret_lines(cell)}
        assert len(secret) > 5, "no secret lines were found: the markers are read wrongly"
        assert {line for line in secret & told if not ORDINARY.match(line)} == set(), source.name
        code = [cell for cell in cells if cell.cell_type == "code"]
        assert {(len(cell.outputs), cell.execution_count) for cell in code} == {(0, None)}, source.name


def secret_lines(cell: nbformat.NotebookNode) -> list[str]:
    """The lines of a cell that only teachers see."""
    if cell.cell_type == "markdown":
        return cell.source.splitlines() if "nbgrader" in cell.metadata else []
    return [line for match in BETWEEN.finditer(cell.source) for line in match["lines"].splitlines()]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", all_but_first_exhaustive(ASSIGNMENTS), ids=lambda source: source.name)
def test_a_release_gets_no_points_and_is_not_attempted(source):
    exercises = None if source is not ASSIGNMENTS[0] else 1
    release, solution = (
        brief(source.name, nbformat.read(path, 4), exercises) for path in (source.exercise, source.executed)
    )
    judgement = judge_notebook(release, solution)
    outcomes = [outcome for made in judgement.outcomes.values() for outcome in made]
    assert {outcome.status for outcome in outcomes} == {Status.NOT_ATTEMPTED}
    assert judgement.points == 0
    assert judgement.remarks == [], "a cell of the release fails before anything is written"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", all_but_first_exhaustive(ASSIGNMENTS), ids=lambda source: source.name)
def test_in_a_kernel_a_solution_displays_all_points_as_committed_and_what_is_not_written_none(
    source, tmp_path, pytestconfig
):
    """In the first tier two exercises, of which the second is not written; the others once they have changed."""
    record = getattr(pytestconfig, "cache", None) if source is not ASSIGNMENTS[0] else None
    if lecture_record.has_run(source, record):
        pytest.skip("this text has passed here with the same library and versions")
    solution, release = text.read(source.path), nbformat.read(source.exercise, as_version=4)
    unwritten = ""
    if source is ASSIGNMENTS[0]:
        solution, release = brief(source.name, solution, 2), brief(source.name, release, 2)
        *_, unwritten = check_cells(solution)
        for cell, empty in zip(solution.cells, release.cells, strict=True):
            cell.source = empty.source if f"check_{cell.id}" == unwritten else cell.source
    asyncio.run(execute(solution, tmp_path))  # raises for errors and warnings
    displayed = displayed_points(solution)
    assert displayed == {name: 0.0 if name == unwritten else most for name, most in points(solution).items()}
    committed = {cell.id: cell for cell in nbformat.read(source.executed, as_version=4).cells}
    for cell in solution.cells:
        if unwritten not in (f"check_{cell.id}", cell.id):
            assert cell == committed[cell.id], "the committed one is not what runs now"
        elif cell.id == unwritten:
            assert "not attempted" in cell.outputs[0].data["text/plain"]
    lecture_record.note(source, record)


def checking_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cells that check."""
    return [cell for cell in notebook.cells if cell.id in check_cells(notebook)]


def points(notebook: nbformat.NotebookNode) -> dict[str, float]:
    """What each check cell gives at most."""
    return {cell.id: float(cell.metadata.nbgrader.points) for cell in checking_cells(notebook)}


def displayed_points(notebook: nbformat.NotebookNode) -> dict[str, float]:
    """The number that each check cell ends with: what nbgrader takes for its points."""
    return {cell.id: float(cell.outputs[-1].data["text/plain"]) for cell in checking_cells(notebook)}


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    """The students' edition, as the command writes it."""
    if not (release.ROOT / ".git").exists():
        pytest.skip("the edition is made of the files that git tracks, and this is no clone")
    folder = tmp_path_factory.mktemp("release") / "edition"
    assert release.run([str(folder)]) == 0
    return folder


FROM = re.compile(r"^ *from ([\w.]+) import (\([^)]*\)|[^#\n]*)|^ *import ([\w.]+)", re.MULTILINE)


def module(file: str) -> str:
    """The name under which a file is imported."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_whatever_a_released_file_imports_is_released(edition):
    withheld = {module(name) for name in TRACKED if not (edition / name).is_file()}
    assert len(withheld) > 100, "the edition is complete: nothing was looked for"
    missing = set()
    for path in [*edition.rglob("*.py"), *edition.rglob("*.ipynb")]:
        program = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = json.loads(program)["cells"]
            program = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        for package, names, alone in FROM.findall(program):
            imported = {alone or package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))}
            missing |= {(path.relative_to(edition).as_posix(), name) for name in imported & withheld}
    assert missing == set()


def test_the_edition_has_nothing_of_the_teachers_side(edition):
    there = {path.relative_to(edition).as_posix() for path in edition.rglob("*")}
    assert {"exercises", "course/checks"} <= there
    assert not there & set(release.TEACHERS)
    for path in edition.rglob("*"):
        if path.suffix in (".py", ".ipynb"):
            content = path.read_text(encoding="utf-8", errors="replace")
            assert not re.search(r'^[ "]*### BEGIN HIDDEN', content, re.MULTILINE)  # a line of a cell, or of its text


def test_the_pages_of_the_edition_name_no_folder_and_link_to_no_file_that_is_not_there(edition):
    pages = {path.relative_to(edition).as_posix(): path.read_text(encoding="utf-8") for path in edition.rglob("*.md")}
    rows = re.findall(r"^\| `([^|]+)`[^|]* \| .* \| `", pages["MAP.md"], re.M)
    folders = [name for row in rows for name in re.findall(r"[\w/]+/(?=`|$)", row)]
    assert "course/checks/" in folders
    assert [name for name in folders if not (edition / name).is_dir()] == []
    links = [(name, link) for name in pages for link in release.LINK.findall(pages[name])]
    there = {("README.md", "course/pictures/check.png"), ("README.md", "course/troubleshooting.md")}
    assert there <= set(links)
    assert [(name, link) for name, link in links if not (edition / name).parent.joinpath(link).exists()] == []
    assert "teaching.md" not in pages["README.md"]


def test_the_pages_of_the_edition_name_no_command_that_it_lacks(edition):
    pages = "\n".join(path.read_text(encoding="utf-8") for path in edition.rglob("*.md"))
    commands = set(re.findall(r"`(?:python3 -m )?course (\w+)[^`]*`|^python3 -m course (\w+)", pages, re.M))
    named = {name for pair in commands for name in pair if name}
    assert {"lab", "test"} <= named
    assert [name for name in sorted(named) if not (edition / "course" / "commands" / f"{name}.py").exists()] == []


def test_a_page_of_the_edition_is_otherwise_that_of_the_course():
    page = "# A\n\nOne [b](b.md).\n\nTwo [c](c.md).\n\n| `d/` | d |\n| `e/` | e |\n\nThree, `e/` [x](https://x.y).\n"
    assert release.students_page(page, ["b.md", "d/f.py"]) == (
        "# A\n\nOne [b](b.md).\n\n| `d/` | d |\n\nThree, `e/` [x](https://x.y).\n"
    )
    assert release.students_page("| [f](f.py) |\n| [c](../c.md) |\n", ["b.md", "d/f.py"], "d") == "| [f](f.py) |\n"


def test_the_students_commands_checks_and_texts_are_released_and_once_only(edition, capsys):
    assert release.run([str(edition)]) == 2
    assert "already there" in capsys.readouterr().err
    released_files = {path.relative_to(edition).as_posix() for path in edition.rglob("*") if path.is_file()}
    wanted = set(release.students_commands()) | {"pyproject.toml", "uv.lock", "README.md", "tests/conftest.py"}
    wanted |= {name for name in release.tracked(ROOT) if name.startswith(("course/checks/", "minidl/", "notebooks/"))}
    assert wanted - released_files == set()


@pytest.mark.timeout(300)
def test_the_floors_can_be_checked_in_the_release(edition):
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", lint, "--no-cache"],
        cwd=edition, env={**os.environ, "PYTHONPATH": str(edition)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_of_the_release_has_a_hidden_test_or_the_body_of_a_solution(edition):
    cells = [cell for source in ASSIGNMENTS for cell in text.read(source.path).cells]
    secret = {line.strip() for cell in cells for line in secret_lines(cell) if telling(line.strip())}
    for path in edition.rglob("*"):
        if path.suffix in (".py", ".ipynb", ".md", ".json"):
            content = path.read_text(encoding="utf-8")
            content = content.replace('\\"', '"') if path.suffix == ".ipynb" else content
            assert {line for line in secret if line in content} == set(), path.relative_to(edition)


def telling(line: str) -> bool:
    """Whether a secret line gives a hidden test away, or so much of a solution that no other text has it by chance."""
    return len(line) > 60 or (line.startswith("check.") and "=" in line)


def test_an_edition_of_chosen_chapters_has_their_lectures_and_exercises_and_links_to_no_others(
    edition, tmp_path, monkeypatch
):
    whole = [path.relative_to(edition).as_posix() for path in edition.rglob("*") if path.is_file()]
    monkeypatch.setattr(release, "students_files", lambda files: [name for name in files if name in whole])
    monkeypatch.chdir(tmp_path)
    assert release.run(["05", "11"]) == 0
    edition = tmp_path / release.FOLDER
    numbers = {path.name[:2] for path in [*edition.glob("notebooks/*"), *edition.glob("course/lectures/[0-9]*")]}
    assert numbers == {"00", "05", "11"}
    assert {path.name[:2] for path in edition.glob("exercises/*/")} == {"05", "11"}
    links = {
        (path.name, link)
        for path in edition.rglob("*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        for link in re.findall(r"\]\(([\w./]+\.ipynb)\)", "".join(cell["source"]))
        if not (path.parent / link).exists()
    }
    assert links == set()
    start = (edition / "notebooks" / "00_start_here.ipynb").read_text(encoding="utf-8")
    assert "(05a_data_parallelism.ipynb)" in start
    for words, says in {
        "progress": "course start 05", "result 1": "Chapter 02 (Minibatch SGD) has no exercises yet",
    }.items():  # fmt: skip
        ended = subprocess.run(
            [sys.executable, "-m", "course", *words.split()], cwd=edition, capture_output=True, text=True, timeout=250,
            env={**os.environ, "MINIDL_NO_VENV": "1"},
        )  # fmt: skip
        assert says in ended.stdout + ended.stderr
    assert "Today chapters 05, 11 are there" in (edition / "README.md").read_text(encoding="utf-8")
    assert start.count("ipynb") < (ROOT / "notebooks" / "00_start_here.ipynb").read_text("utf-8").count("ipynb")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["x", "99"], "No chapter is called '99'"),
        (["x", "05", "y"], "one folder"),
    ],
)
def test_a_chapter_that_is_not_there_and_a_second_folder_are_refused(tmp_path, monkeypatch, capsys, words, says):
    monkeypatch.chdir(tmp_path)
    try:
        code = release.run(words)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_nothing_is_released_and_a_sentence_says_so(tmp_path, monkeypatch, capsys):
    copied: list[Path] = []
    monkeypatch.setattr(
        release, "tracked", lambda root: ["README.md", "LICENSE", "pyproject.toml", "uv.lock", "Makefile"]
    )
    (tmp_path / "file").write_text("")
    assert release.run([str(tmp_path / "file" / "edition")]) == 2
    assert capsys.readouterr().err.endswith("cannot be written: Not a directory.\n")

    def copy(source: Path, place: Path) -> None:
        if len(copied) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copied.append(place)
        place.write_bytes(source.read_bytes())

    monkeypatch.setattr(release.shutil, "copy2", copy)
    assert release.run([str(tmp_path / "edition")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'edition'} cannot be written: No space left on device.\n"
    assert len(copied) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_imports_what_is_left_out_is_left_out_too(tmp_path):
    programs = {
        "course/commands/overview.py": "from course.grading import shown",
        "course/grading/shown.py": "",
        "course/grading/marks.py": "",
        "course/building/making.py": "",
        "tests/test_building.py": "def f():\n    from course.building import making",
        "tests/more.py": "from tests.test_building import f",
        "tests/test_other.py": "import course.commands.overview",
    }
    for name, program in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(program, encoding="utf-8")
    left = release.students_files({name: tmp_path / name for name in programs})
    assert left == ["course/commands/overview.py", "course/grading/shown.py", "tests/test_other.py"]
