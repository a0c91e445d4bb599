"""What answers of chapter 14 may not use of the library: its mixtures of experts, its planner, formulas, whole runs."""

from __future__ import annotations

from course.judging import Builds

BUILDS = {
    "route": Builds("minidl.nn", "minidl.parallel", instead="numpy"),
    "moe_step": Builds(
        "minidl.nn",
        "minidl.parallel",
        "minidl.cluster.launch",
        instead="comm.all_to_all, expert and expert_gradients",
    ),
    "step_time": Builds("minidl.parallel", "minidl.cluster", instead="formulas"),
    "best_plan": Builds("minidl.parallel", "minidl.cluster", instead="seconds"),
}
