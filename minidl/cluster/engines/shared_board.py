"""The board on processes: ranks write their fingerprints into their parts of the shared page, and read each other's.

The entry of a group's call lies at a slot that follows from the two, so it is found without a search; it stays until
the rank has made SLOTS more calls. Ranks compare as they enter a call, with those that have entered before: so the
last of them has seen all. That takes a rank's entry to be visible to the others before it reads theirs, which is why it
takes a lock in between: its atomic instruction orders the two. An entry that is being written is seen as none.
"""

from __future__ import annotations

import hashlib
import threading
from functools import lru_cache

import numpy as np

from minidl.cluster.board import Entry, Fingerprint, Posted, crossed, crossing, digest, mismatch
from minidl.cluster.engines.shared_page import BOARD_WORDS, ENTRY_WORDS, SLOTS, WAIT_WORDS, Page

NUMBER, GROUP, DIGEST, SITE, TEXT = range(5)  # the words of an entry: the call's number from 1, ..., then text
TEXT_BYTES = 8 * (ENTRY_WORDS - TEXT)
PLACE_BYTES = 200


class SharedBoard:
    """One rank's view of the board."""

    def __init__(self, page: Page, rank: int) -> None:
        self._rank = rank
        self._entries = page.board
        self._heads = page.board[:, :, :TEXT]
        start = 8 * (page.nodes * WAIT_WORDS + rank * BOARD_WORDS)
        self._bytes = page.memory[start : start + 8 * BOARD_WORDS]
        self._words = self._bytes.cast("Q")
        self._keys: dict[int, int] = {}  # of this rank's groups
        self._sites: set[int] = set()  # from which this rank has called
        self._fence = threading.Lock()

    def post(self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint) -> None:
        """Put up the `call`-th collective of the group; raises CollectiveMismatch when it is not what others do."""
        key = self._keys.get(group) or self._new_key(group, ranks)
        slot = (key + call) % SLOTS
        self._write(slot, key, call, fingerprint)
        with self._fence:
            same = self._heads[:, slot] == self._heads[self._rank, slot]
        if same.all():
            return
        known = same[:, NUMBER] & same[:, GROUP] & (self._heads[:, slot, NUMBER] == call + 1)  # not overwritten since
        if (known & ~same[:, DIGEST]).any():
            raise mismatch({rank: self._posted(rank, slot) for rank in np.flatnonzero(known).tolist()})
        if fingerprint.label is None:
            for other in np.flatnonzero(known & ~same[:, SITE]).tolist():
                self._check_order(other, key, call, fingerprint)

    def _new_key(self, group: int, ranks: tuple[int, ...]) -> int:
        """Groups of the same number are different ones where they have different ranks."""
        name = repr((group, ranks)).encode()
        key = self._keys[group] = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little") | 1
        return key

    def _write(self, slot: int, key: int, call: int, fingerprint: Fingerprint) -> None:
        site = fingerprint.site.key
        self._sites.add(site)
        number, text = _encoded(fingerprint)
        words, entry = self._words, slot * ENTRY_WORDS
        words[entry + NUMBER] = 0  # it is being written
        words[entry + GROUP] = key
        words[entry + DIGEST] = number
        words[entry + SITE] = site
        start = 8 * (entry + TEXT)
        self._bytes[start : start + len(text)] = text
        words[entry + NUMBER] = call + 1

    def _posted(self, rank: int, slot: int) -> Posted:
        text = self._entries[rank, slot, TEXT:].tobytes().split(b"\0", 2)
        return Posted(*(part.decode(errors="replace") for part in text[:2]))

    def _check_order(self, other: int, key: int, call: int, fingerprint: Fingerprint) -> None:
        there = int(self._heads[other, (key + call) % SLOTS, SITE])
        if there not in self._sites and not (self._heads[other, :, SITE] == np.uint64(fingerprint.site.key)).any():
            return
        earlier = crossing(self._history(self._rank, key, call), self._history(other, key, call), call)
        if earlier is not None:
            calls = {
                rank: [(m, self._posted(rank, (key + m) % SLOTS).place) for m in (earlier, call)]
                for rank in (self._rank, other)
            }
            raise crossed(str(fingerprint), calls)

    def _history(self, rank: int, key: int, call: int) -> dict[int, Entry]:
        heads = self._heads[rank]
        rows = heads[(heads[:, GROUP] == np.uint64(key)) & (heads[:, NUMBER] <= call + 1) & (heads[:, NUMBER] > 0)]
        return {number - 1: Entry(digest, site) for number, _, digest, site in rows.tolist()}


@lru_cache(4096)
def _encoded(fingerprint: Fingerprint) -> tuple[int, bytes]:
    """The digest of a fingerprint, and its text and place as an entry holds them, each ended by a zero byte."""
    place = fingerprint.site.place.encode(errors="replace")[-PLACE_BYTES:]
    text = str(fingerprint).replace("\0", " ").encode(errors="replace")[: TEXT_BYTES - PLACE_BYTES - 2]
    return digest(fingerprint[:-1]), text + b"\0" + place + b"\0"
