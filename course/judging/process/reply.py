"""Reads a reply of a student's process, and refuses what the student's code wrote in place of one."""

from __future__ import annotations

import re
from typing import Any

from course.sandbox.exchange import plain_data

LONGEST = {"kind": 100, "type": 200, "text": 5000, "place": 1000, "classes": 300}
"""Characters of the texts of an error; a reply that the student's code forged could have longer ones."""

CONTROLS = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters of terminals, and characters that reverse the direction of text."""


def reply_in(data: bytes | bytearray) -> tuple[int, str, Any]:
    """The request's number, the kind and the value of a reply. Raises DamagedError if it is no reply."""
    match plain_data.loads(data):
        case (int(number), "value", value):
            return number, "value", value
        case (int(number), "ask", (int(which), tuple(arguments))):
            return number, "ask", (which, arguments)
        case (int(number), "error", dict(error)) if is_error(error):
            return number, "error", writable_error(error)
    raise plain_data.DamagedError("no reply")


def writable_error(error: dict[str, Any]) -> dict[str, Any]:
    """The error with texts that can be written to a file or a terminal, and of the lengths that `described` makes."""
    return {
        name: CONTROLS.sub("?", plain_data.writable(text[: LONGEST.get(name, 0)])) if isinstance(text, str) else text
        for name, text in error.items()
    }


def is_error(error: dict[Any, Any]) -> bool:
    """Whether a dictionary has the keys and types of `student_error.described`."""
    texts = all(isinstance(error.get(name), str) for name in ("kind", "type", "text", "place", "classes"))
    return texts and isinstance(error.get("rank", ""), int | None)
