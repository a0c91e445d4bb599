"""Pooling over windows of an image, in readable numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array, array_module
from minidl.kernels.reference.windows import Windows

__all__ = ["avg_pool2d", "avg_pool2d_backward", "max_pool2d", "max_pool2d_backward"]

Shape = tuple[int, ...]


def max_pool2d(x: Array, rows: Windows, columns: Windows) -> tuple[Array, Array]:
    """x (n, c, h, w) -> the maxima (n, c, oh, ow), and the pixel w y + x of each, int32.

    The first of equal maxima counts. nan is larger than every number, and the last nan counts.
    """
    module, width = array_module(x), x.shape[3]
    out, position = None, None
    for y, row_inside in _taps(rows):
        for z, column_inside in _taps(columns):
            inside = module.asarray(row_inside[:, None] & column_inside)
            value = x[:, :, module.asarray(y)[:, None], module.asarray(z)]
            pixel = module.asarray((y[:, None] * width + z).astype("int32"))
            if out is None:  # the first pixel of a window is never outside
                out, position = value, module.broadcast_to(pixel, value.shape)
                continue
            larger = inside & ((value > out) | (value != value))
            out = module.where(larger, value, out)
            position = module.where(larger, pixel, position)
    return out, position


def _taps(windows: Windows):  # type: ignore[no-untyped-def]
    """Yield for k = 0, 1, ...: pixel k of every window, and whether the window has it (else any pixel)."""
    longest = int((windows.stop - windows.start).max())
    for offset in range(0, longest, windows.step):
        pixel = windows.start + offset
        inside = pixel < windows.stop
        yield pixel * inside, inside


def max_pool2d_backward(g: Array, position: Array, shape: Shape) -> Array:
    """Add every element of g to the pixel that was the maximum of its window."""
    module, (n, c, h, w) = array_module(g), shape
    gradient = module.zeros(n * c * h * w, dtype=g.dtype)
    plane = module.arange(n * c).reshape(n, c, 1, 1) * (h * w)
    module.add.at(gradient, (plane + position).reshape(-1), g.reshape(-1))
    return gradient.reshape(shape)


def avg_pool2d(x: Array, rows: Windows, columns: Windows) -> Array:
    """x (n, c, h, w) -> the means (n, c, oh, ow): of columns first, then of rows."""
    module = array_module(x)
    narrow = module.empty((*x.shape[:3], columns.start.size), dtype=x.dtype)
    for j, (start, stop, divisor) in enumerate(_each(columns)):
        narrow[:, :, :, j] = x[:, :, :, start:stop].sum(axis=3) / divisor
    out = module.empty((*x.shape[:2], rows.start.size, columns.start.size), dtype=x.dtype)
    for i, (start, stop, divisor) in enumerate(_each(rows)):
        out[:, :, i] = narrow[:, :, start:stop].sum(axis=2) / divisor
    return out


def avg_pool2d_backward(g: Array, shape: Shape, rows: Windows, columns: Windows) -> Array:
    """Distribute every element of g evenly over its window."""
    module = array_module(g)
    narrow = module.zeros((*shape[:3], g.shape[3]), dtype=g.dtype)
    for i, (start, stop, divisor) in enumerate(_each(rows)):
        narrow[:, :, start:stop] += g[:, :, i : i + 1] / divisor
    gradient = module.zeros(shape, dtype=g.dtype)
    for j, (start, stop, divisor) in enumerate(_each(columns)):
        gradient[:, :, :, start:stop] += narrow[:, :, :, j : j + 1] / divisor
    return gradient


def _each(windows: Windows) -> list[tuple[int, int, float]]:
    return list(zip(windows.start.tolist(), windows.stop.tolist(), windows.divisor.tolist(), strict=True))
