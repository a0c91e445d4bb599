"""`python3 -m course` as a person starts it: wrong command, wrong Python, help, overview."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from course import command_line
from course.commands import demo, test
from course.setup.bootstrap import ROOT

pytestmark = pytest.mark.timeout(300)

WRONG_PYTHON = """
import runpy, sys
sys.version_info = {version}
sys.argv = ["course"]
runpy.run_module("course", run_name="__main__")
"""


def course(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line of the course in a process of its own."""
    return subprocess.run([sys.executable, "-m", "course", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_an_unknown_command_gets_one_sentence_and_exit_code_2() -> None:
    result = course("dmeo")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Unknown command 'dmeo': use demo, lab, start, check, progress, ")
    assert result.stderr.endswith(", or none for the overview.\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 10, 13), (3, 15, 0)])
def test_a_wrong_python_gets_one_sentence_and_exit_code_2(version: tuple[int, ...]) -> None:
    program = WRONG_PYTHON.format(version=version)
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("The course needs Python 3.11 to 3.14, and this is Python ")
    assert result.stderr.count("\n") == 1


def test_help_lists_every_command_and_sets_nothing_up() -> None:
    result = course("--help")
    assert result.returncode == 0
    assert all(f"\n  {name}" in result.stdout for name in command_line.available())
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_command_whose_module_is_not_here_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command_line.COMMANDS, "dance", command_line.Command("course.not_in_this_edition", "dance"))
    assert "dance" not in command_line.available()
    assert "dance" not in command_line.usage()


def test_every_command_is_a_module_with_a_run() -> None:
    for name in command_line.available():
        assert callable(import_module(command_line.COMMANDS[name].module).run), name


def test_up_to_the_environment_only_the_standard_library_is_imported() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import course.command_line;"
        "loaded = {name.split('.')[0] for name, module in sys.modules.items() if module is not None};"
        "outside = loaded - set(sys.stdlib_module_names);"
        "print(sorted(name for name in outside if not name.startswith(('_', 'course'))))"
    )
    result = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert result.stdout == "[]\n", result.stderr


def test_the_tests_are_spread_over_the_cores_unless_told_otherwise() -> None:
    assert test.parallel([], cores=4)[:2] == ["-n", "8"]
    assert test.parallel(["-k", "tensor", "-x"], cores=2)[:2] == ["-n", "4"]
    assert test.parallel([], cores=1) == []
    for arguments in (["--pdb"], ["-n0"], ["-n", "3"], ["-s"]):
        assert test.parallel(arguments, cores=4) == []


@pytest.mark.parametrize("option", ["--help", "-h", "--version", "--collect-only"])
def test_no_kernel_is_compiled_where_no_test_runs(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(test, "compile_kernels", compiled.append)
    monkeypatch.setattr(test, "run_child", lambda command, environment: 0)
    monkeypatch.setattr(test, "cores", lambda: 4)
    assert (test.run([option]), compiled) == (0, [])


def test_kernels_of_every_processor_are_compiled_for_the_exhaustive_tests_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[int] = []
    monkeypatch.setattr(test, "parallel", lambda arguments, cores: ["-n", "2"])
    monkeypatch.setattr(test, "compile_kernels", lambda targets: compiled.append(len(targets)))
    monkeypatch.setattr(test, "run_child", lambda command, environment: 0)
    for arguments in ([], ["-k", "ring"], ["--all"], ["--rest", "30"], ["--rest=30"]):
        assert test.run(arguments) == 0
    assert compiled == [1, 1, 2, 2, 2]


def test_the_demo_overwrites_no_earlier_run(tmp_path: Path) -> None:
    assert demo.unused_folder(tmp_path) == "runs/demo"
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    (tmp_path / "runs" / "demo-2").mkdir()
    assert demo.unused_folder(tmp_path) == "runs/demo-3"


def test_the_demo_is_a_command_line_that_minidl_has() -> None:
    command = [sys.executable, "-m", "minidl", "train", "--help"]
    known = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "COLUMNS": "200"})
    options = [argument for argument in demo.TRAIN if argument.startswith("--")] + ["--out"]
    assert [option for option in options if option not in known.stdout] == []


@pytest.mark.parametrize("arguments", [["--help"], ["--out", "elsewhere"]])
def test_the_demo_names_no_pictures_that_it_has_not_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr(demo, "DEMO_FOLDER", str(tmp_path / "demo"))
    monkeypatch.setattr(demo, "run_child", lambda command: 0)
    assert demo.run(arguments) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_reads_at_least_97_percent_of_the_digits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "DEMO_FOLDER", str(tmp_path / "demo"))
    assert demo.run([]) == 0
    with (tmp_path / "demo" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["accuracy"]) >= 0.97
    assert {"loss.png", "timeline.png", "trace.json"} <= {path.name for path in (tmp_path / "demo").iterdir()}
