"""A compiled kernel means what the reference means: both types, any layout, empty arrays, types it cannot take."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl.kernels import jit, reference
from minidl.kernels.reference.windows import Windows, adaptive_windows, output_size, sliding_windows
from tests.functional.cases import LAYOUTS
from tests.tiers import exhaustively
from tests.together import naming

Arguments = Callable[[np.random.Generator], list[Any]]


def drawn(*shapes: tuple[int, ...], after: tuple[Any, ...] = ()) -> Arguments:
    return of(*map(normal, shapes), *after)


def of(*operands: Any) -> Arguments:
    """Functions of the generator draw their operand; all else is passed as it is."""
    return lambda random: [operand(random) if callable(operand) else operand for operand in operands]


def normal(shape: tuple[int, ...]) -> Callable[[np.random.Generator], Any]:
    return lambda random: random.standard_normal(shape)


def positive(shape: tuple[int, ...]) -> Callable[[np.random.Generator], Any]:
    return lambda random: random.random(shape) + 0.5


def probabilities(shape: tuple[int, ...], after: tuple[Any, ...] = ()) -> Arguments:
    """A gradient and the softmax that it is the gradient of."""

    def make(random: np.random.Generator) -> list[Any]:
        g, out = random.standard_normal(shape), random.random(shape) + 0.1
        return [g, out / out.sum(-1, keepdims=True), *after]

    return make


def blocks(shape: tuple[int, ...], visible: int) -> Arguments:
    """Scores, the largest of those before and their sum of exponentials, for some rows none; some scores are hidden."""

    def make(random: np.random.Generator) -> list[Any]:
        scores, largest = random.standard_normal(shape), random.standard_normal((*shape[:-1], 1))
        scores[..., 1, :], largest[..., 1:3, :] = -np.inf, -np.inf
        return [scores, largest, np.exp(largest) * random.random(largest.shape), visible]

    return make


def blocks_backward(shape: tuple[int, ...], visible: int) -> Arguments:
    """Scores, the gradient of their probabilities, and two numbers a row; one row saw nothing."""

    def make(random: np.random.Generator) -> list[Any]:
        scores, g = random.standard_normal(shape), random.standard_normal(shape)
        logarithms, means = random.random((*shape[:-1], 1)) + 2, random.standard_normal((*shape[:-1], 1))
        logarithms[..., 1, :] = np.inf
        return [scores, g, logarithms, means, visible]

    return make


def labelled(n: int, classes: int, *before: tuple[int, ...]) -> Arguments:
    return of(*map(normal, before), lambda r: r.random((n, classes)), lambda r: r.integers(0, classes, n))


def convolution(x: tuple[int, ...], filters: tuple[int, ...], *geometry: Any) -> list[tuple[str, Arguments]]:
    """A convolution and its two gradients; geometry: stride, padding, dilation, groups."""
    g = (x[0], filters[0], *output_size(x, filters[2:], *geometry[:3]))
    return [
        ("conv2d", drawn(x, filters, (filters[0],), after=geometry)),
        ("conv2d", drawn(x, filters, after=(None, *geometry))),
        ("conv2d_backward_input", drawn(g, filters, after=(x, *geometry))),
        ("conv2d_backward_weight", drawn(g, x, after=(filters, *geometry))),
    ]


def pooling(x: tuple[int, ...], rows: Windows, columns: Windows) -> list[tuple[str, Arguments]]:
    """Both kinds of pooling, forward and backward."""
    g = (*x[:2], len(rows.start), len(columns.start))

    def positions(random: np.random.Generator) -> list[Any]:
        return [random.standard_normal(g), random.integers(0, x[2] * x[3], g, dtype=np.int32), x]

    return [
        ("max_pool2d", drawn(x, after=(rows, columns))),
        ("max_pool2d_backward", positions),
        ("avg_pool2d", drawn(x, after=(rows, columns))),
        ("avg_pool2d_backward", drawn(g, after=(x, rows, columns))),
    ]


def moments(*after: Any, count: int = 4) -> Arguments:
    """A parameter, its gradient and the optimizer's state (not negative)."""
    return of(normal((5, 7)), normal((5, 7)), *[positive((5, 7))] * (count - 2), *after)


def statistics(x: tuple[int, ...]) -> Arguments:
    """An image, the mean and variance of its channels, weight, bias and eps."""
    return of(normal(x), normal((3,)), positive((3,)), normal((3,)), normal((3,)), 1e-5)


