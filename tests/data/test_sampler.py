"""The distributed sampler: every sample once, whatever the number of ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl.data import DistributedSampler
from tests.together import naming


@given(n=st.integers(0, 200), replicas=st.integers(1, 9), shuffle=st.booleans(), epoch=st.integers(0, 5))
@settings(max_examples=50)
def test_the_ranks_together_read_each_sample_exactly_once(n: int, replicas: int, shuffle: bool, epoch: int) -> None:
    shares = []
    for rank in range(replicas):
        sampler = DistributedSampler(n, replicas, rank, shuffle, seed=3)
        sampler.set_epoch(epoch)
        share = list(sampler)
        assert len(share) == len(sampler)
        shares.append(share)
    assert sorted(index for share in shares for index in share) == list(range(n))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_ranks_deal_one_permutation_like_cards() -> None:
    whole = list(DistributedSampler(100, 1, 0, seed=5))
    assert whole != sorted(whole)
    for rank in range(3):
        assert list(DistributedSampler(100, 3, rank, seed=5)) == whole[rank::3]


def test_each_epoch_and_each_seed_has_its_own_order_and_repeats_it() -> None:
    def order(seed: int, epoch: int) -> tuple[int, ...]:
        sampler = DistributedSampler(50, 1, 0, seed=seed)
        sampler.set_epoch(epoch)
        return tuple(sampler)

    assert len({order(seed, epoch) for seed in range(4) for epoch in range(4)}) == 16
    assert order(2, 3) == order(2, 3)


def test_without_shuffle_the_order_is_that_of_the_dataset() -> None:
    np.testing.assert_array_equal(DistributedSampler(7, 2, 1, shuffle=False).indices(), [1, 3, 5])


def test_impossible_numbers_are_refused() -> None:
    for arguments, message in [
        ((5, 2, 2), "rank must be from 0 to 1, got 2"),
        ((5, 2, -1), "rank must be from 0 to 1, got -1"),
        ((5, 0, 0), "num_replicas must be at least 1, got 0"),
        ((-1, 1, 0), "n must be at least 0, got -1"),
        ((5, 1, 0, True, -1), "seed must be at least 0, got -1"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message):
            DistributedSampler(*arguments)
    with pytest.raises(ValueError, match="epoch must be at least 0, got -2"):
        DistributedSampler(5, 1, 0).set_epoch(-2)
    with pytest.raises(TypeError, match=r"n must be a whole number of at least 0, got 2\.5"):
        DistributedSampler(2.5, 1, 0)  # type: ignore[arg-type]
