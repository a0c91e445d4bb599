"""The board: ranks put up which collective they are about to make, and are told when they do not make the same.

Without it most wrong programs return garbage: ranks that disagree on the operation, the type or the order of their
collectives still find messages that match. What must agree is compared; where in the program a call was made is only
reported, since ranks may well take different branches. One disagreement shows in the places alone, a *crossing*: calls
that look the same and come in another order, see `crossing` below.

A simulation keeps this `Board`, and under MPI in debug mode every rank keeps one; processes keep theirs in memory that
they share (`engines/processes/shared_board.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from minidl.cluster.call_site import Site
from minidl.cluster.errors import CollectiveMismatch

HISTORY = 256  # how many calls of a group are remembered


class Fingerprint(NamedTuple):
    """What a rank says of the collective that it is about to make; all but the `site` must agree over the group.

    `op`, `root`, `algorithm`, `dtype`, `label`: None where there is none. `shape`: None unless the operation requires
    that it is the same on all ranks. `site`: where in the program the call was made, from `call_site()`.
    """

    operation: str
    op: str | None = None
    root: int | None = None
    algorithm: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    label: str | None = None
    site: Site = Site(0, "an unknown place")

    def __str__(self) -> str:
        details = zip(self._fields[1:-1], self[1:-1], strict=True)
        return f"{self.operation}({', '.join(f'{name}={value}' for name, value in details if value is not None)})"


@lru_cache(4096)
def digest(compared: tuple[object, ...]) -> int:
    """64 bits that stand for `fingerprint[:-1]`, what is compared of it; the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(compared).encode(), digest_size=8).digest(), "little")


class Entry(NamedTuple):
    """What a rank has put up for one call: the digest of its fingerprint, and the key of its site."""

    digest: int
    site: int


def crossing(mine: Mapping[int, Entry], theirs: Mapping[int, Entry], call: int) -> int | None:
    """The earlier call with which `call` has changed places on one of two ranks, or None.

    Both ranks have put up equal fingerprints, from different sites; that alone is right (`if rank == 0: broadcast(x)
    else: broadcast(y)`). But when what one rank calls from a site now is what the other called from that very site
    before, while each of them was elsewhere when the other was there, then lines were swapped, or a call was left out.
    """
    here, there = mine[call], theirs[call]
    for earlier, entry in theirs.items():
        if earlier >= call or earlier not in mine or entry.digest != here.digest:
            continue
        before = mine[earlier].site
        if (entry.site == here.site != before) or (before == there.site != entry.site):
            return earlier
    return None


class Posted(NamedTuple):
    """What a rank has put up for one call, in words."""

    fingerprint: str
    place: str


def mismatch(posted: Mapping[int, Posted]) -> CollectiveMismatch:
    """The error of ranks that have put up different fingerprints for one call."""
    groups: dict[str, list[int]] = {}
    for rank in sorted(posted):
        groups.setdefault(posted[rank].fingerprint, []).append(rank)
    few = min(groups.values(), key=len)
    others = sorted(rank for ranks in groups.values() if ranks is not few for rank in ranks)
    lines = [f"{_name(few)} and {_name(others)} make different collective calls"]
    for ranks in sorted(groups.values()):
        places = sorted({posted[rank].place for rank in ranks})
        lines.append(f"  {_name(ranks)}: {posted[ranks[0]].fingerprint} at {' and at '.join(places)}")
    return CollectiveMismatch("\n".join(lines), rank=few[0] if len(few) == 1 < len(others) else None)


def crossed(fingerprint: str, calls_of: Mapping[int, list[tuple[int, str]]]) -> CollectiveMismatch:
    """The error of two ranks that make two equal calls in another order; both calls of each, and their places."""
    lines = [f"{_name(sorted(calls_of))} make their collective calls in a different order, or one leaves out a call"]
    for rank, calls in sorted(calls_of.items()):
        lines += [f"  rank {rank}: collective {m + 1} of the group is {fingerprint} at {place}" for m, place in calls]
    lines.append("  if this is meant, give the calls that belong together a label: all_reduce(x, label='loss')")
    return CollectiveMismatch("\n".join(lines))


def left_out(call: int, made: Mapping[int, Posted], missing: list[int]) -> CollectiveMismatch:
    """The error of ranks that have returned without a collective call that others of their group have made."""
    lines = [f"{_name(sorted(missing))} returned without a collective call that {_name(sorted(made))} made"]
    for posted in sorted(set(made.values())):
        ranks = _name(sorted(rank for rank in made if made[rank] == posted))
        lines.append(f"  {ranks}: collective {call + 1} of the group is {posted.fingerprint} at {posted.place}")
    return CollectiveMismatch("\n".join(lines), rank=missing[0] if len(missing) == 1 < len(made) else None)


def _name(ranks: list[int]) -> str:
    *first, last = map(str, ranks)
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"


class Board:
    """The board as a table, for ranks that live in one process."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, int], _Group] = {}

    def post(self, rank: int, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint) -> None:
        """Put up the `call`-th collective of the group; raises CollectiveMismatch when it is not what others do."""
        key = group, ranks[0]  # groups of the same number have no rank in common
        known = self._groups.get(key)
        if known is None:
            known = self._groups[key] = _Group()
        known.post(rank, call, fingerprint)


class _Call(NamedTuple):
    first: Fingerprint  # of the rank that came first
    elsewhere: dict[int, Site]  # of those that made the same call from another site


class _Group:
    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._reached: dict[int, int] = {}  # the last call of each rank
        self._sites: dict[int, set[int]] = {}  # from which each rank has called

    def post(self, rank: int, call: int, fingerprint: Fingerprint) -> None:
        key = fingerprint.site.key
        self._reached[rank] = call
        self._sites.setdefault(rank, set()).add(key)
        known = self._calls.get(call)
        if known is None:
            self._calls[call] = _Call(fingerprint, {})
            self._calls.pop(call - HISTORY, None)
            return
        if key != known.first.site.key:
            known.elsewhere[rank] = fingerprint.site
        if fingerprint[:-1] != known.first[:-1]:
            posted = {other: Posted(str(known.first), self._site(other, call).place) for other in self._at(call)}
            raise mismatch({**posted, rank: Posted(str(fingerprint), fingerprint.site.place)})
        if known.elsewhere and fingerprint.label is None:
            for other in self._at(call):
                there = self._site(other, call).key
                if there != key and (key in self._sites[other] or there in self._sites[rank]):
                    self._check_order(rank, other, call)

    def _at(self, call: int) -> list[int]:
        return [rank for rank, reached in self._reached.items() if reached >= call]

    def _site(self, rank: int, call: int) -> Site:
        known = self._calls[call]
        return known.elsewhere.get(rank, known.first.site)

    def _check_order(self, rank: int, other: int, call: int) -> None:
        earlier = crossing(self._history(rank, call), self._history(other, call), call)
        if earlier is not None:
            calls = [(m, self._site(r, m).place) for r in (rank, other) for m in (earlier, call)]
            raise crossed(str(self._calls[call].first), {rank: calls[:2], other: calls[2:]})

    def _history(self, rank: int, call: int) -> dict[int, Entry]:
        calls = {m: known for m, known in self._calls.items() if m <= call}
        return {m: Entry(digest(known.first[:-1]), self._site(rank, m).key) for m, known in calls.items()}
