"""Arguments are checked in one way: what passes, what is refused, and what the message says."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidl import Tensor
from minidl.arguments import flag, one_of, real_number, whole_number

INTEGERS = [int, np.int8, np.int64, np.uint16]


def test_a_number_of_any_type_becomes_an_int_or_a_float() -> None:
    for kind in (*INTEGERS, np.array):
        result = whole_number("nodes", kind(3), at_least=1, at_most=3)
        assert (result, type(result)) == (3, int)
    for kind in (*INTEGERS, float, np.float16, np.float32, np.float64, Fraction):
        number = real_number("lr", kind(3), above=0)
        assert (number, type(number)) == (3.0, float)


@given(st.integers(), st.integers(), st.integers())
def test_a_whole_number_passes_exactly_if_it_is_within_its_bounds(value: int, low: int, high: int) -> None:
    if low <= value <= high:
        assert whole_number("n", value, low, high) == value
    else:
        with pytest.raises(ValueError, match=rf"^n must be from {low} to {high}, got {value}$"):
            whole_number("n", value, low, high)


def test_what_is_no_number_is_shown_with_its_type_and_what_to_write() -> None:
    for value, shown in (
        (2.0, r"2\.0 of type float: write 2"),
        (math.nan, r"nan of type float"),
        (True, r"True of type bool: write 1"),
        (np.True_, r"(np\.)?True_? of type bool_?"),
        ("2", r"'2' of type str: write 2"),
        (None, "None"),
        (np.array([2]), r"array\(\[2\]\) of type ndarray: take its number with \.item\(\)"),
        (Tensor(2.0), r"Tensor\(2\., float32\) of type Tensor: take its number with \.item\(\)"),
    ):
        with pytest.raises(TypeError, match=rf"^epochs must be a whole number of at least 1, got {shown}$"):
            whole_number("epochs", value, at_least=1)
    for value, shown in (
        ("0.1", r"'0\.1' of type str: write 0\.1"),
        (True, r"True of type bool: write 1\.0"),
        (1j, r"1j of type complex"),
        (np.array(0.5), r"array\(0\.5\) of type ndarray: take its number with \.item\(\)"),
    ):
        with pytest.raises(TypeError, match=rf"^lr must be a number above 0, got {shown}$"):
            real_number("lr", value, above=0)
    with pytest.raises(TypeError) as error:
        whole_number("n", np.ones((30, 30)))
    assert len(str(error.value)) < 130
    assert "\n" not in str(error.value)


@given(st.floats(allow_nan=False), *[st.floats(allow_nan=False, allow_infinity=False)] * 2)
def test_a_real_number_passes_exactly_if_it_is_within_its_bounds(value: float, low: float, high: float) -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"at_least": low, "at_most": high}, low <= value <= high),
        ({"above": low, "below": high}, low < value < high),
        ({"at_least": low}, low <= value < math.inf),
        ({"below": high}, -math.inf < value < high),
        ({}, math.isfinite(value)),
        ({"above": low, "at_most": math.inf}, low < value),
    ]
    for bounds, is_inside in cases:
        if is_inside:
            assert real_number("x", value, **bounds) == value
        else:
            with pytest.raises(ValueError, match=r"^x must be "):
                real_number("x", value, **bounds)


def test_the_bounds_of_a_number_are_named_but_infinity_and_a_hint_follows_where_there_is_no_nearer_advice() -> None:
    hint = {"hint": "None switches it off"}
    for value, bounds, message in (
        (-2, {"at_least": 0}, "at least 0, got -2"),
        (-2, {"above": 0}, "above 0, got -2"),
        (-2, {"at_least": 0, "below": 1}, "at least 0 and below 1, got -2"),
        (-2, {"above": 0, "at_most": 1}, "above 0 and at most 1, got -2"),
        (-2, {"at_least": 0, "at_most": 1}, "from 0 to 1, got -2"),
        (-1.0, {"above": 0, "at_most": math.inf, **hint}, "above 0, got -1.0: None switches it off"),
        (math.nan, {"above": 0, "at_most": math.inf, **hint}, "above 0, got nan: None switches it off"),
        ("off", {"above": 0, **hint}, "a number above 0, got 'off' of type str: None switches it off"),
        ("2", {"above": 0, **hint}, "a number above 0, got '2' of type str: write 2.0"),
        *((value, {"at_least": 0}, f"finite and at least 0, got {value}") for value in (math.nan, math.inf, -math.inf)),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^{re.escape(f'alpha must be {message}')}$"):
            real_number("alpha", value, **bounds)
    with pytest.raises(ValueError, match=r"^alpha must be finite"):
        real_number("alpha", 10**400)


@given(st.text(), st.lists(st.text(), min_size=1))
def test_one_of_some_choices_is_returned_and_anything_else_refused_with_all_of_them(
    value: str, choices: list[str]
) -> None:
    if value in choices:
        assert one_of("mode", value, choices) == value
    else:
        with pytest.raises(ValueError, match=r"^mode must be ") as error:
            one_of("mode", value, choices)
        assert all(repr(choice) in str(error.value) for choice in choices)


def test_the_message_lists_the_choices_and_suggests_the_nearest() -> None:
    for value, choices, error, message in (
        ("rings", ["ring", "tree", "auto"], ValueError, "'ring', 'tree' or 'auto', got 'rings': did you mean 'ring'?"),
        ("star", ["ring", "tree"], ValueError, "'ring' or 'tree', got 'star'"),
        ("star", {"ring": 1}, ValueError, "'ring', got 'star'"),
        (19, (18, 34), ValueError, "18 or 34, got 19"),
        (None, ["ring"], TypeError, "'ring', got None"),
        (["ring"], ["ring", "tree"], TypeError, "'ring' or 'tree', got ['ring'] of type list"),
        (Tensor(1.0), ["ring", None], TypeError, "'ring' or None, got Tensor(1., float32) of type Tensor"),
    ):
        with pytest.raises(error) as raised:
            one_of("algorithm", value, choices)
        assert str(raised.value) == f"algorithm must be {message}"
    assert one_of("start_method", None, ("spawn", None)) is None


def test_a_flag_is_true_or_false_and_nothing_that_only_counts_as_it() -> None:
    assert [flag("shuffle", value) for value in (True, False, np.True_, np.False_)] == [True, False, True, False]
    for value, shown in ((1, r"1 of type int"), ("False", r"'False' of type str"), (None, "None")):
        with pytest.raises(TypeError, match=f"^shuffle must be True or False, got {shown}$"):
            flag("shuffle", value)


def test_the_checks_need_only_the_standard_library() -> None:
    program = "import runpy, sys; runpy.run_path('minidl/arguments.py'); print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("1F1B", "1f1b"), ("sync", "synchronous"), ("Synchronos", "synchronous"), ("learning_rate", "lr"), ("q", None),
     ("s", None), ("xyz", None)],
)  # fmt: skip
def test_a_name_in_capitals_shortened_or_as_others_call_it_is_suggested(typed: str, meant: str | None) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{meant}'" if meant else f"got '{typed}'$"):
        one_of("name", typed, ("1f1b", "synchronous", "lr", "stale"))
