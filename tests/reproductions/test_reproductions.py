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
    "overlap",
    "sufficient_factors",
    "synchronous_equals_serial",
    "all_reduce_crossovers",
    "sign_and_error_feedback",
    "stability_of_stale_gradients",
    "growing_batches",
    "quantizers",
    "sparse_all_reduce",
    "learning_per_second",
    "communication_volumes",
]

QUICK = ["quantizers"]

# the tables of other experiments that an experiment reads from its folder
READS: dict[str, list[str]] = {"learning_per_second": ["steps_to_target.csv"]}


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
