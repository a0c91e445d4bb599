"""Halos: the rows of an image that a convolution needs of the neighbours, if ranks divide the rows.

References
    Dryden et al., Improving Strong-Scaling of CNN Training by Exploiting Finer-Grained Parallelism (arXiv:1903.06681),
    section 3.
"""

from __future__ import annotations

from minidl.arguments import whole_number


def halo_rows(kernel: int, stride: int = 1) -> int:
    """Rows that cross a cut between two ranks, both ways together, for a convolution with that number of rows.

    Every output row belongs to the rank that has the middle row of its window. At stride 1 and an odd kernel each rank
    needs floor(kernel / 2) rows of the other; otherwise there are kernel - stride in all, or none.

    Raises TypeError, ValueError unless both are whole numbers of at least 1.

    >>> [halo_rows(kernel) for kernel in (1, 3, 5)], halo_rows(4, stride=2)
    ([0, 2, 4], 2)
    """
    kernel = whole_number("halo_rows: kernel", kernel, at_least=1)
    stride = whole_number("halo_rows: stride", stride, at_least=1)
    return max(kernel - stride, 0)


def halo_words(kernel: int, width: int, channels: int, samples: int = 1, stride: int = 1) -> int:
    """Numbers that cross a cut: the rows of `halo_rows`, of that number of columns, channels and samples.

    A convolution of 1 x 1 has no halo: dividing positions costs it nothing.

    >>> halo_words(kernel=3, width=224, channels=64, samples=32), halo_words(kernel=1, width=224, channels=64)
    (917504, 0)
    """
    for name, value in (("width", width), ("channels", channels), ("samples", samples)):
        whole_number(f"halo_words: {name}", value, at_least=1)
    return halo_rows(kernel, stride) * width * channels * samples
