"""Which grid of ranks should divide each layer of a network of convolutions? Words, seconds, and the fastest choice.

A grid N x (H x W) x (C x F) divides a layer by samples, rows, columns, channels and filters at once. A rank has 1/N of
the samples and a tile of their rows and columns, and, before and after the layer, 1/(C F) of the channels. Activations
are divided along all extents, weights along channels and filters. Forward and backward send, along

    samples        all-reduce of the gradients of the weights
    rows, columns  halos of x, and those of its gradient; that all-reduce
    channels       reduce-scatter of y, all-gather of its gradient
    filters        all-gather of x, reduce-scatter of its gradient

The all-reduce is segmented: the N H W ranks with the same shard of the weights sum 1/(C F) of them.

The model counts the convolutions and linear layers, which do nearly all the work. Nothing overlaps, and arithmetic
reaches the node's speed whatever the size of the shares. Layers come one after the other in the order in which they
are computed, although a residual network also has shortcuts. Memory is not limited.

How many times faster is a step on 4 or 8 times as many ranks? Batches, ways and times are those of Dryden's lecture
(34.1 -> 19.9, 106.9 -> 45.5, 432.3 -> 105.0 minutes); of these, the paper's abstract confirms the last factor alone.
That 256 ranks divide the samples is an assumption; `LASSEN` has the constants of the hardware.

    network    batch  weights        ways  measured  model, 256 shares of samples  model, any grid
    ResNet-50  8192    25.6 million  4     1.71      2.58                          2.74
    WRN-50-2   4096    68.9 million  8     2.35      3.28                          3.49
    WRN-50-4   2048   223.4 million  8     4.12      3.72                          3.78

The model finds what pays: rows and columns in early layers, channels and filters in late ones of the widest network.
It is no prediction of the factor: arithmetic at the data sheet's speed favours many ranks with few samples each, and
an all-reduce that is not hidden favours shards of the weights.

References
    Dryden et al., Improving Strong-Scaling of CNN Training (arXiv:1903.06681), section 5; Channel and Filter
    Parallelism for Large-Scale CNN Training (SC'19); Krizhevsky (arXiv:1404.5997) for grids that differ by layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from minidl.arguments import whole_number
from minidl.cluster import Network, Node
from minidl.cluster.cost import formulas
from minidl.nn import Conv2d, Linear, Module, building, count

ITEMSIZE = 4
"""Bytes of a float32."""


class ConvolutionGrid(NamedTuple):
    """How many ranks divide each dimension of a layer: samples, rows and columns of y, channels of x, filters."""

    samples: int = 1
    rows: int = 1
    columns: int = 1
    channels: int = 1
    filters: int = 1

    @property
    def ranks(self) -> int:
        return prod(self)

    @property
    def replicas(self) -> int:
        """Ranks with the same shard of the weights."""
        return self.samples * self.rows * self.columns

    @property
    def activations(self) -> tuple[int, int, int, int]:
        """How x and y are divided: two layers in which it is the same need no exchange between them."""
        return self.samples, self.rows, self.columns, self.channels * self.filters


class LayerShape(NamedTuple):
    """What the cost of a layer depends on; a linear layer is a convolution of images of one pixel.

    x, y           (samples, channels, height, width)
    window, stride of rows and of columns; the window with its dilation
    weights        numbers that are trained
    multiply_adds  of its forward pass
    reads_data     whether x is data: it needs no gradient, and every rank may read what it needs
    """

    x: tuple[int, int, int, int]
    y: tuple[int, int, int, int]
    window: tuple[int, int]
    stride: tuple[int, int]
    weights: int
    multiply_adds: int
    reads_data: bool


def layer_shapes(model: Module | Callable[[], Module], x: tuple[int, ...]) -> dict[str, LayerShape]:
    """The convolutions and linear layers of a model by name, in the order in which they are computed; from `nn.count`.

    Parameters
        model  a module, or a function that makes one, which then gets no values
        x      the shape of the samples

    An image that a convolution reads is taken for the smallest one that gives the output and is at least `stride` times
    as large.

    Raises ValueError for a convolution with groups.

    >>> from minidl import nn
    >>> shape = layer_shapes(nn.models.LeNet(), (32, 1, 28, 28))["conv2"]
    >>> shape.x, shape.y, shape.weights
    ((32, 6, 14, 14), (32, 16, 10, 10), 2416)
    """
    if not isinstance(model, Module):
        with building(lambda model: []):
            model = model()
    modules = dict(model.named_modules())
    found: dict[str, LayerShape] = {}
    for each in count(model, x).layers:
        layer: Any = modules[each.name]
        if isinstance(layer, Conv2d):
            if layer.groups > 1:
                raise ValueError(f"{each.name} has groups={layer.groups}: a grid divides convolutions of all channels")
            window = tuple(d * (k - 1) + 1 for d, k in zip(layer.dilation, layer.kernel_size, strict=True))
            padding = [(k - 1) / 2 if layer.padding == "same" else 0 for k in window]
            padding = padding if isinstance(layer.padding, str) else list(layer.padding)
            sizes = zip(each.shape[2:], layer.stride, window, padding, strict=True)
            image = [int(max(out * step, (out - 1) * step + k - 2 * pad)) for out, step, k, pad in sizes]
            of_x: Any = (each.shape[0], layer.in_channels, *image)
            of_y: Any = each.shape
            stride = layer.stride
        elif isinstance(layer, Linear):
            rows = prod(each.shape[:-1])
            of_x, of_y = (rows, layer.in_features, 1, 1), (rows, layer.out_features, 1, 1)
            window = stride = (1, 1)
        else:
            continue
        found[each.name] = LayerShape(of_x, of_y, window, stride, each.parameters, each.multiply_adds, not found)  # type: ignore[arg-type]
    return found


# ---- words ----


class GridWords(NamedTuple):
    """Numbers that a rank inside the grid sends for a layer in a step: of halos, of activations, of gradients."""

    halos: float
    activations: float
    weights: float


def grid_words(layer: LayerShape, grid: ConvolutionGrid) -> GridWords:
    """The numbers that a rank sends for a layer in forward and backward, by rings; sizes are divided without rounding.

    Weights on q replicas, with g = channels filters shards: 2 (q - 1)/q weights/g, the segmented all-reduce.

    >>> layer = LayerShape((8, 4, 6, 6), (8, 4, 6, 6), (3, 3), (1, 1), 144, 0, False)
    >>> grid_words(layer, ConvolutionGrid(samples=4))
    GridWords(halos=0.0, activations=0.0, weights=216.0)
    >>> grid_words(layer, ConvolutionGrid(samples=2, filters=2))
    GridWords(halos=0.0, activations=576.0, weights=72.0)
    >>> grid_words(layer, ConvolutionGrid(rows=3))
    GridWords(halos=768.0, activations=0.0, weights=192.0)
    """
    once = 1 if layer.reads_data else 2
    halos = sum(_halos(layer, grid))
    shards = grid.channels * grid.filters
    of_x = 0 if layer.reads_data else 2 * prod(layer.x) / grid.ranks * (grid.filters - 1)
    of_y = 2 * prod(layer.y) / grid.ranks * (grid.channels - 1)
    replicas = grid.replicas
    return GridWords(once * halos, of_x + of_y, 2 * (replicas - 1) / replicas * layer.weights / shards)


def _halos(layer: LayerShape, grid: ConvolutionGrid) -> tuple[float, float]:
    """The numbers of x in the halos that a rank sends to both sides: rows, then columns with the corners."""
    n, c, height, width = layer.x
    planes = n / grid.samples * c / (grid.channels * grid.filters)
    rows, columns = (max(k - step, 0) for k, step in zip(layer.window, layer.stride, strict=True))
    of_rows = rows * width / grid.columns if grid.rows > 1 else 0.0
    of_columns = columns * (height / grid.rows + (rows if grid.rows > 1 else 0)) if grid.columns > 1 else 0.0
    return planes * of_rows, planes * of_columns


# ---- seconds ----


@dataclass(frozen=True)
class Hardware:
    """Ranks in nodes, such as GPUs: those of a node have a fast network, and share the node's link to the others.

    Parameters
        rank      how fast a rank computes
        near      network of ranks in the same node
        far       link of a node to the others
        per_node  ranks in a node

    Along filters, ranks are next to each other, then along channels, columns, rows and samples.
    """

    rank: Node
    near: Network
    far: Network
    per_node: int

    def network(self, distance: int, ranks: int) -> Network:
        """The network of a group whose neighbours are `distance` ranks apart; such groups send at the same time.

        A ring leaves a node once, so that as many groups share the link as the node has ranks between neighbours.
        """
        if distance * ranks <= self.per_node:
            return self.near
        return self._shared[min(distance, self.per_node) - 1]

    @cached_property
    def _shared(self) -> list[Network]:
        """The link when 1, 2, ... groups share it."""
        return [replace(self.far, beta=self.far.beta * groups) for groups in range(1, self.per_node + 1)]


LASSEN = Hardware(
    rank=Node(flops_per_s=15.7e12, bytes_per_s=900e9),
    near=Network(alpha=1.9e-6, beta=1 / 75e9),
    far=Network(alpha=1e-6, beta=1 / (2 * 12.5e9)),
    per_node=4,
)
"""Four V100 in a node: 15.7 Tflop/s in float32 and 900 GB/s of memory, by the data sheet; three NVLink 2 of 25 GB/s to
a neighbour; two EDR InfiniBand of 12.5 GB/s that the four share; as on Lassen and Sierra. Latencies
are those of `Network.preset`."""


class GridSeconds(NamedTuple):
    """Seconds of a layer's forward and backward pass: of arithmetic, halos, activations, gradients of the weights."""

    compute: float
    halos: float
    activations: float
    weights: float

    @property
    def total(self) -> float:
        return sum(self)


