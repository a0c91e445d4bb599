"""Probes for the answers of chapter 08: steps that write into their arguments, their memory, and clusters."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Cluster:
    """A cluster and a training job, for which the best minibatch is to be found.

    Attributes
        nodes                p
        seconds_per_sample   of one node, for one sample
        nbytes               of a gradient
        alpha                seconds a message
        beta                 seconds a byte
        s_min                steps to the target with minibatches without noise
        b_c                  the critical minibatch, in samples
        most_per_node        samples for which a node has memory
    """

    nodes: int
    seconds_per_sample: float
    nbytes: int
    alpha: float
    beta: float
    s_min: float
    b_c: float
    most_per_node: int


def steps_in_place(
    function: Callable[..., Any],
    weights: Sequence[Array],
    moving: Sequence[Array],
    gradients: Sequence[Sequence[Array]],
    rates: Sequence[float],
    settings: Sequence[float],
) -> dict[str, Any]:
    """Probe: calls function(weights, gradients, velocities, lr, *settings), which changes its lists, once a step.

    moving: the velocities before the first step.

    Returns the contents of the lists after each step, what the last call returned, whether a list has a new array
    object or another length, and whether a gradient was changed.
    """
    kept, kept_velocities = [w.copy() for w in weights], [v.copy() for v in moving]
    own, velocities = list(kept), list(kept_velocities)
    held: list[tuple[list[Array], list[Array]]] = []
    is_replaced = is_gradient_changed = False
    returned = None
    for given, lr in zip(gradients, rates, strict=True):
        passed = [g.copy() for g in given]
        lent = list(passed)
        returned = function(own, lent, velocities, lr, *settings)
        held.append(([np.array(w) for w in own], [np.array(v) for v in velocities]))
        is_replaced |= not (are_same(own, kept) and are_same(velocities, kept_velocities))
        is_gradient_changed |= not are_same(lent, passed) or any(
            not np.array_equal(a, b) for a, b in zip(passed, given, strict=True)
        )
    return {
        "held": held,
        "returned": returned,
        "is_replaced": is_replaced,
        "is_gradient_changed": is_gradient_changed,
    }


def are_same(now: Sequence[Array], before: Sequence[Array]) -> bool:
    """Whether a list has the same array objects as before."""
    return len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))


def peak_of_step(
    function: Callable[..., Any], weights: Sequence[Array], gradients: Sequence[Array], settings: Sequence[float]
) -> tuple[int, bool]:
    """Probe: the peak memory of a second call of function(weights, gradients, velocities, *settings), in bytes.

    Also returns whether all weights have changed and are finite.
    """
    own, velocities = [w.copy() for w in weights], [np.zeros_like(w) for w in weights]
    lent = [g.copy() for g in gradients]
    function(own, lent, velocities, *settings)
    tracemalloc.start()
    try:
        function(own, lent, velocities, *settings)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    have_changed = len(own) == len(weights) and all(
        np.isfinite(now).all() and not np.array_equal(now, before) for now, before in zip(own, weights, strict=True)
    )
    return peak, bool(have_changed)
