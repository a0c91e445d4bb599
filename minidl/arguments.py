"""Checks of arguments: `whole_number`, `real_number`, `one_of` and `flag` return a valid value or say what is wrong.

Each takes the argument's name first, as the message shows it ("epochs", "LocalSGD: period"), and raises TypeError for a
wrong type, ValueError for a wrong value. `hint`, such as "None switches clipping off", ends the message unless there is
more specific advice.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Callable, Iterable
from numbers import Real
from reprlib import Repr
from typing import Any, TypeVar

_T = TypeVar("_T")
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60

OTHER_NAMES = {
    "learning_rate": "lr", "workers": "nodes", "all_reduce": "algorithm", "dense": "mlp", "cnn": "lenet",
    "transformer": "gpt", "bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32",
}  # fmt: skip
"""What others call it."""


def whole_number(name: str, value: Any, at_least: int | None = None, at_most: int | None = None, hint: str = "") -> int:
    """Return `value` as an int: Python's and numpy's integers pass, True, 2.0 and "2" do not.

    Parameters
        at_least, at_most   bounds, both included; None: no bound

    >>> whole_number("epochs", 3, at_least=1)
    3
    >>> whole_number("epochs", 2.0, at_least=1)
    Traceback (most recent call last):
    TypeError: epochs must be a whole number of at least 1, got 2.0 of type float: write 2
    """

    def inside(number: int) -> bool:
        return (at_least is None or number >= at_least) and (at_most is None or number <= at_most)

    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is not None and inside(number):
        return number
    bounds = _range(at_least, None, at_most, None)
    if number is None:
        raise _wrong_type(name, "a whole number" + _of(bounds), value, _instead(value, int, inside) or hint)
    raise _wrong_value(name, bounds, number, hint)


def real_number(
    name: str,
    value: Any,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    hint: str = "",
) -> float:
    """Return `value` as a float: Python's and numpy's real numbers pass, True, nan, "0.1" and arrays do not.

    Parameters
        at_least, at_most   bounds, included; None: no bound
        above, below        bounds, excluded; None: no bound

    Infinity passes only as a bound that is included, as in at_most=math.inf.

    >>> real_number("momentum", 0.5, at_least=0, below=1)
    0.5
    >>> real_number("momentum", 1, at_least=0, below=1)
    Traceback (most recent call last):
    ValueError: momentum must be at least 0 and below 1, got 1
    """

    def inside(number: float) -> bool:
        return (
            (math.isfinite(number) or number in (at_least, at_most))
            and (at_least is None or number >= at_least)
            and (above is None or number > above)
            and (at_most is None or number <= at_most)
            and (below is None or number < below)
        )

    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # an int beyond the largest float
        number = math.inf if value > 0 else -math.inf
    if inside(number):
        return number
    bounds = _range(at_least, above, at_most, below)
    if not is_number:
        raise _wrong_type(name, "a number" + _of(bounds), value, _instead(value, float, inside) or hint)
    finite = "" if math.isfinite(number) or at_most == math.inf else "finite"
    raise _wrong_value(name, " and ".join(filter(None, (finite, bounds))), value, hint)


def one_of(name: str, value: _T, choices: Iterable[_T], hint: str = "") -> _T:
    """Return `value` if it equals one of `choices` (a dict offers its keys); the message suggests the nearest one.

    >>> one_of("mode", "fan_inn", ["fan_in", "fan_out"])
    Traceback (most recent call last):
    ValueError: mode must be 'fan_in' or 'fan_out', got 'fan_inn': did you mean 'fan_in'?
    """
    known = list(choices)
    is_comparable = isinstance(value, tuple({type(choice) for choice in known}))
    if is_comparable and value in known:
        return value
    *others, last = map(repr, known)
    expected = f"{', '.join(others)} or {last}" if others else last
    if not is_comparable:
        raise _wrong_type(name, expected, value, hint)
    words = [choice for choice in known if isinstance(choice, str)]
    near = _nearest(value, words) if isinstance(value, str) else None
    raise _wrong_value(name, expected, value, f"did you mean {near!r}?" if near else hint)


def _nearest(value: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant: in other capitals, the only one that begins so, another name, or a slip."""
    in_small = {word.lower(): word for word in words}
    typed = OTHER_NAMES.get(value.lower(), value.lower())
    beginning = [word for word in in_small if len(typed) > 2 and word.startswith(typed)]
    near = [typed] if typed in in_small else beginning if len(beginning) == 1 else []
    near = near or difflib.get_close_matches(typed, in_small, n=1)
    return in_small[near[0]] if near else None


def flag(name: str, value: Any, hint: str = "") -> bool:
    """Return `value` as a bool: Python's and numpy's True and False pass, 1, 0 and "False" do not."""
    if type(value).__name__ not in ("bool", "bool_"):  # numpy's by its name: numpy is not imported here
        raise _wrong_type(name, "True or False", value, hint)
    return bool(value)


def _range(at_least: float | None, above: float | None, at_most: float | None, below: float | None) -> str:
    """The bounds in words: "at least 1", "above 0 and below 1", "from 0 to 1"."""
    if at_most == math.inf:
        at_most = None
    if at_least is not None and at_most is not None:
        return f"from {at_least} to {at_most}"
    bounds = {"at least": at_least, "above": above, "at most": at_most, "below": below}
    return " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound is not None)


def _of(bounds: str) -> str:
    """The bounds after "a number": " of at least 1", " above 0"."""
    return f" of {bounds}" if bounds.startswith("at") else f" {bounds}" if bounds else ""


def _wrong_type(name: str, expected: str, value: Any, advice: str) -> TypeError:
    given = "None" if value is None else f"{_shown(value)} of type {type(value).__name__}"
    return TypeError(f"{name} must be {expected}, got {given}{_after(advice)}")


def _wrong_value(name: str, expected: str, value: Any, advice: str) -> ValueError:
    return ValueError(f"{name} must be {expected}, got {_shown(value)}{_after(advice)}")


def _shown(value: Any) -> str:
    """`value` on one short line; numpy's numbers as Python's: 3, not np.int64(3)."""
    return str(value) if isinstance(value, Real) else " ".join(_SHORT.repr(value).split())


def _after(advice: str) -> str:
    return f": {advice}" if advice else ""


def _instead(value: Any, convert: Callable[[Any], float], inside: Callable[[Any], bool]) -> str:
    """What to write for a number of a wrong type: "write 2" for 2.0, True or "2", if that is valid."""
    if isinstance(value, (str, Real)):
        try:
            number = convert(value)
        except (ValueError, OverflowError):  # no number, nan or infinity
            return ""
        return f"write {number}" if inside(number) and (isinstance(value, str) or number == value) else ""
    holds_one = hasattr(value, "item") and not isinstance(value, type) and math.prod(getattr(value, "shape", (0,))) == 1
    return "take its number with .item()" if holds_one and not isinstance(value.item(), bool) else ""
