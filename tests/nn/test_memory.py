"""How long arrays live: evaluation needs two layers at a time, training keeps every output until backward passes it.

Measured with tracemalloc, which sees numpy's allocations; a = bytes of one layer's output, w = bytes of one weight.
"""

import tracemalloc

import numpy as np
import pytest

from minidl import kernels, nn, no_grad

WIDTH, BATCH = 128, 2048
A = BATCH * WIDTH * 4
W = WIDTH * WIDTH * 4


@pytest.fixture(autouse=True)
def _reference_kernels():
    with kernels.use("numpy"):
        yield


def linear_layers(depth):
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(depth)))


def peak_and_live(function, *args):
    tracemalloc.start()
    try:
        result = function(*args)
        live, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak, live, result


def test_evaluation_peaks_at_two_neighbouring_outputs_and_a_training_forward_keeps_the_output_of_every_layer():
    for depth in (2, 11):
        model, x = linear_layers(depth), np.ones((BATCH, WIDTH), np.float32)
        with no_grad():
            peak, live, _ = peak_and_live(model, x)
        assert peak == pytest.approx(2 * A, rel=0.02)
        assert live == pytest.approx(A, rel=0.02)
        _, live, _ = peak_and_live(model, x)
        assert live == pytest.approx(depth * A, rel=0.02)


def test_backward_frees_each_output_as_it_passes_so_that_its_peak_is_lower():
    """At layer i, counted from 1 to L: outputs 1..i (and L, which the caller holds), two gradients of outputs,
    L - i + 1 gradients of weights. With a > w that is most at the start; retained, outputs stay and gradients add up.
    """
    depth = 12
    x, g = np.ones((BATCH, WIDTH), np.float32), np.ones((BATCH, WIDTH), np.float32)

    def step(model, retain_graph):
        out = model(x)
        out.backward(g, retain_graph=retain_graph)

    freed, live, _ = peak_and_live(step, linear_layers(depth), False)
    assert freed == pytest.approx((depth + 2) * A + W, rel=0.02)
    assert live == pytest.approx(depth * W, rel=0.02)
    retained, _, _ = peak_and_live(step, linear_layers(depth), True)
    assert retained == pytest.approx((depth + 2) * A + (depth - 1) * W, rel=0.02)
    assert retained > freed
