"""The process of one side of the training step: `python -m benchmarks.peers.step.side NAME THREADS ADDRESS`.

Answers: ("prepare", workload) the first losses; ("block", steps) seconds a step; ("matrix",) seconds of a product of
two matrices of `MATRIX` x `MATRIX`; ("peak",) the bytes of a step; and ("flops",), ("profile",) of minidl's step. The
process runs on as many cores as it may have threads, because XLA makes a thread for each core.

With one thread seconds are the processor time of the process, so that waiting for a busy core is not counted; with
more, or with a GPU, they are those of the clock: every step waits for its loss.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

EAGER, COMPILED = "minidl", "minidl, compiled"  # names of minidl's sides
GPU, GPU_PEER = "minidl, CuPy", "PyTorch, CUDA"  # the sides that compute on a GPU
MATRIX = 1024
FIRST_STEPS = 5
PROFILED_STEPS = 20


class StepSide:
    """One library, with the workload that was prepared last."""

    def __init__(self, name: str, threads: int) -> None:
        self.name, self.threads = name, threads
        self.now = time.process_time if threads == 1 and name not in (GPU, GPU_PEER) else time.perf_counter
        self.training: Any = None

    def __call__(self, request: str, *arguments: Any) -> Any:
        return getattr(self, request)(*arguments)

    def prepare(self, workload: str) -> list[float]:
        """Start the workload, and return the losses of its first steps, in which the library compiles."""
        from benchmarks.peers.step import compiled
        from benchmarks.peers.step.workloads import WORKLOADS, Training
        from minidl import kernels

        if workload == compiled.CHAIN:
            self.training = compiled.Chain(self.name)
        elif self.name in (EAGER, GPU):
            if self.name == GPU:
                kernels.use("cupy")
            self.training = Training(WORKLOADS[workload])
        elif self.name == COMPILED:
            self.training = compiled.Training(WORKLOADS[workload])
        elif self.name == "jax.jit":
            from benchmarks.peers.step import jax_training

            self.training = jax_training.Training(workload, WORKLOADS[workload])
        else:
            import torch

            from benchmarks.peers.step import torch_training

            torch.set_num_threads(self.threads)
            torch.backends.cudnn.allow_tf32 = False  # CuPy computes in float32
            is_compiled, device = self.name == "torch.compile", "cuda" if self.name == GPU_PEER else "cpu"
            self.training = torch_training.Training(workload, WORKLOADS[workload], is_compiled, device)
        return [self.training.step() for _ in range(FIRST_STEPS)]

    def block(self, steps: int) -> float:
        """Mean seconds of a step, after one that is not timed: other libraries ran since, and training is steady."""
        self.training.step()
        began = self.now()
        for _ in range(steps):
            self.training.step()
        return (self.now() - began) / steps

    def matrix(self) -> float:
        """Seconds of a product of two square matrices, the fastest arithmetic that numpy has."""
        import numpy as np

        a = np.ones((MATRIX, MATRIX), np.float32)
        began = self.now()
        a @ a
        return self.now() - began

    def peak(self) -> int:
        """The most bytes that a step of minidl or of PyTorch holds at once."""
        from benchmarks.peers.memory import peak_of_arrays, peak_of_tensors

        return (peak_of_arrays if self.name == "minidl" else peak_of_tensors)(self.training.step)

    def flops(self) -> int:
        """Floating-point operations of one step, as the kernels count them."""
        from minidl import kernels

        with kernels.counted() as work:
            self.training.step()
        return work.flops

    def profile(self) -> list[tuple[str, int, float, float]]:
        """Operation, calls, seconds forward and backward of a step; the slowest first."""
        from benchmarks.peers.step.profile import time_by_operation

        times = time_by_operation(self.training, PROFILED_STEPS)
        return [(name, times.calls.get(name, 0), times.forward[name], times.backward[name]) for name in times.names()]


def main() -> None:
    from benchmarks.peers.peer import serve

    name, threads, address = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    serve(address, StepSide(name, threads))


if __name__ == "__main__":
    main()
