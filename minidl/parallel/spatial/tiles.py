"""How an image is divided over a grid of ranks, and which of its rows and columns a rank needs for its outputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import whole_number
from minidl.cluster.comm import Communicator
from minidl.functional.pairs import Pair, pair
from minidl.kernels.reference.windows import Windows

DIRECTIONS = ("height", "width")


class Span(NamedTuple):
    """Pixels start to stop - 1 along one direction of the whole image."""

    start: int
    stop: int


def span(size: int, count: int, index: int) -> Span:
    """The pixels of slab `index`, of `count` slabs of `size` pixels; as in `np.array_split`, the first are larger.

    >>> [span(7, 3, index) for index in range(3)]
    [Span(start=0, stop=3), Span(start=3, stop=5), Span(start=5, stop=7)]
    """
    each, larger = divmod(size, count)
    start = index * each + min(index, larger)
    return Span(start, start + each + (index < larger))


class Tile:
    """The place of this rank in a grid of ranks that divide an image: its rows and columns of every image.

    Parameters
        comm   the ranks of the grid, row by row, such as `session.mesh["spatial"]`
        grid   (rows, columns) of ranks; a number p is p slabs of rows, (p, 1)

    Attributes
        comm, grid   as given
        place        (row, column) of this rank in the grid

    Raises
        ValueError   the grid has another number of ranks than comm
    """

    def __init__(self, comm: Communicator, grid: Pair) -> None:
        rows, columns = (grid, 1) if isinstance(grid, int) else pair(grid)
        self.comm = comm
        self.grid = (
            whole_number("Tile: rows of the grid", rows, at_least=1),
            whole_number("Tile: columns of the grid", columns, at_least=1),
        )
        if rows * columns != comm.size:
            raise ValueError(f"Tile: a grid of {rows} x {columns} needs {rows * columns} ranks, comm has {comm.size}")
        self.place = divmod(comm.rank, columns)

    def own(self, size: tuple[int, int]) -> tuple[Span, Span]:
        """The rows and the columns that this rank has of an image of that height and width."""
        return self.at(self.place, size)

    def at(self, place: tuple[int, ...], size: tuple[int, int]) -> tuple[Span, Span]:
        """The rows and the columns that the rank at that place of the grid has of such an image."""
        rows, columns = (span(size[d], self.grid[d], place[d]) for d in (0, 1))
        return rows, columns

    def cut(self, images: Any) -> Any:
        """This rank's tile of images (..., h, w), a view."""
        rows, columns = self.own(images.shape[-2:])
        return images[..., rows.start : rows.stop, columns.start : columns.stop]

    def neighbour(self, direction: int, index: int) -> int:
        """The rank, in comm, in this rank's column (direction 0) or row (direction 1) of the grid, at that index."""
        row, column = (index, self.place[1]) if direction == 0 else (self.place[0], index)
        return row * self.grid[1] + column


class Reach(NamedTuple):
    """What one rank needs along one direction of an image, and where it comes from.

    own        the pixels of the image that it has
    outputs    the pixels of the output that it computes
    first      the pixel of the image, or of the padding before it, at which its windows begin; below 0 in the padding
    length     the number of pixels, padding included, that its windows cover from there
    wanted     the pixels of the image that its windows read
    received   by neighbour, the pixels that come from there
    sent       by neighbour, the own pixels that it needs
    """

    own: Span
    outputs: Span
    first: int
    length: int
    wanted: NDArray[np.int64]
    received: dict[int, NDArray[np.int64]]
    sent: dict[int, NDArray[np.int64]]


class Sliding(NamedTuple):
    """Windows of a convolution along one direction.

    size       pixels of the whole image
    number     of windows
    kernel     pixels that a window reads
    stride     pixels from one window to the next
    before     padding before the first pixel; window i begins at pixel i stride - before
    dilation   distance of the pixels of a window
    """

    size: int
    number: int
    kernel: int
    stride: int
    before: int
    dilation: int

    @property
    def reach(self) -> int:
        """Pixels from the first to the last of a window, both included."""
        return self.dilation * (self.kernel - 1) + 1

    def taps(self, outputs: Span) -> NDArray[np.int64]:
        """The pixels that these windows read, a row each; those below 0 and beyond the image are padding."""
        return (np.arange(*outputs) * self.stride - self.before)[:, None] + np.arange(self.kernel) * self.dilation


def read(windows: Sliding | Windows, outputs: Span) -> NDArray[np.int64]:
    """The pixels that these windows of a convolution or a pooling read, sorted; a convolution's padding, too."""
    if isinstance(windows, Sliding):
        return np.unique(windows.taps(outputs))
    edges = zip(windows.start[slice(*outputs)], windows.stop[slice(*outputs)], strict=True)
    return np.unique(np.concatenate([np.arange(start, stop, windows.step) for start, stop in edges]))


def reach_of(layer: str, direction: int, size: int, windows: Sliding | Windows, ranks: int, index: int) -> Reach:
    """What rank `index` of `ranks` along a direction of an image of `size` pixels needs for its share of the windows.

    layer: names it in errors. Raises ValueError if a rank would have no pixel or no output, or would need pixels beyond
    those of its neighbours.
    """
    count = windows.number
    which = DIRECTIONS[direction]
    for length, what in ((size, "image"), (count, "output")):
        if length < ranks:
            advice = f"use at most {length}" if length > 0 else "its windows do not fit the image"
            raise ValueError(f"{layer}: an {what} of {which} {length} cannot be divided by {ranks} ranks: {advice}")
    covered = [read(windows, span(count, ranks, each)) for each in range(ranks)]
    wanted = [pixels[(pixels >= 0) & (pixels < size)] for pixels in covered]
    slabs = [span(size, ranks, each) for each in range(ranks)]
    for each, pixels in enumerate(wanted):
        low, high = slabs[max(each - 1, 0)].start, slabs[min(each + 1, ranks - 1)].stop
        if pixels.size and (pixels[0] < low or pixels[-1] >= high):
            raise ValueError(
                f"{layer}: the windows are wider than a slab: along the {which} of {size} pixels, rank {each} of "
                f"{ranks} reads pixels {pixels[0]} to {pixels[-1]}, but it and its neighbours have {low} to "
                f"{high - 1}: divide the {which} by fewer ranks"
            )
    own, mine = slabs[index], wanted[index]
    beside = [each for each in (index - 1, index + 1) if 0 <= each < ranks]
    received = {each: _within(mine, slabs[each]) for each in beside}
    sent = {each: _within(wanted[each], own) for each in beside}
    first, last = int(covered[index][0]), int(covered[index][-1])
    return Reach(
        own,
        span(count, ranks, index),
        first,
        last + 1 - first,
        mine,
        {each: pixels for each, pixels in received.items() if pixels.size},
        {each: pixels for each, pixels in sent.items() if pixels.size},
    )


def _within(pixels: NDArray[np.int64], slab: Span) -> NDArray[np.int64]:
    return pixels[(pixels >= slab.start) & (pixels < slab.stop)]