def grid_seconds(layer: LayerShape, grid: ConvolutionGrid, hardware: Hardware = LASSEN) -> GridSeconds:
    """The seconds of a layer on a grid of ranks; the largest share counts.

    Forward, the gradient of x and that of the weights are a product each, of as many multiply-adds, limited by the
    rank's speed or by the memory that it reads and writes.
    """
    n, f, height, width = (
        ceil(size / extent)
        for size, extent in zip(layer.y, (grid.samples, grid.filters, grid.rows, grid.columns), strict=True)
    )
    shards = grid.channels * grid.filters
    share = n * f * height * width / prod(layer.y) / grid.channels
    numbers = prod(layer.x) / grid.ranks * grid.filters + n * f * height * width + layer.weights / shards
    backward = not layer.reads_data  # whether x needs a gradient, for which the same is sent again
    compute = (2 + backward) * hardware.rank.seconds(2 * layer.multiply_adds * share, ITEMSIZE * numbers)
    of_rows, of_columns = _halos(layer, grid)
    halos = 0.0
    for ranks, distance, words in ((grid.columns, shards, of_columns), (grid.rows, shards * grid.columns, of_rows)):
        network = hardware.network(distance, ranks)
        halos += (1 + backward) * (2 * network.alpha + ITEMSIZE * words * network.beta) * (words > 0)
    activations = 0.0
    of_x, of_y = prod(layer.x) // (grid.replicas * grid.channels), prod(layer.y) // (grid.replicas * grid.filters)
    for ranks, distance, words in ((grid.filters, 1, of_x * backward), (grid.channels, grid.filters, of_y)):
        network = hardware.network(distance, ranks)
        activations += 2 * formulas.all_gather(ranks, ITEMSIZE * words, network.alpha, network.beta) * (words > 0)
    network, nbytes = hardware.network(shards, grid.replicas), ITEMSIZE * ceil(layer.weights / shards)
    weights = formulas.all_reduce("auto", grid.replicas, nbytes, network.alpha, network.beta)
    return GridSeconds(compute, halos, activations, weights)


