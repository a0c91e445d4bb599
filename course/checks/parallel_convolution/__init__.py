"""The checks of chapter 12: parallel convolution."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from course.checks.library_versions import BUILDS
from course.checks.parallel_convolution import channel_sums, cut_bytes, halo_patches, slab_gradients
from course.checks.tensor_parallelism.divided_runs import compare_runs, returned
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("12_parallel_convolution", BUILDS["12_parallel_convolution"])
hint = chapter.hint
__all__ = ["bytes_of_a_cut", "chapter", "halo_exchange", "hint", "stationary_x", "weight_gradient"]


@chapter.exercise(
    points=4,
    hints=[
        "Which rows of the image does a rank need whose rows of y are `first` to `stop` - 1? Row `first` begins with "
        "row first · stride - padding. Where does the window of row stop - 1 end?",
        "Cut off what is outside the image: start = max(..., 0), end = min(..., H). How many of these rows does the "
        "rank have, of those from span(H, h, i)? The columns are counted in the same way.",
        "A rank needs (rows needed) · (columns needed) pixels, and has (rows that it needs and has) · (columns that "
        "it needs and has). The difference contains the corners, each once. Add up all ranks.",
        "Channels: n is the size of y, N F OH OW. Filters: n is the size of x. Each collective is (p - 1) n numbers. "
        "Only with tiles has every rank all weights, so only there are their gradients summed.",
    ],
)
def bytes_of_a_cut(
    answer: Answer,
    part: Part,
    *,
    slabs: Sequence[cut_bytes.Tiles] = (
        (1, 3, 9, 8, 2, 3, 1, 1, 3, 1), (1, 3, 8, 8, 2, 3, 1, 1, 2, 1), (2, 4, 16, 6, 3, 5, 1, 2, 4, 1),
        (2, 3, 17, 7, 5, 3, 2, 1, 3, 1), (3, 2, 10, 5, 4, 1, 1, 0, 2, 1), (2, 3, 11, 5, 4, 3, 1, 0, 3, 1),
        (1, 2, 9, 4, 3, 3, 1, 1, 1, 1), (2, 3, 8, 5, 4, 5, 1, 2, 8, 1), (1, 2, 20, 6, 3, 4, 2, 1, 4, 1),
        (1, 2, 16, 5, 3, 1, 3, 0, 4, 1),
    ),
    tiles: Sequence[cut_bytes.Tiles] = (
        (2, 3, 8, 10, 4, 3, 1, 1, 2, 2), (1, 2, 13, 11, 3, 5, 1, 2, 3, 2), (2, 3, 15, 16, 5, 3, 2, 1, 2, 3),
        (1, 3, 9, 12, 2, 5, 1, 2, 1, 3), (2, 2, 11, 12, 3, 4, 1, 0, 2, 3),
    ),
    groups: Sequence[cut_bytes.Group] = (
        (1, 3, 9, 8, 2, 3, 1, 1, 3), (1, 3, 8, 8, 2, 3, 1, 1, 2), (2, 4, 9, 7, 6, 3, 2, 1, 4),
        (3, 5, 6, 8, 4, 5, 1, 0, 3), (2, 3, 5, 5, 4, 1, 1, 0, 1),
    ),
) -> None:  # fmt: skip
    """The bytes of halos, of reduce-scatters and all-gathers; three quarters are for tiles, corners and backward."""
    pairs = cache(lambda sizes, kernel, stride, padding, cut: answer(sizes, kernel, stride, padding, cut))
    kinds = ("channels", "filters")
    with part(1, "slabs, forward"):
        for case in slabs:
            cut_bytes.compare_tiles(pairs, tuple(case), 0)
    with part(1, "tiles with corners, forward"):
        for case in tiles:
            cut_bytes.compare_tiles(pairs, tuple(case), 0)
    with part(1, "channels and filters, forward"):
        for kind in kinds:
            for group in groups:
                cut_bytes.compare_group(pairs, tuple(group), kind, 0)
    with part(1, "the backward of each division"):
        for case in (*slabs, *tiles):
            cut_bytes.compare_tiles(pairs, tuple(case), 1)
        for kind in kinds:
            for group in groups:
                cut_bytes.compare_group(pairs, tuple(group), kind, 1)


@chapter.exercise(
    points=6,
    hints=[
        "Write a function that says which rows the patch of rank k has: from first · stride - padding on, to (stop - "
        "1) · stride - padding + K - 1, where first, stop = span(OH, h, k). Then each rank knows what every "
        "neighbour needs.",
        "Send a neighbour the rows that are in its patch and in your tile; receive those that are in your patch and "
        "in its tile. If there are none, neither of the two sends anything.",
        "Start with a patch of zeros, and put in your own rows and what you receive, each at (row of the image) - "
        "(first row of the patch). What is never put in stays zero: that is the padding.",
        "For a grid do the same with the columns of the array that you have by now: it has the rows of the patch, "
        "and the corners with them.",
        "Call comm.isend for all neighbours first, then comm.recv for all, then .wait() for each isend: then nobody "
        "waits for somebody who waits for him. A slice is sent as a copy: np.ascontiguousarray(...).",
    ],
)
def halo_exchange(
    answer: Answer,
    part: Part,
    *,
    slabs: Sequence[halo_patches.Case] = (
        (2, 1, 1, 1, 4, 4, 3, 1, 1), (3, 1, 2, 2, 10, 5, 3, 1, 1), (2, 1, 1, 3, 11, 6, 5, 1, 2),
        (3, 1, 2, 1, 17, 7, 3, 2, 1), (2, 1, 1, 2, 9, 6, 4, 1, 0), (4, 1, 1, 2, 9, 5, 1, 1, 0),
        (1, 1, 2, 1, 5, 4, 3, 1, 1), (4, 1, 2, 1, 16, 7, 1, 3, 0), (3, 1, 1, 2, 18, 8, 3, 2, 0),
    ),
    grids: Sequence[halo_patches.Case] = (
        (2, 2, 1, 2, 6, 7, 3, 1, 1), (2, 3, 2, 1, 11, 16, 5, 1, 2), (3, 2, 1, 2, 13, 9, 3, 2, 1),
        (1, 3, 2, 2, 4, 10, 3, 1, 1), (3, 3, 1, 1, 11, 13, 4, 1, 0),
    ),
    long: Sequence[halo_patches.Case] = ((7, 1, 1, 2, 16, 4111, 3, 1, 1), (2, 2, 30, 40, 10, 16, 3, 1, 1)),
    seed: int = 0,
) -> None:  # fmt: skip
    """The patches; half of it is for messages between neighbours only, as short as they can be, and no waiting."""

    exchange = cache(partial(halo_patches.Exchange, answer, seed=seed))
    with part(1.5, "slabs: the rows that the convolution needs"):
        compare_runs(exchange, slabs, halo_patches.compare_patches)
    with part(1.5, "a grid: rows, columns and corners"):
        compare_runs(exchange, grids, halo_patches.compare_patches)
    with part(2, "the patch by one message to each neighbour, with what it needs"):
        compare_runs(exchange, (*slabs, *grids), halo_patches.compare_messages, halo_patches.compare_patches)
    with part(1, "long messages and more ranks: no deadlock, and no waiting in a line"):
        compare_runs(exchange, long, halo_patches.compare_patches, halo_patches.compare_time)


@chapter.exercise(
    points=5,
    hints=[
        "Each rank has different pixels, so its gw and gb are terms of the sums over all pixels. The patch has the "
        "halo already: weights_gradient(patch, g, K, stride) is this rank's term.",
        "gw and gb fit in one vector: np.concatenate([gw.ravel(), gb]), then one comm.all_reduce.",
        "patch_gradient(patch, w, g, stride) has the rows of the patch. Its columns from `padding` to `padding` + W "
        "- 1 are those of the image. Which of its rows are yours, and which are a neighbour's?",
        "As in exercise 2, the other way round: send a neighbour the gradients of the rows that are in your patch "
        "and in its slab; add what it sends to the gradients of your own rows.",
        "If (W + 2 padding - K) is not divisible by the stride, the last columns of the image are in no window: the "
        "patch ends before them, and their gradient is zero. Begin with gx = np.zeros((N, C, own rows, W)).",
    ],
)
def weight_gradient(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[slab_gradients.Case] = (
        (2, 3, 1, 6, 5, 4, 3, 1, 1), (3, 1, 2, 10, 6, 4, 3, 1, 1), (2, 2, 3, 11, 5, 2, 5, 1, 2),
        (3, 1, 2, 17, 8, 3, 3, 2, 1), (2, 1, 2, 9, 6, 3, 4, 1, 0), (3, 1, 2, 18, 8, 3, 3, 2, 0),
        (4, 2, 1, 9, 5, 3, 1, 1, 0), (1, 2, 2, 5, 6, 3, 3, 1, 1), (2, 1, 2, 7, 4300, 3, 3, 1, 1),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """The gradients of one node; half of it is for the sums over ranks, and the gradients of the halo."""

    run = cache(partial(slab_gradients.slabs, answer, seed=seed))
    with part(1.5, "the gradients of the weights and of the bias, whole on each rank"):
        compare_runs(run, cases, returned("gw", "gb"))
    with part(1.5, "the gradient of this rank's rows, with that of the neighbours' halos"):
        compare_runs(run, cases, returned("gx"))
    with part(1, "one or two all-reduces of F C K K + F words"):
        compare_runs(run, cases, slab_gradients.compare_sums)
    with part(1, "gx by one message to each neighbour, with the gradients of its pixels"):
        compare_runs(run, cases, slab_gradients.compare_returned, returned("gx"))


@chapter.exercise(
    points=3,
    hints=[
        "np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding))) pads x; then convolve gives this rank's "
        "partial sum of all of y.",
        "comm.reduce_scatter divides the first axis, which is that of the samples in y. np.moveaxis(y, 1, 0) brings "
        "the filters there, and np.moveaxis(result, 0, 1) brings them back.",
        "The bias is the same on all ranks: when is it to be added so that it counts once? Which of its elements "
        "belong to this rank's channels of y?",
    ],
)
def stationary_x(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[channel_sums.Case] = (
        (2, 2, 4, 6, 5, 6, 3, 1, 1), (3, 3, 5, 7, 8, 7, 3, 2, 1), (2, 2, 3, 5, 6, 5, 1, 1, 0),
        (4, 1, 6, 3, 7, 9, 4, 1, 0), (1, 2, 2, 3, 6, 4, 3, 1, 1), (2, 1, 3, 5, 31, 29, 5, 1, 2),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """This rank's channels of y; two thirds are for the one reduce-scatter and its words."""

    run = cache(partial(channel_sums.channels, answer, seed=seed))
    with part(1, "this rank's channels of y, with the bias once"):
        compare_runs(run, cases, returned("y"))
    with part(1, "y by one reduce-scatter, and nothing else"):
        compare_runs(run, cases, channel_sums.compare_collectives, returned("y"))
    with part(1, "the words of one reduce-scatter of y"):
        compare_runs(run, cases, channel_sums.compare_words)
