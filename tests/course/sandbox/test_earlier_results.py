"""What an answer returned, and its arguments, are the caller's."""

from __future__ import annotations

import numpy as np

from course.sandbox.exchange.earlier_results import EarlierResults


def test_a_call_that_overwrites_an_earlier_result_is_noticed_once() -> None:
    results, buffer = EarlierResults(), np.zeros(3)
    assert results.harm([buffer, {"other": np.ones(2)}], ()) == ""
    assert results.harm(np.ones(4), ()) == ""
    buffer[1] = 7.0
    assert results.harm(buffer, ()) == "overwritten"
    assert results.harm(buffer, ()) == ""


def test_an_argument_that_a_call_makes_read_only_is_noticed() -> None:
    argument = np.zeros(3)
    assert EarlierResults().harm(None, ([argument], 2)) == ""
    argument.flags.writeable = False
    assert EarlierResults().harm(None, ([argument], 2)) == "locked"
