"""Convolutions as one matrix product: cases, the matrix of patches, the right result, and what known mistakes give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.operators import convolved, lines_executed
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int, int, int, int, int, int, int]
"""(N, C, H, W, F, R, S, stride, padding)"""

AXES = {"n": 0, "i": 4, "j": 5, "c": 1, "r": 2, "s": 3}
"""The axes of `patches`."""


@dataclass(frozen=True)
class Images:
    """What a convolution is given."""

    x: Array
    w: Array
    stride: int
    padding: int

    @property
    def called(self) -> str:
        kind = "" if self.x.dtype == float else f" of {self.x.dtype}"
        return f"im2col of x {self.x.shape}{kind} and w {self.w.shape}, stride {self.stride}, padding {self.padding}"

    @property
    def filters(self) -> Array:
        return self.w.reshape(len(self.w), -1)

    def patches(self, padding: int | None = None, stride: int | None = None) -> Array:
        """Of shape (N, C, R, S, H', W'): x[n, c, i stride + r, j stride + s], after padding."""
        padding, stride = self.padding if padding is None else padding, stride or self.stride
        wide = np.pad(self.x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
        windows = np.lib.stride_tricks.sliding_window_view(wide, self.w.shape[2:], (2, 3))
        return windows[:, :, ::stride, ::stride].transpose(0, 1, 4, 5, 2, 3)

    def matrix(self, rows: str = "crs", columns: str = "nij", padding: int | None = None, stride: int = 0) -> Array:
        """The oracle: a patch in each column; or with the rows or the columns in another order."""
        patches = self.patches(padding, stride)
        arranged = patches.transpose([AXES[axis] for axis in rows + columns])
        return arranged.reshape(self.filters.shape[1], patches.shape[0] * patches.shape[4] * patches.shape[5])

    def result(self) -> Array:
        """The oracle: of shape (N, F, H', W')."""
        N, _, _, _, out_h, out_w = self.patches().shape
        return (self.filters @ self.matrix()).reshape(len(self.w), N, out_h, out_w).transpose(1, 0, 2, 3)


def images(case: Case, seed: int, kind: type = float, order: str = "C") -> Images:
    """Random images and filters, of which one is much smaller than the others."""
    N, C, H, W, F, R, S, stride, padding = case
    rng = stream(Purpose.MANUAL, seed, "images", *case)
    x, w = rng.normal(size=(N, C, H, W)), rng.normal(size=(F, C, R, S))
    w[-1] *= 1e-8
    return Images(np.array(x, kind, order=order), np.array(w, kind, order=order), stride, padding)  # type: ignore[call-overload]


def run(answer: Answer, given: Images) -> dict[str, Any]:
    """What the answer returned, and the products that it called."""
    seen = answer.run(convolved, given.x, given.w, given.stride, given.padding)
    if not isinstance(seen, dict) or not {"y", "calls", "first"} <= seen.keys():
        raise Wrong(f"{given.called}: it cannot be seen what product was called with.")
    return seen  # type: ignore[no-any-return]


def rounding(given: Images, want: Array, scale: Array | float = 1.0) -> dict[str, Any]:
    """How far a right result may be off: `scale` is the size of a row's or a filter's terms."""
    return {"rtol": 0.0, "atol": np.broadcast_to(scale * (1e-12 if given.x.dtype == float else 1e-5), want.shape)}


def compare_patches(given: Images, seen: dict[str, Any]) -> None:
    """Raise Wrong unless B of the first product has a patch in each column."""
    expect.true(seen["calls"] > 0, f"{given.called}: product was not called.", "The result is product(A, B).")
    _, got, _ = seen["first"][0]
    want = given.matrix()
    mistakes = {
        "The rows are in the order (r, s, c): the channel comes first.": given.matrix("rsc"),
        "The columns are in the order (i, j, n): the image comes first.": given.matrix(columns="ijn"),
        "The columns are in the order (n, j, i): the row of the image comes before its column.": given.matrix(
            columns="nji"
        ),
        "The rows are in the order (c, s, r): the row of the filter comes before its column.": given.matrix("csr"),
        "The patches are the columns of B, not its rows.": want.T,
        "Zeros are only above and to the left of the image: they belong on all four sides.": one_sided(given),
        "The stride is missing: neighbouring patches begin `stride` rows or columns apart.": given.matrix(stride=1),
    }
    if all(length >= of_filter for length, of_filter in zip(given.x.shape[2:], given.w.shape[2:], strict=True)):
        mistakes["The zeros around the image are missing."] = given.matrix(padding=0)
    expect.array(
        got, want, f"{given.called}: B of product(A, B)", mistakes=mistakes, dtype=given.x.dtype.type,
        **rounding(given, want),
    )  # fmt: skip


def one_sided(given: Images) -> Array:
    """The patches of images with zeros above and to the left, where as many fit as with all zeros."""
    x = np.pad(given.x, [(0, 0), (0, 0), (2 * given.padding, 0), (2 * given.padding, 0)])
    return Images(x, given.w, given.stride, 0).matrix()


def compare_result(given: Images, seen: dict[str, Any]) -> None:
    """Raise Wrong unless the convolution is right."""
    want = given.result()
    product = given.filters @ given.matrix()
    flipped = Images(given.x, given.w[:, :, ::-1, ::-1], given.stride, given.padding).result()
    mistakes = {
        "The product's rows are filters, its columns images and places: reshape to (F, N, H', W'), then move the "
        "axes.": product.reshape(want.shape),
        "The axes are in the order (F, N, H', W').": np.moveaxis(want, 1, 0),
        "This is the product as it is, one row for each filter.": product,
        "H' and W' are interchanged.": np.swapaxes(want, 2, 3),
        "The filter was turned round: here w[f, c, r, s] meets x[n, c, i stride + r, j stride + s].": flipped,
    }
    terms = np.abs(given.w).max(axis=(1, 2, 3))[None, :, None, None] * given.filters.shape[1]
    expect.array(seen["y"], want, given.called, mistakes=mistakes, **rounding(given, want, terms))


def compare_product(given: Images, seen: dict[str, Any]) -> None:
    """Raise Wrong unless product was called once, and the result has its numbers, in any order."""
    calls = seen["calls"]
    N, F, C, R, S = len(given.x), *given.w.shape
    causes = (
        (0, "The result is product(A, B)."),
        (N, "All images together are one product: the columns of B are the patches of all."),
        (F, "All filters together are one product: each is a row of A."),
        (C, "All channels together are one product: a column of B has the patch's numbers of every channel."),
        (R * S, "This is a product for each position of the filter; a column of B has all numbers of a patch."),
    )
    fits = [sentence for number, sentence in causes if number == calls]
    expect.true(
        calls == 1,
        f"{given.called}: expected one call of product, got {counted(calls, 'call')}.",
        fits[0] if len(fits) == 1 else "",
    )
    _, _, of_product = seen["first"][0]
    y = expect.number_array(expect.from_list(seen["y"], of_product), given.called, "an array")
    expect.true(
        np.array_equal(np.sort(np.ravel(y)), np.sort(np.ravel(of_product))),
        f"{given.called}: the result does not have the numbers of product(A, B), to the bit.",
        "Computing the result again, or rows and columns that are thrown away, costs as much as the product.",
    )


def compare_lines(answer: Answer, small: Images, large: Images) -> None:
    """Raise Wrong if more lines of Python are executed for larger images."""
    lines = answer.run(lines_executed, [(one.x, one.w, one.stride, one.padding) for one in (small, large)])
    a, b = lines if isinstance(lines, list) and len(lines) == 2 else (0, 0)
    expect.true(
        isinstance(a, int) and isinstance(b, int) and 0 < b <= a + 10,
        f"{large.called}: {b} lines of Python were executed, against {a} for x {small.x.shape}.",
        "A loop over images or pixels takes a microsecond or more each time: a slice of the images has the numbers of "
        "all patches at one position (r, s), x[:, :, r : … : stride, s : … : stride].",
    )


def of_all(simple: Case, cases: Sequence[Case], seed: int) -> list[Images]:
    """The simple case, the others, and the first of these in float32 and, with other numbers, in Fortran's order.

    simple: one image and filter, no padding, stride 1, where an answer that confuses axes of the result is right.
    """
    first, *_ = cases
    found = [images(case, seed) for case in (simple, *cases)]
    return [*found, images(first, seed, np.float32), images(first, seed + 1, order="F")]
