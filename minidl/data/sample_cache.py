"""SampleCache: samples that were read once are kept in memory, within a limit, and not read again."""

from __future__ import annotations

import heapq
import math
import operator
import threading
from collections import defaultdict, deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import one_of, whole_number
from minidl.data.pairs import Pairs, checked, pair

Priority = tuple[float, int]
"""(-place of the next use, time of the last use): the smallest one is evicted."""


class SampleCache:
    """A dataset that keeps samples of another one, whose reads are slow, in memory.

    Parameters
        dataset     the dataset to read from, as for `DataLoader`
        capacity    samples to keep at most; default: all
        evict       which sample leaves a full cache
                    "next_use"   the one whose next use is furthest in the future (Belady), which may be the one just
                                 read. A `DataLoader` announces the uses: its seed decides them
                    "lru"        the one whose last use is furthest in the past

    Attributes
        hits, misses    uses of samples that were in memory, and of samples that were read

    Where every epoch uses the same samples, `capacity` hits an epoch are possible, and "next_use" has them. Where the
    ranks share out every shuffle, a sample returns to a rank every `num_replicas` epochs on average, and the loader
    announces that many epochs. It then asks `order` and the sampler for later epochs, too.

    Kept arrays are copies. A pickled cache leaves them out.

    References
        Belady, A study of replacement algorithms for a virtual-storage computer (1966); Dryden et al., Clairvoyant
        prefetching for distributed machine learning I/O (arXiv:2101.08734).

    >>> from minidl.data import DataLoader, SampleCache
    >>> squares = SampleCache([(i, i * i) for i in range(10)], capacity=4)
    >>> loader = DataLoader(squares, batch_size=3)
    >>> for epoch in range(3):
    ...     batches = list(loader)
    >>> squares.hits, squares.misses
    (8, 22)
    """

    def __init__(self, dataset: Pairs, capacity: int | None = None, evict: str = "next_use") -> None:
        self.dataset = checked(dataset)
        self.capacity = len(dataset) if capacity is None else whole_number("capacity", capacity, at_least=1)
        self.evict = one_of("evict", evict, ("next_use", "lru"))
        self.hits = self.misses = 0
        self._kept: dict[int, tuple[Any, Any]] = {}
        self._places: dict[int, deque[int]] = {}
        self._priorities: dict[int, Priority] = {}
        self._queue: list[tuple[Priority, int]] = []  # those of `_priorities`, and outdated ones
        self._lock = threading.Lock()  # a loader may read in a thread

    def __reduce__(self) -> tuple[Any, ...]:
        return SampleCache, (self.dataset, self.capacity, self.evict)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        index = range(len(self))[operator.index(index)]
        with self._lock:
            if index in self._kept:
                self.hits += 1
            else:
                x, y = pair(self.dataset, index)
                self._kept[index] = _own(x), _own(y)
                self.misses += 1
            item = self._kept[index]
            if places := self._places.get(index):
                places.popleft()
            self._set_priority(index, self.hits + self.misses)
            while len(self._kept) > self.capacity:
                priority, candidate = heapq.heappop(self._queue)
                if self._priorities.get(candidate) == priority:
                    del self._kept[candidate], self._priorities[candidate]
            if len(self._queue) > 2 * len(self._kept):
                self._queue = [(priority, kept) for kept, priority in self._priorities.items()]
                heapq.heapify(self._queue)
        return item

    def foresee(self, uses: NDArray[np.int64]) -> None:
        """Announce the samples that will be used from now on, in order. A `DataLoader` does so at each `iter()`."""
        with self._lock:
            self._places = defaultdict(deque)
            for place, index in enumerate(uses.tolist() if self.evict == "next_use" else ()):
                self._places[index].append(place)
            for index, (_, last) in self._priorities.items():
                self._set_priority(index, last)

    def _set_priority(self, index: int, last: int) -> None:
        places = self._places.get(index)
        self._priorities[index] = (-places[0] if places else -math.inf, last)
        heapq.heappush(self._queue, (self._priorities[index], index))


def _own(value: Any) -> Any:
    """A copy of an array: a view would not be in memory, or would keep all of its base there."""
    return np.array(value) if isinstance(value, np.ndarray) else value
