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

from minidl.cluster.board import Entry, Fingerprint, Posted, crossed, crossing, digest, left_out, mismatch
from minidl.cluster.engines.processes.shared_page import BOARD_WORDS, ENTRY_WORDS, SLOTS, WAIT_WORDS, Page, Words
from minidl.cluster.errors import CollectiveMismatch

NUMBER, GROUP, DIGEST, SITE, RANKS, TEXT = range(6)  # the words of an entry: the call's number from 1, ..., then text
TEXT_BYTES = 8 * (ENTRY_WORDS - TEXT)
PLACE_BYTES = 200


class SharedBoard:
    """One rank's view of the board."""

    def __init__(self, page: Page, rank: int) -> None:
        self._rank = rank
        self._entries = page.board
        self._bytes = page.memory[8 * page.nodes * WAIT_WORDS :]
        self._words = self._bytes.cast("Q")  # single words are read faster here than in an array
        self._groups: dict[int, tuple[int, int, list[int]]] = {}  # of this rank's: key, ranks, the others' parts
        self._sites: set[int] = set()  # from which this rank has called
        self._fence = threading.Lock()

    def post(self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint) -> None:
        """Put up the `call`-th collective of the group; raises CollectiveMismatch when it is not what others do."""
        key, mask, others = self._groups.get(group) or self._enter_group(group, ranks)
        slot = (key + call) % SLOTS
        number, site, words = call + 1, fingerprint.site.key, self._words
        content = self._write(slot, key, mask, number, fingerprint)
        with self._fence:
            for part in others:
                entry = part + slot * ENTRY_WORDS
                is_there = words[entry] == number and words[entry + GROUP] == key
                if is_there and (words[entry + DIGEST] != content or words[entry + SITE] != site):
                    break
            else:
                return
        self._compare(key, call, fingerprint)

    def _enter_group(self, group: int, ranks: tuple[int, ...]) -> tuple[int, int, list[int]]:
        """Groups of the same number are different ones where they have different ranks."""
        name = hashlib.blake2b(repr((group, ranks)).encode(), digest_size=8)
        others = [rank * BOARD_WORDS for rank in ranks if rank != self._rank]
        mask = sum(1 << rank for rank in ranks)
        self._groups[group] = known = int.from_bytes(name.digest(), "little"), mask, others
        return known

    def _write(self, slot: int, key: int, mask: int, number: int, fingerprint: Fingerprint) -> int:
        site = fingerprint.site.key
        self._sites.add(site)
        content, text = _encoded(fingerprint)
        words, entry = self._words, self._rank * BOARD_WORDS + slot * ENTRY_WORDS
        words[entry + NUMBER] = 0  # it is being written
        words[entry + GROUP] = key
        words[entry + DIGEST] = content
        words[entry + SITE] = site
        words[entry + RANKS] = mask
        start = 8 * (entry + TEXT)
        self._bytes[start : start + len(text)] = text
        words[entry + NUMBER] = number
        return content

    def _compare(self, key: int, call: int, fingerprint: Fingerprint) -> None:
        """Somebody's entry differs from this rank's: look which, and whether that is right."""
        slot = (key + call) % SLOTS
        heads = self._entries[:, slot, :RANKS]
        same = heads == heads[self._rank]
        known = same[:, NUMBER] & same[:, GROUP] & (heads[:, NUMBER] == call + 1)  # not overwritten in the meantime
        if (known & ~same[:, DIGEST]).any():
            raise mismatch({rank: _posted(self._entries, rank, slot) for rank in np.flatnonzero(known).tolist()})
        if fingerprint.label is None:
            for other in np.flatnonzero(known & ~same[:, SITE]).tolist():
                self._check_order(other, key, call, fingerprint)

    def _check_order(self, other: int, key: int, call: int, fingerprint: Fingerprint) -> None:
        there = int(self._entries[other, (key + call) % SLOTS, SITE])
        if there not in self._sites and not (self._entries[other, :, SITE] == np.uint64(fingerprint.site.key)).any():
            return
        earlier = crossing(self._history(self._rank, key, call), self._history(other, key, call), call)
        if earlier is not None:
            calls = {
                rank: [(m, _posted(self._entries, rank, (key + m) % SLOTS).place) for m in (earlier, call)]
                for rank in (self._rank, other)
            }
            raise crossed(str(fingerprint), calls)

    def _history(self, rank: int, key: int, call: int) -> dict[int, Entry]:
        heads = self._entries[rank, :, :RANKS]
        rows = heads[(heads[:, GROUP] == np.uint64(key)) & (heads[:, NUMBER] <= call + 1) & (heads[:, NUMBER] > 0)]
        return {number - 1: Entry(digest, site) for number, _, digest, site in rows.tolist()}


def find_left_out(page: Page) -> CollectiveMismatch | None:
    """Now that all ranks have returned: the error if one has left out a call that others of its group made."""
    entries = page.board
    for rank in range(page.nodes):
        last: dict[int, tuple[int, int]] = {}
        for number, key, _, _, mask in entries[rank, :, :TEXT].tolist():
            if number > last.get(key, (0, 0))[0]:
                last[key] = number, mask
        for key, (number, mask) in last.items():
            slot = (key + number - 1) % SLOTS
            heads = entries[:, slot, :TEXT].tolist()
            group = [other for other in range(page.nodes) if mask >> other & 1]
            missing = [r for r in group if heads[r][NUMBER] < number and heads[r][GROUP] in (0, key)]
            if missing:  # at that slot they have nothing, or an earlier call; another group's entry would tell nothing
                made = [r for r in group if (heads[r][GROUP], heads[r][NUMBER]) == (key, number)]
                return left_out(number - 1, {r: _posted(entries, r, slot) for r in made}, missing)
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
