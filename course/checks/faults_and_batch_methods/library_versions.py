"""What answers of chapter 15 may not use of the library: its strategies, L-BFGS, schedulers, intervals, checkpoints."""

from __future__ import annotations

from course.judging import Builds

BUILDS = {
    "lbfgs_direction": Builds("minidl.parallel", "minidl.optim", instead="the commands of the shards"),
    "run_portions": Builds("minidl.parallel", "minidl.cluster", instead="give and wait"),
    "best_interval": Builds("minidl.parallel", "minidl.cluster", instead="formulas"),
    "train_with_checkpoints": Builds("minidl.parallel", instead="step and storage"),
}
