"""The result of a launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.trace.trace import Trace


@dataclass(frozen=True)
class Run:
    """The result of a program on several nodes.

    results    what the program returned, one item per rank
    seconds    from the moment the program began on all ranks until the last of them returned
    trace      what every rank computed, sent and received, when it waited, and for which rank
    failures   with `on_failure="continue"`: the error of each rank that failed; its result is None
    """

    results: list[Any]
    seconds: float
    trace: Trace = field(repr=False)
    failures: dict[int, ClusterError] = field(default_factory=dict)
