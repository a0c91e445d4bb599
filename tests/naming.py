"""Names the case that a test's loop was at when an assertion failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def naming(*case: object) -> Iterator[None]:
    """An error in the block says in which case it happened; pytest prints it below the error.

    Example
        for shape in shapes:
            with naming(shape):
                assert layer(np.zeros(shape)).shape == shape
    """
    try:
        yield
    except BaseException as error:
        error.add_note("in the case " + ", ".join(map(repr, case)))
        raise