def normalized_backward(shape: tuple[int, ...], rows: int, *more: Any) -> Arguments:
    """A gradient, x, mean and 1 / std (positive) of each of its rows, and what `of` takes."""

    def make(random: np.random.Generator) -> list[Any]:
        g, x = random.standard_normal((2, *shape))
        return [g, x, x.reshape(rows, -1).mean(axis=1) if rows else np.zeros(0), *of(positive((rows,)), *more)(random)]

    return make


def maxima(shape: tuple[int, ...], axis: Any) -> Arguments:
    """A gradient, an array with ties, its maxima over the axis and that axis."""

    def make(random: np.random.Generator) -> list[Any]:
        x = random.integers(0, 4, shape).astype(float)
        highest = x.max(axis=axis, keepdims=True)
        return [random.standard_normal(highest.shape), x, highest, axis]

    return make


def sparse_rows(n: int) -> Arguments:
    """Weights of eight columns and rows of them, one of which is empty and one of which has a column twice."""

    def make(random: np.random.Generator) -> list[Any]:
        sizes = [3, 0, 2, 5][:n] + [4] * (n - 4)
        starts = np.cumsum([0, *sizes])
        columns = random.integers(0, 8, starts[-1]).astype(np.int32)
        columns[:2] = 5
        labels = random.choice([-1.0, 1.0], n)
        return [random.standard_normal(8), random.standard_normal(starts[-1]), columns, starts, labels, 0.5]

    return make


IMAGE, CHANNELS = (4, 3, 5, 6), (3,)
ONE, NONE = (1, 1), (0, 0)
CONVOLUTIONS: tuple[Any, ...] = (
    ("stride and padding", (2, 3, 6, 7), (4, 3, 3, 2), ((2, 1), (1, 0), ONE, 1)),
    ("one axis strided", (2, 3, 6, 7), (4, 3, 3, 2), ((1, 2), (0, 1), ONE, 1)),
    ("1 x 1", (2, 3, 6, 7), (5, 3, 1, 1), (ONE, NONE, ONE, 1)),
    ("1 x 1, padded", (2, 3, 6, 7), (5, 3, 1, 1), (ONE, (1, 2), ONE, 1)),
    ("1 x 1, strided, padded", (2, 3, 6, 7), (5, 3, 1, 1), ((2, 3), (1, 0), ONE, 1)),
    ("dilated", (2, 3, 9, 8), (4, 3, 3, 2), (ONE, (2, 1), (2, 3), 1)),
    ("dilated and strided", (2, 3, 9, 8), (4, 3, 3, 2), ((3, 2), (2, 1), (2, 3), 1)),
    ("two groups", (2, 4, 6, 7), (6, 2, 3, 3), ((1, 2), (1, 1), ONE, 2)),
    ("two groups, 1 x 1", (2, 4, 6, 7), (6, 2, 1, 1), (ONE, NONE, ONE, 2)),
    ("depthwise", (2, 5, 6, 7), (5, 1, 3, 3), (ONE, (1, 1), ONE, 5)),
    ("depthwise, two filters a channel", (2, 3, 6, 7), (6, 1, 5, 3), ((2, 1), (2, 1), ONE, 3)),
    ("1 x 1, strided, in two groups", (2, 4, 6, 19), (6, 2, 1, 1), ((2, 2), NONE, ONE, 2)),
    ("1 x 1, more filters than pixels", (3, 8, 3, 2), (8, 8, 1, 1), ((2, 2), NONE, ONE, 1)),
    ("wide", (2, 2, 5, 21), (4, 2, 3, 3), (ONE, ONE, ONE, 1)),
    ("wide, every second pixel", (2, 2, 6, 35), (4, 2, 3, 3), ((2, 2), ONE, ONE, 1)),
    ("wide, every second pixel, no padding", (2, 2, 6, 34), (3, 2, 2, 2), ((2, 2), NONE, ONE, 1)),
    ("wide, every third pixel", (2, 2, 7, 25), (4, 2, 3, 3), ((3, 3), ONE, ONE, 1)),
    ("pixels that no window reads", (2, 2, 9, 20), (4, 2, 2, 2), ((3, 4), (1, 0), ONE, 1)),
    ("one column, every second pixel", (2, 2, 6, 1), (4, 2, 3, 1), ((2, 2), (1, 0), ONE, 1)),
    ("many filters", (3, 33, 5, 6), (64, 33, 3, 3), (ONE, ONE, ONE, 1)),
    ("many filters, strided, dilated, in groups", (3, 66, 9, 8), (128, 33, 3, 3), ((2, 1), ONE, (1, 2), 2)),
)
POOLINGS: tuple[Any, ...] = (
    ("2 x 2", (2, 3, 6, 8), *[sliding_windows(s, 2, 2, 0) for s in (6, 8)]),
    ("3 x 2", (2, 3, 6, 8), sliding_windows(6, 3, 3, 0), sliding_windows(8, 2, 2, 0)),
    ("the whole image", (2, 3, 6, 8), adaptive_windows(6, 1), adaptive_windows(8, 1)),
    ("a remainder", (2, 3, 5, 7), *[sliding_windows(s, 2, 2, 0) for s in (5, 7)]),
    ("overlapping, padded", (2, 3, 6, 7), sliding_windows(6, 3, 2, 1), sliding_windows(7, 2, 1, 0)),
    ("padding left out", (2, 3, 6, 7), *[sliding_windows(s, 3, 2, 1, count_include_pad=False) for s in (6, 7)]),
    ("a last window that overhangs", (2, 3, 6, 8), *[sliding_windows(s, 3, 2, 1, ceil_mode=True) for s in (6, 8)]),
    ("adaptive", (2, 3, 5, 7), adaptive_windows(5, 3), adaptive_windows(7, 9)),
)
ELEMENTWISE = ("relu", "tanh", "sigmoid", "gelu", "softplus", "log_sigmoid")
CHANNELLED = (IMAGE, (6, 3), (999, 3), (130, 3, 2, 2), (2, 3, 700))
SHAPES = ((3, 4), (), (0, 3), (1001,), (2, 70, 33))
REDUCTIONS: tuple[tuple[tuple[int, ...], Any], ...] = (
    *(((5, 4), axis) for axis in (0, 1, None, ())),
    *(((3, 4, 5), axis) for axis in (1, (0, 2), (-1, -3))),
    *(((2, 3, 4, 5), (1, 2)), ((300, 3), 0), ((3, 1100), 1), ((2, 300, 70), 1), ((9, 1, 2500), 0)),
)
GROUPED = ((4, 6), (3, 6, 5), (3, 6, 8, 9), (1, 6, 700), (0, 6, 4))

