"""Answers to `ring_reduce_scatter`."""

from __future__ import annotations

from course.checking import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

LARGE = "no deadlock with chunks of more than 64 KiB"
SCATTER = """
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    growing = chunks[left].copy()
    for step in range(p - 1):
        growing = comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]
    return growing
"""
CHUNK, ROUND, KEPT = (
    "rank r returns chunk r of the sum",
    "p - 1 messages a rank, each a chunk, to one neighbour",
    "the caller's chunks stay as they are",
)
SEND_FIRST = "(comm.send(growing, right), comm.recv(left))[1]"

MUTANTS = [
    Mutant(
        "ring_reduce_scatter",
        "chunk index off by one: chunk r + 1 ends on rank r",
        changed(SCATTER, "chunks[left].copy()", "chunks[me].copy()", "me - 2 - step", "me - 1 - step"),
        loses=(CHUNK, KEPT, LARGE),
        says="the number of the chunk is off by 1",
    ),
    Mutant(
        "ring_reduce_scatter",
        "one round missing",
        changed(SCATTER, "range(p - 1)", "range(p - 2)"),
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="a step is missing",
    ),
    Mutant(
        "ring_reduce_scatter",
        "wrong direction: chunks of a ring to the right, messages to the left",
        changed(SCATTER, "sendrecv(growing, right, left)", "sendrecv(growing, left, right)"),
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="do the messages go the way round",
    ),
    Mutant(
        "ring_reduce_scatter",
        "whole array each step",
        """
import numpy as np
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    passing = np.concatenate(chunks)
    total = passing
    for step in range(p - 1):
        passing = comm.sendrecv(passing, (me + 1) % p, (me - 1) % p)
        total = total + passing
    return np.split(total, np.cumsum([len(chunk) for chunk in chunks])[:-1])[me]
""",
        loses=(ROUND,),
        says="The whole vector goes out in each step",
    ),
    Mutant(
        "ring_reduce_scatter",
        "everybody sends before receiving",
        changed(SCATTER, "comm.sendrecv(growing, right, left)", SEND_FIRST),
        loses=(LARGE,),
        says="deadlock: ranks 0",
        status=Status.STUCK,
    ),
    Mutant(
        "ring_reduce_scatter",
        "a root gathers and scatters",
        """
import numpy as np
def ring_reduce_scatter(comm, chunks):
    if comm.rank > 0:
        comm.send(np.concatenate(chunks), 0)
        return comm.recv(0)
    total = np.concatenate(chunks)
    for rank in range(1, comm.size):
        total = total + comm.recv(rank)
    parts = np.split(total, np.cumsum([len(chunk) for chunk in chunks])[:-1])
    for rank in range(1, comm.size):
        comm.send(parts[rank], rank)
    return parts[0]
""",
        loses=(ROUND,),
        says="Everything goes through rank 0",
    ),
    Mutant(
        "ring_reduce_scatter",
        "uses comm.reduce_scatter",
        """
import numpy as np
def ring_reduce_scatter(comm, chunks):
    return comm.reduce_scatter(np.concatenate(chunks))
""",
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="called comm.reduce_scatter",
    ),
    Mutant(
        "ring_reduce_scatter",
        "adds in place, into the caller's chunks",
        """
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    for step in range(p - 1):
        chunks[(me - 2 - step) % p] += comm.sendrecv(chunks[(me - 1 - step) % p], (me + 1) % p, (me - 1) % p)
    return chunks[me]
""",
        loses=(KEPT,),
        says="was changed",
    ),
    Mutant(
        "ring_reduce_scatter",
        "works only for p > 1",
        changed(
            SCATTER,
            "growing = chunks[left].copy()",
            "passing = chunks[left]",
            "sendrecv(growing",
            "sendrecv(passing",
            "step) % p]",
            "step) % p]\n        passing = growing",
        ),
        loses=(CHUNK, ROUND, KEPT),
        says="UnboundLocalError",
        status=Status.RAISED,
    ),
    Mutant(
        "ring_reduce_scatter",
        "works only for p | n",
        changed(
            SCATTER, "growing = chunks[left].copy()", "chunks = np.stack(chunks)\n    growing = chunks[left].copy()"
        ),
        loses=(CHUNK, ROUND, KEPT),
        says="all input arrays must have the same shape",
        status=Status.RAISED,
    ),
    Mutant(
        "ring_reduce_scatter",
        "mean instead of sum",
        changed(SCATTER, "return growing", "return growing / p"),
        loses=(CHUNK, KEPT, LARGE),
        says="This is the mean",
    ),
    Mutant(
        "ring_reduce_scatter",
        "adds its own share twice",
        changed(SCATTER, "return growing", "return growing + chunks[me]"),
        loses=(CHUNK, KEPT, LARGE),
        says="added twice",
    ),
    Mutant(
        "ring_reduce_scatter",
        "rank 0 sends first, the others receive first",
        changed(
            SCATTER,
            "comm.sendrecv(growing, right, left)",
            "incoming",
            "    for step in range(p - 1):",
            """    for step in range(p - 1):
        if me == 0:
            comm.send(growing, right)
            incoming = comm.recv(left)
        else:
            incoming = comm.recv(left)
            comm.send(growing, right)""",
        ),
        loses=(ROUND,),
        says="rounds",
    ),
]

