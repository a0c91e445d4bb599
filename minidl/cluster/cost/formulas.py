"""The time of the collectives in `cluster.collectives` by the alpha-beta-gamma model, and their messages and bytes.

    p        number of ranks
    nbytes   size of the whole vector: on every rank before a reduction or an all-to-all and after an all-gather; on the
             root before a broadcast or scatter and after a gather
    alpha    seconds per message
    beta     seconds per byte
    gamma    seconds per reduced byte
    lg       logarithm to base 2

A message of n bytes occupies the sender's output port and the receiver's input port for alpha + n beta seconds. The
reduction of n bytes takes n gamma seconds. The formulas are exact for the code of `cluster.collectives`, also if p is
no power of two or the vector does not divide evenly; a chunk then counts as ceil(n/p) elements of `itemsize` bytes.

Sources: Thakur, Rabenseifner and Gropp (2005), sections 3 and 4; Patarasuk and Yuan (2009). For powers of two these
are the published formulas. For other p, the formula for Rabenseifner's algorithm in MPICH's comments is a few percent
too high.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from minidl.arguments import one_of
from minidl.cluster.collectives.partition import chain_segments, chunk_bytes, group_size
from minidl.cluster.cost import shared_links
from minidl.cluster.cost.network import Network

LOCAL = Network(alpha=20e-6, beta=0.5e-9, gamma=0.25e-9)
"""About the network of processes on one machine."""


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
    """Return the seconds that an all-reduce of nbytes among p ranks takes.

    Parameters
        algorithm   as in `comm.all_reduce`; "auto" takes the fastest
        p           number of ranks
        nbytes      size of the vector
        alpha       seconds per message
        beta        seconds per byte
        gamma       seconds per reduced byte
        itemsize    bytes of an element, which is never split
        options     `segments` of "pipelined_chain"; `per_group`, `intra` and `inter` of "hierarchical", the last two
                    pairs (alpha, beta) for messages within and between groups, by default the ones above

    The formulas assume that every message has a link of its own: if the ranks of a group share one uplink,
    "hierarchical" takes longer than its formula says. `all_reduce_on(network, ...)` knows the links of a
    `Network.tree`.

    Raises
        ValueError   unknown algorithm, p or itemsize below 1, nbytes below 0
        TypeError    an option that the algorithm does not have

    >>> round(all_reduce("ring", p=4, nbytes=4_000_000, alpha=50e-6, beta=8e-9), 6)
    0.0483
    """
    if algorithm == "auto":
        algorithm = _fastest(p, nbytes, alpha, beta, gamma, itemsize)
    one_of("algorithm", algorithm, ["auto", *ALL_REDUCE])
    _check(p, nbytes, itemsize)
    return ALL_REDUCE[algorithm](p, nbytes, alpha, beta, gamma, itemsize, **options)


def all_reduce_on(network: Network, algorithm: str, p: int, nbytes: int, itemsize: int = 4, **options: Any) -> float:
    """Return the seconds that an all-reduce among ranks 0 to p - 1 of a network takes, shared links included.

    On a topology, such as `Network.tree`, messages of the same round share links. That is an estimate, not a bound;
    `shared_links.py` says when it is exact, too high or too low. On any other network the formula is used.

    Parameters
        network     as in `cluster.launch`
        algorithm   as in `comm.all_reduce`; on a topology not "parameter_server" and "ordered"
        p, nbytes, itemsize, options   as in `all_reduce`

    Raises
        ValueError   an algorithm that is unknown, or has no rounds; p above the ranks of the topology

    >>> machines = Network.tree(8, 8, nic=(1e-6, 150e9), uplink=(5e-6, 12.5e9))
    >>> f"{all_reduce_on(machines, 'hierarchical', 64, 10**8, per_group=8) * 1e3:.1f} ms"
    '15.4 ms'
    """
    if network.topology is None:
        return all_reduce(
            algorithm, p, nbytes, network.alpha, network.beta, network.gamma, itemsize=itemsize, **options
        )
    _check(p, nbytes, itemsize)
    network.check(p)
    ranks = tuple(range(p))
    if algorithm == "auto":
        algorithm, options = shared_links.best_all_reduce(network, ranks, nbytes, itemsize)
    one_of("algorithm, on a topology", algorithm, ["auto", *shared_links.ALL_REDUCE])
    return shared_links.all_reduce(algorithm, network, ranks, nbytes, itemsize, **options)


def best_all_reduce(p: int, nbytes: int, network: Network | None = None, itemsize: int = 4) -> str:
    """Return the name of the algorithm that is fastest on this network by the formulas, with default options.

    This is what "auto" chooses, except on a topology: there "auto" knows the shared links, and this function only
    the longest path. Without a network, that of a laptop is assumed.

    >>> best_all_reduce(8, 100, Network.preset("1gbe")), best_all_reduce(8, 10**8, Network.preset("1gbe"))
    ('recursive_doubling', 'rabenseifner')
    """
    network = network or LOCAL
    return _fastest(p, nbytes, network.alpha, network.beta, network.gamma, itemsize)


def fastest_all_reduce(
    network: Network | None, ranks: tuple[int, ...], nbytes: int, itemsize: int
) -> tuple[str, dict[str, int]]:
    """Return the algorithm and its options: by rounds of messages on a topology, else by the formulas."""
    if network is not None and network.topology is not None:
        return shared_links.best_all_reduce(network, ranks, nbytes, itemsize)
    return best_all_reduce(len(ranks), nbytes, network, itemsize), {}


# The algorithms for all-reduce


def ring(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """A reduce-scatter and an all-gather; also the time of "ordered"."""
    return reduce_scatter(p, nbytes, alpha, beta, gamma, itemsize) + all_gather(p, nbytes, alpha, beta, itemsize)


def tree(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """A reduce and a broadcast along a binomial tree."""
    return reduce(p, nbytes, alpha, beta, gamma) + broadcast(p, nbytes, alpha, beta)


def recursive_doubling(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """lg p' rounds that exchange and reduce the whole vector, for p' the largest power of two up to p."""
    rounds = p.bit_length() - 1
    return rounds * (alpha + nbytes * (beta + gamma)) + _folding(p, nbytes, alpha, beta, gamma)


def rabenseifner(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """lg p' rounds of halving and as many of doubling, of n/2, n/4, ... bytes; odd numbers are rounded up."""
    halves = [chunk_bytes(nbytes, 1 << k, itemsize) for k in range(1, p.bit_length())]
    moved = sum(2 * (alpha + half * beta) + half * gamma for half in halves)
    return moved + _folding(p, nbytes, alpha, beta, gamma)