CASES: list[tuple[str, str, Arguments]] = [
    *(("exp", str(shape), drawn(shape)) for shape in SHAPES),
    *(("log", str(shape), lambda r, s=shape: [np.asarray(r.random(s) + 0.1)]) for shape in SHAPES),
    *(("power", f"{s} by {y}", drawn(s, after=(y,))) for s in SHAPES for y in (-2, -1, -0.5, 0.5, 1, 2, 3, 5, -1.5)),
    *(
        ("power", f"{s} by {t}", of(normal(s), lambda r, t=t: np.asarray(r.integers(-4, 5, t) / 2)))
        for s, t in (((3, 4), (3, 4)), ((3, 4), (4,)), ((), (3, 4)), ((0,), (1,)))
    ),
    *((name, str(shape), drawn(shape)) for name, shape in itertools.product(ELEMENTWISE, SHAPES)),
    *((f"{name}_backward", str(s), drawn(s, s)) for name, s in itertools.product(ELEMENTWISE, SHAPES)),
    *((n, f"axis {a}", drawn((3, 4, 5), after=(a,))) for n in ("softmax", "log_softmax") for a in (0, 1, 2, -1)),
    *((n, f"wide axis {a}", drawn((3, 30, 700), after=(a,))) for n in ("softmax", "log_softmax") for a in (0, 1, 2)),
    *((n, "wide", drawn((7, 300), after=(-1,))) for n in ("softmax", "log_softmax")),
    *((n, "empty", drawn((0, 3), after=(1,))) for n in ("softmax", "log_softmax")),
    *((n, "one", drawn((3, 1), after=(1,))) for n in ("softmax", "log_softmax")),
    *((f"{n}_backward", f"axis {a}", probabilities((3, 4, 5), (a,))) for n in ("softmax",) for a in (0, 1, 2, -1)),
    *(("log_softmax_backward", f"axis {a}", drawn((3, 4, 5), (3, 4, 5), after=(a,))) for a in (0, 1, -1)),
    ("cross_entropy", "plain", labelled(6, 4)),
    ("cross_entropy", "one class", labelled(6, 1)),
    ("cross_entropy", "empty", labelled(0, 4)),
    ("cross_entropy_backward", "each", labelled(6, 4, (6,))),
    ("cross_entropy_backward", "scalar", labelled(6, 4, ())),
    ("cross_entropy_backward", "empty", labelled(0, 4, (0,))),
    *(
        ("attention_softmax", f"{c} {s}", drawn((2, 3, *s), after=(0.5, c)))
        for c in (False, True)
        for s in ((4, 4), (4, 7), (7, 4))
    ),
    ("attention_softmax", "matrix", drawn((4, 4), after=(0.5, True))),
    ("attention_softmax", "empty", drawn((0, 4, 4), after=(0.5, True))),
    ("attention_softmax_backward", "plain", probabilities((2, 3, 4, 5), (0.5,))),
    ("attention_softmax_backward", "empty", probabilities((0, 4, 5), (0.5,))),
    *(
        ("attention_block", f"{s}, {visible} visible", blocks(s, visible))
        for s, visible in (((2, 4, 9), 9), ((2, 4, 9), 3), ((4, 9), -1), ((300, 40), 20), ((0, 4, 9), 9))
    ),
    *(
        ("attention_block_backward", f"{s}, {visible} visible", blocks_backward(s, visible))
        for s, visible in (((2, 4, 9), 9), ((2, 4, 9), 3), ((4, 9), -1), ((300, 40), 20), ((0, 4, 9), 9))
    ),
    *(("channel_statistics", str(s), drawn(s)) for s in (*CHANNELLED, (4, 3, 5), (1, 3, 2, 2))),
    *(("batch_norm", str(s), statistics(s)) for s in (*CHANNELLED, (0, 3, 2, 2))),
    *(
        (
            "batch_norm_backward",
            f"{s} {t}",
            of(normal(s), normal(s), normal(CHANNELS), positive(CHANNELS), normal(CHANNELS), t),
        )
        for s in (*CHANNELLED, (0, 3))
        for t in (True, False)
    ),
    ("layer_norm", "plain", drawn((5, 8), (8,), (8,), after=(1e-5,))),
    ("layer_norm", "without bias", drawn((5, 8), (8,), after=(None, 1e-5))),
    *(("group_norm", str(s), of(normal(s), 2, normal((6,)), normal((6,)), 1e-5)) for s in GROUPED),
    *(("group_norm_backward", str(s), normalized_backward(s, 2 * s[0], 2, normal((6,)))) for s in GROUPED),
    ("layer_norm", "long rows", drawn((3, 700), (700,), (700,), after=(1e-5,))),
    ("layer_norm", "empty", drawn((0, 8), (8,), (8,), after=(1e-5,))),
    ("layer_norm_backward", "plain", normalized_backward((5, 8), 5, normal((8,)))),
    ("layer_norm_backward", "many rows", normalized_backward((150, 7), 150, normal((7,)))),
    ("layer_norm_backward", "long rows", normalized_backward((3, 700), 3, normal((700,)))),
    ("layer_norm_backward", "empty", normalized_backward((0, 8), 0, normal((8,)))),
    *(
        (n, f"{s} over {a}{k}", drawn(s, after=(a, bool(k))))
        for n in ("sum", "mean", "max", "min")
        for s, a in REDUCTIONS
        for k in ("", ", kept")
    ),
    *((n, "0-d", drawn(())) for n in ("sum", "mean", "max", "min", "prod")),
    *((n, "no rows", drawn((0, 4), after=(1,))) for n in ("sum", "mean", "max", "min", "prod", "cumsum")),
    *(("prod", f"{s} over {a}", drawn(s, after=(a,))) for s in ((5, 4), (9, 30), (3, 4, 5)) for a in (0, 1, -1, None)),
    *(
        ("cumsum", f"{s} over {a}{b}", drawn(s, after=(a, bool(b))))
        for s in ((5, 4), (3, 4, 5), (7,))
        for a in (0, -1)
        for b in ("", ", backwards")
    ),
    *(
        (name, f"{s} by {t}", drawn(s, t))
        for name in ("remainder", "floor_divide")
        for s, t in (((3, 4), (3, 4)), ((3, 4), (4,)), ((4,), (3, 4)), ((3, 4), ()), ((), ()), ((0, 3), (3,)))
    ),
    *(("index_add", str(s), lambda r, s=s: [r.standard_normal(s), r.integers(0, 5, s[1]), 5]) for s in (
        (1, 7, 3), (4, 7, 1), (2, 300, 3), (2, 0, 3))),
    *(("extremum_backward", f"{s} over {a}", maxima(s, a)) for s, a in REDUCTIONS),
    ("extremum_backward", "no rows", maxima((0, 4), 1)),
    *(("sum_rows", str(s), drawn(s)) for s in ((5, 4), (0, 4), (1, 1), (300, 10))),
    *(("matmul", str(s), drawn(s, (4, 3))) for s in ((5, 4), (4,), (2, 5, 4), (0, 4))),
    ("matmul", "long rows and a vector", drawn((2, 2500), (2500,))),
    ("matmul", "a long vector and columns", drawn((2500,), (2500, 3))),
    ("matmul", "a long row and columns", drawn((1, 2048), (2048, 3))),
    ("linear", "plain", drawn((5, 4), (3, 4), (3,))),
    ("linear", "without bias", drawn((5, 4), (3, 4), after=(None,))),
    *(("sum_channels", str(s), drawn(s)) for s in (IMAGE, (0, 3, 2, 2))),
    ("embedding", "plain", lambda r: [r.standard_normal((5, 6)), r.integers(0, 5, (4, 3))]),
    ("embedding_backward", "plain", lambda r: [r.standard_normal((4, 3, 6)), r.integers(0, 5, (4, 3)), 5]),
    ("embedding_backward", "empty", lambda r: [r.standard_normal((0, 6)), r.integers(0, 5, 0), 5]),
    *(
        (name, what, make)
        for what, x, filters, geometry in CONVOLUTIONS
        for name, make in convolution(x, filters, *geometry)
    ),
    *(
        (name, what, make)
        for what, x, rows, columns in POOLINGS
        for name, make in pooling(x, rows, columns)
    ),
    ("sgd", "momentum", moments(0.1, 0.9, 0.1, 0.01, False, count=3)),
    ("sgd", "nesterov", moments(0.1, 0.9, 0.0, 0.01, True, count=3)),
    ("sgd_velocity", "momentum", moments(0.1, 0.9, 0.1, 0.01, False, count=3)),
    ("sgd_velocity", "nesterov", moments(0.1, 0.9, 0.0, 0.01, True, count=3)),
    ("sgd", "plain", moments(None, 0.1, 0.0, 0.0, 0.0, False, count=2)),
    ("adagrad", "plain", moments(0.1, 1e-8, 0.01, count=3)),
    ("rmsprop", "centered, momentum", moments(0.1, 0.9, 1e-3, 0.01, 0.5, count=5)),
    ("rmsprop", "plain", moments(None, None, 0.1, 0.9, 1e-8, 0.01, 0.0, count=3)),
    ("adam", "coupled", moments(3, 0.1, 0.9, 0.999, 1e-8, 0.01, False)),
    ("adam", "decoupled", moments(3, 0.1, 0.9, 0.999, 1e-8, 0.01, True)),
    ("lars", "plain", moments(0.1, 0.9, 0.01, count=3)),
    ("lamb_direction", "plain", moments(3, 0.9, 0.999, 1e-6, 0.01)),
    ("l2_norm", "plain", drawn((50, 7))),
    *(("lstm_cell", str(n), drawn((n, 12), (n, 3))) for n in (5, 1, 0)),
    *(("lstm_cell_backward", str(n), drawn((n, 3), (n, 3), (n, 12), (n, 3), (n, 3))) for n in (5, 1, 0)),
    *(("sparse_logistic_epoch", f"{n} rows", sparse_rows(n)) for n in (1, 4, 9)),
]  # fmt: skip
KERNELS = {name: {w: make for n, w, make in CASES if n == name} for name, _, _ in CASES}
"""For each kernel its cases, by name."""
IN_PLACE = {"sgd", "sgd_velocity", "adagrad", "rmsprop", "adam", "lars", "lamb_direction", "sparse_logistic_epoch"}
SCRATCH = {"attention_softmax": 1, "lstm_cell": 1, "attention_block": 1, "attention_block_backward": 2}
"""How many arguments, the first ones, a kernel may use as it likes."""
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 5e-3}


