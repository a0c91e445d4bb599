"""The picture of a student's own gate never fails: it is drawn, or a line says why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from course.checks.asynchrony import gate_timeline
from course.checks.asynchrony.gate_timeline import timeline
from minidl.cluster import ANY, Communicator

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was displayed, as if in a notebook."""
    things: list[Any] = []
    monkeypatch.setattr(gate_timeline, "in_notebook", lambda: True)
    monkeypatch.setattr(gate_timeline, "display", things.append)
    return things


def open_gate(comm: Communicator, workers: int, bound: int) -> None:
    left = workers
    while left:
        kind = comm.recv(ANY)[0]
        if kind == 3.0:
            left -= 1
        else:
            comm.send(np.zeros(0), comm.last_source)


def not_written(comm: Communicator, workers: int, bound: int) -> None:
    raise NotImplementedError("write the body of this function")


def stuck(comm: Communicator, workers: int, bound: int) -> None:
    comm.recv(0)
    comm.recv(0)


def test_a_gate_is_drawn_and_described(shown, capsys):
    timeline(open_gate, bounds=(0, 2))
    assert len(shown) == 1
    assert isinstance(shown[0], Figure)
    assert "row 3 is the gate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (not_written, "Nothing to draw: not written yet.\n"),
        (stuck, "Nothing to draw: deadlock: ranks 0, 1, 2 and 3 wait"),
    ],
)
def test_a_gate_that_cannot_be_drawn_gets_a_line(function, line, shown, capsys):
    timeline(function)
    assert shown == []
    out = capsys.readouterr().out
    assert out.startswith(line)
    assert out.count("\n") == 1


def test_nothing_is_done_where_nobody_looks(capsys):
    timeline(stuck)
    assert capsys.readouterr().out == ""
