"""Which stages of a model can work on tiles, and the model that does: its layers replaced, its head on whole maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np

from minidl.arguments import whole_number
from minidl.functional.bind import operand
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
from minidl.random import Purpose, stream
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
    between them must treat every pixel by itself and draw no random numbers: it is called with random maps, whole and
    cut, and must give the same.

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
    with without_contents(model), _noted(model) as calls:
        for unit in units:
            pools = False
            try:
                made = calls.of(unit, x)
                if calls.read_by_layers == [True]:
                    pools = type(calls.made[0][0]) is AdaptiveAvgPool2d and calls.made[0][2][2:] == (1, 1)
                found = _divided(unit, calls.made, layers, sizes, made, names, grid)
                if not (isinstance(unit.function, Module) and _is_layer(unit.function)):
                    _check_own_code(model, unit, calls, x, made, grid)
            except (ValueError, RuntimeError) as error:  # RuntimeError: it reads numbers, which the pass lacks
                if count == 0:
                    raise ValueError(f"{kind} cannot be divided by {grid[0]} x {grid[1]} ranks: {error}") from error
                break
            x, count, (layers, sizes) = made, count + 1, found
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
    vars(model).update(_size_of_tiles(model, tile))
    vars(model)["stages"] = partial(_with_gathering, model, tile, division)
    return model


def _size_of_tiles(model: Module, tile: Tile) -> dict[str, Size]:
    """The attribute with which a model checks the size of its images, if it does: that of this rank's tiles."""
    if not isinstance(size := getattr(model, "image_size", None), tuple):
        return {}
    rows, columns = tile.own(size)
    return {"image_size": (rows.stop - rows.start, columns.stop - columns.start)}


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
        if not _is_layer(layer) and not any(isinstance(each, Tensor) for each in vars(layer).values()):
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
        if getattr(layer, "return_indices", False):
            raise ValueError(f"{name} returns positions in its image, and no rank knows those in the whole one")
        if isinstance(layer, BatchNorm2d) and not layer.track_running_stats:
            raise ValueError(f"{name} has no running statistics, and would evaluate with those of a tile")
        if not isinstance(layer, (BatchNorm2d, Dropout)):
            windows: Any = sliding(layer, size) if isinstance(layer, Conv2d) else pooled(cast(Pooling, layer), size)
            for d in (0, 1):
                reach_of(names[layer], d, size[d], windows[d], grid[d], 0)
            known.add((shape_of_result[2], shape_of_result[3]))
        if found.setdefault(layer, size) != size:
            raise ValueError(f"{name} reads images of {found[layer]} and of {size}")
    made = [each.shape for each in _each(result)]
    for shape in made:
        if len(shape) != 4 or shape[2:] not in known:
            raise ValueError(f"the own code of {stage} makes a tensor of shape {shape}, which has not the maps' pixels")
    return found, [(shape[2], shape[3]) for shape in made]


def _check_own_code(model: Module, unit: Stage, calls: _Calls, x: Any, made: Any, grid: Size) -> None:
    """Raise ValueError unless a stage's own code gives the same for tiles as for whole maps, here random ones.

    Layers return random numbers, cut alike, so that it does not matter what they compute.
    """
    rng = stream(Purpose.TRIAL_MAPS, 0)
    maps, outputs = (
        [rng.random(shape) + 0.5 for shape in shapes]
        for shapes in (
            [each.shape for each in _each(x)],
            [result for layer, _, result in calls.made if _is_layer(layer)],
        )
    )

    def computed(cut: Callable[[Any], Any]) -> list[Any]:
        given = tuple(Tensor(cut(each).copy()) for each in maps)
        result = calls.of(unit, given if isinstance(x, tuple) else given[0], [cut(each) for each in outputs])
        return [*calls.read, *(each.data for each in _each(result))]

    try:
        with np.errstate(all="ignore"):
            whole = computed(lambda images: images)
            for rank in {0, grid[1] - 1, prod(grid) - 1}:  # of three corners, one is off the diagonal
                tile = Tile(cast(Any, SimpleNamespace(rank=rank, size=prod(grid))), grid)
                with _expecting_tiles(model, tile):
                    parts = computed(tile.cut)
                for each, part in zip(whole, parts, strict=True):
                    np.testing.assert_allclose(part, tile.cut(each), rtol=1e-9)
    except Exception as error:
        raise ValueError(
            f"the own code of {unit} computes something else from tiles than from whole images: let it treat every "
            "pixel by itself and draw no random numbers, and use layers, such as nn.Dropout, for the rest"
        ) from error


@contextmanager
def _expecting_tiles(model: Module, tile: Tile) -> Iterator[None]:
    own = dict(vars(model))
    vars(model).update(_size_of_tiles(model, tile))
    try:
        yield
    finally:
        vars(model).clear()
        vars(model).update(own)


def _each(maps: Any) -> tuple[Any, ...]:
    return maps if isinstance(maps, tuple) else (maps,)


def _is_layer(module: Module) -> bool:
    return not any(module.children())


class _Calls(Counter):
    """Notes the calls of modules when they return; may return numbers in place of the layers.

    made            the calls
    read            the arguments of layers, if their outputs were given
    read_by_layers  for each operation that reads the stage's argument, whether a layer does it
    """

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Call] = []
        self.read: list[Any] = []
        self.read_by_layers: list[bool] = []
        self._within_layers = 0
        self._outputs: list[Any] | None = None

    def of(self, unit: Stage, x: Any, outputs: list[Any] | None = None) -> Any:
        """The stage's result; outputs: what its layers return, in the order of their calls."""
        self._outputs = outputs
        if outputs is None:
            self.made, self.read_by_layers, self._argument = [], [], getattr(x, "data", None)
        self.read = []
        return unit(x)

    def operation(self, out: Any, inputs: Sequence[Any], moves: bool, made_at: int) -> None:
        if self._outputs is None:
            self.read_by_layers += [self._within_layers > 0 for each in inputs if each is self._argument]

    def call(self, module: Module, forward: Any, *args: Any, **options: Any) -> Any:
        if self._outputs is not None and _is_layer(module):
            self.read.append(operand(args[0]).data.copy())
            return Tensor(self._outputs.pop(0).copy())
        self._within_layers += _is_layer(module)
        result = forward(*args, **options)
        self._within_layers -= _is_layer(module)
        if self._outputs is None:
            self.made.append((module, getattr(args[0], "shape", ()) if args else (), getattr(result, "shape", ())))
        return result


@contextmanager
def _noted(model: Module) -> Iterator[_Calls]:
    """Within the block, the calls of the model's modules."""
    calls = _Calls()
    own = {module: vars(module).get("forward") for module in model.modules()}
    for module in own:
        vars(module)["forward"] = partial(calls.call, module, module.forward)
    token = counting.active.set(calls)
    counting.in_use.set(None)
    try:
        yield calls
    finally:
        counting.active.reset(token)
        counting.in_use.set(None)
        for module, forward in own.items():
            del vars(module)["forward"]
            if forward is not None:
                vars(module)["forward"] = forward
