"""Answers to `is_ring`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

IS_RING = """
from collections import Counter
def is_ring(sends, p, nbytes):
    longest = -(-(nbytes // 8) // p) * 8
    count = Counter(source for source, _, _ in sends)
    arrows = {(source, destination) for source, destination, _ in sends}
    follow = dict(arrows)
    rank, seen = 0, set()
    for _ in range(p):
        rank = follow.get(rank, rank)
        seen.add(rank)
    messages_are_right = all(count[rank] == 2 * (p - 1) for rank in range(p))
    one_ring = len(arrows) == p and len(seen) == p and rank == 0
    chunks_only = all(size <= longest for _, _, size in sends)
    return messages_are_right and one_ring and chunks_only
"""
GROUPS = ("group 1", "group 2", "group 3", "group 4")
RESULT = "return messages_are_right and one_ring and chunks_only"


def wrong(mistake: str, loses: tuple[int, ...], says: str, *replacements: str) -> Mutant:
    """A change of the answer above; `loses`: the numbers of the groups, from 0."""
    return Mutant("is_ring", mistake, changed(IS_RING, *replacements), tuple(GROUPS[i] for i in loses), says)


MUTANTS = [
    wrong("everything is a ring", (0, 1, 2, 3), "does not hold here", RESULT, "return True"),
    wrong("nothing is a ring", (0, 1, 2, 3), "All three conditions hold here", RESULT, "return False"),
    wrong(
        "only the bytes of all together are looked at",
        (0, 1, 2, 3),
        "Condition 1 of the text does not hold here",
        RESULT,
        "return sum(size for _, _, size in sends) == 2 * (p - 1) * nbytes",
    ),
    wrong(
        "only the bytes of each rank are looked at",
        (0, 1, 2, 3),
        "Condition 1 of the text does not hold here",
        RESULT,
        """
    sent = Counter()
    for source, _, size in sends:
        sent[source] += size
    return max(sent.values()) <= 2 * (p - 1) * longest""",
    ),
    wrong("only the way is looked at", (0, 1, 3), "whole vectors", RESULT, "return one_ring"),
    wrong("only the messages are counted", (0, 1, 2, 3), "whole vectors", RESULT, "return messages_are_right"),
    wrong(
        "chunks must be equal",
        (1,),
        "for a ring (sends",
        "all(size <= longest for _, _, size in sends)",
        "all(size == nbytes / p for _, _, size in sends)",
    ),
    wrong(
        "only rings to the right",
        (2, 3),
        "expected True, got False",
        RESULT,
        "return messages_are_right and chunks_only and all(to == (rank + 1) % p for rank, to in arrows)",
    ),
    wrong(
        "the ring is not closed",
        (0, 1, 2, 3),
        "for a ring (sends",
        RESULT,
        "return messages_are_right and chunks_only and all(abs(to - rank) == 1 for rank, to in arrows)",
    ),
    wrong(
        "bytes taken for elements", (0, 1, 2, 3), "for a ring (sends", "(nbytes // 8) // p) * 8", "(nbytes // 8) // p)"
    ),
    wrong(
        "2(p - 1) messages in all, not of each rank",
        (0, 1, 2, 3),
        "for a ring (sends",
        "all(count[rank] == 2 * (p - 1) for rank in range(p))",
        "len(sends) == 2 * (p - 1)",
    ),
    wrong(
        "says yes in words",
        (0, 1, 2, 3),
        "expected True, got 'yes'",
        RESULT,
        RESULT.replace("return ", "if ") + ":\n        return 'yes'\n    return False",
    ),
]

COUNTED = "all(count[rank] == 2 * (p - 1) for rank in range(p))"
LENGTHS = "all(size <= longest for _, _, size in sends)"
WAY = "len(arrows) == p and len(seen) == p and rank == 0"

MUTANTS += [
    wrong(
        "messages are not counted",
        (0, 3),
        "every chunk goes in two messages",
        RESULT,
        "return one_ring and chunks_only",
    ),
    wrong("lengths are not looked at", (0, 1), "whole vectors", RESULT, "return messages_are_right and one_ring"),
    wrong(
        "whom they go to is not looked at", (2, 3), "Condition 2", RESULT, "return messages_are_right and chunks_only"
    ),
    wrong(
        "at least so many messages", (0,), "every chunk goes in two messages", "count[rank] == 2", "count[rank] >= 2"
    ),
    wrong("anything shorter than the vector", (1,), "all that n // p leaves over", "size <= longest", "size < nbytes"),
    wrong(
        "neighbours, whichever",
        (2, 3),
        "to the left to be handed out",
        RESULT,
        "return messages_are_right and chunks_only and all((to - rank) % p in (1, p - 1) for rank, to in arrows)",
    ),
    wrong("a chunk is n // p elements", (1,), "for a ring (sends", "-(-(nbytes // 8) // p)", "(nbytes // 8 // p)"),
    wrong("n/p is rounded", (1,), "for a ring (sends", "-(-(nbytes // 8) // p)", "round(nbytes / 8 / p)"),
    wrong("a chunk is nbytes/p", (1,), "for a ring (sends", "-(-(nbytes // 8) // p) * 8", "-(-nbytes // p)"),
    wrong(
        "only the messages of rank 0 are counted",
        (0, 3),
        "Condition 1 of the text does not hold here",
        COUNTED,
        "count[0] == 2 * (p - 1)",
    ),
    wrong(
        "2p(p - 1) messages in all, whoever sends them",
        (3,),
        "one rank sends a message more, and another one fewer",
        COUNTED,
        "len(sends) == 2 * p * (p - 1)",
    ),
    wrong(
        "only the lengths of rank 0's messages are looked at",
        (1,),
        "one message is too long",
        LENGTHS,
        "all(size <= longest for rank, _, size in sends if rank == 0)",
    ),
    wrong("only the first message's length is looked at", (1,), "Condition 3", LENGTHS, "sends[0][2] <= longest"),
    wrong(
        "the mean length of the messages is looked at",
        (1,),
        "all that n // p leaves over",
        LENGTHS,
        "np.mean([size for _, _, size in sends]) <= longest",
    ),
    wrong(
        "only rank 0's destinations are looked at",
        (2, 3),
        "Condition 2 of the text does not hold here",
        WAY,
        "len({to for rank, to in arrows if rank == 0}) == 1",
    ),
    wrong(
        "one destination of each rank is looked at: the last",
        (2,),
        "Condition 2 of the text does not hold here",
        WAY,
        "len(seen) == p and rank == 0",
        "follow = dict(arrows)",
        "follow = {source: to for source, to, _ in sends}",
    ),
    wrong(
        "one destination of each rank is looked at: the first",
        (2,),
        "Condition 2 of the text does not hold here",
        WAY,
        "len(seen) == p and rank == 0",
        "follow = dict(arrows)",
        "follow = {source: to for source, to, _ in reversed(sends)}",
    ),
    wrong("one destination a rank, and no way followed", (3,), "two rings", WAY, "len(arrows) == p"),
    wrong(
        "everyone sends and everyone receives",
        (2, 3),
        "Condition 2 of the text does not hold here",
        WAY,
        "{rank for rank, _ in arrows} == {to for _, to in arrows} == set(range(p))",
    ),
    wrong(
        "the way comes by all ranks, and need not come back",
        (3,),
        "a ring of all ranks but 0, which sends into it",
        WAY,
        "len(arrows) == p and len(seen | {0}) == p",
    ),
]

MUTANTS += [
    wrong(
        "an empty message is none",
        (1,),
        "All three conditions hold here",
        "for source, _, _ in sends)",
        "for source, _, size in sends if size)",
    ),
]

ALTERNATIVES = [
    Alternative(
        "is_ring",
        "one destination a rank, each rank's own, and a way that is back after p steps only",
        """
def is_ring(sends, p, nbytes):
    targets = [[] for _ in range(p)]
    for source, to, size in sends:
        if size > 8 * math.ceil(nbytes // 8 / p):
            return False
        targets[source].append(to)
    if any(len(to) != 2 * p - 2 or len(set(to)) > 1 for to in targets):
        return False
    rank = targets[0][0]
    steps = 1
    while rank != 0 and steps <= p:
        rank = targets[rank][0]
        steps += 1
    return steps == p
""",
    ),
    Alternative("is_ring", "sets and a Counter", IS_RING),
    Alternative(
        "is_ring",
        "a matrix of messages in numpy",
        """
def is_ring(sends, p, nbytes):
    if not sends:
        return False
    table = np.array(sends)
    messages = np.zeros((p, p), dtype=int)
    np.add.at(messages, (table[:, 0], table[:, 1]), 1)
    if np.any(np.sort(messages, axis=1)[:, :-1]) or np.any(messages.max(axis=1) != 2 * (p - 1)):
        return False
    rank, steps = 0, 0
    while steps == 0 or rank != 0:
        rank, steps = messages[rank].argmax(), steps + 1
        if steps > p:
            return False
    return steps == p and table[:, 2].max() <= 8 * np.ceil(nbytes / 8 / p)
""",
    ),
]
