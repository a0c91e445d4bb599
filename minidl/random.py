"""The random numbers of initialisation and dropout: one generator a context, so that ranks never share one."""

from __future__ import annotations

from contextvars import ContextVar

import numpy as np

_generator: ContextVar[np.random.Generator | None] = ContextVar("minidl_generator", default=None)


def manual_seed(seed: int | tuple[int, ...]) -> np.random.Generator:
    """Start this context's generator anew from a seed (or a tuple such as `(seed, rank, epoch)`) and return it.

    >>> manual_seed(0).integers(10, size=3)
    array([8, 6, 5])
    """
    fresh = np.random.default_rng(seed)
    _generator.set(fresh)
    return fresh


def generator() -> np.random.Generator:
    """This context's generator; seeded from the operating system unless `manual_seed` was called."""
    current = _generator.get()
    if current is None:
        current = np.random.default_rng()
        _generator.set(current)
    return current


def use_generator(fresh: np.random.Generator) -> None:
    """Make `fresh` this context's generator."""
    _generator.set(fresh)
