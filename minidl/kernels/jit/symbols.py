"""Few bits for each number: symbols of one byte, packed into fewer bits and back, and the numbers they stand for."""

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

GROUP = 8  # symbols of `bits` bits fill `bits` bytes
TRITS = 5  # symbols in a byte in base 3
POWERS = (1, 3, 9, 27, 81)
DIGITS = sum((np.arange(256, dtype=np.uint64) // p % 3) << (56 - 8 * i) for i, p in enumerate(POWERS))

BYTES = np.uint64(0x00FF00FF00FF00FF)  # every other byte of a word of 64 bits, then pairs and fours of bytes
PAIRS = np.uint64(0x0000FFFF0000FFFF)
FOURS = np.uint64(0x00000000FFFFFFFF)


def pack_bits(numbers: Array, bits: int) -> Array:
    if numbers.dtype != np.uint8 or bits == 1:
        return NotImplemented
    whole = numbers.size // GROUP
    end = np.zeros(GROUP, np.uint8)
    end[: numbers.size - whole * GROUP] = numbers[whole * GROUP :]
    out = np.empty((whole + 1) * bits + GROUP, np.uint8)  # a word is written beyond its bits
    _pack(numbers[: whole * GROUP].view(np.uint64), bits, out)
    _pack(end.view(np.uint64), bits, out[whole * bits :])
    return out[: -(-numbers.size * bits // 8)]


def unpack_bits(data: Array, bits: int, count: int) -> Array:
    if not 1 < bits <= 8:
        return NotImplemented
    data = np.require(data[: -(-count * bits // 8)], requirements="W")  # numba compiles read-only arrays apart
    words = np.empty(-(-count // GROUP), np.uint64)
    inside = max((data.size - GROUP) // bits + 1, 0)  # words that are read within the data
    _unpack(data, bits, words[:inside])
    end = np.zeros((words.size - inside) * bits + GROUP, np.uint8)
    end[: data.size - inside * bits] = data[inside * bits :]
    _unpack(end, bits, words[inside:])
    return words.view(np.uint8)[:count]


@compiled()
def _pack(words: Any, bits: int, out: Any) -> None:
    """Pack eight symbols, the bytes of a word (the first is the lowest), by joining neighbours three times."""
    one, two, four = np.uint64(bits), np.uint64(2 * bits), np.uint64(4 * bits)
    top = np.uint64(64 - 8 * bits)
    for i in range(words.size):
        w = ((words[i] & BYTES) << one) | ((words[i] >> np.uint64(8)) & BYTES)
        w = ((w & PAIRS) << two) | ((w >> np.uint64(16)) & PAIRS)
        w = ((w & FOURS) << four) | (w >> np.uint64(32))
        _put_word(out, bits * i, w << top)


@compiled()
def _unpack(data: Any, bits: int, words: Any) -> None:
    """Undo `_pack`: split a word three times."""
    one, two, four = np.uint64(bits), np.uint64(2 * bits), np.uint64(4 * bits)
    top = np.uint64(64 - 8 * bits)
    unit = np.uint64(1)
    singles = ((unit << one) - unit) * np.uint64(0x0001000100010001)
    pairs = ((unit << two) - unit) * np.uint64(0x0000000100000001)
    fours = (unit << four) - unit
    for i in range(words.size):
        w = _word_at(data, bits * i) >> top
        w = (w >> four) | ((w & fours) << np.uint64(32))
        w = ((w >> two) & pairs) | ((w & pairs) << np.uint64(16))
        words[i] = ((w >> one) & singles) | ((w & singles) << np.uint64(8))


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), ir.IntType(64).as_pointer())


def _reading(typing_context: Any, data: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """The eight bytes from data[at] on as one number, the first byte highest."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_pointer(context, builder, signature.args[0], *arguments))
        word.align = 1
        return builder.bswap(word)

    return types.uint64(data, types.int64), generate


def _writing(typing_context: Any, out: Any, at: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """Write a number into the eight bytes from out[at] on, the highest byte first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(builder.bswap(arguments[2]), place).align = 1
        return context.get_dummy_value()

    return types.void(out, types.int64, types.uint64), generate


_word_at: Any = intrinsic(_reading)
_put_word: Any = intrinsic(_writing)


def pack_trits(symbols: Array) -> Array:
    out = np.empty(-(-symbols.size // TRITS), np.uint8)
    whole = symbols.size // TRITS
    _pack_trits(symbols, out[:whole])
    if whole < out.size:
        last = symbols[whole * TRITS :]
        out[whole] = last @ np.array(POWERS[: last.size], np.uint8)
    return out


def unpack_trits(packed: Array, count: int) -> Array:
    out = np.empty(packed.size * TRITS + GROUP, np.uint8)  # a word is written beyond its five digits
    _unpack_trits(np.require(packed, requirements="W"), DIGITS, out)
    return out[:count]


@compiled()
def _pack_trits(symbols: Any, out: Any) -> None:
    wide_vectors()
    for i in range(out.size):
        at = TRITS * i
        low = symbols[at] + np.uint8(3) * symbols[at + 1] + np.uint8(9) * symbols[at + 2]
        out[i] = low + np.uint8(27) * symbols[at + 3] + np.uint8(81) * symbols[at + 4]


@compiled()
def _unpack_trits(packed: Any, digits: Any, out: Any) -> None:
    for i in range(packed.size):
        _put_word(out, TRITS * i, digits[packed[i]])


def two_values(symbols: Array, values: Array) -> Array:
    if symbols.itemsize != 1 or not eligible(values):
        return NotImplemented
    out = np.empty(symbols.size, values.dtype)
    _choose(symbols.view(np.uint8), values[0], values[1], out)
    return out


def numbers_of_levels(symbols: Array, scales: Array, width: int, levels: int) -> Array:
    if symbols.dtype != np.uint8 or not eligible(scales):
        return NotImplemented
    out = np.empty(symbols.size, scales.dtype)
    _scale(symbols, scales, width, levels, out)
    return out


@compiled()
def _choose(symbols: Any, zero: Any, one: Any, out: Any) -> None:
    wide_vectors()
    if zero.size == 1:
        zero_, one_ = zero[0], one[0]
        for i in range(out.size):
            out[i] = one_ if symbols[i] else zero_
    else:
        for start in range(0, out.size, zero.size):
            _choose_row(symbols[start : start + zero.size], zero, one, out[start : start + zero.size])


@inner()
def _choose_row(symbols: Any, zero: Any, one: Any, out: Any) -> None:
    never_inlined()
    wide_vectors()
    for j in range(out.size):
        a, b = zero[j], one[j]
        out[j] = b if symbols[j] else a


@compiled()
def _scale(symbols: Any, scales: Any, width: int, levels: int, out: Any) -> None:
    for bucket in range(scales.size):
        start, end = bucket * width, min((bucket + 1) * width, out.size)
        _scale_bucket(symbols[start:end], np.float64(scales[bucket]), levels, out[start:end])


@inner()
def _scale_bucket(symbols: Any, scale: float, levels: int, out: Any) -> None:
    never_inlined()
    wide_vectors()
    middle, most = np.int32(levels), np.float64(levels)
    for i in range(out.size):
        out[i] = scale * (np.float64(np.int32(symbols[i]) - middle) / most)
