"""Whether the ranks of a group make equal collective calls in the same order, judged by the lines that they call from.

Calls of different lines may belong together: `if rank == 0: broadcast(x) else: broadcast(y)` is right. But in

    rank 0:  all_reduce(x)  all_reduce(y)
    rank 1:  all_reduce(y)  all_reduce(x)

every call finds an equal one on the other rank, and x is added to y. This is a *crossing*: at one call some ranks leave
a line, at a later one others arrive at it. Branches that take turns look similar, and are right: a leader that rotates
(`if rank == turn: ... else: ...`), a retry in `except`. What tells them apart is whether the two lines are
*alternatives*, two ways to make one call:

1. A rank that makes both calls from the line that others leave and arrive at shows alternatives: all but the old and
   the new leader stay. When lines are swapped, or a call is skipped, no rank stays.
2. So does a call between the two that all ranks make from one of these lines: the ranks are in step.
3. Otherwise ranks that move in the same way from the one line to the other show the order that the program has.
4. Where no two ranks do (two ranks alone, above all), lines that all ranks have used together before are different
   calls. Lines that never were can be a leader that rotates, unless more than two lines are involved: a skipped call.

Two ranks that swap two lines from the first call on are therefore not found, because a leader that rotates between two
ranks makes exactly the same calls. A label (`all_reduce(x, label="weights")`) tells them apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from minidl.cluster.call_site import Site

HISTORY = 256  # how many different calls are remembered, and from how many lines each

Lines = Mapping[Site, int]  # the ranks that made a call from a line, as the bits of a number


class Crossing(NamedTuple):
    """At call `earlier` and at the present one, for each of two ranks: the line of its call."""

    earlier: int
    lines: dict[int, tuple[Site, Site]]


class CallOrder:
    """The lines from which one group has made its calls up to now."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, _EqualCalls] = {}  # by fingerprint

    def next(self, fingerprint: Hashable, call: int, lines: Lines) -> Crossing | None:
        """Add a call that all ranks have made; returns the crossing that it completes, if there is one."""
        equal = self._calls.get(fingerprint)
        if equal is None:
            equal = self._calls[fingerprint] = _EqualCalls()
            _limit(self._calls)
        return equal.next(call, lines)


class _EqualCalls:
    def __init__(self) -> None:
        self._together: dict[Site, int] = {}  # the last call that all ranks made from this line
        self._apart: dict[frozenset[tuple[Site, int]], int] = {}  # the last call that they made from these lines

    def next(self, call: int, lines: Lines) -> Crossing | None:
        if len(lines) == 1:
            (line,) = lines
            self._together[line] = call
            _limit(self._together)
            return None
        apart = frozenset(lines.items())
        if apart not in self._apart:
            for before, earlier in self._apart.items():
                crossing = self._crossing(dict(before), lines, earlier)
                if crossing is not None:
                    return crossing
        self._apart[apart] = call
        _limit(self._apart)
        return None

    def _crossing(self, before: Lines, now: Lines, earlier: int) -> Crossing | None:
        common = before.keys() & now.keys()
        crossed = [line for line in common if before[line] & ~now[line] and now[line] & ~before[line]]
        if not crossed or any(before[line] & now[line] for line in crossed):
            return None
        line = min(crossed)
        leaves, arrives = _lowest(before[line]), _lowest(now[line])
        lines = {rank: (_line_of(rank, before), _line_of(rank, now)) for rank in sorted((leaves, arrives))}
        involved = {line for pair in lines.values() for line in pair}
        last_together = [self._together[line] for line in involved if line in self._together]
        if any(call > earlier for call in last_together):
            return None
        if not _move_together(before, now):
            are_two = sum(ranks.bit_count() for ranks in now.values()) == 2
            is_skipped = are_two and len(involved) > 2 and not last_together
            if not is_skipped and len(last_together) < len(involved):
                return None
        return Crossing(earlier, lines)


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
    """Forget what was remembered first."""
    if len(remembered) > HISTORY:
        del remembered[next(iter(remembered))]
