"""From `comm.send` and `comm.recv` to the engine: every function call on the way is one more that a reader follows."""

import os
import sys
from typing import Any

import numpy as np
import pytest

import minidl
from minidl import cluster

MOST = 20
PACKAGE = os.path.dirname(minidl.__file__) + os.sep


def calls_of(function: Any) -> list[str]:
    """The functions of minidl that a call of this function goes through."""
    calls: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.timeout(300)
def test_a_message_of_ten_floats_goes_through_at_most_twenty_functions_on_each_side() -> None:
    def program(comm: Any) -> list[str]:
        x, calls = np.arange(10.0), list[str]()
        for _ in range(2):  # what is cached takes part in the first message only
            if comm.rank == 0:
                calls = calls_of(lambda: comm.send(x, 1))
                comm.recv(1)  # blocked, and not seen by the other rank's profile
            else:
                calls = calls_of(lambda: comm.recv(0))
                comm.send(x, 0)
        return calls

    sent, received = cluster.launch(program, nodes=2, on="simulation").results
    assert 0 < len(sent) <= MOST, sent
    assert 0 < len(received) <= MOST, received
