"""What a benchmark returns: minidl's times, or bytes, and another's (in scaling, minidl's on one node)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

BENCHMARKS = {
    "step": "a training step, with the fastest of PyTorch, torch.compile and JAX",
    "compiler": "a compiled function, with the fastest other compiler",
    "memory": "the memory of a step, with PyTorch",
    "scaling": "training on 2 nodes, seconds per sample, with 1 node",
    "collectives": "an all-reduce on processes, with the fastest of gloo and MPICH",
    "compressors": "a compressor's encoding or decoding, with a pass over memory",
    "simulation": "a simulated message, with SimGrid",
    "launch": "a launch, with torch.multiprocessing",
    "start": "the first start",
    "gpu": "a training step on a GPU, with PyTorch",
}
"""The benchmarks in the order of the tables: what is measured, and with what it is compared."""

Progress = Callable[[str, str], None]
"""Called after each block with what is measured, and on what."""


@dataclass(frozen=True)
class Comparison:
    """One case of one benchmark, against one other library.

    Parameters
        benchmark  a key of `BENCHMARKS`
        case       the workload, the number of bytes, or the compressor
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
    """For each case and setting, the comparison with the fastest of the others, or minidl alone."""
    hardest: dict[tuple[str, str, str], Comparison] = {}
    for one in comparisons:
        if one.key not in hardest or one.ratio > hardest[one.key].ratio:
            hardest[one.key] = one
    return list(hardest.values())
