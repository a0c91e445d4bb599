"""Answers to `ring_all_gather`."""

from __future__ import annotations

from course.judging import Status
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

MUTANTS += [
    Mutant(
        "ring_all_gather",
        "float32 on the way",
        changed(GATHER, "sendrecv(chunk, right, left)", "sendrecv(chunk.astype(np.float32), right, left)"),
        loses=(ALL_CHUNKS, ROUND, LARGE),
        says="rounded on the way, to float32 perhaps",
    ),
    Mutant(
        "ring_all_gather",
        "one buffer for all that comes",
        changed(
            GATHER,
            "        chunk = comm",
            "        buffer[...] = comm",
            "sendrecv(chunk",
            "sendrecv(buffer",
            "% p] = chunk",
            "% p] = buffer",
            "    chunks = ",
            "    buffer = chunk.copy()\n    chunks = ",
        ),
        loses=(ALL_CHUNKS, ROUND, LARGE),
        says="of this list hold the same numbers",
    ),
    Mutant(
        "ring_all_gather",
        "what came is written into the caller's chunk",
        changed(
            GATHER,
            "        chunk = comm",
            "        chunk[...] = comm",
            "% p] = chunk",
            "% p] = chunk.copy()",
            "[chunk] * p",
            "[chunk.copy()] * p",
        ),
        loses=(ALL_CHUNKS, ROUND, LARGE),
        says="could not broadcast input array",
        status=Status.RAISED,
    ),
    Mutant(
        "ring_all_gather",
        "the caller's chunk is cleared in the end",
        changed(
            GATHER,
            "[chunk] * p",
            "[chunk.copy()] * p\n    own = chunk",
            "    return chunks",
            "    own[...] = 0.0\n    return chunks",
        ),
        loses=(ALL_CHUNKS,),
        says="changed its argument chunk at [0]: it was",
    ),
    Mutant(
        "ring_all_gather",
        "all chunks as long as one's own",
        changed(GATHER, "[chunk] * p", "list(np.tile(chunk, (p, 1)))", "% p] = chunk", "% p][...] = chunk"),
        loses=(ALL_CHUNKS, ROUND),
        says="could not broadcast",
        status=Status.RAISED,
    ),
    Mutant(
        "ring_all_gather",
        "a generator",
        changed(GATHER, "return chunks", "return (each for each in chunks)"),
        loses=(ALL_CHUNKS, LARGE),
        says="got a generator",
    ),
    Mutant(
        "ring_all_gather",
        "the other way round in the list",
        changed(GATHER, "return chunks", "return chunks[::-1]"),
        loses=(ALL_CHUNKS, LARGE),
        says="in the place of rank",
    ),
    Mutant(
        "ring_all_gather",
        "what came is cleaned of NaN and infinity",
        changed(GATHER, "comm.sendrecv(chunk, right, left)", "np.nan_to_num(comm.sendrecv(chunk, right, left))"),
        loses=(ALL_CHUNKS,),
        says="expected nan",
    ),
    Mutant(
        "ring_all_gather",
        "a root gathers and sends the list",
        """
def ring_all_gather(comm, chunk):
    if comm.rank > 0:
        comm.send(chunk, 0)
        return comm.recv(0)
    chunks = [chunk, *(comm.recv(rank) for rank in range(1, comm.size))]
    for rank in range(1, comm.size):
        comm.send(chunks, rank)
    return chunks
""",
        loses=(ROUND,),
        says="Everything goes through rank 0",
    ),
    Mutant(
        "ring_all_gather",
        "each chunk as a list of numbers",
        changed(GATHER, "return chunks", "return [list(each) for each in chunks]"),
        loses=(ALL_CHUNKS, LARGE),
        says="got a list of",
    ),
    Mutant(
        "ring_all_gather",
        "a table of two axes",
        changed(GATHER, "return chunks", "return np.array([each for each in chunks])"),
        loses=(ALL_CHUNKS, ROUND, LARGE),
        says="A list of arrays is asked: their lengths may differ",
    ),
    Mutant(
        "ring_all_gather",
        "a copy of the last chunk too many",
        changed(GATHER, "return chunks", "return [*chunks, chunk]"),
        loses=(ALL_CHUNKS, LARGE),
        says="got a list of",
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
    Alternative(
        "ring_all_gather",
        "round the even ranks, then the odd ones",
        """
def ring_all_gather(comm, chunk):
    p = comm.size
    order = [*range(0, p, 2), *range(1, p, 2)]
    me = order.index(comm.rank)
    found = [None] * p
    found[comm.rank] = chunk
    for step in range(1, p):
        chunk = comm.sendrecv(chunk, order[(me + 1) % p], order[me - 1])
        found[order[me - step]] = chunk
    return found
""",
    ),
    Alternative(
        "ring_all_gather",
        "views of one long array, which grows",
        """
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    everything, ends, coming = chunk.copy(), [0, len(chunk)], chunk
    for step in range(p - 1):
        coming = comm.sendrecv(coming, (me - 1) % p, (me + 1) % p)
        everything = np.append(everything, coming)
        ends.append(len(everything))
    return [everything[ends[(i - me) % p] : ends[(i - me) % p + 1]] for i in range(p)]
""",
    ),
]
