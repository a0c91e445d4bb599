"""What a stage keeps of its weights: PipeDream's gradients are those of the versions that it says."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import nn
from minidl.parallel.pipeline.weight_versions import WeightVersions
from tests.parallel.pipeline import stale_stages
from tests.parallel.pipeline.stale_stages import StaleStage

SIZES = [5, 6, 4, 6, 3]
STAGES = len(SIZES) - 1
MINIBATCHES = 11


def largest_difference(stages: list[StaleStage]) -> float:
    """Between the gradients that were applied and those of a whole model at the versions that the forwards recorded."""
    differences = []
    for m in range(MINIBATCHES):
        weights = [stage.history[stage.used[m]] for stage in stages]
        for stage, expected in zip(stages, stale_stages.gradient(SIZES, m, weights), strict=True):
            differences += [np.abs(stage.gradients[m][name] - expected[name]).max() for name in expected]
    return float(max(differences))


@pytest.mark.parametrize("vertical_sync", [False, True])
def test_with_stashing_the_gradient_is_that_of_the_recorded_versions(vertical_sync: bool):
    assert largest_difference(stale_stages.run(SIZES, MINIBATCHES, vertical_sync=vertical_sync)) < 1e-10


def test_without_stashing_the_gradient_is_that_of_no_version():
    assert largest_difference(stale_stages.run(SIZES, MINIBATCHES, stashing=False)) > 1e-3


@pytest.mark.parametrize("vertical_sync", [False, True])
def test_the_stages_train_as_delayed_sgd_in_one_process(vertical_sync: bool):
    stages = stale_stages.run(SIZES, MINIBATCHES, vertical_sync=vertical_sync)
    delay = [STAGES - 1 if vertical_sync else STAGES - 1 - s for s in range(STAGES)]
    history = stale_stages.delayed_sgd(SIZES, MINIBATCHES, lambda s, m: max(0, m - delay[s]))
    for stage, expected in zip(stages, history, strict=True):
        for ours, theirs in zip(stage.history, expected, strict=True):
            for name in theirs:
                np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "counts"),
    [({}, [4, 3, 2, 1]), ({"vertical_sync": True}, [4, 4, 4, 4]), ({"stashing": False}, [1, 1, 1, 1])],
)
def test_versions_and_their_bytes_are_counted(settings: dict[str, bool], counts: list[int]):
    stages = stale_stages.run(SIZES, MINIBATCHES, **settings)
    assert [stage.versions.most for stage in stages] == counts
    for stage, count in zip(stages, counts, strict=True):
        of_one = sum(p.data.nbytes for p in stage.model.parameters())
        assert all(nbytes == len(kept) * of_one for kept, nbytes in stage.kept)
        assert stage.live == [nbytes for _, nbytes in stage.kept]
        assert max(stage.live) == count * of_one
        assert stage.versions.kept == [MINIBATCHES]  # after the flush


def test_vertical_sync_without_stashing_is_refused():
    with pytest.raises(ValueError, match="needs stashing=True"):
        WeightVersions(nn.Linear(1, 1), stashing=False, at_entry=[0])
