"""Bytes that all ranks send for one layer, for each division, and what known mistakes give."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from course.checks.parallel_convolution.tiles_of_images import lines, output_size
from course.judging import expect

Tiles = tuple[int, ...]
"""(N, C, H, W, F, K, stride, padding, h, w)"""

Group = tuple[int, ...]
"""(N, C, H, W, F, K, stride, padding, p)"""

NAMES = ("forward", "backward")


def halo(case: Tiles, *, corners: int = 1) -> int:
    """The numbers that all ranks receive before the forward. corners: how often those of the corners are counted."""
    N, C, H, W, _, K, stride, padding, h, w = case
    rows, columns = lines(H, h, K, stride, padding), lines(W, w, K, stride, padding)
    pixels = sum(
        (r.needed - r.own) * c.own + r.own * (c.needed - c.own) + corners * (r.needed - r.own) * (c.needed - c.own)
        for r in rows
        for c in columns
    )
    return N * C * pixels


def of_weights(case: Tiles) -> int:
    """The numbers that all ranks send in the all-reduce of the gradients."""
    C, F, K, ranks = case[1], case[4], case[5], case[8] * case[9]
    return 2 * (ranks - 1) * (F * C * K**2 + F)


def mistaken_halos(case: Tiles) -> dict[str, float]:
    """The bytes of the forward that known mistakes give."""
    N, C, H, W, F, K, stride, padding, h, w = case
    right = halo(case)
    OW = output_size(W, K, stride, padding)
    rows, columns = lines(H, h, K, stride, padding), lines(W, w, K, stride, padding)
    padded = sum((r.needs[1] - r.needs[0]) * (c.needs[1] - c.needs[0]) - r.own * c.own for r in rows for c in columns)
    known: dict[str, float] = {
        "Zeros of the padding are not sent: a rank gets pixels of the image only.": 4 * N * C * padded,
        "The corners are missing: a rank needs the whole rectangle.": 4 * halo(case, corners=0),
        "The corners count once: they belong to one rank each.": 4 * halo(case, corners=2),
        "This is the whole image for each rank: a halo has the missing pixels only.": 4 * (h * w - 1) * N * C * H * W,
    }
    if w == 1:
        line = 4 * N * C * W
        known |= {
            "The first and the last slab have one border each: there are h - 1 borders.": line * h * 2 * (K // 2),
            "K - stride rows across each border are right only if a border of the output lies where one of the input "
            "does: take the first and the last row of each rank.": line * (h - 1) * max(K - stride, 0),
            "A rank needs the rows that it uses, not K for every row of y: windows overlap.": line
            * sum(K * ((r.needs[1] - r.needs[0] - K) // stride + 1) - r.own for r in rows),
            "The rows of x have W columns, not those of y.": 4 * right * OW / W,
            "Columns of the padding are zeros: nobody sends them.": 4 * right * (W + 2 * padding) / W,
        }
        if stride > 1:
            known["The stride is missing: without it, K - 1 rows in all would cross a border."] = (
                line * (h - 1) * (K - 1)
            )
    return known | {
        "These are numbers: each has 4 bytes.": right,
        "Numbers have 4 bytes here, not 8; and the halo is sent once in the forward.": 8 * right,
        "This is one sample's: there are N.": 4 * right / N,
        "The halo has the channels of x, not those of y.": 4 * right * F / C,
        "Across a border, rows are sent in both directions.": 2 * right,
        "This is what a rank sends on the average: add up all ranks.": 4 * right / (h * w),
        "The pair is (forward, backward), in this order.": 4 * (right + of_weights(case)),
    }


def mistaken_backwards(case: Tiles) -> dict[str, float]:
    """The bytes of the backward that known mistakes give."""
    C, F, K, ranks = case[1], case[4], case[5], case[8] * case[9]
    back, sums = halo(case), of_weights(case)
    return {
        "These are numbers: each has 4 bytes.": back + sums,
        "Numbers have 4 bytes here, not 8.": 8 * (back + sums),
        "The gradients of the halo go back to the ranks that have these pixels.": 4 * sums,
        "The gradients of the weights and of the bias are summed over the ranks.": 4 * back,
        "The gradient of the bias is summed, too: F numbers.": 4 * (back + 2 * (ranks - 1) * F * C * K**2),
        "A kernel has K K weights for each channel and filter.": 4 * (back + 2 * (ranks - 1) * (F * C * K + F)),
        "In an all-reduce of n numbers, all p ranks together send 2 (p - 1) n, not (p - 1) n.": 4 * (back + sums / 2),
        "In an all-reduce of n numbers, all p ranks together send 2 (p - 1) n, not 2 p n.": 4
        * (back + 2 * ranks * (F * C * K**2 + F)),
        "These are the bytes of one rank in the all-reduce: add up all ranks.": 4 * (back + sums / ranks),
        "A filter has the weights of all channels.": 4 * (back + 2 * (ranks - 1) * (F * K**2 + F)),
        "The backward comes without the forward: the halo is sent once in each.": 4 * (2 * back + sums),
        "The corners of the halo go back, too.": 4 * (halo(case, corners=0) + sums),
        "The gradients of the halo go back, each once: that of a corner, too.": 4 * (halo(case, corners=2) + sums),
        "The pair is (forward, backward), in this order.": 4 * back,
    }


def group_words(case: Group, kind: str) -> int:
    """The numbers that all ranks send in a reduce-scatter or an all-gather of y, or of x."""
    N, C, H, W, F, K, stride, padding, p = case
    if kind == "filters":
        return (p - 1) * N * C * H * W
    return (p - 1) * N * F * output_size(H, K, stride, padding) * output_size(W, K, stride, padding)


def mistaken_groups(case: Group, kind: str, which: int) -> dict[str, float]:
    N, C, H, W, F, K, _, padding, p = case
    right, other = group_words(case, kind), group_words(case, {"filters": "channels", "channels": "filters"}[kind])
    found: dict[str, float] = {
        "These are numbers: each has 4 bytes.": right,
        "By channels, y is reduced and scattered; by filters, x is gathered: these are the bytes of the other.": 4
        * other,
        "There is one collective of (p - 1) n numbers, of 4 bytes each, in the forward, and one in the backward.": 8
        * right,
        "p ranks together send (p - 1) n numbers, not p n.": 4 * right * p / max(p - 1, 1),
        "This is what one rank sends: add up all ranks.": 4 * right / p,
        "This is one sample's: there are N.": 4 * right / N,
        "These are the n numbers themselves: all ranks together send (p - 1) n.": 4 * right / max(p - 1, 1),
    }
    if kind == "filters":
        found["Zeros of the padding are not sent: x has H W pixels."] = (
            4 * (p - 1) * N * C * (H + 2 * padding) * (W + 2 * padding)
        )
    else:
        found["y has OH OW pixels: look at stride and padding."] = 4 * (p - 1) * N * F * H * W
    if which:
        found["The gradients of divided weights stay where they are: they are not summed over the ranks."] = 4 * (
            right + 2 * (p - 1) * (F * C * K**2 + F)
        )
        found["In the backward there is communication, too: the gradient of y, or of x."] = 0
    return found


def compare_tiles(result: Callable[..., Any], case: Tiles, which: int) -> None:
    """Raise Wrong unless item `which` of the pair for these tiles is right."""
    called, got = pair(result, case[:8], ("tiles", *case[8:]))
    want, mistakes = 4 * halo(case), mistaken_halos(case)
    if which:
        sums = 4 * of_weights(case)
        known = {"The halo is wrong as in the forward.": got[0] + sums} if isinstance(got[0], Real) else {}
        want, mistakes = want + sums, known | mistaken_backwards(case)
    compare(called, got, which, want, mistakes)


def compare_group(result: Callable[..., Any], case: Group, kind: str, which: int) -> None:
    """Raise Wrong unless item `which` of the pair for this division is right."""
    called, got = pair(result, case[:8], (kind, case[8]))
    compare(called, got, which, 4 * group_words(case, kind), mistaken_groups(case, kind, which))


def pair(result: Callable[..., Any], layer: tuple[int, ...], cut: tuple[Any, ...]) -> tuple[str, Any]:
    """The call, and the pair that it returns. Raises Wrong if it is none."""
    N, C, H, W, F, K, stride, padding = layer
    called = f"bytes_of_a_cut({(N, C, H, W, F)}, {K}, {stride}, {padding}, {cut})"
    got = result((N, C, H, W, F), K, stride, padding, cut)
    if isinstance(got, np.ndarray) and got.ndim == 1:
        got = got.tolist()
    return called, expect.listed(got, called, "a pair (forward, backward)", 2)


def compare(called: str, got: Any, which: int, want: int, mistakes: dict[str, float]) -> None:
    wrong = {sentence: value for sentence, value in mistakes.items() if abs(value - want) > 0.01}
    expect.number(got[which], want, f"{called}: {NAMES[which]}", rtol=0.0, atol=0.01, mistakes=wrong)
