"""The picture of a student's own answer never fails: it is drawn, or a line says why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from course.checks.asynchrony import gate_timeline
from course.checks.messages_and_collectives import all_reduce_timeline
from course.checks.minibatch_sgd import training_picture
from minidl import functional as F
from minidl import optim
from minidl.cluster import ANY, Communicator

pytestmark = pytest.mark.timeout(300)

PICTURES: dict[Any, Callable[..., None]] = {
    all_reduce_timeline: all_reduce_timeline.timeline,
    gate_timeline: gate_timeline.timeline,
    training_picture: training_picture.draw_training,
}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was displayed, as if in a notebook."""
    things: list[Any] = []
    for module in PICTURES:
        monkeypatch.setattr(module, "in_notebook", lambda: True)
        monkeypatch.setattr(module, "display", things.append)
    return things


def ring(comm: Communicator, x: np.ndarray) -> np.ndarray:
    return comm.all_reduce(x, algorithm="ring")


def open_gate(comm: Communicator, workers: int, bound: int) -> None:
    left = workers
    while left:
        kind = comm.recv(ANY)[0]
        if kind == 3.0:
            left -= 1
        else:
            comm.send(np.zeros(0), comm.last_source)


def trained(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
    optimizer = optim.SGD(model.parameters(), lr=lr)
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(len(train_set))
        for start in range(0, len(order), batch_size):
            x, y = train_set[order[start : start + batch_size]]
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        validation_set.error(model)
    return test_set.error(model)


def not_written(*arguments: Any) -> None:
    raise NotImplementedError("write the body of this function")


def broken(*arguments: Any) -> None:
    raise KeyError("lr")


def stuck(comm: Communicator, *arguments: Any) -> None:
    comm.recv((comm.rank + 1) % comm.size)


def test_an_answer_is_drawn_and_described(shown, capsys):
    for module, answer, words in (
        (all_reduce_timeline, ring, "A rank sends at most 6 messages and 4.8 MB"),
        (gate_timeline, open_gate, "row 3 is the gate"),
        (training_picture, trained, "Test error of the final weights"),
    ):
        PICTURES[module](answer)
        assert isinstance(shown.pop(), Figure)
        assert shown == []
        assert words in capsys.readouterr().out


def test_an_answer_that_cannot_be_drawn_gets_a_line(shown, capsys):
    for module, answer, line in (
        *((module, not_written, "not written yet.\n") for module in PICTURES),
        *((module, broken, "KeyError: 'lr'") for module in PICTURES),
        (all_reduce_timeline, stuck, "deadlock: ranks 0, 1, 2 and 3 wait"),
        (training_picture, lambda *_: 0.0, "validation_set.error was never asked"),
    ):
        PICTURES[module](answer)
        out = capsys.readouterr().out
        assert out.startswith(f"Nothing to draw: {line}")
        assert out.count("\n") == 1
    assert shown == []


def test_without_a_notebook_no_picture_of_an_answer_is_drawn(capsys):
    for draw in PICTURES.values():
        draw(broken)
    assert capsys.readouterr().out == ""
