"""A group of ranks, as one of them sees it: their numbers, and the tags of their messages."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import numpy as np

from minidl.arguments import whole_number
from minidl.tape import Node

ANY = -1
"""As `src` of `recv` and `irecv`: a message from any rank."""

MAX_TAG = 1 << 32
MAX_GROUP = 1 << 31


class RankGroup:
    """The ranks of a communicator, numbered from 0, and the 64-bit tags that its messages have.

    ranks      the group: numbers in the whole run, in the order of the numbers within the group
    number     number of the group; two groups with a common rank have different numbers
    rank       number of this rank within the group
    size       number of ranks
    number_of  maps a rank's number in the whole run to its number within the group
    first_tag  added to a program's tag
    first_call added to the number of a collective call; the sum differs from every tag of a program
    """

    __slots__ = ("_everyone", "first_call", "first_tag", "number", "number_of", "rank", "ranks", "size")

    def __init__(self, ranks: tuple[int, ...], number: int, world_rank: int) -> None:
        self.ranks = ranks
        self.number = number
        self.number_of, self._everyone = _numbers(ranks)
        self.rank = self.number_of[world_rank]
        self.size = len(ranks)
        self.first_tag = number * MAX_TAG
        self.first_call = (MAX_GROUP + number) * MAX_TAG

    def checked(self, name: str, rank: int) -> int:
        """Return the argument called `name`, a rank of the group; raise TypeError or ValueError for anything else."""
        if type(rank) is int and 0 <= rank < self.size:  # the usual case first: messages are many
            return rank
        ranks = "1 rank" if self.size == 1 else f"{self.size} ranks"
        return whole_number(name, rank, at_least=0, at_most=self.size - 1, hint=f"this communicator has {ranks}")

    def destination(self, dst: int, tag: int) -> tuple[int, int]:
        """Return the number in the whole run of rank `dst`, and the whole tag of a message to it."""
        if not (type(dst) is int and 0 <= dst < self.size and type(tag) is int and 0 <= tag < MAX_TAG):
            dst, tag = self.checked("dst", dst), _checked_tag(tag)
        return self.ranks[dst], self.first_tag + tag

    def source(self, src: int | Collection[int], tag: int) -> tuple[int | frozenset[int], int]:
        """Return the ranks of the whole run from which a message may come, and its whole tag."""
        if not (type(src) is int and 0 <= src < self.size and type(tag) is int and 0 <= tag < MAX_TAG):
            return self._source(src), self.first_tag + _checked_tag(tag)
        return self.ranks[src], self.first_tag + tag

    def _source(self, src: int | Collection[int]) -> int | frozenset[int]:
        if isinstance(src, Collection):
            if isinstance(src, (np.ndarray, Node)):
                raise TypeError(
                    f"src must be a rank, cluster.ANY or some ranks, got an array ({type(src).__name__}): recv(src) "
                    "returns the message, recv(src, out=x) also fills the array x"
                )
            if not src:
                raise ValueError("src must be a rank, cluster.ANY or some ranks, got an empty collection")
            some = frozenset(src)  # checked in C: a server names its hundreds of workers at each receive
            if not ({*map(type, some)} == {int} and min(some) >= 0 and max(some) < self.size):
                some = frozenset(self.checked("src", rank) for rank in some)
            return frozenset(map(self.ranks.__getitem__, some))
        return self._everyone if src == ANY else self.ranks[self.checked("src", src)]


def _checked_tag(tag: int) -> int:
    return tag if type(tag) is int and 0 <= tag < MAX_TAG else whole_number("tag", tag, at_least=0, at_most=MAX_TAG - 1)


def program_tag(tag: int) -> int | None:
    """Return the program's tag, from the 64 bits that an engine sees; None for a collective."""
    return None if tag >= MAX_GROUP * MAX_TAG else tag % MAX_TAG


@lru_cache(64)
def _numbers(ranks: tuple[int, ...]) -> tuple[dict[int, int], frozenset[int]]:
    """Each world rank's number within the group, and the set of world ranks; cached for simulated ranks."""
    return {world: number for number, world in enumerate(ranks)}, frozenset(ranks)


@lru_cache(4)
def divided(
    ranks: tuple[int, ...], given: tuple[tuple[int | None, int, int], ...]
) -> tuple[dict[int, tuple[int, ...]], int]:
    """The groups of a split by color, and an index that is free on all ranks, from each rank's color, key and index.

    Cached for simulated ranks: otherwise thousands of ranks would each sort thousands of entries, and each would keep
    its own tuple of the same ranks.
    """
    first = max(free for _, _, free in given)  # hence no two groups with a common rank have the same number
    members: dict[int, list[tuple[int, int]]] = {}
    for rank, (color, key, _) in enumerate(given):
        if color is not None:
            members.setdefault(color, []).append((key, rank))
    return {color: tuple(ranks[rank] for _, rank in sorted(members[color])) for color in sorted(members)}, first
