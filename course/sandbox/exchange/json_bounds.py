"""How much a JSON text would become, found before it is decoded: a few bytes of it can be an object of some hundred."""

from __future__ import annotations

import itertools
import re

STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A string, or the rest of the text if the string does not end, so that a search takes one pass over any text."""

NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class TooMuchError(ValueError):
    """A JSON text has more values, or deeper ones, than its reader takes."""


def check_size(text: bytes | bytearray, values: int, depth: int) -> None:
    """Raise TooMuchError if JSON has more than `values` values, keys included, or lists in lists deeper than `depth`.

    The text need not be JSON; what is counted then is at least what a decoder makes of it before it gives up. It takes
    one pass and no memory to speak of.
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
