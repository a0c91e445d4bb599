"""A wrong answer, as the check that found it says so."""

from __future__ import annotations


class Wrong(Exception):  # noqa: N818  (the name says what happened)
    """The answer is not what it should be.

    `message`: in a sentence or two what was called (on which rank), what was expected and what came. `cause`: the
    likely mistake, in a sentence, if it is a known one.
    """

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
