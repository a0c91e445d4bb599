"""Training steps of all sides in turns, a block each, so that other load on the machine affects all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.peer import MeasurementError, Side, started
from benchmarks.peers.step.side import COMPILED, EAGER, MATRIX
from benchmarks.peers.step.workloads import Workload
from minidl.cli.quantities import counted

PEERS = {"PyTorch eager": "torch", "torch.compile": "torch", "jax.jit": "jax"}  # and the package that each needs
BLOCK_SECONDS = 0.5  # of one side, at least one step; with 0.1, two threads gained or lost 40 % by what ran before
REST_SECONDS = 0.03  # after a block of several threads: those of OpenBLAS and OpenMP spin for a while before they sleep
TOLERANCE = 1e-3  # between first losses: sides that learn otherwise do other work

Operations = list[tuple[str, int, float, float]]


def alike(workload: Workload, peers: Sequence[str]) -> dict[str, Sequence[str]]:
    """minidl's sides, each with the peers that it is compared with: compiled steps with compiled ones."""
    if workload.adam:  # `minidl.compiler` has no graph for embeddings and Adam
        return {EAGER: peers}
    return {EAGER: [one for one in peers if "eager" in one], COMPILED: [one for one in peers if "eager" not in one]}


class StepRun:
    """The sides for one number of threads.

    Parameters
        threads     of BLAS, OpenMP, XLA and numba, and the number of cores
        names       of the sides, minidl's first; peers that cannot be measured are left out
        rounds      blocks of each side
        progress    called after each block
        skipped     gets the reasons
        stack       ends the sides when it closes
    """

    def __init__(
        self, threads: int, names: Sequence[str], rounds: int, progress: Progress, skipped: list[str], stack: ExitStack
    ) -> None:
        self.threads, self.rounds, self.progress, self.skipped = threads, rounds, progress, skipped
        self.setting = counted(threads, "thread")

        def start(name: str) -> Side:
            module, arguments = "benchmarks.peers.step.side", [name, str(threads)]
            return Side(name, module, arguments, ranks=1, stack=stack, threads=threads)

        self.sides = {side.name: side for side in started(names, start, self.skipped)}

    def compare(self, case: str, against: Mapping[str, Sequence[str]]) -> Iterator[Comparison]:
        """The step of each of minidl's sides in `against`, compared with those of its peers that can do it."""
        able: list[Side] = []
        losses: list[float] = []
        for name in chain(against, *against.values()):
            if name not in self.sides:
                continue
            side = self.sides[name]
            self.progress(case, f"{self.setting}: {name} prepares")
            try:
                theirs = side.ask("prepare", case)[0]
                losses = losses or theirs
                off = max(abs(a - b) for a, b in zip(losses, theirs, strict=True))
                if not off < TOLERANCE:
                    raise MeasurementError(f"{name}: its first losses differ from minidl's by {off:.2g}: other work")
            except MeasurementError as error:
                if name in against:
                    raise
                self.skipped.append(f"{case}, {self.setting}: {error}")
                continue
            able.append(side)
        minidl = next(iter(self.sides.values()))
        flops = minidl.ask("flops")[0]
        steps = [max(1, round(BLOCK_SECONDS / self._block(side, 2))) for side in able]
        times: dict[str, list[float]] = {side.name: [] for side in able}
        limits = []
        for turn in range(self.rounds):
            for side, count in zip(able, steps, strict=True):
                times[side.name].append(self._block(side, count))
                self.progress(case, f"{self.setting}: {side.name}, round {turn + 1} of {self.rounds}")
            limits.append(flops * self._rest(minidl.ask("matrix")[0]) / (2 * MATRIX**3))
        for ours, peers in against.items():
            share = statistics.median(limit / seconds for limit, seconds in zip(limits, times[ours], strict=True))
            title = f"compiled {case}" if ours == COMPILED else case
            for peer in [name for name in peers if name in times] or [""]:
                yield Comparison("step", title, self.setting, times[ours], peer, times.get(peer, ()), share)

    def profile(self) -> Operations:
        """Where minidl's step goes, on the workload that was compared last."""
        return next(iter(self.sides.values())).ask("profile")[0]

    def _block(self, side: Side, steps: int) -> float:
        return self._rest(float(side.ask("block", steps)[0]))

    def _rest(self, seconds: float) -> float:
        if self.threads > 1:
            time.sleep(REST_SECONDS)
        return seconds
