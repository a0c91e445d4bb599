"""The distributed sampler: every sample once, whatever the number of ranks; shards that stay the same in all epochs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import data
from minidl.data import DistributedSampler
from minidl.data.sampler import order_of_shards
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


# ---- fixed shards ----


def test_every_sample_is_dealt_once_and_each_rank_gets_a_contiguous_shard():
    for n, ranks, batch_size in [(60, 4, 16), (61, 3, 10), (7, 3, 7), (5, 5, 5), (2, 3, 3)]:
        with naming(n, ranks, batch_size):
            samples = np.random.default_rng(0).permutation(n)
            for epoch in range(2):
                order = order_of_shards(samples, ranks, batch_size, seed=3, epoch=epoch)
                dataset = data.Dataset(np.arange(n), np.arange(n))
                read, sizes = [], []
                for rank in range(ranks):
                    loader = data.DataLoader(
                        dataset, batch_size, rank=rank, num_replicas=ranks, order=lambda epoch, order=order: order
                    )
                    mine = np.concatenate([y for _, y in loader])
                    sizes.append(len(mine))
                    read.append(mine)
                begins = np.cumsum([0, *sizes])
                for rank, mine in enumerate(read):
                    assert set(mine.tolist()) == set(samples[begins[rank] : begins[rank + 1]].tolist())
                assert sorted(np.concatenate(read).tolist()) == list(range(n))


def test_a_rank_shuffles_its_shard_anew_in_every_epoch():
    orders = [order_of_shards(np.arange(40), 2, 8, seed=0, epoch=epoch) for epoch in (0, 1, 0)]
    assert (orders[0] != orders[1]).any()
    assert (orders[0] == orders[2]).all()
    assert set(orders[0][::2].tolist()) == set(orders[1][::2].tolist()) == set(range(20))


def test_a_sampler_reads_the_same_shard_as_the_common_minibatches_that_its_ranks_divide():
    samples = np.random.default_rng(1).permutation(50)
    dealt = data.DistributedSampler(50, 4, 2, order=lambda epoch: order_of_shards(samples, 4, 50, 0, epoch))
    dataset = data.Dataset(np.arange(50), np.arange(50))
    loader = data.DataLoader(
        dataset, 16, rank=2, num_replicas=4, order=lambda epoch: order_of_shards(samples, 4, 16, 0, epoch)
    )
    assert dealt.indices().tolist() == np.concatenate([y for _, y in loader]).tolist()


def test_two_orders_at_once_are_refused():
    dataset = data.Dataset(np.arange(4), np.arange(4))
    with pytest.raises(ValueError, match="an order is given: leave out shuffle"):
        data.DataLoader(dataset, 2, shuffle=True, order=lambda epoch: np.arange(4))
    with pytest.raises(ValueError, match="leave out shuffle, order, rank and num_replicas"):
        data.DataLoader(dataset, 2, sampler=data.DistributedSampler(4, 1, 0), order=lambda epoch: np.arange(4))
