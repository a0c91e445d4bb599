"""Halo exchanges: the right patches, the messages between neighbours, and what known mistakes give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.parallel_convolution.tiles_of_images import Lines, lines
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun, could_have_carried
from course.plural import counted
from minidl.cluster import Network
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, ...]
"""(h, w, N, C, H, W, K, stride, padding)"""

OWN_MESSAGES = {"send", "recv", "sendrecv", "isend", "irecv"}

WHY_NOT = {
    "all_gather": "An all-gather brings every rank the whole image. A halo has the missing pixels only.",
    "all_to_all": "Only neighbours have what a rank needs: the others need not be sent anything.",
    "gather": "One rank that collects the image is the bottleneck. A halo comes from the neighbours.",
    "broadcast": "A broadcast brings every rank a tile. A halo comes from the neighbours.",
    "barrier": "A message waits for what it needs.",
}

A_SECOND_A_MESSAGE = Network(alpha=1.0, beta=0.0)
"""On this network the seconds of a run are the messages that are sent one after the other."""

MOST_IN_TURN = {False: 4, True: 8}
"""Messages one after the other, by whether the grid has several rows and several columns."""


@dataclass
class Exchange:
    """A run of an answer; if it raises, it is made again at the next use."""

    answer: Answer
    case: Case
    seed: int

    @cached_property
    def image(self) -> Array:
        _h, _w, N, C, H, W, *_ = self.case
        x = stream(Purpose.MANUAL, self.seed, "images", *self.case).normal(size=(N, C, H, W))
        x[:, :, ::2, ::3] *= 1e-8  # what is small is not 0
        return x

    @cached_property
    def ranks(self) -> list[tuple[Lines, Lines]]:
        """The rows and the columns of each rank."""
        h, w, _N, _C, H, W, *kernel = self.case
        return [(r, c) for r in lines(H, h, *kernel) for c in lines(W, w, *kernel)]

    @cached_property
    def run(self) -> RankRun:
        h, w, _N, _C, H, W, *kernel = self.case
        given = [
            (self.image[:, :, r.has[0] : r.has[1], c.has[0] : c.has[1]].copy(), (h, w), (H, W), *kernel)
            for r, c in self.ranks
        ]
        return self.answer.on_ranks(given, A_SECOND_A_MESSAGE)

    def called(self, rank: int) -> str:
        h, w, N, C, H, W, K, stride, padding = self.case
        sizes = f"N={N}, C={C}, H={H}, W={W}, kernel {K}, stride {stride}, padding {padding}"
        return f"halo_exchange on rank {rank} of {h * w}, grid of {h} times {w}, {sizes}"

    def neighbours(self, rank: int) -> set[int]:
        """The ranks above, below, left and right."""
        h, w = self.case[:2]
        i, j = divmod(rank, w)
        around = ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
        return {a * w + b for a, b in around if 0 <= a < h and 0 <= b < w}


def patch(image: Array, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
    """These rows and columns of the images, with zeros outside."""
    H, W = image.shape[2:]
    result = np.zeros((*image.shape[:2], rows[1] - rows[0], columns[1] - columns[0]))
    top, bottom, left, right = max(rows[0], 0), min(rows[1], H), max(columns[0], 0), min(columns[1], W)
    if top < bottom and left < right:
        inside = image[:, :, top:bottom, left:right]
        result[:, :, top - rows[0] : bottom - rows[0], left - columns[0] : right - columns[0]] = inside
    return result


def compare_patches(one: Exchange) -> None:
    """Raise Wrong unless each rank returned its patch."""
    for rank, (r, c) in enumerate(one.ranks):
        want = patch(one.image, r.needs, c.needs)
        known = {
            sentence: value
            for sentence, value in mistaken(one, r, c).items()
            if np.shape(value) != want.shape or not np.array_equal(value, want)
        }
        got = one.run.results[rank]
        expect.array(got, want, f"{one.called(rank)}: the patch", rtol=0.0, atol=0.0, mistakes=known, dtype=np.float64)


def mistaken(one: Exchange, r: Lines, c: Lines) -> dict[str, Array]:
    """The patches that known mistakes give on the rank with these rows and columns."""
    *_, K, _stride, padding = one.case
    image, want = one.image, patch(one.image, r.needs, c.needs)
    above, below = r.has[0] - r.needs[0], r.needs[1] - r.has[1]

    def only(rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        """The image with zeros outside these."""
        kept = np.zeros_like(image)
        kept[:, :, rows[0] : rows[1], columns[0] : columns[1]] = image[:, :, rows[0] : rows[1], columns[0] : columns[1]]
        return kept

    def of(image: Array) -> Array:
        return patch(image, r.needs, c.needs)

    H, W = image.shape[2:]
    rows, columns = np.arange(*r.needs), np.arange(*c.needs)
    without_corners = only(r.has, (0, W)) + only((0, H), c.has) - only(r.has, c.has)
    known = {
        "The halo is zero. Zeros belong outside the image only: at inner borders the neighbours' pixels.": of(
            only(r.has, c.has)
        ),
        "The corners of the halo are zero: they belong to the tiles diagonally opposite.": of(without_corners),
        "Of the halo only rows came: the columns beside the tile are missing.": of(only((0, H), c.has)),
        "Of the halo only columns came: the rows above and below the tile are missing.": of(only(r.has, (0, W))),
        "The halo from above is missing.": of(only((r.has[0], H), (0, W))),
        "The halo from below is missing.": of(only((0, r.has[1]), (0, W))),
        "Outside the image there are zeros, not the pixels of the opposite side.": image[:, :, rows % H][
            :, :, :, columns % W
        ],
        "Outside the image there are zeros, not the pixels of its border.": image[:, :, np.clip(rows, 0, H - 1)][
            :, :, :, np.clip(columns, 0, W - 1)
        ],
        "The padding is missing.": patch(image, r.inside, c.inside),
        "The padding of the columns is missing.": patch(image, r.needs, c.inside),
        "The padding of the rows is missing.": patch(image, r.inside, c.needs),
        "This is all of the padded image. Each rank returns its own patch.": patch(
            image, (-padding, H + padding), (-padding, W + padding)
        ),
        "This is all of the image. Each rank returns its own patch.": image,
        "This is the tile as it was given, without a halo.": patch(image, r.has, c.has),
        "The patch has the rows of the tile: those of the halo above and below are missing.": patch(
            image, r.has, c.needs
        ),
        "The halo is not always floor(K / 2) rows on each side: stride, padding and the division of y decide.": patch(
            image, (r.has[0] - K // 2, r.has[1] + K // 2), c.needs
        ),
        "The halo is not always K - 1 rows on each side: stride, padding and the division of y decide.": patch(
            image, (r.has[0] - K + 1, r.has[1] + K - 1), c.needs
        ),
        "A row and a column are missing: the last window has K of each, too.": want[:, :, :-1, :-1],
        "A row of the halo is missing below.": want[:, :, :-1],
        "A row of the halo is missing above.": want[:, :, 1:],
        "There is a row too many below.": patch(image, (r.needs[0], r.needs[1] + 1), c.needs),
        "There is a row too many above.": patch(image, (r.needs[0] - 1, r.needs[1]), c.needs),
    }
    if above == below > 0:
        turned = want.copy()
        turned[:, :, :above], turned[:, :, -below:] = want[:, :, -below:], want[:, :, :above]
        known["The halos of above and below are interchanged."] = turned
    return known


def compare_messages(one: Exchange) -> None:
    """Raise Wrong unless the messages go to neighbours, one to each, with no more than their halos."""
    _h, w, N, C, *_ = one.case
    for rank, (r, c) in enumerate(one.ranks):
        called, near = one.called(rank), one.neighbours(rank)
        others = [name for name in one.run.operations[rank] if name not in OWN_MESSAGES]
        if others:
            raise Wrong(
                f"{called}: expected comm.send, recv, sendrecv, isend and irecv only, got comm.{others[0]}.",
                WHY_NOT.get(others[0], ""),
            )
        sent = Counter(send[1] for send in one.run.sends if send[0] == rank)
        for destination, count in sent.items():
            is_corner = w > 1 and abs(rank // w - destination // w) == abs(rank % w - destination % w) == 1
            expect.true(
                destination in near,
                f"{called}: sent a message to rank {destination}, which is not above, below, left or right of it.",
                "Corners come along in the second phase: exchange rows, then columns of what has become longer."
                if is_corner
                else "A halo comes from the neighbours in the grid; after the last rank there is none.",
            )
            expect.true(
                count == 1,
                f"{called}: sent {counted(count, 'message')} to rank {destination}, expected at most one.",
                "All samples, channels and rows for a neighbour fit in one array.",
            )
        expect.true(
            not one.run.unfinished[rank],
            f"{called}: returned without waiting for the end of {counted(one.run.unfinished[rank], 'call')} of isend "
            "or irecv.",
            "isend only begins to send: keep what it returns, and call .wait() of it.",
        )
        a, b = r.needed - r.own, c.needed - c.own
        m, n = (max(each.has[1] - each.has[0], each.needs[1] - each.needs[0]) for each in (c, r))
        most, got = 8 * N * C * (a * m + n * b), one.run.received[rank]
        expect.true(
            got <= most,
            f"{called}: received {got} bytes, expected at most {most}: {N * C} times {a} rows of at most {m} "
            f"pixels and {b} columns of at most {n}, of 8 bytes each.",
            "Whole tiles are sent: a neighbour needs the pixels of its own patch only."
            if got >= 8 * N * C * (c.has[1] - c.has[0]) * (r.has[1] - r.has[0]) > most
            else "Send each neighbour the rows or columns that its patch has of yours: compute its patch as your own.",
        )
        sources = [
            other for other, (rows, columns) in enumerate(one.ranks)
            if other != rank and overlaps(r.inside, rows.has) and overlaps(c.inside, columns.has)
        ]  # fmt: skip
        missing = N * C * (r.needed * c.needed - r.own * c.own)
        could_have_carried(one.run, f"{called}: the patch", rank, sources, 8 * missing)


def overlaps(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def compare_time(one: Exchange) -> None:
    """Raise Wrong if the ranks wait for each other in a line."""
    h, w = one.case[:2]
    most, got = MOST_IN_TURN[h > 1 and w > 1], round(one.run.seconds)
    expect.true(
        got <= most,
        f"{one.called(0)}: {got} messages were sent one after the other, expected at most {most}.",
        "Each rank waits for the one before it. Exchanges between different ranks go on at the same time: use "
        "comm.sendrecv, or isend before recv.",
    )
