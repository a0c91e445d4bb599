"""Checks that the ranks of a group make equal collective calls in the same order, by the lines of the calls.

Calls from different lines may belong together: `if rank == 0: broadcast(x) else: broadcast(y)` is right. But in

    rank 0:  all_reduce(x)  all_reduce(y)
    rank 1:  all_reduce(y)  all_reduce(x)

every call finds an equal one on the other rank, and x is added to y. This shows as a *reordering*: two calls from
the same line, the earlier one made there by some ranks, the later one by others. Branches that take turns look similar
and are right: a leader that rotates (`if rank == turn: ... else: ...`), or a retry after an error. The difference is
whether the lines are *alternatives*, ways to make the same call. Calls in an `except` handler always are (see
`call_site.py`); their order is not judged. Otherwise two observations prove it for the rest of the run:

* Some rank makes both calls from that line. When a leader rotates, all ranks except the old and the new leader stay at
  that line; when lines are swapped or a call is skipped, no rank stays.
* After a call from several lines, all ranks make a call from one of these lines: they are in step again.

Without such proof, ranks that move together from one line to the other show the order that the program has, and the
reordering is reported. If no two ranks move together (mostly in groups of two), it is reported if all ranks have used
the lines together before, as different calls. In a group of two it is also reported if more than two lines are
involved, because one rank has then skipped a call.

Two ranks that swap two lines from the first call on are therefore not found: a leader that rotates between two ranks
makes exactly the same calls. A label (`all_reduce(x, label="weights")`) tells them apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from minidl.cluster.call_site import Site

HISTORY = 256  # number of different calls that are remembered, and of lines for each

Lines = Mapping[Site, int]  # for each line of a call, the ranks that made it there, as the bits of a number


class Reordering(NamedTuple):
    """Two calls in different orders: for each of two ranks, its line at call `earlier` and at the present call."""

    earlier: int
    lines: dict[int, tuple[Site, Site]]


class CallOrder:
    """The lines from which one group has made its calls so far."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, _EqualCalls] = {}  # by fingerprint

    def next(self, fingerprint: Hashable, call: int, lines: Lines) -> Reordering | None:
        """Add a call that all ranks have made; returns the reordering that it completes, if any."""
        equal = self._calls.get(fingerprint)
        if equal is None:
            equal = self._calls[fingerprint] = _EqualCalls()
            _limit(self._calls)
        return equal.next(call, lines)


class _EqualCalls:
    def __init__(self) -> None:
        self._together: dict[Site, None] = {}  # lines from which all ranks have made a call
        self._apart: dict[frozenset[tuple[Site, int]], int] = {}  # the last call made from these different lines
        self._kind: dict[Site, Site] = {}  # maps lines that are alternatives to the same line
        self._in_step: set[Site] = set()  # lines used together after all calls from several lines

    def next(self, call: int, lines: Lines) -> Reordering | None:
        if len(lines) == 1:
            (line,) = lines
            if line not in self._in_step:
                self._come_together(line)
            return None
        apart = frozenset(lines.items())
        if apart not in self._apart:
            for before, earlier in self._apart.items():
                reordering = self._reordering(dict(before), lines, earlier)
                if reordering is not None:
                    return reordering
        self._apart[apart] = call
        _limit(self._apart)
        self._in_step -= lines.keys()
        return None

    def _come_together(self, line: Site) -> None:
        """All ranks make a call from this line, for the first time since they were on different lines."""
        self._together[line] = None
        _limit(self._together)
        self._in_step = {line, *self._in_step} & self._together.keys()
        for apart in self._apart:
            lines = dict(apart)
            if line in lines:
                self._are_alternatives(lines)

    def _are_alternatives(self, lines: Lines) -> None:
        kinds = {self._kind.get(line, line) for line in lines}
        kind = min(kinds)
        for line in [line for line, other in self._kind.items() if other in kinds]:
            self._kind[line] = kind
        for line in lines:
            self._kind[line] = kind
            _limit(self._kind)

    def _reordering(self, before: Lines, now: Lines, earlier: int) -> Reordering | None:
        common = before.keys() & now.keys()
        reordered = [line for line in common if before[line] & ~now[line] and now[line] & ~before[line]]
        if not reordered:
            return None
        if any(before[line] & now[line] for line in reordered):
            self._are_alternatives(before)
            self._are_alternatives(now)
            return None
        line = min(reordered)
        leaves, arrives = _lowest(before[line]), _lowest(now[line])
        lines = {rank: (_line_of(rank, before), _line_of(rank, now)) for rank in sorted((leaves, arrives))}
        if any(
            self._kind.get(one, one) == self._kind.get(other, other) for one, other in zip(*lines.values(), strict=True)
        ):
            return None
        if not _move_together(before, now):
            involved = {line for pair in lines.values() for line in pair}
            together = involved & self._together.keys()
            are_two = sum(ranks.bit_count() for ranks in now.values()) == 2
            if together != involved and (together or not are_two or len(involved) == 2):
                return None
        return Reordering(earlier, lines)


def _move_together(before: Lines, now: Lines) -> bool:
    """Whether two ranks make the two calls from the same two lines."""
    return any(
        (ranks & others).bit_count() > 1
        for line, ranks in before.items()
        for other, others in now.items()
        if other != line
    )


def _lowest(ranks: int) -> int:
    return (ranks & -ranks).bit_length() - 1


def _line_of(rank: int, lines: Lines) -> Site:
    return next(line for line, ranks in lines.items() if ranks >> rank & 1)


def _limit(remembered: dict[Any, Any]) -> None:
    """Forget the oldest entry if there are more than HISTORY."""
    if len(remembered) > HISTORY:
        del remembered[next(iter(remembered))]
