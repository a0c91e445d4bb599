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
        ("a 0-d on the right", (2, 3), ()),
        ("both 0-d", (), ()),
        ("length 1 throughout", (1, 1), (1,)),
        ("empty", (0, 3), (3,)),
        ("empty by broadcasting", (0, 1), (1, 3)),
    ):
        case(operation, what, lambda F, a, b, name=operation: getattr(F, name)(a, b), normal(*first), positive(*second))
case("add", "number on the right", lambda F, a: a + 2, normal(3, 4))
case("add", "number on the left", lambda F, a: 2.5 + a, normal(3, 4))
case("sub", "number on the right", lambda F, a: a - 2, normal(3, 4))
case("sub", "number on the left", lambda F, a: 2.5 - a, normal(3, 4))
case("mul", "number on the right", lambda F, a: a * 3, normal(3, 4))
case("mul", "number on the left", lambda F, a: 0.5 * a, normal(3, 4))
case("div", "number on the right", lambda F, a: a / 3, normal(3, 4))
case("div", "number on the left", lambda F, a: 3 / a, positive(3, 4))
case("mul", "a tensor by itself", lambda F, a: a * a, normal(3, 4))
case("div", "a tensor by itself", lambda F, a: a / a, positive(3, 4))
case("neg", "matrix", lambda F, a: -a, normal(3, 4))
case("neg", "0-d", lambda F, a: F.neg(a), normal())
case("neg", "empty", lambda F, a: -a, normal(0, 2))
case("abs", "matrix", lambda F, a: F.abs(a), apart(3, 4))
case("abs", "at 0 the derivative is 0", lambda F, a: abs(a), tied(3, 4), smooth=False)
case("abs", "empty", lambda F, a: a.abs(), normal(0, 3))
case("pow", "square", lambda F, a: a**2, normal(3, 4))
case("pow", "cube root", lambda F, a: a ** (1 / 3), positive(3, 4))
case("pow", "reciprocal", lambda F, a: a**-1, positive(3, 4))
case("pow", "exponent 1", lambda F, a: a**1, normal(3, 4))
case("pow", "exponent 0", lambda F, a: a**0, normal(3, 4))
case("pow", "exponent 0 at 0", lambda F, a: a**0, tied(3, 4), smooth=False)
case("pow", "square at 0", lambda F, a: a**2, tied(3, 4))
case("pow", "0-d", lambda F, a: a**3, normal())
case("pow", "empty", lambda F, a: a**3, normal(2, 0))
case("pow", "two tensors", lambda F, a, b: a**b, positive(3, 4), normal(3, 4))
case("pow", "two tensors, broadcast", lambda F, a, b: F.pow(a, b), positive(3, 1), normal(4))
case("pow", "number on the left", lambda F, b: 2.5**b, normal(3, 4))
case("pow", "integral exponents of negative numbers", lambda F, a, b: a**b, normal(4, 3), constant(1, 2, 3))
case("pow", "exponents and bases that may be 0", lambda F, a, b: a**b, tied(6, 6), tied(6, 6), smooth=False)
case("matmul", "matrices", lambda F, a, b: a @ b, normal(3, 4), normal(4, 2))
case("matmul", "a matrix by itself", lambda F, a: a @ a, normal(3, 3))
case("matmul", "matrix and vector", lambda F, a, b: a @ b, normal(3, 4), normal(4))
case("matmul", "vector and matrix", lambda F, a, b: a @ b, normal(3), normal(3, 4))
case("matmul", "vectors", lambda F, a, b: a @ b, normal(4), normal(4))
case("matmul", "batches", lambda F, a, b: F.matmul(a, b), normal(5, 3, 4), normal(5, 4, 2))
case("matmul", "batch and matrix", lambda F, a, b: a @ b, normal(5, 3, 4), normal(4, 2))
case("matmul", "matrix and batch", lambda F, a, b: a @ b, normal(3, 4), normal(5, 4, 2))
case("matmul", "batches broadcast", lambda F, a, b: a @ b, normal(2, 1, 3, 4), normal(5, 4, 2))
case("matmul", "batch and vector", lambda F, a, b: a @ b, normal(2, 5, 3, 4), normal(4))
case("matmul", "vector and batch", lambda F, a, b: a @ b, normal(3), normal(5, 3, 2))
case("matmul", "length 1", lambda F, a, b: a @ b, normal(1, 1), normal(1, 1))
case("matmul", "no rows", lambda F, a, b: a @ b, normal(0, 4), normal(4, 2))
case("matmul", "nothing to sum", lambda F, a, b: a @ b, normal(3, 0), normal(0, 2))

