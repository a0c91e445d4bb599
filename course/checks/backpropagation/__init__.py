"""The checks of chapter 01: backpropagation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.checks.backpropagation.chain_memory import MODES, cause_of_all, peak
from course.checks.backpropagation.counted_graph import (
    doubled,
    known_slips,
    node_in_words,
    random_graph,
)
from course.checks.backpropagation.local_rules import (
    Shape,
    compare_memory,
    matmul_w_mistakes,
    matmul_x_mistakes,
    max_mistakes,
    pair,
    sum_mistakes,
    summed_to,
)
from course.checks.backpropagation.planted_gradients import GradientCase, cases, compare_verdict
from course.checks.backpropagation.walk_order import (
    ALL_PARENTS,
    BACKWARD_TWICE,
    LATE_SHARES,
    LEFT_BEHIND,
    MANY_PARENTS,
    OF_TWO_ROOTS,
    SPECIAL_VALUES,
    compare_calls,
    compare_handed,
    compare_reached,
    walk,
)
from course.checks.library_versions import BUILDS
from course.judging import Answer, ChapterChecks, Part, expect
from course.probes.backpropagation import Recipe

chapter = ChapterChecks("01_backpropagation", BUILDS["01_backpropagation"])
hint = chapter.hint

FLOAT64 = {"rtol": 1e-9, "atol": 1e-12}
"""Tolerances for rounding in float64, for any order of a few additions; a float32 result is rejected."""

TINY = 1e-8
"""A factor of some gradients: what is small is not 0."""


# ---- vector-Jacobian products ----


@chapter.exercise(
    points=1,
    hints=[
        "If x grows by a little d, x * y grows by d * y. How much does the loss grow, if it grows by g for each unit?",
        "The local gradient with respect to x is y, and the other way round. Both are multiplied by g.",
        "Write the two results to new arrays: g, x and y stay as they are.",
    ],
)
def vjp_mul(
    answer: Answer, part: Part, *, shapes: Sequence[Shape] = ((4,), (), (1,), (2, 3), (0,), (40, 30)), seed: int = 0
) -> None:
    """The gradients of a product, and nothing overwritten.

    A changed argument costs the first part in which it shows, so the part about it comes first.
    """
    random = np.random.default_rng(seed)

    def operands(shape: Shape) -> list[Any]:
        return [np.asarray(array) for array in random.standard_normal((3, *shape))]

    with part(0.25, "g, x and y are left as they were"):
        for shape in shapes:
            called = f"vjp_mul(g, x, y) of arrays of shape {shape}"
            for gradient in pair(answer(*operands(shape)), called):
                expect.true(
                    np.shape(gradient) == shape,
                    f"{called}: expected two arrays of that shape, got {expect.shown(gradient)}.",
                )
    with part(0.75, "the gradients of x and y"):
        for shape in shapes:
            g, x, y = operands(shape)
            x.flat[:1] = 0.0  # nobody may divide by it
            g.flat[1:2] *= TINY
            called = f"vjp_mul(g, x, y) of arrays of shape {shape}"
            gx, gy = pair(answer(g, x, y), called)
            one_array = "Both results are the gradient of y: one array was filled twice, and returned for both."
            swapped = "The two are swapped: what x is multiplied by is y."
            filled_twice = {one_array: g * x} if np.array_equal(gx, gy) and np.any(g * x) else {}
            no_g = "The local gradients are right, but g is missing: what arrives from above multiplies them."
            expect.array(
                gx, g * y, f"{called}, gradient of x", **FLOAT64, mistakes=filled_twice | {swapped: g * x, no_g: y}
            )
            overwritten = "g was overwritten by the first gradient before the second used it."
            mistakes = {swapped: g * y, no_g: x, overwritten: g * y * x}
            expect.array(gy, g * x, f"{called}, gradient of y", **FLOAT64, mistakes=mistakes)
            for gradient in pair(answer(g, x, x), f"vjp_mul(g, x, x), x of shape {shape}"):
                both = {"Each operand gets the gradient of its own use, also where x and y are one array.": 2 * g * x}
                expect.array(gradient, g * x, f"vjp_mul(g, x, x), x of shape {shape}", **FLOAT64, mistakes=both)


@chapter.exercise(
    points=2,
    hints=[
        "Only the largest element of a row has an influence on the row's maximum: the others get 0.",
        "`x == x.max(axis=1, keepdims=True)` is True where the gradient goes. g has one number a row: `g[:, None]`.",
        "Ties share: by what must a row of the mask be divided, so that its sum is 1?",
    ],
)
def vjp_max(
    answer: Answer,
    part: Part,
    *,
    shapes: Sequence[Shape] = ((3, 4), (4, 2), (3, 3), (1, 1), (0, 3), (40, 30)),
    seed: int = 0,
) -> None:
    """The gradient goes to the largest element of each row; ties share it."""
    random = np.random.default_rng(seed)
    for points, title, tied in ((1, "the largest of each row gets the gradient", False), (1, "ties share it", True)):
        with part(points, title):
            for rows, columns in shapes:
                if tied and not rows:
                    continue  # there are no ties, and an answer that fails without rows has lost a point for it already
                g = random.standard_normal(rows)
                g[1:2] *= TINY
                x = random.permuted(np.tile(np.arange(columns) - 1.5, (rows, 1)), axis=1)
                level = random.permutation(rows)[:, None] * 3.0
                if tied:
                    x[:, : columns // 2 + 1] = 7.0
                    x[: rows // 2] = 7.0  # whole rows
                    x = random.permuted(x, axis=1)
                x += level
                if not tied and rows and columns > 1:  # one close to the largest, but not equal to it
                    second = np.argsort(x, axis=1)[:, -2:-1]
                    np.put_along_axis(x, second, np.nextafter(x.max(axis=1, keepdims=True), -np.inf), axis=1)
                largest = x == x.max(axis=1, keepdims=True)
                want = largest / largest.sum(axis=1, keepdims=True) * g[:, None] + 0.0  # no -0
                mistakes = max_mistakes(g, x, want)
                called = f"vjp_max(g, x), x of shape {x.shape}{' with ties' if tied else ''}"
                expect.array(answer(g, x), want, called, **FLOAT64, mistakes=mistakes)


@chapter.exercise(
    points=2,
    hints=[
        "The gradient of X has the shape of X. Which products of g (m, n) with W (k, n)-transposed or X fit?",
        "Element (i, j) of X appears in row i of Y alone, with weight W[j, :]: its gradient is sum_c g[i, c] W[j, c].",
        "(m, n) times (n, k) gives the shape of X: which of g, W and W.T are these? For W, the sum over the rows "
        "of X is inside a product of (k, m) and (m, n).",
    ],
)
def vjp_matmul(
    answer: Answer,
    part: Part,
    *,
    sizes: Sequence[tuple[int, int, int]] = ((2, 3, 4), (3, 3, 3), (5, 1, 2), (1, 1, 1), (0, 2, 3)),
    large: Sequence[tuple[int, int, int]] = ((60, 50, 40), (800, 3, 2)),
    seed: int = 0,
) -> None:
    """Both gradients of a matrix product, without its Jacobian."""
    random = np.random.default_rng(seed)

    def operands(m: int, k: int, n: int) -> tuple[Any, Any, Any]:
        g = random.standard_normal((m, n))
        g[1:2] *= TINY
        return g, random.standard_normal((m, k)), random.standard_normal((k, n))

    for which, title in enumerate(("the gradient of X", "the gradient of W")):
        with part(0.75, title):
            for m, k, n in sizes:
                if which == 0 and not m:
                    continue  # an answer that fails without rows loses the points of W only
                g, x, w = operands(m, k, n)
                called = f"vjp_matmul(g, X, W) with m = {m}, k = {k}, n = {n}"
                got = pair(answer(g, x, w), called)[which]
                if which == 0:
                    expect.array(got, g @ w.T, f"{called}, {title}", **FLOAT64, mistakes=matmul_x_mistakes(g, x, w))
                else:
                    if not m:
                        expect.array(
                            pair(answer(g, x, w), called)[0], g @ w.T, f"{called}, the gradient of X", **FLOAT64
                        )
                    expect.array(got, x.T @ g, f"{called}, {title}", **FLOAT64, mistakes=matmul_w_mistakes(g, x, w))
    with part(0.5, "in the memory of a few matrices"):
        for m, k, n in large:
            compare_memory(answer, *operands(m, k, n), (m, k, n))


BROADCASTS = (
    ((3,), (3,)),
    ((4, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 3, 4), (4,)),
    ((5,), ()),
    ((3, 3), (3,)),
    ((40, 30), (30,)),
)
STRETCHED = (
    ((4, 1), (1, 3)),
    ((3, 1), (1, 3)),
    ((3, 1, 2), (4, 1)),
    ((1, 4, 1), (2, 1, 3)),
    ((2, 3), (2, 1)),
    ((1, 1), (1, 1)),
    ((1, 3), (0, 3)),
    ((2, 1, 3, 1, 2), (3, 3, 2, 2)),
    ((40, 30), (40, 1)),
)


@chapter.exercise(
    points=2,
    hints=[
        "An element that was used for many results is a node with many uses: its gradients are summed.",
        "Two cases: axes that numpy put in front of the shape, and axes of length 1 that were stretched.",
        "First sum over the leading axes until the number of axes fits. The others: `sum(axis=i, keepdims=True)`.",
        "`g.ndim - x.ndim` axes were put in front of those of x. An axis of length 1 in x is summed whatever its "
        "length is in g.",
    ],
)
def vjp_broadcast_add(
    answer: Answer,
    part: Part,
    *,
    leading: Sequence[tuple[Shape, Shape]] = BROADCASTS,
    stretched: Sequence[tuple[Shape, Shape]] = STRETCHED,
    seed: int = 0,
) -> None:
    """g, summed back to the shapes of the operands."""
    random = np.random.default_rng(seed)
    for title, pairs in (
        ("axes that were added in front", leading),
        ("axes of length 1 that were stretched", stretched),
    ):
        with part(1, title):
            for shapes in pairs:
                x, y = (random.standard_normal(shape) for shape in shapes)
                g = random.standard_normal(np.broadcast_shapes(*shapes))
                g.flat[1:2] *= TINY
                called = f"vjp_broadcast_add(g, x, y), x of shape {x.shape}, y of shape {y.shape}"
                got = pair(answer(g, x, y), called)
                for name, operand, gradient in zip("xy", (x, y), got, strict=True):
                    want = summed_to(g, operand.shape)
                    mistakes = sum_mistakes(g, want)
                    expect.array(gradient, want, f"{called}, gradient of {name}", **FLOAT64, mistakes=mistakes)


# ---- the walk ----


@chapter.exercise(
    points=4,
    hints=[
        "root.grad is 1: the root grows as fast as itself. Then each node passes node.vjp(node.grad) to its parents.",
        "A node may pass on its gradient only when every node that was made from it has passed on its own. First find "
        "an order in which each node comes after its parents, then go through it from the end.",
        "Such an order without recursion: a stack of (node, whether its parents are done). Take one off; if they are "
        "done, append the node to the order; if not, put it back with True, and its unseen parents with False on top.",
        "Keep the seen nodes in a set, root included, and mark a node when its turn comes rather than when it is "
        "put on the stack. In the end, go through the order from its end.",
    ],
)
def backward(
    answer: Answer, part: Part, *, graphs: Sequence[int] = (1, 4, 8), times: int = 16, deep: int = 10_000, seed: int = 0
) -> None:
    """Gradients add up, each node passes on its whole gradient once, and depth does not matter.

    The lesson is the order, so its part has half of the points: a walk breadth first, or along every path, gets at most
    the other half.
    """
    random = np.random.default_rng(seed)

    def judge(recipe: Recipe, called: str, cause: str = "", roots: Sequence[int] = (-1,)) -> dict[str, Any]:
        got, wanted = walk(answer, recipe, roots)
        for index, want in enumerate(wanted):
            what = f"{called}: the .grad of {node_in_words(recipe, index)}"
            slips = {cause: got["grads"][index]} if cause else known_slips(recipe, got, index, want)
            expect.number(got["grads"][index], want, what, mistakes=slips)
        return got

    with part(0.5, "the chain rule along one path"):
        judge([float(random.uniform(1, 2))], "backward(x), x a leaf")
        x, y, z = (float(v) for v in random.uniform(1, 2, 3))
        judge([x, y, ("add", 0, 1), z, ("mul", 2, 3)], "f = (x + y) * z; backward(f)")
        judge([x, -TINY * y, ("mul", 0, 1)], "f = x * y; backward(f), y small and negative", "It is small, but not 0.")
    with part(0.5, "what was used several times gets the sum"):
        judge([3.0, ("mul", 0, 0)], "b = a * a; backward(b)")
        judge([2.0, 3.0, ("mul", 0, 1), ("mul", 2, 0), ("add", 3, 0)], "c = a * b; d = c * a; e = d + a; backward(e)")
        for called, recipe in MANY_PARENTS.items():
            judge(recipe, called, ALL_PARENTS)
    with part(2, "a node hands on when its gradient is whole"):
        judge([2.0, ("add", 0, 0), ("mul", 0, 1), ("add", 1, 2)], "b = a + a; c = a * b; d = b + c; backward(d)")
        for size in graphs:
            judge(random_graph(random, size), f"backward of a random graph with {size} made nodes")
        for called, recipe in LATE_SHARES.items():
            compare_handed(recipe, judge(recipe, called), called)
        for called, (recipe, other, cause) in SPECIAL_VALUES.items():
            got, wanted = walk(answer, other)
            compare_reached(recipe, judge(recipe, called, cause if np.allclose(got["grads"], wanted) else ""), called)
    with part(0.5, "each node's vjp is called once, whatever was called before"):
        compare_calls(doubled(times), walk(answer, doubled(times))[0], times)
        for roots, called in BACKWARD_TWICE.items():
            got, wanted = walk(answer, OF_TWO_ROOTS, roots[-1:])
            if got["grads"] == wanted:  # else it is not what was called before that is at fault
                judge(OF_TWO_ROOTS, called, LEFT_BEHIND, roots)
    with part(0.5, "10,000 nodes deep"):
        half = deep // 2
        step = float(random.uniform(0.1, 1))
        recipe = [1.0, step, *(("add", 0 if i == 2 else i - 1, 1) for i in range(2, deep + 2))]
        got = judge(recipe, f"backward of a chain of {deep:,} additions of one leaf")
        expect.true(
            got["deepest"] < half,
            f"backward of a chain of {deep:,} nodes nested its calls {got['deepest']:,} deep.",
            "This is recursion under a raised limit; a deeper graph overflows the stack. Keep a list of your own.",
        )


# ---- checking gradients ----


@chapter.exercise(
    points=4,
    hints=[
        "Compare gradient(x)[i] with (f(x + h e_i) - f(x - h e_i)) / 2h for every i. What is a good h if x is 1e8?",
        "h = 1e-5 * max|x| fits every scale. Judge the differences against the largest element of the gradient, not "
        "against 1 and not each against itself: an element may rightly be 0.",
        "The error that counts is the largest, not the mean: one wrong element of 300 vanishes in a mean.",
        "At a kink the slope to the left, (f(x) - f(x - h e_i)) / h, is not the slope to the right. Accept what "
        "lies between the two. Which tolerance on both sides is above the rounding, and far below a bug?",
    ],
)
def check_gradient(
    answer: Answer, part: Part, *, inputs: tuple[int, int] = (5, 200), scale: float = 1e8, seed: int = 0
) -> None:
    """Twelve gradients, some with a planted bug; a part is correct if all of its verdicts are."""
    found: dict[str, list[GradientCase]] = {}
    for case in cases(inputs, scale, seed):
        found.setdefault(case.title, []).append(case)
    for title, group in found.items():
        with part(1, title):
            for case in group:
                got = answer(answer.offered(case.lent_f, "f"), answer.offered(case.lent_gradient, "gradient"), case.x)
                compare_verdict(got, case)


# ---- memory ----


CHAINS = (((4, 3), 2), ((5, 5, 5, 5), 3), ((2, 9, 4, 1), 10), ((64, 8, 2), 1), ((90_000, 80_000), 70_000))


@chapter.exercise(
    points=3,
    hints=[
        "In evaluation at most two activations live at once: the input and the output of the layer that is computed.",
        "With nothing freed, add up everything that is ever made: activations 0 to L, gradients of activations 1 to L "
        "(nobody asks for that of the input), gradients of weights 1 to L.",
        "In training, play the steps of backward: which arrays live at the step of layer l, before it frees any? "
        "The peak is the largest of these sums over l.",
    ],
)
def live_bytes(
    answer: Answer,
    part: Part,
    *,
    chains: Sequence[tuple[Sequence[int], int]] = CHAINS,
    seed: int = 0,
) -> None:
    """The peak in evaluation and in training, for given chains and for random ones."""
    random = np.random.default_rng(seed)
    drawn = [([int(n) for n in random.integers(1, 60, length)], int(random.integers(1, 40))) for length in (2, 3, 6, 9)]
    for mode, title in MODES.items():
        with part(1, title):
            asked = [*chains, *drawn]
            answers = [answer(list(widths), batch, mode) for widths, batch in asked]
            cause = cause_of_all(answers, asked, mode)
            for got, (widths, batch) in zip(answers, asked, strict=True):
                called = f"live_bytes({list(widths)}, {batch}, {mode!r})"
                expect.number(got, peak(widths, batch, mode), called, rtol=1e-12, mistakes={cause: got})
