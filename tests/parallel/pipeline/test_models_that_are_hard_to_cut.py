"""Models that are hard to cut train to the numbers of one node, by every schedule that flushes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minidl.parallel import Pipeline
from tests.parallel.pipeline.models import CASES
from tests.parallel.pipeline.test_pipeline import assert_trains_as_one_node
from tests.tiers import exhaustively

FIRST = ["skips over all cuts", "a weight of three stages", "last stage frozen", "batch norm and dropout"]


@pytest.mark.parametrize("name", [*FIRST, *exhaustively(*(name for name in CASES if name not in FIRST))])
def test_each_unit_may_be_a_stage_that_computes_forward_again(name: str):
    job = replace(CASES[name], epochs=1, clip_norm=0.8)
    units = len(job.build_model().stages())
    assert_trains_as_one_node(job, Pipeline(units, 4, "zb-h1", cuts=range(1, units), recompute=True))


@pytest.mark.parametrize("kind", ["zb-v", *exhaustively("1f1b", "interleaved", "zb-h2")])
@pytest.mark.parametrize("name", CASES)
def test_models_that_are_hard_to_cut_train_to_the_numbers_of_one_node(name: str, kind: str):
    job = replace(CASES[name], epochs=1, clip_norm=0.8)
    chunks = Pipeline(2, 4, kind).made_schedule().chunks
    units = len(job.build_model().stages())
    cuts = [1, 2, 3] if chunks == 4 else [units // 2]
    assert_trains_as_one_node(job, Pipeline(2, 4, kind, cuts=cuts), dp=2)


@pytest.mark.parametrize("kind", ["zb-h1", *exhaustively("gpipe", "zb-v")])
@pytest.mark.parametrize("name", ["skips over all cuts", "a weight of three stages"])
def test_micro_batches_may_have_one_sample_and_the_last_minibatch_less(name: str, kind: str):
    """60 samples in minibatches of 59: the last one has a single sample, and two of three replicas have none."""
    job = replace(CASES[name], epochs=1, batch_size=59)
    assert_trains_as_one_node(job, Pipeline(2, 4, kind), dp=3)
