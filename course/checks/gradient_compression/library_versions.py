"""What answers of chapter 09 may not use of the library: its compressors, and whole training runs."""

from __future__ import annotations

from course.judging import Builds

ALONE = Builds("minidl.compress", "minidl.parallel", instead="numpy")

BUILDS = {
    "sparsify": ALONE,
    "top_k_step": Builds(
        "minidl.compress", "minidl.parallel", "minidl.cluster.launch", instead="numpy and comm.all_gather"
    ),
    "corrected_entries": ALONE,
    "qsgd": ALONE,
    "sparse_sum": Builds(
        "minidl.compress",
        "minidl.parallel",
        "minidl.cluster.collectives",
        "minidl.cluster.launch",
        instead="comm.sendrecv",
    ),
}
