"""Operations made of rows: a value, and a rule for the gradient of each operand."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

from minidl import Tensor, gradcheck
from minidl import functional as F
from minidl.functional import elementwise
from minidl.functional.rules import binary, unary
from minidl.tape import OUTPUT, node_of

FUNCTIONS = [value for value in vars(elementwise).values() if inspect.isfunction(value)]
ROWS = [function for function in FUNCTIONS if function.__closure__ and not hasattr(function, "__wrapped__")]


def leaf(*values: float) -> Tensor:
    return Tensor(np.array(values), requires_grad=True)


def test_an_operation_of_the_table_goes_by_its_own_name() -> None:
    for row in ROWS:
        assert pickle.loads(pickle.dumps(row)) is row
        assert row.__code__.co_name == row.__name__  # what tracebacks and profiles show
        assert row.__doc__


def test_the_parameters_of_a_rule_say_what_must_not_be_overwritten() -> None:
    x, y = leaf(1.0), leaf(2.0)
    saved = {"add": (), "sub": (), "mul": (0, 1), "div": (0, 1)}
    assert {name: node_of(getattr(F, name)(x, y))._saved for name in saved} == saved
    saved = {"neg": (), "log": (0,), "relu": (OUTPUT,)}
    assert {name: node_of(getattr(F, name)(x))._saved for name in saved} == saved


def test_a_rule_is_called_only_for_a_gradient_that_is_needed() -> None:
    called: list[str] = []

    def noted(name: str, gradient: np.ndarray) -> np.ndarray:
        called.append(name)
        return gradient

    times = binary(
        "times", "*", lambda x, y: x * y, lambda g, x, y: noted("a", g * y), lambda g, x, y: noted("b", g * x)
    )
    times(leaf(2.0), Tensor([3.0])).backward()
    times(Tensor([2.0]), leaf(3.0)).backward()
    assert called == ["a", "b"]


def test_a_new_row_is_an_operation_whose_gradient_is_summed_where_its_operand_was_repeated() -> None:
    cube = unary("cube", lambda x: x**3, lambda g, x: g * 3 * x**2, "a**3.")
    assert gradcheck(cube, [np.array([1.0, -2.0])])
    assert (cube.__name__, cube.__doc__) == ("cube", "a**3.")
    times = binary("times", "*", lambda x, y: x * y, lambda g, x, y: g * y, lambda g, x, y: g * x)
    assert gradcheck(times, [np.array([[1.0], [2.0]]), np.array([3.0, 4.0, 5.0])])


def test_two_rules_that_read_different_arrays_are_refused() -> None:
    with pytest.raises(AssertionError, match="the two rules of times must have the same parameters"):
        binary("times", "*", lambda x, y: x * y, lambda g, y: g * y, lambda g, x: g * x)
