"""The checks of chapter 02: minibatch SGD."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.library_versions import BUILDS
from course.checks.minibatch_sgd import noisy_digits
from course.checks.minibatch_sgd.adam_moves import CORRECTED, adam_cases, adam_moves, mean_mistakes
from course.checks.minibatch_sgd.epoch_batches import batches_of, compare_samples, compare_sizes
from course.checks.minibatch_sgd.gradient_noise import SMALL, compare_large_mean, compare_variance
from course.checks.minibatch_sgd.momentum_forms import (
    IS_A_SUM,
    as_arguments,
    compare_step,
    corrected_mistakes,
    corrected_velocity_step,
    pytorch_mistakes,
    pytorch_step,
    results,
    shortened,
    vectors,
    velocity_mistakes,
    velocity_step,
)
from course.checks.minibatch_sgd.noisy_digits import digits_with_noise
from course.checks.minibatch_sgd.shuffles import compare_all, compare_far, compare_possible, compare_repeated
from course.checks.minibatch_sgd.training_orders import compare_orders
from course.checks.minibatch_sgd.training_picture import draw_training
from course.checks.minibatch_sgd.training_run import TrainingRun
from course.checks.minibatch_sgd.training_steps import compare_later_epochs, compare_three_steps
from course.judging import Answer, ChapterChecks, Part, expect

__all__ = [
    "adam_step",
    "chapter",
    "corrected_step",
    "digits_with_noise",
    "draw_training",
    "gradient_variance",
    "hint",
    "minibatches",
    "momentum_step",
    "train",
]

chapter = ChapterChecks("02_minibatch_sgd", BUILDS["02_minibatch_sgd"])
hint = chapter.hint

Array = NDArray[Any]


# ---- the sampler ----


@chapter.exercise(
    points=3,
    hints=[
        "An epoch is one order of the numbers 0 … n - 1, cut into pieces. Make the order first, then the pieces.",
        "The order must depend on seed and epoch, and on nothing else: make a new generator in every call.",
        "np.random.default_rng takes a tuple of numbers, too: then each tuple has a generator of its own.",
        "The pieces begin at 0, batch_size, 2 batch_size, … below n; a slice ends where the array ends, so the "
        "last piece is right by itself.",
    ],
)
def minibatches(
    answer: Answer,
    part: Part,
    *,
    sizes: Sequence[tuple[int, int]] = ((10, 4), (12, 4), (3, 8), (1, 1), (0, 4), (300, 64)),
    seed: int = 0,
) -> None:
    """Every sample once an epoch, the last batch with the rest; shuffled anew each epoch, fixed by seed and epoch.

    Samples in their stored order lose the two parts about shuffles; samples drawn with replacement lose all three.
    """
    with part(1, "every sample once an epoch, in batches of batch_size, the last one with the rest"):
        for n, batch_size in sizes:
            for epoch in (0, 1):
                batches, called = batches_of(answer, n, batch_size, seed, epoch)
                compare_sizes(batches, n, batch_size, called)
                compare_samples(batches, n, called)
    with part(1, "the seed and the epoch alone decide on the shuffle"):
        compare_repeated(answer, seed)
    with part(1, "every epoch and every seed has a shuffle of its own"):
        compare_all(answer, seed)
        compare_far(answer, seed)
        compare_possible(answer, seed)


# ---- the variance of a minibatch gradient ----


@chapter.exercise(
    points=3,
    hints=[
        "Begin with batch_size 1: a minibatch is then one sample, all n equally likely. How far is its gradient from "
        "the mean of all n on average, squared?",
        "That is the trace of the covariance: the sum over the columns of `gradients.var(axis=0)`. The n samples are "
        "all there are, so divide by n, not by n - 1.",
        "The mean of independent draws has 1/batch_size of the variance of one.",
        "Without replacement the draws are not independent. The factor is 1 for a batch of 1 and 0 for a batch of "
        "n, and falls linearly between them. n = 1 needs a line of its own.",
    ],
)
def gradient_variance(
    answer: Answer,
    part: Part,
    *,
    sizes: Sequence[tuple[int, int, int]] = (
        (4, 2, 1), (5, 3, 2), (6, 1, 6), (1, 3, 1), (2, 3, 1), (3, 2, 5), (6000, 20, 64), (4, 1100, 2),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """tr(Sigma)/B drawn with replacement; (n - B)/(n - 1) times that without; to all digits, for any mean."""
    rng = np.random.default_rng(seed)
    cases = [(np.round(rng.normal(1.0, 2.0, (n, d)), 2), batch_size) for n, d, batch_size in sizes]
    for replacement, points in ((True, 1.5), (False, 1)):
        with part(points, f"drawn {'with' if replacement else 'without'} replacement"):
            for gradients, batch_size in cases:
                if replacement or batch_size <= len(gradients):
                    compare_variance(answer, gradients, batch_size, replacement)
            compare_variance(answer, SMALL * cases[1][0], cases[1][1], replacement, SMALL)
    with part(0.5, "a mean that is far larger than the spread"):
        compare_large_mean(answer, rng)


# ---- update rules ----


@chapter.exercise(
    points=2,
    hints=[
        "Both forms have two lines: first the state, then w, which moves by the new state.",
        "The state remembers mu times what it was. In the velocity form the rate is in the first line, in PyTorch's "
        "form in the second.",
        "velocity: the new v is mu * v - lr * gradient. Write PyTorch's form in the same way, from the table.",
    ],
)
def momentum_step(
    answer: Answer,
    part: Part,
    *,
    sizes: Sequence[int] = (1, 2, 7, 1100),
    mus: Sequence[float] = (0.9, 0.5),
    seed: int = 0,
) -> None:
    """One step of either form: the new w and the new state."""
    rng = np.random.default_rng(seed)
    cases = [(vectors(rng, d, 3), lr, mu) for d in sizes for lr, mu in zip((0.2, 0.3), mus, strict=True)]
    for form, title in (("velocity", "velocity form: the rate inside"), ("pytorch", "PyTorch's: the rate outside")):
        with part(1, title):
            for (w, state, gradient), lr, mu in cases:
                arguments = as_arguments(w=w, state=state, gradient=gradient, lr=lr, mu=mu, form=form)
                right = velocity_step(lr, mu) if form == "velocity" else pytorch_step(lr, mu)
                mistakes = velocity_mistakes(lr, mu) if form == "velocity" else pytorch_mistakes(lr, mu)
                got = answer(w, state, gradient, lr, mu, form, may_change=(0, 1))
                compare_step(got, right, mistakes, (w, state, gradient), f"momentum_step({arguments})", "state")


@chapter.exercise(
    points=2,
    hints=[
        "The velocity is a sum of past gradients, each times the rate of its day. In PyTorch's form all of them are "
        "multiplied by the rate of today.",
        "So before the step take the old rate out of the velocity and put the new one in. The new gradient needs "
        "nothing: it is multiplied by lr anyway.",
        "Try two steps by hand, with mu = 1, gradients of 1 and rates 1 and 2: the weights must be those of "
        "momentum_step in PyTorch's form.",
    ],
)
def corrected_step(
    answer: Answer,
    part: Part,
    *,
    rates: Sequence[float] = (0.1, 0.2, 0.4, 0.4, 0.04, 0.0402, 0.04021, 0.00002),
    mu: float = 0.9,
    sizes: Sequence[int] = (2, 5, 1100),
    seed: int = 0,
) -> None:
    """The velocity form, corrected so that its path is that of PyTorch's form also when the rate changes.

    The correction is the lesson: momentum_step's velocity form without it gets a quarter of the points.
    """

    def compare(w: Array, v: Array, gradient: Array, lr: float, lr_before: float) -> None:
        called = f"corrected_step({as_arguments(w=w, v=v, gradient=gradient, lr=lr, lr_before=lr_before, mu=mu)})"
        got = answer(w, v, gradient, lr, lr_before, mu)
        mistakes = corrected_mistakes(lr, lr_before, mu)
        if lr == lr_before:
            mistakes = velocity_mistakes(lr, mu) | {IS_A_SUM: mistakes[IS_A_SUM]}
        right = corrected_velocity_step(lr, lr_before, mu)
        compare_step(got, right, mistakes, (w, v, gradient), called, "v")

    with part(0.5, "as long as the rate is constant, the velocity form"):
        rng = np.random.default_rng(seed)
        for d in sizes:
            w, v, gradient = vectors(rng, d, 3)
            compare(w, v, gradient, rates[0], rates[0])
    with part(1.5, "where the rate changes, the path of PyTorch's form"):
        rng = np.random.default_rng(seed)
        for d in sizes:
            w, u = vectors(rng, d, 2)
            for lr_before, lr in pairwise(rates):
                gradient = vectors(rng, d, 1)[0]
                if lr != lr_before:
                    compare(w, shortened(-lr_before * u), gradient, lr, lr_before)
                u = shortened(mu * u + gradient)
                w = shortened(w - lr * u)


@chapter.exercise(
    points=3,
    hints=[
        "m is a decayed mean of the gradients, v of their squares: m = beta1 m + (1 - beta1) gradient.",
        "Both start at zero and are too small at first, by the factors 1 - beta1**t and 1 - beta2**t. Divide by these "
        "for this step only, under other names: what is returned, and comes back next time, are m and v themselves.",
        "In the denominator the root comes first, then eps.",
    ],
)
def adam_step(
    answer: Answer,
    part: Part,
    *,
    sizes: Sequence[int] = (2, 5, 1100),
    betas: tuple[float, float] = (0.9, 0.999),
    steps: int = 3,
    seed: int = 0,
) -> None:
    """m, v and w after the first steps, after some later ones, and when the corrections are 1; eps is 0.1 or 0.15.

    Half of the points are for the bias correction, which matters as long as beta2**t does: 5,000 steps with 0.999.
    """
    beta1, beta2 = betas
    cases = [case for d in sizes for case in adam_cases(np.random.default_rng((seed, d)), d, beta1, beta2, steps)]

    def rates(t: int) -> tuple[float, float]:
        return (0.5, 0.1) if t % 2 else (0.3, 0.15)

    def step(w: Array, m: Array, v: Array, t: int, gradient: Array) -> tuple[list[Any], str]:
        lr, eps = rates(t)
        options = {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps}
        called = f"adam_step({as_arguments(w=w, m=m, v=v, t=t, gradient=gradient, **options)})"
        return results(answer(w, m, v, t, gradient, lr, beta1, beta2, eps), "w, m, v", called), called

    with part(0.75, "m and v are the decayed means of the gradient and of its square"):
        for w, m, v, t, gradient in cases:
            (_, got_m, got_v), called = step(w, m, v, t, gradient)
            want, mistakes = mean_mistakes(m, v, t, gradient, betas)
            for name, got, right in zip("mv", (got_m, got_v), want, strict=True):
                expect.array(got, right, f"{name} after {called}", mistakes=mistakes[name])
    for late, points, title in (
        (True, 0.75, "m over the root of v, eps outside the root"),
        (False, 1.5, "corrected for the start at 0, at the first steps and later"),
    ):
        with part(points, title):
            for w, m, v, t, gradient in cases:
                if (t >= CORRECTED) == late:
                    (got, _, _), called = step(w, m, v, t, gradient)
                    lr, eps = rates(t)
                    want, mistakes = adam_moves(m, v, t, gradient, betas, eps)
                    mistakes = {cause: w - lr * move for cause, move in mistakes.items()}
                    mistakes["The rate was forgotten."] = w - want
                    expect.array(got, w - lr * want, f"w after {called}", mistakes=mistakes)


# ---- training ----


@chapter.exercise(
    points=5,
    hints=[
        "Three steps for each minibatch, in this order: forget the old gradients, compute the new ones "
        "(F.cross_entropy(model(x), y).backward()), move the weights (optim.SGD does it, or "
        "parameter.data -= lr * parameter.grad).",
        "The samples lie sorted by class. Take the batches from your minibatches(len(train_set), batch_size, seed, "
        "epoch): train_set[batch] is (x, y). A data.DataLoader with shuffle=True and set_epoch(epoch) will do as well.",
        "After each epoch ask validation_set.error(model). If it is the lowest so far, keep model.state_dict(): that "
        "is a copy; a list of the parameters' own arrays would go on changing.",
        "After the last epoch put the weights that you kept back into the model: load_state_dict. Then, once, ask "
        "the test set.",
    ],
)
def train(
    answer: Answer,
    part: Part,
    *,
    seeds: Sequence[int] = (5,),
    lr: float = 0.4,
    epochs: int = 15,
    batch_size: int = 5,
    target: float = 0.3,
) -> None:
    """Steps of SGD to the letter; noisy digits, shuffled: learned, the best epoch kept, the test set opened once."""
    with part(2, "each step is one of minibatch SGD, that of the smaller last batch too"):
        for seed in seeds:
            compare_three_steps(answer, seed)
            compare_later_epochs(answer, seed)
    runs = []
    for seed in seeds:  # outside of a part: three parts look at them
        sets = noisy_digits.samples(seed)
        run = answer.run(noisy_digits.trained, noisy_digits.start(seed), sets, lr, epochs, batch_size, seed)
        runs.append(TrainingRun(seed, sets, lr, epochs, batch_size, **run))
    with part(1, "digits that lie sorted by class are learned, each epoch in an order that the seed decides"):
        for run in runs:
            run.compare_learning(target)
        for seed in seeds:
            compare_orders(answer, seed)
    with part(1, "the weights are those of the epoch with the lowest validation error"):
        for run in runs:
            run.compare_choice()
    with part(1, "the test set is opened once, for these weights"):
        for run in runs:
            run.compare_opening()
