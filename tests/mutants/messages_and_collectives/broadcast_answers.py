"""Answers to `broadcast_tree`."""

from __future__ import annotations

from course.checking import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

TREE = """
def broadcast_tree(comm, x):
    have = 1
    while have < comm.size:
        if comm.rank < have and comm.rank + have < comm.size:
            comm.send(x, comm.rank + have)
        elif have <= comm.rank < 2 * have:
            x = comm.recv(comm.rank - have)
        have *= 2
    return x
"""
ARRAY, MESSAGES, ROUNDS = "every rank returns rank 0's array", "p - 1 messages, by send and recv", "ceil(log2 p) rounds"

MUTANTS = [
    Mutant(
        "broadcast_tree",
        "rank 0 sends to everyone itself",
        """
def broadcast_tree(comm, x):
    if comm.rank == 0:
        for rank in range(1, comm.size):
            comm.send(x, rank)
        return x
    return comm.recv(0)
""",
        loses=(ROUNDS,),
        says="Rank 0 sends to everyone itself",
    ),
    Mutant(
        "broadcast_tree",
        "a chain",
        """
def broadcast_tree(comm, x):
    if comm.rank > 0:
        x = comm.recv(comm.rank - 1)
    if comm.rank + 1 < comm.size:
        comm.send(x, comm.rank + 1)
    return x
""",
        loses=(ROUNDS,),
        says="from one rank to the next",
    ),
    Mutant(
        "broadcast_tree",
        "log2 not rounded up",
        changed(TREE, "while have < comm.size", "while 2 * have <= comm.size"),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="never came to this rank",
    ),
    Mutant(
        "broadcast_tree",
        "works only for powers of two",
        changed(TREE, " and comm.rank + have < comm.size", ""),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="dst must be a rank",
        status=Status.RAISED,
    ),
    Mutant(
        "broadcast_tree",
        "everyone acknowledges",
        changed(
            TREE,
            "    return x",
            """
    if comm.rank > 0:
        comm.send(x, 0)
    else:
        for rank in range(1, comm.size):
            comm.recv(rank)
    return x""",
        ),
        loses=(MESSAGES, ROUNDS),
        says="these are more",
    ),
    Mutant(
        "broadcast_tree",
        "uses comm.broadcast",
        "def broadcast_tree(comm, x):\n    return comm.broadcast(x)",
        loses=(MESSAGES, ROUNDS),
        says="called comm.broadcast",
    ),
    Mutant(
        "broadcast_tree",
        "forgets to return",
        changed(TREE, "    return x", ""),
        loses=(ARRAY,),
        says="does not return it",
    ),
    Mutant(
        "broadcast_tree",
        "what came is not kept",
        changed(TREE, "x = comm.recv", "comm.recv"),
        loses=(ARRAY,),
        says="never came to this rank",
    ),
    Mutant(
        "broadcast_tree",
        "everyone receives first, rank 0 too",
        changed(TREE, "    have = 1", "    x = comm.recv(comm.rank // 2)\n    have = 1"),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="rank 0",
        status=Status.STUCK,
    ),
]

ALTERNATIVES = [
    Alternative(
        "broadcast_tree",
        "halving the distance",
        """
def broadcast_tree(comm, x):
    distance = 1
    while distance < comm.size:
        distance *= 2
    while distance > 1:
        half = distance // 2
        if comm.rank % distance == 0 and comm.rank + half < comm.size:
            comm.send(x, comm.rank + half)
        elif comm.rank % distance == half:
            x = comm.recv(comm.rank - half)
        distance = half
    return x
""",
    ),
    Alternative(
        "broadcast_tree",
        "one receive from the parent, then isends to all children",
        """
def broadcast_tree(comm, x):
    span = 1 << comm.rank.bit_length()
    if comm.rank > 0:
        x = comm.recv(comm.rank - span // 2)
    begun = []
    while comm.rank + span < comm.size:
        begun.append(comm.isend(x, comm.rank + span))
        span *= 2
    for work in begun:
        work.wait()
    return x
""",
    ),
]
