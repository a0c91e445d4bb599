"""The errata of chapter 10 in course/errata.md: what is printed goes wrong, what is right does not."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from minidl import Tensor, cluster, nn
from minidl import functional as F
from minidl.parallel.tensor import ColumnLinear, RowLinear, split_layers

PEAK, POSITIONS, SYMBOLS = 312, 2048, 51_200
# Narayanan et al. (arXiv:2104.04473), table 1: h, layers, TFLOP/s of a GPU, the percentage printed
PUBLISHED = [
    (2304, 24, 137, 44),
    (3072, 30, 138, 44),
    (4096, 36, 142, 46),
    (6144, 40, 135, 43),
    (8192, 48, 138, 44),
    (10_240, 60, 140, 45),
    (12_288, 80, 148, 47),
    (16_384, 96, 155, 50),
    (20_480, 105, 163, 52),
    (25_600, 128, 163, 52),
]


def test_the_printed_percentages_count_the_repeated_forward_and_the_model_itself_has_33_to_39():
    own = []
    for h, layers, speed, printed in PUBLISHED:
        assert round(100 * speed / PEAK) == printed
        executed = 96 * (1 + POSITIONS / (6 * h) + SYMBOLS / (16 * layers * h))
        needed = 72 * (1 + POSITIONS / (6 * h) + SYMBOLS / (12 * layers * h))
        own.append(round(100 * speed / PEAK * needed / executed))
    assert (min(own), max(own), own[-1]) == (33, 39, 39)


class WithoutMessage(ColumnLinear):
    """A layer by columns that sends nothing in backward either."""

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


@pytest.mark.parametrize("p", [2, 3])
def test_a_layer_by_columns_without_a_message_in_backward_has_the_right_output_and_a_wrong_gradient_below(p: int):
    model = nn.Sequential(nn.Linear(5, 12), nn.GELU(), nn.Linear(12, 4)).double()
    x = np.random.default_rng(0).normal(size=(6, 5))

    def program(comm, layout):
        divided = split_layers(copy.deepcopy(model), comm, layout)
        inputs = Tensor(x, requires_grad=True)
        y = divided(inputs)
        (y * y).sum().backward()
        return y.numpy(), inputs.grad

    whole = cluster.launch(program, ({},), nodes=1, on="simulation").results[0]
    for first, is_right in ((ColumnLinear, True), (WithoutMessage, False)):
        results = cluster.launch(program, ({"0": first, "2": RowLinear},), nodes=p, on="simulation").results
        for output, gradient in results:
            np.testing.assert_allclose(output, whole[0], atol=1e-12)
            assert np.allclose(gradient, whole[1], rtol=0, atol=1e-12) == is_right
        assert np.allclose(sum(gradient for _, gradient in results), whole[1]) == (not is_right)
