"""Rounding at random, for QSGD and TernGrad: numpy's random numbers, drawn and used in one walk through memory.

numpy's default generator, PCG64, multiplies a state of 128 bits by a constant for each number and waits for the
product. Here four states advance side by side, each by four numbers at a time, and yield the same numbers in the same
order. Source: O'Neill, PCG (Harvey Mudd College HMC-CS-2014-0905), sections 4.3.1 (jumps ahead) and 6.3 (XSL-RR).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.eligible import eligible
from minidl.kernels.jit.function_attributes import never_inlined, wide_vectors

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
MODULUS = 1 << 128
STREAMS = 4
BLOCK = 1024  # random numbers that are drawn before they are used; they stay in the first cache


def levels_at_random(flat: Array, steps: Array, width: int, levels: int, generator: np.random.Generator) -> Array:
    if not eligible(flat) or not _is_pcg64(generator) or levels > 127:
        return NotImplemented
    symbols = np.empty(flat.size, np.uint8)
    _round_to_levels(flat, steps, width, levels, *_drawn(generator, flat.size), symbols)
    return symbols


def signs_at_random(flat: Array, scale: float, bound: float, generator: np.random.Generator) -> Array:
    if not eligible(flat) or not _is_pcg64(generator):
        return NotImplemented
    symbols = np.empty(flat.size, np.uint8)
    _round_to_signs(flat, float(scale), float(bound), *_drawn(generator, flat.size), symbols)
    return symbols


# ---- PCG64 ----


def _is_pcg64(generator: np.random.Generator) -> bool:
    return type(generator.bit_generator) is np.random.PCG64


def _drawn(generator: np.random.Generator, count: int) -> tuple[Array, Array]:
    """The first states and the step of the streams, as halves of 64 bits; the generator moves on by `count` numbers."""
    whole: Any = generator.bit_generator.state
    state, increment = whole["state"]["state"], whole["state"]["inc"]
    states = [_ahead(state, increment, number + 1) for number in range(STREAMS)]
    whole["state"]["state"] = _ahead(state, increment, count)
    generator.bit_generator.state = whole
    return _halves(states), _halves([pow(MULTIPLIER, STREAMS, MODULUS), _ahead(0, increment, STREAMS)])


def _ahead(state: int, increment: int, steps: int) -> int:
    """The state after `steps` times state = MULTIPLIER state + increment."""
    power = pow(MULTIPLIER, steps, (MULTIPLIER - 1) * MODULUS)
    return (power * state + (power - 1) // (MULTIPLIER - 1) * increment) % MODULUS


def _halves(numbers: list[int]) -> Array:
    return np.array([[number >> 64, number % (1 << 64)] for number in numbers], np.uint64)


def _stepping(
    typing_context: Any, high: Any, low: Any, by_high: Any, by_low: Any, plus_high: Any, plus_low: Any
) -> tuple[Any, Callable[..., Any]]:
    """The halves of state times `by` plus `plus`, numbers of 128 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)

        def joined(one: Any, other: Any) -> Any:
            return builder.or_(builder.shl(builder.zext(one, wide), wide(64)), builder.zext(other, wide))

        state, by, plus = joined(*arguments[:2]), joined(*arguments[2:4]), joined(*arguments[4:])
        moved = builder.add(builder.mul(state, by), plus)
        halves = [builder.trunc(builder.lshr(moved, wide(64)), word), builder.trunc(moved, word)]
        return context.make_tuple(builder, signature.return_type, halves)

    pair: Any = types.UniTuple
    return pair(types.uint64, 2)(*[types.uint64] * 6), generate


_step: Any = intrinsic(_stepping)


@inner()
def _number(high: Any, low: Any) -> float:
    """The random number in [0, 1) of a state."""
    mixed, turn = high ^ low, high >> np.uint64(58)
    turned = (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))
    return np.float64(turned >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inner()
def _draw(states: Any, step: Any, count: int, numbers: Any) -> None:
    """Write the next `count` random numbers, rounded up to a multiple of STREAMS."""
    never_inlined()
    by_high, by_low, plus_high, plus_low = step[0, 0], step[0, 1], step[1, 0], step[1, 1]
    a, b, c, d = states[0, 0], states[1, 0], states[2, 0], states[3, 0]
    e, f, g, h = states[0, 1], states[1, 1], states[2, 1], states[3, 1]
    for i in range(0, count, STREAMS):
        numbers[i], numbers[i + 1] = _number(a, e), _number(b, f)
        numbers[i + 2], numbers[i + 3] = _number(c, g), _number(d, h)
        a, e = _step(a, e, by_high, by_low, plus_high, plus_low)
        b, f = _step(b, f, by_high, by_low, plus_high, plus_low)
        c, g = _step(c, g, by_high, by_low, plus_high, plus_low)
        d, h = _step(d, h, by_high, by_low, plus_high, plus_low)
    states[0, 0], states[1, 0], states[2, 0], states[3, 0] = a, b, c, d
    states[0, 1], states[1, 1], states[2, 1], states[3, 1] = e, f, g, h


# ---- rounding ----


@compiled()
def _round_to_levels(flat: Any, steps: Any, width: int, levels: int, states: Any, step: Any, symbols: Any) -> None:
    chance = np.empty(BLOCK)
    for start in range(0, flat.size, BLOCK):
        end = min(start + BLOCK, flat.size)
        _draw(states, step, end - start, chance)
        at = start
        while at < end:  # the buckets, or parts of them
            bucket = at // width
            stop = min(end, (bucket + 1) * width)
            _levels_of(flat[at:stop], steps[bucket], levels, chance[at - start :], symbols[at:stop])
            at = stop


@inner()
def _levels_of(numbers: Any, step: float, levels: int, chance: Any, symbols: Any) -> None:
    never_inlined()
    wide_vectors()
    most, middle = np.float64(levels), np.int32(levels)
    for i in range(numbers.size):
        x = np.float64(numbers[i])
        ratio = abs(x) * step
        level = np.floor((ratio if ratio == ratio else 0.0) + chance[i])
        whole = np.int32(min(level, most))
        symbols[i] = np.uint8(middle - whole if x < 0 else middle + whole)


@compiled()
def _round_to_signs(flat: Any, scale: float, bound: float, states: Any, step: Any, symbols: Any) -> None:
    chance = np.empty(BLOCK)
    for start in range(0, flat.size, BLOCK):
        end = min(start + BLOCK, flat.size)
        _draw(states, step, end - start, chance)
        _signs_of(flat[start:end], scale, bound, chance, symbols[start:end])


@inner()
def _signs_of(numbers: Any, scale: float, bound: float, chance: Any, symbols: Any) -> None:
    never_inlined()
    wide_vectors()
    for i in range(numbers.size):
        x = np.float64(numbers[i])
        is_sent = chance[i] < min(abs(x), bound) / scale
        symbols[i] = np.uint8((2 if x > 0 else 0) if is_sent else 1)
