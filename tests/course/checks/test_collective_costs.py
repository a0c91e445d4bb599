"""What is said of a wrong cost: the slip that gives it, and no other; whatever comes breaks no check."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from course.checks.messages_and_collectives import collective_costs
from course.checks.messages_and_collectives.collective_costs import ANY_NUMBER, POWERS_OF_TWO
from course.judging import Wrong
from course.sandbox.exchange.plain_data import Foreign

CASES = (*POWERS_OF_TWO, *ANY_NUMBER)
ODD = [
    None, "text", np.array("text"), math.nan, -math.inf, 10**5000, -(10**400), [1.0], np.ones(2), 1j, Foreign("Work"),
]  # fmt: skip


class Always:
    """An answer that returns one value, whatever it is given."""

    def __init__(self, value: Any) -> None:
        self.name = "ring_seconds"
        self.value = value

    def __call__(self, *arguments: Any) -> Any:
        return self.value


def wrong_seconds(value: Any, algorithm: str, case: collective_costs.Case) -> Wrong:
    with pytest.raises(Wrong) as raised:
        collective_costs.judge_seconds(Always(value), algorithm, case)
    return raised.value


@pytest.mark.filterwarnings("error")
def test_odd_return_values_are_wrong_and_crash_no_cost_check():
    for odd in ODD:
        for algorithm, case in product(("ring", "recursive_doubling"), CASES):
            wrong_seconds(odd, algorithm, case)
        for case in ((8, 50e-6, 8e-9, 0.0), (2, 50e-6, 8e-9, 0.0)):
            with pytest.raises(Wrong):
                collective_costs.judge_crossover(Always(odd), case)


def test_seconds_of_nine_digits_are_right_and_of_seven_are_not():
    for algorithm, case in product(("ring", "recursive_doubling"), CASES):
        want = collective_costs.seconds(algorithm, *case)
        for right in (want, want * (1 + 1e-12), np.array(want)):
            collective_costs.judge_seconds(Always(right), algorithm, case)
        if want:
            assert wrong_seconds(want * (1 + 1e-7), algorithm, case).cause == ""


def test_a_rounded_time_is_called_so_and_a_slip_is_not():
    case = (16, 64_000_000, 50e-6, 8e-9, 1e-9)
    want = collective_costs.seconds("ring", *case)
    assert wrong_seconds(round(want, 3), "ring", case).cause == "The time is not to be rounded."
    assert wrong_seconds(0.0, "ring", case).cause == ""
    assert wrong_seconds(1e3 * want, "ring", case).cause == "Seconds are asked, not milliseconds."


def test_a_rank_that_is_alone_and_an_empty_vector_have_causes_of_their_own():
    assert wrong_seconds(50e-6 + 4096 * 8e-9, "ring", (1, 4096, 50e-6, 8e-9, 0.0)).cause.startswith("A rank that is")
    for algorithm in ("ring", "recursive_doubling"):
        assert wrong_seconds(0.0, algorithm, (8, 0, 50e-6, 8e-9, 1e-9)).cause.startswith("An empty message takes")
