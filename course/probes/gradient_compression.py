"""Probes for the answers of chapter 09: steps that write into what they keep, and means over random numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def steps_in_place(
    function: Callable[..., Any], gradients: Sequence[Array], kept: Sequence[Array], settings: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """Probe: function(gradient, *kept, *settings[i]) for the gradient of each step i; it writes into the arrays kept.

    Returns for each step what came back, and what the arrays kept hold then; and whether a gradient was changed, or
    what an earlier step had returned.
    """
    own, returned, held, is_gradient_changed = [each.copy() for each in kept], [], [], False
    given_back: list[Array] = []
    for gradient, rest in zip(gradients, settings, strict=True):
        lent = gradient.copy()
        result = function(lent, *own, *rest)
        if isinstance(result, tuple | list):
            given_back += [each for each in result if isinstance(each, np.ndarray)]
            result = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in result)
        returned.append(result)
        held.append([each.copy() for each in own])
        is_gradient_changed |= not np.array_equal(lent, gradient)
    copies = [
        each for result in returned if isinstance(result, tuple) for each in result if isinstance(each, np.ndarray)
    ]
    is_overwritten = not all(map(np.array_equal, given_back, copies))
    return {
        "returned": returned,
        "held": held,
        "is_gradient_changed": is_gradient_changed,
        "is_overwritten": is_overwritten,
    }


def warned_of(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """Probe: the warnings of function(*arguments)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments)
    return [str(each.message) for each in caught]


def moments_over_a_grid(
    function: Callable[..., Any], gradient: Array, s: int, points: int
) -> tuple[Array, float, float]:
    """Probe: the mean and the mean squared error of norm * levels / s, and the mean of what is not zero.

    All entries get the random number (j + 1/2) / points, for each j from 0 to points - 1: each share of the numbers
    from 0 to 1 is drawn equally often.
    """
    total, squared, nonzero = np.zeros(len(gradient)), 0.0, 0.0
    for j in range(points):
        norm, levels = function(gradient.copy(), s, np.full(len(gradient), (j + 0.5) / points))
        meant = float(norm) * np.asarray(levels, float) / s
        total += meant
        squared += float(((meant - gradient) ** 2).sum())
        nonzero += np.count_nonzero(levels)
    return total / points, squared / points, nonzero / points
