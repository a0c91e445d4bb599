"""A picture of a student's training loop: the error after each epoch, and the epoch that was kept."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np
from IPython.display import display

from course.checks.minibatch_sgd import noisy_digits
from course.judging.display import in_notebook
from minidl.plots import style

SEED = 5
OPTIONS = (0.4, 15, 5, SEED)  # lr, epochs, batch_size, seed


def draw_training(train: Callable[..., Any]) -> None:
    """Let `train` train on noisy digits and draw the error after each epoch; print what is seen.

    If it fails, or is not written yet, print that instead. Outside of a notebook, as in grading, do nothing.
    """
    if not in_notebook():
        return
    sets = training, validation, test = noisy_digits.samples(SEED)
    try:  # in a context of its own, whose choice of kernels ends with it
        run = copy_context().run(noisy_digits.trained, train, noisy_digits.start(SEED), sets, *OPTIONS)
    except NotImplementedError:
        print("Nothing to draw: not written yet.")
        return
    except Exception as error:  # whatever a student's code raises is shown, as by the check
        print(f"Nothing to draw: {type(error).__name__}: {error}")
        return
    if not run["validated"]:
        print("Nothing to draw: validation_set.error was never asked.")
        return
    learned = [noisy_digits.error(weights, training) for weights in run["validated"]]
    validated = [noisy_digits.error(weights, validation) for weights in run["validated"]]
    tested = noisy_digits.error(run["weights"], test)
    calls = np.arange(1, len(validated) + 1)
    with style.applied():
        figure, (axes,) = style.new_figure(7.0, 3.0)
        for curve, label in ((learned, "training set, as labelled"), (validated, "validation set")):
            number = len(axes.lines)
            axes.plot(calls, curve, color=style.SERIES[number], linestyle=style.DASHES[number], marker="o", label=label)
        axes.axhline(tested, color=style.SERIES[2], linestyle=style.DASHES[2], label="test set, final weights")
        axes.set(xlabel="epoch (call of validation_set.error)", ylabel="share read wrongly", ylim=(0, None))
        axes.legend()
        wrong = f"{noisy_digits.WRONG_LABELS:.0%} of these labels are wrong"
        style.label_source(figure, "measured", f"{noisy_digits.TRAINING} digits to train on, {wrong}")
    display(figure)  # type: ignore[no-untyped-call]
    best = int(np.argmin(validated))
    print(
        f"Of the validation digits fewest are read wrongly at call {best + 1}: {validated[best]:.1%}; at the last call "
        f"{validated[-1]:.1%}. Of the training labels {learned[best]:.1%} are missed at call {best + 1}, and "
        f"{learned[-1]:.1%} at the last; about {wrong}. Test error of the final weights: {tested:.1%}."
    )
