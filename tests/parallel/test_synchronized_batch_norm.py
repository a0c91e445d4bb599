"""Batch norm on many nodes: over each node's own part, or over the whole minibatch."""

from functools import partial

import numpy as np
import pytest

from minidl import amp, nn, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import Serial, Synchronous
from minidl.parallel.data_parallel.synchronized_batch_norm import SynchronizedBatchNorm, synchronized
from tests.parallel.jobs import momentum_sgd, small_job


def images(n: int = 50) -> Splits:
    rng = np.random.default_rng(3)
    y = np.arange(n + 12) % 3
    x = rng.normal(size=(n + 12, 2, 4, 4)) + y[:, None, None, None]
    return Splits(Dataset(x[:n], y[:n]), Dataset(x[n:], y[n:]))


class Convolutional(nn.Module):
    """Batch norm twice, once in a child, and one layer under two names."""

    def __init__(self, momentum: float | None = 0.1) -> None:
        self.first = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4, momentum=momentum))
        self.norm = nn.BatchNorm2d(4, momentum=momentum)
        self.again = self.norm
        self.last = nn.Linear(64, 3)
        self.double()

    def forward(self, x):
        x = self.norm(self.first(x).relu())
        return self.last(self.again(x).tanh().reshape(len(x), -1))


def job(**changes):
    return small_job(**{"model": Convolutional, "data": images, "optimizer": momentum_sgd} | changes)


def difference(a: parallel.Report, b: parallel.Report) -> float:
    """The largest of any weight or running statistic."""
    pairs = zip(a.checkpoint.model.values(), b.checkpoint.model.values(), strict=True)
    return max(float(np.abs(x - y).max()) for x, y in pairs)


@pytest.mark.parametrize(("nodes", "overlap"), [(3, True), (5, False)])
def test_synchronised_nodes_equal_one_node_running_statistics_included(nodes, overlap):
    this = job()  # 16, 16, 16 and 2 samples: parts are unequal, and in the end empty
    truth = parallel.train(this, Serial(), on="simulation")
    strategy = Synchronous(1e-6, overlap=overlap, batch_norm="synchronized")
    report = parallel.train(this, strategy, nodes, on="simulation")
    assert difference(report, truth) < 1e-10
    assert len(set(report.digests)) == 1
    assert difference(parallel.train(this, Synchronous(), nodes, on="simulation"), truth) > 1e-3


class Dense(nn.Module):
    """Batch norm of features and of sequences: with and without weights and running statistics."""

    def __init__(self) -> None:
        self.first, self.norm = nn.Linear(32, 12), nn.BatchNorm1d(12)
        self.sequence = nn.BatchNorm1d(4, momentum=None, affine=False)
        self.plain = nn.BatchNorm1d(12, track_running_stats=False)
        self.last = nn.Linear(12, 3)
        self.double()

    def forward(self, x):
        x = self.norm(self.first(x.reshape(len(x), -1))).tanh()
        x = self.sequence(x.reshape(len(x), 4, 3)).reshape(len(x), -1)
        return self.last(self.plain(x).relu())


def test_batch_norm_of_features_and_sequences_is_synchronised_too():
    this = job(model=Dense)
    truth = parallel.train(this, Serial(), on="simulation")
    report = parallel.train(this, Synchronous(1e-6, batch_norm="synchronized"), 3, on="simulation")
    assert difference(report, truth) < 1e-10


class Halved(nn.Module):
    """Convolutions and batch norm whose activations have 16 bits."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.layers = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 3))

    def forward(self, x):
        with amp.autocast(dtype=self.dtype):
            return self.layers(x)


def float32_images() -> Splits:
    splits = images()
    return Splits(*(Dataset(part.x.astype(np.float32), part.y) for part in (splits.train, splits.test)))


@pytest.mark.parametrize(("dtype", "rounding"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
def test_activations_in_16_bits_are_synchronised_with_statistics_in_float32(dtype, rounding):
    this = job(model=partial(Halved, dtype), data=float32_images, epochs=1)
    truth = parallel.train(this, Serial(), on="simulation")
    report = parallel.train(this, Synchronous(batch_norm="synchronized"), 3, on="simulation")
    assert difference(report, truth) < 8 * rounding
    assert len(set(report.digests)) == 1


def test_pieces_are_normalised_over_the_same_pieces_of_all_nodes():
    """Two nodes with two pieces each see the statistics of two minibatches of half the size, whatever is empty."""
    this = job(data=partial(images, 18))  # 16 samples, then 2: one a node, so that a piece is empty on both
    report = parallel.train(this, Synchronous(accumulate=2, batch_norm="synchronized"), 2, on="simulation")
    assert len(set(report.digests)) == 1
    assert report.checkpoint.model["norm.num_batches_tracked"] == 3 * (2 * 2 + 2)  # a layer used twice; three epochs


def test_a_shared_batch_norm_is_replaced_once_and_keeps_its_parameters_and_buffers():
    norm = nn.BatchNorm2d(3)
    model = nn.Sequential(norm, nn.Conv2d(3, 3, 1), norm)
    tensors, names = [*model.parameters(), *model.buffers()], list(model.state_dict())
    assert synchronized(model, None) is model
    assert isinstance(model[0], SynchronizedBatchNorm)
    assert model[0] is model[2]
    assert [*model.parameters(), *model.buffers()] == tensors
    assert list(model.state_dict()) == names
    assert isinstance(synchronized(norm, None), SynchronizedBatchNorm)


def test_a_single_value_a_channel_is_refused():
    def flat(n):
        x = np.ones((n, 2, 1, 1))
        return Splits(Dataset(x, np.zeros(n, int)), Dataset(x, np.zeros(n, int)))

    def model():
        return nn.Sequential(nn.BatchNorm2d(2), nn.Flatten()).double()

    this = small_job(model=model, data=partial(flat, 5), batch_size=4)  # the last minibatch has one sample
    with pytest.raises(Exception, match="needs more than one value per channel"):
        parallel.train(this, Synchronous(batch_norm="synchronized"), 2, on="simulation")
