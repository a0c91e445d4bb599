"""Fingerprints of collectives on processes: each rank writes its own to the shared page and reads those of the others.

The entry of a call is in a slot that follows from its group and number, so it is found without a search. It stays
until the rank has made SLOTS more calls. A rank compares its entry with the entries that exist when it posts, so the
last rank to make a call compares all. This requires that an entry is visible to the others before its rank reads
theirs: a memory barrier between the two orders them. An entry that is being written counts as absent.

Ranks may be more than SLOTS calls apart, because the root of a broadcast does not wait for the others. The entry is
then overwritten before the slower rank reads it. Every entry therefore also has a hash of all calls up to it, its
HISTORY. A difference is found at the latest when the slower rank comes within SLOTS calls, or at the end of the run.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from minidl.cluster.call_site import ANYWHERE, Site
from minidl.cluster.diagnosis.call_order import CallOrder
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
from minidl.cluster.engines.processes.memory_barrier import IN_ORDER, barrier
from minidl.cluster.engines.processes.shared_page import ENTRY_WORDS, FINGERPRINT_WORDS, SLOTS, WAIT_WORDS, Page, Words

NUMBER, GROUP, DIGEST, SITE, RANKS, HISTORY, TEXT = range(7)  # the words of an entry; NUMBER counts calls from 1
TEXT_BYTES = 8 * (ENTRY_WORDS - TEXT)
PLACE_BYTES = 200


class SharedFingerprints:
    """The fingerprints of all ranks, as one rank sees them."""

    def __init__(self, page: Page, rank: int) -> None:
        self._rank = rank
        self._entries = page.fingerprints
        self._bytes = page.memory[8 * page.nodes * WAIT_WORDS :]
        self._words = self._bytes.cast("Q")  # single words are read faster from a memoryview than from an array
        self._groups: dict[int, _GroupCalls] = {}
        self._last: dict[int, tuple[Fingerprint, Site, int, Callable[..., None], bytes]] = {}  # by line: the last call
        self._first = rank * FINGERPRINT_WORDS

    def post(self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint, site: Site) -> None:
        """Post the `call`-th collective of the group; raises CollectiveMismatch if it differs from the others'."""
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = _GroupCalls(group, ranks, self._rank)
        key, number, words = known.key, call + 1, self._words
        offset = (known.first_slot + call) % SLOTS * ENTRY_WORDS
        line = site.key if fingerprint.label is None else ANYWHERE
        last = self._last.get(line)
        if last is None or last[0] is not fingerprint or last[1] is not site:
            last = self._last[line] = fingerprint, site, *_encoded(fingerprint, site)
        _, _, content, pack, text = last
        history = known.history = hash((known.history, content)) & 0xFFFFFFFFFFFFFFFF
        entry = self._first + offset
        words[entry] = 0  # it is being written
        if not IN_ORDER:
            barrier()
        pack(self._bytes, 8 * (entry + GROUP), key, content, line, known.mask, history, text)
        if not IN_ORDER:
            barrier()
        words[entry] = number
        barrier()
        for other in known.others:
            entry = other + offset
            if words[entry] != number:
                continue
            if not IN_ORDER:
                barrier()
            if words[entry + GROUP] == key and (words[entry + HISTORY] != history or words[entry + SITE] != line):
                break
        else:
            return
        self._compare(known, call)

    def _compare(self, group: _GroupCalls, call: int) -> None:
        """Raise CollectiveMismatch if the difference between this rank's entry and another rank's is an error."""
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

    def _judge_order(self, group: _GroupCalls, call: int) -> None:
        """Check the lines from which the ranks made this call, unless one of them has overwritten its entry."""
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


class _GroupCalls:
    """What a rank knows of one of its groups. Groups with the same number but different ranks have different keys."""

    def __init__(self, number: int, ranks: tuple[int, ...], me: int) -> None:
        name = hashlib.blake2b(repr((number, ranks)).encode(), digest_size=8)
        self.key = int.from_bytes(name.digest(), "little")
        self.first_slot = self.key % SLOTS
        self.ranks = list(ranks)
        self.others = [rank * FINGERPRINT_WORDS for rank in ranks if rank != me]  # the first words of their entries
        self.mask = sum(1 << rank for rank in ranks)
        self.history = 0
        self.judged = 0  # earlier calls have been checked
        self.order = CallOrder()
        self.lines: dict[int, Site] = {}


def find_left_out(page: Page) -> CollectiveMismatch | None:
    """The error of ranks that have returned without some call of their group, or with a different one; else None."""
    entries = page.fingerprints
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
            if missing:  # their slot is empty or has an earlier call; an entry of another group proves nothing
                return left_out(number - 1, {r: _posted(entries, r, slot) for r in made}, missing)
            if len({heads[r][DIGEST] for r in made}) > 1:  # they have caught the error
                return mismatch({r: _posted(entries, r, slot) for r in made})
            if len({heads[r][HISTORY] for r in made}) > 1:
                return differed_before(number - 1, made, SLOTS)
    return None


def _posted(entries: Words, rank: int, slot: int) -> Posted:
    text = entries[rank, slot, TEXT:].tobytes().split(b"\0", 2)
    return Posted(*(part.decode(errors="replace") for part in text[:2]))


@lru_cache(4096)
def _encoded(fingerprint: Fingerprint, site: Site) -> tuple[int, Callable[..., None], bytes]:
    """The digest of a fingerprint; what writes an entry from GROUP on; text and place, each ended by a zero byte."""
    place = site.place.encode(errors="replace")[-PLACE_BYTES:]
    text = str(fingerprint).replace("\0", " ").encode(errors="replace")[: TEXT_BYTES - PLACE_BYTES - 2]
    text += b"\0" + place + b"\0"
    return digest(fingerprint), struct.Struct(f"5Q{len(text)}s").pack_into, text
