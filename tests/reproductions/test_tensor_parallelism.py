"""Tensor parallelism: what the reproduction counts, without its seconds."""

from __future__ import annotations

import io

from rich.console import Console

from benchmarks.reproductions import tensor_parallelism
from benchmarks.reproductions.reproduction import Reproduction


def test_words_calls_and_the_order_of_layers_hold(tmp_path) -> None:
    reproduction = Reproduction("tensor", "", tmp_path, Console(file=io.StringIO()))
    tensor_parallelism.calls(reproduction)
    tensor_parallelism.words(reproduction)
    tensor_parallelism.order(reproduction)
    assert reproduction.is_accepted


def test_a_block_takes_four_all_reduces_and_six_with_recomputation() -> None:
    for recompute, each in ((False, 4), (True, 6)):
        two, three = (tensor_parallelism.all_reduces(layers, recompute) for layers in (2, 3))
        assert three - two == each
