"""Winograd's convolution: fewer multiplications, for windows of 3 numbers in a row with stride 1.

F(2, 3) computes two neighbouring outputs of a window of 3 with 4 multiplications instead of 6. The four inputs d and
the three weights g are transformed by additions and halvings, multiplied number by number, and the products added:

    y0 = d0 g0 + d1 g1 + d2 g2 = m0 + m1 + m2        m0 = (d0 - d2) g0        m1 = (d1 + d2) (g0 + g1 + g2) / 2
    y1 = d1 g0 + d2 g1 + d3 g2 = m1 - m2 - m3        m3 = (d1 - d3) g2        m2 = (d2 - d1) (g0 - g1 + g2) / 2

F(2x2, 3x3) does so along rows and along columns: 16 multiplications instead of 36 for four outputs. Over channels,
the products become matrix products, one for each of the 16 places in a tile. A window of length 1 is not transformed.

Source: Winograd, Arithmetic Complexity of Computations (1980); Lavin and Gray (arXiv:1509.09308), section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from minidl.kernels import Array, array_module
from minidl.kernels.reference.windows import Pair

Numbers = Sequence[Array]


def of_image(d: Sequence[Array]) -> list[Array]:
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def of_filter(g: Sequence[Array]) -> list[Array]:
    outer, inner = (g[0] + g[2]) / 2, g[1] / 2
    return [g[0], outer + inner, outer - inner, g[2]]


def of_products(m: Sequence[Array]) -> list[Array]:
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def of_products_adjoint(y: Sequence[Array]) -> list[Array]:
    return [y[0], y[0] + y[1], y[0] - y[1], -y[1]]


def of_filter_adjoint(u: Sequence[Array]) -> list[Array]:
    both = (u[1] + u[2]) / 2
    return [u[0] + both, (u[1] - u[2]) / 2, both + u[3]]


# Arrays of tiles begin with the place in a tile: (rows, columns, ...), 4 by 4 for 3x3 windows, 1 by 4 for 1x3.


def convolve(x: Array, weight: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw), kh and kw 1 or 3 -> (n, f, oh, ow). Stride and dilation are 1."""
    module, window = array_module(x), weight.shape[2:]
    data, filters = _image_tiles(x, window, padding), _both_ways(weight.transpose(2, 3, 0, 1), window, of_filter)
    products = _of_groups(filters, groups) @ _of_groups(data, groups)
    products = products.reshape(*filters.shape[:3], *data.shape[3:])
    tiles = _both_ways(products, window, of_products)
    out = tiles.transpose(2, 3, 4, 0, 5, 1)  # (f, n, tiles down, rows, tiles across, columns)
    f, n, down, rows, across, columns = out.shape
    out = out.reshape(f, n, down * rows, across * columns).swapaxes(0, 1)
    return module.ascontiguousarray(out[:, :, : _outputs(x, window, padding, 0), : _outputs(x, window, padding, 1)])


def backward_weight(g: Array, x: Array, shape: tuple[int, ...], padding: Pair, groups: int) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, by 16 products for 36, too."""
    module, window = array_module(g), shape[2:]
    data = _image_tiles(x, window, padding)
    down, across = data.shape[4:]
    rows, columns = (2 if size == 3 else 1 for size in window)
    below, right = down * rows - g.shape[2], across * columns - g.shape[3]
    tiles = module.pad(g.swapaxes(0, 1), ((0, 0), (0, 0), (0, below), (0, right)))
    tiles = tiles.reshape(*tiles.shape[:2], down, rows, across, columns)
    tiles = _both_ways(module.moveaxis(tiles, (3, 5), (0, 1)), window, of_products_adjoint)
    filters = _of_groups(tiles, groups) @ _of_groups(data, groups).swapaxes(-1, -2)
    gradient = _both_ways(filters.reshape(*data.shape[:2], *shape[:2]), window, of_filter_adjoint)
    return module.ascontiguousarray(gradient.transpose(2, 3, 0, 1))


def _outputs(x: Array, window: tuple[int, ...], padding: Pair, axis: int) -> int:
    return x.shape[2 + axis] + 2 * padding[axis] - window[axis] + 1


def _image_tiles(x: Array, window: tuple[int, ...], padding: Pair) -> Array:
    """Return the transformed tiles (rows, columns, c, n, tiles down, tiles across); neighbours overlap by 2 pixels."""
    module = array_module(x)
    steps = [2 if size == 3 else 1 for size in window]
    around = [(0, 0), (0, 0)]
    for axis, step in enumerate(steps):  # zeros below and to the right, up to whole tiles
        length = -(-_outputs(x, window, padding, axis) // step) * step + window[axis] - 1
        around.append((padding[axis], length - x.shape[2 + axis] - padding[axis]))
    image = module.pad(x.swapaxes(0, 1), around)
    size = tuple(step + length - 1 for step, length in zip(steps, window, strict=True))
    tiles = module.lib.stride_tricks.sliding_window_view(image, size, axis=(2, 3))[:, :, :: steps[0], :: steps[1]]
    return _both_ways(module.moveaxis(tiles, (4, 5), (0, 1)), window, of_image)


def _both_ways(tiles: Array, window: tuple[int, ...], transform: Callable[[Numbers], list[Array]]) -> Array:
    """Transform along the rows and the columns of every tile, where the window has 3 numbers."""
    module = array_module(tiles)
    for axis in (0, 1):
        if window[axis] == 3:
            tiles = module.stack(transform(module.moveaxis(tiles, axis, 0)), axis)
    return tiles


def _of_groups(tiles: Array, groups: int) -> Array:
    """(rows, columns, c, ...) -> (rows, columns, groups, c / groups, everything else)"""
    rows, columns, channels, *rest = tiles.shape
    return tiles.reshape(rows, columns, groups, channels // groups, prod(rest))
