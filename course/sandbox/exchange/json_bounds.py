"""Bounds on a JSON text, checked before it is decoded: two bytes of text can become an object of some hundred bytes."""

from __future__ import annotations

import itertools
import re

STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A string, or the rest of the text if the string does not end, so that a search takes one pass over any text."""

NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class TooMuchError(ValueError):
    """A JSON text has more values, or deeper nesting, than its reader accepts."""


def check_size(text: bytes | bytearray, values: int, depth: int) -> None:
    """Raise TooMuchError if JSON has more than `values` values, keys included, or lists nested deeper than `depth`.

    For a text that is not JSON, the count is at least the number of values that a decoder makes before its error. It
    takes one pass and little memory.
    """
    count, level, end = 1, 0, 0
    for match in itertools.chain(STRING.finditer(text), [None]):
        between = text[end : match.start() if match else len(text)]
        count += 1 + between.count(b",") + between.count(b"[") + between.count(b"{")
        if count > values:
            raise TooMuchError(f"it has more than {values:,} values")
        for bracket in between.translate(None, NOT_BRACKETS):
            level += 1 if bracket in b"[{" else -1
            if level < 0:
                return  # no JSON goes on after this, and no decoder reads on
            if level > depth:
                raise TooMuchError(f"it has lists in lists, more than {depth} deep")
        end = match.end() if match else len(text)
