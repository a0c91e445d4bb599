"""What answers of chapter 08 may not use of the library: its schedules and optimizers, its noise scale, its runs."""

from __future__ import annotations

from course.judging import Builds

BUILDS = {
    "scheduled_rate": Builds("minidl.optim", instead="the rule in the docstring"),
    "corrected_run": Builds("minidl.optim", "minidl.parallel", instead="numpy"),
    "gradient_noise_scale": Builds("minidl.parallel", instead="numpy"),
    "noise_of_ranks": Builds("minidl.parallel", "minidl.cluster.launch", instead="numpy and comm.all_reduce"),
    "lars_step": Builds("minidl.optim", "minidl.kernels", instead="numpy"),
    "best_batch": Builds("minidl.parallel", "minidl.cluster.launch", instead="a formula"),
    "best_measured_batch": Builds("minidl.parallel", "minidl.cluster.launch", instead="seconds_per_step"),
}
