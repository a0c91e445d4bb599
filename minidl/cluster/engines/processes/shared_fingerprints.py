"""The board on processes: every rank posts its fingerprints in its own rows of the shared page and reads the others'.

The entry of a call lies in a slot that follows from its group and number, so it is found without a search. It stays
until the rank has made SLOTS more calls. A rank compares its entry with those that are there when it posts, so the last
rank to make a call has compared all. For that, an entry must be visible to the others before its rank reads theirs:
hence the lock in between, whose atomic instruction orders the two. An entry that is being written counts as absent.

Ranks may be more than SLOTS calls apart (the root of a broadcast does not wait for the others). Then an entry is
overwritten before the slower rank reads it. Every entry therefore also has a hash of all calls up to it, its HISTORY,
and a difference is found at the latest when the slower rank comes within SLOTS calls, or when the run ends.
"""

from __future__ import annotations

import hashlib
import threading
from functools import lru_cache

import numpy as np

from minidl.cluster.diagnosis.call_order import CallOrder
from minidl.cluster.diagnosis.call_site import ANYWHERE, Site
from minidl.cluster.diagnosis.errors import CollectiveMismatch
from minidl.cluster.diagnosis.fingerprints import (
    Fingerprint,
    Posted,
    differed_before,
    digest,
    left_out,
    mismatch,
    reordered,
)
from minidl.cluster.engines.processes.shared_page import BOARD_WORDS, ENTRY_WORDS, SLOTS, WAIT_WORDS, Page, Words

NUMBER, GROUP, DIGEST, SITE, RANKS, HISTORY, TEXT = range(7)  # words of an entry: number of the call from 1, ..., text
TEXT_BYTES = 8 * (ENTRY_WORDS - TEXT)
PLACE_BYTES = 200


class SharedFingerprints:
    """One rank's view of the board."""

    def __init__(self, page: Page, rank: int) -> None:
        self._rank = rank
        self._entries = page.board
        self._bytes = page.memory[8 * page.nodes * WAIT_WORDS :]
        self._words = self._bytes.cast("Q")  # single words are read faster here than in an array
        self._groups: dict[int, _Group] = {}
        self._fence = threading.Lock()

    def post(self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint) -> None:
        """Post the `call`-th collective of the group; raises CollectiveMismatch if it differs from the others'."""
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = _Group(group, ranks, self._rank)
        key = known.key
        slot, number, words = (key + call) % SLOTS, call + 1, self._words
        site = fingerprint.site.key if fingerprint.label is None else ANYWHERE
        history = self._write(slot, known, number, site, fingerprint)
        with self._fence:
            for start in known.others:
                entry = start + slot * ENTRY_WORDS
                is_there = words[entry] == number and words[entry + GROUP] == key
                if is_there and (words[entry + HISTORY] != history or words[entry + SITE] != site):
                    break
            else:
                return
        self._compare(known, call)

    def _write(self, slot: int, group: _Group, number: int, site: int, fingerprint: Fingerprint) -> int:
        content, text = _encoded(fingerprint)
        group.history = (group.history * 0x9E3779B97F4A7C15 + content) & 0xFFFFFFFFFFFFFFFF
        words, entry = self._words, self._rank * BOARD_WORDS + slot * ENTRY_WORDS
        words[entry + NUMBER] = 0  # it is being written
        words[entry + GROUP] = group.key
        words[entry + DIGEST] = content
        words[entry + SITE] = site
        words[entry + RANKS] = group.mask
        words[entry + HISTORY] = group.history
        start = 8 * (entry + TEXT)
        self._bytes[start : start + len(text)] = text
        words[entry + NUMBER] = number
        return group.history

    def _compare(self, group: _Group, call: int) -> None:
        """An entry of another rank differs from this rank's: find out whether that is right."""
        slot = (group.key + call) % SLOTS
        heads = self._entries[group.ranks, slot, :TEXT]
        there = (heads[:, NUMBER] == call + 1) & (heads[:, GROUP] == np.uint64(group.key))
        mine = self._entries[self._rank, slot]
        made = [rank for rank, is_there in zip(group.ranks, there.tolist(), strict=True) if is_there]
        if (heads[there, DIGEST] != mine[DIGEST]).any():
            raise mismatch({rank: _posted(self._entries, rank, slot) for rank in made})
        if (heads[there, HISTORY] != mine[HISTORY]).any():
            raise differed_before(call, made, SLOTS)
        if len(made) == len(group.ranks):
            for each in range(max(group.judged, call + 1 - SLOTS), call + 1):
                self._judge_order(group, each)
            group.judged = call + 1

    def _judge_order(self, group: _Group, call: int) -> None:
        """Look from which lines the ranks have made a call, unless one of them has overwritten its entry."""
        slot = (group.key + call) % SLOTS
        heads = self._entries[group.ranks, slot, :TEXT]
        if ANYWHERE in heads[:, SITE]:
            return
        lines: dict[Site, int] = {}
        for rank, (_, _, _, site, _, _) in zip(group.ranks, heads.tolist(), strict=True):
            line = group.lines.get(site)
            if line is None:
                line = group.lines[site] = Site(site, _posted(self._entries, rank, slot).place)
            lines[line] = lines.get(line, 0) | 1 << rank
        again = self._entries[group.ranks, slot, :RANKS]
        if (again[:, NUMBER] == call + 1).all() and (again[:, GROUP] == np.uint64(group.key)).all():
            reordering = group.order.next(int(heads[0, DIGEST]), call, lines)
            if reordering is not None:
                raise reordered(_posted(self._entries, self._rank, slot).fingerprint, call, reordering)


