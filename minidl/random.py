"""Random numbers: one stream for each purpose, so that no two purposes ever share a number.

`stream(Purpose.SHUFFLE, seed, epoch)` is a generator that depends on its arguments alone: on any rank, in any order, in
a run that was resumed. Numpy alone would not keep purposes apart: `default_rng(s)`, `default_rng((s, 0))` and
`default_rng((s, 0, 0))` are one stream, so a shuffle, the first weights and a dropout mask would share their numbers.

Code without a purpose of its own draws from `generator()`, which `manual_seed` starts anew.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from operator import index
from typing import Any

import numpy as np


class Purpose(Enum):
    """What random numbers are for, with the coordinates that follow the seed in `stream`."""

    MANUAL = "what `manual_seed` starts, and code outside this library: what that code likes"
    PROGRAM = "a rank's own program, `comm.rng`: rank"
    WEIGHTS = "a model's first weights: none; the same on all ranks"
    SHUFFLE = "the order of an epoch's samples: epoch; the same on all ranks"
    SHARDS = "which samples belong to which fixed shard: none; the same on all ranks"
    SHARD_SHUFFLE = "the order within a rank's fixed shard: epoch, rank"
    DROPOUT = "a layer's mask: epoch, step, replica, micro-batch, layer's name, number of the call"
    ROUNDING = "a compressor's own choices: epoch, rank, name of the parameter"
    COMMON_CHOICE = "entries that all ranks choose alike: the compressor's seed, epoch, name of the parameter, draw"
    POWER_ITERATION = "where a power iteration begins: as COMMON_CHOICE; the same on all ranks"
    MATCHING = "random pairs of nodes: step; the same on all ranks"
    NEIGHBOUR = "which neighbour a node asks: rank"
    QUORUM = "which node a partial collective waits for: step; the same on all ranks"
    JITTER = "how long a simulated node computes: rank"
    FAULT = "which bit a planned fault flips: rank, call, message"
    SPIRALS = "points on spirals: none"
    GLYPHS = "distorted letters: part (training or test)"
    SPARSE_ROWS = "generated sparse rows: none"
    GRADCHECK = "directions of finite differences: none"


def stream(purpose: Purpose, seed: int, *coordinates: int | str) -> np.random.Generator:
    """The generator of one purpose at one place of a run.

    Different arguments give independent streams, whatever their number and size: the generator's seed is the SHA-256
    hash of all of them.

    >>> stream(Purpose.SHUFFLE, 0, 1).integers(10, size=3), stream(Purpose.SHUFFLE, 0, 2).integers(10, size=3)
    (array([7, 2, 5]), array([0, 4, 3]))
    """
    exact = [index(seed), *(str(each) if isinstance(each, str) else index(each) for each in coordinates)]
    digest = hashlib.sha256(repr((purpose.name, *exact)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


# ---- the generator of code without a purpose of its own ----

_generator: ContextVar[np.random.Generator | None] = ContextVar("minidl_generator", default=None)


def manual_seed(seed: int | tuple[int, ...]) -> np.random.Generator:
    """Start this context's generator anew from a seed (or a tuple such as `(seed, rank, epoch)`) and return it.

    >>> manual_seed(0).integers(10, size=3)
    array([9, 9, 7])
    """
    fresh = stream(Purpose.MANUAL, *(seed if isinstance(seed, tuple) else (seed,)))
    use(fresh)
    return fresh


def use(fresh: np.random.Generator) -> None:
    """Make `fresh` this context's generator; a forward pass that was begun is over."""
    _generator.set(fresh)
    _forward.set(None)


def generator() -> np.random.Generator:
    """This context's generator; seeded from the operating system unless `manual_seed` was called.

    In a forward pass of `parallel.train` it is a stream of that pass alone.
    """
    forward = _forward.get()
    if forward is not None:
        return forward.of(None)
    current = _generator.get()
    if current is None:
        current = np.random.default_rng()
        _generator.set(current)
    return current


@contextmanager
def using(temporary: np.random.Generator) -> Iterator[None]:
    """Within the `with` block, `generator()` is `temporary`; afterwards it is the caller's again, where it was."""
    before, forward = _generator.set(temporary), _forward.set(None)
    try:
        yield
    finally:
        _generator.reset(before)
        _forward.reset(forward)


# ---- the masks of a training run ----


class ForwardPass:
    """The random numbers of one forward pass in a training run: every call of every layer has a stream of its own.

    names: each layer's name in the model, which does not depend on how a model is split over ranks.
    coordinates: seed, epoch, step, replica and micro-batch.
    """

    def __init__(
        self, names: Mapping[Any, str], seed: int, epoch: int, step: int, replica: int, micro_batch: int = 0
    ) -> None:
        self._names, self._place = names, (seed, epoch, step, replica, micro_batch)
        self._calls: Counter[str] = Counter()
        self._unnamed: np.random.Generator | None = None

    def of(self, layer: object) -> np.random.Generator:
        """The generator of this call of the layer; of code outside the named layers, one for the whole pass."""
        name = None if layer is None else self._names.get(layer)
        if name is None:
            if self._unnamed is None:
                self._unnamed = stream(Purpose.DROPOUT, *self._place)
            return self._unnamed
        self._calls[name] += 1  # a layer that a model calls twice has two masks
        return stream(Purpose.DROPOUT, *self._place, name, self._calls[name] - 1)


_forward: ContextVar[ForwardPass | None] = ContextVar("minidl_forward", default=None)


def begin_forward(forward: ForwardPass | None) -> None:
    """From here on, layers of this context draw from this forward pass; None: from `generator()` again."""
    _forward.set(forward)


def layer_generator(layer: object) -> np.random.Generator:
    """Where this call of the layer draws from: the forward pass of a training run; outside one, `generator()`."""
    forward = _forward.get()
    return generator() if forward is None else forward.of(layer)
