"""Samples kept in memory: hits counted against closed forms, another LRU and the best of all evictions."""

import pickle
from collections import OrderedDict
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import cluster, data, nn, optim
from minidl import functional as F
from minidl.data import DataLoader, Dataset, DistributedSampler, SampleCache
from tests.together import assert_refused, naming


def pairs(n: int) -> list[tuple[int, int]]:
    return [(index, -index) for index in range(n)]


def lru_hits(uses: list[int], capacity: int) -> int:
    kept: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for index in uses:
        hits += index in kept
        kept[index] = None
        kept.move_to_end(index)
        if len(kept) > capacity:
            kept.popitem(last=False)
    return hits


def most_hits(uses: list[int], capacity: int) -> int:
    """The most hits of all ways to evict samples, or not to keep them: the best count of each set that can be kept."""
    best = {frozenset[int](): 0}
    for index in uses:
        after: dict[frozenset[int], int] = {}
        for kept, hits in best.items():
            held = kept | {index}
            for choice in [held - {gone} for gone in held] + [held] * (len(held) <= capacity):
                after[choice] = max(after.get(choice, 0), hits + (index in kept))
        best = after
    return max(best.values())


@given(uses=st.lists(st.integers(0, 5), max_size=14), capacity=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_cache_that_knows_all_uses_has_the_most_hits_possible_and_lru_those_of_lru(
    uses: list[int], capacity: int
) -> None:
    for evict, hits in [("next_use", most_hits(uses, capacity)), ("lru", lru_hits(uses, capacity))]:
        cache = SampleCache(pairs(6), capacity, evict)
        cache.foresee(np.array(uses, dtype=np.int64))
        assert [cache[index] for index in uses] == [(index, -index) for index in uses]
        assert (cache.hits, cache.misses) == (hits, len(uses) - hits)


def test_a_loader_that_reads_every_sample_in_every_epoch_has_capacity_hits_an_epoch() -> None:
    for n, capacity, batch_size, shuffle, lookahead in [
        (37, 11, 5, True, 0),
        (37, 11, 5, False, 2),
        (23, 23, 4, True, 1),
    ]:
        with naming(n, capacity, shuffle, lookahead):
            cache = SampleCache(pairs(n), capacity)
            loader = DataLoader(cache, batch_size, shuffle=shuffle, seed=6, lookahead=lookahead)
            for epoch in range(4):
                assert sorted(int(x) for batch in loader for x in batch.x) == list(range(n))
                assert (cache.hits, cache.misses) == (capacity * epoch, n + (n - capacity) * epoch)


def test_lru_has_no_hits_where_samples_come_in_the_same_order_in_each_epoch() -> None:
    cache = SampleCache(pairs(12), 11, "lru")
    loader = DataLoader(cache, 5)
    assert [len(list(loader)) for _ in range(3)] == [3, 3, 3]
    assert (cache.hits, cache.misses) == (0, 36)


def test_of_a_shuffle_that_ranks_share_out_the_loader_announces_nearly_all_that_is_to_know() -> None:
    n, ranks, capacity, epochs = 124, 3, 25, 9
    uses = [DistributedSampler(n, ranks, 1, seed=8) for _ in range(epochs)]
    for epoch, sampler in enumerate(uses):
        sampler.set_epoch(epoch)
    uses = [index for sampler in uses for index in sampler]
    most = SampleCache(pairs(n), capacity)
    most.foresee(np.array(uses))
    assert [most[index][0] for index in uses] == uses
    for options in (
        {"batch_size": 2 * ranks, "shuffle": True, "seed": 8, "rank": 1, "num_replicas": ranks},
        {"batch_size": 2, "sampler": DistributedSampler(n, ranks, 1, seed=8)},
    ):
        with naming(options):
            cache = SampleCache(pairs(n), capacity)
            loader = DataLoader(cache, **options)
            read = []
            for epoch in range(epochs):
                loader.set_epoch(epoch)
                read += [int(x) for batch in loader for x in batch.x]
            assert read == uses
            assert 2 * lru_hits(uses, capacity) < cache.hits <= most.hits < 1.1 * cache.hits


# ---- data read again against data kept ----


class RowsOfFile:
    """Rows of a file, the last number of each its class; each read takes time on the rank's clock."""

    seconds = 0.25
    width = 4

    def __init__(self, path: Path, rows: int, comm: cluster.Communicator) -> None:
        self.path, self.rows, self.comm = path, rows, comm
        self.nbytes = 0

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        self.comm.compute(seconds=self.seconds)
        row = np.fromfile(self.path, count=self.width, offset=index * self.width * 8)
        self.nbytes += row.nbytes
        return row[:-1], int(row[-1])


def logistic_regression(comm: cluster.Communicator, path: Path, n: int, capacity: int) -> tuple[np.ndarray, list, list]:
    rows = RowsOfFile(path, n, comm)
    model = nn.Linear(RowsOfFile.width - 1, 2).to("float64")
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    loader = DataLoader(SampleCache(rows, capacity) if capacity else rows, 8, shuffle=True, seed=2)
    seconds, nbytes = [comm.now()], [0]
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        seconds.append(comm.now())
        nbytes.append(rows.nbytes)
    return model.weight.numpy().copy(), np.diff(seconds).tolist(), np.diff(nbytes).tolist()


def test_an_epoch_over_kept_rows_saves_their_reads_from_the_second_epoch_on_with_the_same_weights(
    tmp_path: Path,
) -> None:
    n, part = 29, 12
    rng = np.random.default_rng(7)
    x = rng.normal(size=(n, RowsOfFile.width - 1))
    np.column_stack([x, x @ [1.5, -0.5, 2.2] > 0.1]).tofile(tmp_path / "rows")
    node = cluster.Node(flops_per_s=1e3, bytes_per_s=1e4)
    train = partial(cluster.launch, logistic_regression, nodes=1, on=cluster.Simulation(node=node))
    (again,), (whole,), (some,) = (train(args=(tmp_path / "rows", n, k)).results for k in (0, n, part))
    weights, seconds, nbytes = again
    assert nbytes == [n * RowsOfFile.width * 8] * 3
    assert seconds[2] > n * RowsOfFile.seconds  # the steps take time, too
    for kept, (w, s, b) in [(n, whole), (part, some)]:
        assert np.array_equal(w, weights)
        assert b == [(n - k) * RowsOfFile.width * 8 for k in (0, kept, kept)]
        assert np.subtract(seconds, s) == pytest.approx([0, kept * RowsOfFile.seconds, kept * RowsOfFile.seconds])


# ---- details ----


def test_kept_arrays_are_copies_in_memory_of_a_file_that_is_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(4, 3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r+")
    cache = SampleCache(Dataset(mapped, np.arange(4)), 2)
    x, y = cache[-1]
    mapped[3] = 0
    assert cache[3][0].tolist() == x.tolist() == [9, 10, 11]
    assert (y, cache.hits, cache.misses) == (3, 1, 1)


def test_a_failed_read_is_not_kept_and_a_pickled_cache_is_empty() -> None:
    samples: list = [(1.5, 0), "damaged"]
    cache = SampleCache(samples, 2, "lru")
    with pytest.raises(TypeError, match=r"item 1 of the list should be \(sample, target\)"):
        list(DataLoader(cache, 2))
    samples[1] = (2.5, 1)
    assert (cache[1], cache[0]) == (samples[1], samples[0])
    assert (cache.hits, cache.misses) == (1, 2)
    copied = pickle.loads(pickle.dumps(cache))
    assert (copied.capacity, copied.evict, copied.hits, copied.misses) == (2, "lru", 0, 0)
    assert copied[0] == cache[0]


def test_uses_that_are_all_hits_do_not_fill_the_memory() -> None:
    cache = SampleCache(pairs(3), 3, "lru")
    for index in range(500):
        assert cache[index % 3][0] == index % 3
    assert cache.misses == 3
    assert len(cache._queue) <= 2 * 3


def test_impossible_caches_are_refused() -> None:
    assert_refused(
        [
            (lambda: SampleCache(pairs(3), 0), ValueError, "capacity must be at least 1, got 0"),
            (lambda: SampleCache(pairs(3), 2, "fifo"), ValueError, "evict must be 'next_use' or 'lru', got 'fifo'"),
            (lambda: SampleCache(np.zeros((3, 2))), TypeError, "samples with their targets, not one ndarray"),
            (lambda: SampleCache(data.digits()), TypeError, "give splits.train or splits.test"),
            (lambda: SampleCache(pairs(3))[3], IndexError, "index out of range"),
        ]
    )
