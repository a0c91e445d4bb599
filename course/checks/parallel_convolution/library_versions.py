"""What answers of chapter 12 may not use of the library: its divided layers and its halos, formulas, whole runs."""

from __future__ import annotations

from course.judging import Builds

BUILDS = {
    "bytes_of_a_cut": Builds("minidl.parallel", "minidl.cluster", instead="span and output_size"),
    "halo_exchange": Builds("minidl.parallel", "minidl.cluster.launch", instead="messages between neighbours"),
    "weight_gradient": Builds("minidl.parallel", "minidl.cluster.launch", instead="the given gradients, and messages"),
    "stationary_x": Builds("minidl.parallel", "minidl.cluster.launch", instead="convolve and comm.reduce_scatter"),
}
