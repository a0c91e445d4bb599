"""Fingerprints of collective calls: ranks post one before each call; a difference raises CollectiveMismatch.

Without them most wrong programs return wrong numbers, because ranks that disagree on the operation, the type or the
order of their collectives still find messages that match. The operation, type, root and so on are compared. The line
of the call is not, because ranks may take different branches; the order of the lines is, see `call_order.py`.

A simulation has one `FingerprintTable`, and every rank under MPI in debug mode has one. On processes the table lies in
shared memory, see `engines/processes`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from minidl.cluster.call_site import ANYWHERE, Site
from minidl.cluster.diagnosis.call_order import CallOrder, Reordering
from minidl.cluster.diagnosis.errors import CollectiveMismatch


class Fingerprint(NamedTuple):
    """A collective call as its rank posts it, with its site; it must be the same on all ranks of the group.

    op, root, algorithm, dtype, label   None where the call has none
    shape                               None where ranks may pass arrays of different shapes
    axes                                the names of a mesh's axes
    """

    operation: str
    op: str | None = None
    root: int | None = None
    algorithm: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    label: str | None = None
    axes: tuple[str, ...] | None = None

    def __str__(self) -> str:
        details = zip(self._fields[1:], self[1:], strict=True)
        return f"{self.operation}({', '.join(f'{name}={value}' for name, value in details if value is not None)})"


@lru_cache(4096)
def digest(fingerprint: Fingerprint) -> int:
    """A hash of the fingerprint: 64 bits, the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(tuple(fingerprint)).encode(), digest_size=8).digest(), "little")


SAME = "same "
"""Prefix of a fingerprint that stands for a value, not for a collective: all ranks must have the same value."""


class Posted(NamedTuple):
    """A rank's entry for one call, as text."""

    fingerprint: str
    place: str


def mismatch(posted: Mapping[int, Posted]) -> CollectiveMismatch:
    """The error for ranks whose fingerprints of one call differ."""
    groups: dict[str, list[int]] = {}
    for rank in sorted(posted):
        groups.setdefault(posted[rank].fingerprint, []).append(rank)
    few = min(groups.values(), key=len)
    others = sorted(rank for ranks in groups.values() if ranks is not few for rank in ranks)
    differ = "make different collective calls"
    if all(each.fingerprint.startswith(SAME) for each in posted.values()):
        differ = f"have different {posted[few[0]].fingerprint.removeprefix(SAME).partition('(label=')[0]}"
    lines = [f"{_name(few)} and {_name(others)} {differ}"]
    for ranks in sorted(groups.values()):
        places = sorted({posted[rank].place for rank in ranks})
        lines.append(f"  {_name(ranks)}: {posted[ranks[0]].fingerprint} at {' and at '.join(places)}")
    return CollectiveMismatch("\n".join(lines), rank=few[0] if len(few) == 1 < len(others) else None)


def reordered(fingerprint: str, call: int, reordering: Reordering) -> CollectiveMismatch:
    """The error for two ranks that make two equal calls in a different order, with the lines of both calls."""
    ranks = _name(sorted(reordering.lines))
    lines = [f"{ranks} make their collective calls in a different order, or one leaves out a call"]
    for rank, sites in sorted(reordering.lines.items()):
        for number, site in zip((reordering.earlier, call), sites, strict=True):
            lines.append(f"  rank {rank}: collective {number + 1} of the group is {fingerprint} at {site.place}")
    lines.append("  if this is meant, give the calls that belong together a label: all_reduce(x, label='loss')")
    return CollectiveMismatch("\n".join(lines))


def differed_before(call: int, ranks: list[int], kept: int) -> CollectiveMismatch:
    """The error for ranks that made different calls, so long ago that the texts of the calls have been overwritten."""
    return CollectiveMismatch(
        f"{_name(sorted(ranks))} made different collective calls before collective {call + 1} of their group; "
        f"they were more than {kept} calls apart then, and the last {kept} calls of each rank are kept"
    )


def left_out(call: int, made: Mapping[int, Posted], missing: list[int]) -> CollectiveMismatch:
    """The error for ranks that returned without a collective call that others of their group made."""
    lines = [f"{_name(sorted(missing))} returned without a collective call that {_name(sorted(made))} made"]
    for posted in sorted(set(made.values())):
        ranks = _name(sorted(rank for rank in made if made[rank] == posted))
        lines.append(f"  {ranks}: collective {call + 1} of the group is {posted.fingerprint} at {posted.place}")
    return CollectiveMismatch("\n".join(lines), rank=missing[0] if len(missing) == 1 < len(made) else None)


def _name(ranks: list[int]) -> str:
    *first, last = map(str, ranks)
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"


class FingerprintTable:
    """A table of posted fingerprints in one process. A call stays until all ranks of its group have made it."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, int], _PostedCalls] = {}

    def post(
        self, rank: int, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint, site: Site
    ) -> None:
        """Post the `call`-th collective of the group; raises CollectiveMismatch if it differs from another rank's."""
        key = group, ranks[0]  # groups of the same number have no rank in common
        known = self._groups.get(key)
        if known is None:
            known = self._groups[key] = _PostedCalls()
        known.post(rank, len(ranks), call, fingerprint, site)


class _PostedCall:
    """A call that some ranks have made: the fingerprint of the first of them, and the ranks at each line."""

    __slots__ = ("first", "missing", "ranks_at")

    def __init__(self, first: Fingerprint, size: int) -> None:
        self.first = first
        self.ranks_at: dict[Site, int] = {}  # as the bits of a number
        self.missing = size


class _PostedCalls:
    def __init__(self) -> None:
        self._calls: dict[int, _PostedCall] = {}
        self._order = CallOrder()

    def post(self, rank: int, size: int, call: int, fingerprint: Fingerprint, site: Site) -> None:
        known = self._calls.get(call)
        if known is None:
            known = self._calls[call] = _PostedCall(fingerprint, size)
        elif fingerprint != known.first:
            raise mismatch({**_posted(known), rank: Posted(str(fingerprint), site.place)})
        known.ranks_at[site] = known.ranks_at.get(site, 0) | 1 << rank
        known.missing -= 1
        if not known.missing:
            del self._calls[call]
            if fingerprint.label is None:
                self._judge_order(call, fingerprint, known.ranks_at)

    def _judge_order(self, call: int, fingerprint: Fingerprint, lines: dict[Site, int]) -> None:
        if len(lines) > 1 and any(line.key == ANYWHERE for line in lines):
            return
        reordering = self._order.next(fingerprint, call, lines)
        if reordering is not None:
            raise reordered(str(fingerprint), call, reordering)


def _posted(call: _PostedCall) -> dict[int, Posted]:
    text = str(call.first)
    return {
        rank: Posted(text, site.place)
        for site, ranks in call.ranks_at.items()
        for rank in range(ranks.bit_length())
        if ranks >> rank & 1
    }
