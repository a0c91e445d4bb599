"""Models that are hard to cut train to the numbers of one node, by every schedule that flushes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minidl.parallel import Pipeline
from tests.parallel.pipeline.models import CASES
from tests.parallel.pipeline.test_pipeline import SYNCHRONOUS, assert_trains_as_one_node
from tests.tiers import all_but_first_exhaustive

pytestmark = pytest.mark.timeout(300)

KINDS = ["zb-h1", *(kind for kind in SYNCHRONOUS if kind != "zb-h1")]


@pytest.mark.parametrize(("kind", "dp"), all_but_first_exhaustive([(kind, dp) for dp in (1, 2) for kind in KINDS]))
@pytest.mark.parametrize("name", CASES)
def test_models_that_are_hard_to_cut_train_to_the_numbers_of_one_node(name: str, kind: str, dp: int):
    job = replace(CASES[name], epochs=2, clip_norm=0.8)
    chunks = Pipeline(2, 4, kind).made_schedule().chunks
    units = len(job.build_model().stages())
    cuts = [1, 2, 3] if chunks == 4 else [units // 2]
    assert_trains_as_one_node(job, Pipeline(2, 4, kind, cuts=cuts), dp)


@pytest.mark.parametrize(
    "kind", all_but_first_exhaustive([kind for kind in KINDS if kind not in ("interleaved", "zb-v")])
)
@pytest.mark.parametrize("recompute", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_each_unit_may_be_a_stage(name: str, recompute: bool, kind: str):
    job = replace(CASES[name], epochs=1)
    units = len(job.build_model().stages())
    assert_trains_as_one_node(job, Pipeline(units, 4, kind, cuts=range(1, units), recompute=recompute))


@pytest.mark.parametrize("kind", all_but_first_exhaustive(KINDS))
@pytest.mark.parametrize("dp", [1, 3])
@pytest.mark.parametrize("batch_size", [12, 59])
@pytest.mark.parametrize("name", ["skips over all cuts", "a weight of three stages"])
def test_micro_batches_may_have_one_sample_and_the_last_minibatch_less(name: str, batch_size: int, dp: int, kind: str):
    """60 samples in minibatches of 59: the last one has a single sample, and two of three replicas have none."""
    job = replace(CASES[name], epochs=1, batch_size=batch_size)
    assert_trains_as_one_node(job, Pipeline(2, 4, kind), dp)
