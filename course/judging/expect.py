"""Comparisons that raise Wrong with a sentence: what was called, expected and returned, and the first difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from course.judging.wrong import Wrong
from course.sandbox.exchange.plain_data import Foreign, described

FORGOTTEN_RETURN = "A function without a `return` statement returns None."

SLIPS = {
    "generator": "A function with `yield` in it returns a generator, not a value, and `(x for ...)` is one, too.",
    "coroutine": "A function made by `async def` has to be awaited; an answer is made by `def`.",
    "function": "A function is returned as it is; with brackets behind its name it is called.",
    "method": "A method is returned as it is; with brackets behind its name it is called.",
    "builtin_function_or_method": "A function is returned as it is; with brackets behind its name it is called.",
    "Work": "irecv and isend return before the message is there; what came is what `.wait()` returns.",
}
"""The likely cause of a value that is no result, by the name of its type."""


def array(
    got: Any,
    want: Any,
    called: str,
    *,
    rtol: float = 1e-9,
    atol: float | np.ndarray = 1e-12,
    mistakes: Mapping[str, Any] | None = None,
    dtype: type | None = None,
) -> None:
    """Raise Wrong unless `got` is an array with the shape and the values of `want`; a NaN never matches.

    Parameters
        called     the call, such as "broadcast(comm, x) on rank 2 of 5, x of 7 elements"
        rtol       allowed difference, relative to `want`
        atol       allowed difference, absolute
        mistakes   for each known mistake, the sentence that explains it and the array that it gives
        dtype      required type of the elements; None for any
    """
    want = np.asarray(want)

    def alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return same_numbers(a, b, rtol, atol if a.shape == want.shape else np.max(atol, initial=0.0))

    compare(got, want, called, alike, mistakes, dtype)


def same_bits(got: Any, want: np.ndarray, called: str, mistakes: Mapping[str, Any] | None = None) -> None:
    """Raise Wrong unless `got` has the type and the bits of the array `want`; any NaN matches any NaN."""
    compare(got, want, called, identical, mistakes, want.dtype.type)


def compare(
    got: Any,
    want: np.ndarray,
    called: str,
    alike: Callable[[np.ndarray, np.ndarray], np.ndarray],
    mistakes: Mapping[str, Any] | None,
    dtype: type | None,
) -> None:
    """Raise Wrong unless `got` is an array like `want`. An array without elements may have any dtype.

    A list of numbers counts as an array. alike: for two arrays of one shape, the elements that agree.
    """
    numbers = number_array(from_list(got, want), called, f"an array of shape {want.shape}")
    if numbers.shape != want.shape:
        raise Wrong(
            f"{called}: expected an array of shape {want.shape}, got shape {numbers.shape}.",
            cause_of(numbers, mistakes, alike),
        )
    if dtype is not None and numbers.size and numbers.dtype.newbyteorder("=") != dtype:
        raise Wrong(
            f"{called}: expected an array of {np.dtype(dtype)}, got one of {numbers.dtype}.",
            cause_of(numbers, mistakes, alike),
        )
    agree = alike(numbers, want)
    if not np.all(agree):
        raise Wrong(difference(numbers, want, called, agree), cause_of(numbers, mistakes, alike))


def number(
    got: Any,
    want: float,
    called: str,
    *,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    mistakes: Mapping[str, Any] | None = None,
) -> None:
    """Raise Wrong unless `got` is the number `want` up to rounding; parameters as in `array`."""

    def alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return same_numbers(a, b, rtol, atol)

    numbers = number_array(got, called, "a number")
    if numbers.ndim == 0 and np.all(alike(numbers, np.asarray(want))):
        return
    wanted, came = "a number", f"an array of shape {numbers.shape}"
    if numbers.ndim == 0:
        wanted, came = shown_apart(want, numbers.item())
    raise Wrong(f"{called}: expected {wanted}, got {came}.", cause_of(numbers, mistakes, alike))


def same(got: Any, want: Any, called: str, mistakes: Mapping[str, Any] | None = None) -> None:
    """Raise Wrong unless `got` equals `want`: integers, strings, booleans, and lists and tuples of these."""
    if not equal(got, want):
        causes = [sentence for sentence, wrong in (mistakes or {}).items() if equal(got, wrong)]
        raise Wrong(f"{called}: expected {shown(want)}, got {shown(got)}.", causes[0] if causes else not_a_value(got))


def true(condition: bool, message: str, cause: str = "") -> None:
    """Raise Wrong with `message` unless `condition` holds."""
    if not condition:
        raise Wrong(message, cause)


def equal(got: Any, want: Any) -> bool:
    """Whether two values have the same type and are equal; lists may contain arrays."""
    if type(got) is not type(want):
        return False
    if isinstance(want, np.ndarray):
        return np.array_equal(got, want)
    if isinstance(want, (list, tuple)):
        return len(got) == len(want) and all(equal_inside(a, b) for a, b in zip(got, want, strict=True))
    if isinstance(want, dict):
        return got.keys() == want.keys() and all(equal_inside(got[key], want[key]) for key in want)
    return bool(got == want)


def equal_inside(got: Any, want: Any) -> bool:
    """Whether two items of lists are equal; here 1 equals 1.0."""
    if isinstance(want, (int, float)) and isinstance(got, (int, float)):
        return got == want
    return equal(got, want)


def not_a_value(got: Any) -> str:
    """The likely cause, if the value is a typical slip such as None or a generator."""
    if isinstance(got, Foreign):
        return SLIPS.get(got.type_name, "")
    return FORGOTTEN_RETURN if got is None else ""


def listed(got: Any, called: str, wanted: str, length: int | None = None) -> list[Any]:
    """The items of a returned list or tuple; Wrong unless it is one, and of this length where one is given."""
    if not isinstance(got, (list, tuple)) or length not in (None, len(got)):
        raise Wrong(f"{called}: expected {wanted}, got {shown(got)}.", not_a_value(got))
    return list(got)


def number_array(got: Any, called: str, wanted: str) -> np.ndarray:
    """`got` as an array of numbers, or Wrong."""
    if isinstance(got, (bool, int, float, complex, np.ndarray)):
        numbers = np.asarray(got)
        if numbers.dtype.kind in "biuf":
            return numbers
        if numbers.dtype.kind == "c":
            raise Wrong(f"{called}: expected {wanted} that is real, got complex numbers.")
    if isinstance(got, (list, tuple)):
        raise Wrong(f"{called}: expected {wanted}, got a {type(got).__name__} of {len(got)}.")
    raise Wrong(f"{called}: expected {wanted}, got {shown(got)}.", not_a_value(got))


def from_list(got: Any, want: np.ndarray) -> Any:
    """The array that a list of numbers, or of lists of the same length, stands for; anything else as it is.

    A list without numbers stands for `want` if that has none.
    """
    if isinstance(got, list):
        try:
            numbers = np.array(got)
        except ValueError:  # rows of different lengths
            return got
        if numbers.dtype.kind in "biuf":
            return numbers if numbers.size or want.size else want
    return got


def close(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> bool:
    """Whether two arrays of one shape are equal up to rounding; see `same_numbers`."""
    return got.dtype.kind in "biuf" and bool(np.all(same_numbers(got, want, rtol, atol)))


def same_numbers(got: np.ndarray, want: np.ndarray, rtol: float, atol: float | np.ndarray) -> np.ndarray:
    """The elements in which two arrays of one shape agree up to rounding; infinity equals itself, NaN nothing."""
    a, b = got.astype(float), want.astype(float)
    with np.errstate(invalid="ignore", over="ignore"):  # infinity less infinity
        return (got == want) | (np.isfinite(b) & (np.abs(a - b) <= atol + rtol * np.abs(b)))


def identical(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The elements in which two arrays of one shape are the same: 0.0 differs from -0.0, and NaN equals NaN."""
    both_nan = np.isnan(got) & np.isnan(want)
    return both_nan | ((got == want) & (np.signbit(got) == np.signbit(want)))


