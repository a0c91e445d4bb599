"""`course leaderboard`: ranks of several files, recipes that are run again, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from course.commands import leaderboard
from course.probes import capstone


def quick(lr: float) -> Any:
    sgd = {"name": "SGD", "lr": lr}
    return lambda cluster: {
        "strategy": {"name": "LocalSGD"}, "optimizer": sgd, "epochs": 1, "batch_size": 359, "ranks": [0, 1],
    }  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("boards")
    paths = [folder / "one.json", folder / "two.json"]
    for path, name, lr in ((paths[0], "[b]Ada[/b]", 0.3), (paths[0], "Alan", 0.2), (paths[1], "Grace", 0.1)):
        assert capstone.submit(name, quick(lr), path, (41, 17)) == pytest.approx(capstone.MISSED)
    capstone.submit("Alan", quick(0.4), paths[0], (41, 17))  # takes the place of the first one
    return paths


def test_entries_of_all_files_are_ranked_once_and_the_missed_target_is_said(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faster = json.loads(files[1].read_text())
    faster[0] |= {"score": 0.5, "name": "Edsger"}
    (other := tmp_path / "other.json").write_text(json.dumps(faster))
    to = tmp_path / "class.json"
    assert leaderboard.run([*map(str, files), str(files[0]), str(other), "--to", str(to)]) == 0
    said = capsys.readouterr().out
    names = [line.split()[2] for line in said.splitlines()[2:]]
    assert names == ["Edsger", "Alan", "Grace", "[b]Ada[/b]"]
    assert said.count("missed") == 12
    assert len(json.loads(to.read_text())) == 4
    assert to.with_suffix(".png").stat().st_size > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("score", float("nan")), ("score", -1.0), ("rows", [["1", "0.98", 0.1]]), ("rows", [[float("nan"), 0.98, 0.1]])],
)
def test_a_file_with_results_that_no_race_has_is_refused(
    key: str, value: Any, files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [row] = json.loads(files[1].read_text())
    row[key] = dict.fromkeys(capstone.KINDS, value) if key == "rows" else value
    (path := tmp_path / "board.json").write_text(json.dumps([row]))
    assert leaderboard.run([str(path)]) == 2
    assert "no leaderboard" in capsys.readouterr().err


def test_entries_are_ranked_among_those_on_the_same_clusters(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [row] = json.loads(files[1].read_text())
    board = [row | {"name": name, "seeds": [seed, 0], "score": score}
             for name, seed, score in (("Ada", 9, 0.1), ("Alan", 5, 0.7), ("Grace", 5, 0.3))]  # fmt: skip
    (path := tmp_path / "board.json").write_text(json.dumps(board))
    assert leaderboard.run([str(path)]) == 0
    ranks = [line.split()[0:3:2] for line in capsys.readouterr().out.splitlines()[2:]]
    assert ranks == [["1", "Grace"], ["2", "Alan"], ["1", "Ada"]]


def test_a_result_that_its_recipe_does_not_give_is_not_confirmed(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leaderboard.run([str(files[1]), "--verify"]) == 0
    forged = json.loads(files[1].read_text())
    forged[0]["rows"]["slow links"][0][1] = 0.98
    (path := tmp_path / "forged.json").write_text(json.dumps(forged))
    assert leaderboard.run([str(path), "--verify"]) == 1
    assert "not confirmed: Grace: run again, its score is 2.000" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[3]",
        '[{"name": "x"}]',
        '[{"name":"x","score":1,"seeds":[1,2],"recipes":{},"rows":{}}]',
    ],
)
def test_what_is_no_leaderboard_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path := tmp_path / "board.json").write_text(text)
    assert leaderboard.run([str(path)]) == 2
    assert "no leaderboard" in capsys.readouterr().err
