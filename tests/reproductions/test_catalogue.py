"""The book-keeping of reproductions: the list, the table of the README, several runs with one verdict at the end."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from benchmarks.reproductions import __main__ as command
from benchmarks.reproductions import catalogue
from benchmarks.reproductions.catalogue import Entry, entries
from benchmarks.reproductions.reproduction import RESULTS, Reproduction, run
from minidl.plots import style
from tests.reproductions.test_reproductions import FAST


def test_the_table_of_the_readme_is_made_of_the_files() -> None:
    text = catalogue.README.read_text(encoding="utf-8")
    made = catalogue.readme_with(catalogue.readme_table(entries()), text)
    assert text == made, "run `python -m benchmarks.reproductions --readme` and commit the README"


def test_every_experiment_says_what_it_shows_and_has_its_results_beside_it() -> None:
    of = entries()
    assert {*FAST} <= {entry.name for entry in of}
    for entry in of:
        assert entry.summary.endswith((".", "?")), entry
        assert entry.title
        for kind in (".csv", ".png"):
            assert (RESULTS / f"{entry.name}{kind}").exists(), f"run `python -m benchmarks.reproductions {entry.name}`"
        assert [row for row in entry.verdicts() if row[1] != "holds"] == []


def test_what_is_no_experiment_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text('"""One\nsentence.\n\nMore."""\n\nTITLE = "A title"\n')
    (tmp_path / "digits.py").write_text('"""A set-up."""\n\nx = 1\n')
    assert entries(tmp_path) == [Entry("example", "A title", "One sentence.")]


def experiment(holds: bool):  # type: ignore[no-untyped-def]
    def show(reproduction: Reproduction) -> None:
        reproduction.table(["x"], [[1.0]])
        reproduction.picture(style.new_figure()[0])
        reproduction.accept(True, "one is 1")
        reproduction.accept(holds, "two is 2")

    return show


def quiet() -> Console:
    return Console(file=io.StringIO(), width=120)


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_run_keeps_its_verdicts_and_the_list_shows_them(tmp_path: Path) -> None:
    assert not run("example", "A title", experiment(False), tmp_path, quiet()).is_accepted
    entry = Entry("example", "A title", "A sentence.")
    assert [row[1:] for row in entry.verdicts(tmp_path)] == [("holds", "one is 1"), ("fails", "two is 2")]
    assert entry.verdicts(tmp_path / "elsewhere") == []
    console = quiet()
    console.print(command.listing([entry], tmp_path))
    assert "1 of 2 hold" in said(console)


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """One experiment that breaks, one that fails, one that holds."""

    def breaks(reproduction: Reproduction) -> None:
        raise RuntimeError("no [red]such[/red] thing")

    shown = {"one_breaks": breaks, "one_fails": experiment(False), "one_holds": experiment(True)}
    for name, show in shown.items():
        module = ModuleType(name)
        module.TITLE, module.experiment = name, show  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, f"benchmarks.reproductions.{name}", module)
    found = [Entry(name, name, "A sentence.") for name in shown]
    monkeypatch.setattr(catalogue, "entries", lambda: found)


@pytest.mark.usefixtures("three")
def test_all_are_run_also_after_one_that_breaks_and_the_exit_code_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    console = quiet()
    assert command.main(["--all", "--folder", str(tmp_path)], console) == 1
    end = said(console)[said(console).rindex("experiment") :]
    assert [line.split("│")[1:3] for line in end.splitlines() if "│ one_" in line] == [
        [" one_breaks ", " breaks: no [red]such[/red] thing "],
        [" one_fails  ", " two is 2                         "],
        [" one_holds  ", " 2 of 2 hold                      "],
    ]
    assert "RuntimeError" in said(console)
    assert command.main(["one_holds", "--folder", str(tmp_path)], quiet()) == 0
    assert command.main(["one_fails", "one_holds", "--folder", str(tmp_path)], quiet()) == 1
    with pytest.raises(SystemExit) as ending:
        command.main(["nothing"], quiet())
    assert ending.value.code == 2
    assert "there is no experiment 'nothing'" in capsys.readouterr().err
