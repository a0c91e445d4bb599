"""Shards that stay: each rank reads its own contiguous piece of the samples, and all of it."""

import numpy as np
import pytest

from minidl import data
from minidl.data.sampler import order_of_shards
from tests.together import naming


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
