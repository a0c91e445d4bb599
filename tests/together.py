"""Several cases in one test: each costs a loop's turn instead of a test, and a failure still names its case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest

Mistake = tuple[Callable[[], object], type[Exception], str]


@contextmanager
def naming(*case: object) -> Iterator[None]:
    """Add the case to the traceback of whatever is raised within.

    Example
        for shape in shapes:
            with naming(shape):
                assert layer(np.zeros(shape)).shape == shape
    """
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case: {', '.join(map(str, case))}")
        raise


def assert_refused(mistakes: Iterable[Mistake]) -> None:
    """Every call raises its error, with a message that matches the pattern."""
    for call, error, message in mistakes:
        with naming(message), pytest.raises(error, match=message):
            call()
