"""What communication costs, without running it: formulas on a plain network, rounds of messages on a topology.

`network.py` has the parameters of a network, those with a name, and those with shared links; `network_file.py` reads
and writes them. `memory.py` has the two tiers of a node's memory. `formulas.py` has a closed form for every
collective, which `cluster.cost` offers by name (`cluster.cost.all_reduce`), and chooses for `algorithm="auto"`.
`shared_links.py` computes the time of an all-reduce on a topology round by round; the folder `topologies/` has racks,
torus, fat tree and dragonfly.
"""

from minidl.cluster.cost.formulas import (
    ALL_REDUCE,
    LOCAL,
    all_gather,
    all_reduce,
    all_reduce_on,
    all_to_all,
    barrier,
    best_all_reduce,
    best_segments,
    broadcast,
    crossover,
    gather,
    hierarchical,
    lower_bound,
    parameter_server,
    pipelined_chain,
    rabenseifner,
    recursive_doubling,
    reduce,
    reduce_scatter,
    ring,
    scatter,
    traffic,
    tree,
)

__all__ = [
    "ALL_REDUCE",
    "LOCAL",
    "all_gather",
    "all_reduce",
    "all_reduce_on",
    "all_to_all",
    "barrier",
    "best_all_reduce",
    "best_segments",
    "broadcast",
    "crossover",
    "gather",
    "hierarchical",
    "lower_bound",
    "parameter_server",
    "pipelined_chain",
    "rabenseifner",
    "recursive_doubling",
    "reduce",
    "reduce_scatter",
    "ring",
    "scatter",
    "traffic",
    "tree",
]
