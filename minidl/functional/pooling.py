"""Pooling: each window of an image becomes one number, its maximum or its mean."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from minidl import kernels
from minidl.functional.bind import operand
from minidl.functional.pairs import Pair, hashable, pair
from minidl.functional.reductions import mean
from minidl.kernels.reference.windows import Windows, adaptive_windows, sliding_windows
from minidl.tensor import Tensor, record

Both = tuple[Windows, Windows]  # of rows, of columns
Size = int | None | tuple[int | None, int | None]


def max_pool2d(
    x: Any,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of every window; the gradient goes to the first of the largest elements.

    Parameters
        x               (n, c, h, w), or one image (c, h, w)
        kernel_size     size of the window, in pixels
        stride          distance between windows; None: the kernel size
        padding         pixels of minus infinity added on each side; at most half of the kernel size
        dilation        distance between the pixels of a window
        ceil_mode       keep a last window that overhangs the image
        return_indices  also return the position w y + x of each maximum, a tensor of integers

    Kernel size, stride, padding and dilation are a whole number, or two: (vertical, horizontal).

    Raises
        ValueError  for other axes, too much padding, or a window larger than the image

    >>> max_pool2d([[[[1.0, 2.0], [3.0, 0.0]]]], 2).item()
    3.0
    """
    x = operand(x)
    sliding = hashable(kernel_size), hashable(stride), hashable(padding), hashable(dilation), bool(ceil_mode)
    return max_over(x, sliding_both("max_pool2d", x.shape, *sliding), return_indices)


def avg_pool2d(
    x: Any,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window; padding counts as zeros, as in PyTorch.

    Parameters
        x, kernel_size, stride, padding, ceil_mode   as for `max_pool2d`
        count_include_pad  whether padding counts as pixels; False: the mean of the image's own pixels
        divisor_override   divisor of every sum; None: the number of pixels

    Raises
        ValueError  as `max_pool2d`; also for a divisor_override of 0

    >>> avg_pool2d([[[[1.0, 2.0], [3.0, 0.0]]]], 2).item()
    1.5
    """
    x = operand(x)
    sliding = hashable(kernel_size), hashable(stride), hashable(padding), 1, bool(ceil_mode), bool(count_include_pad)
    return mean_over(x, with_divisor(sliding_both("avg_pool2d", x.shape, *sliding), divisor_override))


def adaptive_avg_pool2d(x: Any, output_size: Size) -> Tensor:
    """The mean of each of `output_size` windows, which cover the image as evenly as possible.

    x: (n, c, h, w), or one image (c, h, w)
    output_size: a whole number, or two: (vertical, horizontal); None keeps the image's size

    Of k windows over s pixels, window i covers floor(i s / k) to ceil((i + 1) s / k).

    >>> adaptive_avg_pool2d([[[[1.0, 2.0, 6.0]]]], (1, 2))
    Tensor([[[[1.5, 4. ]]]], float32)
    """
    x = operand(x)
    windows = adaptive_both("adaptive_avg_pool2d", x.shape, output_size)
    if all(each.number == 1 for each in windows):
        return mean(x, (-2, -1), keepdims=True)  # the same, several times faster
    return mean_over(x, windows)


def adaptive_max_pool2d(x: Any, output_size: Size, return_indices: bool = False) -> Any:
    """The maxima of the windows of `adaptive_avg_pool2d`; return_indices as for `max_pool2d`."""
    x = operand(x)
    return max_over(x, adaptive_both("adaptive_max_pool2d", x.shape, output_size), return_indices)


def with_divisor(windows: Both, divisor: int | None) -> Both:
    """The windows of an average with that divisor of every sum; None: their own."""
    if divisor is None:
        return windows
    if not divisor:
        raise ValueError("avg_pool2d: divisor_override must not be 0")
    rows, columns = windows
    return rows._replace(divisor=rows.divisor * 0 + divisor), columns._replace(divisor=columns.divisor * 0 + 1)


def max_over(x: Tensor, windows: Both, return_indices: bool = False) -> Any:
    """The maximum over each of these windows of x."""
    if x.ndim == 3:
        results = max_over(x.reshape(1, *x.shape), windows, True)
        out, indices = (result.reshape(result.shape[1:]) for result in results)
    else:
        image = x.data
        shape = image.shape
        data, position = kernels.current().max_pool2d(image, *windows)
        out = record(data, (x,), lambda g, needs: (kernels.current().max_pool2d_backward(g, position, shape),))
        if return_indices:
            indices = Tensor(position.astype("int64"))
    return (out, indices) if return_indices else out


def mean_over(x: Tensor, windows: Both) -> Tensor:
    """The mean over each of these windows of x."""
    if x.ndim == 3:
        out = mean_over(x.reshape(1, *x.shape), windows)
        return out.reshape(out.shape[1:])
    image = x.data
    shape = image.shape
    return record(
        kernels.current().avg_pool2d(image, *windows),
        (x,),
        lambda g, needs: (kernels.current().avg_pool2d_backward(g, shape, *windows),),
    )


@lru_cache(maxsize=1024, typed=True)
def sliding_both(
    operation: str,
    shape: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair | None,
    padding: Pair,
    dilation: Pair,
    ceil_mode: bool,
    count_include_pad: bool = True,
) -> Both:
    """The windows of rows and of columns. Errors: ValueError if they do not fit."""
    window, padding, dilation = pair(kernel_size), pair(padding), pair(dilation)
    stride = window if stride is None else pair(stride)
    _check_image(operation, shape)
    if min(window) < 1 or min(stride) < 1 or min(dilation) < 1 or min(padding) < 0:
        raise ValueError(
            f"{operation}: kernel size {window}, stride {stride} and dilation {dilation} must be positive, padding "
            f"{padding} at least 0"
        )
    axes = []
    for size, k, s, p, d in zip(shape[-2:], window, stride, padding, dilation, strict=True):
        if 2 * p > k:
            raise ValueError(f"{operation}: padding {padding} must be at most half of the kernel size {window}")
        windows = sliding_windows(size, k, s, p, d, ceil_mode, count_include_pad)
        if not windows.start.size or (windows.start >= windows.stop).any():
            raise ValueError(
                f"{operation}: a window of {window} with dilation {dilation} does not fit an image of "
                f"{tuple(shape[-2:])} with padding {padding}"
            )
        axes.append(windows)
    return axes[0], axes[1]


def adaptive_both(operation: str, shape: tuple[int, ...], output_size: Size) -> Both:
    _check_image(operation, shape)
    vertical, horizontal = output_size if isinstance(output_size, (tuple, list)) else (output_size, output_size)
    counts = pair((shape[-2] if vertical is None else vertical, shape[-1] if horizontal is None else horizontal))
    if min(counts) < 1 or min(shape[-2:]) < 1:
        raise ValueError(f"{operation}: output size {counts} and image {tuple(shape[-2:])} must be positive")
    return adaptive_windows(shape[-2], counts[0]), adaptive_windows(shape[-1], counts[1])


def _check_image(operation: str, shape: tuple[int, ...]) -> None:
    if len(shape) not in (3, 4):
        raise ValueError(
            f"{operation}: x is images (n, c, h, w) or one image (c, h, w), got {shape}"
            + (": type x[None, None] for one image of one channel" if len(shape) == 2 else "")
        )
