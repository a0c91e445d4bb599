"""The data of a job: Splits of two Datasets, or a function that makes them."""

import pytest

from minidl import cluster, parallel
from minidl.data import Splits
from tests.parallel.jobs import blobs, small_job

PAIRS = [(x, y) for x, y in blobs().test]


@pytest.mark.parametrize("data", [tuple(blobs()), PAIRS, None])
def test_data_that_is_no_splits_is_refused_as_given_or_as_made(data):
    with pytest.raises(TypeError, match=f"data must be a data.Splits.*, got {type(data).__name__}"):
        small_job(data=data)
    with pytest.raises(TypeError, match=f"data must be a data.Splits.*, got {type(data).__name__}"):
        small_job(data=lambda: data).build_data()


@pytest.mark.parametrize(
    ("strategy", "name"), [(parallel.Synchronous(), "train"), (parallel.OneShotAveraging(), "test")]
)
def test_a_list_of_pairs_in_splits_is_refused_before_the_first_step(name, strategy):
    splits = Splits(PAIRS, blobs().test) if name == "train" else Splits(blobs().train, PAIRS)
    with pytest.raises((TypeError, cluster.RankFailed), match=f"the {name} set must be"):
        parallel.train(small_job(data=splits), strategy, 2, "simulation")