def names(module: Any) -> set[str]:
    return {name for name, thing in vars(module).items() if callable(thing) and not name.startswith("_")}


def run(result: Any, arguments: list[Any], name: str) -> list[np.ndarray]:
    """What a kernel returned, and its arrays afterwards."""
    returned = [] if result is None else list(result) if isinstance(result, tuple) else [result]
    after = [a for a in arguments if isinstance(a, np.ndarray)]
    return [np.asarray(array) for array in (returned if name in SCRATCH else returned + after)]


def arguments_of(make: Arguments, dtype: str, layout: Callable[[np.ndarray], np.ndarray]) -> list[Any]:
    made = []
    for argument in make(np.random.default_rng(0)):
        if isinstance(argument, (np.ndarray, np.floating)) and np.asarray(argument).dtype.kind == "f":
            made.append(layout(np.asarray(argument).astype(dtype)))
        else:
            made.append(layout(argument) if isinstance(argument, np.ndarray) else argument)
    return made


QUICK = [("float32", "contiguous"), ("float64", "transposed"), ("float16", "contiguous")]
MORE = [("float32", "strided"), ("float32", "transposed"), ("float64", "reversed"), ("float16", "strided")]


@pytest.mark.parametrize(("dtype", "layout"), [*QUICK, *exhaustively(*MORE)])
@pytest.mark.parametrize("name", KERNELS)
def test_compiled_equals_reference(name: str, dtype: str, layout: str) -> None:
    """And neither changes what it only reads, or returns memory of its arguments."""
    for what, make in KERNELS[name].items():
        results = []
        for module in (reference, jit):
            arguments = arguments_of(make, dtype, LAYOUTS[layout])
            before = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
            with naming(f"{name}: {what}, {dtype}, {layout}, {module.__name__}"), np.errstate(invalid="ignore"):
                returned = getattr(module, name)(*arguments)
                results.append(run(returned, arguments, name))
                if name not in IN_PLACE:
                    assert_left_alone(arguments, before, returned, SCRATCH.get(name, 0))
        with naming(f"{name}: {what}, {dtype}, {layout}"):
            assert_equal(name, *results, TOLERANCE[dtype])


