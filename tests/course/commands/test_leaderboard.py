"""`course leaderboard`: ranks of several files by recipes that are run again, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from course.commands import leaderboard
from course.probes import capstone


def quick(lr: float, batch_size: int) -> Any:
    return lambda cluster: {
        "strategy": {"name": "LocalSGD"}, "optimizer": {"name": "SGD", "lr": lr}, "epochs": 1,
        "batch_size": batch_size, "ranks": np.arange(2),
    }  # fmt: skip


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capstone, "TARGET", 0.15)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    capstone.submit("[b]Ada[/b]", quick(1e-9, 59), paths[0], (41, 17))
    assert capstone.submit("[b]Ada[/b]", quick(0.2, 59), paths[0], (41, 17)) < 1  # takes the place of the first one
    assert capstone.submit("Alan", quick(1e-9, 359), paths[0], (41, 17)) == pytest.approx(capstone.MISSED)
    capstone.submit("Grace", quick(0.5, 179), paths[1], (41, 17))
    capstone.submit("Edsger", quick(1e-9, 359), paths[1], (9, 17))
    return paths


def test_entries_of_all_files_are_run_and_ranked_once_among_those_on_the_same_clusters(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    forged = json.loads(files[0].read_text())
    forged[1] |= {"score": 0.001, "rows": {kind: [[0.1, 0.99, 0.1]] for kind in capstone.KINDS}}  # counts for nothing
    files[0].write_text(json.dumps(forged))
    to = files[0].with_name("class.json")
    assert leaderboard.run([*map(str, files), str(files[0]), "--to", str(to)]) == 0
    said = capsys.readouterr().out.splitlines()
    ranks = [line.split()[0:3:2] for line in said[2:]]
    assert ranks == [["1", "Edsger"], ["1", "Grace"], ["2", "[b]Ada[/b]"], ["3", "Alan"]]
    assert [line.count("missed") for line in said[2:]] == [3, 0, 0, 3]
    assert len(json.loads(to.read_text())) == 4
    assert to.with_suffix(".png").stat().st_size > 0


def test_an_entry_whose_recipe_cannot_be_run_has_no_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipes = {kind: {"strategy": {"name": "Hogwild"}} for kind in capstone.KINDS}
    (path := tmp_path / "board.json").write_text(json.dumps([{"name": "x", "seeds": [1, 2], "recipes": recipes}]))
    assert leaderboard.run([str(path)]) == 1
    assert "x: a recipe cannot be run: strategy: name must be" in capsys.readouterr().out


def test_a_name_makes_no_row_of_its_own_and_one_entry_on_other_clusters_does_not_take_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"Ada": [41, 17], "\x1b[2JEve\n 1 0.001 Eve": [-9, 3], "Alan": [41, 17]}
    recipes = {kind: {} for kind in capstone.KINDS}
    entries = [{"name": name, "seeds": seeds, "recipes": recipes} for name, seeds in names.items()]
    (path := tmp_path / "board.json").write_text(json.dumps(entries))
    monkeypatch.setattr(capstone, "run", lambda cluster, recipe: capstone.Race(3.7, 0.25, ((3.7, 0.98, 0.1),)))
    shown: list[str] = []
    monkeypatch.setattr(leaderboard, "drawn", lambda best, title: shown.extend(best) or Figure())
    assert leaderboard.run([str(path), "--to", str(tmp_path / "class.json")]) == 0
    said = capsys.readouterr().out
    assert [line[:4].strip() for line in said.splitlines()[2:] if line[:4].strip()] == ["1", "1", "2"]
    assert "\x1b" not in said
    assert shown == ["Ada", "Alan"]


@pytest.mark.parametrize(
    "text", ["{", "[" * 99_999, "[3]", '[{"name": "x"}]', '[{"name":"x","seeds":[1,2],"recipes":{}}]']
)
def test_what_is_no_leaderboard_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path := tmp_path / "board.json").write_text(text)
    assert leaderboard.run([str(path)]) == 2
    assert "no leaderboard" in capsys.readouterr().err