# elementwise functions
for operation in ("exp", "tanh", "sigmoid", "relu", "gelu", "log", "sqrt"):
    maker = {"log": positive, "sqrt": positive, "relu": apart}.get(operation, normal)
    for what, shape in (
        ("matrix", (3, 4)),
        ("three axes", (2, 3, 4)),
        ("0-d", ()),
        ("length 1", (1,)),
        ("empty", (0, 3)),
    ):
        case(operation, what, lambda F, a, name=operation: getattr(F, name)(a), maker(*shape))
case("relu", "at 0 the derivative is 0", lambda F, a: F.relu(a - 1), tied(3, 4), smooth=False)
case("tanh", "far out", lambda F, a: (a * 100).tanh(), normal(3, 4))
case("sigmoid", "far out", lambda F, a: (a * 1000).sigmoid(), normal(3, 4), smooth=False)
case("gelu", "far out", lambda F, a: F.gelu(a * 20), normal(3, 4))

# reductions
for operation, maker in (("sum", normal), ("mean", normal), ("max", apart)):
    for what, shape, axis in (
        ("all axes", (3, 4), None),
        ("all axes of three", (2, 3, 4), None),
        ("first axis", (3, 4), 0),
        ("last axis", (2, 3, 4), -1),
        ("middle axis", (2, 3, 4), 1),
        ("two axes", (2, 3, 4), (0, 2)),
        ("negative axes, out of order", (2, 3, 4), (-1, -3)),
        ("one axis in a tuple", (2, 3, 4), (1,)),
        ("length 1", (1, 3, 1), (0, 2)),
        ("0-d", (), None),
    ):
        for keepdims in (False, True):
            case(
                operation,
                what + (", kept" if keepdims else ""),
                lambda F, a, name=operation, axis=axis, keepdims=keepdims: getattr(F, name)(a, axis, keepdims),
                maker(*shape),
            )
    case(operation, "no rows", lambda F, a, name=operation: getattr(F, name)(a, 1), maker(0, 4))
    case(operation, "no axes", lambda F, a, name=operation: getattr(F, name)(a, ()), maker(3, 4), peer=False)
case("sum", "nothing", lambda F, a: F.sum(a, 0), normal(0, 4))
case("sum", "nothing at all", lambda F, a: a.sum(), normal(0))
case("sum", "method", lambda F, a: a.sum(axis=1, keepdims=True), normal(3, 4))
case("mean", "method", lambda F, a: a.mean(axis=(0, 1)), normal(3, 4, 2))
case("max", "ties share the gradient", lambda F, a: F.max(a), tied(3, 4), smooth=False)
case("max", "ties along an axis", lambda F, a: F.max(a, -1), tied(5, 6), smooth=False)
case("max", "ties over two axes, kept", lambda F, a: F.max(a, (0, 2), True), tied(3, 4, 5), smooth=False)

