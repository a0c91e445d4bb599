"""A student's training loop on noisy digits: what it learned, how it selected an epoch, when it tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from course.checks.minibatch_sgd import noisy_digits
from course.checks.minibatch_sgd.noisy_digits import Array, Sets
from course.checks.minibatch_sgd.training_steps import distance, moved
from course.judging import Wrong, expect


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
        """Raise Wrong unless some epoch classifies enough digits; another part judges which one was kept."""
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
        """Raise Wrong unless the final weights are as good on the validation set as those of every epoch."""
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
            learned = [noisy_digits.error(weights, self.sets[0]) for weights in self.validated]
            if not moved(self.weights, self.validated[int(np.argmin(learned))]) and learned.count(min(learned)) == 1:
                cause = "These are the weights of the epoch that reads most of the training set: validation decides."
            if abs(final - errors[-1]) < one_sample:
                cause = (
                    "These are the weights of the last epoch. If the best ones were kept: were they best by the "
                    "validation error, was it a copy, and were they put back?"
                )
            raise Wrong(
                f"{self.called}: expected the model with its weights of call {epoch} of validation_set.error, when "
                f"{best:.1%} were read wrongly; its weights read {final:.1%} wrongly.",
                cause,
            )
        expect.true(
            any(not moved(self.weights, weights) for weights in self.validated),
            f"{self.called}: the model ends with weights that validation_set.error was never asked about.",
            "The weights of one epoch are to be kept as they were, and put back: not a mean of several.",
        )

    def compare_opening(self) -> None:
        """Raise Wrong unless the test set was used once, for the final weights, and its error was returned."""
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
