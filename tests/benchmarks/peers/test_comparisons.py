"""A ratio divides times of the same round; of the other libraries the fastest counts."""

from __future__ import annotations

import csv
from dataclasses import replace

from benchmarks.peers import report
from benchmarks.peers.comparisons import Comparison, best

SLOW = Comparison("step", "gpt", "1 thread", [1.0, 2.0, 9.0], "PyTorch eager", [2.0, 4.0, 3.0], limit=0.5)
FAST = Comparison("step", "gpt", "1 thread", [1.0, 2.0, 9.0], "jax.jit", [1.0, 1.0, 1.0], limit=0.5)
ALONE = Comparison("launch", "nodes that do nothing", "4 nodes", [0.1, 0.1, 0.1])


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    assert SLOW.ratio == 0.5
    assert SLOW.quartiles == (0.5, 1.75)


def test_the_best_of_the_others_is_the_fastest() -> None:
    assert best([SLOW, FAST, ALONE]) == [FAST, ALONE]


def test_the_fastest_of_the_others_alone_is_judged_and_only_if_all_were_measured() -> None:
    rows = list(report.rows([SLOW, FAST, ALONE]))
    assert rows[1] == (("step", "gpt", "1 thread", "2 s", "jax.jit", "1 s", "2.000", "1.50 .. 5.50", "≤ 1.00"), True)
    assert rows[2] == (("launch", "nodes that do nothing", "4 nodes", "100 ms", "", "", "", "", ""), True)
    rows = list(report.rows([SLOW, replace(SLOW, peer="torch.compile"), FAST]))
    assert [(cells[-1], is_best) for cells, is_best in rows] == [("", False), ("", False), ("≤ 1.00: missed", True)]


def test_the_file_holds_every_round(tmp_path) -> None:
    report.write(tmp_path, [SLOW, FAST, ALONE])
    with (tmp_path / "bench.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    assert len(records) == 9
    assert records[2]["minidl"] == "9.0"
    assert records[2]["theirs"] == "3.0"
