"""The table of all operations: a line for each operation and case.

One table serves all: numerical gradients, PyTorch, the array module that is not numpy's, hooks, writes in place. A case
calls `function(F, *operands)`, where F is `minidl.functional`, or PyTorch dressed as it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

# ---- operands: recipes, so that every test draws its own arrays ----


@dataclass(frozen=True)
class Operand:
    """How to draw an operand, and whether it requires a gradient."""

    draw: Callable[[np.random.Generator], Any]
    differentiable: bool = True


def normal(*shape: int) -> Operand:
    return Operand(lambda random: random.standard_normal(shape))


def positive(*shape: int) -> Operand:
    return Operand(lambda random: random.uniform(0.5, 2.0, shape))


def apart(*shape: int) -> Operand:
    """No two within 0.1 of each other, none within 0.05 of zero: where a kink could disturb finite differences."""

    def make(random: np.random.Generator) -> Any:
        size = int(np.prod(shape))
        return (random.permutation(size).reshape(shape) - size // 2 + 0.5) * 0.1

    return Operand(make)


def tied(*shape: int) -> Operand:
    """Few different values, so that many are equal."""
    return Operand(lambda random: np.asarray(random.integers(0, 3, shape), dtype=float))


def constant(*values: float) -> Operand:
    return Operand(lambda random: np.array(values, dtype=float), differentiable=False)


def integers(high: int, *shape: int) -> Operand:
    return Operand(lambda random: random.integers(0, high, shape), differentiable=False)


def probabilities(*shape: int) -> Operand:
    """Some of them are 0; they are not differentiated."""
    return Operand(lambda random: np.maximum(random.uniform(-0.2, 1.0, shape), 0), differentiable=False)


def booleans(*shape: int) -> Operand:
    return Operand(lambda random: random.random(shape) < 0.5, differentiable=False)


# ---- layouts in memory: the same numbers, elsewhere ----


def contiguous(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(array.shape)


def transposed(array: np.ndarray) -> np.ndarray:
    return array.T.copy().T


def strided(array: np.ndarray) -> np.ndarray:
    gaps = np.zeros([2 * n + 1 for n in array.shape], array.dtype)[(..., *[slice(1, None, 2)] * array.ndim)]
    gaps[...] = array
    return gaps


def reversed_(array: np.ndarray) -> np.ndarray:
    backwards = (..., *[slice(None, None, -1)] * array.ndim)
    return array[backwards].copy()[backwards]


LAYOUTS = {"contiguous": contiguous, "transposed": transposed, "strided": strided, "reversed": reversed_}


# ---- the cases ----


@dataclass(frozen=True)
class Case:
    """An operation on operands. smooth: finite differences apply. peer: PyTorch has it, and means the same."""

    operation: str
    what: str
    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    smooth: bool = True
    peer: bool = True

    def arrays(self, dtype: str = "float64", layout: Callable[[np.ndarray], np.ndarray] = contiguous) -> list[Any]:
        """The operands; the same numbers for every layout. Integers and booleans keep their type."""
        random = np.random.default_rng(zlib.crc32(repr(self).encode()))
        drawn = [np.asarray(operand.draw(random)) for operand in self.operands]
        return [layout(array.astype(dtype) if array.dtype.kind == "f" else array) for array in drawn]

    @property
    def differentiable(self) -> list[bool]:
        return [operand.differentiable for operand in self.operands]

    def __repr__(self) -> str:
        return f"{self.operation}: {self.what}"


CASES: list[Case] = []


def of_each_operation(cases: list[Case]) -> list[Any]:
    """A parameter for each operation: all its cases, which one test goes through."""
    of_operation: dict[str, list[Case]] = {}
    for one in cases:
        of_operation.setdefault(one.operation, []).append(one)
    return [pytest.param(group, id=operation) for operation, group in of_operation.items()]


def three_of_each_operation() -> list[Case]:
    """The first, the middle and the last case of each operation.

    That every case has the right gradient is what differs from case to case. Rules that all operations follow for the
    same reason, such as layouts and types, are shown for three.
    """
    kept = (parameter.values[0] for parameter in of_each_operation(CASES))
    return [cases[place] for cases in kept for place in sorted({0, len(cases) // 2, len(cases) - 1})]


def sweep(function: Callable[..., None]) -> Any:
    """Parametrize a test of all operations: three cases of each with compiled kernels, every case with the others."""
    cases = [pytest.param("numba", three_of_each_operation, id="three of each, numba")]
    cases.append(pytest.param("numpy", lambda: CASES, id="all, numpy", marks=pytest.mark.exhaustive))
    return pytest.mark.parametrize(("kernel", "cases"), cases)(function)


def calling(name: str, *after: Any, **settings: Any) -> Callable[..., Any]:
    """The operation of this name, with these arguments after the operands."""
    return lambda F, *operands: getattr(F, name)(*operands, *after, **settings)


def case(operation: str, what: str, function: Callable[..., Any], *operands: Operand, **kind: bool) -> None:
    CASES.append(Case(operation, what, function, operands, **kind))


# arithmetic: broadcasting, 0-d, empty, and Python numbers on either side
for operation in ("add", "sub", "mul", "div"):
    for what, first, second in (
        ("equal shapes", (3, 4), (3, 4)),
        ("a row", (3, 4), (4,)),
        ("a column and a row", (3, 1), (1, 4)),
        ("more axes on the right", (4,), (2, 3, 4)),
        ("a 0-d on the left", (), (3, 4)),
        ("both 0-d", (), ()),
        ("empty", (0, 3), (3,)),
        ("empty by broadcasting", (0, 1), (1, 3)),
    ):
        case(operation, what, calling(operation), normal(*first), positive(*second))
case("sub", "number on the left", lambda F, a: 2.5 - a, normal(3, 4))
case("mul", "number on the left", lambda F, a: 0.5 * a, normal(3, 4))
case("div", "number on the left", lambda F, a: 3 / a, positive(3, 4))
for mode in ("floor", "trunc"):
    rounded: Callable[..., Any] = lambda F, a, b, mode=mode: F.div(a, b, rounding_mode=mode)  # noqa: E731
    case("div", f"rounding_mode={mode}, broadcast", rounded, apart(3, 4), constant(0.7, -0.3, 1.1, -0.13))
    whole: Callable[..., Any] = lambda F, a, i, mode=mode: a * (i - 3).div(2, rounding_mode=mode).to(a.dtype)  # noqa: E731
    case("div", f"rounding_mode={mode}, integers", whole, normal(3, 4), integers(7, 3, 4))
case("neg", "matrix", lambda F, a: -a, normal(3, 4))
case("abs", "matrix", lambda F, a: F.abs(a), apart(3, 4))
case("abs", "at 0 the derivative is 0", lambda F, a: abs(a), tied(3, 4), smooth=False)
case("pow", "exponent 0 at 0", lambda F, a: a**0, tied(3, 4), smooth=False)
case("pow", "square at 0", lambda F, a: a**2, tied(3, 4))
for exponent in (3, 7, -2, 5.0):
    case("pow", f"negative numbers to the power {exponent}", lambda F, a, e=exponent: a**e, apart(3, 4))
for exponent in (0.5, -0.5, -2.5):
    case("pow", f"positive numbers to the power {exponent}", lambda F, a, e=exponent: a**e, positive(3, 4))
case("pow", "two tensors, broadcast", lambda F, a, b: F.pow(a, b), positive(3, 1), normal(4))
case("pow", "number on the left", lambda F, b: 2.5**b, normal(3, 4))
case("pow", "integral exponents of negative numbers", lambda F, a, b: a**b, normal(4, 3), constant(1, 2, 3))
case("pow", "exponents and bases that may be 0", lambda F, a, b: a**b, tied(6, 6), tied(6, 6), smooth=False)
case("matmul", "matrices", lambda F, a, b: a @ b, normal(3, 4), normal(4, 2))
case("matmul", "matrix and vector", lambda F, a, b: a @ b, normal(3, 4), normal(4))
case("matmul", "vector and matrix", lambda F, a, b: a @ b, normal(3), normal(3, 4))
case("matmul", "vectors", lambda F, a, b: a @ b, normal(4), normal(4))
case("matmul", "batches", lambda F, a, b: F.matmul(a, b), normal(5, 3, 4), normal(5, 4, 2))
case("matmul", "batches broadcast", lambda F, a, b: a @ b, normal(2, 1, 3, 4), normal(5, 4, 2))
case("matmul", "batch and vector", lambda F, a, b: a @ b, normal(2, 5, 3, 4), normal(4))
case("matmul", "no rows", lambda F, a, b: a @ b, normal(0, 4), normal(4, 2))
case("matmul", "nothing to sum", lambda F, a, b: a @ b, normal(3, 0), normal(0, 2))

# elementwise functions
ELEMENTWISE = "exp tanh sigmoid relu gelu softplus logsigmoid log sqrt sin cos square"
for operation in ELEMENTWISE.split():
    maker = {"log": positive, "sqrt": positive, "relu": apart}.get(operation, normal)
    for what, shape in (("matrix", (3, 4)), ("0-d", ()), ("empty", (0, 3))):
        case(operation, what, calling(operation), maker(*shape))
case("gelu", "by tanh", calling("gelu", approximate="tanh"), normal(3, 4))
case("relu", "at 0 the derivative is 0", lambda F, a: F.relu(a - 1), tied(3, 4), smooth=False)
case("sigmoid", "far out", lambda F, a: (a * 1000).sigmoid(), normal(3, 4), smooth=False)
case("softplus", "far out", lambda F, a: F.softplus(a * 1000), normal(3, 4), smooth=False)
case("softplus", "steeper", lambda F, a: F.softplus(a, 3.0), normal(3, 4))
case("logsigmoid", "far out", lambda F, a: F.logsigmoid(a * 1000), normal(3, 4), smooth=False)

# reductions
for operation, maker in (("sum", normal), ("mean", normal), ("max", apart), ("min", apart)):
    for what, shape, axis in (
        ("all axes", (3, 4), None),
        ("first axis", (3, 4), 0),
        ("last axis", (2, 3, 4), -1),
        ("middle axis", (2, 3, 4), 1),
        ("two axes", (2, 3, 4), (0, 2)),
        ("negative axes, out of order", (2, 3, 4), (-1, -3)),
        ("0-d", (), None),
    ):
        for kept in ("", ", kept"):
            case(operation, what + kept, calling(operation, axis=axis, keepdims=bool(kept)), maker(*shape))
    case(operation, "no rows", calling(operation, axis=1), maker(0, 4))
    case(operation, "no axes", calling(operation, axis=()), maker(3, 4), peer=False)
case("sum", "nothing", lambda F, a: F.sum(a, 0), normal(0, 4))
case("max", "ties share the gradient", lambda F, a: F.max(a), tied(3, 4), smooth=False)
case("max", "ties along an axis", lambda F, a: F.max(a, axis=-1), tied(5, 6), smooth=False)
case("max", "ties over two axes, kept", lambda F, a: F.max(a, axis=(0, 2), keepdims=True), tied(3, 4, 5), smooth=False)

# moving numbers about
case("reshape", "-1", lambda F, a: F.reshape(a, -1), normal(3, 4))
case("reshape", "to 0-d", lambda F, a: a.reshape(()), normal(1, 1))
case("reshape", "empty", lambda F, a: a.reshape(3, 0), normal(0, 2))
case("transpose", "matrix", lambda F, a: F.transpose(a), normal(3, 4))
case("transpose", "two axes exchanged", lambda F, a: a.transpose(1, 2), normal(2, 3, 4))
case("transpose", "permutation in a tuple, negative", lambda F, a: F.transpose(a, (-1, 0, 1)), normal(2, 3, 4))
case("getitem", "row", lambda F, a: a[1], normal(3, 4))
case("getitem", "slices", lambda F, a: a[1:3, ::2], normal(4, 5))
case("getitem", "backwards", lambda F, a: a[::-1, 3:0:-2], normal(4, 5), peer=False)
case("getitem", "ellipsis and a new axis", lambda F, a: a[..., None, 1], normal(2, 3, 4))
case("getitem", "nothing", lambda F, a: a[2:2], normal(3, 4))
case("getitem", "a list, elements repeated", lambda F, a: a[[0, 2, 0, 0]], normal(3, 4))
case("getitem", "a tensor of integers", lambda F, a, i: a[i], normal(3, 4), integers(3, 2, 5))
case("getitem", "lists about a slice", lambda F, a: a[[0, 1], :, [1, 1]], normal(2, 3, 4))
case("getitem", "pairs, repeated", lambda F, a: a[[[0], [2]], [1, 1, -1]], normal(3, 4, 2))
case("getitem", "a list after a slice and before one", lambda F, a: a[1:, [0, 0, 2], ::2], normal(3, 4, 5))
case("getitem", "a mask", lambda F, a, m: a[m], normal(3, 4), booleans(3, 4))
case("getitem", "a mask of rows", lambda F, a, m: a[m, 1:], normal(5, 4), booleans(5))
case("cat", "one of them empty", lambda F, a, b: F.cat([a, b], 0), normal(0, 3), normal(2, 3))
case("cat", "the same twice", lambda F, a: F.cat([a, a], 1), normal(2, 3))
case("stack", "middle axis", lambda F, a, b: F.stack((a, b), axis=1), normal(2, 3), normal(2, 3))
case("stack", "empty", lambda F, a, b: F.stack([a, b], 1), normal(0, 3), normal(0, 3))
case("where", "all three broadcast", lambda F, c, a, b: F.where(c, a, b), booleans(3, 1), normal(4), normal(2, 1, 1))
case("where", "a number", lambda F, c, a: F.where(c, a, 0.5), booleans(3, 4), normal(3, 4))
case("where", "empty", lambda F, c, a, b: F.where(c, a, b), booleans(0, 2), normal(0, 2), normal(2))

# the largest, the smallest
for operation in ("max", "min"):
    case(operation, "values of an axis", lambda F, a, name=operation: getattr(F, name)(a, 1).values, apart(3, 4))
    case(operation, "first item", lambda F, a, name=operation: getattr(a, name)(dim=0)[0], apart(3, 4, 2))
    case(operation, "dim, kept", lambda F, a, name=operation: getattr(F, name)(a, -1, keepdim=True)[0], apart(3, 4))
    case(operation, "dim positions", lambda F, a, name=operation: getattr(F, name)(a, 0, True).values, apart(3, 4))
    values = lambda F, a, name=operation: getattr(F, name)(a, 1).values  # noqa: E731
    case(operation, "ties: the first wins", values, tied(5, 6), smooth=False)
    indices = lambda F, a, name=operation: a * getattr(F, name)(a, 1, keepdim=True).indices.to(a.dtype)  # noqa: E731
    case(operation, "indices", indices, apart(3, 4))
    case(operation, "of two tensors", calling(operation), apart(3, 4), apart(4))
for operation in ("amax", "amin"):
    case(operation, "an axis", calling(operation, 1), apart(3, 4))
    case(operation, "two axes, kept", lambda F, a, name=operation: getattr(a, name)((0, -1), True), apart(2, 3, 4))
    case(operation, "ties share", calling(operation, 1), tied(5, 6), smooth=False)
for operation in ("argmax", "argmin"):
    for what, *over in (("an axis, kept", 1, True), ("first axis", 0, False), ("all axes", None, False)):
        factor = lambda F, a, name=operation, over=over: a * getattr(F, name)(a, *over).to(a.dtype)  # noqa: E731
        case(operation, what, factor, apart(3, 3))
        case(operation, f"{what}, ties: the first", factor, tied(5, 5), smooth=False)
for operation in ("maximum", "minimum"):
    case(operation, "broadcast", calling(operation), apart(3, 4), apart(4))
    case(operation, "equal: half each", calling(operation), tied(5, 6), tied(5, 6), smooth=False)
    case(operation, "empty", calling(operation), normal(0, 2), normal(2))
case("clamp", "both bounds", lambda F, a: F.clamp(a, -0.3, 0.4), apart(3, 4))
case("clamp", "below", lambda F, a: a.clamp(min=0), apart(3, 4))
case("clamp", "at the bounds the gradient passes", lambda F, a: F.clamp(a, 0, 1), tied(3, 4), smooth=False)

# statistics
for operation in ("var", "std"):
    for what, shape, settings in (
        ("all axes", (3, 4), {}),
        ("an axis", (3, 4), {"dim": 1}),
        ("first axis, kept", (3, 4), {"dim": 0, "keepdim": True}),
        ("two axes", (2, 3, 4), {"dim": (0, 2)}),
        ("without correction", (3, 4), {"dim": 1, "correction": 0}),
        ("unbiased=False", (3, 4), {"dim": 1, "unbiased": False}),
    ):
        case(operation, what, calling(operation, **settings), normal(*shape))
    equal = lambda F, a, name=operation: getattr(F, name)(a * 0 + 1, dim=1)  # noqa: E731
    case(operation, "equal numbers", equal, normal(3, 4), smooth=False)
for what, settings in (
    ("of all", {}),
    ("of columns, kept", {"dim": 0, "keepdim": True}),
    ("1", {"p": 1, "dim": 1}),
    ("infinity", {"p": float("inf"), "dim": 1}),
):
    case("norm", what, calling("norm", **settings), apart(3, 4))
case("norm", "of zeros: no gradient", lambda F, a: (a * 0).norm(dim=1), normal(3, 4), smooth=False)
case("prod", "an axis", lambda F, a: a.prod(1), apart(3, 4))
case("prod", "zeros among them", lambda F, a: F.prod(a, 1), tied(6, 4))
case("prod", "nothing", lambda F, a: F.prod(a, 1), normal(3, 0))
case("cumsum", "rows", lambda F, a: F.cumsum(a, 1), normal(3, 4))
case("cumsum", "first axis", lambda F, a: a.cumsum(dim=0), normal(3, 4, 2))
case("cumprod", "rows", lambda F, a: F.cumprod(a, 1), normal(3, 4))
case("cumprod", "zeros among them, first axis", lambda F, a: a.cumprod(dim=0), tied(5, 3, 2))
case("cumprod", "nothing", lambda F, a: F.cumprod(a, 1), normal(3, 0))
case("logsumexp", "rows", lambda F, a: F.logsumexp(a, 1), normal(3, 4))
case("logsumexp", "two axes, kept", lambda F, a: a.logsumexp((0, 2), keepdim=True), normal(2, 3, 4))
case("logsumexp", "large", lambda F, a: F.logsumexp(a * 1000, 0), apart(3, 4), smooth=False)

case("sign", "alone: gradients of zeros", calling("sign"), apart(3, 4))
case("sign", "a factor", lambda F, a: a * F.sign(a), apart(3, 4))

# whole numbers and what is left over
case("floor_divide", "operator", lambda F, a: a * (a.detach() * 10 // 3), apart(3, 4))
case("floor_divide", "of what has a gradient: zeros", lambda F, a, b: a // b, apart(3, 4), constant(0.7), peer=False)
case("remainder", "a negative number", lambda F, a: F.remainder(a * 10, -3), apart(3, 4))
case("remainder", "two tensors, broadcast", lambda F, a, b: a % b, apart(3, 4), positive(4))
case("remainder", "number on the left", lambda F, a: 7 % a, positive(3, 4), peer=False)  # refused there

# comparisons and logic, within something that has a gradient
for operation in ("lt", "le", "gt", "ge", "eq", "ne"):
    choice = lambda F, a, b, name=operation: F.where(getattr(F, name)(a, b), a, 2 * b)  # noqa: E731
    case(operation, "choice", choice, tied(3, 4), tied(4), smooth=False)
    case(operation, "a number", lambda F, a, name=operation: a * getattr(a, name)(1), tied(3, 4), smooth=False)
near: Callable[..., Any] = lambda F, a, b: a * F.isclose(a.detach(), b, rtol=0.3, atol=0.01)  # noqa: E731
case("isclose", "some are", near, apart(3, 4), constant(0.3, -0.2, 0.6, 0.5))
case("isnan", "none is", lambda F, a: F.where(F.isnan(a), 0 * a, a), normal(3, 4))
case("logical_and", "operator", lambda F, a: a * ((a > 0) & (a < 0.3)), apart(3, 4))
case("logical_or", "operator", lambda F, a: a * ((a < 0) | (a > 0.3)), apart(3, 4))
case("logical_xor", "operator", lambda F, a: a * ((a < 0) ^ (a > -0.3)), apart(3, 4))
case("logical_not", "operator", lambda F, a: a * ~(a > 0), apart(3, 4))
for operation in ("logical_and", "logical_or", "logical_xor"):
    truths: Callable[..., Any] = lambda F, a, i, b, name=operation: a * getattr(F, name)(i, b)  # noqa: E731
    case(operation, "integers and floats", truths, apart(3, 4), integers(3, 3, 4), probabilities(4))
case("logical_not", "integers", lambda F, a, i: a * i.logical_not(), apart(3, 4), integers(3, 3, 4))
case("any", "rows", lambda F, a: a * F.any(a > 0.3, 1, keepdim=True), apart(3, 4))
case("all", "columns", lambda F, a: a * (a > -0.3).all(dim=0), apart(3, 4))

# views, rearrangements
case("squeeze", "all axes of length 1", lambda F, a: F.squeeze(a), normal(1, 3, 1))
case("squeeze", "several", lambda F, a: a.squeeze((0, -1)), normal(1, 3, 1))
case("unsqueeze", "last", lambda F, a: a.unsqueeze(-1), normal(3, 4))
case("flatten", "from the second axis", lambda F, a: F.flatten(a, 1), normal(2, 3, 4))
case("flatten", "two in the middle", lambda F, a: F.flatten(a, 1, 2), normal(2, 3, 4, 2))
case("permute", "negative, in a tuple", lambda F, a: F.permute(a, (-1, 0, 1)), normal(2, 3, 4))
case("transpose", "mT", lambda F, a: a.mT, normal(2, 3, 4))
case("expand", "a column", lambda F, a: F.expand(a, (-1, 4)), normal(3, 1))
case("broadcast_to", "a row", lambda F, a: F.broadcast_to(a, (3, 4)), normal(4))
case("split", "all pieces", lambda F, a: F.cat(a.split(2, 1)[::-1], 1), normal(2, 5))
case("chunk", "all pieces", lambda F, a: F.cat(a.chunk(2)[::-1]), normal(5, 2))
case("repeat", "a new axis", lambda F, a: a.repeat(3, 1, 2), normal(2, 3))
case("repeat", "no times", lambda F, a: a.repeat(0, 1), normal(2, 3))
case("pad", "images", lambda F, a: F.pad(a, (1, 2, 0, 3)), normal(2, 3, 4))
case("pad", "a value, cut off at one end", lambda F, a: F.pad(a, (-1, 2), value=0.7), normal(3, 4))
case("flip", "two", lambda F, a: a.flip(0, -1), normal(2, 3, 4))
case("roll", "two axes", lambda F, a: F.roll(a, shifts=(1, -2), dims=(0, -1)), normal(2, 3, 4))
case("roll", "backwards, beyond the end", lambda F, a: a.roll(-5, 0), normal(3, 2))
case("roll", "flattened", lambda F, a: F.roll(a, 2), normal(2, 3))
for what, geometry in {
    "strided, padded, dilated": {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 2), "dilation": (1, 3)},
    "one pixel": {"kernel_size": 1},
    "the whole image": {"kernel_size": (5, 6)},
}.items():
    case("unfold", what, calling("unfold", **geometry), normal(2, 3, 5, 6))
for operation in ("tril", "triu"):
    case(operation, "square", calling(operation), normal(3, 3))
    case(operation, "above the diagonal", lambda F, a, name=operation: getattr(a, name)(1), normal(2, 3, 4))
    case(operation, "below the diagonal", calling(operation, diagonal=-1), normal(4, 3))

# selection and order
case("gather", "a row's entries", lambda F, a, i: F.gather(a, 1, i), normal(4, 3), integers(3, 4, 2))
case("gather", "first axis, repeated", lambda F, a, i: a.gather(0, i), normal(2, 3), integers(2, 6, 3))
case("gather", "a shorter index", lambda F, a, i: a.gather(-1, i), normal(4, 3, 5), integers(5, 2, 2, 7))
add_columns: Callable[..., Any] = lambda F, a, i, b: F.scatter_add(a, 1, i, b)  # noqa: E731
case("scatter_add", "columns", add_columns, normal(3, 4), integers(4, 3, 5), normal(3, 5))
case("index_select", "columns", lambda F, a, i: a.index_select(-1, i), normal(3, 4), integers(4, 6))
add_scaled: Callable[..., Any] = lambda F, a, i, b: a.index_add(1, i, b, alpha=2)  # noqa: E731
case("index_add", "columns, scaled", add_scaled, normal(3, 4), integers(4, 6), normal(3, 6))
case("masked_fill", "attention's", lambda F, a, m: F.masked_fill(a, m, 7.0), normal(3, 4), booleans(3, 4))
case("masked_fill", "a mask of columns", lambda F, a, m: a.masked_fill(m, -2.0), normal(3, 4), booleans(4))
case("one_hot", "a row for each label", lambda F, a, i: a * F.one_hot(i, 4).to(a.dtype), normal(6, 4), integers(4, 6))
case("sort", "last axis", lambda F, a: F.sort(a).values, apart(3, 4))
case("sort", "indices", lambda F, a: a * F.sort(a, 1, True).indices.to(a.dtype), apart(3, 4))
case("argsort", "columns, descending", lambda F, a: a * a.argsort(0, descending=True).to(a.dtype), apart(3, 4))
case("topk", "the largest", lambda F, a: F.topk(a, 2).values, apart(3, 4))
case("topk", "few of many", lambda F, a: F.topk(a, 3).values, apart(4, 20))
case("topk", "few of many, smallest, first axis", lambda F, a: a.topk(2, 0, largest=False)[0], apart(20, 3))
case("topk", "indices", lambda F, a: a[:, :3] * F.topk(a, 3).indices.to(a.dtype), apart(3, 4))

# types and copies
back: Callable[..., Any] = lambda F, a: F.astype(F.astype(a, "float64") * 2, f"{a.dtype}".removeprefix("torch."))  # noqa: E731
case("astype", "there and back", back, normal(3, 4))
case("astype", "integers", lambda F, a: a * (a * 3).long().to(a.dtype), apart(3, 4))
case("clone", "matrix", lambda F, a: F.clone(a), normal(3, 4))
case("contiguous", "transposed", lambda F, a: F.contiguous(a.T), normal(3, 4))

# products
case("outer", "vectors", lambda F, a, b: F.outer(a, b), normal(3), normal(4))
for equation, shapes in (
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("bhqd,bhkd->bhqk", ((2, 2, 3, 4), (2, 2, 5, 4))),
    ("ij,ij->", ((2, 3), (2, 3))),
    ("ij,k->k", ((2, 3), (4,))),
    ("ab,bc,cd->ad", ((2, 3), (3, 4), (4, 2))),
    ("b,bd,d->b", ((2,), (2, 3), (3,))),
    ("...qd,b...kd->...qk", ((3, 4, 5), (2, 1, 2, 5))),
    ("...a,a", ((2, 3), (3,))),
    ("iij,jk->ik", ((3, 3, 2), (2, 4))),
    ("iji", ((2, 3, 2),)),
):
    case("einsum", equation, lambda F, *t, equation=equation: F.einsum(equation, *t), *(normal(*s) for s in shapes))

case("einsum", "a list of operands", lambda F, a, b: F.einsum("ij,jk", [a, b]), normal(2, 3), normal(3, 4))

# layers
case("linear", "with bias", calling("linear"), normal(5, 3), normal(4, 3), normal(4))
case("linear", "without bias", lambda F, x, w: F.linear(x, w), normal(5, 3), normal(4, 3))
case("linear", "sequence", calling("linear"), normal(2, 5, 3), normal(4, 3), normal(4))
case("linear", "no samples", calling("linear"), normal(0, 3), normal(4, 3), normal(4))
case("linear", "no outputs", calling("linear"), normal(5, 3), normal(0, 3), normal(0))
case("embedding", "matrix of indices, repeated", calling("embedding"), integers(2, 4, 6), normal(5, 3))
for what, image, filters, stride, padding in (
    ("plain", (2, 3, 5, 6), (4, 3, 3, 3), 1, 0),
    ("strided, a remainder left over", (2, 2, 6, 7), (3, 2, 3, 2), 2, 0),
    ("stride and padding apart", (2, 2, 7, 6), (3, 2, 3, 2), (2, 3), (1, 0)),
    ("padding beyond the kernel", (1, 1, 2, 2), (2, 1, 2, 2), 1, 3),
    ("1 x 1", (2, 3, 4, 4), (5, 3, 1, 1), 1, 0),
    ("no samples", (0, 3, 5, 5), (4, 3, 3, 3), 2, 1),
):
    case("conv2d", what, calling("conv2d", stride, padding), normal(*image), normal(*filters), normal(filters[0]))
for what, image, filters, geometry in (
    ("dilated, strided, padded", (2, 2, 9, 8), (3, 2, 3, 2), {"stride": (3, 2), "padding": (2, 1), "dilation": (2, 3)}),
    ("two groups", (2, 4, 5, 6), (6, 2, 3, 3), {"padding": 1, "groups": 2}),
    ("depthwise", (2, 3, 5, 6), (3, 1, 3, 3), {"groups": 3}),
    ("depthwise, two filters a channel", (1, 3, 6, 6), (6, 1, 3, 2), {"stride": 2, "padding": 1, "groups": 3}),
    ("many filters in groups", (2, 4, 5, 5), (64, 2, 3, 3), {"stride": 2, "padding": 1, "groups": 2}),
    ("valid", (2, 2, 5, 6), (3, 2, 3, 2), {"padding": "valid"}),
    ("the same size, odd window", (2, 2, 5, 6), (3, 2, 3, 5), {"padding": "same"}),
    ("the same size, dilated", (2, 2, 5, 6), (3, 2, 2, 3), {"padding": "same", "dilation": (3, 2)}),
    ("one image", (2, 5, 6), (3, 2, 3, 3), {"padding": 1}),
):
    case("conv2d", what, calling("conv2d", **geometry), normal(*image), normal(*filters), normal(filters[0]))
for algorithm in ("naive", "fft", "winograd"):
    padded = calling("conv2d", padding=(0, 2), groups=2, algorithm=algorithm)
    case("conv2d", f"by {algorithm}", padded, normal(2, 4, 5, 4), normal(6, 2, 1, 3), normal(6), peer=False)
for what, sequence, filters, geometry in (
    ("strided, padded, dilated", (2, 3, 11), (4, 3, 3), {"stride": 2, "padding": (1,), "dilation": 2}),
    ("the same size, in groups", (2, 4, 7), (6, 2, 4), {"padding": "same", "groups": 2}),
    ("one sequence", (3, 7), (4, 3, 2), {}),
):
    case("conv1d", what, calling("conv1d", **geometry), normal(*sequence), normal(*filters), normal(filters[0]))
for operation, maker in (("max_pool2d", apart), ("avg_pool2d", normal)):
    for what, image, window, stride, padding in (
        ("2 x 2", (2, 3, 4, 6), 2, None, 0),
        ("a remainder left over", (2, 3, 5, 7), 2, None, 0),
        ("overlapping, padded", (2, 2, 6, 7), 3, 2, 1),
        ("the whole image", (2, 3, 4, 5), (4, 5), None, 0),
        ("no samples", (0, 3, 4, 4), 2, None, 0),
    ):
        case(operation, what, calling(operation, window, stride, padding), maker(*image))
for what, image, settings in (
    ("a last window that overhangs", (2, 2, 6, 7), (2, 2, 0, True)),
    ("a last window that overhangs, padded", (2, 2, 7, 8), (3, (2, 3), 1, True)),
):
    case("max_pool2d", what, calling("max_pool2d", *settings[:3], ceil_mode=True), apart(*image))
    case("avg_pool2d", what, calling("avg_pool2d", *settings), normal(*image))
    case("avg_pool2d", f"{what}, not counted", calling("avg_pool2d", *settings, False), normal(*image))
case("max_pool2d", "dilated", lambda F, x: F.max_pool2d(x, (3, 2), 2, 1, (2, 3)), apart(2, 2, 8, 9))
case("avg_pool2d", "padding not counted", lambda F, x: F.avg_pool2d(x, 3, 2, 1, False, False), normal(2, 2, 6, 7))
case("avg_pool2d", "a divisor, side by side", lambda F, x: F.avg_pool2d(x, 2, divisor_override=-3), normal(2, 2, 6, 8))
for name, maker in (("adaptive_avg_pool2d", normal), ("adaptive_max_pool2d", apart)):
    for what, size in (
        ("one pixel", 1),
        ("uneven", (3, 2)),
        ("more than there are", (7, 9)),
        ("a height kept", (None, 2)),
    ):
        case(name, what, calling(name, size), maker(2, 2, 5, 7))
    case(name, "one image", calling(name, (2, 3)), maker(2, 5, 6))
    case(name, "no samples", calling(name, 2), maker(0, 2, 5, 6))
case("max_pool2d", "ties: the first wins", lambda F, x: F.max_pool2d(x, 3, 2, 1), tied(2, 2, 7, 7), smooth=False)

# normalisation; the running statistics are plain arrays
for what, image in (
    ("features", (6, 3)),
    ("images", (4, 3, 2, 5)),
):
    operands = normal(*image), normal(3), normal(3)
    case("batch_norm", f"training, {what}", lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True), *operands)
    case(
        "batch_norm",
        f"evaluation, {what}",
        lambda F, x, w, b, mean, var: F.batch_norm(x, mean.data, var.data, w, b, False),
        *(*operands, constant(0.1, -0.2, 0.3), constant(0.5, 1.0, 2.0)),
    )
case("batch_norm", "without weight and bias", lambda F, x: F.batch_norm(x, None, None, training=True), normal(6, 3))
case("batch_norm", "a large eps", lambda F, x: F.batch_norm(x, None, None, training=True, eps=0.5), normal(6, 3))
nobody: Callable[..., Any] = lambda F, x, mean, var: F.batch_norm(x, mean.data, var.data)  # noqa: E731
case("batch_norm", "evaluation, no samples", nobody, normal(0, 1), constant(0.1), constant(2.0))
case("layer_norm", "last axis", calling("layer_norm"), normal(5, 4), normal(4), normal(4))
case("layer_norm", "without bias", calling("layer_norm"), normal(5, 4), normal(4))
case("layer_norm", "a large eps", lambda F, x, w: F.layer_norm(x, w, eps=0.5), normal(5, 4), normal(4))
case("layer_norm", "no samples", calling("layer_norm"), normal(0, 4), normal(4), normal(4))
# exactly zero; PyTorch's float32 is 2e-5 off, rounding divided by sqrt(eps)
case("layer_norm", "one feature", calling("layer_norm"), normal(5, 1), normal(1), normal(1), peer=False)
for what, shape, groups in (
    ("one group", (3, 4, 2, 5), 1),
    ("two groups", (3, 4, 2, 5), 2),
    ("a channel each", (3, 4, 2, 5), 4),
    ("sequence", (3, 6, 5), 3),
):
    function = lambda F, x, w, b, groups=groups: F.group_norm(x, groups, w, b)  # noqa: E731
    case("group_norm", what, function, normal(*shape), normal(shape[1]), normal(shape[1]))
case("group_norm", "without weight and bias", lambda F, x: F.group_norm(x, 2), normal(3, 4, 5))
case("group_norm", "a large eps", lambda F, x: F.group_norm(x, 2, eps=0.5), normal(3, 4, 5))
case("group_norm", "no samples", lambda F, x: F.group_norm(x, 2), normal(0, 4, 5), peer=False)

# softmax and the losses
for operation in ("softmax", "log_softmax"):
    for what, shape, axis in (
        ("last axis", (3, 4), -1),
        ("first axis", (3, 4), 0),
        ("middle axis", (2, 3, 4), 1),
        ("length 1", (3, 1), 1),
        ("empty", (0, 4), 1),
        ("nothing to normalise", (4, 0), 1),
    ):
        case(operation, what, calling(operation, axis), normal(*shape))
    case(operation, "large", lambda F, x, name=operation: getattr(F, name)(x * 1e3), normal(3, 4), smooth=False)
for reduction in ("mean", "sum", "none"):
    case("cross_entropy", reduction, calling("cross_entropy", reduction=reduction), normal(6, 4), integers(4, 6))
    for what, shape, labels in (
        ("a sample", (4,), ()),
        ("samples", (6, 4), (6,)),
        ("sequences, classes on axis 1", (2, 4, 5), (2, 5)),
    ):
        for operation in ("cross_entropy", "nll_loss"):
            case(
                operation,
                f"{what}, weights, label 2 ignored, {reduction}",
                calling(operation, ignore_index=2, reduction=reduction),
                *(normal(*shape), integers(4, *labels), constant(0.5, 1.0, 2.0, 0.25)),
                smooth=bool(labels) or reduction != "mean",  # the mean of one sample that is ignored is nan
            )
        case(
            "cross_entropy",
            f"{what}, label smoothing, {reduction}",
            calling("cross_entropy", ignore_index=1, reduction=reduction, label_smoothing=0.3),
            *(normal(*shape), integers(4, *labels)),
            smooth=bool(labels) or reduction != "mean",
        )
        case(
            "cross_entropy",
            f"{what}, class probabilities, {reduction}",
            calling("cross_entropy", reduction=reduction, label_smoothing=0.1),
            *(normal(*shape), positive(*shape), constant(0.5, 1.0, 2.0, 0.25)),
        )
    binary = "binary_cross_entropy_with_logits"
    case(binary, reduction, calling(binary, reduction=reduction), normal(6, 4), positive(6, 4))
    case(
        binary,
        f"weights, {reduction}",
        lambda F, x, y, w, p, r=reduction: F.binary_cross_entropy_with_logits(x, y, w, reduction=r, pos_weight=p),
        *(normal(6, 4), positive(6, 4), constant(0.5, 1.0, 2.0, 0.25), constant(3.0, 1.0, 0.5, 2.0)),
    )
    case("l1_loss", reduction, calling("l1_loss", reduction=reduction), normal(6, 4), apart(6, 4))
    case("mse_loss", reduction, calling("mse_loss", reduction), normal(6, 4), normal(6, 4))
case(
    "cross_entropy", "no samples", lambda F, x, y: F.cross_entropy(x, y, reduction="sum"), normal(0, 4), integers(4, 0)
)
case("cross_entropy", "large", lambda F, x, y: F.cross_entropy(x * 1e3, y), normal(5, 4), integers(4, 5), smooth=False)
case("mse_loss", "a tensor and itself", lambda F, x: F.mse_loss(x, x), normal(3))
case("dropout", "not training", lambda F, x: F.dropout(x, 0.5, False), normal(3, 4))
case("dropout", "p = 1", lambda F, x: F.dropout(x, 1.0), normal(3, 4))
case("dropout", "p = 0.3", lambda F, x: F.dropout(x, 0.3), normal(30, 4), peer=False)
attention = "scaled_dot_product_attention"
THREE = normal(2, 3, 5), normal(2, 4, 5), normal(2, 4, 2)
for what, queries, keys, values_, causal in (
    ("self", (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4), False),
    ("causal", (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4), True),
    ("more keys than queries", (2, 3, 4), (2, 6, 4), (2, 6, 5), False),
    ("causal, more keys than queries", (2, 3, 4), (2, 6, 4), (2, 6, 5), True),
    ("causal, fewer keys than queries", (2, 6, 4), (2, 3, 4), (2, 3, 5), True),
    ("one of each", (1, 1, 1), (1, 1, 1), (1, 1, 1), True),
    ("no samples", (0, 5, 4), (0, 5, 4), (0, 5, 4), True),
    ("no queries", (2, 0, 4), (2, 3, 4), (2, 3, 5), False),
    ("long, causal", (1040, 2), (1010, 2), (1010, 3), True),
):
    of_all = normal(*queries), normal(*keys), normal(*values_)
    case(attention, what, calling(attention, is_causal=causal), *of_all)
for what, mask in (
    ("a mask under which one query sees nothing", np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)),
    ("a mask of booleans for each head", np.arange(24).reshape(2, 3, 4) % 5 > 0),
    ("a mask that hides the same key from all", np.array([1, 1, 0, 1], bool)),
    ("long, a mask under which some queries see nothing", np.arange(1040)[:, None] * np.arange(1010) % 7 > 0),
):
    few = (normal(1040, 2), normal(1010, 2), normal(1010, 3)) if "long" in what else THREE
    case(attention, what, calling(attention), *few, Operand(lambda random, m=mask: m.copy(), differentiable=False))
case(attention, "a learnt mask of numbers, shared by the samples", calling(attention), *THREE, normal(3, 4))
case(attention, "a scale", calling(attention, scale=0.7), *THREE)
case(attention, "a scale and a learnt mask", calling(attention, scale=-1.3), *THREE, normal(3, 4))
hidden = calling(attention, np.array([False, True, True, False]), is_causal=True)  # PyTorch refuses the two together
case(attention, "a mask and causal, a query that sees nothing", hidden, *THREE, peer=False)
case(attention, "dropout", calling(attention, dropout_p=0.4), *THREE, peer=False)


def _both_of(out: Any, h: Any) -> Any:
    return (out * out).sum() + (h * h).sum()


def _all_of(out: Any, h: Any, c: Any) -> Any:
    """One tensor that each of the three results of an LSTM has a part in."""
    return (out * out).sum() + (2 * h * c).sum() + c.sum()


for what, nonlinearity, t, biases in (("two steps", "tanh", 2, 2), ("relu, one step, no biases", "relu", 1, 0)):
    case(
        "rnn",
        what,
        lambda F, *operands, how=nonlinearity: _both_of(*F.rnn(*operands, nonlinearity=how)),
        *(normal(t, 3, 2), normal(3, 5), normal(5, 2), normal(5, 5), *[normal(5)] * biases),
    )

for what, t, n, features, units in (
    ("plain", 4, 3, 2, 5),
    ("one step", 1, 3, 2, 4),
    ("no sequences", 3, 0, 2, 4),
):
    case(
        "lstm",
        what,
        lambda F, *operands: _all_of(*F.lstm(*operands)),
        *(normal(t, n, features), normal(n, units), normal(n, units)),
        *(normal(4 * units, features), normal(4 * units, units), normal(4 * units), normal(4 * units)),
        peer=n > 0,
    )
case(
    "lstm",
    "without biases, the outputs alone",
    lambda F, *operands: F.lstm(*operands)[0],
    *(normal(4, 3, 2), normal(3, 5), normal(3, 5), normal(20, 2), normal(20, 5)),
)
