"""A reply of the student's process, read as what it may be: anything that the student's code has put in its place."""

from __future__ import annotations

from typing import Any

from course.checking import plain_data


def reply_in(data: bytes) -> tuple[int, str, Any]:
    """A reply's request, kind and value. Raises DamagedError for what the student's code wrote in place of one."""
    match plain_data.loads(data):
        case (int(number), "value", value):
            return number, "value", value
        case (int(number), "error", dict(error)) if is_error(error):
            told = {name: plain_data.writable(text) if isinstance(text, str) else text for name, text in error.items()}
            return number, "error", told
    raise plain_data.DamagedError("no reply")


def is_error(error: dict[Any, Any]) -> bool:
    """Whether an error is told as `student_error.described` does."""
    texts = all(isinstance(error.get(name), str) for name in ("kind", "type", "text", "place"))
    return texts and isinstance(error.get("rank", ""), int | None)
