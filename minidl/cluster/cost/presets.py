"""The networks that have a name, and the sources of their numbers.

Alpha: the order of half a small message's round trip between two programs. Beta: 8 / (bits per second of the line).
Gamma is 0, because the speed of reductions depends on the node.
"""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """A named network: seconds per message, seconds per byte, and the source of both."""

    alpha: float
    beta: float
    source: str


PRESETS = {
    "1gbe": Preset(
        50e-6, 8 / 1e9, "TCP between PCs through a switch: 23 us is a good result of NetPIPE, 50 us a common one"
    ),
    "10gbe": Preset(
        20e-6,
        8 / 10e9,
        "TCP, end to end: Hurwitz and Feng, Initial end-to-end performance evaluation of 10-Gigabit Ethernet (2003)",
    ),
    "100gbe": Preset(
        10e-6, 8 / 100e9, "TCP on a fast server in one data centre: a round figure of that order, not a measurement"
    ),
    "infiniband": Preset(
        1e-6,
        8 / 200e9,
        "HDR, 200 Gbit/s; between MPI programs on CPUs about 1 us, as for years: a manual of QLogic InfiniPath shows "
        "1.06 us by osu_latency",
    ),
    "nvlink": Preset(
        1.9e-6,
        1 / 450e9,
        "NVLink 4 of an H100, 450 GB/s each way; 1.9 us is a step of NCCL's ring between kernels on GPUs (src/graph/"
        "tuning.cc, LL128), which costs more than InfiniBand's message between CPUs, though the line is faster",
    ),
}
