"""What answers of chapter 11 may not use of the library: its schedules, its pipelines, and whole runs."""

from __future__ import annotations

from course.judging import Builds

BY_LISTS = Builds("minidl.parallel", instead="lists of actions that you make")

BUILDS = {
    "gpipe": BY_LISTS,
    "one_f_one_b": BY_LISTS,
    "run_stage": Builds("minidl.parallel", "minidl.cluster.launch", instead="comm.isend and comm.recv"),
    "cut": Builds("minidl.parallel", instead="a table that you fill"),
    "deadlock": Builds("minidl.parallel", instead="lists and sets"),
    "weights_to_stash": BY_LISTS,
    "bubble": Builds("minidl.parallel", instead="formulas"),
}
