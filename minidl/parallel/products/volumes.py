"""How many numbers a rank must send or receive in a matrix product, by the grid that divides it.

A product of an (m, k) and a (k, n) matrix is a cuboid of m n k multiplications. A grid (p1, p2, p3) divides it into
p = p1 p2 p3 smaller ones: m by p1, n by p2, k by p3. What a rank needs of the three matrices are the faces of its
cuboid: the larger they are, the more it sends. Every rank owns 1/p of each matrix before and after.

    1-D    (p, 1, 1)        one dimension is divided, and one matrix needed whole
    2-D    (pr, pc, 1)      SUMMA: C stays where it is
    2.5-D  (pr, pc, c)      c copies of two matrices, each for 1/c of the work
    3-D    (p^1/3, ...)     cubes: the smallest faces

References
    Kwasniewski et al., COSMA (arXiv:1908.09606), sections 6 and 7, table 3; Solomonik and Demmel (2011) for 2.5-D;
    Gholami et al. (arXiv:1712.04432) for model and batch parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, prod, sqrt
from typing import NamedTuple

from minidl.arguments import real_number, whole_number

GridShape = tuple[int, int, int]


class Faces(NamedTuple):
    """The numbers of each matrix that a rank needs or adds to."""

    a: float
    b: float
    c: float


def faces(m: int, n: int, k: int, grid: GridShape) -> Faces:
    """The faces of a rank's cuboid on a grid (p1, p2, p3).

    Raises TypeError, ValueError unless all are whole numbers of at least 1.

    >>> faces(8, 8, 8, (2, 2, 1))
    Faces(a=32.0, b=32.0, c=16.0)
    """
    p1, p2, p3 = grid
    _check(m=m, n=n, k=k, p1=p1, p2=p2, p3=p3)
    return Faces(m * k / (p1 * p3), k * n / (p3 * p2), m * n / (p1 * p2))


def volume(m: int, n: int, k: int, grid: GridShape) -> float:
    """Numbers that a rank receives of the two factors, and sends or receives of the sum: its faces less what it owns.

    On a grid (pr, pc, 1) it is SUMMA's mk/pr (1 - 1/pc) + kn/pc (1 - 1/pr).

    >>> [volume(64, 64, 64, grid) for grid in ((64, 1, 1), (8, 8, 1), (4, 4, 4))]
    [4032.0, 896.0, 576.0]
    """
    return sum(faces(m, n, k, grid)) - (m * k + k * n + m * n) / prod(grid)


def memory(m: int, n: int, k: int, grid: GridShape) -> float:
    """Numbers that a rank holds at once if it keeps its faces."""
    return sum(faces(m, n, k, grid))


def best_grid(m: int, n: int, k: int, p: int, most: float = inf) -> GridShape:
    """The grid of p ranks with the smallest volume whose faces are at most `most` numbers.

    Raises ValueError if no grid has room.

    >>> best_grid(64, 64, 64, 64), best_grid(4096, 16, 16, 64)
    ((4, 4, 4), (64, 1, 1))
    """
    p = whole_number("best_grid: p", p, at_least=1)
    grids = [(p1, p2, p // (p1 * p2)) for p1 in _divisors(p) for p2 in _divisors(p // p1)]
    possible = [grid for grid in grids if memory(m, n, k, grid) <= most]
    if not possible:
        least = min(memory(m, n, k, grid) for grid in grids)
        raise ValueError(f"no grid of {p} ranks has room for its faces in {most:g} numbers: the least is {least:g}")
    return min(possible, key=lambda grid: volume(m, n, k, grid))


def _divisors(p: int) -> list[int]:
    return [divisor for divisor in range(1, p + 1) if p % divisor == 0]


def lower_bound(m: int, n: int, k: int, p: int, memory: float) -> float:
    """Numbers that some rank needs at least, if each has room for `memory` numbers; COSMA reaches it.

    A rank's w = mnk/p multiplications are cheapest in a cuboid on a square of C, which stays in memory while the two
    other matrices pass by: a^2 + 2 w / a numbers for a side a. The best square is the largest that there is room for,
    at most a face of a cube: a = min(sqrt(memory), w^(1/3)). What a rank owns at the beginning is counted, too.

    Raises TypeError, ValueError unless sizes and p are whole numbers of at least 1, and the memory is above 0.

    References
        Kwasniewski et al. (arXiv:1908.09606), theorem 2.

    >>> lower_bound(64, 64, 64, 64, memory=float("inf")), lower_bound(64, 64, 64, 64, memory=64)
    (768.0, 1088.0)
    """
    _check(memory, m=m, n=n, k=k, p=p)
    work = m * n * k / p
    side = min(sqrt(memory), _cube_root(work))
    return side**2 + 2 * work / side


def recursive(m: int, n: int, k: int, p: int, memory: float) -> float:
    """Numbers that a rank needs if the largest dimension is halved again and again (CARMA).

    It ends with cubes of which all three faces are in memory, 3 a^2 <= memory: with little memory the side is smaller
    by sqrt(3) than that of `lower_bound`, and sqrt(3) times as many numbers pass by. Errors are those of `lower_bound`.

    References
        Demmel et al., Communication-optimal parallel recursive rectangular matrix multiplication (2013).

    >>> recursive(64, 64, 64, 64, memory=float("inf"))
    768.0
    """
    _check(memory, m=m, n=n, k=k, p=p)
    work = m * n * k / p
    cube = _cube_root(work)
    return cube**2 + 2 * work / min(sqrt(memory / 3), cube)


def _check(memory: float | None = None, **sizes: int) -> None:
    """Raise TypeError, ValueError unless sizes are whole numbers of at least 1, and the memory is above 0."""
    for name, value in sizes.items():
        whole_number(f"volumes: {name}", value, at_least=1)
    if memory is not None:
        real_number("volumes: memory", memory, above=0, at_most=inf)


def _cube_root(x: float) -> float:
    """The cube root, exact for cubes of whole numbers."""
    root = x ** (1 / 3)
    return float(round(root)) if round(root) ** 3 == x else root


class Words(NamedTuple):
    """Numbers that a rank sends in a step of a fully connected network, by what they are."""

    outputs: float
    gradients_of_inputs: float
    gradients_of_weights: float


def model_and_batch(widths: Sequence[int], batch: int, model: int, replicas: int) -> Words:
    """Numbers that a rank sends in a step if `model` ranks divide the outputs of each layer, and `replicas` the batch.

    Parameters
        widths    inputs, then outputs of each layer
        batch     samples of all replicas
        model     ranks that divide each layer: pr of the paper
        replicas  groups of them that divide the samples: pc of the paper

    Outputs are gathered along the model; the gradients of inputs, but the first layer's, are added up along it; those
    of weights are added up over the replicas. Rings send (p-1)/p of the whole for a gather, twice that for a sum.
    Layers have no bias.

    Raises TypeError, ValueError unless all are whole numbers of at least 1, for fewer than two widths.

    References
        Gholami et al. (arXiv:1712.04432), equation 8.

    >>> model_and_batch([4, 8, 2], batch=6, model=2, replicas=3)
    Words(outputs=10.0, gradients_of_inputs=16.0, gradients_of_weights=32.0)
    """
    if len(widths) < 2:
        raise ValueError(f"widths must have the inputs and the outputs of at least one layer, got {list(widths)}")
    _check(batch=batch, model=model, replicas=replicas, **{f"widths[{at}]": width for at, width in enumerate(widths)})
    samples = batch / replicas
    outputs = sum(samples * width * (model - 1) / model for width in widths[1:])
    inputs = sum(2 * samples * width * (model - 1) / model for width in widths[1:-1])
    weights = sum(rows * columns for rows, columns in pairwise(widths))
    return Words(outputs, inputs, 2 * weights / model * (replicas - 1) / replicas)