def difference(got: np.ndarray, want: np.ndarray, called: str, agree: np.ndarray) -> str:
    """A sentence on the first difference of two arrays of one shape; `agree` is True where they agree."""
    first = tuple(int(i) for i in np.argwhere(~agree)[0])
    place = f" at {list(first)}" if first else ""
    count = f" (the first of {int((~agree).sum())} of {want.size} that differ)" if want.size > 1 else ""
    wanted, came = shown_apart(want[first].item(), got[first].item())
    return f"{called}: expected {wanted}{place}, got {came}{count}."


def cause_of(
    got: np.ndarray, mistakes: Mapping[str, Any] | None, alike: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> str:
    """The sentence of the first known mistake that gives `got`; "" if none does.

    An array without elements counts only if it has several axes, so that its shape is informative.
    """
    for sentence, wrong in (mistakes or {}).items():
        value = np.asarray(wrong)
        if (value.size or value.ndim > 1) and value.shape == got.shape and np.all(alike(got, value)):
            return sentence
    return ""


def shown_apart(want: Any, got: Any) -> tuple[str, str]:
    """Two different values as a message shows them: with all digits if they look the same in a few."""
    short = shown(want), shown(got)
    return short if short[0] != short[1] else (described(want), described(got))


def shown(value: Any) -> str:
    """A short text for a value, as a message shows it."""
    if isinstance(value, float):
        return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"  # 6000020, not 6.00002e+06
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}" if value.size > 8 else np.array2string(value, precision=6)
    text = str(value) if isinstance(value, Foreign) else described(value)
    return text if len(text) <= 120 else text[:117] + "…"
