"""Explicit SIMD vectors for numba: several adjacent numbers in the processor's registers.

LLVM vectorizes simple loops by itself, but it keeps sums in memory if an inner loop goes over taps or filters. With
explicit vectors, a function decides what stays in registers:

    n = numbers_of(a)                   # numbers in a vector: as many as two registers hold, or one
    s = zeros(a)                        # n zeros of a's type
    s = multiply_add(w, load(a, i), s)  # s + w * a[i : i + n], w a number or a vector
    store(b, i, s)

Short rows are copied eight numbers at a time, on every processor:

    x, y = load_8(a, i), load_8(a, i + 8)
    store(b, i, plus(x, shift))                 # shift + a[i : i + 8]
    evens(x, y), odds(x, y)                     # of the sixteen numbers x, y: a[i : i + 16 : 2], a[i + 1 : i + 16 : 2]
    first_pairs(x, y), last_pairs(x, y)         # x[0], y[0], x[1], y[1], ...: eight each

Indices are not checked. Call `wide_vectors()` first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.extending import intrinsic

from minidl.kernels.jit.function_attributes import wide_vectors

__all__ = [
    "evens", "first_pairs", "last_pairs", "load", "load_8", "multiply_add", "numbers_of", "odds", "plus", "store",
    "total", "wide_vectors", "zeros",
]  # fmt: skip

HAS_AVX512 = not os.environ.get("NUMBA_CPU_NAME") and bool(llvm.get_host_cpu_features().get("avx512f"))
BITS = 1024 if HAS_AVX512 else 256
"""Bits of a vector: two of AVX-512's 32 registers, elsewhere one of 16."""


class Vector(types.Type):
    """Numba's type of a vector of float32 or float64."""

    def __init__(self, number: Any, count: int = 0) -> None:
        self.number, self.count = number, count or BITS // number.bitwidth
        super().__init__(f"Vector({number}, {self.count})")


@register_default(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        number = manager.lookup(vector.number).get_value_type()
        super().__init__(manager, vector, ir.VectorType(number, vector.count))  # type: ignore[no-untyped-call]


def _numbers_of(typing_context: Any, a: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.uint64, Vector(a.dtype).count)

    return types.uint64(a), generate


def _zeros(typing_context: Any, a: Any) -> tuple[Any, Callable[..., Any]]:
    vector = Vector(a.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(context.get_value_type(vector), None)

    return vector(a), generate


def _load(typing_context: Any, a: Any, i: Any) -> tuple[Any, Callable[..., Any]]:
    return _loading(a, Vector(a.dtype))


def _load_8(typing_context: Any, a: Any, i: Any) -> tuple[Any, Callable[..., Any]]:
    return _loading(a, Vector(a.dtype, 8))


def _loading(a: Any, vector: Vector) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1], vector)
        loaded = builder.load(place)
        loaded.align = a.dtype.bitwidth // 8
        return loaded

    return vector(a, types.uint64), generate


def _store(typing_context: Any, a: Any, i: Any, vector: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1], vector)
        builder.store(arguments[2], place).align = a.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(a, types.uint64, vector), generate


def _place(context: Any, builder: Any, array_type: Any, array: Any, i: Any, vector: Vector) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), context.get_value_type(vector).as_pointer())


def _multiply_add(typing_context: Any, w: Any, x: Any, s: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        w_value, x_value, sums = arguments
        vector = context.get_value_type(s)
        if not isinstance(signature.args[0], Vector):
            w_value = _repeated(builder, w_value, vector)
        product = builder.fmul(w_value, x_value, flags=("contract",))
        return builder.fadd(sums, product, flags=("contract",))

    return s(w if isinstance(w, Vector) else s.number, x, s), generate


def _plus(typing_context: Any, x: Any, shift: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(arguments[0], _repeated(builder, arguments[1], context.get_value_type(x)))

    return x(x, x.number), generate


def _repeated(builder: Any, number: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, _places([0] * vector.count))


def _places(places: list[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)


def _of_sixteen(places: list[int]) -> Any:
    """Return the intrinsic (x, y) -> the numbers at these places of x followed by y, which have eight numbers each."""

    def typed(typing_context: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.shuffle_vector(*arguments, _places(places))

        return x(x, y), generate

    return intrinsic(typed)


def _total(typing_context: Any, vector: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, wide = context.get_value_type(vector.number), context.get_value_type(vector)
        name = f"llvm.vector.reduce.fadd.v{vector.count}f{vector.number.bitwidth}"
        kind = ir.FunctionType(number, [number, wide])
        function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        return builder.call(function, [ir.Constant(number, -0.0), arguments[0]], fastmath=("reassoc",))

    return vector.number(vector), generate


numbers_of: Any = intrinsic(_numbers_of)
zeros: Any = intrinsic(_zeros)
load: Any = intrinsic(_load)
load_8: Any = intrinsic(_load_8)
store: Any = intrinsic(_store)
multiply_add: Any = intrinsic(_multiply_add)
total: Any = intrinsic(_total)
plus: Any = intrinsic(_plus)
evens: Any = _of_sixteen([*range(0, 16, 2)])
odds: Any = _of_sixteen([*range(1, 16, 2)])
first_pairs: Any = _of_sixteen([0, 8, 1, 9, 2, 10, 3, 11])
last_pairs: Any = _of_sixteen([4, 12, 5, 13, 6, 14, 7, 15])
