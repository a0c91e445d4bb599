"""What answers of chapter 13 may not use of the library: its strategies, optimizers, checkpoints and formulas."""

from __future__ import annotations

from course.judging import Builds

BUILDS = {
    "memory_and_traffic": Builds("minidl.parallel", "minidl.cluster.cost", instead="formulas"),
    "shard_optimizer": Builds(
        "minidl.parallel",
        "minidl.optim",
        "minidl.cluster.launch",
        instead="update, comm.reduce_scatter, comm.all_gather",
    ),
    "checkpoints": Builds("minidl.nn", instead="a table that you fill"),
    "recomputed_gradients": Builds("minidl.nn", "minidl.recomputation", instead="forward and backward"),
    "fetch_schedule": Builds("minidl.parallel", instead="a list of actions that you make"),
}
