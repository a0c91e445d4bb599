"""Halo exchange: the rows and columns around a rank's tile that its windows read, fetched from the neighbours.

Rows travel first, then columns with the rows that have arrived: the corners come in two phases, without messages of
their own. Backward returns the gradients the other way round, columns first, and the owner adds them to its own.

References
    Dryden et al., Improving Strong-Scaling of CNN Training by Exploiting Finer-Grained Parallelism (arXiv:1903.06681),
    section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl import kernels
from minidl.kernels import Array
from minidl.parallel.spatial.tiles import Reach, Tile
from minidl.tensor import Tensor, record

Pixels = NDArray[np.int64]


class Frame:
    """A rank's tile and what its windows read around it, as one array: which of its pixels come from whom.

    Parameters
        tile     the rank's place in the grid
        reaches  what its windows read of the rows, and of the columns

    Attributes
        reaches  as given
        own      where the tile is in the array
        area     where the pixels are that the windows cover, padding included
        messages for each direction a list of (neighbour, where what it needs is, where what comes from it is)
    """

    def __init__(self, tile: Tile, reaches: tuple[Reach, Reach]) -> None:
        starts = [min(reach.own.start, reach.first) for reach in reaches]
        stops = [max(reach.own.stop, reach.first + reach.length) for reach in reaches]
        self.comm, self.reaches = tile.comm, reaches
        self._extents = tuple(stop - start for start, stop in zip(starts, stops, strict=True))
        self.own = _place(*(np.arange(*reach.own) - start for reach, start in zip(reaches, starts, strict=True)))
        covered = (np.arange(reach.length) + reach.first for reach in reaches)
        self.area = _place(*(pixels - start for pixels, start in zip(covered, starts, strict=True)))
        rows, columns = reaches
        across = np.arange(*columns.own) - starts[1], rows.wanted - starts[0]
        self.messages: tuple[list[tuple[int, Any, Any]], ...] = ([], [])
        for d, reach in enumerate(reaches):
            for index in sorted(reach.sent.keys() | reach.received.keys()):
                sent, received = (
                    None if pixels is None else _place(*_ordered(d, pixels - starts[d], across[d]))
                    for pixels in (reach.sent.get(index), reach.received.get(index))
                )
                self.messages[d].append((tile.neighbour(d, index), sent, received))

    def around(self, x: Array, place: Any, halo: Sequence[tuple[Any, Array]] = ()) -> Array:
        """Zeros around x, which is at that place, and the halo."""
        whole = kernels.array_module(x).zeros((*x.shape[:2], *self._extents), dtype=x.dtype)
        for at, pixels in ((place, x), *halo):
            whole[at] = pixels
        return whole

    def halo(self, whole: Array) -> list[tuple[Any, Array]]:
        """Copies of what has come from the neighbours, with their places in the frame."""
        places = [received for messages in self.messages for _, _, received in messages if received is not None]
        return [(place, whole[place].copy()) for place in places]


class Exchange:
    """Messages with the neighbours along one direction, which travel until `finish`.

    Parameters
        frame      says what is sent and received
        whole      the array of the frame, which is read at once and written by `finish`
        direction  0 the rows, 1 the columns
        back       False: pixels come from their owners; True: gradients return to them, and are added up
    """

    def __init__(self, frame: Frame, whole: Array, direction: int, back: bool = False) -> None:
        self._whole, self._back = whole, back
        self._sends, self._receives = [], []
        for rank, sent, received in frame.messages[direction]:
            give, take = (received, sent) if back else (sent, received)
            if give is not None:
                pixels = kernels.array_module(whole).ascontiguousarray(whole[give])
                self._sends.append(frame.comm.isend(kernels.to_numpy(pixels), rank))
            if take is not None:
                self._receives.append((frame.comm.irecv(rank), take))

    def finish(self) -> None:
        """Wait for the messages, and put what has come into its place."""
        for work, place in self._receives:
            pixels = kernels.array_module(self._whole).asarray(work.wait())
            self._whole[place] = self._whole[place] + pixels if self._back else pixels
        for work in self._sends:
            work.wait()


def with_halo(x: Tensor, frame: Frame) -> Tensor:
    """The tile x (n, c, h, w) with what this rank's windows read around it; backward returns the halo's gradients.

    All ranks of the grid call it, and backward, together. Padding is zeros.
    """
    whole = frame.around(x.data, frame.own)
    for direction in (0, 1):
        Exchange(frame, whole, direction).finish()

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        gradient = frame.around(g, frame.area)
        begin_return(frame, gradient).finish()
        return (own_tile(frame, gradient),)

    return record(whole[frame.area], (x,), vjp)


def begin_return(frame: Frame, gradient: Array) -> Exchange:
    """Return the gradients of the halo, the columns', then the rows'; the last that there are travel until `finish`."""
    columns = Exchange(frame, gradient, 1, back=True)
    if not frame.messages[0]:
        return columns
    columns.finish()
    return Exchange(frame, gradient, 0, back=True)


def own_tile(frame: Frame, gradient: Array) -> Array:
    """The gradient of the tile, from that of the frame, when the halo's has been returned."""
    own = gradient[frame.own]
    return own if own.shape == gradient.shape else own.copy()  # a view would keep the halo


