"""`python -m benchmarks --write` puts what was measured, beside its goals, into the pages."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import typer

from benchmarks.__main__ import app
from benchmarks.peers import goals, pages
from benchmarks.peers.comparisons import Comparison
from benchmarks.peers.peer import MeasurementError
from benchmarks.peers.run import MEASURED
from tests.cli import command
from tests.cli.command import ROOT, minidl, refused

OLD, NEW = (
    [("date", date), ("machine", "ours, 3 cores; Linux"), ("load", "0.5"), ("versions", "7"), ("instruction sets", "")]
    for date in ("2026-05-07 11:03", "2026-05-08 09:02")
)
SMALL = Comparison("collectives", "4 KB", "2 nodes", [0.3, 0.3], "MPICH", [0.2, 0.1])
LARGE = Comparison("collectives", "100 MB", "2 nodes", [0.3], "MPICH", [0.9])
OTHER = Comparison("launch", "nodes that do nothing", "4 nodes", [0.1], "torch.multiprocessing.spawn", [0.3])


@pytest.fixture(autouse=True)
def own_pages(tmp_path, monkeypatch):
    """The command writes these pages, whose tables have no rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "entry", lambda: typer.main.get_command(app))
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    for page, names in (("README.md", ["overview"]), ("benchmarks/README.md", ["results", "conditions"])):
        tables = "".join(f"<!-- begin: {name} -->\n<!-- end: {name} -->\nBelow {name}.\n" for name in names)
        (tmp_path / page).write_text(f"# A page\n{tables}")
    pages.write([], OLD, [])


def texts(folder):
    return [(folder / page).read_text() for page in ("README.md", "benchmarks/README.md")]


def test_a_benchmark_replaces_its_own_rows_alone_and_written_again_nothing_changes(tmp_path):
    pages.write([OTHER, SMALL, LARGE, replace(SMALL, peer="gloo", theirs=[0.6, 0.6])], OLD, ["jax is left out: | "])
    for _ in range(2):
        pages.write([SMALL], NEW, [])
        overview, results = texts(tmp_path)
        assert overview.splitlines() == [
            "# A page",
            "<!-- begin: overview -->",
            "| benchmark | what, compared with what | minidl's / the other's | goals met | measured |",
            "|---|---|---|---|---|",
            "| collectives | an all-reduce on processes, with the fastest of gloo and MPICH "
            "| 2.250 (4 KB, 2 nodes) | 1 of 1 | 2026-05-08, ours, 3 cores |",
            "| launch | a launch, with torch.multiprocessing "
            "| 0.333 (nodes that do nothing, 4 nodes) |  | 2026-05-07, ours, 3 cores |",
            "<!-- end: overview -->",
            "Below overview.",
        ]
        rows = [line for line in results.splitlines() if line.startswith("| ")]
        assert [row for row in rows if "benchmark" not in row] == [
            "| collectives | 4 KB | 2 nodes | 300 ms | MPICH | 150 ms | 2.250 | 1.87 .. 2.62 | ≤ 3.00: met |",
            "| launch | nodes that do nothing | 4 nodes | 100 ms | torch.multiprocessing.spawn | 300 ms | 0.333 "
            "| 0.33 .. 0.33 |  |",
            "| collectives | 2026-05-08 09:02 | ours, 3 cores; Linux | 0.5 | 7 |  |  |",
            "| launch | 2026-05-07 11:03 | ours, 3 cores; Linux | 0.5 | 7 |  | jax is left out: / |",
        ]
        assert [line for line in results.splitlines() if line.startswith("Below")] == [
            "Below results.",
            "Below conditions.",
        ]


def test_the_pages_are_as_the_command_writes_them(tmp_path):
    for page in ("README.md", "benchmarks/README.md"):
        (tmp_path / page).write_text((ROOT / page).read_text())
    before = texts(tmp_path)
    pages.write([], NEW, [])
    assert texts(tmp_path) == before


@pytest.mark.parametrize("is_seconds", [False, True])
def test_a_goal_is_met_up_to_its_bound_and_missed_above_it(monkeypatch, is_seconds):
    goal = goals.Goal("launch", 0.7, is_seconds=is_seconds, against=frozenset(["gloo"]))
    monkeypatch.setattr(goals, "GOALS", (goal,))
    bound = "700 ms" if is_seconds else "0.70"
    for seconds, said in ((0.7, "met"), (math.nextafter(0.7, 1), "missed")):
        one = replace(OTHER, ours=[seconds], theirs=[1.0])
        assert goals.verdict(one, {"gloo", OTHER.peer}) == f"≤ {bound}: {said}"
        assert goals.verdict(one, {OTHER.peer}) == f"≤ {bound}"


def test_a_step_is_judged_once_all_that_it_is_compared_with_are_measured():
    one = Comparison("step", "lenet", "1 thread", [0.3], "PyTorch eager", [0.7])
    compiled = replace(one, case="compiled lenet", peer="jax.jit")
    assert (
        goals.verdict(one, {"PyTorch eager"}) == goals.verdict(compiled, {"torch.compile", "jax.jit"}) == "≤ 1.00: met"
    )
    assert goals.verdict(compiled, {"jax.jit"}) == goals.verdict(replace(one, case="gpt"), {"jax.jit"}) == "≤ 1.00"


def test_nothing_is_written_where_a_benchmark_failed(tmp_path, monkeypatch):
    def fails(*_):
        raise MeasurementError("the sums are wrong")

    before = texts(tmp_path)
    monkeypatch.setitem(MEASURED, "launch", lambda *_: iter([OTHER]))
    monkeypatch.setitem(MEASURED, "collectives", fails)
    done = minidl(tmp_path, "launch", "collectives", "--write")
    assert done.stderr == "python -m benchmarks: collectives: the sums are wrong; the pages are as they were\n"
    assert texts(tmp_path) == before
    assert minidl(tmp_path, "launch", "--write").returncode == 0
    assert [text.count("| launch |") for text in texts(tmp_path)] == [1, 2]


def test_what_cannot_be_written_is_refused_before_it_is_measured(tmp_path):
    assert "leave out --bytes" in refused("collectives", "--write", "--bytes", "4KB")
    (tmp_path / "README.md").write_text("# A page without tables")
    assert "README.md has no lines <!-- begin: overview -->" in refused("launch", "--write")
