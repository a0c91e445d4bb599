"""Both trainings go through the reader's function and through nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from course.results import glyph_resnet, python_gpt
from course.results.parts import PARTS
from minidl import cluster

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
    told = []
    long = glyph_resnet.train(adam_step, LETTERS, lambda step, row: told.append((step, row is not None)))
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
