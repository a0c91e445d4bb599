"""The settings that a student's process receives at its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course.sandbox.limits import Limits

CONNECTION_CLOSED = 97
"""The exit code of a process whose student's code closed the descriptor for replies."""

MAY_WRITE = "an answer may write only where it runs and in tempfile.gettempdir(), and on several ranks nowhere"
MAY_USE = f"an answer may use {Limits.memory / 2**30:g} GB of memory"


@dataclass(frozen=True)
class Terms:
    """The settings of a student's process.

    Attributes
        limits        its bounds
        scratch       the folder that it may write to
        folder        its working folder, inside of `scratch`
        path          its sys.path
        own           folders of the student's files
        secret        folders that it may not read
        environment   its environment variables
    """

    limits: Limits
    scratch: str
    folder: str
    path: Sequence[str]
    own: Sequence[str]
    secret: Sequence[str]
    environment: Mapping[str, str]
