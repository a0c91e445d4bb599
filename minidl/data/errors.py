"""DataError: the error for data files."""

from __future__ import annotations


class DataError(OSError):
    """A data file is missing, damaged or cannot be downloaded; the message says which one and what to do.

    It is an OSError, since the files are at fault and not the arguments.
    """
