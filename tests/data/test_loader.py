"""Minibatches, alone and shared by ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidl.data import DataLoader, Dataset, DistributedSampler


def numbered(n: int) -> Dataset:
    return Dataset(np.arange(n, dtype=np.float32)[:, None], np.arange(n))


def test_minibatches_follow_the_dataset_and_the_last_one_is_ragged() -> None:
    loader = DataLoader(numbered(10), batch_size=4)
    assert [y.tolist() for _, y in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(loader) == 3
    assert all(np.array_equal(x[:, 0], y) for x, y in loader)
    assert [(batch.total, batch.weight) for batch in loader] == [(4, 1), (4, 1), (2, 1)]


def test_drop_last_leaves_out_only_a_ragged_minibatch() -> None:
    assert [len(x) for x, _ in DataLoader(numbered(10), 4, drop_last=True)] == [4, 4]
    assert [len(x) for x, _ in DataLoader(numbered(8), 4, drop_last=True)] == [4, 4]
    assert len(DataLoader(numbered(10), 4, drop_last=True)) == 2


@given(
    n=st.integers(0, 60),
    size=st.integers(1, 70),
    replicas=st.integers(1, 9),
    seed=st.integers(0, 3),
    drop=st.booleans(),
)
def test_the_ranks_parts_make_up_the_minibatches_of_a_single_rank(
    n: int, size: int, replicas: int, seed: int, drop: bool
) -> None:
    size = max(size, replicas)
    alone = DataLoader(numbered(n), size, shuffle=True, seed=seed, drop_last=drop)
    ranks = [DataLoader(numbered(n), size, True, seed, drop, rank, replicas) for rank in range(replicas)]
    assert {len(loader) for loader in ranks} == {len(alone)}
    for whole, *parts in zip(alone, *ranks, strict=True):
        for rank, part in enumerate(parts):
            np.testing.assert_array_equal(part.y, whole.y[rank::replicas])
        assert {part.total for part in parts} == {len(whole.y)}
        assert max(len(part.y) for part in parts) - min(len(part.y) for part in parts) <= 1
        assert sum(part.weight for part in parts) == pytest.approx(1)


def test_weighted_means_of_unequal_parts_add_up_to_the_mean_of_the_minibatch() -> None:
    parts = [next(iter(DataLoader(numbered(7), 7, shuffle=True, rank=rank, num_replicas=3))) for rank in range(3)]
    assert sum(part.weight * part.x.mean() for part in parts) == pytest.approx(np.arange(7).mean())


def test_a_part_is_empty_where_the_ragged_end_has_fewer_samples_than_ranks() -> None:
    *_, last = DataLoader(numbered(9), 4, rank=3, num_replicas=4)
    assert last.x.shape == (0, 1)
    assert (last.total, last.weight) == (1, 0)


def test_each_epoch_shuffles_anew_and_the_same_epoch_alike() -> None:
    loader = DataLoader(numbered(32), 32, shuffle=True, seed=1)

    def order(epoch: int) -> list[int]:
        loader.set_epoch(epoch)
        [(_, y)] = loader
        return y.tolist()

    first, second = order(0), order(1)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(32))
    assert order(0) == first


@pytest.mark.parametrize(("n", "replicas"), [(40, 4), (37, 4), (30, 3)])
def test_loader_and_sampler_give_a_rank_the_same_samples_where_the_ranks_divide_the_batch(
    n: int, replicas: int
) -> None:
    for rank in range(replicas):
        sharing = DataLoader(numbered(n), 2 * replicas, shuffle=True, seed=9, rank=rank, num_replicas=replicas)
        sampler = DistributedSampler(n, replicas, rank, seed=9)
        sampling = DataLoader(numbered(n), 2, sampler=sampler)
        for epoch in range(2):
            sharing.set_epoch(epoch)
            sampling.set_epoch(epoch)
            shared = np.concatenate([y for _, y in sharing])
            assert shared.tolist() == list(sampler)
            assert np.concatenate([y for _, y in sampling]).tolist() == shared.tolist()
            assert len(list(sampling)) == len(sampling)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 3, "num_replicas": 4}, "a minibatch of 3 cannot be shared by 4 ranks: batch_size must be at"),
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"batch_size": -8}, "batch_size must be at least 1, not -8"),
        ({"batch_size": 8, "seed": -1}, "seed must be at least 0, not -1"),
        ({"batch_size": 8, "num_replicas": 2, "rank": 2}, "rank must be below num_replicas=2"),
        ({"batch_size": 8, "sampler": DistributedSampler(5, 1, 0), "shuffle": True}, "a sampler shuffles and shards"),
        (
            {"batch_size": 8, "sampler": DistributedSampler(4, 1, 0)},
            "the sampler is for 4 samples, but the dataset has 5",
        ),
    ],
)
def test_impossible_settings_are_refused_in_one_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataLoader(numbered(5), **options)  # type: ignore[arg-type]


def test_a_batch_size_must_be_a_whole_number() -> None:
    with pytest.raises(TypeError, match="batch_size must be a whole number, not '64'"):
        DataLoader(numbered(5), "64")  # type: ignore[arg-type]
