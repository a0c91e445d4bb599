"""The inputs of ranks in a check: the order of the cases, vectors, and their division into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

Sizes = Sequence[tuple[int, int]]
"""Pairs (ranks, elements)."""

UNUSUAL = (-0.0, np.nan, np.inf, -np.inf, 5e-324, 1.7e308)
"""Numbers that a copy preserves and arithmetic may not."""


def telling_first(sizes: Sizes) -> list[tuple[int, int]]:
    """The cases in the order in which a wrong result identifies its mistake best: three ranks and long chunks first.

    With one or two ranks, or few elements, different mistakes give the same numbers.
    """

    def telling(size: tuple[int, int]) -> tuple[int, bool, float]:
        p, n = size
        return max(3 - p, 0), n == 0 or n % p > 0, -n / p**3

    return sorted(sizes, key=telling)


def random(seed: int | Sequence[int], n: int) -> np.ndarray:
    """n numbers, different on all ranks."""
    return np.random.default_rng(seed).standard_normal(n)


def vectors_of(p: int, n: int, seed: int) -> list[np.ndarray]:
    """A vector of n elements for each of p ranks; with infinite, huge and tiny numbers if p does not divide n."""
    vectors = [random((seed, rank), n) for rank in range(p)]
    if n % p and n >= len(UNUSUAL):
        for rank, x in enumerate(vectors):
            x[-3:] = (rank + 1) * 5e-324, (rank + 1) * 1e300, x[-1] if rank else np.inf
    return vectors


def to_be_copied(p: int, n: int, seed: int) -> np.ndarray:
    """A vector of n elements for p ranks to pass on, with unusual numbers in it if p does not divide n."""
    x = random(seed, n)
    if n % p and n >= len(UNUSUAL):
        x[-len(UNUSUAL) :] = UNUSUAL
    return x


def cut(x: np.ndarray, p: int) -> list[np.ndarray]:
    """x in p chunks: equal ones if p divides its length; else, unlike np.array_split, the last is the longest.

    The first has at least one element, unless p exceeds the length.
    """
    lengths = [len(chunk) for chunk in np.array_split(x, p)][::-1]
    if len(x) % p and lengths[0] > 1:
        lengths[0] -= 1
        lengths[-1] += 1
    return np.split(x, np.cumsum(lengths)[:-1])


def none_empty(chunks: Iterable[np.ndarray]) -> bool:
    """Whether every chunk has elements; an empty one need not be sent."""
    return all(len(chunk) for chunk in chunks)
