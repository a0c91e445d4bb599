"""Compiled elementwise loops run in memory order, regardless of the order of the axes.

A transposed matrix is read as fast as the matrix itself, and the result has its layout, as with numpy and PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import fits
from minidl.kernels.parallel_for import parallel_for

Loop = Callable[..., Any]

BLOCK = 1024  # numbers: whole vectors, so that each number is computed by the same instructions in any share
WORTH_A_THREAD = 1 << 19  # numbers; their relu takes 120 us from the second cache, 300 us from memory


def elementwise(fastmath: bool | set[str] = False, cost: int = 1) -> Callable[[Loop], Callable[..., Array]]:
    """Make a loop over lines of numbers a kernel; the reference's kernel of the same name takes what `fits` refuses.

    A loop f(x, out) becomes f(x); f(g, x, gradient), of two arrays of one shape, becomes f(g, x).
    cost: time of one number, in multiples of relu's; a larger one lets threads share out smaller arrays.
    """

    def decorate(loop: Loop) -> Callable[..., Array]:
        run, otherwise = compiled(fastmath)(loop), getattr(reference, loop.__name__)

        def of_one(x: Array) -> Array:
            return mapped(run, x, cost) if fits(x) else otherwise(x)

        def of_two(g: Array, x: Array) -> Array:
            return mapped_pairs(run, g, x, cost) if fits(x, g) else otherwise(g, x)

        kernel: Any = of_one if loop.__code__.co_argcount == 2 else of_two
        kernel.__name__ = kernel.__qualname__ = loop.__name__
        kernel.__doc__, kernel.__module__ = loop.__doc__, loop.__module__
        return kernel

    return decorate


def mapped(loop: Loop, x: Array, cost: int = 1) -> Array:
    """Call loop(line of x, line of the result), where a line is the array's numbers in memory order."""
    run = partial(in_shares, x.size * cost // WORTH_A_THREAD, BLOCK, loop)
    if x.flags.c_contiguous:
        out = np.empty(x.shape, x.dtype)  # half the time of empty_like
        run(x.ravel(), out.ravel())
    else:
        out = np.empty_like(x)
        run(arranged(x, out), out.ravel("K"))
    return out


def mapped_pairs(loop: Loop, g: Array, x: Array, cost: int = 1) -> Array:
    """Call loop(line of g, line of x, line of the result); the result has the layout of x."""
    run = partial(in_shares, x.size * cost // WORTH_A_THREAD, BLOCK, loop)
    if x.flags.c_contiguous and g.flags.c_contiguous:
        out = np.empty(x.shape, x.dtype)
        run(g.ravel(), x.ravel(), out.ravel())
        return out
    out = np.empty_like(x)
    run(arranged(g, out), arranged(x, out), out.ravel("K"))
    return out


def arranged(x: Array, out: Array) -> Array:
    """Return x, broadcast to the shape of out, as a line in out's memory order; out has no gaps.

    Only equal strides mean an equal order: `x.ravel("K")` and `np.empty_like(x)` order the axes of a broadcast x, whose
    strides are 0, in two ways.
    """
    if x.shape == out.shape and x.strides == out.strides:
        return x.ravel("K")
    line = np.empty_like(out)
    line[...] = x
    return line.ravel("K")


def in_shares(most: int, block: int, loop: Loop, *arguments: Any) -> None:
    """Call the loop in up to `most` threads, with shares of the arrays in `arguments`, which are equally long.

    A share is whole blocks of `block` entries of the first axis; the last one has what is left over, too. An array of
    length 1 is broadcast: every share has it whole.
    """
    if most < 2:
        loop(*arguments)
        return
    length = max(len(one) for one in arguments if isinstance(one, np.ndarray))
    blocks = length // block

    def of_blocks(begin: int, end: int) -> None:
        share = slice(begin * block, length if end == blocks else end * block)
        loop(*(one[share] if isinstance(one, np.ndarray) and len(one) > 1 else one for one in arguments))

    parallel_for(blocks, most, of_blocks)


def along_axis(axis: int, x: Array, *others: Array) -> tuple[Array, list[Array]]:
    """An empty result with the layout of x; and x, the others and the result as contiguous arrays (outer, n, inner).

    n is the length of `axis`; the axes around it are ordered and joined as they lie in the memory of x.
    """
    out = np.empty_like(x)
    if x.flags.c_contiguous and axis in (-1, x.ndim - 1):  # the most frequent case
        return out, [np.ascontiguousarray(array).reshape(-1, x.shape[-1], 1) for array in (x, *others, out)]
    order = list(range(x.ndim))
    if not out.flags.c_contiguous:
        order.sort(key=lambda i: -out.strides[i])
    position, shape = order.index(axis % x.ndim), [x.shape[i] for i in order]
    shape = [prod(shape[:position]), shape[position], prod(shape[position + 1 :])]
    return out, [np.ascontiguousarray(array.transpose(order)).reshape(shape) for array in (x, *others, out)]


def dense(x: Array) -> Array:
    """Return x, or a copy without gaps in the same order."""
    return x if x.flags.forc else x.copy(order="K")