def parameter_server(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> float:
    """p - 1 workers, served one at a time; rank 0, the server, is one of the p ranks."""
    return (p - 1) * (2 * (alpha + nbytes * beta) + nbytes * gamma)


def pipelined_chain(
    p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int, segments: int | None = None
) -> float:
    """p + K - 2 steps down the chain and as many back, of n/K bytes.

    The first segment needs p - 1 steps, and each further segment adds a step. If segments differ in size, the larger
    ones come first.
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
    """Reduce-scatter and all-gather within groups, and a ring between groups with one chunk of the vector."""
    size = group_size(p, per_group)
    near, far = intra or (alpha, beta), inter or (alpha, beta)
    across = ring(p // size, chunk_bytes(nbytes, size, itemsize), *far, gamma, itemsize)
    return ring(size, nbytes, *near, gamma, itemsize) + across


ALL_REDUCE: dict[str, Callable[..., float]] = {
    "recursive_doubling": recursive_doubling,  # if algorithms are equally fast, "auto" takes the first
    "rabenseifner": rabenseifner,
    "ring": ring,
    "tree": tree,
    "hierarchical": hierarchical,
    "pipelined_chain": pipelined_chain,
    "parameter_server": parameter_server,
    "ordered": ring,
}
"""The formulas of all-reduce, in seconds, by the name of the algorithm."""


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
    """Seconds for a reduce-scatter round the ring; `itemsize` is the size of a row if the array has several axes."""
    _check(p, nbytes, itemsize)
    return (p - 1) * (alpha + chunk_bytes(nbytes, p, itemsize) * (beta + gamma))


def all_gather(p: int, nbytes: int, alpha: float, beta: float, itemsize: int = 4) -> float:
    """Seconds for an all-gather of nbytes in total round the ring; the largest item has ceil(n/p) elements."""
    _check(p, nbytes, itemsize)
    return (p - 1) * (alpha + chunk_bytes(nbytes, p, itemsize) * beta)


def all_to_all(p: int, nbytes: int, alpha: float, beta: float, itemsize: int = 4) -> float:
    """Seconds for a pairwise all-to-all; every rank has nbytes, in p items sized as by `np.array_split`."""
    return all_gather(p, nbytes, alpha, beta, itemsize)


def gather(p: int, nbytes: int, alpha: float, beta: float, itemsize: int = 4) -> float:
    """Seconds for a gather to rank 0 of nbytes in total, in items sized as by `np.array_split`."""
    _check(p, nbytes, itemsize)
    return (p - 1) * alpha + (nbytes - chunk_bytes(nbytes, p, itemsize)) * beta


def scatter(p: int, nbytes: int, alpha: float, beta: float, itemsize: int = 4) -> float:
    """Seconds for a scatter from rank 0 of nbytes in total, in items sized as by `np.array_split`."""
    return gather(p, nbytes, alpha, beta, itemsize)


def barrier(p: int, alpha: float) -> float:
    """Seconds for a barrier by dissemination."""
    _check(p)
    return _rounds(p) * alpha


# Bounds and optima


def lower_bound(p: int, nbytes: int, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Return a lower bound on the seconds of any all-reduce: the largest of three.

        ceil(lg p) alpha        data of one rank reaches at most twice as many ranks in every round
        2 (p - 1)/p n beta      some rank sends that many bytes
        (p - 1)/p n gamma       some rank reduces that many bytes

    Source: Patarasuk and Yuan (2009), section 3; Chan et al., Collective communication: theory, practice, and
    experience (2007), section 3.
    """
    _check(p, nbytes)
    share = (p - 1) / p * nbytes
    return max(_rounds(p) * alpha, 2 * share * beta, share * gamma)


def crossover(p: int, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Return the bytes from which Rabenseifner's algorithm is faster than recursive doubling; infinite if it never is.

    For gamma = 0 and p a power of two: alpha lg p / (beta (lg p - 2(p - 1)/p)). Any other p has the crossover of the
    power of two below it, because both algorithms spend the same time on the remaining ranks.

    >>> round(crossover(8, alpha=50e-6, beta=8e-9))
    15000
    """
    _check(p)
    rounds = p.bit_length() - 1
    share = 1 - 1 / (1 << rounds)
    saved = (rounds - 2 * share) * beta + (rounds - share) * gamma
    return rounds * alpha / saved if saved > 0 else math.inf


def best_segments(p: int, nbytes: int, alpha: float, beta: float, gamma: float = 0.0) -> int:
    """Return the `segments` for which the pipelined chain is fastest, near sqrt((p - 2) n (beta + gamma/2) / alpha)."""
    _check(p, nbytes)
    if alpha == 0:
        return max(1, nbytes)  # messages cost nothing: one per byte
    optimum = math.sqrt(max(p - 2, 0) * nbytes * (beta + gamma / 2) / alpha)
    near = (max(1, math.floor(optimum)), max(1, math.ceil(optimum)))
    return min(near, key=lambda k: (p + k - 2) * (2 * alpha + (2 * beta + gamma) * nbytes / k))


def traffic(algorithm: str, p: int, nbytes: int, itemsize: int = 4, **options: Any) -> tuple[int, int]:
    """Return the messages and bytes that all ranks together send in an all-reduce; arguments as in `all_reduce`.

    All algorithms but recursive doubling send the minimum of 2(p - 1) n bytes; they differ in how these are spread over
    ranks and time. In "ring", "ordered" and "hierarchical" every rank sends 1/p of the messages.

    >>> traffic("ring", 4, 1000), traffic("recursive_doubling", 4, 1000)
    ((24, 6000), (8, 8000))
    """
    _check(p, nbytes, itemsize)
    if algorithm == "auto":
        raise ValueError("traffic needs the name of an algorithm: ask best_all_reduce which one auto takes")
    one_of("algorithm", algorithm, ALL_REDUCE)
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


# Helpers


@lru_cache(maxsize=1024)
def _fastest(p: int, nbytes: int, alpha: float, beta: float, gamma: float, itemsize: int) -> str:
    _check(p, nbytes, itemsize)
    return min(ALL_REDUCE, key=lambda name: ALL_REDUCE[name](p, nbytes, alpha, beta, gamma, itemsize))


def _folding(p: int, nbytes: int, alpha: float, beta: float, gamma: float) -> float:
    """The time that the ranks beyond the largest power of two add: a whole vector sent, reduced, and sent back."""
    return 0.0 if p & (p - 1) == 0 else 2 * (alpha + nbytes * beta) + nbytes * gamma


def _rounds(p: int) -> int:
    """ceil(lg p): the rounds until data of one rank has reached all, if each round doubles the ranks that have it."""
    return (p - 1).bit_length()


def _check(p: int, nbytes: int = 0, itemsize: int = 1) -> None:
    """Raise ValueError for impossible numbers."""
    if p < 1 or nbytes < 0 or itemsize < 1:
        raise ValueError(
            f"a collective needs p >= 1 ranks, nbytes >= 0 and itemsize >= 1: got p={p}, nbytes={nbytes}, "
            f"itemsize={itemsize}"
        )
