"""SUMMA: a matrix product on a grid of ranks, panel by panel.

Every matrix is cut into as many blocks as there are ranks: rank (i, j) holds block (i, j) of A, of B and of C = A B. A
panel of A is some of its columns, a panel of B the same rows: their product is a share of C. The ranks that hold a
panel of A broadcast it along their rows of the grid, those that hold the panel of B along their columns. C never moves.

    form      stays  broadcast                     summed up
    C = A B   C      A along rows, B along columns
    A = C B^T C      B along columns               A along rows
    B = A^T C C      A along rows                  B along columns

The gradients of a product are the second and the third form: dA = dC B^T, dB = A^T dC.

References
    van de Geijn and Watts, SUMMA: Scalable Universal Matrix Multiplication Algorithm (1997).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from minidl import kernels
from minidl.arguments import whole_number
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.kernels import Array
from minidl.tensor import Tensor, record


class Grid(NamedTuple):
    """A rank's place on a grid: `along_row` joins the ranks of its row, `along_column` those of its column.

    >>> from minidl import cluster
    >>> def program(comm):
    ...     grid = Grid.of(comm.mesh((2, 3), ("row", "column")))
    ...     return grid.i, grid.j, grid.along_row.all_gather(comm.rank)
    >>> cluster.launch(program, nodes=6, on="simulation").results[4]
    (1, 1, [3, 4, 5])
    """

    along_row: Communicator
    along_column: Communicator

    @classmethod
    def of(cls, mesh: Mesh[Communicator]) -> Grid:
        """The grid of a mesh with two axes: the rows, and the columns.

        Raises ValueError for another number of axes.
        """
        if len(mesh.names) != 2:
            raise ValueError(f"a grid has two axes, rows and columns; the mesh has {mesh.names}")
        row, column = mesh.names
        return cls(mesh[column], mesh[row])

    @property
    def i(self) -> int:
        return self.along_column.rank

    @property
    def j(self) -> int:
        return self.along_row.rank

    @property
    def shape(self) -> tuple[int, int]:
        return self.along_column.size, self.along_row.size


def summa(a: Any, b: Any, grid: Grid, inner: int, panel: int | None = None) -> Tensor:
    """This rank's block of the product of two matrices, of which it has a block each; differentiable.

    Parameters
        a      block (i, j) of an (m, inner) matrix
        b      block (i, j) of an (inner, n) matrix
        grid   the ranks
        inner  columns of the first matrix and rows of the second
        panel  most columns that are sent at once; None: as many as a rank has

    Blocks are those of `block`: sizes that the grid does not divide differ by one.

    A rank receives m/pr inner (1 - 1/pc) numbers of the first matrix, inner n/pc (1 - 1/pr) of the second. In each of
    the two products of backward it is as many on average: one matrix is broadcast, the other added up.

    Raises
        ValueError  blocks of other sizes

    >>> from minidl import cluster
    >>> a, b = np.arange(6.0).reshape(2, 3), np.ones((3, 2))
    >>> def program(comm):
    ...     grid = Grid.of(comm.mesh((2, 2), ("row", "column")))
    ...     c = summa(block(a, grid), block(b, grid), grid, inner=3)
    ...     return c.numpy().tolist()
    >>> cluster.launch(program, nodes=4, on="simulation").results
    [[[3.0]], [[3.0]], [[12.0]], [[12.0]]]
    """
    a = a if isinstance(a, Tensor) else Tensor(a)
    b = b if isinstance(b, Tensor) else Tensor(b)
    inner = whole_number("inner", inner, at_least=1)
    width = inner if panel is None else whole_number("panel", panel, at_least=1)
    check_blocks(a.shape, b.shape, grid, inner)
    panels = list(panels_of(inner, grid, width))

    c = sum(broadcast_column(a.data, grid, each) @ broadcast_row(b.data, grid, each) for each in panels)

    def vjp(g: Array, needs: Any) -> tuple[Array | None, Array | None]:
        need_a, need_b = needs
        of_a = np.zeros(a.shape, g.dtype) if need_a else None
        of_b = np.zeros(b.shape, g.dtype) if need_b else None
        for each in panels:
            if of_a is not None:  # dA = dC B^T: every rank of a row has a share of the sum
                share = g @ broadcast_row(b.data, grid, each).T
                add_up(share, of_a[:, each.of_a], grid.along_row, each.column)
            if of_b is not None:  # dB = A^T dC
                share = broadcast_column(a.data, grid, each).T @ g
                add_up(share, of_b[each.of_b], grid.along_column, each.row)
        return of_a, of_b

    return record(c, (a, b), vjp, saved=(0, 1))


class Panel(NamedTuple):
    """Some columns of the first matrix, which grid column `column` holds, and the same rows of the second."""

    width: int
    column: int
    of_a: slice  # within the block that holds them
    row: int
    of_b: slice


def panels_of(inner: int, grid: Grid, width: int) -> Iterator[Panel]:
    """The panels: each lies within one block of either matrix, and has `width` columns or those left of a block."""
    pr, pc = grid.shape
    columns, rows = bounds(inner, pc), bounds(inner, pr)
    for begin, end in pairwise(sorted({*columns, *rows})):
        column, row = (int(np.searchsorted(edges, begin, "right")) - 1 for edges in (columns, rows))
        for start in range(begin, end, width):
            stop = min(start + width, end)
            of_a, of_b = (slice(start - low, stop - low) for low in (columns[column], rows[row]))
            yield Panel(stop - start, column, of_a, row, of_b)


def broadcast_column(a: Array, grid: Grid, panel: Panel) -> Array:
    """The panel's columns of the first matrix, in this rank's rows."""
    return _broadcast(a[:, panel.of_a] if grid.j == panel.column else None, a, grid.along_row, panel.column)


def broadcast_row(b: Array, grid: Grid, panel: Panel) -> Array:
    """The panel's rows of the second matrix, in this rank's columns."""
    return _broadcast(b[panel.of_b] if grid.i == panel.row else None, b, grid.along_column, panel.row)


def _broadcast(own: Array | None, like: Array, comm: Communicator, src: int) -> Array:
    if comm.size == 1:
        return own
    mine = None if own is None else np.ascontiguousarray(kernels.to_numpy(own))
    return kernels.array_module(like).asarray(comm.broadcast(mine, src))


def add_up(share: Array, into: Array, comm: Communicator, dst: int) -> None:
    """Add the ranks' shares up on one rank, in `into`."""
    if comm.size == 1:
        into += share
        return
    total = comm.reduce(np.ascontiguousarray(kernels.to_numpy(share)), dst)
    if total is not None:
        into += kernels.array_module(into).asarray(total)


