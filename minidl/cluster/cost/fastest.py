"""The all-reduce that `algorithm="auto"` chooses: the fastest on the network at hand."""

from __future__ import annotations

from minidl.cluster.cost import formulas, shared_links
from minidl.cluster.cost.network import Network


def fastest_all_reduce(
    network: Network | None, ranks: tuple[int, ...], nbytes: int, itemsize: int
) -> tuple[str, dict[str, int]]:
    """Return the algorithm and its options: by rounds of messages on a tree of racks, else by the formulas."""
    if network is not None and network.topology is not None:
        return shared_links.best_all_reduce(network, ranks, nbytes, itemsize)
    return formulas.best_all_reduce(len(ranks), nbytes, network, itemsize), {}
