"""Convolutions divided by channels: cases, the right outputs, the reduce-scatter, and what known mistakes give."""

from __future__ import annotations

import numpy as np

from course.checks.parallel_convolution.tiles_of_images import output_size, span
from course.checks.tensor_parallelism.divided_runs import Array, Divided, Named, Rank, uneven_shards
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import could_have_carried
from course.plural import counted
from minidl import Tensor
from minidl import functional as F
from minidl.random import Purpose, stream

Case = tuple[int, ...]
"""(p, N, C, F, H, W, K, stride, padding)"""

CAUSES = {
    "all_reduce": "An all-reduce brings every rank all of y, and sends twice as much: a rank needs its own channels.",
    "all_gather": "With an all-gather every rank gets the partial sums of all others, p times the words.",
    "reduce": "A reduce brings one rank the whole sum: each rank needs its own channels.",
    "all_to_all": "comm.reduce_scatter sends the partial sums to the rank that needs them, and adds them up.",
    "barrier": "The reduce-scatter itself waits for what it needs.",
}


def convolution(x: Array, w: Array, stride: int, padding: int) -> Array:
    return np.asarray(F.conv2d(Tensor(x), Tensor(w), stride=stride, padding=padding).data)


def channels(answer: Answer, case: Case, seed: int) -> Divided:
    """`stationary_x` on p ranks."""
    p, N, C, filters, H, W, K, stride, padding = case
    rng = stream(Purpose.MANUAL, seed, "channels", *case)
    x, w, b = rng.normal(size=(N, C, H, W)), rng.normal(size=(filters, C, K, K)), rng.normal(size=filters)
    w[0], b[0] = 1e-8 * w[0], 1e-8 * b[0]  # what is small is not 0
    y, ranks = convolution(x, w, stride, padding), []
    for rank, own in enumerate(uneven_shards(C, p, seed)):
        start, stop = span(filters, p, rank)
        mine, bias = slice(start, stop), b[:, None, None]
        z, v = x[:, own].copy(), w[:, own].copy()
        partial = convolution(z, v, stride, padding)
        flat = np.array_split(y.ravel(), p)[rank]
        mistakes: dict[str, Named] = {
            "y": {
                "The bias is added p times: add it after the sum over the ranks.": (y + p * bias)[:, mine],
                "The bias is missing.": y[:, mine],
                "The bias is that of the first filters, not of this rank's.": (
                    y[:, mine] + b[: stop - start, None, None]
                ),
                "This is a partial sum: the other ranks have the other channels.": (partial + bias)[:, mine],
                "This is a partial sum, and the bias is missing.": partial[:, mine],
                "This is the mean over the ranks, not the sum.": y[:, mine] / p + bias[mine],
                "This is all of y. Each rank returns its own channels.": y + bias,
                "The first axis is that of the filters: move it back behind the samples.": np.moveaxis(
                    (y + bias)[:, mine], 1, 0
                ),
                "The reduce-scatter divides the first axis: bring the filters there before.": flat,
                "The samples are divided over the ranks here, not the filters.": (y + bias)[slice(*span(N, p, rank))],
                "The padding is missing.": (
                    (convolution(x, w, stride, 0) + bias)[:, mine] if min(H, W) >= K and padding else y[:, mine]
                ),
                "The stride is missing.": (convolution(x, w, 1, padding) + bias)[:, mine],
                "The kernel is the wrong way round.": (
                    convolution(x, w[:, :, ::-1, ::-1].copy(), stride, padding) + bias
                )[:, mine],
            }
        }
        given: Named = {"x": z, "w": v, "b": b, "stride": stride, "padding": padding}
        ranks.append(Rank(given, {"y": (y + bias)[:, mine]}, mistakes))
    sizes = f"N={N}, C={C}, F={filters}, H={H}, W={W}, kernel {K}, stride {stride}, padding {padding}"
    return Divided(answer, sizes, ranks)


def compare_collectives(one: Divided) -> None:
    """Raise Wrong unless each rank made one reduce-scatter, and called nothing else."""
    for rank in range(one.p) if one.p > 1 else ():
        expected = f"{one.called(rank)}: expected one comm.reduce_scatter and nothing else"
        others = [name for name in one.run.operations[rank] if name != "reduce_scatter"]
        if others:
            raise Wrong(f"{expected}, got comm.{others[0]}.", CAUSES.get(others[0], ""))
        count = len(one.run.collectives[rank])
        expect.true(
            count == 1,
            f"{expected}, got {counted(count, 'reduce-scatter', 'reduce-scatters')}.",
            "What this rank's channels give is a partial sum of all of y." if not count
            else "All samples and filters fit in one array.",
        )  # fmt: skip


def compare_words(one: Divided) -> None:
    """Raise Wrong unless the ranks together send the words of one reduce-scatter of y."""
    given = one.ranks[0].given
    (N, _C, H, W), (filters, _, K, _), p = given["x"].shape, given["w"].shape, one.p
    stride, padding = given["stride"], given["padding"]
    pixels = N * output_size(H, K, stride, padding) * output_size(W, K, stride, padding)
    want, got = (p - 1) * pixels * filters, sum(one.run.nbytes) / 8
    causes = {
        2 * want: "Twice as many: an all-reduce.",
        p * want: "Every rank gets the partial sums of all others: p times the words.",
        want / 2: "With 4 bytes a number loses digits.",
        p * (p - 1) * N * one.ranks[0].given["x"][0].size: "Channels of x are sent: they stay where they are.",
    }
    expect.true(
        got == want,
        f"stationary_x on {p} ranks, {one.sizes}: expected {counted(want, 'word')} sent by all ranks, (p - 1) N F OH "
        f"OW, got {got:g}.",
        next((sentence for words, sentence in causes.items() if words == got), ""),
    )
    for rank in range(p) if p > 1 else ():
        start, stop = span(filters, p, rank)
        sources = range(p) if stop > start else ()
        could_have_carried(one.run, f"{one.called(rank)}: y", rank, sources, 8 * pixels * (stop - start))
