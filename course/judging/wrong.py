"""The exception that a check raises for a wrong answer."""

from __future__ import annotations


class Wrong(Exception):  # noqa: N818  (the name says what happened)
    """The answer is wrong.

    message: a sentence or two on the call, the rank, the expected and the actual result.
    cause: a sentence on the likely mistake, if it is a known one.
    """

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
