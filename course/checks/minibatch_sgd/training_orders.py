"""In which order a student's training loop takes its samples: found from the weights that it ends with."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from course.checking import Answer, Wrong, expect
from course.checks.minibatch_sgd import noisy_digits
from course.checks.minibatch_sgd.noisy_digits import Array, Samples
from course.checks.minibatch_sgd.training_run import distance

SAMPLES, EPOCHS, RATE = 4, 5, 0.5


def compare_orders(answer: Answer, seed: int) -> None:
    """Four digits of four classes, one a batch, in five epochs: the seed decides, and each epoch has its own order.

    That a right answer draws one order five times, or the same orders for two seeds, has a chance of 3 in a million.
    """
    (x, y), validation, test = noisy_digits.samples(seed)
    chosen = np.linspace(0, len(y) - 1, SAMPLES).astype(int)
    samples = x[chosen], y[chosen]
    before = noisy_digits.start(seed)

    def ended(seed: int) -> list[Array]:
        run = answer.run(noisy_digits.trained, before, (samples, validation, test), RATE, EPOCHS, 1, seed)
        return list(run["validated"][-1] if run["validated"] else run["weights"])

    called = f"train(model, {SAMPLES} digits, …, lr={RATE}, epochs={EPOCHS}, batch_size=1, seed=…)"
    first, again, other = ended(seed), ended(seed), ended(seed + 1)
    near = 1e-3 * distance(before, first)
    expect.true(
        distance(first, again) <= near,
        f"{called}, called twice with seed={seed}: expected the same weights after the last epoch, got others.",
        "The shuffles depend on something else than the seed (and the epoch): a run could not be repeated.",
    )
    expect.true(
        distance(first, other) > near,
        f"{called} with seeds {seed} and {seed + 1}: expected two orders of the samples, got the same weights.",
        "Do the shuffles depend on the seed?",
    )
    for order in permutations(range(SAMPLES)):
        if distance(first, walked(before, samples, order)) <= near:
            raise Wrong(
                f"{called}: expected another order in each epoch; with seed={seed} all {EPOCHS} epochs took the "
                f"samples in the order {list(order)}.",
                "Is the number of the epoch handed to the shuffle, and is there a shuffle in each epoch?",
            )


def walked(weights: list[Array], samples: Samples, order: tuple[int, ...]) -> list[Array]:
    """The weights after EPOCHS epochs in this order, a sample a step."""
    x, y = samples
    for i in order * EPOCHS:
        gradient = noisy_digits.mean_gradient(weights, (x[i : i + 1], y[i : i + 1]))
        weights = [w - RATE * g for w, g in zip(weights, gradient, strict=True)]
    return weights
