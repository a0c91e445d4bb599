"""What the collectives of `collectives.py` cost: seconds in the alpha-beta-gamma model, messages and bytes in all.

A message of n bytes takes alpha + n beta, for which it occupies the sender's port out and the receiver's port in; the
reduction of n bytes takes n gamma. The formulas are exact for what the code does, also for p that is no power of two
and for vectors that do not divide evenly: a chunk is then the larger kind, ceil(n/p) elements of `itemsize` bytes.

In all of them `nbytes` is the whole vector: what every rank has before a reduction or an all-to-all, what every rank
has after an all-gather, what the root has before a broadcast or scatter and after a gather.

Sources: Thakur, Rabenseifner and Gropp (2005), sections 3 and 4; Patarasuk and Yuan (2009); for powers of two these
are the published formulas. For other p, that of Rabenseifner's algorithm in MPICH's comments is a few percent too
high.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from minidl.cluster.collectives.partition import chain_segments, chunk_bytes, group_size
from minidl.cluster.cost.network import Network

LOCAL = Network(alpha=20e-6, beta=0.5e-9, gamma=0.25e-9)  # about what processes of one machine see; if nothing is known


def all_reduce(
    algorithm: str,
    p: int,
    nbytes: int,
    alpha: float,
    beta: float,
    gamma: float = 0.0,
    itemsize: int = 4,
    **options: Any,
) -> float:
    """Seconds for an all-reduce of nbytes among p ranks.

    algorithm: as in `comm.all_reduce`; "auto" is the fastest of them. alpha: seconds a message; beta: seconds a byte;
    gamma: seconds a byte reduced. itemsize: bytes of an element, which is never cut in two. options: `segments` for
    "pipelined_chain"; for "hierarchical" `per_group`, and `intra` and `inter`, pairs (alpha, beta) for messages within
    and between groups, by default the ones given.

    Errors: ValueError for an unknown algorithm or numbers that cannot be; TypeError for an option that it has not.

    >>> round(all_reduce("ring", p=4, nbytes=4_000_000, alpha=50e-6, beta=8e-9), 6)
    0.0483
    """
    if algorithm == "auto":
        algorithm = _fastest(p, nbytes, alpha, beta, gamma, itemsize)
    if algorithm not in ALL_REDUCE:
        raise ValueError(f"unknown algorithm {algorithm!r}: choose one of {', '.join(['auto', *ALL_REDUCE])}")
    _check(p, nbytes, itemsize)
    return ALL_REDUCE[algorithm](p, nbytes, alpha, beta, gamma, itemsize, **options)


def best_all_reduce(p: int, nbytes: int, network: Network | None = None, itemsize: int = 4) -> str:
    """The name of the algorithm that is fastest on this network by the formulas: what "auto" means.

    Each is taken with its default options. Where nothing is known of the network, that of a laptop is assumed. On a
    `Network.tree`, of which this knows the longest path only, "auto" is what `tree_cost.best_all_reduce` says.

    >>> best_all_reduce(8, 100, Network.preset("1gbe")), best_all_reduce(8, 10**8, Network.preset("1gbe"))
    ('recursive_doubling', 'rabenseifner')
    """
    network = network or LOCAL
    return _fastest(p, nbytes, network.alpha, network.beta, network.gamma, itemsize)


# Eight ways to all-reduce


def ring(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """A reduce-scatter and an all-gather; "ordered" takes as long."""
    return reduce_scatter(p, nbytes, alpha, beta, gamma, itemsize) + all_gather(p, nbytes, alpha, beta, itemsize)


def tree(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """A reduce and a broadcast along a binomial tree."""
    return reduce(p, nbytes, alpha, beta, gamma) + broadcast(p, nbytes, alpha, beta)


def recursive_doubling(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """lg p' rounds, in each of which the whole vector is exchanged and reduced."""
    rounds = p.bit_length() - 1
    return rounds * (alpha + nbytes * (beta + gamma)) + _folding(p, nbytes, alpha, beta, gamma)


