"""How many image rows a convolution needs from neighbouring ranks when the rows are divided among them.

References
    Dryden et al., Improving Strong-Scaling of CNN Training by Exploiting Finer-Grained Parallelism (arXiv:1903.06681),
    section 3.
"""

from __future__ import annotations

from minidl.arguments import whole_number


def halo_rows(kernel: int, stride: int = 1) -> int:
    """Number of rows sent across the border of two ranks, in both directions together, for a kernel of `kernel` rows.

    Every output row belongs to the rank that has the middle row of its window. At stride 1 and an odd kernel each rank
    needs floor(kernel / 2) rows from the other; in general max(kernel - stride, 0) rows are sent.

    Raises TypeError, ValueError unless both are whole numbers of at least 1.

    >>> [halo_rows(kernel) for kernel in (1, 3, 5)], halo_rows(4, stride=2)
    ([0, 2, 4], 2)
    """
    kernel = whole_number("halo_rows: kernel", kernel, at_least=1)
    stride = whole_number("halo_rows: stride", stride, at_least=1)
    return max(kernel - stride, 0)


def halo_words(kernel: int, width: int, channels: int, samples: int = 1, stride: int = 1) -> int:
    """Count of numbers sent across a border: those in the rows of `halo_rows`, for all columns, channels and samples.

    A 1 x 1 convolution has no halo and sends nothing.

    >>> halo_words(kernel=3, width=224, channels=64, samples=32), halo_words(kernel=1, width=224, channels=64)
    (917504, 0)
    """
    for name, value in (("width", width), ("channels", channels), ("samples", samples)):
        whole_number(f"halo_words: {name}", value, at_least=1)
    return halo_rows(kernel, stride) * width * channels * samples
