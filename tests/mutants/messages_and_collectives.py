"""Answers to the exercises of chapter 04."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

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
        loses=("ceil(log2 p) rounds",),
        says="rank 0 of 5 sent 4 messages",
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
]
