"""fastest: the algorithm of a convolution, looked up in a table of measured sizes, `convolution_times.csv`.

`python -m benchmarks.convolutions` measures the table anew, on the machine that it runs on. For the windows of the
course's models, 3x3 and 5x5 with few channels, the kernels of numba choose best by themselves; so that is the default
of `F.conv2d`. FFT is faster for windows of 9x9 or 15x15 over many channels, im2col for 5x5 over hundreds of them.
Winograd is 7 % faster than im2col at best (3x3, 256 channels of 14x14), and no faster than the default: numpy's
transforms take what the multiplications save.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from math import inf, log
from typing import NamedTuple

from minidl.kernels.reference.windows import Pair, output_size

TIMED = ("none", "im2col", "fft", "winograd")  # none: the kernels of numba choose; "naive" is never the fastest


class Timing(NamedTuple):
    """Seconds of a convolution and its two gradients, in float32 by the kernels of numba with one thread.

    n, channels, filters    of images and of one group; `size` is height and width, `window` those of the filters
    seconds                 by algorithm; infinite where one cannot compute it
    """

    n: int
    channels: int
    size: int
    filters: int
    window: int
    seconds: dict[str, float]


@cache
def timings() -> list[Timing]:
    """The rows of the table; its first line says when and where it was measured."""
    lines = files("minidl.functional").joinpath("convolution_times.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines if line[:1].isdigit()]
    found = []
    for row in rows:
        n, channels, size, filters, window = map(int, row[:5])
        seconds = dict(zip(TIMED, (float(cell or inf) for cell in row[5:]), strict=True))
        found.append(Timing(n, channels, size, filters, window, seconds))
    return found


def fastest(
    x: tuple[int, ...], weight: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> str | None:
    """The fastest algorithm for the most similar convolution of the table, of those that can compute this one.

    Similar is what differs by the smallest factors in images, channels, positions, filters and window. A stride or
    dilation, of which FFT computes what is dropped, is not in the table: the kernels' own choice, None.
    """
    if (stride, dilation) != ((1, 1), (1, 1)):
        return None
    oh, ow = output_size((1, 1, *x[-2:]), (weight[2], weight[3]), stride, padding)
    n = x[0] if len(x) == 4 else 1
    own = (n, weight[1], (oh * ow) ** 0.5, weight[0] / groups, (weight[2] * weight[3]) ** 0.5)
    nearest = min(timings(), key=lambda row: sum(abs(log(max(a, 1) / b)) for a, b in zip(own, row[:5], strict=True)))
    able = [name for name in TIMED if name != "winograd" or set(weight[2:]) <= {1, 3}]
    best = min(able, key=nearest.seconds.__getitem__)
    return None if best == "none" else best
