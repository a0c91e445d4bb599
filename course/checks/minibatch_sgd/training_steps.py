"""Checks the exact steps of a student's training loop, on copies of one digit: so their order does not matter."""

from __future__ import annotations

import numpy as np

from course.checks.minibatch_sgd import noisy_digits
from course.checks.minibatch_sgd.noisy_digits import Array, Samples
from course.judging import Answer, Wrong, expect

COPIES, BATCH_SIZE, RATE = 5, 2, 0.5
STEPS = 3
"""Steps of an epoch, with 2, 2 and 1 samples."""


def compare_three_steps(answer: Answer, seed: int) -> None:
    """Raise Wrong unless an epoch on five copies of one digit, in batches of two, makes the three right steps."""
    before, one, copies = copies_of_one_digit(seed)
    run = answer.run(noisy_digits.trained, before, (copies, one, one), RATE, 1, BATCH_SIZE, seed)
    got = run["weights"]
    if run["validated"] and distance(run["validated"][-1], descended(before, one, [1] * 6)) <= 1e-3:
        got = run["validated"][-1]
    want = descended(before, one, [1, 1, 1])
    length = distance(before, want)
    if distance(got, want) <= 1e-3 * length:
        return
    causes = {
        "The gradients of a batch were added up: the step is that of their mean.": descended(before, one, [2, 2, 1]),
        "The gradients of the batch before were not forgotten: zero_grad().": descended(before, one, [1, 1, 1], 1.0),
        "The rate was multiplied by batch_size.": descended(before, one, [2, 2, 2]),
        "The last batch, which is smaller, was left out.": descended(before, one, [1, 1]),
        "The last batch has one sample, but its sum was divided by batch_size.": descended(before, one, [1, 1, 0.5]),
        "The weights moved up the gradient.": descended(before, one, [-1, -1, -1]),
        "There was one step an epoch: one for each batch is expected.": descended(before, one, [1]),
        "Each sample made a step of its own: one for each batch is expected.": descended(before, one, [1] * COPIES),
        "There was one epoch too many.": descended(before, one, [1] * 6),
        "The weights have not changed: no backward(), a zero_grad() between it and the step, `p = p.data - …` (which "
        "gives a new array a name), or validation_set asked before the epoch, so that its steps were not kept.": before,
        "The step was divided by batch_size: cross entropy is a mean already.": descended(before, one, [0.5] * 3),
        "The step was divided by the batch's size: cross entropy is a mean already.": descended(
            before, one, [0.5, 0.5, 1]
        ),
        "These steps have momentum; plain SGD was asked for.": descended(before, one, [1, 1, 1], 0.9),
    }
    raise Wrong(
        f"train(model, {COPIES} copies of one digit, …, lr={RATE}, epochs=1, batch_size={BATCH_SIZE}, seed={seed}) "
        f"makes 3 steps (2, 2 and 1 samples) and should move the weights by {length:.4g} (the length of the change of "
        f"all of them as one vector); they moved by {distance(before, got):.4g}, and ended {distance(got, want):.4g} "
        "from where they should be.",
        next((cause for cause, wrong in causes.items() if distance(got, wrong) <= 1e-3 * length), ""),
    )


def compare_later_epochs(answer: Answer, seed: int) -> None:
    """Raise Wrong unless the second and the third epoch make the same kind of steps as the first."""
    epochs = 3
    before, one, copies = copies_of_one_digit(seed)
    run = answer.run(noisy_digits.trained, before, (copies, one, one), RATE, epochs, BATCH_SIZE, seed)
    seen = after_epochs(run["validated"], before, epochs)
    if not seen:
        return  # another part judges whether validation_set is asked after every epoch
    options = f"lr={RATE}, epochs={epochs}, batch_size={BATCH_SIZE}, seed={seed}"
    called = f"train(model, {COPIES} copies of one digit, …, {options})"
    wanted = [descended(before, one, [1] * STEPS * (epoch + 1)) for epoch in range(epochs)]
    length = distance(before, wanted[0])
    for epoch, (got, want) in enumerate(zip(seen, wanted, strict=True)):
        best_first = "It began from the best weights so far: put these back once, after the last epoch."
        falls = "The rate falls from epoch to epoch: lr is the rate of all steps."
        known = [(best_first, wanted[epoch - 1])]
        known += [(falls, descended(before, one, factors)) for factors in falling(epoch)]
        causes = [cause for cause, wrong in known if epoch and distance(got, wrong) <= 1e-3 * length]
        expect.true(
            distance(got, want) <= 1e-3 * length,
            f"{called}: after epoch {epoch} the weights are {distance(got, want):.4g} from where they should be (the "
            f"length of the difference of all as one vector); the first epoch moves them by {length:.4g}.",
            "".join(causes[:1]),
        )


def after_epochs(validated: list[list[Array]], before: list[Array], epochs: int) -> list[list[Array]]:
    """The weights that the validation set received after each epoch; [] if it was not asked once per epoch.

    Further questions with the same weights, or with the initial ones, are ignored.
    """
    if len(validated) == epochs:
        return validated
    seen = [before]
    for weights in validated:
        if moved(weights, seen[-1]):
            seen.append(weights)
    return seen[1:] if len(seen) == epochs + 1 else []


def falling(epoch: int) -> list[list[float]]:
    """For each usual rule by which the rate falls: its factors in all steps up to the end of an epoch."""
    rules = [lambda e: 1 / (1 + e), lambda e: 0.9**e, lambda e: 0.95**e, lambda e: 0.5**e, lambda e: 0.1**e]
    return [[rule(e) for e in range(epoch + 1) for _ in range(STEPS)] for rule in rules]


def copies_of_one_digit(seed: int) -> tuple[list[Array], Samples, Samples]:
    """Initial weights, one digit with a label other than the one that they predict, and COPIES of it."""
    (x, _), _, _ = noisy_digits.samples(seed)
    before = noisy_digits.start(seed)
    _, logits = noisy_digits.outputs(before, x[:1])
    label = (logits.argmax(axis=1) + 1) % noisy_digits.SIZES[-1]
    return before, (x[:1], label), (np.repeat(x[:1], COPIES, axis=0), np.repeat(label, COPIES))


def descended(weights: list[Array], batch: Samples, factors: list[float], kept: float = 0.0) -> list[Array]:
    """The weights after one step per factor. The factor multiplies the gradient; `kept` is the momentum."""
    sums = [np.zeros(w.shape) for w in weights]
    for factor in factors:
        gradient = noisy_digits.mean_gradient(weights, batch)
        sums = [kept * total + factor * g for total, g in zip(sums, gradient, strict=True)]
        weights = [w - RATE * total for w, total in zip(weights, sums, strict=True)]
    return weights


def distance(a: list[Array], b: list[Array]) -> float:
    """The length of a - b, all arrays as one vector; infinite if anything is not a number."""
    with np.errstate(all="ignore"):  # the weights may have gone to infinity
        length = float(np.sqrt(sum(float(((p - q) ** 2).sum()) for p, q in zip(a, b, strict=True))))
    return length if np.isfinite(length) else float("inf")


def moved(a: list[Array], b: list[Array]) -> bool:
    """Whether two lists of weights differ anywhere."""
    return any(not np.array_equal(p, q, equal_nan=True) for p, q in zip(a, b, strict=True))
