"""PyTorch's and JAX's steps of `python -m benchmarks step` are minidl's: the same losses from the same weights."""

from __future__ import annotations

import pytest

from benchmarks.peers.step.run import TOLERANCE
from benchmarks.peers.step.side import FIRST_STEPS
from benchmarks.peers.step.workloads import WORKLOADS, Training

pytestmark = pytest.mark.timeout(900)  # XLA compiles for minutes on a loaded machine


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_the_first_losses_of_the_other_library_are_those_of_minidl(name, library):
    pytest.importorskip(library, reason=f"{library} is in the extra `bench`")
    if library == "torch":
        from benchmarks.peers.step import torch_training

        other = torch_training.Training(name, WORKLOADS[name], is_compiled=False)
    else:
        from benchmarks.peers.step import jax_training

        other = jax_training.Training(name, WORKLOADS[name])
    ours = Training(WORKLOADS[name])
    losses = [(ours.step(), other.step()) for _ in range(FIRST_STEPS)]
    assert all(abs(a - b) < TOLERANCE for a, b in losses), losses
