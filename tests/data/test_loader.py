"""Minibatches, alone and shared by ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import Tensor
from minidl.data import DataLoader, Dataset, DistributedSampler, Splits
from minidl.data.sampler import epoch_order
from tests.together import naming


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
    assert [len(x) for x, _ in DataLoader(numbered(3))] == [1, 1, 1]  # the default, as in PyTorch
    assert [len(x) for x, _ in DataLoader(numbered(5), np.int64(64))] == [5]


@given(
    n=st.integers(0, 60),
    size=st.integers(1, 70),
    replicas=st.integers(1, 9),
    seed=st.integers(0, 3),
    drop=st.booleans(),
)
@settings(max_examples=50)
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
        if len(whole.y):
            mean = sum(part.weight * part.x.mean() for part in parts if len(part.x))
            assert mean == pytest.approx(whole.x.mean(), rel=1e-5)


def test_loader_and_sampler_give_a_rank_the_same_samples_where_the_ranks_divide_the_batch() -> None:
    for n, replicas in [(37, 4), (30, 3)]:
        with naming(n, replicas):
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


def test_impossible_settings_are_refused_in_one_sentence() -> None:
    for options, message in [
        ({"batch_size": 3, "num_replicas": 4}, "a minibatch of 3 cannot be shared by 4 ranks: batch_size must be at"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"batch_size": 8, "lookahead": -1}, "lookahead must be at least 0, got -1: 0 reads nothing ahead"),
        ({"batch_size": 8, "seed": -1}, "seed must be at least 0, got -1"),
        ({"batch_size": 8, "num_replicas": 2, "rank": 2}, "rank must be from 0 to 1, got 2"),
        ({"batch_size": 8, "sampler": DistributedSampler(5, 1, 0), "shuffle": True}, "a sampler shuffles and shards"),
        (
            {"batch_size": 8, "sampler": DistributedSampler(4, 1, 0)},
            "the sampler is for 4 samples, but the dataset has 5",
        ),
    ]:
        with naming(message), pytest.raises(ValueError, match=message):
            DataLoader(numbered(5), **options)  # type: ignore[arg-type]


# ---- passes ----


def labels(loader: DataLoader) -> list[int]:
    return [int(label) for _, y in loader for label in y]


def test_each_pass_over_a_shuffling_loader_has_the_order_of_the_next_epoch_from_set_epoch_on() -> None:
    loader = DataLoader(numbered(20), 6, shuffle=True, seed=3)
    orders = [labels(loader) for _ in range(3)]
    assert orders == [epoch_order(20, True, 3, epoch).tolist() for epoch in range(3)]
    assert orders[0] != orders[1]
    loader.set_epoch(7)
    assert [labels(loader) for _ in range(2)] == [epoch_order(20, True, 3, epoch).tolist() for epoch in (7, 8)]


def test_two_passes_at_once_have_orders_of_their_own_and_an_abandoned_pass_counts() -> None:
    loader = DataLoader(numbered(20), 20, shuffle=True)
    pairs = [(a.y.tolist(), b.y.tolist()) for a, b in zip(iter(loader), iter(loader), strict=True)]
    assert pairs == [(epoch_order(20, True, 0, 0).tolist(), epoch_order(20, True, 0, 1).tolist())]
    next(iter(loader))
    assert labels(loader) == epoch_order(20, True, 0, 3).tolist()


def test_an_order_that_the_caller_gives_is_asked_for_each_pass_with_the_next_epoch() -> None:
    loader = DataLoader(numbered(4), 4, order=lambda epoch: np.roll(np.arange(4), epoch))
    assert [labels(loader) for _ in range(3)] == [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1]]


def test_a_sampler_keeps_its_order_until_set_epoch() -> None:
    sampler = DistributedSampler(12, 2, 0)
    loader = DataLoader(numbered(12), 2, sampler=sampler)
    first = labels(loader)
    assert labels(loader) == first == list(sampler)
    sampler.set_epoch(1)
    assert labels(loader) == list(sampler) != first


# ---- datasets that are not a Dataset ----


class Squares:
    """A dataset as PyTorch's users write it."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return Tensor([index, index**2]), index


class Doubled(Dataset):
    """A subclass of Dataset with a `__getitem__` for one sample."""

    def __getitem__(self, index: object) -> tuple[object, object]:
        assert isinstance(index, int)
        return 2 * self.x[index], self.y[index]


