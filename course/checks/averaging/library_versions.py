"""What answers of chapter 07 may not use of the library: its averaging strategies, its mixing matrices, whole runs."""

from __future__ import annotations

from course.judging import Builds

BY_ALL_REDUCE = Builds("minidl.parallel", "minidl.cluster.launch", instead="numpy and comm.all_reduce")
BY_MESSAGES = Builds("minidl.parallel", "minidl.cluster.launch", instead="comm.send and comm.recv")
BY_NUMPY = Builds("minidl.parallel", "minidl.cluster", instead="numpy")

BUILDS = {
    "elastic": BY_ALL_REDUCE,
    "elastic_limit": BY_NUMPY,
    "local_sgd": BY_ALL_REDUCE,
    "rounds_and_words": BY_NUMPY,
    "mixing_matrix": BY_NUMPY,
    "consensus_factor": BY_NUMPY,
    "gossip": BY_MESSAGES,
    "majority": BY_MESSAGES,
}
