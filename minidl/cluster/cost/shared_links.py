"""The time of an all-reduce on a topology, where concurrent messages share links.

The messages are the rounds of `cluster/collectives/rounds.py`, where all messages of a round count as large as the
largest. A message starts when both ranks have finished the previous round, and takes

    latency of its path + nbytes * max over the links of its path (messages of the round on the link / bytes per second)

seconds. This is exact if the messages of a round start together, the most loaded link is on all of their paths, and no
message of another round uses their links meanwhile. Otherwise it is an estimate:

    too high  where messages of a round share links but not the whole time, or move at different speeds
    too low   where ranks run ahead, so that messages of different rounds share a link: recursive doubling, Rabenseifner
              and hierarchical with numbers of ranks that do not fit the racks, and the pipelined chain

On 2 racks of 5 with uplinks a tenth as fast as the network cards, recursive doubling takes 1.25 times as long.

Source for the load of links: Leiserson, Fat-trees (IEEE Transactions on Computers C-34(10), 1985), section 3, load
factor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, groupby
from typing import NamedTuple

from minidl.cluster.collectives import rounds
from minidl.cluster.collectives.partition import chain_segments, chunk_bytes
from minidl.cluster.cost.network import Network
from minidl.cluster.cost.topologies import Topology

Pair = tuple[int, int]  # sender, receiver


class MessageRound(NamedTuple):
    """`times` equal rounds: each sender sends `nbytes` to its receiver, which then reduces `reduced` bytes."""

    times: int
    pairs: list[Pair]
    nbytes: int
    reduced: int = 0


# If algorithms are equally fast, "auto" takes the first
ALL_REDUCE = ("recursive_doubling", "rabenseifner", "ring", "tree", "hierarchical", "pipelined_chain")


def message_rounds(algorithm: str, p: int, nbytes: int, itemsize: int, **options: int) -> Iterator[MessageRound]:
    """The rounds of an all-reduce; equal rounds are merged, because a ring of 1,024 ranks has 2,046."""
    elements = -(-nbytes // itemsize)
    if algorithm == "pipelined_chain":
        yield from _pipeline(p, elements, nbytes, itemsize)
        return
    as_data = rounds.all_reduce(algorithm, p, elements, itemsize, **options)
    sizes = as_data.sizes * itemsize
    for _, equal in groupby(as_data.rounds, lambda one: (one.reduces, one.src.tobytes(), one.dst.tobytes())):
        first, *more = equal
        largest = min(nbytes, int(sizes[first.chunk].max()))
        yield MessageRound(1 + len(more), _pairs(first), largest, largest if first.reduces.is_reduction else 0)


def _pipeline(p: int, elements: int, nbytes: int, itemsize: int) -> Iterator[MessageRound]:
    """The first segment passes all pairs one after the other; then the whole chain is busy in each round."""
    segments = chain_segments(p, elements, nbytes)
    segment = chunk_bytes(nbytes, segments, itemsize)
    of_one = rounds.pipelined_chain(p, segments=1)
    for is_reduction, way in groupby(of_one, lambda one: one.reduces.is_reduction):
        pairs, reduced = [_pairs(one) for one in way], segment if is_reduction else 0
        yield from (MessageRound(1, pair, segment, reduced) for pair in pairs)
        yield MessageRound(segments - 1, list(chain.from_iterable(pairs)), segment, reduced)


def _pairs(one: rounds.Round) -> list[Pair]:
    return list(zip(one.src.tolist(), one.dst.tolist(), strict=True))


@lru_cache(maxsize=1024)
def best_all_reduce(
    network: Network, ranks: tuple[int, ...], nbytes: int, itemsize: int = 4
) -> tuple[str, dict[str, int]]:
    """Return the fastest algorithm for these ranks of the topology, and its options.

    It compares all algorithms with their default options, and the hierarchical one also with groups of neighbours, such
    as racks.

    >>> thin = Network.tree(2, 4, nic=(1e-6, 1e9), uplink=(1e-6, 2e8))
    >>> best_all_reduce(thin, tuple(range(8)), 10**7)
    ('hierarchical', {'per_group': 4})
    """
    topology, p = _topology_of(network), len(ranks)
    choices: list[tuple[str, dict[str, int]]] = [(name, {}) for name in ALL_REDUCE]
    together = sum(rank // topology.neighbours == ranks[0] // topology.neighbours for rank in ranks)
    if p % together == 0:
        choices.append(("hierarchical", {"per_group": together}))
    return min(choices, key=lambda choice: all_reduce(choice[0], network, ranks, nbytes, itemsize, **choice[1]))


def all_reduce(
    algorithm: str, network: Network, ranks: tuple[int, ...], nbytes: int, itemsize: int = 4, **options: int
) -> float:
    """Return the seconds that an all-reduce of nbytes among these ranks of the topology takes."""
    topology = _topology_of(network)
    clock = [0.0] * len(ranks)
    for times, pairs, size, reduced in message_rounds(algorithm, len(ranks), nbytes, itemsize, **options):
        if times and pairs:
            lasting = [seconds + reduced * network.gamma for seconds in _seconds(topology, ranks, pairs, size)]
            ends = [max(clock[src], clock[dst]) + t for (src, dst), t in zip(pairs, lasting, strict=True)]
            for (src, dst), end in zip(pairs, ends, strict=True):
                clock[src], clock[dst] = max(clock[src], end), max(clock[dst], end)
            if times > 1:  # every later round takes as long as its slowest message
                clock = [max(clock) + (times - 1) * max(lasting)] * len(ranks)
    return max(clock)


def _seconds(topology: Topology, ranks: tuple[int, ...], pairs: list[Pair], nbytes: int) -> list[float]:
    """Seconds that each message of a round takes."""
    paths = [topology.path(ranks[src], ranks[dst]) for src, dst in pairs]
    load = Counter(link for _, links in paths for link in links)
    slowness = {link: messages / topology.capacities[link] for link, messages in load.items()}  # seconds per byte
    return [latency + nbytes * max(slowness[link] for link in links) for latency, links in paths]


def _topology_of(network: Network) -> Topology:
    if network.topology is None:
        raise ValueError(f"{network!r} has no links that messages share: ask cost.best_all_reduce")
    return network.topology
