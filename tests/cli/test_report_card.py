"""`minidl report-card` names what is wrong with results in a file or a folder, and says so by its exit code."""

import csv
from pathlib import Path

import pytest

from tests.cli.command import minidl, refuses, succeeds
from tests.parallel.measures.test_twelve_ways import table, write

pytestmark = pytest.mark.timeout(600)


def test_clean_results_pass_and_others_end_with_exit_code_1() -> None:
    write(Path("clean.csv"), table({}, {}))
    assert succeeds("report-card", "clean.csv") == "6 rows: 0 problems found\n"
    write(Path("spoilt.csv"), table({"device": "cpu"}, {"device": "gpu"}, seeds=(4,)))
    done = minidl(Path(), "report-card", "spoilt.csv", "--seeds", 1)
    hardware = "ring: its speedup is one of more nodes and of other hardware: device=gpu here, device=cpu there"
    assert (done.returncode, done.stdout, done.stderr) == (1, f"{hardware}\n2 rows: 1 problem found\n", "")


def test_a_folder_of_compare_is_read_and_what_is_no_table_is_refused() -> None:
    succeeds("compare", "--strategies", "serial", "--model", "mlp", "--data", "spirals", "--epochs", 1, "--networks",
             "none", "--seeds", 3, "--out", "out")  # fmt: skip
    assert succeeds("report-card", "out") == "3 rows: 0 problems found\n"
    with Path("methods.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["method", "seed", "accuracy"], *(["ring", seed, 0.9] for seed in range(3))])
    assert succeeds("report-card", "methods.csv", "--name", "method") == "3 rows: 0 problems found\n"
    refuses(
        "report-card",
        {
            "methods.csv": "no row has the column 'strategy': give name=",
            "nowhere": "cannot read or write nowhere: No such file or directory",
            ".": "has neither runs.csv nor run folders: give a CSV file",
            "methods.csv --seeds 0": "--seeds must be at least 1",
        },
    )
