"""Means in which labels do not count the same: who divides a minibatch has to know, to weight its shares.

`cross_entropy` and `nll_loss` note such a mean; `noticed()` collects the notes of the calls within it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_notes: ContextVar[list[str] | None] = ContextVar("notes of uneven means", default=None)


@contextmanager
def noticed() -> Iterator[list[str]]:
    """Yields a list, to which every such mean adds over what it is.

    >>> from minidl import functional as F
    >>> with noticed() as over:
    ...     _ = F.cross_entropy([[0.0, 0.0], [0.0, 0.0]], [1, -100])
    >>> over
    ['1 of 2 labels']
    """
    notes: list[str] = []
    before = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(before)


def note(total: float, labels: int) -> None:
    """Note a mean in which `labels` labels have the weight `total` together."""
    if (notes := _notes.get()) is not None:
        notes.append(f"{total:g} of {labels} labels" if total == int(total) else f"weights of {total:g} together")
