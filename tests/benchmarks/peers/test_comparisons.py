"""A ratio divides times of the same round; of the other libraries the fastest is marked."""

from __future__ import annotations

import csv
from dataclasses import replace

from benchmarks.peers import report
from benchmarks.peers.comparisons import Comparison, best

SLOW = Comparison("step", "lenet", "1 thread", [1.0, 2.0, 9.0], "PyTorch eager", [2.0, 4.0, 3.0], limit=0.5)
FAST = Comparison("step", "lenet", "1 thread", [1.0, 2.0, 9.0], "jax.jit", [1.0, 1.0, 1.0], limit=0.5)
ALONE = Comparison("launch", "nodes that do nothing", "4 nodes", [0.1, 0.1, 0.1])


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    assert SLOW.ratio == 0.5
    assert SLOW.quartiles == (0.5, 1.75)


def test_the_best_of_the_others_is_the_fastest() -> None:
    assert best([SLOW, FAST, ALONE]) == [FAST, ALONE]


def test_the_files_hold_every_round_and_judge_the_fastest(tmp_path) -> None:
    report.write(tmp_path, [SLOW, FAST, ALONE], [("machine", "one of ours")])
    text = (tmp_path / "bench.md").read_text()
    assert text.startswith("- machine: one of ours\n")
    assert (
        "| step | lenet | 1 thread | 2 s | jax.jit | 1 s | 2.000 | 1.50 .. 5.50 |  |" in text
    )  # torch.compile is missing
    assert "| launch | nodes that do nothing | 4 nodes | 100 ms |  |  |  |  |  |" in text
    rows = list(report.rows([SLOW, replace(SLOW, peer="torch.compile"), FAST]))
    assert [(cells[-1], is_best) for cells, is_best in rows] == [("", False), ("", False), ("≤ 1.00: missed", True)]
    with (tmp_path / "bench.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    assert len(records) == 9
    assert records[2]["minidl"] == "9.0"
    assert records[2]["theirs"] == "3.0"


def test_the_picture_has_a_panel_for_each_benchmark_that_was_compared_on_a_logarithmic_axis_with_1_marked() -> None:
    (axes,) = report.picture([SLOW, FAST, ALONE]).axes
    assert axes.get_title(loc="left") == "step"
    assert axes.get_xscale() == "log"
    assert any(list(line.get_xdata()) == [1.0, 1.0] for line in axes.get_lines())
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["PyTorch eager", "jax.jit"]
    assert report.picture([SLOW]).get_supxlabel() == "measured"


def test_where_nothing_was_compared_there_is_no_picture(tmp_path) -> None:
    report.write(tmp_path, [ALONE], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.csv", "bench.md"]