def rabenseifner(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """lg p' rounds of halving and as many of doubling: n/2, n/4, ... bytes, where an odd piece has a larger half."""
    halves = [chunk_bytes(nbytes, 1 << k, itemsize) for k in range(1, p.bit_length())]
    moved = sum(2 * (alpha + half * beta) + half * gamma for half in halves)
    return moved + _folding(p, nbytes, alpha, beta, gamma)


def parameter_server(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """p - 1 workers, one at a time; rank 0, the server, is one of the p."""
    return (p - 1) * (2 * (alpha + nbytes * beta) + nbytes * gamma)


def pipelined_chain(
    p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int, segments: int | None = None
) -> float:
    """p + K - 2 steps down the chain and as many back, of n/K bytes.

    The first segment needs p - 1 steps; the others follow, one a step; where they are uneven, the larger ones first.
    """
    if p == 1:
        return 0.0
    count = chain_segments(p, math.ceil(nbytes / itemsize), nbytes, segments)
    segment = chunk_bytes(nbytes, count, itemsize)
    down = (p - 2) * (alpha + segment * (beta + gamma)) + count * alpha + nbytes * (beta + gamma)
    back = (p - 2) * (alpha + segment * beta) + count * alpha + nbytes * beta
    return down + back


def hierarchical(
    p: int,
    nbytes: int,
    alpha: float,
    beta: float,
    gamma: float,
    itemsize: int,
    per_group: int | None = None,
    intra: tuple[float, float] | None = None,
    inter: tuple[float, float] | None = None,
) -> float:
    """Reduce-scatter and all-gather within groups, between them a ring with a chunk of the vector."""
    size = group_size(p, per_group)
    near, far = intra or (alpha, beta), inter or (alpha, beta)
    across = ring(p // size, chunk_bytes(nbytes, size, itemsize), *far, gamma, itemsize)
    return ring(size, nbytes, *near, gamma, itemsize) + across


ALL_REDUCE: dict[str, Callable[..., float]] = {
    "recursive_doubling": recursive_doubling,  # of equally fast ones, "auto" takes the first
    "rabenseifner": rabenseifner,
    "ring": ring,
    "tree": tree,
    "hierarchical": hierarchical,
    "pipelined_chain": pipelined_chain,
    "parameter_server": parameter_server,
    "ordered": ring,
}


# The other collectives


def broadcast(p: int, nbytes: int, alpha: float, beta: float) -> float:
    """Seconds for a broadcast along a binomial tree."""
    _check(p, nbytes)
    return _rounds(p) * (alpha + nbytes * beta)


def reduce(p: int, nbytes: int, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Seconds for a reduce along a binomial tree."""
    _check(p, nbytes)
    return _rounds(p) * (alpha + nbytes * (beta + gamma))


def reduce_scatter(p: int, nbytes: int, alpha: float, beta: float, gamma: float = 0.0, itemsize: int = 4) -> float:
    """Seconds for a reduce-scatter round the ring; itemsize is that of a row, if the array has several axes."""
    _check(p, nbytes, itemsize)
    return (p - 1) * (alpha + chunk_bytes(nbytes, p, itemsize) * (beta + gamma))


def all_gather(p: int, nbytes: int, alpha: float, beta: float, itemsize: int = 4) -> float:
    """Seconds for an all-gather round the ring of nbytes in all, the largest item being ceil(n/p) elements."""
    _check(p, nbytes, itemsize)
    return (p - 1) * (alpha + chunk_bytes(nbytes, p, itemsize) * beta)


def all_to_all(p: int, nbytes: int, alpha: float, beta: float, itemsize: int = 4) -> float:
    """Seconds for a pairwise all-to-all in which every rank has nbytes, in p items of the sizes of `np.array_split`."""
    return all_gather(p, nbytes, alpha, beta, itemsize)


def gather(p: int, nbytes: int, alpha: float, beta: float, itemsize: int = 4) -> float:
    """Seconds for a gather to rank 0 of nbytes in all, in items of the sizes of `np.array_split`."""
    _check(p, nbytes, itemsize)
    return (p - 1) * alpha + (nbytes - chunk_bytes(nbytes, p, itemsize)) * beta


def scatter(p: int, nbytes: int, alpha: float, beta: float, itemsize: int = 4) -> float:
    """Seconds for a scatter from rank 0 of nbytes in all, in items of the sizes of `np.array_split`."""
    return gather(p, nbytes, alpha, beta, itemsize)


def barrier(p: int, alpha: float) -> float:
    """Seconds for a barrier by dissemination."""
    _check(p)
    return _rounds(p) * alpha


# How far there is to go


def lower_bound(p: int, nbytes: int, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Seconds that no all-reduce can do without: the largest of three bounds.

    News of one rank reaches at most twice as many in every round: ceil(lg p) alpha. Some rank sends 2(p - 1)/p n bytes,
    and some rank reduces (p - 1)/p n. Source: Patarasuk and Yuan (2009), section 3; Chan et al., Collective
    communication: theory, practice, and experience (2007), section 3.
    """
    _check(p, nbytes)
    share = (p - 1) / p * nbytes
    return max(_rounds(p) * alpha, 2 * share * beta, share * gamma)


def crossover(p: int, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """The bytes from which Rabenseifner's algorithm is faster than recursive doubling; infinite if it never is.

    With gamma = 0 and p a power of two: alpha lg p / (beta (lg p - 2(p - 1)/p)). Other p are as the power of two below,
    for both algorithms spend the same on the ranks beyond it.

    >>> round(crossover(8, alpha=50e-6, beta=8e-9))
    15000
    """
    _check(p)
    rounds = p.bit_length() - 1
    share = 1 - 1 / (1 << rounds)
    saved = (rounds - 2 * share) * beta + (rounds - share) * gamma
    return rounds * alpha / saved if saved > 0 else math.inf


def best_segments(p: int, nbytes: int, alpha: float, beta: float, gamma: float = 0.0) -> int:
    """The `segments` with which the pipelined chain is fastest: near sqrt((p - 2) n (beta + gamma/2) / alpha)."""
    _check(p, nbytes)
    if alpha == 0:
        return max(1, nbytes)  # messages cost nothing: as many as there can be
    optimum = math.sqrt(max(p - 2, 0) * nbytes * (beta + gamma / 2) / alpha)
    near = (max(1, math.floor(optimum)), max(1, math.ceil(optimum)))
    return min(near, key=lambda k: (p + k - 2) * (2 * alpha + (2 * beta + gamma) * nbytes / k))


def traffic(algorithm: str, p: int, nbytes: int, itemsize: int = 4, **options: Any) -> tuple[int, int]:
    """Messages and bytes that an all-reduce sends, all ranks together; itemsize and options as in `all_reduce`.

    But for recursive doubling, the bytes are always the 2(p - 1) n that must be moved; it is how they are spread over
    ranks and time that differs. In "ring", "ordered" and "hierarchical" every rank sends a 1/p of the messages.

    >>> traffic("ring", 4, 1000), traffic("recursive_doubling", 4, 1000)
    ((24, 6000), (8, 8000))
    """
    _check(p, nbytes, itemsize)
    if algorithm == "auto":
        raise ValueError("traffic needs the name of an algorithm: ask best_all_reduce which one auto takes")
    if algorithm not in ALL_REDUCE:
        raise ValueError(f"unknown algorithm {algorithm!r}: choose one of {', '.join(ALL_REDUCE)}")
    rounds = p.bit_length() - 1
    first = 1 << rounds
    messages = 2 * (p - 1)
    if algorithm in ("ring", "ordered"):
        messages *= p
    elif algorithm == "hierarchical":
        size = group_size(p, options.get("per_group"))
        messages = 2 * p * (size - 1 + p // size - 1)
    elif algorithm == "pipelined_chain":
        messages *= chain_segments(p, math.ceil(nbytes / itemsize), nbytes, options.get("segments"))
    elif algorithm == "rabenseifner":
        messages = 2 * first * rounds + 2 * (p - first)
    elif algorithm == "recursive_doubling":
        messages = first * rounds + 2 * (p - first)
        return messages, messages * nbytes
    return messages, 2 * (p - 1) * nbytes


# Below the surface


@lru_cache(maxsize=1024)
def _fastest(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> str:
    _check(p, nbytes, itemsize)
    return min(ALL_REDUCE, key=lambda name: ALL_REDUCE[name](p, nbytes, alpha, beta, gamma, itemsize))


def _folding(p: int, nbytes: int, alpha: float, beta: float, gamma: float) -> float:
    """What the ranks beyond the greatest power of two add: a whole vector there, reduced, and back."""
    return 0.0 if p & (p - 1) == 0 else 2 * (alpha + nbytes * beta) + nbytes * gamma


def _rounds(p: int) -> int:
    """ceil(lg p): the rounds in which news of one rank reaches all, for each round doubles those who know."""
    return (p - 1).bit_length()


def _check(p: int, nbytes: int = 0, itemsize: int = 1) -> None:
    """Raise ValueError for numbers that cannot be."""
    if p < 1 or nbytes < 0 or itemsize < 1:
        raise ValueError(
            f"a collective needs p >= 1 ranks, nbytes >= 0 and itemsize >= 1: got p={p}, nbytes={nbytes}, "
            f"itemsize={itemsize}"
        )
