"""What a student's value is, in words, for messages."""

from __future__ import annotations

import io
from typing import Any

VOWELS = "aeiouAEIOU"


def kind_of(value: Any) -> str:
    """The kind of a value with its article; an open file and a lock by what they are, not by the names of their types.

    >>> kind_of(3), kind_of("x"), kind_of(io.StringIO())
    ('an int', 'a str', 'an open file')
    """
    if isinstance(value, io.IOBase):
        return "an open file"
    module, name = type(value).__module__, type(value).__name__
    name = name if module == "builtins" or module.startswith("_") else f"{module}.{name}"
    return f"{'an' if name[:1] in VOWELS else 'a'} {name}"
