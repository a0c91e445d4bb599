"""`python -m benchmarks compressors`: encoding and decoding a gradient of 4 million numbers, in passes over memory.

A pass reads and writes each number of the gradient once. A row's ratio is the time of a call, divided by that of a
pass. Random numbers, one for each number of the gradient, are drawn before encoding and have a row of their own.
Started with an address, this file runs in the process that is measured, on one core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.peer import Side, serve
from minidl.random import Purpose, stream

SHAPE = (2000, 2000)
METHODS = ("fp16", "QSGD, 4 bits", "TernGrad", "OneBit + EF", "sign + EF", "top-k 1 % + EF", "PowerSGD r = 2 + EF")
SETTINGS = ("encode", "decode")
DRAWS = ("a random number each", "draw")
CASES = len(METHODS) * len(SETTINGS) + 1
REPEATS = 5  # of a call, after one that is not timed


def compare(rounds: int, progress: Progress) -> Iterator[Comparison]:
    """The `Comparison` of every method's `encode` and `decode` with a pass."""
    with ExitStack() as stack:
        side = Side("minidl", "benchmarks.peers.compressors", [], ranks=1, stack=stack)
        for case, setting in [*((each, setting) for each in METHODS for setting in SETTINGS), DRAWS]:
            times: tuple[list[float], list[float]] = [], []
            for turn in range(rounds):
                progress(case, f"{setting}, round {turn + 1} of {rounds}")
                for request, seconds in zip(((case, setting), ("", "pass")), times, strict=True):
                    seconds += side.ask(*request)
            yield Comparison("compressors", case, setting, times[0], "a pass", times[1])


class CompressorSide:
    """Answers (case, setting) with the seconds of a call, and ("", "pass") with those of a pass."""

    def __init__(self) -> None:
        from minidl import compress

        generator = stream(Purpose.BENCHMARK, 2)
        self.gradient = generator.standard_normal(SHAPE, dtype=np.float32)
        drawn = generator.random(self.gradient.size)
        before = {"choices": SimpleNamespace(random=lambda count: drawn[:count])}
        qsgd, terngrad = (type(kind.__name__, (kind,), before) for kind in (compress.QSGD, compress.TernGrad))
        feedback = compress.ErrorFeedback
        made = (
            *(compress.Half(), qsgd(7), terngrad(), feedback(compress.OneBit()), feedback(compress.Sign())),
            *(feedback(compress.TopK(0.01)), feedback(compress.PowerSGD(2))),
        )
        self.methods: dict[str, Any] = dict(zip(METHODS, made, strict=True))
        self.calls: dict[tuple[str, str], Callable[[], object]] = {
            ("", "pass"): partial(np.multiply, self.gradient, 2, out=np.empty_like(self.gradient)),
            DRAWS: partial(generator.random, self.gradient.size),
        }

    def __call__(self, case: str, setting: str) -> float:
        """Mean processor time of one call."""
        if (case, setting) not in self.calls:
            method = self.methods[case]
            given = self.gradient if setting == "encode" else method.encode(self.gradient)
            self.calls[case, setting] = partial(getattr(method, setting), given)
        call = self.calls[case, setting]
        call()
        began = time.process_time()
        for _ in range(REPEATS):
            call()
        return (time.process_time() - began) / REPEATS


if __name__ == "__main__":
    serve(sys.argv[1], CompressorSide())
