"""The buckets of a backward pass: which gradients they hold, when each can start, when the last all-reduce ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, expect
from course.judging.ranks.rank_run import RankRun, could_have_carried
from course.judging.wrong import Wrong
from course.plural import counted
from minidl.cluster import Network

Array = NDArray[np.float64]
ITEMSIZE = 8

Model = tuple[list[int], int]
"""(elements of each layer's gradient, from the first layer to the last; bucket_bytes)"""

LAYER_SECONDS = 0.01
ALPHA = 1e-12
"""Far below all other times: then the order and the algorithm of the all-reduces do not change when the last ends."""

TOLERANCE = 0.01

EXACTLY_FULL = "A bucket that holds exactly bucket_bytes is full, too: `>=`, not `>`."
STOOD_STILL = (
    "Backward stood still in between. Did it wait for the all-reduce before? With async_op=True, keep what all_reduce "
    "returns, and call wait() after backward."
)
LAST_IS_MISSING = "The last bucket need not be full: what it holds when backward ends is to be reduced, too."


@dataclass(frozen=True)
class Backward:
    """The backward pass of all ranks: gradients[rank][layer], seconds[layer], and the network's seconds a byte."""

    gradients: list[list[Array]]
    seconds: list[float]
    bucket_bytes: int
    beta: float = 0.0

    @property
    def p(self) -> int:
        return len(self.gradients)

    def lengths(self) -> list[int]:
        return [len(gradient) for gradient in self.gradients[0]]

    def run(self, answer: Answer) -> RankRun:
        arguments = [
            ([(gradient.copy(), seconds) for gradient, seconds in zip(own, self.seconds, strict=True)],
             self.bucket_bytes)
            for own in self.gradients
        ]  # fmt: skip
        return answer.on_ranks(arguments, Network(ALPHA, self.beta), may_change=[0])

    def buckets(self, exactly_is_full: bool = True) -> list[list[int]]:
        """The layers of every bucket, in the order in which their gradients arrive.

        exactly_is_full: whether a bucket that holds exactly bucket_bytes is full; False is a known mistake.
        """
        found: list[list[int]] = [[]]
        held = 0
        lengths = self.lengths()
        for layer in reversed(range(len(lengths))):
            found[-1].append(layer)
            held += lengths[layer] * ITEMSIZE
            if held > self.bucket_bytes or (exactly_is_full and held == self.bucket_bytes):
                found.append([])
                held = 0
        return [bucket for bucket in found if bucket]

    def bucket_sizes(self, exactly_is_full: bool = True) -> list[int]:
        """The bytes of every bucket."""
        lengths = self.lengths()
        return [sum(lengths[layer] for layer in bucket) * ITEMSIZE for bucket in self.buckets(exactly_is_full)]

    def ready(self) -> list[float]:
        """The second at which every bucket's last gradient is there."""
        return [sum(self.seconds[bucket[-1] :]) for bucket in self.buckets()]

    def end(self) -> float:
        """The second at which the last all-reduce ends, if they follow each other."""
        end = 0.0
        for nbytes, ready in zip(self.bucket_sizes(), self.ready(), strict=True):
            end = max(end, ready) + 2 * (self.p - 1) / self.p * nbytes * self.beta
        return max(end, sum(self.seconds))

    def called(self, rank: int | None = None) -> str:
        where = f"among {counted(self.p, 'rank')}" if rank is None else f"on rank {rank} of {self.p}"
        return f"bucketed_all_reduce {where}, layers of {self.lengths()} elements, bucket_bytes={self.bucket_bytes}"


def passes(models: Sequence[Model], ranks: Sequence[int], seed: int) -> Iterator[Backward]:
    """A backward pass for every model and number of ranks."""
    for lengths, bucket_bytes in models:
        for p in ranks:
            rng = np.random.default_rng((seed, p, *lengths))
            gradients = [[numbers(rng, length) for length in lengths] for _ in range(p)]
            seconds = [LAYER_SECONDS * (1 + i % 3) for i in range(len(lengths))]
            yield Backward(gradients, seconds, bucket_bytes, beta=1e-9)


def numbers(rng: np.random.Generator, length: int) -> Array:
    """Multiples of 2^-22, of which the first is below 1e-6: sums of several are exact in any order, and not whole."""
    found = rng.integers(-(10**8), 10**8, length)
    found[:1] = 3
    return found / 2.0**22


def timed_passes(ratios: Sequence[float], seed: int) -> Iterator[Backward]:
    """Backward passes in which all all-reduces together take `ratio` times the computation, on 4 ranks and on 2.

    Of four, the last one has more and smaller buckets.
    """
    for number, ratio in enumerate(ratios):
        p = (4, 2)[number % 2]
        rng = np.random.default_rng((seed, 7, number))
        lengths = [int(length) * 4 for length in rng.integers(20, 60, 9)]
        seconds = [float(each) for each in np.round(rng.uniform(0.5, 2.0, 9) * LAYER_SECONDS, 4)]
        bucket_bytes = sum(lengths) * ITEMSIZE // (4 if number % 4 < 3 else 7)
        beta = ratio * sum(seconds) / (2 * (p - 1) / p * sum(lengths) * ITEMSIZE)
        gradients = [[numbers(rng, length) for length in lengths] for _ in range(p)]
        yield Backward(gradients, seconds, bucket_bytes, beta)


def returned(run: RankRun, backward: Backward, rank: int) -> Sequence[Any]:
    """The list that a rank returned."""
    layers = len(backward.seconds)
    got = expect.listed(run.results[rank], backward.called(rank), f"a list of {counted(layers, 'array')}")
    if len(got) != layers:
        raise Wrong(
            f"{backward.called(rank)}: expected {counted(layers, 'array')}, one for each layer, got {len(got)}.",
            LAST_IS_MISSING
            if len(got) < layers and len(got) != len(backward.buckets())
            else "These are the buckets: cut them into the gradients of the layers."
            if layers
            else "",
        )
    return got


def sums(run: RankRun, backward: Backward) -> None:
    """Raise Wrong unless every rank returned the sum over the ranks for each layer."""
    totals = [np.sum(each, axis=0) for each in zip(*backward.gradients, strict=True)]
    sizes = sum(total.nbytes for total in totals)
    for rank in range(backward.p):
        got = returned(run, backward, rank)
        for layer, total in enumerate(totals):
            own = backward.gradients[rank][layer]
            mistakes = {
                "This is the mean; the sum is asked.": total / backward.p,
                "This is this rank's own gradient: its bucket was not reduced, or the sum was read before wait(). The "
                "last bucket need not be full; it is to be reduced when backward ends.": own,
                "This is the sum of another layer: the gradients arrive from the last layer to the first, the list "
                "goes from the first to the last.": totals[-1 - layer],
            }
            expect.array(
                got[layer], total, f"{backward.called(rank)}: layer {layer}", rtol=0.0, atol=1e-9, mistakes=mistakes,
                dtype=np.float64,
            )  # fmt: skip
        if sizes and backward.p > 1:
            could_have_carried(run, "the sum of all ranks", rank, range(backward.p), sizes)


def kept(run: RankRun, backward: Backward) -> None:
    """Raise Wrong unless every rank's gradients are as they were."""
    sums(run, backward)
    for rank, own in enumerate(backward.gradients):
        after = run.arguments[rank][0]
        if not isinstance(after, list) or len(after) != len(own):
            raise Wrong(f"{backward.called(rank)}: the caller's list of layers was changed.")
        for layer, (before, pair) in enumerate(zip(own, after, strict=True)):
            gradient = pair[0] if isinstance(pair, (tuple, list)) and pair else pair
            expect.same_bits(
                gradient, before, f"{backward.called(rank)}: the caller's gradient of layer {layer} was changed",
                {"comm.all_reduce writes the sum into its argument: pass a new array.": gradient},
            )  # fmt: skip


def planned_buckets(run: RankRun, backward: Backward) -> None:
    """Raise Wrong unless the ranks made one all-reduce for each bucket, of its size, and nothing else."""
    sizes = backward.bucket_sizes()
    elements = [size // ITEMSIZE for size in sizes]
    for rank in range(backward.p):
        others = [name for name in run.operations[rank] if name != "all_reduce"]
        if others:
            raise Wrong(f"{backward.called(rank)}: only comm.all_reduce may be used, got comm.{others[0]}.")
        if backward.p == 1:
            continue
        own = run.collectives[rank]
        got = [one.nbytes for one in own]
        if len(own) != len(sizes):
            raise Wrong(
                f"{backward.called(rank)}: expected {counted(len(sizes), 'all-reduce')} (buckets of {elements} "
                f"elements), got {len(own)}.",
                cause_of_count(got, backward),
            )
        if backward.p == 2 and got != sizes:
            raise Wrong(
                f"{backward.called(rank)}: expected buckets of {elements} elements, in this order, got "
                f"{[nbytes // ITEMSIZE for nbytes in got]}.",
                cause_of_sizes(got, backward),
            )


def cause_of_count(got: list[int], backward: Backward) -> str:
    """The likely cause of a wrong number of all-reduces; got: the bytes that the rank sent in each."""
    count, layers, sizes = len(got), len(backward.seconds), backward.bucket_sizes()
    later = backward.bucket_sizes(exactly_is_full=False)
    if 0 in got and 0 not in sizes:
        return "An all-reduce has no element: start one for the last bucket only if there is a gradient in it."
    if count == layers:
        return "Every gradient has an all-reduce of its own, with a start-up for each: collect them in buckets."
    if count == 1:
        return "All gradients are in one bucket: nothing can be hidden behind backward."
    if backward.p == 2:  # there every rank sends as many bytes as the bucket has
        if got == later:
            return EXACTLY_FULL
        if got == sizes[:-1]:
            return LAST_IS_MISSING
    elif count == len(later):
        return EXACTLY_FULL
    elif count == len(sizes) - 1:
        return LAST_IS_MISSING
    return "A bucket is full as soon as it holds bucket_bytes or more; then the next one begins empty."


def cause_of_sizes(got: list[int], backward: Backward) -> str:
    """The likely cause of buckets of other sizes; got: the bytes of every bucket."""
    want = backward.bucket_sizes()
    if got == backward.bucket_sizes(exactly_is_full=False):
        return EXACTLY_FULL
    if sum(got) * 2 == sum(want):
        return "float32 halves the traffic and loses digits; all gradients are float64."
    if got == want[::-1]:
        return "The buckets start in the reverse order: the first one is that of the last layers."
    if sorted(got) == sorted(want):
        return "The right buckets in another order: they start in the order in which they are full."
    return (
        "A bucket takes the gradients as they arrive, the last layer's first, and is full as soon as it holds "
        "bucket_bytes or more."
    )


def started_when_full(run: RankRun, backward: Backward) -> None:
    """Raise Wrong unless every bucket's all-reduce began in the moment in which the bucket was full.

    While the one before is still in flight, it waits for that: the network reduces one bucket after the other.
    """
    planned_buckets(run, backward)
    for rank, own in enumerate(run.collectives):
        before = 0.0
        for number, (one, ready) in enumerate(zip(own, backward.ready(), strict=True)):
            if abs(one.begun - max(ready, before)) > TOLERANCE * LAYER_SECONDS:
                raise Wrong(
                    f"{backward.called(rank)}: the all-reduce of bucket {number} began at {one.begun * 1e3:.2f} ms. "
                    f"The bucket should be full at {ready * 1e3:.2f} ms; the one before ended at "
                    f"{before * 1e3:.2f} ms.",
                    cause_of_start(run, backward, rank, number),
                )
            before = one.ended
        ends = [event[3] for event in run.events if event[:2] == (rank, "compute")]
        last, wanted = ends[len(backward.seconds) - 1], sum(backward.seconds)
        expect.true(
            last <= wanted + TOLERANCE * LAYER_SECONDS,
            f"{backward.called(rank)}: backward takes {wanted * 1e3:.2f} ms; it ended at {last * 1e3:.2f} ms.",
            STOOD_STILL,
        )


def cause_of_start(run: RankRun, backward: Backward, rank: int, number: int) -> str:
    """The likely cause of an all-reduce that began too early or too late."""
    begun, ready, computed = [one.begun for one in run.collectives[rank]], backward.ready(), sum(backward.seconds)
    if begun[number] < ready[number]:
        return "That is before its gradients were computed: use them only as backward yields them."
    if all(one >= computed * (1 - TOLERANCE) for one in begun):
        return "All of them began after backward: start each as soon as it is full."
    if max(event[3] for event in run.events if event[0] == rank and event[1] == "compute") > computed * (1 + TOLERANCE):
        return STOOD_STILL
    return "Does it start only when the next gradient is there? It is full as soon as it holds bucket_bytes or more."


def total_seconds(run: RankRun, backward: Backward) -> None:
    """Raise Wrong unless the run took as long as the buckets need if they overlap with backward."""
    returned(run, backward, 0)
    want, computing = backward.end(), sum(backward.seconds)
    reducing = 2 * (backward.p - 1) / backward.p * sum(backward.bucket_sizes()) * backward.beta
    if abs(run.seconds - want) <= TOLERANCE * want:
        return
    is_serial = abs(run.seconds - computing - reducing) <= TOLERANCE * (computing + reducing)
    cause = ""
    if is_serial:
        cause = "That is the sum of both: nothing overlaps."
    elif run.seconds < want:
        cause = "That is too fast: something was not reduced, or started before it was computed."
    raise Wrong(
        f"{backward.called()}: backward takes {computing * 1e3:.1f} ms and the all-reduces {reducing * 1e3:.1f} ms. "
        f"Expected {want * 1e3:.1f} ms for both with overlap, got {run.seconds * 1e3:.1f} ms.",
        cause,
    )
