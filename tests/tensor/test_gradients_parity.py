"""backward of several tensors gives PyTorch's gradients."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, backward

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")

X, W = np.random.default_rng(0).normal(size=(2, 3, 4))
SEEDS = [np.linspace(-1, 1, 9).reshape(3, 3), None, np.linspace(0, 1, 12).reshape(3, 4)]


def outputs(x, w):
    """A matrix, a scalar made from it, and an output that shares a part of the graph."""
    hidden = (x * w).tanh()
    scores = hidden @ w.T
    return [scores, (scores * scores).sum(), hidden * x]


@pytest.mark.parametrize("names", ["xw", "w"])
def test_backward_of_three_outputs_equals_that_of_pytorch(names):
    ours = {name: Tensor(array, requires_grad=True) for name, array in (("x", X), ("w", W))}
    theirs = {name: torch.tensor(array, requires_grad=True) for name, array in (("x", X), ("w", W))}
    backward(outputs(**ours), SEEDS, inputs=[ours[name] for name in names])
    seeds = [None if seed is None else torch.tensor(seed) for seed in SEEDS]
    torch.autograd.backward(outputs(**theirs), seeds, inputs=[theirs[name] for name in names])
    for name in ("x", "w"):
        if name in names:
            assert np.allclose(ours[name].grad, theirs[name].grad.numpy(), rtol=1e-12, atol=1e-12)
        else:
            assert ours[name].grad is theirs[name].grad is None
