"""What answers of chapter 04 may not use of the library: its collectives, and the formulas of their costs."""

from __future__ import annotations

from course.judging import Builds

COLLECTIVES = Builds(
    "minidl.cluster.collectives", "minidl.cluster.launch", instead="comm.send, comm.recv and comm.sendrecv"
)
COSTS = Builds(
    "minidl.cluster.cost.formulas",
    "minidl.cluster.cost.shared_links",
    "minidl.cluster.launch",
    instead="the formula that you derive",
)

BUILDS = {
    "broadcast_tree": COLLECTIVES,
    "ring_reduce_scatter": COLLECTIVES,
    "ring_all_gather": COLLECTIVES,
    "ring_all_reduce": COLLECTIVES,
    "recursive_doubling": COLLECTIVES,
    "ring_seconds": COSTS,
    "recursive_doubling_seconds": COSTS,
    "crossover": COSTS,
}
