"""Gradients of a convolution over slabs: cases, the right results, messages, and what known mistakes give."""

from __future__ import annotations

from collections import Counter

import numpy as np

from course.checks.parallel_convolution.halo_patches import patch
from course.checks.parallel_convolution.tiles_of_images import common, lines, output_size, span
from course.checks.tensor_parallelism.divided_runs import Array, Divided, Named, Rank
from course.judging import Answer, Wrong, expect
from course.judging.ranks.counted_all_reduces import WHY_NOT, words_sent
from course.judging.ranks.rank_run import could_have_carried
from course.plural import counted
from minidl import Tensor
from minidl import functional as F
from minidl.random import Purpose, stream

Case = tuple[int, ...]
"""(p, N, C, H, W, F, K, stride, padding)"""

NO_MEAN = "This is the right gradient divided by p. The ranks have different terms of one sum: it is no mean."

MESSAGES = {"send", "recv", "sendrecv", "isend", "irecv"}


def gradients(x: Array, w: Array, g: Array, stride: int, padding: int) -> tuple[Array, Array]:
    """Those with respect to x and w of the sum of g times the convolution."""
    images, weights = Tensor(x, requires_grad=True), Tensor(w, requires_grad=True)
    F.conv2d(images, weights, stride=stride, padding=padding).backward(g)
    return np.asarray(images.grad), np.asarray(weights.grad)


def slabs(answer: Answer, case: Case, seed: int) -> Divided:
    """`weight_gradient` on p ranks."""
    p, N, C, H, W, filters, K, stride, padding = case
    rng = stream(Purpose.MANUAL, seed, "slabs", *case)
    rows = lines(H, p, K, stride, padding)
    OH, OW = output_size(H, K, stride, padding), output_size(W, K, stride, padding)
    x, w = rng.normal(size=(N, C, H, W)), rng.normal(size=(filters, C, K, K))
    g = rng.normal(size=(N, filters, OH, OW))
    x[:, :, ::3] *= 1e-8  # what is small is not 0
    g[:, 0] *= 1e-8
    gx, gw = gradients(x, w, g, stride, padding)
    gb, width = g.sum(axis=(0, 2, 3)), (OW - 1) * stride + K
    wide = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * 2)
    parts = []  # for each rank: the gradients from its rows of y alone
    for i in range(p):
        only = kept(g, span(OH, p, i))
        parts.append((*gradients(x, w, only, stride, padding), only.sum(axis=(0, 2, 3))))
    without_halo = sum(
        gradients(kept(x, rows[i].has), w, kept(g, span(OH, p, i)), stride, padding)[1] for i in range(p)
    )
    ranks = []
    for i, own in enumerate(rows):
        start, stop = own.has
        part = parts[i]
        overwritten = part[0].copy()
        padded = gradients(wide, w, kept(g, span(OH, p, i)), stride, 0)[0]
        for other in (i - 1, i + 1):
            if 0 <= other < p:
                theirs = list(common(rows[other].inside, own.has))
                overwritten[:, :, theirs] = parts[other][0][:, :, theirs]
        turned = gradients(x, w[:, :, ::-1, ::-1].copy(), g, stride, padding)[0]
        mistakes: dict[str, Named] = {
            "gx": {
                "The gradient of the halo is not returned: add what the neighbours computed for these rows.": part[0][
                    :, :, start:stop
                ],
                "What comes from a neighbour is added to the gradient of these rows, not put in its place.": (
                    overwritten[:, :, start:stop]
                ),
                NO_MEAN: gx[:, :, start:stop] / p,
                "The neighbours' gradients are added twice.": (2 * gx - part[0])[:, :, start:stop],
                "The kernel is the wrong way round: patch_gradient does it right.": turned[:, :, start:stop],
                "This is the gradient of the whole patch. Its halo belongs to the neighbours.": padded[
                    :, :, own.needs[0] + padding : own.needs[1] + padding, :width
                ],
                "This is whole gx. Each rank returns the gradient of its own rows.": gx,
            },
            "gw": {
                "This is the sum over this rank's pixels: the other ranks have the rest.": part[1],
                NO_MEAN: gw / p,
                "The halo is missing: in the first and last windows of a slab there are pixels of the neighbours.": (
                    without_halo
                ),
                "gw is the sum over the samples, not the mean.": gw / N,
                "The kernel is the wrong way round.": gw[:, :, ::-1, ::-1],
                "This is transposed: gw has the shape of w, (F, C, K, K).": gw.transpose(1, 0, 2, 3),
                "This is summed over the ranks twice.": p * gw,
            },
            "gb": {
                "This is the sum over this rank's rows of y: the other ranks have the rest.": part[2],
                NO_MEAN: gb / p,
                "gb is added p times: sum it over the ranks once.": p * gb,
                "gb is the sum over the samples, not the mean.": gb / N,
                "gb is the sum over the pixels, too, not their mean.": gb / (OH * OW),
                "The bias has one element for each filter: sum g over samples, rows and columns.": np.asarray(g.sum()),
            },
        }
        first, last = span(OH, p, i)
        given: Named = {
            "patch": patch(x, own.needs, (-padding, width - padding)), "w": w, "g": g[:, :, first:last].copy(),
            "H": H, "W": W, "stride": stride, "padding": padding,
        }  # fmt: skip
        ranks.append(Rank(given, {"gx": gx[:, :, start:stop], "gw": gw, "gb": gb}, mistakes))
    sizes = f"N={N}, C={C}, H={H}, W={W}, F={filters}, kernel {K}, stride {stride}, padding {padding}"
    return Divided(answer, sizes, ranks)