# moving numbers about
case("reshape", "numbers", lambda F, a: a.reshape(2, 6), normal(3, 4))
case("reshape", "tuple", lambda F, a: a.reshape((2, 2, 3)), normal(3, 4))
case("reshape", "-1", lambda F, a: F.reshape(a, -1), normal(3, 4))
case("reshape", "a length inferred", lambda F, a: a.reshape(2, -1), normal(3, 4))
case("reshape", "to 0-d", lambda F, a: a.reshape(()), normal(1, 1))
case("reshape", "from 0-d", lambda F, a: a.reshape(1, 1), normal())
case("reshape", "the same shape", lambda F, a: a.reshape(3, 4), normal(3, 4))
case("reshape", "empty", lambda F, a: a.reshape(3, 0), normal(0, 2))
case("transpose", "matrix", lambda F, a: F.transpose(a), normal(3, 4))
case("transpose", "T", lambda F, a: a.T, normal(3, 4))
case("transpose", "all axes reversed", lambda F, a: F.transpose(a), normal(2, 3, 4))
case("transpose", "two axes exchanged", lambda F, a: a.transpose(1, 2), normal(2, 3, 4))
case("transpose", "negative axes", lambda F, a: a.transpose(-1, 0), normal(2, 3, 4))
case("transpose", "the two axes of a matrix", lambda F, a: a.transpose(0, 1), normal(3, 4))
case("transpose", "permutation", lambda F, a: F.transpose(a, 2, 0, 1), normal(2, 3, 4))
case("transpose", "permutation in a tuple, negative", lambda F, a: F.transpose(a, (-1, 0, 1)), normal(2, 3, 4))
case("transpose", "vector", lambda F, a: F.transpose(a), normal(3))
case("transpose", "0-d", lambda F, a: F.transpose(a), normal())
case("transpose", "empty", lambda F, a: a.transpose(0, 1), normal(0, 3))
case("getitem", "row", lambda F, a: a[1], normal(3, 4))
case("getitem", "negative", lambda F, a: a[-1, -2], normal(3, 4))
case("getitem", "the only element of a vector", lambda F, a: a[0], normal(1))
case("getitem", "slices", lambda F, a: a[1:3, ::2], normal(4, 5))
case("getitem", "backwards", lambda F, a: a[::-1, 3:0:-2], normal(4, 5), peer=False)
case("getitem", "ellipsis and a new axis", lambda F, a: a[..., None, 1], normal(2, 3, 4))
case("getitem", "everything", lambda F, a: a[...], normal(3, 4))
case("getitem", "0-d", lambda F, a: a[()], normal())
case("getitem", "nothing", lambda F, a: a[2:2], normal(3, 4))
case("getitem", "a list, elements repeated", lambda F, a: a[[0, 2, 0, 0]], normal(3, 4))
case("getitem", "two lists", lambda F, a: a[[0, 1, 0], [2, 3, 2]], normal(3, 4))
case("getitem", "tuples in a tuple, elements repeated", lambda F, a: a[(0, 0, 2), (1, 1, 3)], normal(3, 4))
case("getitem", "a tuple beside a slice, repeated", lambda F, a: a[:, (1, 1, 3)], normal(3, 4))
case("getitem", "an empty list", lambda F, a: a[[]], normal(3, 4))
case("getitem", "a tensor of integers", lambda F, a, i: a[i], normal(3, 4), integers(3, 2, 5))
case("getitem", "tensors beside a slice", lambda F, a, i: a[:, i], normal(3, 4), integers(4, 6))
case("getitem", "lists about a slice", lambda F, a: a[[0, 1], :, [1, 1]], normal(2, 3, 4))
case("getitem", "a mask", lambda F, a, m: a[m], normal(3, 4), booleans(3, 4))
case("getitem", "a mask of rows", lambda F, a, m: a[m, 1:], normal(5, 4), booleans(5))
case("cat", "rows", lambda F, a, b: F.cat([a, b]), normal(2, 3), normal(4, 3))
case("cat", "last axis", lambda F, a, b, c: F.cat([a, b, c], -1), normal(2, 3), normal(2, 1), normal(2, 4))
case("cat", "middle axis", lambda F, a, b: F.cat((a, b), axis=1), normal(2, 3, 4), normal(2, 1, 4))
case("cat", "one of them empty", lambda F, a, b: F.cat([a, b], 0), normal(0, 3), normal(2, 3))
case("cat", "one alone", lambda F, a: F.cat([a], 0), normal(2, 3))
case("cat", "the same twice", lambda F, a: F.cat([a, a], 1), normal(2, 3))
case("stack", "first axis", lambda F, a, b: F.stack([a, b]), normal(2, 3), normal(2, 3))
case("stack", "last axis", lambda F, a, b: F.stack([a, b], -1), normal(2, 3), normal(2, 3))
case("stack", "middle axis", lambda F, a, b: F.stack((a, b), axis=1), normal(2, 3), normal(2, 3))
case("stack", "0-d", lambda F, a, b: F.stack([a, b]), normal(), normal())
case("stack", "empty", lambda F, a, b: F.stack([a, b], 1), normal(0, 3), normal(0, 3))
case("where", "matrices", lambda F, c, a, b: F.where(c, a, b), booleans(3, 4), normal(3, 4), normal(3, 4))
case("where", "all three broadcast", lambda F, c, a, b: F.where(c, a, b), booleans(3, 1), normal(4), normal(2, 1, 1))
case("where", "a number", lambda F, c, a: F.where(c, a, 0.5), booleans(3, 4), normal(3, 4))
case("where", "a comparison", lambda F, a, b: F.where(a > b, a, 2 * b), apart(3, 4), constant(0.01, 0.2, -0.3, 5))
case("getitem", "a comparison", lambda F, a: a[a <= 0.1], apart(3, 4))
case("where", "a number first", lambda F, c, a: F.where(c, 2, a), booleans(3, 4), normal(3, 4))
case("where", "0-d", lambda F, c, a, b: F.where(c, a, b), booleans(), normal(), normal())
case("where", "empty", lambda F, c, a, b: F.where(c, a, b), booleans(0, 2), normal(0, 2), normal(2))

