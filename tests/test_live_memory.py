"""What memory lives, and when: arrays that backward reads, until it has passed.

tracemalloc counts numpy's arrays. The unit is one matrix; Python's own objects are far below the tolerance.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from minidl import Tensor, kernels, no_grad, optim
from minidl import functional as F

N = 160  # a matrix N x N of float64 is the unit: 200 KiB
UNIT = N * N * 8
TOLERANCE = 0.15  # units
LAYERS = 8


@pytest.fixture(autouse=True)
def _measured() -> Iterator[None]:
    with kernels.use("numpy"):
        F.linear(np.ones((2, 2)), Tensor(np.ones((2, 2)), requires_grad=True)).sum().backward()  # imports, caches
        gc.collect()
        gc.disable()  # reference counting alone must do
        tracemalloc.start()
        yield
        tracemalloc.stop()
        gc.enable()


def live() -> float:
    return tracemalloc.get_traced_memory()[0] / UNIT


def peak() -> float:
    return tracemalloc.get_traced_memory()[1] / UNIT


def make_weights() -> list[Tensor]:
    random = np.random.default_rng(0)
    return [Tensor(random.standard_normal((N, N)) / np.sqrt(N), requires_grad=True) for _ in range(LAYERS)]


def forward(x: Tensor, weights: list[Tensor]) -> Tensor:
    for weight in weights:
        x = F.linear(x, weight)
    return x.sum()


def test_evaluation_needs_two_neighbours_whatever_the_depth() -> None:
    for depth in (2, 20):
        weights = [Tensor(np.full((N, N), 1 / N), requires_grad=True) for _ in range(depth)]
        x = Tensor(np.ones((N, N)))
        before = live()
        tracemalloc.reset_peak()
        with no_grad():
            for weight in weights:
                x = F.linear(x, weight)
        # the input counts as one: it dies when the first layer's output takes its name
        assert peak() - (before - 1) == pytest.approx(2, abs=TOLERANCE)
        assert live() - before == pytest.approx(0, abs=TOLERANCE)
        del weights, weight, x


def test_a_result_that_backward_does_not_read_lives_no_longer_than_its_tensor() -> None:
    weight, x = make_weights()[0], Tensor(np.ones((N, N)))
    before = live()
    y = F.linear(x, weight)
    z = y + x
    assert live() - before == pytest.approx(2, abs=TOLERANCE)
    del y
    assert live() - before == pytest.approx(1, abs=TOLERANCE)
    z = F.relu((z - 1.0).reshape(-1)).reshape(N, N)  # relu reads its result
    assert live() - before == pytest.approx(1, abs=TOLERANCE)
    z.sum().backward()
    assert weight.grad is not None
    np.testing.assert_allclose(weight.grad, (z.numpy() > 0).T.astype(float) @ x.numpy())


@pytest.mark.parametrize("retain_graph", [False, True])
def test_live_memory_at_every_layer_of_backward_is_the_closed_form(retain_graph: bool) -> None:
    """When the gradient of weight l is final, these live, in units:

    outputs            those of layers 1..l-2, which the layers below read, if freed as passed; else all but the last
    weight gradients   L - l + 1
    output gradients   that of layer l, and that of layer l - 1 just computed; the seed of layer L is a broadcast scalar
    While layer l computes, output l - 1 lives, too: so the peak is L + 2 whatever the layer if freed as passed, and
    2 L, at the first two, if all is retained.
    """
    weights, x = make_weights(), Tensor(np.ones((N, N)))
    before = live()
    found: dict[int, float] = {}
    for layer, weight in enumerate(weights, start=1):
        weight.register_post_accumulate_grad_hook(lambda _, layer=layer: found.update({layer: live() - before}))
    loss = forward(x, weights)
    assert live() - before == pytest.approx(LAYERS - 1, abs=TOLERANCE)  # a sum does not read its summands
    tracemalloc.reset_peak()
    loss.backward(retain_graph=retain_graph)
    for layer in range(1, LAYERS + 1):
        outputs = LAYERS - 1 if retain_graph else max(layer - 2, 0)
        output_gradients = (layer < LAYERS) + (layer > 1)
        expected = outputs + (LAYERS - layer + 1) + output_gradients
        assert found[layer] == pytest.approx(expected, abs=TOLERANCE), f"layer {layer}"
    assert peak() - before == pytest.approx(2 * LAYERS if retain_graph else LAYERS + 2, abs=TOLERANCE)
    assert live() - before == pytest.approx(2 * LAYERS - 1 if retain_graph else LAYERS, abs=TOLERANCE)


def test_a_graph_that_is_never_walked_dies_with_its_last_tensor() -> None:
    """No cycles: reference counting frees it at once, without the collector."""
    weights, x = make_weights(), Tensor(np.ones((N, N)))
    before = live()
    loss = forward(x, weights)
    del loss
    assert live() - before == pytest.approx(0, abs=TOLERANCE)


def test_an_optimizer_keeps_this_many_copies_of_the_weights_and_steps_leave_nothing_else_behind() -> None:
    x = Tensor(np.ones((N, N)))
    for make, copies in (
        (lambda weights: optim.SGD(weights, lr=1e-3), 0),
        (lambda weights: optim.SGD(weights, lr=1e-3, momentum=0.9), 1),
        (lambda weights: optim.Adagrad(weights, lr=1e-3), 1),
        (lambda weights: optim.Adam(weights, lr=1e-3), 2),
    ):
        weights = make_weights()
        before = live()
        optimizer = make(weights)
        for _ in range(3):
            forward(x, weights).backward()
            optimizer.step()
            optimizer.zero_grad()
        assert live() - before == pytest.approx(copies * LAYERS, abs=TOLERANCE), optimizer
        del optimizer, weights
