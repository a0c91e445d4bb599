"""The reproductions that are fast enough show what they must, fresh."""

import importlib
import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.reproductions.reproduction import RESULTS, Reproduction
from tests.tiers import exhaustively

# names of files in benchmarks/reproductions/, each of a few seconds
FAST: list[str] = [
    "d06_overlap",
    "q05_sufficient_factors",
    "t01_synchronous_equals_serial",
    "t04_all_reduce_crossovers",
    "t05_sign_and_error_feedback",
    "t09_stability_of_stale_gradients",
    "t16_growing_batches",
    "t19_quantizers",
    "t21_sparse_all_reduce",
    "t25_learning_per_second",
]

QUICK = ["t01_synchronous_equals_serial", "t09_stability_of_stale_gradients", "t19_quantizers"]

# the tables of other experiments that an experiment reads from its folder
READS: dict[str, list[str]] = {"t25_learning_per_second": ["t08_steps_to_target.csv"]}


@pytest.mark.parametrize("name", [*QUICK, *exhaustively(*(name for name in FAST if name not in QUICK))])
@pytest.mark.timeout(300)
def test_what_an_experiment_must_show_does_show(name: str, tmp_path: Path) -> None:
    module = importlib.import_module(f"benchmarks.reproductions.{name}")
    for table in READS.get(name, []):
        shutil.copy(RESULTS / table, tmp_path)
    reproduction = Reproduction(name, module.TITLE, tmp_path, Console(file=io.StringIO()))
    module.experiment(reproduction)
    assert reproduction.verdicts, "an experiment that must show nothing"
    assert [sentence for holds, sentence in reproduction.verdicts if not holds] == []
    assert (tmp_path / f"{name}.csv").exists()
    assert (tmp_path / f"{name}.png").exists()
