"""Points on the arms of a spiral: two inputs, so that what a network has learned can be drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from minidl.data.checks import at_least
from minidl.data.dataset import Dataset, Splits
from minidl.random import Purpose, stream


def spirals(n: int = 1000, classes: int = 3, noise: float = 0.2, seed: int = 0) -> Splits:
    """`n` points (n, 2) float32 on `classes` spiral arms, a fifth of them held out as the test set; labels int64.

    Arm k starts at the origin with angle 2 pi k / classes and turns by 4 radians on its way to radius 1; `noise` is the
    standard deviation of the angle in radians. Labels take turns, so the classes are equally large (to within one).

    >>> train, test = spirals(n=100)
    >>> train.x.shape, test.x.shape
    ((80, 2), (20, 2))
    """
    at_least("n", n, 5)
    at_least("classes", classes, 2)
    at_least("seed", seed, 0)
    if not noise >= 0:
        raise ValueError(f"noise must be a standard deviation, 0 or more, not {noise}")
    rng = stream(Purpose.SPIRALS, seed)
    labels = np.arange(n, dtype=np.int64) % classes
    radius = rng.uniform(0, 1, n)
    angle = 2 * np.pi * labels / classes + 4 * radius + noise * rng.standard_normal(n)
    points = (radius * np.stack([np.cos(angle), np.sin(angle)])).T.astype(np.float32)

    order = rng.permutation(n)
    names = tuple(str(k) for k in range(classes))

    def part(name: str, chosen: NDArray[np.int64]) -> Dataset:
        return Dataset(points[chosen], labels[chosen], f"spirals, {name} set", names)

    return Splits(part("training", order[n // 5 :]), part("test", order[: n // 5]), names)