def test_a_list_of_pairs_is_a_dataset() -> None:
    x, y = numbered(5)[:]
    loader = DataLoader(list(zip(x, y, strict=True)), 2)
    for batch, expected in zip(loader, DataLoader(numbered(5), 2), strict=True):
        np.testing.assert_array_equal(batch.x, expected.x)
        np.testing.assert_array_equal(batch.y, expected.y)
        assert (batch.x.dtype, batch.y.dtype) == (np.float32, np.int64)


def test_numbers_and_lists_in_pairs_become_float32_and_int64() -> None:
    [(x, y)] = DataLoader([([0.5, 1.5], 0), ([2.5, 3.5], 1)], 2)
    assert (x.dtype, x.shape, y.dtype, y.tolist()) == (np.float32, (2, 2), np.int64, [0, 1])


def test_an_object_with_len_and_getitem_is_a_dataset_shared_by_ranks_as_any_other() -> None:
    *_, (x, y) = DataLoader(Squares(), 4)
    assert (x.tolist(), y.tolist()) == ([[4, 16]], [4])
    whole = DataLoader(Squares(), 4, shuffle=True)
    ranks = [DataLoader(Squares(), 4, shuffle=True, rank=rank, num_replicas=3) for rank in range(3)]
    for batch, *parts in zip(whole, *ranks, strict=True):
        assert [part.y.tolist() for part in parts] == [batch.y[rank::3].tolist() for rank in range(3)]
        assert {part.x.shape[1:] for part in parts} == {(2,)}


def test_a_subclass_of_dataset_with_its_own_getitem_is_asked_for_single_samples() -> None:
    [(x, y)] = DataLoader(Doubled(*numbered(3)[:]), 3)
    assert (x[:, 0].tolist(), y.tolist()) == ([0, 2, 4], [0, 1, 2])


def test_what_is_no_dataset_is_refused_with_what_to_give() -> None:
    for dataset, message in [
        (np.zeros((5, 2)), r"samples with their targets, not one ndarray: give data.Dataset\(x, y\)"),
        ((np.zeros((5, 2)), np.zeros(5)), r"not a tuple of arrays: give data.Dataset\(x, y\)"),
        (Splits(numbered(3), numbered(2)), "give splits.train or splits.test"),
        (iter([(1, 2)]), "an object with __len__ and __getitem__, not list_iterator"),
    ]:
        with naming(message), pytest.raises(TypeError, match=message):
            DataLoader(dataset, 2)  # type: ignore[arg-type]


def test_items_that_are_no_pairs_of_one_shape_are_refused() -> None:
    for dataset, message in [
        ([np.zeros(2), np.zeros(2)], r"item 0 of the list should be \(sample, target\), but it is a ndarray"),
        ([(1, 2, 3)], "item 0 of the list .* but it is 3 things"),
        (
            [(np.zeros(2), 0), (np.zeros(3), 1)],
            r"the samples .* one shape, but there are \(2,\) and \(3,\): pad or crop",
        ),
    ]:
        with naming(message), pytest.raises((TypeError, ValueError), match=message):
            next(iter(DataLoader(dataset, 2)))  # type: ignore[arg-type]


def test_an_option_that_only_pytorch_has_is_refused_unless_it_is_switched_off() -> None:
    for option in ("num_workers", "pin_memory", "collate_fn", "no_such_option"):
        with pytest.raises(TypeError, match=f"a DataLoader has no {option}: leave it out"):
            DataLoader(numbered(5), 2, **{option: 2})  # type: ignore[arg-type]
    loader = DataLoader(numbered(5), 4, num_workers=0, pin_memory=False, collate_fn=None)  # type: ignore[arg-type]
    assert [len(x) for x, _ in loader] == [4, 1]
    with pytest.raises(TypeError, match="batch_size must be a whole number of at least 1, got None"):
        DataLoader(numbered(5), None)  # type: ignore[arg-type]


def test_an_order_that_is_not_one_of_all_samples_is_refused() -> None:
    for indices in [[2, 0], [0, 1, 2, 3, 3], [[0, 1], [2, 3]]]:
        loaders = (
            DataLoader(numbered(4), 2, order=lambda epoch, indices=indices: indices),
            DataLoader(
                numbered(4), 2, sampler=DistributedSampler(4, 2, 0, order=lambda epoch, indices=indices: indices)
            ),
        )
        for loader in loaders:
            with pytest.raises(ValueError, match=r"order\(0\) has the shape .*, but the dataset has 4 samples"):
                next(iter(loader))
