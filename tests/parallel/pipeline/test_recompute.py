"""A stage that computes its chunks again keeps less, and trains to the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from minidl import cluster, nn
from minidl.parallel import Pipeline, pipeline, train
from tests.parallel.jobs import small_job
from tests.parallel.pipeline.test_live_memory import MICRO_BATCHES, STAGES, counted
from tests.parallel.test_split_models import JOBS
from tests.tiers import all_but_first_exhaustive

pytestmark = pytest.mark.timeout(120)

SYNCHRONOUS = [kind for kind in pipeline.SCHEDULES if kind != "pipedream"]


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("kind", all_but_first_exhaustive(["zb-h1", *SYNCHRONOUS]))
def test_the_bits_are_those_without_it(job, kind: str):
    """Batch norm's statistics move once, dropout draws its masks again, replicas sum during the last backward."""
    plain = Pipeline(stages=2, micro_batches=4, schedule=kind)
    first, second = (
        train(job, strategy, 4, on=cluster.Simulation("10gbe")) for strategy in (plain, replace(plain, recompute=True))
    )
    assert first.checkpoint.model.keys() == second.checkpoint.model.keys()
    for name, array in first.checkpoint.model.items():
        np.testing.assert_array_equal(second.checkpoint.model[name], array)
    assert [row["loss"] for row in first.history] == [row["loss"] for row in second.history]


@pytest.mark.parametrize("weight_versions", ["stashing", "vertical_sync"])
def test_in_an_asynchronous_pipeline_the_stashed_weights_compute_again(weight_versions: str):
    job = small_job(model=lambda: nn.models.MLP(5, 8, 7, 6, 3).double())
    plain = Pipeline(stages=3, schedule="pipedream", weight_versions=weight_versions)
    first, second = (train(job, each, 3, on="simulation") for each in (plain, replace(plain, recompute=True)))
    assert first.digests == second.digests


@pytest.mark.parametrize("kind", ["1f1b", "gpipe", "zb-h1"])
def test_each_chunk_computes_exactly_once_more(kind: str):
    evaluation = 64 // 256 + 1  # minibatches
    plain, twice = (counted(kind, "simulation", "calls", epochs=1, recompute=flag) for flag in (False, True))
    steps = 64 // 32
    assert plain == [[steps * MICRO_BATCHES + evaluation]] * STAGES
    assert twice == [[2 * steps * MICRO_BATCHES + evaluation]] * STAGES


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_only_inputs_and_the_activations_of_one_micro_batch_are_kept(on: str):
    """GPipe's stages keep the activations of all micro-batches; computing again, all inputs and those of one."""
    assert counted("gpipe", on, "most_outputs") == [[MICRO_BATCHES]] * STAGES
    assert counted("gpipe", on, "most_outputs", recompute=True) == [[1]] * STAGES
    assert counted("gpipe", on, "most_inputs", recompute=True)[1:] == [[MICRO_BATCHES]] * (STAGES - 1)


def test_what_backward_reads_of_the_latest_weights_is_not_recomputed():
    with pytest.raises(ValueError, match=r"with recompute=True .* weight_versions='latest' is not what it says"):
        Pipeline(schedule="pipedream", weight_versions="latest", recompute=True)
