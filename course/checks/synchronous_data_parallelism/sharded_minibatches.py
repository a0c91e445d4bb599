"""Compares the shards of all ranks with the minibatches of the serial run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, expect
from course.judging.wrong import Wrong
from course.plural import counted

Indices = NDArray[np.int64]

Case = tuple[int, int, int]
"""(n, batch_size, p)"""

EPOCHS = ((0, 0), (0, 3), (1, 3))
"""What is added to the seed, and the number of the epoch."""

MOST_NAMED = 5
MOST_SAMPLES = 2**62


def order_of(n: int, seed: int, epoch: int) -> Indices:
    """The serial run's order, as the assignment's `epoch_order` gives it."""
    return np.random.default_rng((seed, epoch)).permutation(n)


def minibatches_of(n: int, batch_size: int, seed: int, epoch: int) -> list[Indices]:
    """The serial run's minibatches of an epoch."""
    order = order_of(n, seed, epoch)
    firsts = range(0, n, batch_size)
    return [order[slice(first, first + batch_size)] for first in firsts]


class Epoch:
    """What the ranks read in one epoch of a case, as the answer says.

    shards[rank][k]: the samples of minibatch k that this rank reads.
    """

    def __init__(self, answer: Answer, case: Case, seed: int, epoch: int) -> None:
        self.n, self.batch_size, self.p = case
        self.minibatches = minibatches_of(self.n, self.batch_size, seed, epoch)
        self.settings = f"n={self.n}, batch_size={self.batch_size}, p={self.p}, {{}}seed={seed}, epoch={epoch}"
        self.shards = [
            shards_in(answer(self.n, self.batch_size, self.p, rank, seed, epoch), self.called(rank))
            for rank in range(self.p)
        ]

    def called(self, rank: int) -> str:
        """The call for one rank, for messages."""
        return f"sharded_sampler({self.settings.format(f'rank={rank}, ')})"

    @property
    def together(self) -> str:
        """All ranks' calls."""
        return f"sharded_sampler on all {counted(self.p, 'rank')}, {self.settings.format('')}"


def shards_in(value: Any, called: str) -> list[Indices]:
    """The returned arrays of sample numbers, or Wrong."""
    shards = []
    for k, item in enumerate(expect.listed(value, called, "a list of arrays")):
        shard = indices_in(item)
        if shard is None:
            raise Wrong(
                f"{called}, item {k} of the list: expected an array of sample numbers, got {expect.shown(item)}."
            )
        shards.append(shard)
    return shards


def indices_in(item: Any) -> Indices | None:
    """The sample numbers of a returned shard, as an array; None if it is no shard."""
    if isinstance(item, (list, tuple)):
        if not all(isinstance(each, (int, np.integer)) and abs(each) < MOST_SAMPLES for each in item):
            return None
        return np.array(item, np.int64)
    if not isinstance(item, np.ndarray) or item.ndim != 1 or (item.size and item.dtype.kind not in "iu"):
        return None
    return item.astype(np.int64)


def each_sample_once(epoch: Epoch) -> None:
    """Raise Wrong unless every sample is read exactly once by all ranks together."""
    read = Counter(int(sample) for own in epoch.shards for shard in own for sample in shard)
    unknown = sorted(sample for sample in read if not 0 <= sample < epoch.n)
    missing = [sample for sample in range(epoch.n) if not read[sample]]
    repeated = sorted(sample for sample, times in read.items() if times > 1)
    if unknown:
        raise Wrong(f"{epoch.together}: sample {unknown[0]} is read; there are samples 0 to {epoch.n - 1}.")
    if repeated:
        raise Wrong(
            f"{epoch.together}: {named(repeated)} read more than once in the epoch"
            + (f", and {named(missing)} not at all." if missing else "."),
            "A rank reads one sample several times itself: were the numbers changed, or cut to a smaller type?"
            if missing and any(Counter(map(int, np.concatenate(own))).most_common(1)[0][1] > 1 for own in epoch.shards)
            else "Each rank has a shuffle of its own: then shards overlap. All ranks need the same order."
            if missing
            else "Were samples repeated to make the shards equally long (padding)? A shard may be shorter, or empty.",
        )
    if missing:
        rest = epoch.minibatches[-1]
        last_only = set(missing) == {int(sample) for sample in rest}
        raise Wrong(
            f"{epoch.together}: {named(missing)} not read in the epoch.",
            "These are the samples of the last, shorter minibatch: it belongs to the epoch, too."
            if last_only and len(rest) < epoch.batch_size
            else "Where the number of samples is not divisible by p, the rest has to be read, too.",
        )