def kept(array: Array, rows: tuple[int, int]) -> Array:
    """The array with zeros outside these rows."""
    result = np.zeros_like(array)
    result[:, :, rows[0] : rows[1]] = array[:, :, rows[0] : rows[1]]
    return result


def compare_sums(one: Divided) -> None:
    """Raise Wrong unless one or two all-reduces of F C K K + F words are all that is not sent between neighbours."""
    p, w = one.p, one.ranks[0].given["w"]
    words = w.size + len(w)
    expected = f"expected one or two all-reduces of {counted(words, 'word')} together"
    total = 0.0
    for rank in range(p) if p > 1 else ():
        made = Counter(each.operation for each in one.run.collectives[rank])
        pairs = min(made["reduce_scatter"], made["all_gather"])
        others = [name for name in one.run.operations[rank] if name not in MESSAGES | {"all_reduce"}]
        others = [name for name in others if not (name in ("reduce_scatter", "all_gather") and made[name] == pairs)]
        if others:
            raise Wrong(f"{one.called(rank)}: {expected}, and no comm.{others[0]}.", WHY_NOT.get(others[0], ""))
        count = made["all_reduce"] + pairs
        expect.true(
            1 <= count <= 2,
            f"{one.called(rank)}: {expected}, got {counted(count, 'all-reduce')}.",
            "gw and gb are sums over all pixels, and each rank has its own." if not count else "",
        )
        total += sum(nbytes for name, (_, nbytes) in one.run.traffic[rank].items() if name not in MESSAGES) / 8
    most = words_sent(p, words)
    expect.true(
        total <= most,
        f"weight_gradient on {p} ranks, {one.sizes}: {expected}; that is at most {counted(most, 'word')} sent by all "
        f"ranks, got {total:g}.",
        "Only gw and gb are summed over all ranks; gx belongs to neighbours.",
    )
    for rank in range(p) if p > 1 else ():
        could_have_carried(one.run, f"{one.called(rank)}: gw", rank, range(p), 8 * words)


def compare_returned(one: Divided) -> None:
    """Raise Wrong unless each rank sends its neighbours the gradients of their pixels, in one message each."""
    given = one.ranks[0].given
    (N, *_), (_F, C, K, _), p = given["g"].shape, given["w"].shape, one.p
    H, W, stride, padding = (given[name] for name in ("H", "W", "stride", "padding"))
    rows = lines(H, p, K, stride, padding)
    for rank in range(p):
        called = one.called(rank)
        expect.true(
            not one.run.unfinished[rank],
            f"{called}: returned without waiting for the end of {counted(one.run.unfinished[rank], 'call')} of isend "
            "or irecv.",
            "isend only begins to send: keep what it returns, and call .wait() of it.",
        )
    for rank in range(p):
        called = one.called(rank)
        sent: dict[int, list[int]] = {}
        for source, destination, nbytes in point_to_point(one):
            if source == rank:
                sent.setdefault(destination, []).append(nbytes)
        for destination, each in sent.items():
            count = len(common(rows[rank].inside, rows[destination].has))
            most = 8 * N * C * W * count
            expect.true(
                abs(destination - rank) == 1,
                f"{called}: sent a message to rank {destination}, which is no neighbour.",
                "After the last rank there is none: the slabs are no ring.",
            )
            expect.true(
                len(each) == 1,
                f"{called}: sent {counted(len(each), 'message')} to rank {destination}, expected at most one.",
                "All samples, channels and rows for a neighbour fit in one array.",
            )
            expect.true(
                each[0] <= most,
                f"{called}: sent {each[0]} bytes to rank {destination}, expected at most {most}: N C W = {N * C * W} "
                f"words for {counted(count, 'row')}.",
                "Columns outside the image belong to nobody: cut them off before the gradient is sent."
                if each[0] == 8 * N * C * count * (W + 2 * padding) > most
                else "Only the rows of the patch that belong to this neighbour go to it.",
            )
        for other in (rank - 1, rank + 1):
            if 0 <= other < p and (count := len(common(rows[other].inside, rows[rank].has))):
                least = 8 * N * C * count * min(W, (output_size(W, K, stride, padding) - 1) * stride + K - padding)
                got = sum(n for source, destination, n in point_to_point(one) if (source, destination) == (other, rank))
                expect.true(
                    got >= least,
                    f"{called}: got {got} bytes from rank {other}, {least} are needed: the gradients of "
                    f"{counted(count, 'row')} of this rank in the halo of the other.",
                    "The gradient of the halo is not returned." if not got else "",
                )


def point_to_point(one: Divided) -> list[tuple[int, int, int]]:
    """The messages outside collectives: source, destination, bytes. They are received by recv or sendrecv."""
    return [
        (event[5], event[0], event[4]) for event in one.run.events if event[1] == "receive" and event[7] in MESSAGES
    ]
