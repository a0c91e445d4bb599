"""What `operations.py` measures: a list of operations on operands, from tiny to large. Add a line to add a case.

A case calls `function(F, *operands)`, where F is `minidl.functional`, or PyTorch dressed as it
(`tests/functional/dressed_torch.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16


@dataclass(frozen=True)
class Operand:
    """One array of a case. differentiable: its gradient is computed, and timed."""

    shape: tuple[int, ...]
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    differentiable: bool = True


def normal(*shape: int) -> Operand:
    """Standard normal numbers. A bare tuple of lengths in a case means this."""
    return Operand(shape, lambda random, shape: random.standard_normal(shape))


def positive(*shape: int) -> Operand:
    return Operand(shape, lambda random, shape: random.uniform(0.5, 2.0, shape))


def fixed(*shape: int) -> Operand:
    """Standard normal numbers without a gradient: data, the input of a first layer."""
    return Operand(shape, lambda random, shape: random.standard_normal(shape), differentiable=False)


def integers(high: int, *shape: int) -> Operand:
    """Whole numbers 0 <= i < high: labels, indices."""
    return Operand(shape, lambda random, shape: random.integers(0, high, shape), differentiable=False)


def probabilities(*shape: int) -> Operand:
    """Numbers in 0 <= p < 1 without a gradient."""
    return Operand(shape, lambda random, shape: random.random(shape), differentiable=False)


def booleans(*shape: int) -> Operand:
    return Operand(shape, lambda random, shape: random.random(shape) < 0.5, differentiable=False)


@dataclass(frozen=True)
class Case:
    """An operation, what is special about this case, and its operands.

    transposed: floating-point operands with two axes or more lie in memory with the last two axes exchanged.
    """

    operation: str
    what: str
    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    dtype: str = "float32"
    transposed: bool = False

    def arrays(self) -> list[np.ndarray]:
        random = np.random.default_rng(0)
        return [self._lay_out(operand.draw(random, operand.shape)) for operand in self.operands]

    def _lay_out(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        array = array.astype(bfloat16 if self.dtype == "bfloat16" else self.dtype)
        if self.transposed and array.ndim > 1:
            return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
        return array

    def __repr__(self) -> str:
        shapes = " ".join("x".join(map(str, operand.shape)) or "()" for operand in self.operands)
        parts = (self.operation, self.what, shapes, self.dtype, "transposed" if self.transposed else "")
        return " ".join(part for part in parts if part)


CASES: list[Case] = []


def case(
    operation: str, function: Callable[..., Any], *operands: Operand | tuple[int, ...], what: str = "", **kind: Any
) -> None:
    """Add a case; `kind`: dtype="float64", transposed=True."""
    made = tuple(operand if isinstance(operand, Operand) else normal(*operand) for operand in operands)
    CASES.append(Case(operation, what, function, made, **kind))


def each_kind(operation: str, function: Callable[..., Any], *operands: Operand | tuple[int, ...]) -> None:
    """Add four cases: contiguous and transposed, float32 and float64."""
    for dtype in ("float32", "float64"):
        for transposed in (False, True):
            case(operation, function, *operands, dtype=dtype, transposed=transposed)


SIZES: tuple[tuple[int, ...], ...] = ((4, 5), (64, 128), (256, 2048))  # 20 numbers, 8 thousand, half a million

# ---- arithmetic and elementwise functions ----

for name in ("add", "sub", "mul", "div"):
    for size in SIZES:
        case(name, lambda F, a, b, name=name: getattr(F, name)(a, b), size, positive(*size))
    case(name, lambda F, a, b, name=name: getattr(F, name)(a, b), SIZES[1], positive(128), what="a row")
    case(name, lambda F, a, b, name=name: getattr(F, name)(a, b), SIZES[1], positive(64, 1), what="a column")
for exponent in (2, 3, 0.5, -1):
    for size in SIZES:
        case("pow", lambda F, a, exponent=exponent: a**exponent, positive(*size), what=f"{exponent}")
for exponent in (2, 3, 7, -2):
    for size in SIZES:
        case("pow", lambda F, a, exponent=exponent: a**exponent, size, what=f"{exponent}, negative numbers too")
case("pow", lambda F, a: a**1.5, SIZES[2], what="1.5, negative numbers too")
case("pow", lambda F, a: a**7, positive(*SIZES[2]), what="7")
for size in (*SIZES[:2], (10, 10)):
    case("pow", lambda F, a, b: a**b, positive(*size), size, what="two tensors")
for size in SIZES:
    case("remainder", lambda F, a, b: F.remainder(a, b), size, positive(*size))
    case("floor_divide", lambda F, a, b: F.floor_divide(a, b), fixed(*size), fixed(*size))
    case("maximum", lambda F, a, b: F.maximum(a, b), size, size)
    case("minimum", lambda F, a, b: F.minimum(a, b), size, size)
    case("clamp", lambda F, a: F.clamp(a, -0.5, 0.5), size)
    case("square", lambda F, a: F.square(a), size)
    case("sin", lambda F, a: F.sin(a), size)
for name in ("exp", "log", "sqrt", "tanh", "sigmoid", "relu", "gelu", "softplus", "logsigmoid", "abs", "neg"):
    maker = positive if name in ("log", "sqrt") else normal
    each_kind(name, lambda F, a, name=name: getattr(F, name)(a), maker(*SIZES[1]))
    for size in (SIZES[0], SIZES[2]):
        case(name, lambda F, a, name=name: getattr(F, name)(a), maker(*size))

# ---- reductions ----

for name in ("sum", "mean", "amax"):
    for size in SIZES:
        case(name, lambda F, a, name=name: getattr(F, name)(a), size, what="all")
        for axis in (0, 1):
            case(name, lambda F, a, name=name, axis=axis: getattr(F, name)(a, axis), size, what=f"axis {axis}")
    for size in ((100_000, 3), (3, 100_000), (1000, 10)):
        for axis in (0, 1):
            case(name, lambda F, a, name=name, axis=axis: getattr(F, name)(a, axis), size, what=f"axis {axis}")
    case(name, lambda F, a, name=name: getattr(F, name)(a, (0, 2, 3)), (32, 16, 16, 16), what="channels")

for name in ("sum", "mean", "amax", "amin"):
    for size in ((256, 512), (100_000, 4), (1000, 100)):
        for axis in (0, 1):
            each_kind(name, lambda F, a, name=name, axis=axis: getattr(F, name)(a, axis), size)
for size, row in (((256, 512), (512,)), ((10_000, 10), (10_000, 1)), ((64, 64, 28, 28), (64, 1, 1))):
    each_kind("mul", lambda F, a, b: F.mul(a, b), size, row)  # backward sums over what was repeated

for name in ("var", "std"):
    for size in ((64, 128), (256, 2048), (1000, 10), (100_000, 4)):
        for axis in (0, 1):
            case(name, lambda F, a, name=name, axis=axis: getattr(F, name)(a, axis), size, what=f"axis {axis}")
for size in ((64, 128), (256, 2048), (1000, 10), (100_000, 4)):
    for axis in (0, 1):
        case("min", lambda F, a, axis=axis: F.min(a, axis=axis), size, what=f"axis {axis}")
        case("argmax", lambda F, a, axis=axis: F.argmax(a, axis), size, what=f"axis {axis}")
        case("max", lambda F, a, axis=axis: F.max(a, axis)[0], size, what=f"with indices, axis {axis}")
        case("logsumexp", lambda F, a, axis=axis: F.logsumexp(a, axis), size, what=f"axis {axis}")
        case("cumsum", lambda F, a, axis=axis: F.cumsum(a, axis), size, what=f"axis {axis}")
        case("prod", lambda F, a, axis=axis: F.prod(a, axis), size, what=f"axis {axis}")
        case("norm", lambda F, a, axis=axis: F.norm(a, 2, axis), size, what=f"axis {axis}")
for size in ((64, 10), (1024, 1000)):
    case("topk", lambda F, a: F.topk(a, 5)[0], size, what="5 of a row")
    case("sort", lambda F, a: F.sort(a)[0], size)

# ---- moving numbers ----

for size in SIZES:
    case("transpose", lambda F, a: F.transpose(a), size)
    case("reshape", lambda F, a: F.reshape(a, -1), size)
    case("cat", lambda F, a, b: F.cat([a, b], 0), size, size, what="axis 0")
    case("cat", lambda F, a, b: F.cat([a, b], 1), size, size, what="axis 1")
    case("stack", lambda F, a, b: F.stack([a, b], 0), size, size)
    case("where", lambda F, c, a, b: F.where(c, a, b), booleans(*size), size, size)
    case("getitem", lambda F, a: a[1:, ::2], size, what="slices")
for n, d, count in ((10, 4, 5), (1000, 64, 256), (50_000, 128, 4096), (1000, 1, 5000), (65, 384, 2048)):
    case("getitem", lambda F, a, i: F.getitem(a, i), (n, d), integers(n, count), what="rows")
    case("embedding", lambda F, i, w: F.embedding(i, w), integers(n, count), (n, d))
case("getitem", lambda F, a, i: F.getitem(a, (slice(None), i)), (256, 512), integers(512, 300), what="columns")
case(
    "getitem", lambda F, a, i, j: F.getitem(a, (i, j)), (256, 100), integers(256, 256), integers(100, 256), what="pairs"
)
case("getitem", lambda F, a, m: F.getitem(a, m), (256, 512), booleans(256, 512), what="a mask")

for size in SIZES:
    case("split", lambda F, a: F.split(a, 2, 0)[0], size, what="axis 0, the first chunk")
    case("split", lambda F, a: F.cat(F.chunk(a, 2, 1), 1), size, what="axis 1, put together again")
    case("masked_fill", lambda F, a, m: F.masked_fill(a, m, 0.5), size, booleans(*size))
    case("tril", lambda F, a: F.tril(a), size)
    case("clone", lambda F, a: F.clone(a), size)
    case("expand", lambda F, a: F.expand(a, (4, *a.shape)), size)
for n, d, count in ((100, 64, 50), (1000, 64, 256), (512, 1000, 500)):
    for axis in (0, 1):
        rows = integers((n, d)[axis], count)
        shape = (count, d) if axis == 0 else (n, count)
        case("index_select", lambda F, a, i, axis=axis: F.index_select(a, axis, i), (n, d), rows, what=f"axis {axis}")
        case(
            "index_add",
            lambda F, a, i, b, axis=axis: F.index_add(a, axis, i, b),
            (n, d),
            rows,
            shape,
            what=f"axis {axis}",
        )
    case("gather", lambda F, a, i: F.gather(a, 1, i), (n, d), integers(d, n, 5))
    case("scatter_add", lambda F, a, i, b: F.scatter_add(a, 1, i, b), (n, d), integers(d, n, 5), (n, 5))

# ---- 16-bit numbers ----

for dtype in ("float16", "bfloat16"):
    for size in SIZES:
        for name in ("add", "mul"):
            case(name, lambda F, a, b, name=name: getattr(F, name)(a, b), size, size, dtype=dtype)
        for name in ("relu", "exp", "sum", "softmax"):
            case(
                name,
                lambda F, a, name=name: getattr(F, name)(a, -1) if name == "softmax" else getattr(F, name)(a),
                size,
                dtype=dtype,
            )
        case("astype", lambda F, a: F.astype(a, "float32"), size, what="to float32", dtype=dtype)
        case("astype", lambda F, a, dtype=dtype: F.astype(a, dtype), size, what=f"to {dtype}")
    for n, k, m in ((4, 5, 3), (64, 128, 10), (128, 512, 512)):
        case("matmul", lambda F, a, b: F.matmul(a, b), (n, k), (k, m), dtype=dtype)
        case("linear", lambda F, x, w, b: F.linear(x, w, b), (n, k), (m, k), (m,), dtype=dtype)

# ---- products and layers ----

for n, k, m in ((4, 5, 3), (64, 128, 10), (128, 512, 512)):
    case("matmul", lambda F, a, b: F.matmul(a, b), (n, k), (k, m))
    case("linear", lambda F, x, w, b: F.linear(x, w, b), (n, k), (m, k), (m,))
case("linear", lambda F, x, w, b: F.linear(x, w, b), (16, 64, 128), (512, 128), (512,), what="sequence")
case("matmul", lambda F, a, b: F.matmul(a, b), (16, 64, 32), (16, 32, 64), what="batches")
for kernel, channels, filters, side, stride in (
    (1, 16, 32, 14, 1),
    (1, 64, 64, 28, 1),
    (1, 64, 128, 28, 2),
    (3, 1, 8, 8, 1),
    (3, 16, 16, 32, 1),
    (3, 16, 32, 32, 2),
    (3, 64, 64, 14, 1),
    (3, 256, 256, 7, 1),
    (5, 1, 6, 28, 1),
    (5, 6, 16, 14, 1),
    (7, 3, 64, 64, 2),
    (11, 3, 64, 64, 4),
):
    case(
        "conv2d",
        lambda F, x, w, b, stride=stride, padding=kernel // 2: F.conv2d(x, w, b, stride, padding),
        (8, channels, side, side),
        (filters, channels, kernel, kernel),
        (filters,),
        what=f"stride {stride}",
    )
for groups, channels, filters, kernel, side, stride in (
    (32, 32, 32, 3, 28, 1),
    (32, 32, 32, 3, 28, 2),
    (128, 128, 128, 3, 14, 1),
    (16, 16, 32, 5, 28, 1),
    (2, 48, 128, 5, 27, 1),
    (8, 64, 64, 3, 14, 1),
):
    case(
        "conv2d",
        lambda F, x, w, b, groups=groups, stride=stride, padding=kernel // 2: F.conv2d(
            x, w, b, stride, padding, 1, groups
        ),
        (8, channels, side, side),
        (filters, channels // groups, kernel, kernel),
        (filters,),
        what=f"{groups} groups, stride {stride}",
    )
each_kind("conv2d", lambda F, x, w, b: F.conv2d(x, w, b, 1, 1), (8, 16, 28, 28), (16, 16, 3, 3), (16,))
for name in ("max_pool2d", "avg_pool2d"):
    each_kind(name, lambda F, x, name=name: getattr(F, name)(x, 3, 2, 1), (8, 16, 28, 28))
case("conv2d", lambda F, x, w, b: F.conv2d(x, w, b, 1, 2, 2), (8, 16, 32, 32), (16, 16, 3, 3), (16,), what="dilated")
for side in (1, 3, 7):
    for name in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
        case(name, lambda F, x, name=name, side=side: getattr(F, name)(x, side), (8, 64, 14, 14), what=f"{side}")
for window, stride, padding in ((2, 2, 0), (3, 2, 0), (3, 2, 1), (3, 1, 1), (5, 3, 2), (7, 7, 0)):
    for name in ("max_pool2d", "avg_pool2d"):
        for size in ((1, 3, 14, 14), (8, 16, 32, 32), (8, 64, 56, 56)):
            case(
                name,
                lambda F, x, name=name, window=window, stride=stride, padding=padding: getattr(F, name)(
                    x, window, stride, padding
                ),
                size,
                what=f"{window}x{window} s{stride} p{padding}",
            )
for size in ((64, 128), (256, 512), (8, 16, 32, 32), (8, 64, 14, 14)):
    case(
        "batch_norm", lambda F, x, w, b: F.batch_norm(x, None, None, w, b, training=True), size, (size[1],), (size[1],)
    )
for size in ((4, 5), (64, 128), (1024, 512), (8192, 16)):
    case("layer_norm", lambda F, x, w, b: F.layer_norm(x, w, b), size, (size[1],), (size[1],))
for size in ((256, 512), (100_000, 4), (64, 32, 7, 7), (128, 512, 2, 2)):
    each_kind(
        "batch_norm", lambda F, x, w, b: F.batch_norm(x, None, None, w, b, training=True), size, (size[1],), (size[1],)
    )
for size in ((512, 768), (10_000, 10), (8, 100_000)):
    each_kind("layer_norm", lambda F, x, w, b: F.layer_norm(x, w, b), size, (size[1],), (size[1],))
for size, groups in (((256, 512), 8), ((256, 512), 256), ((32, 64, 28, 28), 32), ((16, 64, 100), 64)):
    each_kind(
        "group_norm",
        lambda F, x, w, b, groups=groups: F.group_norm(x, groups, w, b),
        size,
        (size[1],),
        (size[1],),
    )
for name in ("softmax", "log_softmax"):
    for size in ((4, 5), (64, 10), (64, 1000), (4096, 64)):
        case(name, lambda F, x, name=name: getattr(F, name)(x, -1), size)
    case(name, lambda F, x, name=name: getattr(F, name)(x, 1), (8, 21, 32, 32), what="images")
    for axis in (1, 2, 3):
        each_kind(name, lambda F, x, name=name, axis=axis: getattr(F, name)(x, axis), (16, 20, 56, 56))
    each_kind(name, lambda F, x, name=name: getattr(F, name)(x, 1), (10_000, 16))
    case(name, lambda F, x, name=name: getattr(F, name)(x, 0), (64, 1000), what="axis 0")
for n, classes in ((4, 5), (64, 10), (1024, 1000)):
    case("cross_entropy", lambda F, x, y: F.cross_entropy(x, y), (n, classes), integers(classes, n))
    case("mse_loss", lambda F, x, y: F.mse_loss(x, y), (n, classes), fixed(n, classes))
    case(
        "binary_cross_entropy_with_logits",
        lambda F, x, y: F.binary_cross_entropy_with_logits(x, y),
        (n, classes),
        probabilities(n, classes),
    )
    case("l1_loss", lambda F, x, y: F.l1_loss(x, y), (n, classes), fixed(n, classes))
for size in ((8, 21, 32, 32), (2, 20, 128, 128)):
    case("cross_entropy", lambda F, x, y: F.cross_entropy(x, y), size, integers(size[1], size[0], *size[2:]))
case("cross_entropy", lambda F, x, y: F.cross_entropy(x, y, label_smoothing=0.1), (256, 100), integers(100, 256))
for n, steps, width, hidden in ((1, 10, 16, 32), (16, 20, 64, 64), (32, 35, 128, 256)):
    case(
        "lstm",
        lambda F, x, h, c, *weights: F.lstm(x, h, c, *weights)[0],
        (steps, n, width),
        (n, hidden),
        (n, hidden),
        (4 * hidden, width),
        (4 * hidden, hidden),
        (4 * hidden,),
        (4 * hidden,),
    )
for size in SIZES:
    case("dropout", lambda F, x: F.dropout(x, 0.5, True), size)
for heads, t, d in ((4, 16, 16), (8, 64, 32), (4, 256, 64)):
    for causal in (False, True):
        case(
            "scaled_dot_product_attention",
            lambda F, q, k, v, causal=causal: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
            *[(4, heads, t, d)] * 3,
            what="causal" if causal else "",
        )
    case(
        "scaled_dot_product_attention",
        lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        *[(4, heads, t, d)] * 3,
        booleans(t, t),
        what="mask",
    )
