"""`python3 -m course result`: whose function trains, and what is left behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from course.commands import result
from course.results import history, parts
from course.results.parts import PARTS
from minidl import cluster
from tests.course import small_course
from tests.course.results.test_trainings import LETTERS

SIGNATURE = "def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):\n    "


@pytest.fixture
def small(tmp_path, monkeypatch):
    """An empty clone, in which Part I is a small training."""
    monkeypatch.setattr(result, "PARTS", (replace(PARTS[0], settings=LETTERS), PARTS[1]))
    return tmp_path


def work(root: Path, body: str) -> None:
    cell = small_course.cell("code", "adam_step", SIGNATURE + body, solution=True, grade=False)
    small_course.write(root / "work/02_minibatch_sgd/02_minibatch_sgd.ipynb", small_course.notebook([cell], "1"))


def test_without_an_answer_the_library_trains_and_that_is_said(small, capsys):
    assert result.run(["1", "--steps", "2"], small) == 0
    said = capsys.readouterr().out
    assert "There is no work/02_minibatch_sgd" in said
    assert "The library's own function is used instead of your adam_step." in said
    stored = json.loads((small / "runs/part_1/history.json").read_text())
    assert stored["settings"]["steps"] == 2
    assert (small / "runs/part_1/hardest.png").exists()


def test_the_readers_function_trains_and_no_run_is_overwritten(small, capsys):
    work(small, "raise NotImplementedError")
    assert result.run(["1", "--steps", "1"], small) == 0
    assert "adam_step is not written yet." in capsys.readouterr().out
    work(
        small,
        "m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2\n    "
        "return w - lr * m / (1 - beta1**t) / ((v / (1 - beta2**t)) ** 0.5 + eps), m, v",
    )
    assert result.run(["1", "--steps", "1"], small) == 0
    assert "trained by adam_step of work/02_minibatch_sgd" in capsys.readouterr().out
    assert history.History.read(small / "runs/part_1-2/history.json").answer.startswith("adam_step of work")


def test_a_notebook_that_is_named_must_have_a_usable_answer(small, capsys):
    work(small, "return w + 1, m, v")
    path = small / "work/02_minibatch_sgd/02_minibatch_sgd.ipynb"
    assert result.run(["1", "--by", str(path)], small) == 2
    assert "adam_step cannot train yet. It does not do what Adam does." in capsys.readouterr().err
    assert not (small / "runs").exists()


@pytest.mark.parametrize(("part", "guessing"), [(1, np.log(26)), (2, 3.1)], ids=["letters", "text"])
def test_the_recorded_history_is_of_a_network_that_learned(part, guessing):
    """guessing: the loss of equal chances for all letters; of a predictor that knows the frequencies of characters."""
    recorded = history.recorded(part)
    assert recorded.part == part
    assert recorded.settings.keys() == vars(PARTS[part - 1].settings).keys()
    assert recorded.last["step"] == recorded.settings["steps"]
    assert recorded.last["test_loss"] < 0.8 * guessing
    assert recorded.machine["cores"]


def test_a_ring_that_never_ends_or_is_not_written_is_refused(monkeypatch):
    def endless(comm: Any, x: Any) -> Any:
        while True:
            pass

    def unwritten(comm: Any, x: Any) -> Any:
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        parts.problem_of_sum(unwritten)
    monkeypatch.setattr(parts, "TRIAL_SECONDS", 0.5)
    with pytest.raises(cluster.CommTimeout):
        parts.problem_of_sum(endless)
