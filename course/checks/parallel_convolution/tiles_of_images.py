"""How images are divided over a grid of ranks, and which pixels of the input each rank needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Lines:
    """The rows, or the columns, of one rank.

    has     first line that it has of the input, and the one after its last
    needs   the same for the lines that its output is computed from, with those of the padding
    inside  the same without those of the padding
    """

    has: tuple[int, int]
    needs: tuple[int, int]
    inside: tuple[int, int]

    @property
    def needed(self) -> int:
        """The lines of the image that it needs."""
        return max(self.inside[1] - self.inside[0], 0)

    @property
    def own(self) -> int:
        """Those of them that it has."""
        return len(common(self.inside, self.has))


def common(one: tuple[int, int], other: tuple[int, int]) -> range:
    """The lines that are in both."""
    start = max(one[0], other[0])
    return range(start, max(start, min(one[1], other[1])))


def span(n: int, p: int, i: int) -> tuple[int, int]:
    """Share i of n lines, of p shares."""
    part = np.array_split(np.arange(n + 1)[:-1], p)
    start = sum(map(len, part[:i]))
    return start, start + len(part[i])


def output_size(n: int, kernel: int, stride: int, padding: int) -> int:
    return (n + 2 * padding - kernel) // stride + 1


def lines(n: int, p: int, kernel: int, stride: int, padding: int) -> list[Lines]:
    """For each of p ranks, its lines of an image of n lines."""
    found, outputs = [], output_size(n, kernel, stride, padding)
    for i in range(p):
        first, stop = span(outputs, p, i)
        needs = first * stride - padding, (stop - 1) * stride - padding + kernel
        found.append(Lines(span(n, p, i), needs, (max(needs[0], 0), min(needs[1], n))))
    return found