def named(samples: Sequence[int]) -> str:
    """`sample 3 is`, `samples 1, 4, 5, 7, 9 and 3 more are`."""
    first = ", ".join(map(str, samples[:MOST_NAMED]))
    more = f" and {len(samples) - MOST_NAMED} more" if len(samples) > MOST_NAMED else ""
    return f"sample {first} is" if len(samples) == 1 else f"samples {first}{more} are"


def serial_minibatches(epoch: Epoch) -> None:
    """Raise Wrong unless the shards k of all ranks together are minibatch k of the serial run."""
    for rank, own in enumerate(epoch.shards):
        if len(own) != len(epoch.minibatches):
            raise Wrong(
                f"{epoch.called(rank)}: expected {counted(len(epoch.minibatches), 'array')}, one for each minibatch, "
                f"got {len(own)}.",
                cause_of_length(epoch, own),
            )
    for k, minibatch in enumerate(epoch.minibatches):
        got = np.sort(np.concatenate([own[k] for own in epoch.shards]))
        if not np.array_equal(got, np.sort(minibatch)):
            raise Wrong(
                f"{epoch.together}: in minibatch {k} the serial run reads the samples {listed(np.sort(minibatch))}; "
                f"all ranks together read {listed(got)}.",
                cause_of_other_minibatches(epoch, k),
            )


def cause_of_length(epoch: Epoch, own: list[Indices]) -> str:
    """The likely cause of a rank's list that has fewer or more arrays than there are minibatches."""
    if len(own) > len(epoch.minibatches):
        return ""
    if any(len(own) == len(epoch.minibatches) for own in epoch.shards):
        return (
            "A rank without a sample of a minibatch returns an empty array for it: it still has to take part in the "
            "all-reduce of that step."
        )
    read = {int(sample) for shards in epoch.shards for shard in shards for sample in shard}
    if read == {int(sample) for minibatch in epoch.minibatches[:-1] for sample in minibatch}:
        return "The last minibatch is missing. It belongs to the epoch, even if it is shorter than the others."
    if len(own) == -(-sum(map(len, own)) // epoch.batch_size):
        return "batch_size counts the samples of all ranks together, not those of one rank."
    return ""


def listed(samples: Indices) -> str:
    """The first few of an array of sample numbers."""
    return np.array2string(samples, threshold=12, edgeitems=5)


def cause_of_other_minibatches(epoch: Epoch, k: int) -> str:
    """The likely cause of a minibatch with other samples."""
    order = np.concatenate(epoch.minibatches)
    stored = np.arange(k * epoch.batch_size, k * epoch.batch_size + len(epoch.minibatches[k]))
    got = np.sort(np.concatenate([own[k] for own in epoch.shards]))
    if np.array_equal(got, stored):
        return "These are the samples as they are stored: the epoch has to be shuffled, by epoch_order."
    for other, minibatch in enumerate(epoch.minibatches):
        if np.array_equal(got, np.sort(minibatch)):
            return f"This is minibatch {other} of the serial run. Return the shards in the order of the minibatches."
    whole = [np.concatenate(own) for own in epoch.shards]
    blocks, strides = np.array_split(order, epoch.p), [order[rank :: epoch.p] for rank in range(epoch.p)]
    for cut in (blocks, strides):
        if all(np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(whole, cut, strict=True)):
            return (
                "The epoch was shared out first, and each rank cut its share into minibatches. Cut the epoch into "
                "minibatches first, then each minibatch into shards."
            )
    return "Is the order of the epoch that of epoch_order(n, seed, epoch), the same on all ranks?"


def even_shards(epoch: Epoch) -> None:
    """Raise Wrong unless the shards of every minibatch differ by at most one sample."""
    serial_minibatches(epoch)
    for k, minibatch in enumerate(epoch.minibatches):
        lengths = [len(own[k]) for own in epoch.shards]
        if max(lengths) - min(lengths) > 1:
            raise Wrong(
                f"{epoch.together}: the shards of minibatch {k}, which has {counted(len(minibatch), 'sample')}, have "
                f"{', '.join(map(str, lengths))} samples; they may differ by 1.",
                "The rank with the most samples is the one that all others wait for.",
            )
