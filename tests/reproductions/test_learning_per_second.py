"""Learning per second: the steps to the target come from the folder of this run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.reproductions.learning_per_second import steps_to_target


def test_the_steps_are_those_of_the_table_in_the_given_folder(tmp_path: Path) -> None:
    table = "target loss,minibatch,steps\n0.2,8,123.0\n0.2,16,77.0\n0.1,16,99.0\n"
    (tmp_path / "steps_to_target.csv").write_text(table)
    assert steps_to_target(tmp_path) == {8: 123.0, 16: 77.0}


def test_a_folder_without_the_table_of_steps_is_refused_with_what_to_run_first(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="run steps_to_target with the same --folder first"):
        steps_to_target(tmp_path)
