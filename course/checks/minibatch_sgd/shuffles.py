"""Tests whether the orders of several epochs and seeds are shuffles: all different, and fixed by seed and epoch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, permutations

from course.checks.minibatch_sgd.epoch_batches import batches_of, brief
from course.judging import Answer, Wrong, expect
from course.probes.minibatch_sgd import kept, orders_of
from course.probes.minibatch_sgd_elsewhere import listed_elsewhere

N, BATCH_SIZE = 60, 7
FACTORS = (31, 37, 97, 100, 101, 128, 256, 512, 997, 1000, 1009, 1024, 4096, 9973, 10_000)
"""Numbers by which a seed or an epoch is likely to be multiplied or reduced."""
FAR = (*FACTORS, 2**16, 100_000, 2**20, 10**6, 1_000_003, 2**24, 10**9, 2_654_435_761)
NEAR = range(2, 31)
LAST_EPOCH = 100_000
"""A right answer may draw all epochs up to the one that is asked for, in which a further one would take too long."""
LAST = 2**32 - 1
FEW = 4
Order = list[int]

ELSEWHERE = {
    "after other random numbers": (
        "The global generator, np.random or random, was used: make one of your own, such as "
        "np.random.default_rng((seed, epoch))."
    ),
    "at another time": "The clock decides on the order: seed and epoch alone shall.",
    "in another process": (
        "What hash() gives for a text, and os.getpid(), differ from process to process: make the generator from seed "
        "and epoch alone."
    ),
}
ONE_NUMBER = (
    "Two pairs of seed and epoch give the generator the same number, as with seed + epoch or 1000 * seed + epoch: give "
    "it both numbers, such as np.random.default_rng((seed, epoch))."
)
KEPT = "This is an order of {n} samples, as an earlier call wanted: what is kept by seed and epoch fits one n only."


def compare_repeated(answer: Answer, seed: int) -> None:
    """Raise Wrong unless seed and epoch fix the shuffle, in any process, and other random numbers are not touched."""
    first, called = batches_of(answer, N, BATCH_SIZE, seed, 2)
    batches_of(answer, N, BATCH_SIZE, seed + 1, 0)
    again, _ = batches_of(answer, N, BATCH_SIZE, seed, 2)
    expect.true(
        first == again,
        f"{called}, called twice: the first batch was {brief(next(iter(first), []))}, "
        f"then {brief(next(iter(again), []))}.",
        "The generator is not made from seed and epoch, or it lives on from one call to the next.",
    )
    expect.true(
        answer.run(kept, N, BATCH_SIZE, [(seed, epoch) for epoch in range(3)]),
        f"minibatches(n={N}, batch_size={BATCH_SIZE}, seed={seed}, epoch=…) changed the batches of an earlier epoch.",
        "What was returned belongs to the caller: each epoch needs an array of its own.",
    )
    compare_shuffled(order_of(first), f"minibatches(n={N}, batch_size=…, seed={seed}, epoch=2)")
    for where, cause in ELSEWHERE.items():
        there = answer.run(listed_elsewhere, where, N, BATCH_SIZE, seed, 2)
        expect.true(there["batches"] == first, f"{called} gives other batches {where}.", cause)
        changed = " and ".join(there["changed"])
        expect.true(
            not changed,
            f"{called} has drawn from the global generator {changed}, or seeded it.",
            "Whoever draws from it elsewhere in the program then gets other numbers, or the same ones again: make a "
            "generator of your own, such as np.random.default_rng((seed, epoch)).",
        )


def compare_all(answer: Answer, seed: int) -> None:
    """Raise Wrong unless each epoch of each seed has its own shuffle, of samples and not of blocks of samples."""
    pairs = [(seed + s, epoch) for s in range(3) for epoch in range(4)]
    pairs += [(seed, 10), (seed, 100), (1, 11), (11, 1), (0, 0), (0, 1), (1, 0)]
    epochs = {pair: batches_of(answer, N, BATCH_SIZE, *pair)[0] for pair in dict.fromkeys(pairs)}
    orders = {pair: order_of(batches) for pair, batches in epochs.items()}
    said = f"minibatches(n={N}, batch_size=…, seed={seed}, epoch=…)"
    for (s, epoch), order in orders.items():
        compare_shuffled(order, f"minibatches(n={N}, batch_size=…, seed={s}, epoch={epoch})")
    compare_cuts(epochs[seed, 0], epochs[seed, 1], said)
    compare_steps(orders[seed, 0], said)
    compare_different(orders, said, seed)
    for epoch in (1, 2, 3):
        compare_turned(orders[seed, 0], orders[seed, epoch], f"{said}: epoch {epoch}")
    compare_applied_again([orders[seed, epoch] for epoch in (0, 1, 2)], said)
    for place, samples in enumerate(zip(*orders.values(), strict=False)):
        expect.true(
            len(set(samples)) > 1,
            f"{said}: sample {samples[0]} has place {place} in every epoch, with every seed.",
            "Every sample has to be shuffled, the first and the last one too.",
        )


def compare_far(answer: Answer, seed: int) -> None:
    """Raise Wrong if distant seeds and epochs have the same order, as when the two are combined into one number."""
    pairs = [(seed, 0), (seed, 1), (seed + 1, 0)]
    pairs += [pair for far in (*NEAR, *FAR) for pair in ((seed + far, 0), (seed, far)) if pair[1] <= LAST_EPOCH]
    pairs += [(LAST, 0), (LAST, 1)]  # of which a float loses digits
    orders = dict(zip(pairs, answer.run(orders_of, N, BATCH_SIZE, pairs), strict=True))
    compare_different(orders, f"minibatches(n={N}, batch_size={BATCH_SIZE}, seed={seed}, epoch=…)", seed)


def compare_possible(answer: Answer, seed: int) -> None:
    """Raise Wrong unless every order of a few samples occurs in 600 epochs; one is missing with probability 1e-9."""
    pairs = [(seed + s, epoch) for s in range(100) for epoch in range(6)]
    seen = {tuple(order) for order in answer.run(orders_of, FEW, 1, pairs)}  # a batch may be in any order
    if any(sorted(order) != list(range(FEW)) for order in seen):
        return  # which is judged elsewhere
    missing = [order for order in permutations(range(FEW)) if order not in seen]
    if missing:
        raise Wrong(
            f"minibatches(n={FEW}, batch_size=1, …): in {len(pairs)} epochs of 100 seeds the order "
            f"{list(missing[0])} never came, and {len(missing) - 1} others of {math.factorial(FEW)} did not.",
            "In a shuffle every order is possible, and all are equally likely: each sample may come to each place.",
        )


def compare_applied_again(orders: Sequence[Order], said: str) -> None:
    """Raise Wrong if every epoch applies the same permutation to the previous order."""
    if any(sorted(order) != list(range(N)) for order in orders):
        return  # which is judged elsewhere
    first, second = (
        ([a.index(sample) for sample in b], [b[a.index(index)] for index in range(N)]) for a, b in pairwise(orders)
    )
    if any(a == b for a, b in zip(first, second, strict=True)):
        raise Wrong(
            f"{said}: epoch 2 differs from epoch 1 as epoch 1 differs from epoch 0.",
            "One rearrangement was applied again: after some epochs the orders come back. Make a new shuffle for every "
            "epoch, with a generator that knows the epoch.",
        )


def order_of(batches: Sequence[Order]) -> list[int]:
    return [index for batch in batches for index in batch]


def compare_shuffled(order: Order, said: str) -> None:
    """Raise Wrong for the stored order or repeated samples; another part judges whether some are left out."""
    if 0 < len(order) <= N - BATCH_SIZE:
        is_of_another_n = sorted(order) == list(range(len(order)))
        raise Wrong(
            f"{said}: an epoch of {N} samples has {len(order)}.", KEPT.format(n=len(order)) if is_of_another_n else ""
        )
    often = Counter(order).most_common(1)
    if len(order) == N and often[0][1] > 1:
        raise Wrong(
            f"{said}: sample {often[0][0]} came {often[0][1]} times in an epoch.",
            "A shuffle has every sample once; these were drawn with replacement.",
        )
    expect.true(
        list(order) != sorted(order), f"{said}: the samples come in order, {brief(order)}.", "They were not shuffled."
    )


def compare_different(orders: dict[tuple[int, int], Order], said: str, seed: int) -> None:
    """Raise Wrong if two pairs of seed and epoch have the same order."""
    seen: dict[tuple[int, ...], tuple[int, int]] = {}
    same = []
    for pair, order in orders.items():
        if (other := seen.setdefault(tuple(order), pair)) != pair:
            same.append((other, pair))
    of_epochs = next(((a, b) for a, b in same if a[0] == b[0]), None)
    if of_epochs:
        (s, a), (_, b) = of_epochs
        with_seed = said if s == seed else said.replace(f"seed={seed}", f"seed={s}")
        message = f"{with_seed}: epochs {a} and {b} have the same batches, {brief(orders[s, a])}."
        whole = "whole epoch, and not on a remainder of it" if abs(a - b) in FAR else "epoch"
        product = " (and not on seed * epoch, 0 for seed 0)" if s == 0 else ""
        raise Wrong(message, f"Does the generator depend on the {whole}{product}?")
    of_seeds = next(((a, b) for a, b in same if a[1] == b[1]), None)
    if of_seeds:
        (a, epoch), (b, _) = of_seeds
        message = (
            f"minibatches(n={N}, batch_size={BATCH_SIZE}, …, epoch={epoch}): seeds {a} and {b} have the same batches."
        )
        whole = "whole seed, and not on a remainder of it" if abs(a - b) in FAR else "seed"
        raise Wrong(message, f"Does the generator depend on the {whole}?")
    if same:
        (s, e), (t, f) = same[0]
        message = f"minibatches(n={N}, batch_size={BATCH_SIZE}, …): seed {s} has in epoch {e} the batches that seed {t}"
        raise Wrong(f"{message} has in epoch {f}.", ONE_NUMBER)


def compare_cuts(first: Sequence[Order], second: Sequence[Order], said: str) -> None:
    """Raise Wrong if batches were shuffled, or each batch by itself, instead of the samples."""
    if first == second:
        return  # of which there is more to say
    if all(set(a) == set(b) for a, b in zip(first, second, strict=False)):
        message = f"{said}: in epochs 0 and 1 each batch has the same samples, such as {brief(first[0])}."
        raise Wrong(message, "Each batch was shuffled by itself: shuffle all samples, then cut.")
    if {frozenset(batch) for batch in first} == {frozenset(batch) for batch in second}:
        message = f"{said}: epochs 0 and 1 have the same batches in another order, such as {brief(first[0])}."
        raise Wrong(message, "The order of the batches was shuffled; shuffle the samples.")


def compare_steps(order: Order, said: str) -> None:
    """Raise Wrong if the next sample, or the sample at a position, follows a simple rule."""
    step, times = Counter((b - a) % N for a, b in pairwise(order)).most_common(1)[0]
    back = sum(abs(b - a) == 1 for a, b in pairwise(order))
    if back >= N / 2:
        raise Wrong(
            f"{said}: {back} times in an epoch a sample is followed by its neighbour: {brief(order)}.",
            "Blocks were moved, or the order was turned round as a whole; every order must be possible.",
        )
    if times >= N / 2:
        raise Wrong(
            f"{said}: {times} times in an epoch a sample is followed by the one {step} further: {brief(order)}.",
            "The samples were taken in equal steps; every order must be possible.",
        )
    moved = sum(abs(sample - place) for place, sample in enumerate(order)) / N
    if moved < N / 6:
        raise Wrong(
            f"{said}: a sample's place in an epoch is only {moved:.3g} from where it lies on average; in a shuffle of "
            f"{N} samples that is about {N / 3:.3g}: {brief(order)}.",
            "The samples were shuffled among their neighbours only, as with a small buffer: where they lie sorted by "
            "class, a batch still has one class.",
        )


def compare_turned(order: Order, other: Order, said: str) -> None:
    """Raise Wrong if an order is the first one rotated, reversed, or with a few samples exchanged."""
    neighbours = {frozenset(pair) for pair in [*pairwise(order), (order[-1], order[0])]}
    kept = sum(frozenset(pair) in neighbours for pair in [*pairwise(other), (other[-1], other[0])])
    if kept >= N / 2:
        raise Wrong(
            f"{said} has the order of epoch 0, rotated or reversed as a whole or in blocks: {kept} of {N} samples have "
            f"the same neighbour, {brief(order)} and {brief(other)}.",
            "Every epoch needs a shuffle of its own, not the first one turned.",
        )
    stayed = sum(a == b for a, b in zip(order, other, strict=False))
    if stayed >= N / 2:
        raise Wrong(
            f"{said} has {stayed} of {N} samples at the same place as epoch 0.",
            "Every epoch needs a shuffle of its own, not the first one with a few samples exchanged.",
        )
