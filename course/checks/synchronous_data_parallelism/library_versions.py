"""What answers of chapter 05 may not use of the library: its samplers, its strategies, and simulations."""

from __future__ import annotations

from course.judging import Builds

BUILDS = {
    "sharded_sampler": Builds("minidl.data.loader", "minidl.data.sampler", instead="epoch_order and numpy"),
    "data_parallel_step": Builds(
        "minidl.parallel", "minidl.optim", "minidl.cluster.launch", instead="mean_gradient and comm.all_reduce"
    ),
    "bucketed_all_reduce": Builds("minidl.parallel", "minidl.cluster.launch", instead="backward and comm.all_reduce"),
    "efficiency": Builds("minidl.parallel", "minidl.cluster.launch", instead="a formula"),
}
