"""What the reproduction of activation checkpointing counts."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.reproductions.activation_checkpointing import MODELS, UNIT, live_activations, step
from minidl.nn import segments


@pytest.mark.parametrize(("n", "k", "kept"), [(16, 4, 8), (16, 1, 17), (12, 6, 8)])
def test_the_activations_that_live_are_k_plus_n_over_k(n: int, k: int, kept: int) -> None:
    assert live_activations(n, k) == kept


def test_unequal_segments_keep_what_their_peak_says() -> None:
    best = segments.least_peak([UNIT] * 16)
    assert live_activations(16, best) == segments.peak([UNIT] * 16, best) == 6


def test_a_checkpointed_step_has_the_bits_of_the_plain_one_and_a_forward_pass_more() -> None:
    build, x = MODELS["GPT, dropout 0.2, tied"]
    plain, forward, _ = step(build, x, None)
    again, _, calls = step(build, x, "sqrt")
    assert again[0] - plain[0] == forward
    assert set(calls) == {2}
    assert all(np.array_equal(a, b) for a, b in zip(plain[1:], again[1:], strict=True))