# ---- the fastest grids ----


class Choice(NamedTuple):
    """A grid for each layer, by name, and the seconds of a step: of the layers, and of exchanges between them."""

    grids: dict[str, ConvolutionGrid]
    layers: float
    exchanges: float

    @property
    def seconds(self) -> float:
        return self.layers + self.exchanges


def possible_grids(layer: LayerShape, ranks: int) -> Iterator[ConvolutionGrid]:
    """All grids of that number of ranks on which the layer can be computed.

    Every rank has samples, rows and columns, and no halo is wider than a neighbour's tile. Channels are shared equally,
    and those of data are not divided.
    """
    n, filters, *out = layer.y
    shared = (1,) if layer.reads_data else [each for each in _divisors(ranks) if layer.x[1] % each == 0]
    for shards in {a * b for a in shared for b in _divisors(filters) if ranks % (a * b) == 0}:
        if filters % shards or not (layer.reads_data or layer.x[1] % shards == 0):
            continue
        for rows in _divisors(ranks // shards):
            for columns in _divisors(ranks // shards // rows):
                samples = ranks // (shards * rows * columns)
                extents, fits = (rows, columns), samples <= n
                for along in range(2):
                    halo = max(layer.window[along] - layer.stride[along], 0) if extents[along] > 1 else 0
                    fits &= extents[along] <= out[along] and halo <= layer.x[2 + along] // extents[along]
                if fits:
                    for channels in _divisors(shards):
                        if channels == 1 or not layer.reads_data:
                            yield ConvolutionGrid(samples, rows, columns, channels, shards // channels)


@cache
def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def fastest_grids(
    layers: dict[str, LayerShape],
    ranks: int,
    hardware: Hardware = LASSEN,
    allowed: Callable[[ConvolutionGrid], bool] = lambda grid: True,
) -> Choice:
    """The grid of each layer with which a step takes least, out of all grids; a shortest path through the layers.

    Parameters
        layers    from `layer_shapes`
        ranks     number of ranks, all of which compute every layer
        hardware  the ranks and their networks
        allowed   whether a grid may be chosen

    Where the activations of two successive layers are divided differently, they are exchanged, and so are their
    gradients: each rank sends its share, in a message for each rank that needs some of it.

    Raises
        TypeError, ValueError  ranks is no whole number of at least 1; no layers; a layer that no allowed grid divides

    >>> from minidl import nn
    >>> layers = layer_shapes(nn.models.AlexNet, (1024, 3, 224, 224))
    >>> choice = fastest_grids(layers, 8)
    >>> choice.grids["features.3"], choice.grids["classifier.1"].replicas
    (ConvolutionGrid(samples=8, rows=1, columns=1, channels=1, filters=1), 1)
    """
    ranks = whole_number("fastest_grids: ranks", ranks, at_least=1)
    if not layers:
        raise ValueError("fastest_grids: at least one layer expected, got none: a model with a Conv2d or a Linear")
    best: dict[tuple[int, ...], tuple[float, float, tuple[ConvolutionGrid, ...]]] = {}
    fastest: dict[LayerShape, dict[tuple[int, ...], tuple[float, ConvolutionGrid]]] = {}
    for name, layer in layers.items():
        if layer not in fastest:
            own: dict[tuple[int, ...], tuple[float, ConvolutionGrid]] = {}
            for grid in filter(allowed, possible_grids(layer, ranks)):
                candidate = grid_seconds(layer, grid, hardware).total, grid
                own[grid.activations] = min(own.get(grid.activations, candidate), candidate)
            fastest[layer] = own
        if not fastest[layer]:
            raise ValueError(f"{name} cannot be divided by {ranks} ranks: no allowed grid fits {layer.y}")
        best = _continued(best, fastest[layer], layer, ranks, hardware)
    total, exchanges, grids = min(best.values())
    return Choice(dict(zip(layers, grids, strict=True)), total - exchanges, exchanges)


def _continued(before: dict[Any, Any], own: dict[Any, Any], layer: LayerShape, ranks: int, hardware: Hardware) -> Any:
    """For each division of this layer's activations the fastest grids so far: seconds, exchanges among them, grids."""
    if not before:
        return {key: (seconds, 0.0, (grid,)) for key, (seconds, grid) in own.items()}
    keys = np.array(list(before))
    totals = np.array([total for total, *_ in before.values()])
    nbytes, network = ITEMSIZE * prod(layer.x) / ranks, hardware.network(hardware.per_node, ranks)
    found = {}
    for key, (seconds, grid) in own.items():
        messages = np.ceil(np.array(key) / keys).prod(axis=1)
        exchange = np.where((keys == key).all(axis=1), 0.0, 2 * (messages * network.alpha + nbytes * network.beta))
        at = int(np.argmin(totals + exchange))
        total, exchanges, grids = before[tuple(keys[at].tolist())]
        found[key] = total + exchange[at] + seconds, exchanges + exchange[at], (*grids, grid)
    return found