# layers
case("linear", "with bias", lambda F, x, w, b: F.linear(x, w, b), normal(5, 3), normal(4, 3), normal(4))
case("linear", "without bias", lambda F, x, w: F.linear(x, w), normal(5, 3), normal(4, 3))
case("linear", "vector", lambda F, x, w, b: F.linear(x, w, b), normal(3), normal(4, 3), normal(4))
case("linear", "sequence", lambda F, x, w, b: F.linear(x, w, b), normal(2, 5, 3), normal(4, 3), normal(4))
case("linear", "length 1", lambda F, x, w, b: F.linear(x, w, b), normal(1, 1), normal(1, 1), normal(1))
case("linear", "no samples", lambda F, x, w, b: F.linear(x, w, b), normal(0, 3), normal(4, 3), normal(4))
case("linear", "no inputs", lambda F, x, w, b: F.linear(x, w, b), normal(2, 5, 0), normal(4, 0), normal(4))
case("linear", "no outputs", lambda F, x, w, b: F.linear(x, w, b), normal(5, 3), normal(0, 3), normal(0))
case("embedding", "vector", lambda F, i, w: F.embedding(i, w), integers(5, 7), normal(5, 3))
case("embedding", "matrix of indices, repeated", lambda F, i, w: F.embedding(i, w), integers(2, 4, 6), normal(5, 3))
case("embedding", "one index", lambda F, i, w: F.embedding(i, w), integers(5), normal(5, 3))
case("embedding", "no indices", lambda F, i, w: F.embedding(i, w), integers(5, 0), normal(5, 3))
case("embedding", "rows of length 1", lambda F, i, w: F.embedding(i, w), integers(5, 7), normal(5, 1))
for what, image, filters, stride, padding in (
    ("plain", (2, 3, 5, 6), (4, 3, 3, 3), 1, 0),
    ("padded", (2, 3, 5, 6), (4, 3, 3, 3), 1, 1),
    ("strided, a remainder left over", (2, 2, 6, 7), (3, 2, 3, 2), 2, 0),
    ("stride and padding apart", (2, 2, 7, 6), (3, 2, 3, 2), (2, 3), (1, 0)),
    ("stride beyond the kernel", (1, 2, 8, 8), (3, 2, 2, 2), 3, 1),
    ("padding beyond the kernel", (1, 1, 2, 2), (2, 1, 2, 2), 1, 3),
    ("1 x 1", (2, 3, 4, 4), (5, 3, 1, 1), 1, 0),
    ("1 x 1, strided", (2, 3, 5, 4), (5, 3, 1, 1), 2, 0),
    ("kernel as large as the image", (2, 3, 4, 5), (2, 3, 4, 5), 1, 0),
    ("one sample, channel, filter", (1, 1, 3, 3), (1, 1, 2, 2), 1, 0),
    ("no samples", (0, 3, 5, 5), (4, 3, 3, 3), 2, 1),
):
    case(
        "conv2d",
        what,
        lambda F, x, w, b, stride=stride, padding=padding: F.conv2d(x, w, b, stride, padding),
        normal(*image),
        normal(*filters),
        normal(filters[0]),
    )