MUTANTS += [
    Mutant(
        "ring_reduce_scatter",
        "passes on what came, not the sum",
        changed(
            SCATTER,
            "growing = comm.sendrecv(growing, right, left) +",
            "passing = comm.sendrecv(passing, right, left)\n        growing = passing +",
            "chunks[left].copy()",
            "passing = chunks[left]",
        ),
        loses=(CHUNK, KEPT, LARGE),
        says="Missing in this sum: what rank",
    ),
    Mutant(
        "ring_reduce_scatter",
        "p steps",
        changed(SCATTER, "range(p - 1)", "range(p)"),
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="These are numbers of chunk 2. Added more than once: what rank 0 had.",
    ),
    Mutant(
        "ring_reduce_scatter",
        "everybody receives before sending",
        changed(SCATTER, "comm.sendrecv(growing, right, left)", "(comm.recv(left), comm.send(growing, right))[0]"),
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="rank 0: recv (call 1) waits for rank",
        status=Status.STUCK,
    ),
    Mutant(
        "ring_reduce_scatter",
        "sends to the right and receives from the right",
        changed(SCATTER, "(growing, right, left)", "(growing, right, right)"),
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="rank 0: sendrecv (call 1) waits for rank 1",
        status=Status.STUCK,
    ),
    Mutant(
        "ring_reduce_scatter",
        "puts sums into the caller's list",
        """
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    for step in range(p - 1):
        incoming = comm.sendrecv(chunks[(me - 1 - step) % p], (me + 1) % p, (me - 1) % p)
        chunks[(me - 2 - step) % p] = chunks[(me - 2 - step) % p] + incoming
    return chunks[me]
""",
        loses=(KEPT,),
        says="puts a into the caller's list",
    ),
    Mutant(
        "ring_reduce_scatter",
        "chunk r is sent first, and r + 1 is complete in the end",
        """
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    sums = [chunk.copy() for chunk in chunks]
    for step in range(p - 1):
        sums[(me - 1 - step) % p] += comm.sendrecv(sums[(me - step) % p], (me + 1) % p, (me - 1) % p)
    return sums[me]
""",
        loses=(CHUNK, KEPT, LARGE),
        says="Which one is complete here in the end?",
    ),
    Mutant(
        "ring_reduce_scatter",
        "sends on what irecv returns",
        changed(
            SCATTER,
            "growing = comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]",
            "growing = comm.irecv(left)\n        comm.send(growing, right)",
        ),
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="its wait() returns what came",
        status=Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "ring_reduce_scatter",
        "to the left",
        """
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    growing = chunks[(me + 1) % p]
    for step in range(2, p + 1):
        incoming = comm.sendrecv(growing, (me - 1) % p, (me + 1) % p)
        growing = incoming + chunks[(me + step) % p]
    return growing
""",
    ),
    Alternative(
        "ring_reduce_scatter",
        "isend and recv, adding into what came",
        """
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    growing = chunks[(me - 1) % p]
    for step in range(p - 1):
        work = comm.isend(growing, (me + 1) % p)
        incoming = comm.recv((me - 1) % p)
        work.wait()
        incoming += chunks[(me - 2 - step) % p]
        growing = incoming
    return growing
""",
    ),
]