class _Group:
    """What a rank knows of one of its groups. Groups of the same number have different keys if their ranks differ."""

    def __init__(self, number: int, ranks: tuple[int, ...], me: int) -> None:
        name = hashlib.blake2b(repr((number, ranks)).encode(), digest_size=8)
        self.key = int.from_bytes(name.digest(), "little")
        self.ranks = list(ranks)
        self.others = [rank * BOARD_WORDS for rank in ranks if rank != me]  # where their entries begin
        self.mask = sum(1 << rank for rank in ranks)
        self.history = 0
        self.judged = 0  # calls before this one have been looked at
        self.order = CallOrder()
        self.lines: dict[int, Site] = {}


def find_left_out(page: Page) -> CollectiveMismatch | None:
    """The error of ranks that did not make all calls of their groups, or different ones, once all have returned."""
    entries = page.board
    for rank in range(page.nodes):
        last: dict[int, tuple[int, int]] = {}
        for number, key, _, _, mask, _ in entries[rank, :, :TEXT].tolist():
            if number > last.get(key, (0, 0))[0]:
                last[key] = number, mask
        for key, (number, mask) in last.items():
            slot = (key + number - 1) % SLOTS
            heads = entries[:, slot, :TEXT].tolist()
            group = [other for other in range(page.nodes) if mask >> other & 1]
            made = [r for r in group if (heads[r][GROUP], heads[r][NUMBER]) == (key, number)]
            missing = [r for r in group if heads[r][NUMBER] < number and heads[r][GROUP] in (0, key)]
            if missing:  # at that slot they have nothing, or an earlier call; another group's entry would tell nothing
                return left_out(number - 1, {r: _posted(entries, r, slot) for r in made}, missing)
            if len({heads[r][HISTORY] for r in made}) > 1:
                return differed_before(number - 1, made, SLOTS)
    return None


def _posted(entries: Words, rank: int, slot: int) -> Posted:
    text = entries[rank, slot, TEXT:].tobytes().split(b"\0", 2)
    return Posted(*(part.decode(errors="replace") for part in text[:2]))


@lru_cache(4096)
def _encoded(fingerprint: Fingerprint) -> tuple[int, bytes]:
    """The digest of a fingerprint, and its text and place as an entry holds them, each ended by a zero byte."""
    place = fingerprint.site.place.encode(errors="replace")[-PLACE_BYTES:]
    text = str(fingerprint).replace("\0", " ").encode(errors="replace")[: TEXT_BYTES - PLACE_BYTES - 2]
    return digest(fingerprint[:-1]), text + b"\0" + place + b"\0"