def gathered(x: Tensor, tile: Tile, size: tuple[int, int]) -> Tensor:
    """The whole images (n, c, *size) of the ranks' tiles x, on every rank; backward takes the own tile of the gradient.

    The gradient must be the same on every rank, as it is if all compute the same loss from the whole images.
    Messages: an all-gather in forward, none in backward.
    """
    if tile.comm.size == 1:
        return x
    if x.shape[2:] != (own := tuple(stop - start for start, stop in tile.own(size))):
        raise ValueError(f"gathered: a tile of {own} pixels of images of {size} expected, got {x.shape}")
    mine = kernels.to_numpy(x.data)
    module = kernels.array_module(mine)
    whole = module.empty((*x.shape[:2], *size), x.dtype)
    tiles = tile.comm.all_gather(module.ascontiguousarray(mine))
    for place, pixels in zip(np.ndindex(tile.grid), tiles, strict=True):
        whole[(..., *(slice(*each) for each in tile.at(place, size)))] = pixels
    whole = kernels.array_module(x.data).asarray(whole)
    return record(whole, (x,), lambda g, needs: (tile.cut(g).copy(),))


def mean_of_tiles(x: Tensor, tile: Tile, size: tuple[int, int]) -> Tensor:
    """The means (n, c, 1, 1) of the whole images of that size, on every rank, from the ranks' tiles x.

    The gradient must be the same on every rank, as for `gathered`. Messages: an all-reduce of n c numbers in forward,
    none in backward.
    """
    share = x.mean(axis=(2, 3), keepdims=True) * (prod(x.shape[2:]) / prod(size))
    mine = kernels.to_numpy(share.data).astype(np.result_type(share.dtype, np.float32))  # a copy: the sum replaces it
    total = kernels.array_module(share.data).asarray(tile.comm.all_reduce(mine), share.dtype)
    return record(total, (share,), lambda g, needs: (g,))


def _ordered(direction: int, along: Pixels, across: Pixels) -> tuple[Pixels, Pixels]:
    """Rows and columns, from the pixels along a direction and those across it."""
    return (along, across) if direction == 0 else (across, along)


def _place(rows: Pixels, columns: Pixels) -> Any:
    """The index of these rows and columns of images; slices if both are without gaps."""
    if all(pixels.size and pixels[-1] - pixels[0] + 1 == pixels.size for pixels in (rows, columns)):
        return (..., *(slice(int(pixels[0]), int(pixels[-1]) + 1) for pixels in (rows, columns)))
    return (..., *np.ix_(rows, columns))
