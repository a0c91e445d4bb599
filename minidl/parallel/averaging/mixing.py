"""Mixing matrices of gossip: which nodes average with which, and with which weights.

In one step node i gets the weights sum over j of W[i, j] x_j. Rows of W that sum to 1 make this an average; columns
that sum to 1 keep the mean of all nodes. A matrix with both is doubly stochastic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]
Neighbours = list[set[int]]


def ring(nodes: int) -> Neighbours:
    """The neighbours of a node are the one before it and the one after it."""
    return [{(i - 1) % nodes, (i + 1) % nodes} - {i} for i in range(nodes)]


def torus(nodes: int) -> Neighbours:
    """A grid, as square as possible, with its edges joined: neighbours are above, below, left and right.

    Raises ValueError unless the nodes make a grid of at least two rows and two columns.
    """
    places = np.arange(nodes).reshape(grid(nodes))
    moved = [np.roll(places, step, axis).ravel().tolist() for step in (1, -1) for axis in (0, 1)]
    return [set(others) for others in zip(*moved, strict=True)]


def grid(nodes: int) -> tuple[int, int]:
    """Rows and columns of the torus.

    >>> grid(12), grid(16)
    ((3, 4), (4, 4))
    """
    rows = next(rows for rows in range(math.isqrt(nodes), 0, -1) if nodes % rows == 0)
    if rows < 2:
        raise ValueError(f"{nodes} nodes make no grid of at least two rows and two columns: use topology='ring'")
    return rows, nodes // rows


def full(nodes: int) -> Neighbours:
    """All other nodes are neighbours."""
    return [set(range(nodes)) - {i} for i in range(nodes)]


def none(nodes: int) -> Neighbours:
    """No neighbours: every node trains alone."""
    return [set() for _ in range(nodes)]


TOPOLOGIES: dict[str, Callable[[int], Neighbours]] = {"ring": ring, "torus": torus, "full": full, "none": none}


def opposites(topology: str, nodes: int) -> list[tuple[bool, list[int]]]:
    """A bipartite graph: for each node, whether it is in the first half, and its neighbours, all in the other half.

    Halves alternate along the ring, as on a chessboard on the torus; pairs within a half are left out.

    >>> opposites("ring", 4)
    [(True, [1, 3]), (False, [0, 2]), (True, [1, 3]), (False, [0, 2])]
    """
    columns = grid(nodes)[1] if topology == "torus" else nodes
    half = [(i // columns + i % columns) % 2 for i in range(nodes)]
    neighbours = TOPOLOGIES["full" if topology == "random" else topology](nodes)
    return [(half[i] == 0, sorted(j for j in neighbours[i] if half[j] != half[i])) for i in range(nodes)]


def matrix(neighbours: Sequence[set[int]]) -> Matrix:
    """The weights of Metropolis and Hastings: 1/(1 + the larger number of neighbours) for a pair, the rest for itself.

    Symmetric and doubly stochastic on any graph; 1/3 each on a ring, 1/n each on the full graph.

    >>> matrix(ring(4))[0].round(3).tolist()
    [0.333, 0.333, 0.0, 0.333]
    """
    w = np.zeros((len(neighbours), len(neighbours)))
    for i, others in enumerate(neighbours):
        for j in others:
            w[i, j] = 1 / (1 + max(len(others), len(neighbours[j])))
        w[i, i] = 1 - w[i].sum()
    return w


def matching(nodes: int, rng: np.random.Generator) -> Matrix:
    """Random pairs, each of which takes its mean. With an odd number of nodes one keeps its weights.

    >>> matching(2, np.random.default_rng(0)).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    w = np.eye(nodes)
    order = rng.permutation(nodes)
    for i, j in zip(order[::2], order[1::2], strict=False):
        w[[i, j], [[i], [j]]] = 0.5
    return w


def exponential(nodes: int, step: int) -> Matrix:
    """The one-peer exponential graph: in step k, node i takes its mean with node i - 2^k, and sends to node i + 2^k.

    k runs through 0, ..., ceil(lg n) - 1 again and again (n: nodes). With n a power of two, such a run makes all nodes
    equal to their mean; with any other n, most of the distance to it is gone. Source: Assran, Loizou, Ballas and
    Rabbat, Stochastic Gradient Push for Distributed Deep Learning (arXiv:1811.10792).

    >>> (exponential(4, 1) @ exponential(4, 0)).tolist()[0]
    [0.25, 0.25, 0.25, 0.25]
    """
    rounds = max(1, (nodes - 1).bit_length())
    return (np.eye(nodes) + np.roll(np.eye(nodes), -(2 ** (step % rounds)), axis=1)) / 2


def check(w: ArrayLike) -> Matrix:
    """Return the matrix as an array, after checking that it keeps the mean and brings all nodes together.

    Raises ValueError if it is not square, has an entry below 0, a row or column that does not sum to 1, or a second
    eigenvalue of modulus 1, as with two groups of nodes that never exchange anything. It need not be symmetric.
    """
    given = np.array(w, dtype=np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.size == 0:
        raise ValueError(f"a mixing matrix is square, a row and a column for each node; got shape {given.shape}")
    if not (given >= 0).all():
        i, j = np.argwhere(~(given >= 0))[0]
        raise ValueError(f"a mixing matrix has no entry below 0, but entry ({i}, {j}) is {given[i, j]}")
    for name, sums in (("row", given.sum(axis=1)), ("column", given.sum(axis=0))):
        for i in np.flatnonzero(np.abs(sums - 1) > 1e-9)[:1]:
            why = "the mean of the nodes would move" if name == "column" else "it would be no average"
            raise ValueError(f"every {name} of a mixing matrix sums to 1, but {name} {i} sums to {sums[i]:.6g}: {why}")
    if spectral_gap(given) < 1e-12:
        raise ValueError("with this mixing matrix the nodes never agree: its second eigenvalue has modulus 1")
    return given


def spectral_gap(w: Matrix) -> float:
    """1 minus the second largest modulus of an eigenvalue: a mixing leaves 1 - gap of the distance to the mean.

    For a symmetric W this bounds every mixing; for any W it is the rate in the long run. On a ring of n >= 4 nodes
    1 - gap = (1 + 2 cos(2 pi / n)) / 3; on the full graph the gap is 1.

    >>> round(spectral_gap(matrix(ring(16))), 5)
    0.05075
    """
    moduli = np.sort(np.abs(np.linalg.eigvals(w)))
    return float(1 - moduli[-2]) if len(w) > 1 else 1.0
