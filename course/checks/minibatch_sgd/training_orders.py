"""The order in which a student's training loop takes its samples, found from its final weights."""

from __future__ import annotations

from itertools import product

import numpy as np

from course.checks.minibatch_sgd import noisy_digits
from course.checks.minibatch_sgd.noisy_digits import Array, Samples
from course.checks.minibatch_sgd.training_steps import after_epochs, distance
from course.judging import Answer, Wrong, expect

SAMPLES, EPOCHS, RATE = 4, 5, 0.5

NEAR = 1e-3
"""Relative distance within which two runs count as equal."""

ROUNDING = 3e-5
"""The share of an epoch's way that float32 goes astray: 4e-6 was measured, and 1e-4 between two orders at the least."""


def compare_orders(answer: Answer, seed: int) -> None:
    """Four digits of four classes, one a batch, in five epochs: the seed decides, and each epoch has its own order.

    That a right answer draws one order five times, or the same orders for two seeds, has a chance of 3 in a million;
    that its orders are one that is turned in each epoch, of 10 in a million.
    """
    (x, y), validation, test = noisy_digits.samples(seed)
    chosen = np.linspace(0, len(y) - 1, SAMPLES).astype(int)
    samples = x[chosen], y[chosen]
    before = noisy_digits.start(seed)

    def epochs(seed: int) -> list[list[Array]]:
        """The weights after each epoch, or only those after the last one."""
        run = answer.run(noisy_digits.trained, before, (samples, validation, test), RATE, EPOCHS, 1, seed)
        validated = run["validated"]
        return after_epochs(validated, before, EPOCHS) or [validated[-1] if validated else run["weights"]]

    called = f"train(model, {SAMPLES} digits, …, lr={RATE}, epochs={EPOCHS}, batch_size=1, seed=…)"
    first, again, other = epochs(seed), epochs(seed), epochs(seed + 1)
    near = NEAR * distance(before, first[-1])
    expect.true(
        distance(first[-1], again[-1]) <= near,
        f"{called}, called twice with seed={seed}: expected the same weights after the last epoch, got others.",
        "The shuffles depend on something else than the seed (and the epoch): a run could not be repeated.",
    )
    drawn, drawn_next = (orders_of(before, weights, samples) for weights in (first, other))
    for epoch, order in enumerate(drawn):
        if order and len(set(order)) < SAMPLES:
            raise Wrong(
                f"{called}: expected every sample once an epoch; with seed={seed} epoch {epoch} took the samples "
                f"{list(order)}.",
                "The batches were drawn with replacement: an epoch is a shuffle of all samples, cut into batches.",
            )
    if len(drawn) == EPOCHS and None not in drawn and len(set(drawn)) == 1:
        raise Wrong(
            f"{called}: expected another order in each epoch; with seed={seed} all {EPOCHS} epochs took the "
            f"samples in the order {list(drawn[0] or ())}.",
            "Is the number of the epoch handed to the shuffle, and is there a shuffle in each epoch?",
        )
    expect.true(
        distance(first[-1], other[-1]) > near,
        f"{called} with seeds {seed} and {seed + 1}: expected two orders of the samples, got the same weights.",
        "Do the shuffles depend on the seed?",
    )
    if None in drawn or len(drawn) < EPOCHS:
        return
    turned = {
        "rotated by one more place": [drawn[0][k:] + drawn[0][:k] for k in (e % SAMPLES for e in range(EPOCHS))],
        "rotated by one more place, the other way": [
            drawn[0][-k:] + drawn[0][:-k] for k in (e % SAMPLES for e in range(EPOCHS))
        ],
        "turned round": [drawn[0][:: (-1) ** e] for e in range(EPOCHS)],
    }
    for how, orders in turned.items():
        if drawn == orders:
            raise Wrong(
                f"{called}: expected another shuffle in each epoch; with seed={seed} the epochs took the samples in "
                f"the orders {', '.join(str(list(order)) for order in orders)}.",
                f"This is one shuffle, in each epoch {how}.",
            )
    if drawn[1:] == drawn_next[:-1]:
        raise Wrong(
            f"{called}: expected other shuffles with another seed; with seed={seed + 1} the epochs 0 to {EPOCHS - 2} "
            f"took the samples in the orders that the epochs 1 to {EPOCHS - 1} have with seed={seed}.",
            "The generator was made from seed + epoch, one number: give it both.",
        )


def orders_of(before: list[Array], epochs: list[list[Array]], samples: Samples) -> list[tuple[int, ...] | None]:
    """Of each epoch the samples that it took, one after the other; None where its weights tell of no such order."""
    starts = [before, *epochs[:-1]]
    return [order_of(start, end, samples) for start, end in zip(starts, epochs, strict=True)]


def order_of(start: list[Array], end: list[Array], samples: Samples) -> tuple[int, ...] | None:
    """The samples, one a step, that lead from `start` to `end`, nearer than any other."""
    reached: dict[tuple[int, ...], list[Array]] = {(): start}
    for taken in range(SAMPLES):
        for draw in product(range(SAMPLES), repeat=taken):
            for i in range(SAMPLES):
                reached[*draw, i] = stepped(reached[draw], samples, i)
    near, found = min((distance(end, reached[draw]), draw) for draw in product(range(SAMPLES), repeat=SAMPLES))
    return found if near <= ROUNDING * distance(start, end) else None


def stepped(weights: list[Array], samples: Samples, i: int) -> list[Array]:
    """The weights after a step for sample i."""
    x, y = samples
    gradient = noisy_digits.mean_gradient(weights, (x[i : i + 1], y[i : i + 1]))
    return [w - RATE * g for w, g in zip(weights, gradient, strict=True)]
