"""Small jobs for the tests of strategies: module-level functions, so that every way of starting ranks can have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from minidl import nn, optim
from minidl.data import Dataset, Splits
from minidl.parallel import Job, Report
from minidl.parallel.run.session import Session


def blobs(n: int = 60, dtype: str = "float64") -> Splits:
    """Three Gaussian clouds in five dimensions; n training samples."""
    rng = np.random.default_rng(7)
    y = np.arange(n + 30) % 3
    x = (rng.normal(size=(n + 30, 5)) + 2 * np.eye(3, 5)[y]).astype(dtype)
    return Splits(Dataset(x[:n], y[:n]), Dataset(x[n:], y[n:]), classes=("a", "b", "c"))


def tokens(symbols: int) -> Splits:
    """Six symbols and what follows from each; 26 samples for training leave a last minibatch of 2, by 8 or 12."""
    x = np.random.default_rng(3).integers(symbols, size=(40, 6))
    return Splits(*(Dataset(x[half], (x[half] * 5 + 1) % symbols) for half in (slice(26), slice(26, 40))))


def two_layers(dropout: float = 0.0) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 3)).double()


def normalized() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3)).double()


def wide(hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(5, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Linear(hidden, 3)).double()


def momentum_sgd(parameters, lr: float = 0.1):
    return optim.SGD(parameters, lr=lr, momentum=0.9, weight_decay=1e-3)


def two_groups(parameters) -> optim.Optimizer:
    """AdamW that decays matrices only; neither the groups nor the matrices are in the order of the model."""
    vectors = [parameter for parameter in parameters if parameter.ndim < 2]
    matrices = [parameter for parameter in reversed(parameters) if parameter.ndim >= 2]
    return optim.AdamW([{"params": vectors, "weight_decay": 0.0}, {"params": matrices, "lr": 3e-3}], lr=1e-2)


def decay(optimizer, steps_per_epoch: int):
    return optim.StepLR(optimizer, step_size=2 * steps_per_epoch, gamma=0.5)


def small_job(**changes) -> Job:
    """Trains in a fraction of a second; 60 samples in minibatches of 16 leave a last one of 12."""
    settings = {
        "model": two_layers,
        "data": blobs,
        "optimizer": momentum_sgd,
        "schedule": decay,
        "batch_size": 16,
        "epochs": 3,
        "seed": 1,
    }
    return Job(**(settings | changes))


def dropout_job(**changes) -> Job:
    return small_job(model=partial(two_layers, 0.5), **changes)


def plain_job(lr: float = 0.1, **changes) -> Job:
    """Plain SGD at one rate."""
    return small_job(**({"optimizer": partial(optim.SGD, lr=lr), "schedule": None} | changes))


def take(session: Session, seconds: Callable[[], float]) -> None:
    """From now on each gradient of this rank takes as many simulated seconds as this function then says."""
    local_loss = session.local_loss

    def timed(batch):
        session.comm.compute(seconds=seconds())
        return local_loss(batch)

    session.local_loss = timed


def assert_same_run(report: Report, truth: Report, tolerance: float = 1e-10) -> None:
    """Both end with the same weights and buffers after the same epochs; weights and losses within the tolerance."""
    for name, array in truth.checkpoint.model.items():
        np.testing.assert_allclose(report.checkpoint.model[name], array, rtol=0, atol=tolerance, err_msg=name)
    for row, true in zip(report.history, truth.history, strict=True):
        for name in ("loss", "test_loss"):
            np.testing.assert_allclose(row[name], true[name], rtol=tolerance, err_msg=name)
        for name in ("epoch", "accuracy", "lr", "steps", "samples"):
            np.testing.assert_equal(row[name], true[name], err_msg=name)  # an accuracy may be nan


def assert_same_bits(report: Report, truth: Report) -> None:
    assert_same_run(report, truth, tolerance=0)
    assert report.digests == truth.digests


def weights(report: Report) -> np.ndarray:
    """The arrays of the trained model as one vector."""
    return np.concatenate([array.reshape(-1) for array in report.checkpoint.model.values()])
