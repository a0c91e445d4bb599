"""A momentum step as four coefficients, right and wrong: w' = w + a s + b g and s' = c s + e g.

s is the state before the step (the velocity v, or the sum u), g the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Wrong, expect

Array = NDArray[Any]
Coefficients = tuple[float, float, float, float]
Step = tuple[Array, Array]

SHOWN = 3
"""Numbers of an array that a message shows."""


def velocity_step(lr: float, mu: float) -> Coefficients:
    """The rate inside: v = mu v - lr g, w = w + v."""
    return mu, -lr, mu, -lr


def pytorch_step(lr: float, mu: float) -> Coefficients:
    """The rate outside: u = mu u + g, w = w - lr u."""
    return -lr * mu, -lr, mu, 1.0


def corrected_velocity_step(lr: float, lr_before: float, mu: float) -> Coefficients:
    """The rate inside, and the old rate in the velocity replaced: v = mu (lr / lr_before) v - lr g, w = w + v.

    Source: Goyal et al., arXiv:1706.02677, section 3, remark 2.
    """
    return mu * lr / lr_before, -lr, mu * lr / lr_before, -lr


AVERAGED = "The gradient was multiplied by 1 - mu: that is an average of gradients, momentum is a sum."
NO_MOMENTUM = "This is a step without momentum."
KEPT = "mu is what is kept of the old state, not what is forgotten: mu, not 1 - mu."
NOT_RETURNED = "w is right, but the state that came back is the old one."
NOT_MOVED = "The state is right, but w has not moved: `w + …` alone makes an array that nobody keeps."
NESTEROV = "This is Nesterov's step."


def velocity_mistakes(lr: float, mu: float) -> dict[str, Coefficients]:
    """The classic mistakes in the velocity form."""
    return {
        "This is PyTorch's form; here the rate stands inside the velocity.": pytorch_step(lr, mu),
        "w moved by lr * v, but the rate is inside the velocity already: w + v.": (lr * mu, -lr * lr, mu, -lr),
        "lr * gradient was added: the velocity points down, against the gradient.": (mu, lr, mu, lr),
        "w moved against the velocity, which points down already: w + v.": (-mu, lr, mu, -lr),
        "w moved by the old velocity: first the velocity, then w.": (1.0, 0.0, mu, -lr),
        "The old velocity was not multiplied by mu.": (1.0, -lr, 1.0, -lr),
        AVERAGED: (mu, -(1 - mu) * lr, mu, -(1 - mu) * lr),
        KEPT: (1 - mu, -lr, 1 - mu, -lr),
        NOT_RETURNED: (mu, -lr, 1.0, 0.0),
        NOT_MOVED: (0.0, 0.0, mu, -lr),
        "The old velocity was multiplied by the rate: its gradients have theirs already.": (lr * mu, -lr, lr * mu, -lr),
        NO_MOMENTUM: (0.0, -lr, 0.0, -lr),
        NESTEROV: (mu * mu, -(1 + mu) * lr, mu, -lr),
    }


def pytorch_mistakes(lr: float, mu: float) -> dict[str, Coefficients]:
    """The classic mistakes in PyTorch's form."""
    return {
        "This is the velocity form; here the state is a sum of gradients, and the rate stands outside.": velocity_step(
            lr, mu
        ),
        AVERAGED: (-lr * mu, -lr * (1 - mu), mu, 1 - mu),
        KEPT: (-lr * (1 - mu), -lr, 1 - mu, 1.0),
        NOT_RETURNED: (-lr * mu, -lr, 1.0, 0.0),
        NOT_MOVED: (0.0, 0.0, mu, 1.0),
        "The rate stands in both lines: here u sums the gradients themselves.": (-lr * mu, -lr * lr, mu, lr),
        "w moved along the gradients: w - lr * u.": (lr * mu, lr, mu, 1.0),
        "w moved by the old state: first the state, then w.": (-lr, 0.0, mu, 1.0),
        "The old state was not multiplied by mu.": (-lr, -lr, 1.0, 1.0),
        "w moved by u itself: the rate was not applied.": (-mu, -1.0, mu, 1.0),
        NO_MOMENTUM: (0.0, -lr, 0.0, 1.0),
        NESTEROV: (-lr * mu * mu, -lr * (1 + mu), mu, 1.0),
    }


