"""Answers to `ring_reduce_scatter`."""

from __future__ import annotations

from course.judging import Status
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

MUTANTS += [
    Mutant(
        "ring_reduce_scatter",
        "float32 on the way",
        changed(SCATTER, "sendrecv(growing,", "sendrecv(growing.astype(np.float32),"),
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="rounded on the way, to float32 perhaps",
    ),
    Mutant(
        "ring_reduce_scatter",
        "float32 in the end",
        changed(SCATTER, "return growing", "return growing.astype(np.float32)"),
        loses=(CHUNK, KEPT, LARGE),
        says="expected an array of float64, got one of float32",
    ),
    Mutant(
        "ring_reduce_scatter",
        "what came is cleaned of infinity",
        changed(SCATTER, "comm.sendrecv(growing, right, left)", "np.nan_to_num(comm.sendrecv(growing, right, left))"),
        loses=(CHUNK, KEPT),
        says="expected inf",
    ),
    Mutant(
        "ring_reduce_scatter",
        "joined and cut anew",
        changed(
            SCATTER,
            "    p, me = comm.size, comm.rank",
            "    p, me = comm.size, comm.rank\n    chunks = np.array_split(np.concatenate(chunks), p)",
        ),
        loses=(CHUNK, KEPT),
        says="joined and cut anew",
    ),
    Mutant(
        "ring_reduce_scatter",
        "padded, and not cut back",
        changed(
            SCATTER,
            "    growing = chunks[left]",
            """    longest = max(map(len, chunks))
    chunks = [np.pad(chunk, (0, longest - len(chunk))) for chunk in chunks]
    growing = chunks[left]""",
        ),
        loses=(CHUNK, KEPT),
        says="got shape",
    ),
    Mutant(
        "ring_reduce_scatter",
        "the list is made twice as long, for the modulo",
        changed(SCATTER, "    growing = chunks[left]", "    chunks += chunks\n    growing = chunks[left]"),
        loses=(KEPT,),
        says="the caller passed a list of",
    ),
    Mutant(
        "ring_reduce_scatter",
        "what was added is cleared",
        changed(SCATTER, "    return growing", "        chunks[(me - 2 - step) % p][...] = 0.0\n    return growing"),
        loses=(KEPT,),
        says="write into the array that a names",
    ),
    Mutant(
        "ring_reduce_scatter",
        "a list with the chunk in it",
        changed(SCATTER, "return growing", "return [growing]"),
        loses=(CHUNK, KEPT, LARGE),
        says="got a list of 1",
    ),
    Mutant(
        "ring_reduce_scatter",
        "only rank 0 returns",
        changed(SCATTER, "return growing", "return growing if me == 0 else None"),
        loses=(CHUNK, KEPT, LARGE),
        says="Rank 0 returned something",
    ),
    Mutant(
        "ring_reduce_scatter",
        "the greatest instead of the sum",
        changed(
            SCATTER,
            "comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]",
            "np.maximum(comm.sendrecv(growing, right, left), chunks[(me - 2 - step) % p])",
        ),
        loses=(CHUNK, KEPT, LARGE),
        says="expected ",
    ),
    Mutant(
        "ring_reduce_scatter",
        "all chunks in every step",
        """
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    passing = chunks
    total = chunks[me].copy()
    for step in range(p - 1):
        passing = comm.sendrecv(passing, (me + 1) % p, (me - 1) % p)
        total += passing[me]
    return total
""",
        loses=(ROUND,),
        says="send the array itself",
    ),
    Mutant(
        "ring_reduce_scatter",
        "does nothing",
        "def ring_reduce_scatter(comm, chunks):\n    pass",
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="without a `return`",
    ),
    Mutant(
        "ring_reduce_scatter",
        "sends zeros round the ring",
        changed(SCATTER, "comm.sendrecv(growing, right, left)", "comm.sendrecv(0 * growing, right, left)"),
        loses=(CHUNK, KEPT, LARGE),
        says="nothing was added to this chunk",
    ),
    Mutant(
        "ring_reduce_scatter",
        "two rings, of the even and of the odd ranks",
        changed(SCATTER, "(me + 1) % p, (me - 1) % p", "(me + 2) % p, (me - 2) % p"),
        loses=(CHUNK, ROUND, KEPT, LARGE),
        says="expected ",
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
    Alternative(
        "ring_reduce_scatter",
        "the ranks stand in the ring in another order: the even ones, then the odd ones",
        """
def ring_reduce_scatter(comm, chunks):
    p = comm.size
    order = [*range(0, p, 2), *range(1, p, 2)]
    me = order.index(comm.rank)
    growing = chunks[order[me - 1]].copy()
    for step in range(p - 1):
        incoming = comm.sendrecv(growing, order[(me + 1) % p], order[me - 1])
        growing = incoming + chunks[order[(me - 2 - step) % p]]
    return growing
""",
    ),
    Alternative(
        "ring_reduce_scatter",
        "padded to the longest chunk, and cut back",
        """
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    longest = max(len(chunk) for chunk in chunks)
    table = np.zeros((p, longest))
    for row, chunk in zip(table, chunks):
        row[: len(chunk)] = chunk
    for step in range(p - 1):
        table[(me - 2 - step) % p] += comm.sendrecv(table[(me - 1 - step) % p], (me + 1) % p, (me - 1) % p)
    return table[me, : len(chunks[me])]
""",
    ),
    Alternative(
        "ring_reduce_scatter",
        "indices from the end of the list, without modulo",
        """
def ring_reduce_scatter(comm, chunks):
    growing = chunks[comm.rank - 1]
    for step in range(2, comm.size + 1):
        work = comm.irecv((comm.rank - 1) % comm.size)
        comm.send(growing, (comm.rank + 1) % comm.size)
        growing = chunks[comm.rank - step] + work.wait()
    return growing
""",
    ),
    Alternative(
        "ring_reduce_scatter",
        "in steps of two or more that come by all ranks",
        """
def ring_reduce_scatter(comm, chunks):
    p = comm.size
    stride = next(s for s in range(p - 2 if p > 4 else 1, p + 1) if math.gcd(s, p) == 1)
    to, source = (comm.rank + stride) % p, (comm.rank - stride) % p
    growing = chunks[source]
    for step in range(2, p + 1):
        growing = comm.sendrecv(growing, to, source) + chunks[(comm.rank - step * stride) % p]
    return growing
""",
    ),
]
