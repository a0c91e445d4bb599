"""Any reduction as a few passes over arrays (a, r, b): a matrices of r rows and b columns, whose rows are reduced."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from minidl.kernels import Array

Axis = int | tuple[int, ...] | None


class Passes(NamedTuple):
    """How an array is reduced."""

    order: tuple[int, ...] | None  # its axes in memory order; None: in their numbered order
    steps: tuple[tuple[int, int, int], ...]  # (a, r, b) of every pass, the last axes first
    kept: tuple[int, ...]  # the shape of the result in this order, reduced axes with length 1
    back: tuple[int, ...]  # the order that undoes this one
    shape: tuple[int, ...]  # the result's shape, reduced axes left out
    axes: tuple[int, ...]  # the reduced axes as they are numbered
    times: int  # number of elements that are reduced to one


def passes(x: Array, axis: Axis) -> tuple[Array, Passes]:
    """Return the array with its axes in memory order, and how it is reduced; an array with gaps is copied.

    Raises numpy's AxisError for an axis that does not exist, ValueError for one that is given twice.

    >>> passes(np.ones((5, 3, 4, 2)), (0, 2, 3))[1].steps  # the last two axes of 15 pairs, then the first one
    ((15, 8, 1), (1, 5, 3))
    """
    if x.flags.c_contiguous:
        return x, _passes(x.shape, None, axis)
    plan = _passes(x.shape, x.strides, axis)
    ordered = x.transpose(plan.order)
    if ordered.flags.c_contiguous:
        return ordered, plan
    return np.ascontiguousarray(x), _passes(x.shape, None, axis)


@lru_cache(maxsize=4096)
def _passes(shape: tuple[int, ...], strides: tuple[int, ...] | None, axis: Axis) -> Passes:
    axes = tuple(range(len(shape))) if axis is None else normalize_axis_tuple(axis, len(shape))
    numbers = range(len(shape))
    order = tuple(numbers) if strides is None else tuple(sorted(numbers, key=lambda number: -strides[number]))
    groups: list[tuple[bool, int]] = []  # neighbouring axes that are both reduced, or both kept, are merged
    for number in order:
        if shape[number] > 1:
            reduced, length = number in axes, shape[number]
            if groups and groups[-1][0] == reduced:
                length *= groups.pop()[1]
            groups.append((reduced, length))
    steps, after = [], 1
    while groups:
        reduced, length = groups.pop()
        if reduced:
            steps.append((prod(group[1] for group in groups), length, after))
        else:
            after *= length
    return Passes(
        order=None if strides is None else order,
        steps=tuple(steps),
        kept=tuple(1 if number in axes else shape[number] for number in order),
        back=tuple(sorted(numbers, key=order.__getitem__)),
        shape=tuple(shape[number] for number in numbers if number not in axes),
        axes=axes,
        times=prod(shape[number] for number in axes),
    )


def repeated(x: Array, axis: Axis) -> tuple[Array, int]:
    """Return a broadcast array without repetitions along the reduced axes, and the number of repetitions.

    >>> repeated(np.broadcast_to(np.ones(3), (4, 3)), 0)
    (array([[1., 1., 1.]]), 4)
    """
    axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim)
    equal = [number for number in axes if x.strides[number] == 0]
    once = x[tuple(slice(1) if number in equal else slice(None) for number in range(x.ndim))]
    return once, prod(x.shape[number] for number in equal)
