"""The loss w^2 / 2 of a single weight: its gradient is w, and linear algebra says what any strategy does with it."""

from __future__ import annotations

from functools import partial

import numpy as np

from minidl import nn, optim
from minidl.data import Dataset, Splits
from minidl.parallel import Job


class Point(nn.Module):
    """One weight, 1 at first; its output is the weight, once a sample."""

    def __init__(self, dtype: type = np.float64) -> None:
        self.w = nn.Parameter(np.ones(1, dtype))

    def forward(self, x):
        return x * self.w


def half_square(outputs, labels):
    return (outputs * outputs).mean() * 0.5


def ones(samples: int) -> Splits:
    x = np.ones((samples, 1))
    return Splits(Dataset(x, x), Dataset(x[:1], x[:1]))


def quadratic_job(samples: int, lr: float, **changes) -> Job:
    """An epoch over so many equal samples."""
    settings = {"batch_size": 1, "epochs": 1, "loss": half_square}
    return Job(model=Point, data=partial(ones, samples), optimizer=partial(optim.SGD, lr=lr), **(settings | changes))
