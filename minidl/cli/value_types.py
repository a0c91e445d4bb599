"""Check a value against an annotated type, with pydantic, and describe the type in words."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from minidl.cli.components import snake_case


def fits(value: Any, hint: Any) -> bool:
    """Whether the value is of the annotated type. An int is also a float; a bool is not an int, infinity not a float.

    >>> fits(1, float), fits(True, int), fits(None, int | None), fits((1, 2), tuple[int, ...]), fits("a", Literal["b"])
    (True, False, True, True, False)
    >>> fits((0.25, 0.1), Sequence[float]), fits("fast", Sequence[float]), fits(1e999, float)
    (True, False, False)
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError  # slow to import; most runs need no check

    rules = ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    try:
        TypeAdapter(hint, config=rules).validate_python(value)
    except ValidationError:
        return False
    return True


_WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a word", None: "None", ...: "..."}


def in_words(hint: Any) -> str:
    """The annotated type in words, for a message.

    >>> in_words(int | None), in_words(Literal["solo", "majority"]), in_words(Sequence[float])
    ('a whole number or None', 'solo or majority', 'a sequence (a number, ...)')
    """
    origin = get_origin(hint)
    if origin is Callable:
        return "something that cannot be typed here"
    arguments = get_args(hint)
    if str in arguments:  # a word or a function: a user can type the word
        arguments = tuple(one for one in arguments if get_origin(one) is not Callable)
    items = [one if isinstance(one, str) else in_words(one) for one in arguments]
    if origin in (Union, types.UnionType, Literal):
        return " or ".join(items)
    if items:
        return f"a {snake_case(origin.__name__)} ({', '.join([*items, *['...'] * (origin is Sequence)])})"
    return _WORDS.get(None if hint is type(None) else hint) or f"a {snake_case(hint.__name__).replace('_', ' ')}"
