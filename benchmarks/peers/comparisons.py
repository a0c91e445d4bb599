"""What a benchmark returns: minidl's times, or bytes, and another's (in scaling, minidl's on one node)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Progress = Callable[[str, str], None]
"""Called after each block with what is measured, and on what."""


@dataclass(frozen=True)
class Comparison:
    """One case of one benchmark, against one other library.

    Parameters
        benchmark  "step", "compiler", "memory", "scaling", "collectives", "simulation" or "launch"
        case       the workload, or the number of bytes
        setting    threads, nodes or ranks
        ours       seconds of minidl, one number a round; its bytes for "memory"
        peer       the other library; "" if none was measured
        theirs     its seconds in the same rounds, or its bytes
        limit      share of the machine's limit that minidl reaches, 0 to 1; None where no limit is known
    """

    benchmark: str
    case: str
    setting: str
    ours: Sequence[float]
    peer: str = ""
    theirs: Sequence[float] = ()
    limit: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What was measured, whatever it was compared with."""
        return self.benchmark, self.case, self.setting

    @property
    def unit(self) -> str:
        """The unit of the numbers: s or B."""
        return "B" if self.benchmark == "memory" else "s"

    @property
    def ratio(self) -> float:
        """minidl's / the other's, the median of the rounds; below 1 minidl is faster, or takes less memory."""
        return statistics.median(self._ratios())

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile of the ratios."""
        ratios = self._ratios()
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        return low, high

    def _ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]


def best(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """For each case and setting, the comparison with the fastest of the others."""
    hardest: dict[tuple[str, str, str], Comparison] = {}
    for one in comparisons:
        if one.peer and (one.key not in hardest or one.ratio > hardest[one.key].ratio):
            hardest[one.key] = one
    return list(hardest.values())
