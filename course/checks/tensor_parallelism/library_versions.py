"""What answers of chapter 10 may not use of the library: its divided layers and products, its meshes, whole runs."""

from __future__ import annotations

from course.judging import Builds

BY_ALL_REDUCE = Builds("minidl.parallel", "minidl.cluster.launch", instead="numpy and comm.all_reduce")

BUILDS = {
    **dict.fromkeys(("column_linear", "row_linear", "mlp", "attention", "embedding", "cross_entropy"), BY_ALL_REDUCE),
    "summa": Builds("minidl.parallel", "minidl.cluster.launch", instead="row.broadcast and column.broadcast"),
    "mesh_groups": Builds("minidl.parallel", "minidl.cluster", instead="arithmetic with ranks"),
    "best_grid": Builds("minidl.parallel", "minidl.cluster", instead="the formula that you derive"),
}
