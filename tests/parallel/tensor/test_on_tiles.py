"""Samples, pixels, channels and filters are divided at once, and train to the numbers of one node."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from minidl import parallel
from minidl.parallel import Hybrid, Serial
from minidl.parallel.tensor import ColumnConv2d, GridConv2d, RowLinear
from tests.parallel.jobs import assert_same_run
from tests.parallel.test_split_models import JOBS
from tests.tiers import exhaustively


@pytest.mark.parametrize(
    ("dp", "spatial", "tp", "channels"), [(2, "2x1", 2, 2), *exhaustively((1, "2x2", 2, 1), (1, "1x2", 4, 2))]
)
def test_a_grid_of_samples_pixels_and_channels_trains_a_resnet_as_one_node(dp, spatial, tp, channels):
    grid = partial(GridConv2d, channels=channels)
    layout = {"conv1": ColumnConv2d, "layer*.conv?": grid, "layer*.downsample.0": grid, "fc": RowLinear}
    job = replace(JOBS["ResNet"], epochs=1)
    strategy = Hybrid(dp=dp, spatial=spatial, tp=tp, micro_batches=2, layout=layout)
    report = parallel.train(job, strategy, 8, on="simulation")
    assert_same_run(report, parallel.train(job, Serial(shards=dp, micro_batches=2), on="simulation"))