# Blocks


def bounds(size: int, count: int) -> list[int]:
    """Where the blocks of a dimension begin, and its end; the first blocks are the longer ones.

    >>> bounds(7, 3)
    [0, 3, 5, 7]
    """
    short, longer = divmod(size, count)
    return [at * short + min(at, longer) for at in range(count + 1)]


def block(whole: Array, grid: Grid) -> Array:
    """This rank's block of a matrix that it has whole, a view; ValueError for an array that is no matrix."""
    if whole.ndim != 2:
        raise ValueError(f"a grid divides matrices, got an array of shape {whole.shape}: reshape it to two axes")
    (pr, pc), (rows, columns) = grid.shape, whole.shape
    row, column = bounds(rows, pr), bounds(columns, pc)
    return whole[row[grid.i] : row[grid.i + 1], column[grid.j] : column[grid.j + 1]]


def check_blocks(a: tuple[int, ...], b: tuple[int, ...], grid: Grid, inner: int) -> None:
    """Raise ValueError unless blocks of these shapes are those of matrices with `inner` columns and rows."""
    (pr, pc), i, j = grid.shape, grid.i, grid.j
    if max(pr, pc) > inner:
        raise ValueError(f"inner={inner} cannot be divided by a grid of {pr} x {pc} ranks: every block needs a column")
    columns, rows = bounds(inner, pc), bounds(inner, pr)
    widths = columns[j + 1] - columns[j], rows[i + 1] - rows[i]
    if len(a) != 2 or len(b) != 2 or (a[1], b[0]) != widths:
        raise ValueError(
            f"on a grid of {pr} x {pc} ranks with inner={inner}, rank ({i}, {j}) has blocks of shapes (m, {widths[0]}) "
            f"and ({widths[1]}, n), got {a} and {b}: cut them with products.block"
        )