def corrected_mistakes(lr: float, lr_before: float, mu: float) -> dict[str, Coefficients]:
    """The classic mistakes in the velocity form whose rate has just changed."""
    up, down = lr / lr_before, lr_before / lr
    return {
        "The velocity was not corrected: it still holds the old rate.": velocity_step(lr, mu),
        "The factor is upside down: the old rate is taken out, the new one put in, lr / lr_before.": (
            velocity_step(lr, mu * down)
        ),
        "The new gradient was rescaled too: only what the velocity remembers has the old rate.": (
            up * mu, -up * lr, up * mu, -up * lr
        ),
        "The gradient was multiplied by the old rate.": (mu, -lr_before, mu, -lr_before),
        "The old velocity was not multiplied by mu.": velocity_step(lr, up),
        "The old velocity was thrown away: it is rescaled.": (0.0, -lr, 0.0, -lr),
        "The velocity was corrected twice.": velocity_step(lr, mu * up * up),
        "w is right, but the velocity that came back is not the one it moved by.": (mu * up, -lr, mu, -lr * down),
        "w moved by the corrected velocity, but the uncorrected one was returned.": (mu * up, -lr, mu, -lr),
        "w moved by the uncorrected velocity.": (mu, -lr, mu * up, -lr),
        "This is PyTorch's form: the state that comes in and goes out here is the velocity.": pytorch_step(lr, mu),
        IS_A_SUM: (mu * up, -lr, -mu / lr_before, 1.0),
    }  # fmt: skip


IS_A_SUM = "w is right, but what came back is PyTorch's sum of gradients: return the velocity, -lr times it."


def applied(step: Coefficients, w: Array, state: Array, gradient: Array) -> Step:
    """w and the state after a step."""
    a, b, c, e = step
    return w + a * state + b * gradient, c * state + e * gradient


def compare_step(
    got: Any,
    right: Coefficients,
    mistakes: dict[str, Coefficients],
    before: tuple[Array, Array, Array],
    called: str,
    name: str,
) -> None:
    """Raise Wrong unless `got` is (w, state) after the step; a mistake is named if both show it.

    before: w, the state and the gradient. called: the call in words. name: of the state.
    """
    after = results(got, f"w, {name}", called)
    want = applied(right, *before)
    causes = [sentence for sentence, wrong in mistakes.items() if all_close(after, applied(wrong, *before))]
    if all_close(after[::-1], want):
        causes = [f"They came in the other order: return w, {name}."]
    for part, value, number in zip(("w", name), after, want, strict=True):
        expect.array(value, number, f"{part} after {called}", mistakes=dict.fromkeys(causes[:1], value))


def results(got: Any, names: str, called: str) -> list[Any]:
    """The arrays that a step returned, one for each name. Raises Wrong if it returned anything else."""
    count = len(names.split(", "))
    if got is None:
        raise Wrong(f"{called}: expected ({names}), got None.", expect.FORGOTTEN_RETURN)
    if not isinstance(got, (tuple, list)) or len(got) != count:
        raise Wrong(f"{called}: expected {count} arrays, got {expect.shown(got)}.", f"The last line: return {names}.")
    return list(got)


def all_close(got: list[Any], want: Step) -> bool:
    return all(
        isinstance(value, np.ndarray) and value.shape == right.shape and expect.close(value, right, 1e-6, 1e-9)
        for value, right in zip(got, want, strict=True)
    )


def vectors(rng: np.random.Generator, d: int, count: int) -> list[Array]:
    """`count` random vectors: few numbers have few digits, so that a student can type them; of many one is small."""
    made = [np.round(rng.normal(0, 2, d), 6) for _ in range(count)]
    for each in made:
        each[SHOWN + 1 :][-1:] *= 1e-8
    return made


def shortened(values: Array) -> Array:
    """Rounded, where a message shows them."""
    return np.round(values, 6) if values.size <= SHOWN else values


def as_arguments(**values: Any) -> str:
    """Arguments as a student would type them; an array of more than SHOWN numbers is shown by its size."""
    shown = {
        name: repr(value) if not isinstance(value, np.ndarray)
        else f"np.array({value.tolist()})" if value.size <= SHOWN
        else f"<{value.size} numbers>"
        for name, value in values.items()
    }  # fmt: skip
    return ", ".join(f"{name}={text}" for name, text in shown.items())