case("conv2d", "without bias", lambda F, x, w: F.conv2d(x, w, padding=1), normal(2, 3, 5, 5), normal(4, 3, 3, 3))
for operation, maker in (("max_pool2d", apart), ("avg_pool2d", normal)):
    for what, image, window, stride, padding in (
        ("2 x 2", (2, 3, 4, 6), 2, None, 0),
        ("a remainder left over", (2, 3, 5, 7), 2, None, 0),
        ("overlapping", (2, 2, 7, 7), 3, 2, 0),
        ("overlapping, padded", (2, 2, 6, 7), 3, 2, 1),
        ("stride 1", (1, 2, 4, 5), 2, 1, 0),
        ("oblong", (2, 2, 6, 7), (2, 3), (1, 2), (1, 0)),
        ("stride beyond the window", (1, 2, 8, 8), 2, 3, 1),
        ("1 x 1", (2, 3, 3, 3), 1, None, 0),
        ("the whole image", (2, 3, 4, 5), (4, 5), None, 0),
        ("no samples", (0, 3, 4, 4), 2, None, 0),
    ):
        case(
            operation,
            what,
            lambda F, x, name=operation, window=window, stride=stride, padding=padding: getattr(F, name)(
                x, window, stride, padding
            ),
            maker(*image),
        )
case("max_pool2d", "ties: the first wins", lambda F, x: F.max_pool2d(x, 3, 2, 1), tied(2, 2, 7, 7), smooth=False)

# normalisation; the running statistics are plain arrays
for what, image in (
    ("features", (6, 3)),
    ("images", (4, 3, 2, 5)),
    ("one sample", (1, 3, 4, 4)),
    ("sequence", (4, 3, 5)),
):
    case(
        "batch_norm",
        f"training, {what}",
        lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True),
        normal(*image),
        normal(3),
        normal(3),
    )
    case(
        "batch_norm",
        f"evaluation, {what}",
        lambda F, x, w, b, mean, var: F.batch_norm(x, mean.data, var.data, w, b, False),
        normal(*image),
        normal(3),
        normal(3),
        constant(0.1, -0.2, 0.3),
        constant(0.5, 1.0, 2.0),
    )
case("batch_norm", "without weight and bias", lambda F, x: F.batch_norm(x, None, None, training=True), normal(6, 3))
case("batch_norm", "without bias", lambda F, x, w: F.batch_norm(x, None, None, w, None, True), normal(6, 3), normal(3))
case("batch_norm", "a large eps", lambda F, x: F.batch_norm(x, None, None, training=True, eps=0.5), normal(6, 3))
case(
    "batch_norm",
    "evaluation, no samples",
    lambda F, x, mean, var: F.batch_norm(x, mean.data, var.data),
    normal(0, 1),
    constant(0.1),
    constant(2.0),
)
case("layer_norm", "last axis", lambda F, x, w, b: F.layer_norm(x, w, b), normal(5, 4), normal(4), normal(4))
case("layer_norm", "two axes", lambda F, x, w, b: F.layer_norm(x, w, b), normal(5, 3, 4), normal(3, 4), normal(3, 4))
case("layer_norm", "sequence", lambda F, x, w, b: F.layer_norm(x, w, b), normal(2, 5, 4), normal(4), normal(4))
case("layer_norm", "without bias", lambda F, x, w: F.layer_norm(x, w), normal(5, 4), normal(4))
case("layer_norm", "a large eps", lambda F, x, w: F.layer_norm(x, w, eps=0.5), normal(5, 4), normal(4))
case("layer_norm", "one vector", lambda F, x, w, b: F.layer_norm(x, w, b), normal(4), normal(4), normal(4))
case("layer_norm", "no samples", lambda F, x, w, b: F.layer_norm(x, w, b), normal(0, 4), normal(4), normal(4))
case(  # exactly zero; PyTorch's float32 is 2e-5 off, rounding divided by sqrt(eps)
    "layer_norm",
    "one feature",
    lambda F, x, w, b: F.layer_norm(x, w, b),
    normal(5, 1),
    normal(1),
    normal(1),
    peer=False,
)
for what, shape, groups in (
    ("features", (3, 6), 2),
    ("one group", (3, 4, 2, 5), 1),
    ("two groups", (3, 4, 2, 5), 2),
    ("a channel each", (3, 4, 2, 5), 4),
    ("sequence", (3, 6, 5), 3),
    ("one sample", (1, 4, 3), 2),
):
    case(
        "group_norm",
        what,
        lambda F, x, w, b, groups=groups: F.group_norm(x, groups, w, b),
        normal(*shape),
        normal(shape[1]),
        normal(shape[1]),
    )
