"""Batch methods: gradients of the whole training set, computed in tiny tasks by as many workers as there are.

sandblaster   the strategy SandblasterLBFGS: a coordinator, workers, and a store that computes where its shards lie
lbfgs         L-BFGS on named vectors, in one place or in a `Store`
tasks         tasks, each handed out to a worker that is free, the last ones twice
"""

from minidl.parallel.batch.lbfgs import LBFGS, Pair, direction
from minidl.parallel.batch.sandblaster import SandblasterLBFGS
from minidl.parallel.batch.tasks import Coordinator, work
from minidl.parallel.servers.vectors import Vectors

__all__ = ["LBFGS", "Coordinator", "Pair", "SandblasterLBFGS", "Vectors", "direction", "work"]
