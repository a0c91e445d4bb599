"""Results of vector-Jacobian products: the oracle of a broadcast sum, and the classic mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.probes.backpropagation import peak_bytes

Array = NDArray[Any]
Shape = tuple[int, ...]

SWAPPED = "The two gradients are swapped."
NO_G = "g is missing: what arrives from above multiplies the local gradients."


def pair(got: Any, called: str) -> tuple[Any, Any]:
    """The two gradients of an answer. Raises Wrong if it returned anything else."""
    if got is None:
        raise Wrong(f"{called}: expected two gradients, got None.", expect.FORGOTTEN_RETURN)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise Wrong(f"{called}: expected two gradients, `return gx, gy`, got {expect.shown(got)}.")
    return got[0], got[1]


def compare_memory(answer: Answer, g: Array, x: Array, w: Array, large: tuple[int, int, int]) -> None:
    """Raise Wrong if vjp_matmul takes more memory than a few matrices, or gives neither gradient."""
    got = pair(answer(g, x, w), f"vjp_matmul(g, X, W) with m, k, n = {large}")
    is_right = [np.shape(a) == b.shape and np.allclose(a, b) for a, b in zip(got, (g @ w.T, x.T @ g), strict=True)]
    expect.true(any(is_right), f"With m, k, n = {large} neither gradient is right: its memory says nothing yet.")
    given = g.nbytes + x.nbytes + w.nbytes
    needed = answer.run(peak_bytes, g, x, w)
    expect.true(
        needed <= 12 * given + 200 * sum(x.shape),  # lists of numbers take 8, and 80 a row; m*k*n products 16
        f"vjp_matmul with m, k, n = {large} took {needed:,} bytes at its peak; X, W and g together have {given:,}.",
        "Neither m*k*n products nor a Jacobian of (m*n) * (m*k) are needed: a matrix product sums as it goes.",
    )


def max_mistakes(g: Array, x: Array, want: Array) -> dict[str, Array]:
    """Classic mistakes in the gradient of a maximum of rows."""
    columns = x.shape[1]
    largest = want != 0
    first = np.eye(columns)[x.argmax(axis=1)] * g[:, None]
    along_columns = largest / np.maximum(largest.sum(axis=1, keepdims=True), 1) * (g if len(g) == columns else 0.0)
    last = np.eye(columns)[columns - 1 - x[:, ::-1].argmax(axis=1)] * g[:, None]
    return {
        "Each of the equal elements got all of g: together they may get g only once.": largest * g[:, None],
        "All of g went to the first of the equal elements; here ties share it evenly.": first,
        "All of g went to the last of the equal elements; here ties share it evenly.": last,
        "Divided by the number of ties of all rows: each row counts its own.": largest
        * g[:, None]
        / max(largest.sum(), 1),
        "The gradient is g where x is largest, whatever the value of x.": want * x,
        "g is missing: each row's gradient is multiplied by its g.": largest * 1.0,
        **(
            {"g has one number a row: `g[:, None]` lays it along the rows, g alone along the columns.": along_columns}
            if len(x) == columns
            else {}
        ),
    }


def matmul_x_mistakes(g: Array, x: Array, w: Array) -> dict[str, Array]:
    """Classic mistakes in the gradient of X, where Y = X @ W."""
    mistakes = {SWAPPED: x.T @ g, NO_G: np.ones_like(g) @ w.T}
    if w.shape[0] == w.shape[1]:
        mistakes["W is not transposed: element (i, j) of X meets row j of W."] = g @ w
    return mistakes


def matmul_w_mistakes(g: Array, x: Array, w: Array) -> dict[str, Array]:
    """Classic mistakes in the gradient of W."""
    return {
        SWAPPED: g @ w.T,
        NO_G: x.T @ np.ones_like(g),
        "This is the mean over the rows: the gradients of all rows are summed.": x.T @ g / max(len(x), 1),
        "This is the transpose of the gradient.": g.T @ x,
        "This is the last row's share alone: all rows are summed.": np.outer(x[-1:], g[-1:]),
    }


def sum_mistakes(g: Array, want: Array) -> dict[str, Array]:
    """Classic mistakes in the gradient of an operand that was broadcast in a sum."""
    to_nothing = "An axis of length 1 may be stretched to length 0, too: it is summed whatever its length is in g."
    return {
        **({} if g.size else {to_nothing: g}),
        "This is the mean: every use adds its gradient, so it is the sum.": want * want.size / max(g.size, 1),
        "g itself was returned: the gradient of an operand has the operand's shape.": g,
        "The axes of length 1 are missing: sum them with keepdims=True.": want.squeeze(),
    }


def summed_to(g: np.ndarray, shape: Shape) -> np.ndarray:
    """The oracle: every element of g is added to the element that it came from."""
    out = np.zeros(shape)
    places = np.broadcast_to(np.arange(out.size).reshape(shape), g.shape)
    np.add.at(out.reshape(-1), places.reshape(-1), g.reshape(-1))
    return out
