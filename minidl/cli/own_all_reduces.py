"""All-reduces that `--import` has brought, by the name that `minidl simulate --algorithm` takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

OWN_ALL_REDUCES: dict[str, Callable[..., Any]] = {}


def is_all_reduce(value: object) -> bool:
    """Whether it is a function f(comm, x, op), with these names, whose other parameters have defaults."""
    if not inspect.isfunction(value):
        return False
    parameters = list(inspect.signature(value).parameters.values())
    return [one.name for one in parameters[:3]] == ["comm", "x", "op"] and all(
        one.default is not one.empty for one in parameters[3:]
    )
