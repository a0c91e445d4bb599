"""The time of an all-reduce on a tree of racks, where concurrent messages share links.

An algorithm is a list of rounds; in a round, pairs of ranks exchange messages of one size. A message starts when both
ranks have finished the previous round, and takes

    latency of its path + nbytes * max over the links of its path (messages of the round on the link / bytes per second)

seconds. This is exact if the messages of a round start together, the most loaded link is on all of their paths, and no
message of another round uses their links meanwhile. Otherwise it is an estimate:

    too high  where messages of a round share links but not the whole time, or move at different speeds
    too low   where ranks run ahead, so that messages of different rounds share a link: recursive doubling, Rabenseifner
              and hierarchical with numbers of ranks that do not fit the racks, and the pipelined chain

On 2 racks of 5 with uplinks a tenth as fast as the network cards, recursive doubling takes 1.25 times as long.

Sources: for the rounds, those of `formulas.py`; for the load of links, Leiserson, Fat-trees (IEEE Transactions on
Computers C-34(10), 1985), section 3, load factor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from minidl.cluster.collectives.partition import chain_segments, chunk_bytes, group_size
from minidl.cluster.cost.network import Network
from minidl.cluster.cost.topology import Tree

Pair = tuple[int, int]  # sender, receiver


class MessageRound(NamedTuple):
    """`times` equal rounds: each sender sends `nbytes` to its receiver, which then reduces `reduced` bytes."""

    times: int
    pairs: list[Pair]
    nbytes: int
    reduced: int = 0


def ring(p: int, nbytes: int, itemsize: int) -> Iterator[MessageRound]:
    """Reduce-scatter, then all-gather: in every round each rank sends one chunk to the next rank."""
    around, chunk = [(i, (i + 1) % p) for i in range(p)], chunk_bytes(nbytes, p, itemsize)
    yield MessageRound(p - 1, around, chunk, chunk)
    yield MessageRound(p - 1, around, chunk)


def tree(p: int, nbytes: int, itemsize: int) -> Iterator[MessageRound]:
    """Reduce to rank 0, then broadcast from it, along a binomial tree."""
    rounds = [[(i + have, i) for i in range(min(have, p - have))] for have in _powers(p)]
    yield from (MessageRound(1, pairs, nbytes, nbytes) for pairs in reversed(rounds))
    yield from (MessageRound(1, _back(pairs), nbytes) for pairs in rounds)


def recursive_doubling(p: int, nbytes: int, itemsize: int) -> Iterator[MessageRound]:
    """Partners at distance 1, 2, 4, ... exchange their whole vectors."""
    among = [MessageRound(1, _partners(p, distance), nbytes, nbytes) for distance in _powers(_first(p))]
    yield from _folded(p, nbytes, among)


def rabenseifner(p: int, nbytes: int, itemsize: int) -> Iterator[MessageRound]:
    """Partners exchange 1/2, 1/4, ... of the vector (halving), then the same in reverse order (doubling)."""
    distances = _powers(_first(p))
    halves = [chunk_bytes(nbytes, _first(p) // distance, itemsize) for distance in distances]
    doubling = [MessageRound(1, _partners(p, distance), half) for distance, half in zip(distances, halves, strict=True)]
    halving = [MessageRound(1, pairs, half, half) for _, pairs, half, _ in reversed(doubling)]
    yield from _folded(p, nbytes, halving + doubling)


def pipelined_chain(p: int, nbytes: int, itemsize: int) -> Iterator[MessageRound]:
    """Segments flow down the chain and are reduced, then flow back up."""
    segments = chain_segments(p, -(-nbytes // itemsize), nbytes)
    down, segment = [(i, i - 1) for i in range(p - 1, 0, -1)], chunk_bytes(nbytes, segments, itemsize)
    for chain, reduced in ((down, segment), (_back(down[::-1]), 0)):
        yield from (MessageRound(1, [pair], segment, reduced) for pair in chain)  # the first segment fills the pipeline
        yield MessageRound(segments - 1, chain, segment, reduced)


def hierarchical(p: int, nbytes: int, itemsize: int, per_group: int | None = None) -> Iterator[MessageRound]:
    """Reduce-scatter within groups, a ring between groups, all-gather within groups."""
    size = group_size(p, per_group)
    near = [(i, i - i % size + (i + 1) % size) for i in range(p)]
    far = [(i, (i + size) % p) for i in range(p)]
    chunk = chunk_bytes(nbytes, size, itemsize)
    yield MessageRound(size - 1, near, chunk, chunk)
    yield from (between._replace(pairs=far) for between in ring(p // size, chunk, itemsize))
    yield MessageRound(size - 1, near, chunk)


ALL_REDUCE: dict[str, Callable[..., Iterator[MessageRound]]] = {  # those of `formulas.py` that can be fastest
    "recursive_doubling": recursive_doubling,
    "rabenseifner": rabenseifner,
    "ring": ring,
    "tree": tree,
    "hierarchical": hierarchical,
    "pipelined_chain": pipelined_chain,
}


@lru_cache(maxsize=1024)
def best_all_reduce(
    network: Network, ranks: tuple[int, ...], nbytes: int, itemsize: int = 4
) -> tuple[str, dict[str, int]]:
    """Return the fastest algorithm for these ranks of the tree, and its options.

    It compares all algorithms with their default options, and the hierarchical one also with one group per rack.

    >>> thin = Network.tree(2, 4, nic=(1e-6, 1e9), uplink=(1e-6, 2e8))
    >>> best_all_reduce(thin, tuple(range(8)), 10**7)
    ('hierarchical', {'per_group': 4})
    """
    tree, p = _tree_of(network), len(ranks)
    choices: list[tuple[str, dict[str, int]]] = [(name, {}) for name in ALL_REDUCE]
    together = sum(rank // tree.per_rack == ranks[0] // tree.per_rack for rank in ranks)
    if p % together == 0:
        choices.append(("hierarchical", {"per_group": together}))
    return min(choices, key=lambda choice: all_reduce(choice[0], network, ranks, nbytes, itemsize, **choice[1]))


def all_reduce(
    algorithm: str, network: Network, ranks: tuple[int, ...], nbytes: int, itemsize: int = 4, **options: int
) -> float:
    """Return the seconds that an all-reduce of nbytes among these ranks of the tree takes."""
    tree = _tree_of(network)
    clock = [0.0] * len(ranks)
    for times, pairs, size, reduced in ALL_REDUCE[algorithm](len(ranks), nbytes, itemsize, **options):
        if times and pairs:
            lasting = [seconds + reduced * network.gamma for seconds in _seconds(tree, ranks, pairs, size)]
            ends = [max(clock[src], clock[dst]) + t for (src, dst), t in zip(pairs, lasting, strict=True)]
            for (src, dst), end in zip(pairs, ends, strict=True):
                clock[src], clock[dst] = max(clock[src], end), max(clock[dst], end)
            if times > 1:  # every later round takes as long as its slowest message
                clock = [max(clock) + (times - 1) * max(lasting)] * len(ranks)
    return max(clock)


def _seconds(tree: Tree, ranks: tuple[int, ...], pairs: list[Pair], nbytes: int) -> list[float]:
    """Seconds that each message of a round takes."""
    paths = [tree.path(ranks[src], ranks[dst]) for src, dst in pairs]
    load = Counter(link for _, links in paths for link in links)
    slowness = {link: messages / tree.capacities[link] for link, messages in load.items()}  # seconds per byte
    return [latency + nbytes * max(slowness[link] for link in links) for latency, links in paths]


def _tree_of(network: Network) -> Tree:
    if network.topology is None:
        raise ValueError(f"{network!r} has no links that messages share: ask cost.best_all_reduce")
    return network.topology


def _first(p: int) -> int:
    """The largest power of two up to p: the number of ranks in the rounds; the remaining ranks fold into these."""
    return 1 << p.bit_length() - 1


def _powers(below: int) -> list[int]:
    """The powers of two below `below`: 1, 2, 4, ..."""
    return [1 << k for k in range((below - 1).bit_length())]


def _partners(p: int, distance: int) -> list[Pair]:
    """The pairs of ranks that exchange messages at that distance."""
    return [(i, i ^ distance) for i in range(_first(p))]


def _folded(p: int, nbytes: int, among_first: list[MessageRound]) -> Iterator[MessageRound]:
    """The remaining ranks send their vectors before these rounds, and receive the result after them."""
    remaining = [(i, i - _first(p)) for i in range(_first(p), p)]
    yield MessageRound(1, remaining, nbytes, nbytes)
    yield from among_first
    yield MessageRound(1, _back(remaining), nbytes)


def _back(pairs: list[Pair]) -> list[Pair]:
    """The same pairs in the opposite direction."""
    return [(dst, src) for src, dst in pairs]
