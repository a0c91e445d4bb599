"""Arguments are checked in one way: what passes, what is refused, and what the message says."""

from __future__ import annotations

import math
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

INTEGERS = [int, np.int8, np.int64, np.uint16, np.array]
FLOATS = [float, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("kind", INTEGERS)
def test_a_whole_number_of_any_integer_type_becomes_an_int(kind: Any) -> None:
    result = whole_number("nodes", kind(3), at_least=1, at_most=3)
    assert (result, type(result)) == (3, int)


@given(st.integers(), st.integers(), st.integers())
def test_a_whole_number_passes_exactly_if_it_is_within_its_bounds(value: int, low: int, high: int) -> None:
    if low <= value <= high:
        assert whole_number("n", value, low, high) == value
    else:
        with pytest.raises(ValueError, match=rf"^n must be from {low} to {high}, got {value}$"):
            whole_number("n", value, low, high)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2.0, r"2\.0 of type float: write 2"),
        (np.float32(2), r"2\.0 of type float32: write 2"),
        (2.5, r"2\.5 of type float"),
        (0.0, r"0\.0 of type float"),
        (math.nan, r"nan of type float"),
        (math.inf, r"inf of type float"),
        (True, r"True of type bool: write 1"),
        (False, r"False of type bool"),
        (np.True_, r"(np\.)?True_? of type bool_?"),
        (np.array(True), r"array\(True\) of type ndarray"),
        ("2", r"'2' of type str: write 2"),
        ("two", r"'two' of type str"),
        (None, "None"),
        ([2], r"\[2\] of type list"),
        (np.array([2]), r"array\(\[2\]\) of type ndarray: take its number with \.item\(\)"),
        (np.arange(3), r"array\(\[0, 1, 2\]\) of type ndarray"),
        (Tensor(2.0), r"Tensor\(2\., float32\) of type Tensor: take its number with \.item\(\)"),
    ],
)
def test_what_is_no_whole_number_is_shown_with_its_type_and_what_to_write(value: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=rf"^epochs must be a whole number of at least 1, got {shown}$"):
        whole_number("epochs", value, at_least=1)


@pytest.mark.parametrize("kind", [*INTEGERS[:4], *FLOATS, Fraction])
def test_a_real_number_of_any_type_becomes_a_float(kind: Any) -> None:
    result = real_number("lr", kind(3), above=0)
    assert (result, type(result)) == (3.0, float)


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


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"at_least": 0}, "at least 0"),
        ({"above": 0}, "above 0"),
        ({"at_least": 0, "below": 1}, "at least 0 and below 1"),
        ({"above": 0, "at_most": 1}, "above 0 and at most 1"),
        ({"at_least": 0, "at_most": 1}, "from 0 to 1"),
    ],
)
def test_the_bounds_of_a_number_are_named(bounds: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=f"^alpha must be {expected}, got -2$"):
        real_number("alpha", -2, **bounds)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), 10**400])
def test_nan_and_infinity_are_refused_by_name(value: float) -> None:
    with pytest.raises(ValueError, match=r"^lr must be finite and at least 0, got"):
        real_number("lr", value, at_least=0)


def test_an_infinity_that_is_an_included_bound_is_allowed() -> None:
    assert real_number("flops", math.inf, above=0, at_most=math.inf) == math.inf


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("0.1", r"'0\.1' of type str: write 0\.1"),
        ("fast", r"'fast' of type str"),
        ("nan", r"'nan' of type str"),
        (True, r"True of type bool: write 1\.0"),
        (None, "None"),
        (1j, r"1j of type complex"),
        (np.array(0.5), r"array\(0\.5\) of type ndarray: take its number with \.item\(\)"),
    ],
)
def test_what_is_no_number_is_shown_with_its_type_and_what_to_write(value: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=rf"^lr must be a number above 0, got {shown}$"):
        real_number("lr", value, above=0)


def test_a_hint_is_given_where_there_is_no_nearer_advice() -> None:
    hint = "None switches clipping off"
    for value, end in ((-1, hint), ("off", hint), ("2", "write 2.0")):
        with pytest.raises((TypeError, ValueError), match=f": {end}$"):
            real_number("clip_norm", value, above=0, hint=hint)


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


@pytest.mark.parametrize(
    ("value", "choices", "error", "message"),
    [
        ("rings", ["ring", "tree", "auto"], ValueError, "'ring', 'tree' or 'auto', got 'rings': did you mean 'ring'?"),
        ("star", ["ring", "tree"], ValueError, "'ring' or 'tree', got 'star'"),
        ("star", {"ring": 1}, ValueError, "'ring', got 'star'"),
        (19, (18, 34), ValueError, "18 or 34, got 19"),
        (None, ["ring"], TypeError, "'ring', got None"),
        (["ring"], ["ring", "tree"], TypeError, "'ring' or 'tree', got ['ring'] of type list"),
        (np.ones(1), ["ring"], TypeError, "'ring', got array([1.]) of type ndarray"),
        (Tensor(1.0), ["ring", None], TypeError, "'ring' or None, got Tensor(1., float32) of type Tensor"),
    ],
)
def test_the_message_lists_the_choices_and_suggests_the_nearest(
    value: Any, choices: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        one_of("algorithm", value, choices)
    assert str(raised.value) == f"algorithm must be {message}"


def test_none_may_be_a_choice() -> None:
    assert one_of("start_method", None, ("spawn", None)) is None


def test_a_flag_is_true_or_false_and_nothing_that_only_counts_as_it() -> None:
    assert [flag("shuffle", value) for value in (True, False, np.True_, np.False_)] == [True, False, True, False]
    for value, shown in ((1, r"1 of type int"), ("False", r"'False' of type str"), (None, "None")):
        with pytest.raises(TypeError, match=f"^shuffle must be True or False, got {shown}$"):
            flag("shuffle", value)


def test_a_long_value_is_shortened_to_one_line() -> None:
    with pytest.raises(TypeError) as error:
        whole_number("n", np.ones((30, 30)))
    assert len(str(error.value)) < 130
    assert "\n" not in str(error.value)


def test_the_checks_need_only_the_standard_library() -> None:
    program = "import runpy, sys; runpy.run_path('minidl/arguments.py'); print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_a_bound_of_infinity_is_not_named(value: float) -> None:
    with pytest.raises(ValueError, match=rf"^timeout must be above 0, got {value}: give seconds$"):
        real_number("timeout", value, above=0, at_most=math.inf, hint="give seconds")
