"""The two-loop recursion against PyTorch's LBFGS."""

import numpy as np
import pytest

from minidl.parallel.batch import Pair, direction
from minidl.parallel.servers.vectors import Vectors

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def test_the_direction_is_pytorchs():
    torch.manual_seed(5)
    w = torch.randn(13, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=0.7, max_iter=9, history_size=4, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (w**4).sum() + (w[1:] * w[:-1]).sum() ** 2 + w.exp().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    state = optimizer.state[w]
    pairs = list(zip(state["old_stps"], state["old_dirs"], strict=True))
    assert len(pairs) == 4
    arrays = {"g": state["prev_flat_grad"].numpy()}
    for i, (s, y) in enumerate(pairs):
        arrays |= {f"s{i}": s.numpy(), f"y{i}": y.numpy()}
    vectors = Vectors(arrays)
    direction(vectors, [Pair(f"s{i}", f"y{i}", float(s @ y)) for i, (s, y) in enumerate(pairs)])
    np.testing.assert_allclose(vectors.arrays["d"], state["d"].numpy(), rtol=1e-10)
