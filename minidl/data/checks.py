"""Checks of the names that the command line gets."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def one_of(kind: str, name: str, names: Iterable[str]) -> str:
    """`name` if it is among `names`; else ValueError with the nearest of them and all choices."""
    choices = list(names)
    if name in choices:
        return name
    close = difflib.get_close_matches(str(name), choices, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise ValueError(f"there is no {kind} {name!r}: {hint}choose one of {', '.join(choices)}")
