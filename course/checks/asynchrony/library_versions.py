"""What answers of chapter 06 may not use of the library: its servers, and whole training runs."""

from __future__ import annotations

from course.judging import Builds

BY_MESSAGES = Builds(
    "minidl.parallel", "minidl.cluster.collectives", "minidl.cluster.launch", instead="comm.send and comm.recv"
)

BUILDS = {
    "serve": BY_MESSAGES,
    "push_pull": BY_MESSAGES,
    "downpour_worker": BY_MESSAGES,
    "ssp_gate": BY_MESSAGES,
    "choose": Builds("minidl.parallel", instead="the formulas that you derive"),
}
