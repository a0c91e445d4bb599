"""Minibatches that a thread reads in advance: the same ones, in the same order, within a limit."""

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from minidl import no_grad
from minidl.data import DataLoader, Dataset, DistributedSampler
from minidl.data.read_ahead import read_ahead
from minidl.grad_mode import is_grad_enabled
from tests.together import naming

pytestmark = pytest.mark.timeout(300)

N = 37


class Samples:
    """Samples with the pair (index, (whether gradients are recorded)); `before` is called before each is read."""

    def __init__(self, before: Callable[[int], object] = lambda index: None) -> None:
        self.before = before
        self.read: list[int] = []

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> tuple[int, bool]:
        self.before(index)
        self.read.append(index)
        return index, is_grad_enabled()


def assert_no_thread_reads() -> None:
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("minidl read ahead")]


def test_minibatches_read_ahead_are_those_read_when_wanted_in_every_epoch() -> None:
    dataset = Dataset(np.random.default_rng(5).normal(size=(N, 3)), np.arange(N))
    for lookahead in (1, 2, 50):
        for options in (
            {"shuffle": True, "seed": 3},
            {"shuffle": True, "rank": 2, "num_replicas": 3},
            {"sampler": DistributedSampler(N, 2, 1, seed=4)},
            {"order": lambda epoch: np.roll(np.arange(N), epoch), "drop_last": True},
        ):
            with naming(lookahead, options):
                wanted, ahead = (DataLoader(dataset, 5, lookahead=k, **options) for k in (0, lookahead))  # type: ignore[arg-type]
                for epoch in range(2):
                    for loader in (wanted, ahead):
                        loader.set_epoch(epoch)
                    for expected, batch in zip(wanted, ahead, strict=True):
                        np.testing.assert_array_equal(batch.x, expected.x)
                        np.testing.assert_array_equal(batch.y, expected.y)
                        assert (batch.total, batch.weight) == (expected.total, expected.weight)
    assert_no_thread_reads()


def test_the_next_minibatches_are_read_before_they_are_asked_for() -> None:
    last_of_three, further = threading.Event(), threading.Event()

    def before(index: int) -> None:
        if index == 15:
            last_of_three.set()
        if index == 16:
            further.wait(timeout=120)

    samples = Samples(before)
    batches = iter(DataLoader(samples, 4, lookahead=3))
    assert next(batches).x.tolist() == [0, 1, 2, 3]
    assert last_of_three.wait(timeout=60)
    assert [next(batches).x[0] for _ in range(3)] == [4, 8, 12]
    assert samples.read == list(range(16))  # what was asked for was in memory, every time
    further.set()
    assert sum(len(batch.x) for batch in batches) == N - 16


def test_reads_begin_at_most_lookahead_minibatches_in_advance() -> None:
    begun = []

    def reads() -> Iterator[Callable[[], int]]:
        for i in range(9):
            begun.append(i)
            yield lambda i=i: i

    for i, value in enumerate(read_ahead(reads(), lookahead=3)):
        assert (value, len(begun)) == (i, min(i + 1 + 3, 9))


def test_an_exception_of_a_read_is_raised_at_its_minibatch_and_ends_the_thread() -> None:
    def refuse(index: int) -> None:
        if index == 13:
            raise OSError(f"sample {index} is damaged")

    got = []
    with pytest.raises(OSError, match="sample 13 is damaged"):
        for batch in DataLoader(Samples(refuse), 5, lookahead=4):
            got += batch.x.tolist()
    assert got == list(range(10))
    assert_no_thread_reads()


def test_a_loop_that_is_left_early_ends_the_thread_and_the_next_pass_is_whole() -> None:
    loader = DataLoader(Samples(), 5, lookahead=2)
    for batch in loader:
        assert len(batch.x) == 5
        break
    del batch
    assert_no_thread_reads()
    assert sum(len(batch.x) for batch in loader) == N


def test_samples_are_read_in_the_grad_mode_of_the_program() -> None:
    with no_grad():
        assert not any(y.any() for _, y in DataLoader(Samples(), 5, lookahead=2))
    assert all(y.all() for _, y in DataLoader(Samples(), 5, lookahead=2))
