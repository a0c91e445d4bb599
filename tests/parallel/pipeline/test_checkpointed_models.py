"""A model that is checkpointed as a whole is refused by a pipeline; one whose stages are checkpointed works."""

from __future__ import annotations

from functools import partial

import pytest

from minidl import nn, parallel
from minidl.parallel import Pipeline
from tests.parallel.jobs import small_job
from tests.parallel.pipeline.models import in_double
from tests.parallel.pipeline.test_pipeline import assert_trains_as_one_node

pytestmark = pytest.mark.timeout(120)


def as_a_whole() -> nn.Module:
    return nn.checkpointing(nn.models.MLP(5, 8, 7, 6, 3), segments=2)


def without_stages_of_its_own() -> nn.Module:
    """Its stages are those of the model inside, which nobody calls."""

    class Around(nn.Module):
        def __init__(self) -> None:
            self.inner = as_a_whole()

        def stages(self) -> list[nn.Stage]:
            return self.inner.stages()

        def forward(self, x):
            return self.inner(x)

    return Around()


def by_parts() -> nn.Module:
    """Each of its two stages calls a model that is checkpointed."""
    first, second = nn.models.MLP(5, 8, 7, 6), nn.models.MLP(6, 7, 3)
    return nn.Sequential(nn.checkpointing(first, segments=2), nn.Tanh(), nn.checkpointing(second))


@pytest.mark.parametrize("make", [as_a_whole, without_stages_of_its_own])
def test_a_model_that_is_checkpointed_as_a_whole_is_refused_with_advice(make):
    with pytest.raises(ValueError, match="its stages are called one by one: leave it out, and give recompute=True"):
        parallel.train(small_job(model=make), Pipeline(2, 4), 2, on="simulation")


def test_stages_may_call_modules_that_are_checkpointed():
    strategy = Pipeline(3, 4, "zb-h1", cuts=(1, 2), recompute=True)
    assert_trains_as_one_node(small_job(model=partial(in_double, by_parts)), strategy)
