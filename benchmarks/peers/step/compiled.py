"""What `minidl.compiler` compiles: whole training steps, for `python -m benchmarks step`, and a chain of operations.

`python -m benchmarks compiler` measures the chain, ten elementwise operations on a million numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.step import workloads
from benchmarks.peers.step.run import StepRun
from benchmarks.peers.step.side import COMPILED, EAGER
from minidl import Tensor, compiler, kernels
from minidl import functional as F
from minidl.random import Purpose, stream

CHAIN = "ten operations"
NUMBERS = 10**6


def compare(peers: Sequence[str], rounds: int, progress: Progress, skipped: list[str]) -> Iterator[Comparison]:
    """The chain on one core."""
    with ExitStack() as stack:
        sides = StepRun(1, [EAGER, COMPILED, *peers], rounds, progress, skipped, stack)
        for one in sides.compare(CHAIN, {COMPILED: [EAGER, *peers]}):
            yield replace(one, benchmark="compiler", case=CHAIN, limit=None)


def chain(x: Any, f: Any) -> Any:
    """Ten operations, of which f has relu, sqrt and exp."""
    y = f.relu(x * 1.7 + 0.3)
    y = f.sqrt(y * y + 1.0)
    return f.exp(-y) / (y - 0.5)


class Chain:
    """The chain in one library; `step()` computes it, and returns one of its numbers."""

    def __init__(self, name: str) -> None:
        x = stream(Purpose.BENCHMARK, 1).standard_normal(NUMBERS, dtype=np.float32)
        self.run, self.x = _chain_in(name, x)

    def step(self) -> float:
        return float(self.run(self.x)[-1])


def _chain_in(name: str, x: np.ndarray) -> tuple[Callable[[Any], Any], Any]:
    if name == COMPILED:
        return compiler.compile(lambda x: chain(x, F)), x
    if name == EAGER:
        return lambda x: chain(x, F), Tensor(x)
    if name == "jax.jit":
        import jax

        jax.numpy.relu = jax.nn.relu
        return jax.jit(lambda x: chain(x, jax.numpy)), jax.numpy.array(x)
    import torch

    torch.set_num_threads(1)
    run = lambda x: chain(x, torch)  # noqa: E731
    return torch.compile(run) if name == "torch.compile" else run, torch.from_numpy(x)


class Training(workloads.Training):
    """The training step as one program; velocities are Tensors, since a graph writes into its arguments alone."""

    def __init__(self, workload: workloads.Workload) -> None:
        super().__init__(workload)
        self.parameters = list(self.model.parameters())
        self.velocities = [Tensor(np.zeros_like(parameter.data)) for parameter in self.parameters]
        self.state = *self.parameters, *self.velocities, *self.model.buffers()
        self.compiled = compiler.compile(self._step)

    def _step(self, x: Tensor, labels: Tensor, *state: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), labels)
        loss.backward()
        for p, v in zip(self.parameters, self.velocities, strict=True):
            kernels.current().sgd(p.data, p.grad, v.data, workloads.LEARNING_RATE, workloads.MOMENTUM, 0.0, 0.0, False)
        return loss

    def step(self) -> float:
        batch = self.batches[self.steps % workloads.BATCHES]
        self.steps += 1
        return float(self.compiled(*batch, *self.state))
