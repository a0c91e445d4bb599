"""The collectives as plain functions of point-to-point messages, a dozen lines each.

`broadcast.py`, `reduce.py`, `gather_and_scatter.py`, `all_to_all.py` and `barrier.py` have one algorithm each.
`reduce_scatter.py` and `all_gather.py` have two, a ring and halving or doubling; `all_reduce.py` builds its eight from
all of these. `point_to_point.py` has the methods that they call, `partition.py` divides arrays and ranks among them.

`rounds.py` has the same algorithms as data, round by round, for code that needs all ranks at once: the simulation of
many, the load of links, pictures. A test proves that its messages are those of the functions, with the same bits.

Every rank calls the function with the same arguments, except where its docstring says otherwise. Symbols in docstrings:

    p, n    number of ranks, number of bytes
    alpha   seconds per message
    beta    seconds per byte sent
    gamma   seconds per byte reduced
    lg      logarithm to base 2
    TRG     Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH (2005),
            section 4

Times hold for equal chunks, and those with lg p for powers of two; `cluster.cost` has them exactly, for any p and n.
"""

from minidl.cluster.collectives.all_gather import all_gather_ring, all_gather_ring_into
from minidl.cluster.collectives.all_reduce import (
    ALL_REDUCE,
    all_reduce_hierarchical,
    all_reduce_ordered,
    all_reduce_parameter_server,
    all_reduce_pipelined_chain,
    all_reduce_rabenseifner,
    all_reduce_recursive_doubling,
    all_reduce_ring,
    all_reduce_tree,
)
from minidl.cluster.collectives.all_to_all import all_to_all_pairwise
from minidl.cluster.collectives.barrier import barrier_dissemination
from minidl.cluster.collectives.broadcast import broadcast_tree
from minidl.cluster.collectives.gather_and_scatter import gather, scatter
from minidl.cluster.collectives.reduce import reduce_tree
from minidl.cluster.collectives.reduce_scatter import reduce_scatter_ring

__all__ = [
    "ALL_REDUCE",
    "all_gather_ring",
    "all_gather_ring_into",
    "all_reduce_hierarchical",
    "all_reduce_ordered",
    "all_reduce_parameter_server",
    "all_reduce_pipelined_chain",
    "all_reduce_rabenseifner",
    "all_reduce_recursive_doubling",
    "all_reduce_ring",
    "all_reduce_tree",
    "all_to_all_pairwise",
    "barrier_dissemination",
    "broadcast_tree",
    "gather",
    "reduce_scatter_ring",
    "reduce_tree",
    "scatter",
]
