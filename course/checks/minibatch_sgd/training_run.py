"""What a student's training loop did: its steps to the letter, what it learned, by what it chose, when it tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from course.checking import Answer, Wrong, expect
from course.checks.minibatch_sgd import noisy_digits
from course.checks.minibatch_sgd.noisy_digits import Array, Samples, Sets

COPIES, BATCH_SIZE, RATE = 5, 2, 0.5


@dataclass(frozen=True)
class TrainingRun:
    """One run of `train` on noisy digits, and what its probe saw.

    returned: by the function. weights: of the model afterwards. validated, tested: the model's weights at each call of
    validation_set.error and of test_set.error.
    """

    seed: int
    sets: Sets
    lr: float
    epochs: int
    batch_size: int
    returned: Any
    weights: list[Array]
    validated: list[list[Array]]
    tested: list[list[Array]]

    @property
    def called(self) -> str:
        return (
            f"train(model, {len(self.sets[0][1])} noisy digits sorted by class, …, lr={self.lr}, "
            f"epochs={self.epochs}, batch_size={self.batch_size}, seed={self.seed})"
        )

    def validation_error(self, weights: list[Array]) -> float:
        return noisy_digits.error(weights, self.sets[1])

    def compare_learning(self, target: float) -> None:
        """Some epoch reads enough digits; which one was kept is judged elsewhere."""
        lowest = min(self.validation_error(weights) for weights in [*self.validated, *self.tested, self.weights])
        if lowest <= target:
            return
        cause = ""
        if self.visited_in_order():
            cause = "The batches were taken in the order in which the samples lie, each of one class only: shuffle."
        raise Wrong(
            f"{self.called}: expected that at most {target:.0%} of the validation digits are read wrongly after the "
            f"best epoch, got {lowest:.1%}.",
            cause,
        )

    def visited_in_order(self) -> bool:
        """Whether the weights were, after the first epoch, what they are without a shuffle."""
        x, y = self.sets[0]
        start = weights = noisy_digits.start(self.seed)
        for i in range(0, len(y), self.batch_size):
            batch = x[i : i + self.batch_size], y[i : i + self.batch_size]
            gradient = noisy_digits.mean_gradient(weights, batch)
            weights = [w - self.lr * g for w, g in zip(weights, gradient, strict=True)]
        return any(distance(seen, weights) < 0.01 * distance(start, weights) for seen in self.validated[:2])

    def compare_choice(self) -> None:
        """The final weights are as good on the validation set as those of any epoch."""
        one_sample = 1.5 / len(self.sets[1][1])
        asked = f"{self.called}: validation_set.error was asked {len(self.validated)} times in {self.epochs} epochs"
        expect.true(
            len(self.validated) >= self.epochs,
            f"{asked}; expected after every epoch.",
            "The test set has decided which epoch is best: that is the validation set's task."
            if len(self.tested) >= self.epochs
            else "The training ended early, or some epochs were not asked about: a later one may be better."
            if self.validated
            else "Without it nobody knows which epoch was the best.",
        )
        errors = [self.validation_error(weights) for weights in self.validated]
        final, best = self.validation_error(self.weights), min(errors)
        if final > best + one_sample:
            epoch = int(np.argmin(errors)) + 1
            cause = "These are the weights of the worst epoch: a lower error is better." if final >= max(errors) else ""
            if abs(final - errors[-1]) < one_sample:
                cause = (
                    "These are the weights of the last epoch. If the best ones were kept, was it a copy, and were "
                    "they put back?"
                )
            raise Wrong(
                f"{self.called}: expected the model with its weights of call {epoch} of validation_set.error, when "
                f"{best:.1%} were read wrongly; its weights read {final:.1%} wrongly.",
                cause,
            )

    def compare_opening(self) -> None:
        """The test set told one error, that of the final weights, and it was returned."""
        times = f"{self.called}: test_set.error was asked {len(self.tested)} times, expected once"
        if not self.tested:
            raise Wrong(f"{times}.", "What the network is worth on new digits is for the test set to say.")
        expect.true(
            len(self.tested) == 1,
            f"{times}.",
            "An error by which one has chosen, or which one has watched, is a validation error: too good to be true.",
        )
        is_of_a_copy = bool(self.validated) and not moved(self.weights, self.validated[-1])
        expect.true(
            not moved(self.tested[0], self.weights),
            f"{self.called}: the model ends with other weights than test_set.error was asked about.",
            "A copy was tested, and the model that was handed over still has the weights of the last epoch; "
            "`model = best` only gives the copy its name. Put the best weights into the model itself."
            if is_of_a_copy
            else "Choose first, put the best weights back, and open the test set last.",
        )
        error = noisy_digits.error(self.weights, self.sets[2])
        validation_error = self.validation_error(self.weights)
        mistakes = {
            "This is the accuracy; the error is 1 - accuracy.": 1 - error,
            "This is the validation error.": validation_error,
            "The error is a share from 0 to 1, not a percentage.": 100 * error,
        }
        one_sample = 1.5 / len(self.sets[2][1])
        expect.number(self.returned, error, f"{self.called} returned", rtol=0, atol=one_sample, mistakes=mistakes)


def compare_three_steps(answer: Answer, seed: int) -> None:
    """Five copies of one digit in batches of two: whatever the order, the three steps can be computed."""
    (x, _), _, _ = noisy_digits.samples(seed)
    before = noisy_digits.start(seed)
    _, logits = noisy_digits.outputs(before, x[:1])
    label = (logits.argmax(axis=1) + 1) % noisy_digits.SIZES[-1]
    one = x[:1], label
    copies = np.repeat(x[:1], COPIES, axis=0), np.repeat(label, COPIES)
    options = (RATE, 1, BATCH_SIZE, seed)
    run = answer.run(noisy_digits.trained, before, (copies, one, one), *options)
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


def descended(weights: list[Array], batch: Samples, factors: list[float], kept: float = 0.0) -> list[Array]:
    """The weights after a step for each factor, which multiplies its gradient; `kept` of the sum before is added."""
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
