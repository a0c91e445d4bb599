"""Random numbers: one stream for each purpose, so that no two purposes share numbers.

`stream(Purpose.SHUFFLE, seed, epoch)` is a generator that depends on its arguments alone: on any rank, in any order, in
a resumed run. Seeds of numpy alone would not separate purposes: `default_rng(s)`, `default_rng((s, 0))` and
`default_rng((s, 0, 0))` are one stream, so that a shuffle, the initial weights and a dropout mask would share numbers.

Code without its own purpose draws from `generator()`, which `manual_seed` restarts.
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from operator import index
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minidl.arguments import whole_number

_T = TypeVar("_T")


class Purpose(Enum):
    """The uses of random numbers. Each text names the use and the coordinates that follow the seed in `stream`."""

    MANUAL = "`manual_seed`, and code outside this library: any coordinates"
    PROGRAM = "a rank's own program, `comm.rng`: rank"
    WEIGHTS = "a model's initial weights: none; the same on all ranks"
    SHUFFLE = "the order of an epoch's samples: epoch; the same on all ranks"
    SHARDS = "the assignment of samples to fixed shards: none; the same on all ranks"
    SHARD_SHUFFLE = "the order within a rank's fixed shard: epoch, rank"
    DROPOUT = "a layer's mask: epoch, step, replica, micro-batch; layer's name and number of the call, or the stage"
    ROUNDING = "a compressor's choices on one rank: epoch, rank, name of the parameter"
    COMMON_CHOICE = "a compressor's choices that all ranks share: its seed, epoch, name of the parameter, draw"
    REST_OF_EPOCH = "the seed of compressors that begin within an epoch: epoch, step; the same on all ranks"
    POWER_ITERATION = "the start of a power iteration: as COMMON_CHOICE; the same on all ranks"
    MATCHING = "random pairs of nodes: step; the same on all ranks"
    NEIGHBOUR = "the neighbour that a node asks: rank"
    QUORUM = "the node that a partial collective waits for: step; the same on all ranks"
    JITTER = "the variation of a simulated node's speed: rank"
    FAULT = "the bit that a planned fault flips: rank, call, message"
    TEST_SET = "the samples of a file of one's own that are for testing: none"
    SPIRALS = "points on spirals: none"
    GLYPHS = "distorted letters: set (training or test)"
    SPARSE_ROWS = "generated sparse rows: none"
    BENCHMARK = "minibatches that `python -m benchmarks` trains on, arrays of operations that are timed: none"
    GRADCHECK = "directions of finite differences: none"
    BOOTSTRAP = "which runs a bootstrap draws: how many runs there are"
    TRIAL_MAPS = "maps on which code is tried, whole and in tiles: none"


def stream(purpose: Purpose, seed: int, *coordinates: int | str) -> np.random.Generator:
    """Return the generator of a purpose at the given coordinates of a run.

    Different arguments give independent streams: the generator's seed is the SHA-256 hash of all of them.

    >>> stream(Purpose.SHUFFLE, 0, 1).integers(10, size=3), stream(Purpose.SHUFFLE, 0, 2).integers(10, size=3)
    (array([7, 2, 5]), array([0, 4, 3]))
    """
    exact = [index(seed), *(str(each) if isinstance(each, str) else index(each) for each in coordinates)]
    digest = hashlib.sha256(repr((purpose.name, *exact)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


# ---- the generator of code without a purpose of its own ----

_generator: ContextVar[np.random.Generator | None] = ContextVar("minidl_generator", default=None)


def manual_seed(seed: int | tuple[int, ...]) -> np.random.Generator:
    """Restart this context's generator from a seed, or a tuple such as `(seed, rank, epoch)`, and return it.

    >>> manual_seed(0).integers(10, size=3)
    array([9, 9, 7])
    """
    numbers = seed if isinstance(seed, tuple) else (seed,)
    fresh = stream(Purpose.MANUAL, *(whole_number("seed", number) for number in numbers))
    use(fresh)
    return fresh


def use(fresh: np.random.Generator) -> None:
    """Make `fresh` this context's generator and end its forward pass, if there is one."""
    _generator.set(fresh)
    _forward.set(None)


