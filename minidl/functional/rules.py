"""How a row of the tables in `elementwise.py` becomes an operation on tensors.

A row has the operation's value, a function of arrays, and a *rule* for each operand: the gradient of the loss with
respect to that operand, given g, the gradient with respect to the result. A rule reads what its parameters name:

    x, y   the operands' arrays
    out    the operation's result

What the row's rules read must not be overwritten before backward. Everything else is the same for all rows, and is done
here: operands become tensors, rules are called only for gradients that are needed, and gradients of broadcast operands
are summed back to their shapes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from minidl.functional.bind import operand, unbroadcast
from minidl.functional.shape_errors import cannot_broadcast
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import rounded_once
from minidl.tape import OUTPUT, Vjp
from minidl.tensor import Tensor, record

Rule = Callable[..., Array]


PLACES = {"x": 0, "y": 1, "out": OUTPUT}
"""What a rule may read, and where `record` expects it among the saved values."""


def unary(name: str, value: Callable[[Array], Array], rule: Rule, doc: str) -> Callable[[Any], Tensor]:
    """An operation on one tensor; the rule reads x, out or neither."""
    reads = _read_by(rule)
    reads_out, saved = reads == ["out"], tuple(PLACES[name] for name in reads)
    wide = (value, rule)
    sixteen_bits = (rounded_once(value), rounded_once(rule))

    def operation(a: Any) -> Tensor:
        a = a if isinstance(a, Tensor) else operand(a)
        x = a._data
        compute, to_a = sixteen_bits if x.itemsize == 2 else wide
        out = compute(x)
        read = out if reads_out else x
        vjp: Vjp = (lambda g, needs: (to_a(g, read),)) if saved else lambda g, needs: (to_a(g),)
        return record(out, (a,), vjp, saved)

    return named(operation, name, doc, rule.__module__)


def binary(
    name: str, symbol: str, value: Callable[[Array, Array], Array], rule_a: Rule, rule_b: Rule, doc: str = ""
) -> Callable[[Any, Any], Tensor]:
    """An operation on two tensors, broadcast as in numpy; the rules read both x and y, or neither."""
    reads = _read_by(rule_a)
    assert reads == _read_by(rule_b), f"the two rules of {name} must have the same parameters"
    saved = tuple(PLACES[name] for name in reads)
    wide = (value, rule_a, rule_b)
    sixteen_bits = (rounded_once(value), *(rounded_once(rule) if saved else rule for rule in (rule_a, rule_b)))

    def operation(a: Any, b: Any) -> Tensor:
        if not isinstance(a, Tensor) or not a._data.ndim:
            a, b = operand(a, b), operand(b, a)
        elif not isinstance(b, Tensor) or not b._data.ndim:
            b = operand(b, a)
        x, y = a._data, b._data
        compute, to_a, to_b = sixteen_bits if x.itemsize == 2 else wide
        try:
            out = compute(x, y)
        except ValueError as error:
            raise cannot_broadcast(symbol, x, y) from error

        if saved:

            def vjp(g: Array, needs: Sequence[bool]) -> Sequence[Array]:
                return (
                    needs[0] and unbroadcast(to_a(g, x, y), x.shape, x.dtype),
                    needs[1] and unbroadcast(to_b(g, x, y), y.shape, y.dtype),
                )

        else:  # the operands are not kept
            shape_a, type_a, shape_b, type_b = x.shape, x.dtype, y.shape, y.dtype

            def vjp(g: Array, needs: Sequence[bool]) -> Sequence[Array]:
                return (
                    needs[0] and unbroadcast(to_a(g), shape_a, type_a),
                    needs[1] and unbroadcast(to_b(g), shape_b, type_b),
                )

        return record(out, (a, b), vjp, saved)

    return named(operation, name, doc or f"a {symbol} b, elementwise.", rule_a.__module__)


def _read_by(rule: Rule) -> list[str]:
    """The names of the rule's parameters after g."""
    return list(inspect.signature(rule).parameters)[1:]


def named(operation: Any, name: str, doc: str, module: str) -> Any:
    """The operation under its own name: in `help`, in pickles, in tracebacks and profiles."""
    assert isinstance(operation, FunctionType)
    operation.__name__ = operation.__qualname__ = name
    operation.__doc__, operation.__module__ = doc, module
    operation.__code__ = operation.__code__.replace(co_name=name, co_qualname=name)
    return operation
