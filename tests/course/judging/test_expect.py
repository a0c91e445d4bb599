"""A comparison that fails says what was called, what was expected, what came, where it differs, and why perhaps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from course.judging import Wrong, expect
from course.sandbox.exchange.plain_data import Foreign


def wrong(compare: Callable[..., None], *arguments: object, **options: object) -> Wrong:
    with pytest.raises(Wrong) as raised:
        compare(*arguments, **options)
    return raised.value


def test_arrays_equal_up_to_rounding_pass() -> None:
    expect.array(np.array([1.0, 2.0]), [1.0 + 1e-9, 2.0], "f(x)")
    expect.array(np.zeros((0, 3)), np.zeros((0, 3)), "f(x)")
    expect.array(np.array([1, 2]), np.array([1.0, 2.0]), "f(x)")


def test_the_first_difference_is_reported() -> None:
    error = wrong(expect.array, np.array([[1.0, 5.0], [3.0, 7.0]]), [[1.0, 2.0], [3.0, 4.0]], "f(x) on rank 1")
    assert error.message == "f(x) on rank 1: expected 2 at [0, 1], got 5 (the first of 2 of 4 that differ)."


def test_infinity_equals_infinity_alone_and_nan_equals_no_number() -> None:
    for bad in (math.nan, math.inf, -math.inf):
        assert "got " in wrong(expect.array, np.array([bad, 1.0]), [1.0, 1.0], "f(x)").message
        wrong(expect.number, bad, 1.0, "f(x)")
    expect.number(math.inf, math.inf, "crossover")
    expect.array(np.array([math.inf, 1.0]), [math.inf, 1.0], "f(x)")
    wrong(expect.number, -math.inf, math.inf, "crossover")
    wrong(expect.number, 1.0, math.inf, "crossover")


def test_a_wrong_shape_type_or_none_is_reported() -> None:
    assert "shape (2,), got shape (2, 1)" in wrong(expect.array, np.ones((2, 1)), [1.0, 1.0], "f(x)").message
    none = wrong(expect.array, None, [1.0], "f(x)")
    assert none.message == "f(x): expected an array of shape (1,), got None."
    assert none.cause == expect.FORGOTTEN_RETURN
    assert "got a list of 2" in wrong(expect.array, [[1.0], 2.0], [1.0, 2.0], "f(x)").message
    assert "got a Tensor" in wrong(expect.array, Foreign("Tensor"), [1.0], "f(x)").message
    assert "got 'one'" in wrong(expect.number, "one", 1.0, "f(x)").message
    assert "array of shape (1,)" in wrong(expect.number, np.ones(1), 1.0, "f(x)").message


def test_a_list_of_the_right_numbers_is_an_array() -> None:
    expect.array([1, 2.5], [1.0, 2.5], "f(x)")
    expect.array([[1.0], [2.0]], [[1.0], [2.0]], "f(x)")
    expect.array([1.0, 2.0], [1.0, 2.0], "f(x)", dtype=np.float64)
    expect.array([], np.ones((0, 2)), "f(x)")
    assert "float64" in wrong(expect.array, [1.0, 2.0], [1.0, 2.0], "f(x)", dtype=np.float32).message
    assert "got shape (0,)" in wrong(expect.array, [], [1.0], "f(x)").message
    assert "got a list of 1" in wrong(expect.array, [10**400], [1.0], "f(x)").message


def test_complex_numbers_are_no_real_ones() -> None:
    for compare, got, want in ((expect.array, np.ones(2) + 0j, [1.0, 1.0]), (expect.number, 1 + 0j, 1.0)):
        assert "got complex numbers" in wrong(compare, got, want, "f(x)").message


def test_a_result_of_float32_or_of_six_digits_is_not_that_of_float64() -> None:
    want = np.array([math.pi, -1 / 3, 2e-7])
    for got in (
        want.astype(np.float32).astype(float),
        np.array([3.14159, -0.333333, 2e-7]),
        np.where(abs(want) < 1e-6, 0, want),
    ):
        wrong(expect.array, got, want, "f(x)")
    wrong(expect.number, 3.14159, math.pi, "f(x)")


def test_a_result_that_is_no_value_gets_a_likely_cause() -> None:
    for name, word in (("generator", "yield"), ("coroutine", "async"), ("function", "brackets")):
        for compare, want in ((expect.array, [1.0]), (expect.number, 1.0), (expect.same, 1)):
            assert word in wrong(compare, Foreign(name), want, "f(x)").cause


def test_a_list_or_a_tuple_of_the_asked_length_is_a_list_and_nothing_else_is() -> None:
    assert expect.listed((1, 2), "f(x)", "a pair", 2) == expect.listed([1, 2], "f(x)", "numbers") == [1, 2]
    assert wrong(expect.listed, [1], "f(x)", "a pair", 2).message == "f(x): expected a pair, got [1]."
    assert wrong(expect.listed, None, "f(x)", "a pair", 2).cause == expect.FORGOTTEN_RETURN


def test_a_known_mistake_is_named() -> None:
    mistakes = {"the sum, not the mean": 6.0, "divided twice": 0.5}
    assert wrong(expect.number, 6.0, 2.0, "f(x)", mistakes=mistakes).cause == "the sum, not the mean"
    assert wrong(expect.number, 7.0, 2.0, "f(x)", mistakes=mistakes).cause == ""
    arrays = {"transposed": np.array([[1.0, 3.0], [2.0, 4.0]]), "of another shape": np.ones(4)}
    assert (
        wrong(expect.array, arrays["transposed"], arrays["transposed"].T, "f(x)", mistakes=arrays).cause == "transposed"
    )
    assert wrong(expect.array, np.ones(4), np.zeros((2, 2)), "f(x)", mistakes=arrays).cause == "of another shape"
    assert wrong(expect.same, 3, 2, "messages", mistakes={"one too many": 3}).cause == "one too many"


def test_same_asks_for_the_same_type() -> None:
    expect.same([1, (2, "x")], [1, (2, "x")], "f()")
    for got, want in ((True, 1), (1, True), (1.0, 1), ((1,), [1]), ("1", 1)):
        assert "expected" in wrong(expect.same, got, want, "f()").message
    assert wrong(expect.same, np.ones(3), [1, 1, 1], "f()").message.startswith("f(): expected [1, 1, 1], got [1.")
    assert "got" in wrong(expect.same, [np.ones(2)], [1], "f()").message


def test_values_that_look_alike_are_shown_with_all_digits() -> None:
    with pytest.raises(Wrong, match=r"expected 186046.51162790696, got 186047\.0"):
        expect.number(186047.0, 186046.51162790696, "f()", rtol=1e-9)


def test_long_values_are_shortened() -> None:
    assert len(wrong(expect.same, list(range(1000)), [1], "f()").message) < 300
    assert "shape (1000,)" in wrong(expect.same, np.ones(1000), 1, "f()").message


def test_integer_arrays_are_compared_as_numbers() -> None:
    wrong(expect.array, np.array([200], dtype=np.uint8), [-56], "f(x)")


def test_a_copy_is_the_same_to_the_bit() -> None:
    numbers = np.array([-0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7e308, 1 / 3])
    expect.same_bits(numbers.copy(), numbers, "f(x)")
    for place, other in ((0, 0.0), (1, 0.0), (2, 1.7e308), (3, math.inf), (4, 0.0), (5, math.inf), (6, 0.3333333333)):
        changed = numbers.copy()
        changed[place] = other
        assert f"at [{place}]" in wrong(expect.same_bits, changed, numbers, "f(x)").message
    short = wrong(expect.same_bits, numbers[:1].astype(np.float32), numbers[:1], "f(x)")
    assert short.message == "f(x): expected an array of float64, got one of float32."
    expect.same_bits(np.zeros(0, dtype=int), np.zeros(0), "f(x)")


def test_the_type_of_the_elements_counts_where_it_is_asked() -> None:
    expect.array(np.ones(2, dtype=np.float32), [1.0, 1.0], "f(x)")
    for other in (np.float32, int):
        error = wrong(expect.array, np.ones(2, dtype=other), [1.0, 1.0], "f(x)", dtype=np.float64)
        assert error.message.startswith("f(x): expected an array of float64, got one of ")
    expect.array(np.ones(2, dtype=">f8"), [1.0, 1.0], "f(x)", dtype=np.float64)


def test_the_tolerance_may_be_one_for_each_element() -> None:
    want, tolerance = np.array([1.0, 1.0]), np.array([1e-3, 0.0])
    expect.array(want + tolerance, want, "f(x)", rtol=0.0, atol=tolerance)
    assert "at [1]" in wrong(expect.array, want + tolerance[::-1], want, "f(x)", rtol=0.0, atol=tolerance).message


def test_an_array_without_elements_is_no_known_mistake() -> None:
    assert (
        wrong(expect.array, np.zeros(0), np.ones(3), "f(x)", mistakes={"the chunk of rank 4": np.zeros(0)}).cause == ""
    )


def test_a_number_of_very_many_digits_is_described_by_its_length() -> None:
    for huge in (10**400, 10**5000, -(10**5000), [10**5000], {"a": (10**5000,)}):
        for compare, want in ((expect.array, [1.0]), (expect.number, 1.0), (expect.same, 1)):
            assert len(wrong(compare, huge, want, "f(x)").message) < 200
