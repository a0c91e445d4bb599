"""`grade --container`: what the container may do, that the same rows come out, and that it ends with the command.

A stand-in is called in place of podman and docker: it notes its arguments and runs the command without isolation.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from course.commands import grade
from course.grading.container import outside
from tests.course.grading.submitted_class import ROOT, rows

pytestmark = pytest.mark.timeout(300)

NAME = "02_minibatch_sgd"
STAND_IN = Path(__file__).with_name("container_engine.py")


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """The folder of the stand-in, which is called podman, and docker as well."""
    home = tmp_path / "engine"
    (home / "bin").mkdir(parents=True)
    for name in outside.ENGINES:
        script = home / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
        script.chmod(0o755)
    monkeypatch.setenv("CONTAINER_ENGINE_HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return home


@pytest.fixture
def submissions(tmp_path):
    """A class of two students, one of whom handed in no notebook, in a folder with a comma and a space in its name."""
    folder = tmp_path / "a class, b"
    path = folder / "ada" / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    notebook = nbformat.read(ROOT / "exercises" / NAME / f"{NAME}.ipynb", as_version=4)
    notebook.cells = notebook.cells[:2]
    nbformat.write(notebook, path)
    (folder / f"bob {NAME}.ipynb").write_text("{")
    return folder


def calls(home: Path) -> list[list[str]]:
    return [json.loads(line) for line in (home / "calls").read_text().splitlines()]


def test_the_container_is_restricted_and_writes_the_same_grades(engine, submissions, tmp_path):
    (submissions / "ada" / f"{NAME}.ipynb").write_text("[]")
    to = tmp_path / "graded"
    assert grade.run([str(submissions), "--to", str(tmp_path / "here")]) == 1
    assert grade.run([str(submissions), "--to", str(to), "--container", "--seconds", "7", "--workers", "1"]) == 1
    assert rows(to / "grades.csv") == rows(tmp_path / "here" / "grades.csv")
    assert len(list((to / "feedback").rglob("*.html"))) == 2
    *_, build, run = calls(engine)
    assert build[0] == "build"
    assert (engine / "image").read_text() == "Containerfile pyproject.toml uv.lock"
    text = " ".join(run)
    for option in (
        "run --rm --init --interactive", "--network none", "--read-only", "--cap-drop ALL", "--memory 6g",
        "--security-opt no-new-privileges", "--pids-limit 1000", "--cpus 1", "--env MINIDL_NO_VENV=1",
        f'--mount type=bind,"source={ROOT}","destination={ROOT}",readonly',
        f'--mount type=bind,"source={submissions}","destination={submissions}",readonly',
        f'--mount type=bind,"source={to}","destination={to}" ',
        f"{submissions} --to={to} --workers=1 --seconds=7.0",
    ):  # fmt: skip
        assert option in text, option
    assert "--user 0" not in text
    assert text.count("type=bind") == 3
    before = len(calls(engine))
    outside.image_of(outside.engine_here())
    assert [call[0] for call in calls(engine)[before:]] == ["info", "image"]  # it is there already


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, *(pytest.param(one, marks=pytest.mark.exhaustive) for one in (signal.SIGINT, signal.SIGTERM))],
    ids=lambda number: number.name,
)
def test_when_the_command_is_ended_the_container_ends(number, engine, submissions, tmp_path):
    path = submissions / "ada" / f"{NAME}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    endless = "import time\nwhile True: time.sleep(1)"
    notebook.cells[:0] = [nbformat.v4.new_code_cell(endless) for _ in range(30)]  # each is ended after 20 s
    nbformat.write(notebook, path)
    to = tmp_path / "graded"
    command = [sys.executable, "-c", "import sys; from course.commands import grade; sys.exit(grade.run(sys.argv[1:]))"]
    command += [str(submissions), "--to", str(to), "--container", "--seconds", "500"]
    process = subprocess.Popen(command, cwd=ROOT)
    inside = wait_for(lambda: student_process(engine))
    process.send_signal(number)
    assert process.wait(timeout=200) == (130 if number != signal.SIGKILL else -signal.SIGKILL)
    until = time.monotonic() + 200
    while any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in inside):
        assert time.monotonic() < until, inside
        time.sleep(0.1)


def student_process(engine: Path) -> list[psutil.Process]:
    """The process in the container and that of the student's code, once both are there."""
    try:
        grader = psutil.Process(int((engine / "pid").read_text()))
        students = [one for one in grader.children(recursive=True) if "MINIDL_ANSWER" in one.environ()]
    except (OSError, ValueError, psutil.Error):
        return []
    return [grader, *students] if students else []


def wait_for(found):
    until = time.monotonic() + 200
    while not (value := found()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return value


def test_a_missing_engine_image_or_folder_for_a_container_is_reported(
    engine, submissions, tmp_path, capfd, monkeypatch
):
    def told(to: str = "graded") -> str:
        assert grade.run([str(submissions), "--to", str(tmp_path / to), "--container"]) == 2
        return capfd.readouterr().err

    (tmp_path / "file").touch()
    (engine / "no_network").touch()
    image = told()
    assert "no such host" in image
    assert "The image could not be built: the lines above say why." in image
    assert str(outside.CONTAINERFILE) in image
    (engine / "no_network").unlink()
    assert told("file/graded").splitlines()[-1].startswith(f"The results cannot be written to {tmp_path}/file/graded: ")
    (engine / "down").touch()
    assert told() == (
        "`podman info` says: Cannot connect to the daemon. Is it running?\n"
        "`docker info` says: Cannot connect to the daemon. Is it running?\n"
        "Start it (docker: its daemon), then type the same command again.\n"
    )
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert told() == "--container needs podman or docker, and neither is here: install one of them.\n"
    assert not (tmp_path / "graded").exists()


def test_results_are_not_written_around_the_submissions(engine, submissions, capsys):
    owner = (submissions / "ada").stat().st_uid
    for to in ("", ".."):
        assert grade.run([str(submissions), "--to", str(submissions / to), "--container"]) == 2
        assert "give the results a folder of their own" in capsys.readouterr().err
    assert (submissions / "ada").stat().st_uid == owner


def test_a_deadline_without_a_time_zone_is_this_computers_in_the_container_too(tmp_path, monkeypatch):
    zone = tmp_path / "localtime"
    zone.write_bytes(b"TZif2" + bytes(100) + b"\nCET-1CEST,M3.5.0,M10.5.0/3\n")
    monkeypatch.delenv("TZ", raising=False)
    assert outside.time_zone(zone) == "CET-1CEST,M3.5.0,M10.5.0/3"
    assert outside.time_zone(tmp_path / "none") == outside.time_zone(STAND_IN) == "UTC0"
    monkeypatch.setenv("TZ", str(zone))
    assert outside.time_zone() == "CET-1CEST,M3.5.0,M10.5.0/3"
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    assert outside.time_zone() == "EST5EDT,M3.2.0,M11.1.0"
    parser = grade.parser()
    options = parser.parse_args(["submissions", "--to", "there"])
    assert "TZ=EST5EDT,M3.2.0,M11.1.0" in outside.run_command("podman", "name", "image", parser, options)


def test_every_option_reaches_the_command_in_the_container():
    arguments = ["submissions", "--to", "there", "--assignment", "04", "--seconds", "3", "--workers", "5"]
    parser = grade.parser()
    options = parser.parse_args([*arguments, "--container"])
    inside = parser.parse_args(outside.typed(parser, options))
    assert vars(inside) == vars(options) | {
        "container": False, "folder": Path("submissions").resolve(), "to": Path("there").resolve(),
    }  # fmt: skip
