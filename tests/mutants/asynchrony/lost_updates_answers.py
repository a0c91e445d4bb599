"""Answers to `lost_updates`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

PLAYED = """
def lost_updates(events):
    counters, seen, writes = {}, {}, 0
    for worker, action, cell in events:
        if action == "read":
            seen[worker, cell] = counters.get(cell, 0)
        else:
            counters[cell] = seen[worker, cell] + 1
            writes += 1
    return writes - sum(counters.values())
"""
HARMLESS, RACES = "nothing is lost: with a lock, or in different cells", "what is lost in races"

MUTANTS = [
    Mutant(
        "lost_updates",
        "never anything",
        "def lost_updates(events):\n    return 0",
        loses=(HARMLESS, RACES),
        says="Something is lost here",
    ),
    Mutant(
        "lost_updates",
        "what is left instead of what is lost",
        changed(PLAYED, "return writes - sum(counters.values())", "return sum(counters.values())"),
        loses=(HARMLESS, RACES),
        says="not lost",
    ),
    Mutant(
        "lost_updates",
        "each write that overwrites another worker's counts once",
        """
def lost_updates(events):
    version, seen, lost = {}, {}, 0
    for worker, action, cell in events:
        if action == "read":
            seen[worker, cell] = version.get(cell, 0)
        else:
            lost += version.get(cell, 0) != seen[worker, cell]
            version[cell] = version.get(cell, 0) + 1
    return lost
""",
        loses=(RACES,),
        says="A write that is late by several loses several",
    ),
    Mutant(
        "lost_updates",
        "all cells are one",
        changed(
            PLAYED,
            "    for worker, action, cell in events:\n",
            "    for worker, action, cell in events:\n        cell = 0\n",
        ),
        loses=(HARMLESS, RACES),
        says="The cells are counted as one",
    ),
    Mutant(
        "lost_updates",
        "every read that its write does not follow at once",
        """
def lost_updates(events):
    lost = 0
    for one, other in zip(events, events[1:]):
        lost += one[1] == "read" and (other[0] != one[0] or other[1] != "write")
    return lost
""",
        loses=(HARMLESS, RACES),
        says="Other workers may come between a read and its write without loss",
    ),
    Mutant(
        "lost_updates",
        "one cell's value per worker",
        changed(
            PLAYED,
            "seen[worker, cell] = counters",
            "seen[worker] = counters",
            "seen[worker, cell] + 1",
            "seen[worker] + 1",
        ),
        loses=(RACES,),
        says="expected",
    ),
    Mutant(
        "lost_updates",
        "writes add to the present value",
        changed(PLAYED, "seen[worker, cell] + 1", "counters.get(cell, 0) + 1"),
        loses=(HARMLESS, RACES),
        says="expected",
    ),
    Mutant(
        "lost_updates",
        "reads are counted",
        changed(PLAYED, "            writes += 1\n", "        writes += 1\n"),
        loses=(HARMLESS, RACES),
        says="expected",
    ),
    Mutant(
        "lost_updates",
        "by cell, in a dictionary",
        changed(PLAYED, "return writes - sum(counters.values())", "return counters"),
        loses=(HARMLESS, RACES),
        says="expected",
    ),
    Mutant(
        "lost_updates",
        "forgets to return",
        changed(PLAYED, "return writes", "writes"),
        loses=(HARMLESS, RACES),
        says="without a `return`",
    ),
    Mutant(
        "lost_updates",
        "a counter begins when it is first written",
        changed(PLAYED, "counters.get(cell, 0)", "counters[cell]"),
        loses=(HARMLESS, RACES),
        says="KeyError",
        status=Status.RAISED,
    ),
    Mutant(
        "lost_updates",
        "a list of ten counters",
        changed(
            PLAYED,
            "counters, seen, writes = {}, {}, 0",
            "counters, seen, writes = [0] * 10, {}, 0",
            "counters.get(cell, 0)",
            "counters[cell]",
            "sum(counters.values())",
            "sum(counters)",
        ),
        loses=(HARMLESS, RACES),
        says="IndexError",
        status=Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "lost_updates",
        "cell by cell, what each write changes",
        """
def lost_updates(events):
    lost = 0
    for cell in {cell for _, _, cell in events}:
        value, seen = 0, {}
        for worker, action, other in events:
            if other == cell and action == "read":
                seen[worker] = value
            elif other == cell:
                lost += 1 - (seen[worker] + 1 - value)
                value = seen[worker] + 1
    return lost
""",
    ),
    Alternative(
        "lost_updates",
        "arrays, and a numpy integer",
        """
from collections import defaultdict

def lost_updates(events):
    counters, pending = defaultdict(int), {}
    for worker, action, cell in events:
        if action == "write":
            counters[cell] = pending.pop((worker, cell))
        else:
            pending[worker, cell] = 1 + counters[cell]
    return np.sum([action == "write" for _, action, _ in events]) - np.sum(list(counters.values()))
""",
    ),
]
