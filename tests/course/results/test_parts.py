"""What the parts of the course end in: the reader's function is found, trains a network, and its run is recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from course.commands import result
from course.results import glyph_resnet, history, parts, python_gpt
from course.results.answer import NoAnswerError, answer
from course.results.parts import PARTS
from minidl import cluster
from tests.course import small_course


def notebook(tmp_path: Path, *sources: str, check: str = "") -> Path:
    cells = [small_course.cell("code", f"c{i:02}", source) for i, source in enumerate(sources)]
    cells.append(small_course.cell("code", "check_f", check, grade=True, points=1))
    path = tmp_path / "04_x.ipynb"
    small_course.write(path, small_course.notebook(cells, "1"))
    return path


def test_a_function_comes_with_the_imports_and_functions_of_other_cells(tmp_path):
    path = notebook(
        tmp_path,
        "import numpy as np",
        "TWO = 2\n\ndef twice(x):\n    return TWO * x",
        "def f(x):\n    return np.sum(twice(x))",
    )
    assert answer(path, "f")(np.ones(3)) == 6


def test_experiments_checks_magics_and_broken_cells_do_no_harm(tmp_path):
    path = notebook(
        tmp_path,
        "print(1 / 0)",
        "%matplotlib inline\ndef g():\n    return 1",
        "def broken(:",
        "wrong = 1 / 0",
        "def f():\n    return g()",
        check="raise SystemExit",
    )
    assert answer(path, "f")() == 1


def test_a_missing_function_and_a_missing_notebook_are_said_in_a_sentence(tmp_path):
    with pytest.raises(NoAnswerError, match="defines no function f"):
        answer(notebook(tmp_path, "x = 1"), "f")
    with pytest.raises(NoAnswerError, match="nowhere"):
        answer(tmp_path / "nowhere.ipynb", "f")


LETTERS = glyph_resnet.Settings(depth=8, n_train=52, n_test=26, minibatch=26, steps=3, evaluate_every=2)
TEXT = python_gpt.Settings(n_layer=1, n_head=1, n_embd=8, block_size=16, n_chars=5_000, minibatch=6, steps=3)


def adam_step(w: Any, m: Any, v: Any, t: int, gradient: Any, lr: float, beta1: float, beta2: float, eps: float) -> Any:
    m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    return w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def sum_at_rank_0(comm: Any, x: Any) -> Any:
    """A sum by another way than the library's ring; a new array, as an answer may return."""
    total = comm.reduce(x.copy())
    return comm.broadcast(x if total is None else total)


def test_the_letters_are_learned_by_the_given_rule():
    told, rates = [], {}

    def noted(w: Any, m: Any, v: Any, t: int, gradient: Any, lr: float, *betas: float) -> Any:
        rates[t] = lr
        return adam_step(w, m, v, t, gradient, lr, *betas)

    long = glyph_resnet.train(noted, LETTERS, lambda step, row: told.append((step, row is not None)))
    assert rates == pytest.approx({1: LETTERS.lr, 2: 0.75 * LETTERS.lr, 3: 0.25 * LETTERS.lr})
    assert told == [(1, False), (2, True), (3, True)]
    assert [row["step"] for row in long.rows] == [2, 3]
    mine, theirs = (
        glyph_resnet.train(rule, replace(LETTERS, steps=1)) for rule in (adam_step, glyph_resnet.library_rule)
    )
    for ours, library in zip(mine.model.parameters(), theirs.model.parameters(), strict=True):
        np.testing.assert_allclose(ours.numpy(), library.numpy(), atol=1e-4)


def weights(all_reduce: Any, nodes: int) -> dict[str, Any]:
    result: dict[str, Any] = cluster.launch(python_gpt.node, (all_reduce, TEXT), nodes, "simulation").results[0]
    return result


def test_two_nodes_train_the_gpt_as_one_node_does():
    alone, together = weights(python_gpt.library_all_reduce, 1), weights(python_gpt.library_all_reduce, 2)
    for name, values in alone.items():
        np.testing.assert_allclose(together[name], values, atol=1e-4)


def test_the_gradients_of_the_gpt_are_those_that_the_given_all_reduce_returns():
    mine, theirs = weights(sum_at_rank_0, 2), weights(python_gpt.library_all_reduce, 2)
    unsummed = weights(lambda comm, x: x, 2)
    assert all(np.allclose(mine[name], theirs[name], atol=1e-6) for name in theirs)
    assert not all(np.allclose(unsummed[name], theirs[name], atol=1e-6) for name in theirs)


@pytest.mark.timeout(120)
def test_the_gpt_is_trained_on_processes_and_writes_a_text():
    trained = python_gpt.train(python_gpt.library_all_reduce, replace(TEXT, steps=1))
    assert [row["step"] for row in trained.rows] == [1]
    assert len(python_gpt.written(trained.model, 5, "def ")) == 9


def test_the_rate_rises_then_falls_to_a_tenth():
    settings = python_gpt.Settings()
    rates = [python_gpt.learning_rate(step, settings) for step in range(settings.steps)]
    assert max(rates) == pytest.approx(settings.lr)
    assert rates[0] < rates[settings.warm_up // 2] < rates[settings.warm_up]
    assert rates[-1] == pytest.approx(settings.lr / 10, rel=1e-3)


def test_the_trial_passes_the_librarys_functions_and_refuses_wrong_ones():
    rule, total = PARTS
    assert rule.problem(rule.library) == rule.problem(adam_step) == total.problem(total.library) == ""
    assert "Adam" in rule.problem(lambda w, m, v, t, gradient, *_: (w - gradient, m, v))
    assert "add up" in total.problem(lambda comm, x: x)


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
    assert result.chosen(PARTS[0], None, small)[0] is PARTS[0].library
    assert "adam_step is not written yet." in capsys.readouterr().out
    (small / "runs/part_1").mkdir(parents=True)
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