case("group_norm", "without weight and bias", lambda F, x: F.group_norm(x, 2), normal(3, 4, 5))
case("group_norm", "a large eps", lambda F, x: F.group_norm(x, 2, eps=0.5), normal(3, 4, 5))
case("group_norm", "no samples", lambda F, x: F.group_norm(x, 2), normal(0, 4, 5), peer=False)

# softmax and the losses
for operation in ("softmax", "log_softmax"):
    for what, shape, axis in (
        ("last axis", (3, 4), -1),
        ("first axis", (3, 4), 0),
        ("middle axis", (2, 3, 4), 1),
        ("vector", (4,), 0),
        ("length 1", (3, 1), 1),
        ("empty", (0, 4), 1),
        ("nothing to normalise", (4, 0), 1),
    ):
        case(operation, what, lambda F, x, name=operation, axis=axis: getattr(F, name)(x, axis), normal(*shape))
    case(operation, "large", lambda F, x, name=operation: getattr(F, name)(x * 1e3), normal(3, 4), smooth=False)
for reduction in ("mean", "sum", "none"):
    case(
        "cross_entropy",
        reduction,
        lambda F, x, y, reduction=reduction: F.cross_entropy(x, y, reduction),
        normal(6, 4),
        integers(4, 6),
    )
    case(
        "mse_loss",
        reduction,
        lambda F, x, y, reduction=reduction: F.mse_loss(x, y, reduction),
        normal(6, 4),
        normal(6, 4),
    )
case("cross_entropy", "one sample", lambda F, x, y: F.cross_entropy(x, y), normal(1, 4), integers(4, 1))
case("cross_entropy", "one class", lambda F, x, y: F.cross_entropy(x, y), normal(3, 1), integers(1, 3))
case("cross_entropy", "no samples", lambda F, x, y: F.cross_entropy(x, y, "sum"), normal(0, 4), integers(4, 0))
case("cross_entropy", "large", lambda F, x, y: F.cross_entropy(x * 1e3, y), normal(5, 4), integers(4, 5), smooth=False)
case("mse_loss", "0-d", lambda F, x, y: F.mse_loss(x, y), normal(), normal())
case("mse_loss", "empty", lambda F, x, y: F.mse_loss(x, y, "sum"), normal(0, 3), normal(0, 3))
case("mse_loss", "a tensor and itself", lambda F, x: F.mse_loss(x, x), normal(3))
case("dropout", "not training", lambda F, x: F.dropout(x, 0.5, False), normal(3, 4))
case("dropout", "p = 0", lambda F, x: F.dropout(x, 0.0), normal(3, 4))
case("dropout", "p = 1", lambda F, x: F.dropout(x, 1.0), normal(3, 4))
case("dropout", "p = 0.3", lambda F, x: F.dropout(x, 0.3), normal(30, 4), peer=False)
case("dropout", "0-d", lambda F, x: F.dropout(x, 0.3), normal(), peer=False)
case("dropout", "empty", lambda F, x: F.dropout(x, 0.3), normal(0, 4))
for what, queries, keys, values, causal in (
    ("self", (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4), False),
    ("causal", (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4), True),
    ("more keys than queries", (2, 3, 4), (2, 6, 4), (2, 6, 5), False),
    ("causal, more keys than queries", (2, 3, 4), (2, 6, 4), (2, 6, 5), True),
    ("causal, fewer keys than queries", (2, 6, 4), (2, 3, 4), (2, 3, 5), True),
    ("matrices", (5, 4), (5, 4), (5, 2), True),
    ("one of each", (1, 1, 1), (1, 1, 1), (1, 1, 1), True),
    ("no samples", (0, 5, 4), (0, 5, 4), (0, 5, 4), True),
    ("no queries", (2, 0, 4), (2, 3, 4), (2, 3, 5), False),
):
    case(
        "scaled_dot_product_attention",
        what,
        lambda F, q, k, v, causal=causal: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
        normal(*queries),
        normal(*keys),
        normal(*values),
    )
