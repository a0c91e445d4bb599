"""The picture of a student's own all-reduce never fails: it is drawn, or a line says why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from course.checks.messages_and_collectives import all_reduce_timeline
from course.checks.messages_and_collectives.all_reduce_timeline import timeline
from minidl.cluster import Communicator

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was displayed, as if in a notebook."""
    things: list[Any] = []
    monkeypatch.setattr(all_reduce_timeline, "in_notebook", lambda: True)
    monkeypatch.setattr(all_reduce_timeline, "display", things.append)
    return things


def ring(comm: Communicator, x: np.ndarray) -> np.ndarray:
    return comm.all_reduce(x, algorithm="ring")


def not_written(comm: Communicator, x: np.ndarray) -> None:
    raise NotImplementedError("write the body of this function")


def wrong(comm: Communicator, x: np.ndarray) -> None:
    comm.send(x, comm.size)


def stuck(comm: Communicator, x: np.ndarray) -> None:
    comm.recv((comm.rank + 1) % comm.size)


def test_an_all_reduce_is_drawn_and_described(shown, capsys):
    timeline(ring, p=4, n=1000)
    assert len(shown) == 1
    assert isinstance(shown[0], Figure)
    assert "A rank sends at most 6 messages and 0.012 MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (not_written, "Nothing to draw: not written yet.\n"),
        (wrong, "Nothing to draw: ValueError"),
        (stuck, "Nothing to draw: deadlock: ranks 0, 1, 2 and 3 wait"),
    ],
)
def test_an_all_reduce_that_cannot_be_drawn_gets_a_line(function, line, shown, capsys):
    timeline(function)
    assert shown == []
    out = capsys.readouterr().out
    assert out.startswith(line)
    assert out.count("\n") == 1


def test_nothing_is_done_where_nobody_looks(capsys):
    timeline(wrong)
    assert capsys.readouterr().out == ""
