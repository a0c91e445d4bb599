"""What a student's process is told when it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course.sandbox.limits import Limits

CONNECTION_CLOSED = 97
"""The exit code of a process whose student's code has closed the descriptor to reply to."""

MAY_WRITE = "an answer may write only where it runs and in tempfile.gettempdir(), and on several ranks nowhere"


@dataclass(frozen=True)
class Terms:
    """What binds the process, and where it is.

    Attributes
        limits    its bounds
        scratch   the folder in which it may write
        folder    in there, where it works
        path      for imports
        own       folders whose files are the student's
        secret    folders that it may not read
    """

    limits: Limits
    scratch: str
    folder: str
    path: Sequence[str]
    own: Sequence[str]
    secret: Sequence[str]
