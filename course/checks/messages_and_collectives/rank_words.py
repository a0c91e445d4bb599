"""How numbers of ranks and of things are written in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def listed(ranks: Iterable[int]) -> str:
    """`0, 1 and 3`."""
    *others, last = map(str, ranks)
    return f"{', '.join(others)} and {last}" if others else last


def ranks_named(ranks: Sequence[int] | np.ndarray) -> str:
    """`rank 0`, `ranks 0 and 1`."""
    return f"rank{'' if len(ranks) == 1 else 's'} {listed(ranks)}"
