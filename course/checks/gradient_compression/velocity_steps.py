"""One step of `corrected_entries`: what the right one sends and keeps, and what known mistakes do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Kept:
    """What a step sends and keeps."""

    indices: Array
    values: Array
    velocity: Array
    waiting: Array


@dataclass(frozen=True)
class Step:
    """A step before it is made."""

    gradient: Array
    velocity: Array
    waiting: Array
    m: float
    k: int
    masking: bool

    def after(self, rule: Rule | None = None) -> Kept:
        return (rule or right)(self)


Rule = Callable[[Step], Kept]


def top(waiting: Array, k: int) -> Array:
    return np.argsort(-np.abs(waiting), kind="stable")[:k]


def made(step: Step, velocity: Array, waiting: Array, indices: Array | None = None) -> Kept:
    """Send the largest of `waiting`; the rest as in the docstring."""
    indices = top(waiting, step.k) if indices is None else indices
    kept, u = waiting.copy(), velocity.copy()
    kept[indices] = 0
    if step.masking:
        u[indices] = 0
    return Kept(indices, waiting[indices], u, kept)


def right(step: Step) -> Kept:
    """The oracle."""
    u = step.m * step.velocity + step.gradient
    return made(step, u, step.waiting + u)


def naive(step: Step) -> Kept:
    """Gradients wait, and momentum comes when an entry is sent."""
    waiting = step.waiting + step.gradient
    indices = top(waiting, step.k)
    u, kept = step.velocity.copy(), waiting.copy()
    u[indices] = step.m * u[indices] + waiting[indices]
    kept[indices] = 0
    return Kept(indices, u[indices], u, kept)


def only_gradients_wait(step: Step) -> Kept:
    return made(step, step.m * step.velocity + step.gradient, step.waiting + step.gradient)


def velocity_kept(step: Step) -> Kept:
    """masking was taken the other way round."""
    return right(Step(step.gradient, step.velocity, step.waiting, step.m, step.k, not step.masking))


def all_masked(step: Step) -> Kept:
    kept = right(step)
    return Kept(kept.indices, kept.values, kept.velocity * (not step.masking), kept.waiting)


def kept_masked(step: Step) -> Kept:
    """The velocity is cleared where nothing is sent."""
    kept, u = right(step), step.m * step.velocity + step.gradient
    return Kept(kept.indices, kept.values, u - kept.velocity if step.masking else u, kept.waiting)


def nesterov(step: Step) -> Kept:
    u = step.m * step.velocity + step.gradient
    return made(step, u, step.waiting + step.m * u + step.gradient)


def not_cleared(step: Step) -> Kept:
    kept = right(step)
    u = step.m * step.velocity + step.gradient
    return Kept(kept.indices, kept.values, kept.velocity, step.waiting + u)


def all_cleared(step: Step) -> Kept:
    kept = right(step)
    return Kept(kept.indices, kept.values, kept.velocity, np.zeros_like(kept.waiting))


def momentum_twice(step: Step) -> Kept:
    u = step.m * step.velocity + step.gradient
    return made(step, u, step.m * step.waiting + u)


def velocity_alone(step: Step) -> Kept:
    u = step.m * step.velocity + step.gradient
    return made(step, u, u)


def weighted_gradient(step: Step) -> Kept:
    u = step.m * step.velocity + (1 - step.m) * step.gradient
    return made(step, u, step.waiting + u)


def old_velocity(step: Step) -> Kept:
    u = step.m * step.velocity + step.gradient
    return made(step, u, step.waiting + step.velocity)


def chosen_before(step: Step) -> Kept:
    u = step.m * step.velocity + step.gradient
    return made(step, u, step.waiting + u, top(step.waiting, step.k))


def chosen_by_velocity(step: Step) -> Kept:
    u = step.m * step.velocity + step.gradient
    return made(step, u, step.waiting + u, top(u, step.k))


def by_value(step: Step) -> Kept:
    u = step.m * step.velocity + step.gradient
    waiting = step.waiting + u
    return made(step, u, waiting, np.argsort(-waiting, kind="stable")[: step.k])


def velocity_sent(step: Step) -> Kept:
    kept, u = right(step), step.m * step.velocity + step.gradient
    return Kept(kept.indices, u[kept.indices], kept.velocity, kept.waiting)


MISTAKES: dict[str, Rule] = {
    "Masking sets v to 0 in the sent entries alone, not in all.": all_masked,
    "Masking sets v to 0 in the sent entries, not in those that are kept.": kept_masked,
    "This is Nesterov's momentum: waiting <- waiting + v.": nesterov,
    "Momentum comes after the choice: an entry that waits misses the momentum of these steps. Put v before it.": naive,
    "The gradients wait here; what waits is the sum of the velocities v.": only_gradients_wait,
    "masking is the other way round, or missing: True sets v to 0 where an entry is sent.": velocity_kept,
    "`waiting` still has the entries that were sent: they would be sent again.": not_cleared,
    "All of `waiting` was cleared: only the sent entries are.": all_cleared,
    "`waiting` was multiplied by m, too: momentum is in v already.": momentum_twice,
    "What waited before is lost: v is added to `waiting`.": velocity_alone,
    "The gradient was multiplied by 1 - m: v <- m v + g.": weighted_gradient,
    "The old velocity was added: first v <- m v + g, then waiting <- waiting + v.": old_velocity,
    "The entries were chosen before the new v was added.": chosen_before,
    "The entries were chosen by the velocity; choose by `waiting`.": chosen_by_velocity,
    "The largest numbers were chosen; choose the largest magnitudes.": by_value,
    "The velocity was sent; send `waiting`.": velocity_sent,
}
