"""What a check reads of a student's process: a reply, if it is one."""

from __future__ import annotations

import re
from typing import Any

from course.sandbox.exchange import plain_data

LONGEST = {"kind": 100, "type": 200, "text": 5000, "place": 1000}
"""Characters of an error's texts. The student's code can write a reply of its own, with longer ones."""

CONTROLS = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys when a text is shown there, and what turns round the order of letters."""


def reply_in(data: bytes | bytearray) -> tuple[int, str, Any]:
    """A reply's request, kind and value. Raises DamagedError for what the student's code wrote in place of one."""
    match plain_data.loads(data):
        case (int(number), "value", value):
            return number, "value", value
        case (int(number), "ask", (int(which), tuple(arguments))):
            return number, "ask", (which, arguments)
        case (int(number), "error", dict(error)) if is_error(error):
            return number, "error", writable_error(error)
    raise plain_data.DamagedError("no reply")


def writable_error(error: dict[str, Any]) -> dict[str, Any]:
    """The same, with texts that a file can hold and a terminal can show, as long as `described` makes them at most."""
    return {
        name: CONTROLS.sub("?", plain_data.writable(text[: LONGEST.get(name, 0)])) if isinstance(text, str) else text
        for name, text in error.items()
    }


def is_error(error: dict[Any, Any]) -> bool:
    """Whether an error is told as `student_error.described` does."""
    texts = all(isinstance(error.get(name), str) for name in ("kind", "type", "text", "place"))
    return texts and isinstance(error.get("rank", ""), int | None)
