"""The process that calls `train` makes no array of a model whose ranks hold a part each, but those of one unit."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest

from minidl import nn, optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel.job import built_once

WIDTH, DEPTH = 304, 24
LAYER = 4 * WIDTH**2  # bytes


def samples() -> Splits:
    rng = np.random.default_rng(3)
    data = Dataset(rng.normal(size=(12, WIDTH)).astype(np.float32), rng.integers(0, WIDTH, 12))
    return Splits(data, data)


@pytest.mark.parametrize(
    ("strategy", "layers"),
    [
        (parallel.Hybrid(tp=4, micro_batches=3), 1),
        (parallel.Hybrid(pp=2, tp=2, micro_batches=3), 6),  # a unit, the one before it, and a gradient
        (parallel.Pipeline(4, 3, cuts="seconds"), 6),
        (parallel.Pipeline(4, 3, cuts=(5, 11, 19)), 1),
    ],
)
def test_checks_and_cuts_take_the_memory_of_a_unit_and_not_of_the_model(strategy: parallel.Pipeline, layers: int):
    model = partial(nn.models.MLP, *[WIDTH] * (DEPTH + 1))
    job = parallel.Job(model, samples, partial(optim.SGD, lr=0.03), batch_size=12, epochs=1)
    strategy.prepared(job, 4)  # loads compiled kernels
    tracemalloc.start()
    try:
        strategy.check(built_once(job), 4)
        prepared = strategy.prepared(job, 4)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(prepared.chunks(job.build_held(lambda model: ()))) == strategy.made_schedule().chunks
    assert most < layers * LAYER


def test_a_part_is_built_beside_the_model_that_is_built_once():
    job = built_once(parallel.Job(lambda: nn.models.MLP(3, 5, 2), samples, partial(optim.SGD, lr=0.03)))
    part = job.build_held(lambda model: model.stages()[1])
    assert [parameter.held for parameter in part.parameters()] == [False, False, True, True]
    whole = job.build_model()
    assert all(parameter.held for parameter in whole.parameters())
    np.testing.assert_array_equal(
        part.stages()[1].modules[0].weight.numpy(), whole.stages()[1].modules[0].weight.numpy()
    )
