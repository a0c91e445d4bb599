"""Which stages of a model can work on tiles, and the model that does: its layers replaced, its head on whole maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from minidl.arguments import whole_number
from minidl.kernels import counting, shapes
from minidl.kernels.counting import Counter
from minidl.nn import (
    GELU,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool2d,
    AvgPool2d,
    BatchNorm2d,
    Conv2d,
    Dropout,
    Dropout2d,
    Identity,
    LeakyReLU,
    MaxPool2d,
    Module,
    Parameter,
    ReLU,
    Sigmoid,
    SiLU,
    Stage,
    Tanh,
    replace_layers,
)
from minidl.nn.counts import without_contents
from minidl.nn.stages import shared_modules
from minidl.parallel.data_parallel.synchronized_batch_norm import SynchronizedBatchNorm
from minidl.parallel.spatial.halo import gathered, mean_of_tiles
from minidl.parallel.spatial.layers import Pooling, SpatialConv2d, SpatialDropout, SpatialPool2d, pooled, sliding
from minidl.parallel.spatial.tiles import Tile, reach_of
from minidl.tensor import Tensor

Size = tuple[int, int]

PIXEL_BY_PIXEL = {Identity, ReLU, LeakyReLU, GELU, SiLU, Tanh, Sigmoid, Dropout2d}

Call = tuple[Module, tuple[int, ...], tuple[int, ...]]
"""A module that was called, and the shapes of its argument and of its result."""


class Division(NamedTuple):
    """How a grid of ranks divides a model.

    grid     rows and columns of ranks
    stages   the first stages of the model, which work on tiles; the others work on whole maps, alike on every rank
    layers   the layers of these stages that are replaced, with the height and width of the whole images they read
    sizes    height and width of each of the maps that are gathered after these stages
    pools    whether the next stage reads their means alone (global average pooling), which are summed instead
    """

    grid: Size
    stages: int
    layers: dict[str, Size]
    sizes: list[Size]
    pools: bool


def grid_of(name: str, given: object) -> Size:
    """Rows and columns of a grid of ranks, from a number of slabs of rows, a pair, or text such as "2x4".

    >>> grid_of("spatial", 3), grid_of("spatial", "2x4")
    ((3, 1), (2, 4))
    """
    parts: Any = given.lower().split("x") if isinstance(given, str) else given
    if isinstance(given, str) and all(part.isdecimal() for part in parts):
        parts = tuple(map(int, parts))
    pair = tuple(parts) if isinstance(parts, (tuple, list)) else (parts,)
    if len(pair) > 2 or isinstance(parts, str) or any(isinstance(part, str) for part in pair):
        raise ValueError(
            f"{name} is a number of slabs of rows, or rows x columns such as (2, 4) or '2x4', got {given!r}"
        )
    rows, columns = (*pair, 1)[:2]
    return whole_number(name, rows, at_least=1), whole_number(name, columns, at_least=1)


def division_of(model: Module, shape: tuple[int, ...], grid: Size) -> Division:
    """Find the first stages of the model that a grid of ranks can divide, by a forward pass without contents.

    Parameters
        model   the whole model; it may lack its values, as in `job.build_held`
        shape   of a sample, (c, h, w)
        grid    rows and columns of ranks

    A stage can be divided if its maps are images and it consists of convolutions, poolings, BatchNorm2d with running
    statistics, dropout and activations, whose windows reach no further than a neighbour's tile. The model's own code
    between them must treat every pixel by itself; what has another height or width than the maps is noticed.

    Raises
        ValueError   samples that are no images, or a first stage that cannot be divided
    """
    kind = type(model).__name__
    if len(shape) != 3:
        raise ValueError(
            f"{kind} cannot be divided by pixels: its samples have shape {shape}, and images (c, h, w) are needed"
        )
    units, names = model.stages(), {module: name for name, module in model.named_modules()}
    dtype = next((parameter.dtype for parameter in model.parameters()), np.float32)
    x: Any = Tensor(shapes.empty((1, *shape), dtype))
    layers: dict[Module, Size] = {}
    count, sizes, pools = 0, [(shape[1], shape[2])], False
    with without_contents(model), _noted(model) as (calls, own_code):
        for unit in units:
            calls.clear()
            own_code.begin(x)
            pools = False
            try:
                x = unit(x)
                if own_code.reads == [True]:
                    pools = type(calls[0][0]) is AdaptiveAvgPool2d and calls[0][2][2:] == (1, 1)
                layers, sizes = _divided(unit, calls, own_code.shapes, layers, sizes, x, names, grid)
            except (ValueError, RuntimeError) as error:  # RuntimeError: it reads numbers, which the pass lacks
                if count == 0:
                    raise ValueError(f"{kind} cannot be divided by {grid[0]} x {grid[1]} ranks: {error}") from error
                break
            count += 1
    both = shared_modules([units[:count], units[count:]]) & layers.keys()
    tied = {p for unit in units[:count] for p in unit.parameters()} & {p for u in units[count:] for p in u.parameters()}
    if both or tied:
        what = names[next(iter(both))] if both else next(name for name, p in model.named_parameters() if p in tied)
        raise ValueError(f"{kind} cannot be divided by pixels: {what} is used on tiles and again on whole maps")
    return Division(grid, count, {names[layer]: size for layer, size in layers.items()}, sizes, pools)


def synchronized(layer: Any, tile: Tile, size: Size) -> SynchronizedBatchNorm:
    """Batch norm with the statistics of the whole images."""
    return SynchronizedBatchNorm(layer, tile.comm)


ON_TILES: dict[type[Module], Callable[[Any, Tile, Size], Module]] = {
    Conv2d: SpatialConv2d,
    **dict.fromkeys((MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, AdaptiveMaxPool2d), SpatialPool2d),
    BatchNorm2d: synchronized,
    Dropout: SpatialDropout,
}
"""What replaces a layer that reads more than one pixel, or draws random numbers."""


def divide(
    model: Module,
    tile: Tile,
    division: Division,
    on_tiles: Mapping[type[Module], Callable[[Any, Tile, Size], Module]] = ON_TILES,
) -> Module:
    """Let the model work on this rank's tiles, in place, as `division_of` says; return the model.

    on_tiles: what replaces a layer of each type. Raises ValueError for a layer of another type.

    The weights keep their names and stay whole. The gradients of `tiled_parameters` are this rank's terms of a sum over
    the ranks of the grid; those of the other parameters are the same on every rank. `stages()` then begins with tiles,
    and gathers the maps, or sums up their means, where the division ends.
    """

    def rule(name: str, module: Module) -> Module | None:
        size = division.layers.get(name)
        if size is None:
            return None
        if (kind := on_tiles.get(type(module))) is None:
            raise ValueError(
                f"{name}, a {type(module).__name__}, is none of the layers that work on tiles: leave it out of "
                "the layout, or leave out spatial"
            )
        return kind(module, tile, size)

    replace_layers(model, rule)
    if isinstance(size := getattr(model, "image_size", None), tuple):
        vars(model)["image_size"] = tuple(stop - start for start, stop in tile.own(size))
    vars(model)["stages"] = partial(_with_gathering, model, tile, division)
    return model


def tiled_parameters(model: Module, division: Division) -> list[Parameter]:
    """The parameters of the stages that work on tiles, those that this rank holds."""
    stages = model.stages()[: division.stages]
    return list(dict.fromkeys(p for stage in stages for p in stage.parameters() if p.held))


def _with_gathering(model: Module, tile: Tile, division: Division) -> list[Stage]:
    """The stages of the model; maps, or their means, are gathered before the first that needs them, or at the end."""
    units = type(model).stages(model)

    def whole(maps: Any) -> Any:
        if division.pools:
            return mean_of_tiles(maps, tile, division.sizes[0])  # an image of a pixel is its own mean
        if isinstance(maps, tuple):
            return tuple(gathered(each, tile, size) for each, size in zip(maps, division.sizes, strict=True))
        return gathered(maps, tile, division.sizes[0])

    at = min(division.stages, len(units) - 1)
    first = units[at]

    def wrapped(x: Any) -> Any:
        return first(whole(x)) if at == division.stages else whole(first(x))

    units[at] = Stage(wrapped, *first.modules, *first.tensors)
    return units


def _divided(
    stage: Stage,
    calls: list[Call],
    computed: list[tuple[int, ...]],
    layers: dict[Module, Size],
    sizes: list[Size],
    result: Any,
    names: dict[Module, str],
    grid: Size,
) -> tuple[dict[Module, Size], list[Size]]:
    """The layers to replace, with those of this stage, and the sizes of its maps. ValueError: it needs whole maps."""
    known, found = set(sizes), dict(layers)
    if stage.tensors:
        raise ValueError(f"{stage} reads a parameter by itself, outside of a layer")
    for layer, shape, shape_of_result in calls:
        name, kind = f"{names[layer]}, a {type(layer).__name__},", type(layer)  # a subclass may compute anything
        if any(layer.children()) and not any(isinstance(each, Tensor) for each in vars(layer).values()):
            continue  # its layers have been called themselves
        if len(shape) != 4:
            raise ValueError(f"{name} reads a tensor of shape {shape}, but only images (n, c, h, w) have pixels")
        if shape[2:] not in known:
            raise ValueError(f"{name} reads images of {shape[2:]}, whose size the model's own code has changed")
        size = shape[2], shape[3]
        if kind in PIXEL_BY_PIXEL:
            continue
        if kind not in ON_TILES:
            raise ValueError(f"{name} is none of the layers that work on tiles")
        if isinstance(layer, BatchNorm2d) and not layer.track_running_stats:
            raise ValueError(f"{name} has no running statistics, and would evaluate with those of a tile")
        if not isinstance(layer, (BatchNorm2d, Dropout)):
            windows: Any = sliding(layer, size) if isinstance(layer, Conv2d) else pooled(cast(Pooling, layer), size)
            for d in (0, 1):
                reach_of(names[layer], d, size[d], windows[d], grid[d], 0)
            known.add((shape_of_result[2], shape_of_result[3]))
        if found.setdefault(layer, size) != size:
            raise ValueError(f"{name} reads images of {found[layer]} and of {size}")
    made = [each.shape for each in (result if isinstance(result, tuple) else (result,))]
    for shape in (*computed, *made):
        if len(shape) != 4 or shape[2:] not in known:
            raise ValueError(f"the own code of {stage} makes a tensor of shape {shape}, which has not the maps' pixels")
    return found, [(shape[2], shape[3]) for shape in made]


class _OwnCode(Counter):
    """Notes the shapes that the model's own code computes, outside of its layers.

    Also, for each operation of a stage that reads its argument, whether a layer does it: `reads`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []
        self.reads: list[bool] = []
        self.within_layers = 0

    def begin(self, x: Any) -> None:
        """The next stage begins, with that argument."""
        self._argument = getattr(x, "data", None)
        self.shapes, self.reads = [], []

    def operation(self, out: Any, inputs: Sequence[Any], moves: bool, made_at: int) -> None:
        self.reads += [self.within_layers > 0 for each in inputs if each is self._argument]
        if not self.within_layers:
            self.shapes.append(out.shape)


@contextmanager
def _noted(model: Module) -> Iterator[tuple[list[Call], _OwnCode]]:
    """Within the block, the modules' calls when they return, and what the model's own code does."""
    calls, own_code = list[Call](), _OwnCode()

    def call(module: Module, forward: Any, *args: Any, **options: Any) -> Any:
        is_layer = not any(module.children())
        own_code.within_layers += is_layer
        result = forward(*args, **options)
        own_code.within_layers -= is_layer
        calls.append((module, getattr(args[0], "shape", ()) if args else (), getattr(result, "shape", ())))
        return result

    own = {module: vars(module).get("forward") for module in model.modules()}
    for module in own:
        vars(module)["forward"] = partial(call, module, module.forward)
    token = counting.active.set(own_code)
    counting.in_use.set(None)
    try:
        yield calls, own_code
    finally:
        counting.active.reset(token)
        counting.in_use.set(None)
        for module, forward in own.items():
            del vars(module)["forward"]
            if forward is not None:
                vars(module)["forward"] = forward
