"""Answers to `ring_all_gather`."""

from __future__ import annotations

from course.checking import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

LARGE = "no deadlock with chunks of more than 64 KiB"
ROUND = "p - 1 messages a rank, each a chunk, to one neighbour"
GATHER = """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    chunks = [chunk] * p
    for step in range(p - 1):
        chunk = comm.sendrecv(chunk, right, left)
        chunks[(me - 1 - step) % p] = chunk
    return chunks
"""
ALL_CHUNKS = "every rank returns all chunks in the order of the ranks"

MUTANTS = [
    Mutant(
        "ring_all_gather",
        "in the order of arrival",
        """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    chunks = [chunk]
    for step in range(p - 1):
        chunks.append(comm.sendrecv(chunks[-1], (me + 1) % p, (me - 1) % p))
    return chunks
""",
        loses=(ALL_CHUNKS, LARGE),
        says="in the place of rank",
    ),
    Mutant(
        "ring_all_gather",
        "chunk index off by one",
        changed(GATHER, "me - 1 - step", "me - step"),
        loses=(ALL_CHUNKS, LARGE),
        says="in the place of rank",
    ),
    Mutant(
        "ring_all_gather",
        "wrong direction: sends to the left, counts as to the right",
        changed(GATHER, "sendrecv(chunk, right, left)", "sendrecv(chunk, left, right)"),
        loses=(ALL_CHUNKS, LARGE),
        says="in the place of rank",
    ),
    Mutant(
        "ring_all_gather",
        "joins the chunks",
        changed(GATHER, "return chunks", "return np.concatenate(chunks)"),
        loses=(ALL_CHUNKS, LARGE),
        says="The chunks were joined",
    ),
    Mutant(
        "ring_all_gather",
        "sends its own chunk in every step",
        changed(GATHER, "chunk = comm.sendrecv", "other = comm.sendrecv", "% p] = chunk", "% p] = other"),
        loses=(ALL_CHUNKS, LARGE),
        says="did the same chunk come in more than one step?",
    ),
    Mutant(
        "ring_all_gather",
        "one round missing",
        changed(GATHER, "range(p - 1)", "range(p - 2)"),
        loses=(ALL_CHUNKS, ROUND, LARGE),
        says="in the place of rank",
    ),
    Mutant(
        "ring_all_gather",
        "everybody sends before receiving",
        changed(
            GATHER,
            "chunk = comm.sendrecv(chunk, right, left)",
            "comm.send(chunk, right)\n        chunk = comm.recv(left)",
        ),
        loses=(LARGE,),
        says="deadlock: ranks 0",
        status=Status.STUCK,
    ),
    Mutant(
        "ring_all_gather",
        "everyone sends to everyone",
        """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    chunks = [chunk] * p
    for step in range(1, p):
        chunks[(me - step) % p] = comm.sendrecv(chunk, (me + step) % p, (me - step) % p)
    return chunks
""",
        loses=(ROUND,),
        says="Here a rank sends to every other one",
    ),
    Mutant(
        "ring_all_gather",
        "uses comm.all_gather",
        "def ring_all_gather(comm, chunk):\n    return comm.all_gather(chunk)",
        loses=(ALL_CHUNKS, ROUND, LARGE),
        says="called comm.all_gather",
    ),
    Mutant(
        "ring_all_gather",
        "sends all that it has in every step",
        """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    known = [chunk]
    for step in range(p - 1):
        known = [chunk, *comm.sendrecv(known, (me + 1) % p, (me - 1) % p)]
    return [known[(me - i) % p] for i in range(p)]
""",
        loses=(ROUND,),
        says="send the array itself",
    ),
    Mutant(
        "ring_all_gather",
        "forgets to return",
        changed(GATHER, "    return chunks", ""),
        loses=(ALL_CHUNKS, LARGE),
        says="without a `return`",
    ),
]

MUTANTS += [
    Mutant(
        "ring_all_gather",
        "its own chunk is not put into the list",
        changed(GATHER, "[chunk] * p", "[None] * p"),
        loses=(ALL_CHUNKS, LARGE),
        says="Nothing was put there",
    ),
    Mutant(
        "ring_all_gather",
        "a dictionary",
        changed(GATHER, "[chunk] * p", "{me: chunk}"),
        loses=(ALL_CHUNKS, LARGE),
        says="A list is asked",
    ),
    Mutant(
        "ring_all_gather",
        "p steps",
        changed(GATHER, "range(p - 1)", "range(p)"),
        loses=(ROUND,),
        says="To go round once takes p - 1 steps, not p",
    ),
    Mutant(
        "ring_all_gather",
        "the rank travels with its chunk",
        """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    chunks = [chunk] * p
    message = (me, chunk)
    for step in range(p - 1):
        message = comm.sendrecv(message, (me + 1) % p, (me - 1) % p)
        chunks[message[0]] = message[1]
    return chunks
""",
        loses=(ROUND,),
        says="send the array itself",
    ),
    Mutant(
        "ring_all_gather",
        "both ways round",
        """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    chunks, one, other = [chunk] * p, chunk, chunk
    for step in range(1, p // 2 + 1):
        chunks[(me - step) % p] = one = comm.sendrecv(one, right, left)
        if 2 * step < p:
            chunks[(me + step) % p] = other = comm.sendrecv(other, left, right)
    return chunks
""",
        loses=(ROUND,),
        says="That is to its left and to its right",
    ),
    Mutant(
        "ring_all_gather",
        "everybody receives before sending",
        changed(GATHER, "comm.sendrecv(chunk, right, left)", "(comm.recv(left), comm.send(chunk, right))[0]"),
        loses=(ALL_CHUNKS, ROUND, LARGE),
        says="rank 0: recv (call 1) waits for rank",
        status=Status.STUCK,
    ),
]

ALTERNATIVES = [
    Alternative(
        "ring_all_gather",
        "to the left, in a dictionary",
        """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    found = {me: chunk}
    for step in range(1, p):
        found[(me + step) % p] = chunk = comm.sendrecv(chunk, (me - 1) % p, (me + 1) % p)
    return [found[rank] for rank in range(p)]
""",
    ),
    Alternative(
        "ring_all_gather",
        "irecv, then send; the list is turned at the end",
        """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    arrived = [chunk]
    for step in range(p - 1):
        coming = comm.irecv((me - 1) % p)
        comm.send(arrived[-1], (me + 1) % p)
        arrived.append(coming.wait())
    return tuple(arrived[(me - rank) % p] for rank in range(p))
""",
    ),
]