def generator() -> np.random.Generator:
    """Return this context's generator; without `manual_seed` the operating system seeds it.

    In a forward pass of `parallel.train`, it is the stream of that pass and of the running stage.
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
    """Make `temporary` this context's generator within the `with` block; afterwards the previous one continues."""
    before, forward = _generator.set(temporary), _forward.set(None)
    try:
        yield
    finally:
        _generator.reset(before)
        _forward.reset(forward)


# ---- the masks of a training run ----


class ForwardPass:
    """The random numbers of one forward pass in a training run: each call of each layer has its own stream.

    Draws outside a named layer, such as `F.dropout` in a model's own code, share one stream per stage of the model.

    Parameters
        names          maps a layer to its name in the model, which does not depend on how the model is split over ranks
        seed, epoch, step, replica, micro_batch    coordinates of the pass

    Attributes
        stage    number of the stage that runs, then that of the stage within it, and so on; `stage_by_stage` sets it
    """

    def __init__(
        self, names: Mapping[Any, str], seed: int, epoch: int, step: int, replica: int, micro_batch: int = 0
    ) -> None:
        self._names, self._place = names, (seed, epoch, step, replica, micro_batch)
        self._calls: Counter[str] = Counter()
        self.stage: tuple[int, ...] = ()
        self._of_stages: dict[tuple[int, ...], np.random.Generator] = {}

    def of(self, layer: object) -> np.random.Generator:
        """Return the generator of this call of the layer; code outside the named layers shares one per stage."""
        name = None if layer is None else self._names.get(layer)
        if name is None:
            if self.stage not in self._of_stages:
                self._of_stages[self.stage] = stream(Purpose.DROPOUT, *self._place, *self.stage)
            return self._of_stages[self.stage]
        self._calls[name] += 1  # a layer that is called twice has two masks
        return stream(Purpose.DROPOUT, *self._place, name, self._calls[name] - 1)

    def copy(self) -> ForwardPass:
        """An independent copy, at the same point of the pass."""
        other = ForwardPass(self._names, *self._place)
        other._calls, other.stage, other._of_stages = self._calls.copy(), self.stage, copy.deepcopy(self._of_stages)
        return other


_forward: ContextVar[ForwardPass | None] = ContextVar("minidl_forward", default=None)


def begin_forward(forward: ForwardPass | None) -> None:
    """Let the layers of this context draw from `forward` from now on; None: from `generator()`."""
    _forward.set(forward)


def stage_by_stage(stages: Iterable[_T], first: int = 0) -> Iterator[_T]:
    """Yield the stages of a model; in a training run, each stage draws from a stream of its own.

    first: number of the first stage in the whole model, so that a stage has the same stream wherever the model is cut.
    """
    forward = _forward.get()
    if forward is None:
        yield from stages
        return
    outer = forward.stage
    try:
        for number, stage in enumerate(stages, first):
            forward.stage = (*outer, number)
            yield stage
    finally:
        forward.stage = outer


def layer_generator(layer: object) -> np.random.Generator:
    """Return the generator for this call of the layer: the forward pass's; outside a training run `generator()`."""
    forward = _forward.get()
    return generator() if forward is None else forward.of(layer)


# ---- replaying ----


class Snapshot(NamedTuple):
    """The state of this context's random numbers: its forward pass, or else its generator."""

    generator: np.random.Generator | None
    forward: ForwardPass | None


def snapshot() -> Snapshot:
    """Return the state of this context's random numbers, for `replaying`.

    >>> before = snapshot()
    >>> first = generator().integers(1000, size=3)
    >>> with replaying(before):
    ...     again = generator().integers(1000, size=3)
    >>> bool((first == again).all())
    True
    """
    forward = _forward.get()
    if forward is not None:  # nothing draws from this context's own generator
        return Snapshot(None, forward.copy())
    return Snapshot(copy.deepcopy(generator()), None)


@contextmanager
def replaying(then: Snapshot) -> Iterator[None]:
    """Repeat the random numbers drawn after the snapshot within the `with` block; then continue as before it."""
    forward = _forward.set(None if then.forward is None else then.forward.copy())
    before = _generator.set(copy.deepcopy(then.generator))
    try:
        yield
    finally:
        _generator.reset(before)
        _forward.reset(forward)
