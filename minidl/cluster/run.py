"""What a launch brings back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.trace.trace import Trace


@dataclass(frozen=True)
class Run:
    """The outcome of a program on several nodes.

    `results`: what the program returned, one item a rank. `seconds`: from the moment the program began on all ranks to
    the moment the last of them returned. `trace`: who computed, sent, received and waited, and when. `failures`: with
    `on_failure="continue"`, what happened to each rank that failed; its result is None.
    """

    results: list[Any]
    seconds: float
    trace: Trace = field(repr=False)
    failures: dict[int, ClusterError] = field(default_factory=dict)
