"""`python3 -m course` as a person starts it: wrong command, wrong Python, help, overview."""

from __future__ import annotations

import csv
import subprocess
import sys
from importlib import import_module

import pytest
from typer.testing import CliRunner

from course import command_line
from course.commands import demo, test
from course.setup.bootstrap import ROOT
from minidl.cli.app import app
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

WRONG_PYTHON = """
import runpy, sys
sys.argv = ["course"]
for sys.version_info in [(2, 7, 18), (3, 10, 13), (3, 15, 0)]:
    try:
        runpy.run_module("course", run_name="__main__")
    except SystemExit as ended:
        print(ended.code)
"""


def course(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line of the course in a process of its own."""
    return subprocess.run([sys.executable, "-m", "course", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_an_unknown_command_gets_one_sentence_and_exit_code_2():
    result = course("dmeo")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Unknown command 'dmeo': use demo, lab, start, check, progress, ")
    assert result.stderr.endswith(", or none for the overview.\n")
    assert result.stderr.count("\n") == 1


def test_a_wrong_python_gets_one_sentence_and_exit_code_2():
    result = subprocess.run([sys.executable, "-c", WRONG_PYTHON], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout.split() == ["2"] * 3
    assert [line.partition(" Python 3.11 to 3.14, and this is Python ")[0] for line in result.stderr.splitlines()] == [
        "The course needs"
    ] * 3


def test_help_lists_every_command_and_sets_nothing_up(capsys):
    assert command_line.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n  {name}" in told for name in command_line.available())
    assert max(map(len, told.splitlines())) <= 80


def test_a_command_whose_module_is_not_here_is_not_offered(monkeypatch):
    monkeypatch.setitem(command_line.COMMANDS, "dance", command_line.Command("course.not_in_this_edition", "dance"))
    assert "dance" not in command_line.available()
    assert "dance" not in command_line.usage()


def test_every_command_is_a_module_with_a_run():
    for name in command_line.available():
        assert callable(import_module(command_line.COMMANDS[name].module).run), name


def test_up_to_the_environment_only_the_standard_library_is_imported():
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import course.command_line;"
        "loaded = {name.split('.')[0] for name, module in sys.modules.items() if module is not None};"
        "outside = loaded - set(sys.stdlib_module_names);"
        "print(sorted(name for name in outside if not name.startswith(('_', 'course'))))"
    )
    result = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert result.stdout == "[]\n", result.stderr


def test_the_tests_are_spread_over_the_cores_unless_told_otherwise():
    assert test.parallel([], cores=4)[:2] == ["-n", "8"]
    assert test.parallel(["-k", "tensor", "-x"], cores=2)[:2] == ["-n", "4"]
    assert test.parallel([], cores=1) == []
    for arguments in (["--pdb"], ["-n0"], ["-n", "3"], ["-s"]):
        assert test.parallel(arguments, cores=4) == []


def test_kernels_of_every_processor_are_compiled_for_the_exhaustive_tests_alone_and_none_where_no_test_runs(
    monkeypatch,
):
    compiled: list[int] = []
    monkeypatch.setattr(test, "compile_kernels", lambda targets: compiled.append(len(targets)))
    monkeypatch.setattr(test, "run_child", lambda command, environment: 0)
    monkeypatch.setattr(test, "cores", lambda: 4)
    for arguments in (["--help"], ["--collect-only"], [], ["-k", "ring"], ["--all"]):
        assert test.run(arguments) == 0
    assert compiled == [1, 1, 2]


def test_a_whole_tier_says_how_long_it_takes():
    assert test.expectation([]).startswith("Running the first tier: about 4 to 8 minutes on two idle cores")
    assert test.expectation(["--all"]).startswith("Running all tests: about 20 to 40 minutes")
    assert test.expectation(["--all", "tests/nn"]) == test.expectation(["-k", "ring"]) == ""


def test_the_demo_overwrites_no_earlier_run(tmp_path):
    assert demo.unused_folder(tmp_path) == "runs/demo"
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    (tmp_path / "runs" / "demo-2").mkdir()
    assert demo.unused_folder(tmp_path) == "runs/demo-3"


def test_the_demo_names_no_pictures_that_it_has_not_made(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "DEMO_FOLDER", str(tmp_path / "demo"))
    monkeypatch.setattr(demo, "run_child", lambda command: 0)
    assert demo.run(["--help"]) == demo.run(["--out", "elsewhere"]) == 0
    assert capsys.readouterr().out == ""


def in_this_process(command: list[str]) -> int:
    """Run `python -m minidl …` here."""
    return CliRunner().invoke(app, command[3:]).exit_code


@pytest.mark.parametrize(
    ("arguments", "least"),
    [(["--epochs", "1", "--nodes", "2", "--on", "simulation"], 0.3), *exhaustively(([], 0.97))],
)
def test_the_demo_reads_at_least_97_percent_of_the_digits_and_makes_its_pictures(
    monkeypatch, tmp_path, arguments, least
):
    monkeypatch.setattr(demo, "DEMO_FOLDER", str(tmp_path / "demo"))
    if arguments:
        monkeypatch.setattr(demo, "run_child", in_this_process)
    assert demo.run(arguments) == 0
    with (tmp_path / "demo" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["accuracy"]) >= least
    assert {"loss.png", "timeline.png", "trace.json.gz"} <= {path.name for path in (tmp_path / "demo").iterdir()}
