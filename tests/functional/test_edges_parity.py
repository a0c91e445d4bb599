"""Where PyTorch and minidl could part: nan, infinities, ties and empty tensors, in values and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import Tensor
from minidl import functional as F
from tests.together import naming

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")

NAN, INF = np.nan, np.inf
ARRAYS = {
    "nan": np.array([[1.0, NAN, 3.0], [NAN, NAN, 2.0], [2.0, 2.0, 1.0]]),
    "infinities": np.array([[INF, 1.0, INF], [-INF, -INF, -INF], [0.0, INF, -INF]]),
    "ties": np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 1.0, 2.0]]),
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((3, 0)),
    "one number": np.ones((1, 1)),
    "zeros": np.zeros((2, 3)),
}
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "max()": lambda x: x.max(),
    "max(1).values": lambda x: x.max(1).values,
    "max(0).indices": lambda x: x.max(0).indices,
    "amax(1)": lambda x: x.amax(1),
    "argmax(1)": lambda x: x.argmax(1),
    "argmin(0, keepdim)": lambda x: x.argmin(0, keepdim=True),
    "clamp(0, 1)": lambda x: x.clamp(0, 1),
    "var()": lambda x: x.var(),
    "var(correction=10)": lambda x: x.detach().var(correction=10),  # its gradient is inf or nan
    "var(1, correction=3)": lambda x: x.detach().var(1, correction=3),
    "std(correction=10)": lambda x: x.std(correction=10),
    "norm(dim=1)": lambda x: x.norm(dim=1),
    "prod()": lambda x: x.prod(),
    "cumsum(0)": lambda x: x.cumsum(0),
    "logsumexp((0, 1))": lambda x: x.logsumexp((0, 1)),
    "sort()": lambda x: x.sort().values,
    "sort(0, descending)": lambda x: x.sort(0, descending=True)[0],
    "topk(2)": lambda x: x.topk(2).values,
    "topk(0)": lambda x: x.topk(0).values,
    "all(dim=0)": lambda x: x.all(dim=0),
    "chunk(2)": lambda x: x.chunk(2)[0],
    "x == x": lambda x: x == x,
}


def outcome(operation: Callable[[Any], Any], x: Any, tensor: Callable[[Any], Any]) -> list[np.ndarray] | None:
    """The value, and the gradient if there is one; None if the operation is refused."""
    try:
        out = operation(x)
    except (ValueError, IndexError, RuntimeError):
        return None
    found = [out.detach().numpy().astype(float)]
    if out.requires_grad:
        out.backward(tensor(np.random.default_rng(0).standard_normal(tuple(out.shape)).astype(found[0].dtype)))
        found.append(np.asarray(x.grad))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("numbers", ARRAYS)
def test_edges_are_pytorchs(numbers: str) -> None:
    array = ARRAYS[numbers]
    for name, operation in OPERATIONS.items():
        with naming(name):
            mine = outcome(operation, Tensor(array.copy(), requires_grad=True), lambda g: g)
            peer = outcome(operation, torch.tensor(array, requires_grad=True), torch.tensor)
            assert (mine is None) == (peer is None)
            for found, expected in zip(mine or [], peer or [], strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_the_larger_and_the_smaller_of_two_are_pytorchs() -> None:
    for name, first in itertools.product(("maximum", "minimum"), ("nan", "infinities", "ties")):
        results = []
        for module, tensor in ((F, Tensor), (torch, torch.tensor)):
            x, y = tensor(ARRAYS[first], requires_grad=True), tensor(ARRAYS["ties"], requires_grad=True)
            out = getattr(module, name)(x, y)
            out.sum().backward()
            results.append([out.detach().numpy(), np.asarray(x.grad), np.asarray(y.grad)])
        for found, expected in zip(*results, strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=f"{name}, {first}")
