"""Training steps of all sides in turns, a block each, so that other load on the machine affects all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.peer import MeasurementError, Side, started
from benchmarks.peers.step.side import MATRIX
from minidl.cli.quantities import counted

PEERS = {"PyTorch eager": "torch", "torch.compile": "torch", "jax.jit": "jax"}  # and the package that each needs
BLOCK_SECONDS = 0.5  # of one side, at least one step; with 0.1, two threads gained or lost 40 % by what ran before
REST_SECONDS = 0.03  # after a block of several threads: those of OpenBLAS and OpenMP spin for a while before they sleep
TOLERANCE = 1e-3  # between first losses: sides that learn otherwise do other work

Operations = list[tuple[str, int, float, float]]


class StepRun:
    """The sides for one number of threads.

    Parameters
        threads     of BLAS, OpenMP, XLA and numba, and the number of cores
        peers       names of `PEERS`; those that cannot be measured are left out
        rounds      blocks of each side
        progress    called after each block
        skipped     gets the reasons
        stack       ends the sides when it closes
        ours        the side that is compared with the others
    """

    def __init__(
        self,
        threads: int,
        peers: Sequence[str],
        rounds: int,
        progress: Progress,
        skipped: list[str],
        stack: ExitStack,
        ours: str = "minidl",
    ) -> None:
        self.threads, self.rounds, self.progress, self.skipped = threads, rounds, progress, skipped
        self.setting = counted(threads, "thread")

        def start(name: str) -> Side:
            module, arguments = "benchmarks.peers.step.side", [name, str(threads)]
            return Side(name, module, arguments, ranks=1, stack=stack, threads=threads)

        self.sides = started([ours, *peers], start, self.skipped)

    def compare(self, workload: str) -> Iterator[Comparison]:
        """minidl's step on this workload against that of every peer that can do it."""
        minidl, *others = self.sides
        self.progress(workload, f"{self.setting}: minidl prepares")
        losses = minidl.ask("prepare", workload)[0]
        able = []
        for side in others:
            self.progress(workload, f"{self.setting}: {side.name} prepares")
            try:
                theirs = side.ask("prepare", workload)[0]
                off = max(abs(a - b) for a, b in zip(losses, theirs, strict=True))
                if not off < TOLERANCE:
                    raise MeasurementError(
                        f"{side.name}: its first losses differ from minidl's by {off:.2g}: other work"
                    )
            except MeasurementError as error:
                self.skipped.append(f"{workload}, {self.setting}: {error}")
                continue
            able.append(side)
        flops = minidl.ask("flops")[0]
        sides = [minidl, *able]
        steps = [max(1, round(BLOCK_SECONDS / self._block(side, 2))) for side in sides]
        times: list[list[float]] = [[] for _ in sides]
        limits = []
        for turn in range(self.rounds):
            for side, count, seconds in zip(sides, steps, times, strict=True):
                seconds.append(self._block(side, count))
                self.progress(workload, f"{self.setting}: {side.name}, round {turn + 1} of {self.rounds}")
            limits.append(flops * self._rest(minidl.ask("matrix")[0]) / (2 * MATRIX**3))
        share = statistics.median(limit / ours for limit, ours in zip(limits, times[0], strict=True))
        if not able:
            yield Comparison("step", workload, self.setting, times[0], limit=share)
        for side, theirs in zip(able, times[1:], strict=True):
            yield Comparison("step", workload, self.setting, times[0], side.name, theirs, share)

    def profile(self) -> Operations:
        """Where minidl's step goes, on the workload that was compared last."""
        return self.sides[0].ask("profile")[0]

    def _block(self, side: Side, steps: int) -> float:
        return self._rest(float(side.ask("block", steps)[0]))

    def _rest(self, seconds: float) -> float:
        if self.threads > 1:
            time.sleep(REST_SECONDS)
        return seconds
