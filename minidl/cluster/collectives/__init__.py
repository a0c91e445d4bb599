"""The collectives as plain functions of point-to-point messages, a dozen lines each.

`algorithms.py` has all of them, `partition.py` says how an array is divided among ranks, `point_to_point.py` what of a
communicator they use.
"""

from minidl.cluster.collectives.algorithms import (
    ALL_REDUCE,
    all_gather_ring,
    all_gather_ring_into,
    all_reduce_hierarchical,
    all_reduce_ordered,
    all_reduce_parameter_server,
    all_reduce_pipelined_chain,
    all_reduce_rabenseifner,
    all_reduce_recursive_doubling,
    all_reduce_ring,
    all_reduce_tree,
    all_to_all_pairwise,
    barrier_dissemination,
    broadcast_tree,
    gather,
    reduce_scatter_ring,
    reduce_tree,
    scatter,
)

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
