"""What goes wrong with data that lies in files: one error, one sentence."""

from __future__ import annotations


class DataError(OSError):
    """A data file is missing, damaged or cannot be downloaded; the message says which one and what to do.

    It is an OSError because the fault lies outside the program: the arguments were right, the files are not.
    """
