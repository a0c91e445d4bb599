"""Distributed convolution: pixels, channels, filters and samples divided over 8 ranks (T18, M8 to M12).

Dryden et al. divide a convolution by the pixels of its images, with halos (arXiv:1903.06681), and by channels and
filters, with stationary x, y or w (SC'19): each of these stays where it is, and the others are sent. All at once is a
general distributed convolution. Ranks with the same shard of the weights then sum the gradients of that shard alone, a
segmented all-reduce. Dryden's lecture states how many times faster training was on 4 or 8 times as many GPUs: 1.71
(ResNet-50), 2.35 (WRN-50-2) and 4.12 (WRN-50-4).

Here: one layer in float64, of 8 images of 16 x 16 pixels with 16 channels and 24 filters, forward and backward on 8
simulated ranks. What each rank sends is read from the ledger.

What must show: (1) y and the gradients of x and w equal those of one rank within 1e-10 under six divisions: 1 x 8 and
2 x 4 tiles, stationary x, y and w, and 2 x 2 x 2 shares of samples, pixels and channels. (2) A rank with neighbours all
around sends exactly the words of `grid_words`: halos, collectives and the segmented all-reduce. (3) Stationary x
reduce-scatters in forward and all-gathers in backward; y the other way round; w does both in both. (4) An interior slab
receives 2 floor(K/2) W C N numbers for odd K and stride 1, in general (K - stride) W C N. (5) With g shards of the
weights, q = 8/g ranks sum each: (8 - 1)/(q - 1) times fewer bytes than with whole weights.

Also shown: how many times faster a step becomes by the formula of `parallel.convolution_grids`, next to the lecture's
figures. Only the order is judged: the wider network gains more in both. The formula has the speeds of data sheets, so
the numbers differ.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import Tensor, cluster, nn
from minidl.cluster import Communicator
from minidl.parallel.convolution_grids import (
    ConvolutionGrid,
    GridWords,
    LayerShape,
    fastest_grids,
    grid_words,
    layer_shapes,
)
from minidl.parallel.spatial import SpatialConv2d, Tile, halo_words
from minidl.parallel.tensor import GridConv2d
from minidl.parallel.tensor.on_tiles import SpatialGridConv2d
from minidl.plots import lines

TITLE = "Distributed convolution: tiles with halos, stationary x, y and w, and all at once (T18, M8 to M12)"

RANKS, SAMPLES, CHANNELS, FILTERS, SIZE = 8, 8, 16, 24, (16, 16)
DIVISIONS = {
    "tiles 1 x 8": ConvolutionGrid(columns=8),
    "tiles 2 x 4": ConvolutionGrid(rows=2, columns=4),
    "stationary x": ConvolutionGrid(channels=8),
    "stationary y": ConvolutionGrid(filters=8),
    "stationary w": ConvolutionGrid(channels=2, filters=4),
    "samples 2, pixels 2 x 1, channels 2": ConvolutionGrid(samples=2, rows=2, channels=2),
}
ORDERS = {
    "stationary x": "reduce_scatter all_gather",
    "stationary y": "all_gather reduce_scatter",
    "stationary w": "all_gather reduce_scatter all_gather reduce_scatter",
}
COLUMNS = ("division", "quantity", "expected", "got", "verdict")
WINDOWS = ((1, 1), (3, 1), (5, 1), (2, 1), (4, 2))
"""Kernels and strides whose halos are counted."""
NETWORKS = {"ResNet-50": (1, 8192, 4, 1.71), "WRN-50-2": (2, 4096, 8, 2.35), "WRN-50-4": (4, 2048, 8, 4.12)}
"""Width, batch, times as many GPUs, and times as fast."""
GPUS = 256


def experiment(reproduction: Reproduction) -> None:
    divisions(reproduction)
    halos(reproduction)
    words = segmented(reproduction)
    reproduction.picture(picture(words, speeds(reproduction)))


# The same numbers


class Whole(NamedTuple):
    """What one rank computes."""

    layer: nn.Conv2d
    x: Any
    g: Any
    y: Any
    of_x: Any
    of_w: Any


def whole() -> Whole:
    rng = np.random.default_rng(7)
    layer = nn.Conv2d(CHANNELS, FILTERS, 3, padding=1, bias=False).double()
    x = Tensor(rng.normal(size=(SAMPLES, CHANNELS, *SIZE)), requires_grad=True)
    y = layer(x)
    g = rng.normal(size=y.shape)
    y.backward(g)
    return Whole(layer, x.numpy(), g, y.numpy(), x.grad, layer.weight.grad)


def shares(comm: Communicator, grid: ConvolutionGrid, truth: Whole) -> list[float]:
    """The largest differences of this rank's shares of y, of x's gradient and of w's from one rank's."""
    extents = grid.samples, grid.rows * grid.columns, grid.channels * grid.filters
    mesh = comm.mesh(extents, ("samples", "pixels", "blocks"))
    tile = Tile(mesh["pixels"], (grid.rows, grid.columns))
    layer = deepcopy(truth.layer)
    layer.zero_grad()
    layer = SpatialGridConv2d(GridConv2d(layer, mesh["blocks"], grid.channels), tile, SIZE)

    def own(images: Any) -> Any:
        for axis, name in enumerate(("samples", "blocks")):
            images = np.split(images, mesh[name].size, axis)[mesh[name].rank]
        return tile.cut(images).copy()

    x = Tensor(own(truth.x), requires_grad=True)
    y = layer(x)
    y.backward(own(truth.g))
    replicas = mesh["samples", "pixels"]
    of_w = replicas.all_reduce(layer.weight.grad, algorithm="ring") if replicas.size > 1 else layer.weight.grad
    shard: Any = layer.weight.shard
    of_whole = own(truth.y), own(truth.of_x), shard.cut(truth.of_w)
    found = y.numpy(), x.grad, of_w
    return [float(np.abs(ours - theirs).max()) for ours, theirs in zip(found, of_whole, strict=True)]


def sent(run: cluster.Run) -> GridWords:
    """The words of halos, activations and gradients of weights that the busiest rank sends."""
    names = ("isend",), ("all_gather", "reduce_scatter"), ("all_reduce",)
    axes = ("pixels",), ("channels", "filters"), ("samples,pixels", "samples", "pixels")

    def busiest(operations: tuple[str, ...], along: tuple[str, ...]) -> float:
        of_ranks = [0.0] * RANKS
        for axis in along:
            for rank, ledger in enumerate(run.trace.ledger(axis) if axis in run.trace.axes else []):
                of_ranks[rank] += sum(ledger[name].nbytes / 8 for name in operations if name in ledger)
        return max(of_ranks)

    return GridWords(*(busiest(*each) for each in zip(names, axes, strict=True)))


def words_of(grid: ConvolutionGrid) -> GridWords:
    """The words of `grid_words`, but for the halos of a rank that has fewer neighbours than one inside the grid."""
    x, y = (SAMPLES, CHANNELS, *SIZE), (SAMPLES, FILTERS, *SIZE)
    layer = LayerShape(x, y, (3, 3), (1, 1), FILTERS * CHANNELS * 9, 0, False)
    rows, columns = (size // extent for size, extent in zip(SIZE, (grid.rows, grid.columns), strict=True))
    above, beside = min(grid.rows - 1, 2), min(grid.columns - 1, 2)
    pixels = above * columns + beside * (rows + above)  # corners travel with the columns
    planes = SAMPLES // grid.samples * CHANNELS // (grid.channels * grid.filters)
    return grid_words(layer, grid)._replace(halos=2.0 * planes * pixels)  # forward, and again backward


def divisions(reproduction: Reproduction) -> None:
    """Compare every division with one rank, its words with the formulas, its collectives with the papers."""
    truth, rows = whole(), []
    worst, is_formula, is_order = 0.0, True, True
    for name, grid in DIVISIONS.items():
        run = cluster.launch(shares, (grid, truth), nodes=RANKS, on="simulation")
        for what, difference in zip(("y", "dx", "dw"), np.max(run.results, axis=0).tolist(), strict=True):
            rows.append([name, f"difference of {what}", "< 1e-10", difference, said(difference < 1e-10)])
            worst = max(worst, difference)
        for what, counted, expected in zip(GridWords._fields, sent(run), words_of(grid), strict=True):
            if counted or expected:
                rows.append([name, f"words of {what}", expected, counted, said(counted == expected)])
            is_formula &= counted == expected
        calls = (event.operation for event in run.trace.events if event.rank == 0)
        order = " ".join(each for each, _ in groupby(calls) if each in ("all_gather", "reduce_scatter"))
        if name in ORDERS:
            rows.append([name, "collectives", ORDERS[name], order, said(order == ORDERS[name])])
            is_order &= order == ORDERS[name]
    reproduction.table(
        COLUMNS, rows, "differences from one rank in float64; words that the busiest rank sends; simulated"
    )
    reproduction.accept(
        worst < 1e-10, f"{len(DIVISIONS)} divisions: y, dx and dw differ from one rank's by {worst:.0e}"
    )
    reproduction.accept(
        is_formula, f"{len(DIVISIONS)} divisions: halos, activations and weights send the formulas' words"
    )
    reproduction.accept(is_order, "stationary x, y and w call the collectives of the paper, in its order")


def said(holds: bool) -> str:
    return "holds" if holds else "fails"


# Halos


def halos(reproduction: Reproduction) -> None:
    """Count what an interior one of 8 slabs receives in forward."""
    rows, holds = [], True
    for kernel, stride in WINDOWS:
        layer = nn.Conv2d(CHANNELS, FILTERS, kernel, stride, padding=(kernel - 1) // 2).double()

        def program(comm: Communicator, layer: nn.Conv2d = layer) -> None:
            tile = Tile(comm, (RANKS, 1))
            SpatialConv2d(layer, tile, SIZE)(tile.cut(np.zeros((SAMPLES, CHANNELS, *SIZE))))

        ledgers = cluster.launch(program, nodes=RANKS, on="simulation").trace.ledger()[1:-1]
        expected = (kernel - stride if kernel > stride else 0) * SIZE[1] * CHANNELS * SAMPLES
        got = {each["irecv"].nbytes_received // 8 if "irecv" in each else 0 for each in ledgers}
        is_so = got == {expected} and expected == halo_words(kernel, SIZE[1], CHANNELS, SAMPLES, stride)
        rows.append([f"K = {kernel}, stride {stride}", "numbers", expected, *got, said(is_so)])
        holds &= is_so
    reproduction.table(COLUMNS, rows, "received by an interior one of 8 slabs of rows, simulated; (K - stride) W C N")
    reproduction.accept(holds, f"{len(WINDOWS)} kernels: an interior slab receives (K - stride) W C N numbers")


# The segmented all-reduce


def segmented(reproduction: Reproduction) -> dict[int, float]:
    """Sum the gradients of weights that 8/g replicas have in g shards; returns the words that a rank sends, by g."""
    truth, rows, words = whole(), [], {}
    for shards in (1, 2, 4):
        grid = ConvolutionGrid(samples=RANKS // shards, filters=shards)
        words[shards] = sent(cluster.launch(shares, (grid, truth), nodes=RANKS, on="simulation")).weights
        expected, ratio = (RANKS - 1) / (RANKS // shards - 1), words[1] / words[shards]
        rows.append([f"g = {shards}", "ratio of bytes", expected, ratio, said(abs(ratio - expected) < 1e-12)])
    reproduction.table(COLUMNS, rows, "bytes of the gradients' all-reduce with whole weights, over those with g shards")
    ratios = ", ".join(f"{row[3]:.3g}" for row in rows[1:])
    reproduction.accept(
        all(row[-1] == "holds" for row in rows),
        f"2 and 4 shards of the weights send {ratios} times fewer bytes, (8 - 1)/(8/g - 1)",
    )
    return words


# Speed


def speeds(reproduction: Reproduction) -> list[list[Any]]:
    """Compute how many times faster the formula makes a step on more GPUs, next to the published factors."""
    rows: list[list[Any]] = []
    for name, (width, batch, ways, factor) in NETWORKS.items():
        layers = layer_shapes(partial(nn.models.ResNet, 50, width=width), (batch, 3, 224, 224))
        before = fastest_grids(layers, GPUS, allowed=lambda grid: grid.samples == GPUS).seconds
        after = fastest_grids(layers, GPUS * ways, allowed=lambda grid: grid.samples <= GPUS)
        last = after.grids["layer4.2.conv2"]
        rows.append([name, sum(layer.weights for layer in layers.values()), ways, factor, before / after.seconds])
        rows[-1] += [after.grids["layer1.0.conv1"].rows, last.channels * last.filters]
    columns = ["network", "weights", "times GPUs", "times faster, published", "model", "rows, first", "shards, last"]
    note = (
        f"formula; at first {GPUS} GPUs divide the samples, an assumption; rows and shards of the first and last 3 x 3"
    )
    reproduction.table(columns, rows, note)
    gains = [row[4] for row in rows]
    reproduction.accept(
        gains == sorted(gains) and all(1 < row[4] < row[2] for row in rows),
        "the wider network gains more: published "
        + ", ".join(f"{row[3]:.2f}" for row in rows)
        + "; model "
        + ", ".join(f"{gain:.2f}" for gain in gains),
    )
    return rows


def picture(words: dict[int, float], rows: list[list[Any]]) -> Figure:
    shards, weights = list(words), [row[1] / 1e6 for row in rows]
    formula = [words[1] / 7 * (RANKS / g - 1) for g in shards]
    of_words = [lines.Line("formula", shards, formula), lines.Line("simulated", shards, list(words.values()), "points")]
    factors = [
        lines.Line(name, weights, [row[at] for row in rows], "both") for at, name in ((3, "published"), (4, "model"))
    ]
    return lines.draw(
        [
            lines.Panel(of_words, "shards of the weights, g", "words a rank sends", "Segmented all-reduce, 8 ranks"),
            lines.Panel(factors, "weights of the network [millions]", "times faster", "4 or 8 times as many GPUs"),
        ],
        source=["simulated", "formula"],
    )


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
