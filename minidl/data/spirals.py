"""Points on spiral arms: two inputs, so that the function that a network learned can be plotted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import real_number, whole_number
from minidl.data.dataset import Dataset, Splits
from minidl.random import Purpose, stream


def spirals(n: int = 1000, classes: int = 3, noise: float = 0.2, seed: int = 0) -> Splits:
    """Return points on spiral arms, one arm per class; a fifth of them is the test set.

    Parameters
        n          number of points, at least 5
        classes    number of arms, at least 2
        noise      standard deviation of the angle in radians
        seed       seed of the random numbers

    Returns
        Splits with points (n, 2) float32 and labels (n,) int64

    Arm k starts at the origin with angle 2 pi k / classes and turns by 4 radians on its way to radius 1. Class sizes
    differ by at most one.

    >>> train, test = spirals(n=100)
    >>> train.x.shape, test.x.shape
    ((80, 2), (20, 2))
    """
    whole_number("n", n, at_least=5)
    whole_number("classes", classes, at_least=2)
    whole_number("seed", seed, at_least=0)
    real_number("noise", noise, at_least=0)
    rng = stream(Purpose.SPIRALS, seed)
    labels = np.arange(n, dtype=np.int64) % classes
    radius = rng.uniform(0, 1, n)
    angle = 2 * np.pi * labels / classes + 4 * radius + noise * rng.standard_normal(n)
    points = (radius * np.stack([np.cos(angle), np.sin(angle)])).T.astype(np.float32)

    order = rng.permutation(n)
    names = tuple(str(k) for k in range(classes))

    def subset(name: str, chosen: NDArray[np.int64]) -> Dataset:
        return Dataset(points[chosen], labels[chosen], f"spirals, {name} set", names)

    return Splits(subset("training", order[n // 5 :]), subset("test", order[: n // 5]), names)