def assert_left_alone(arguments: list[Any], before: list[Any], returned: Any, scratch: int) -> None:
    for a, b in list(zip(arguments, before, strict=True))[scratch:]:
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
            assert not any(
                np.shares_memory(a, one) for one in (returned if isinstance(returned, tuple) else [returned])
            )


def assert_equal(name: str, expected: list[np.ndarray], found: list[np.ndarray], tolerance: float) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype.kind == theirs.dtype.kind
        if name != "l2_norm" and theirs.dtype.kind == "f":
            assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def test_both_modules_offer_the_kernels_of_the_table() -> None:
    assert set(KERNELS) == names(reference) == names(jit)


@pytest.mark.parametrize("axis", [0, *exhaustively(1, -1)])
def test_an_array_that_repeats_its_numbers_counts_as_its_copy(axis: int) -> None:
    """An axis of stride 0, as `expand` and numpy's `broadcast_to` make it, lies nowhere in the order of the memory."""

    def repeating(array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array.take([0], axis), array.shape) if array.ndim > 1 and array.size else array

    def result(name: str, make: Arguments, layout: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
        arguments = arguments_of(make, "float32", layout)
        return run(getattr(jit, name)(*arguments), arguments, name)

    for name in KERNELS.keys() - IN_PLACE - SCRATCH.keys():
        for what, make in KERNELS[name].items():
            with naming(f"{name}: {what}"), np.errstate(all="ignore"):
                expected = result(name, make, lambda array: repeating(array).copy())
                assert_equal(name, expected, result(name, make, repeating), TOLERANCE["float32"])


both_modules = pytest.mark.parametrize("module", [reference, jit], ids=["numpy", "numba"])
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-30, 88.0, -88.0, 104.0, -104.0, 1.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_numbers_give_the_same(dtype: str) -> None:
    x = SPECIAL.astype(dtype)
    for name in ELEMENTWISE:
        with naming(name), np.errstate(all="ignore"):
            np.testing.assert_allclose(getattr(jit, name)(x), getattr(reference, name)(x), rtol=1e-5, atol=1e-30)
            backwards = [getattr(module, f"{name}_backward")(np.ones_like(x), x) for module in (jit, reference)]
            np.testing.assert_allclose(*backwards, rtol=1e-5, atol=1e-6)


@both_modules
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_neither_overflows_nor_hides_what_is_not_a_number(module: Any, dtype: str) -> None:
    rows = np.array([[1e4, 0.0, -1e4], [-1e4, -1e4, -1e4], [-np.inf, 0.0, 0.0], [np.nan, 0.0, 1.0]], dtype=dtype)
    expected = np.array([[1, 0, 0], [1 / 3] * 3, [0, 0.5, 0.5], [np.nan] * 3], dtype=dtype)
    np.testing.assert_allclose(module.softmax(rows.copy(), -1), expected, rtol=1e-6)
    scale = np.dtype(dtype).type(1)
    np.testing.assert_allclose(module.attention_softmax(rows.copy(), scale, False), expected, rtol=1e-6)
    losses, found = module.cross_entropy(rows, np.array([1, 0, 1, 0]))
    np.testing.assert_allclose(losses, np.array([1e4, np.log(3), np.log(2), np.nan], dtype=dtype), rtol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@both_modules
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_of_the_largest_wins_in_pooling_and_what_is_not_a_number_shows(module: Any, dtype: str) -> None:
    x = np.array([[[[1, 3, 3], [3, 2, 3], [0, 0, 0]]]], dtype=dtype)
    out, position = module.max_pool2d(x, *[sliding_windows(3, 2, 1, 0)] * 2)
    np.testing.assert_array_equal(out, [[[[3, 3], [3, 3]]]])
    np.testing.assert_array_equal(position, [[[[1, 1], [3, 5]]]])
    out, position = module.max_pool2d(np.array([[[[1.0, np.nan], [3.0, 2.0]]]]), *[sliding_windows(2, 2, 2, 0)] * 2)
    assert np.isnan(out).all()
    assert position.item() == 1


@both_modules
def test_cross_entropy_refuses_a_label_that_is_no_class(module: Any) -> None:
    logits = np.ones((3, 4), np.float32)
    for label in (-1, 4, 2**40):
        with pytest.raises(IndexError, match="0 <= label < 4"):
            module.cross_entropy(logits, np.array([0, label, 3]))
    assert np.all(logits == 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linear_has_the_bits_of_the_product_plus_the_bias(dtype: str) -> None:
    for n, n_in, n_out in ((64, 128, 10), (64, 10, 128), (1, 4, 3), (4, 3, 1), (1, 1, 1)):
        random = np.random.default_rng(0)
        x, w, b = (random.standard_normal(size).astype(dtype) for size in ((n, n_in), (n_out, n_in), n_out))
        np.testing.assert_array_equal(jit.linear(x, w, b), x @ w.T + b, strict=True)


def test_the_sum_of_all_numbers_has_the_bits_of_the_sum_over_all_axes() -> None:
    for shape in ((1,), (7,), (64,), (3, 5), (1000, 3)):
        x, axes = np.random.default_rng(0).standard_normal(shape).astype(np.float32), tuple(range(len(shape)))
        for kernel in (jit.sum, jit.mean):
            np.testing.assert_array_equal(kernel(x), kernel(x, axes), strict=True)


def test_norms_of_numbers_far_from_zero_are_as_exact_as_numpys() -> None:
    """Numbers around 100 with the standard deviation 1: a mean that is wrong in its last digits shows in the result."""
    wide = (np.random.default_rng(0).standard_normal((60, 6, 65)) + 100.3).astype(np.float32)
    for name, x, *settings in (
        *(("layer_norm", np.ascontiguousarray(wide[:, 0, :length])) for length in (5, 16, 31, 48)),
        ("group_norm", wide, 2),
    ):
        width = x.shape[1]
        settings += [np.full(width, 0.7, np.float32), np.full(width, -0.3, np.float32), 1e-5]
        exact = getattr(reference, name)(x.astype(np.float64), *settings)[0]
        compiled, plain = (abs(getattr(module, name)(x, *settings)[0] - exact).max() for module in (jit, reference))
        with naming(name, x.shape):
            assert compiled < 1.3 * plain
