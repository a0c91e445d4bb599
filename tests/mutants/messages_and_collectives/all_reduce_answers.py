"""Answers to `ring_all_reduce`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

LARGE = "no deadlock with chunks of more than 64 KiB"

RING = """
def ring_all_reduce(comm, x):
    places = np.array_split(x, comm.size)
    mine = ring_reduce_scatter(comm, places)
    for place, chunk in zip(places, ring_all_gather(comm, mine)):
        place[...] = chunk
    return x
"""
SUM, IN_PLACE, ROUND = (
    "every rank returns the sum",
    "x itself has become the sum",
    "2(p - 1) messages a rank, each a chunk, to one neighbour",
)

MUTANTS = [
    Mutant(
        "ring_all_reduce",
        "returns a new array",
        """
def ring_all_reduce(comm, x):
    mine = ring_reduce_scatter(comm, np.array_split(x, comm.size))
    return np.concatenate(ring_all_gather(comm, mine))
""",
        loses=(IN_PLACE,),
        says="x is as it was",
    ),
    Mutant(
        "ring_all_reduce",
        "forgets to return x",
        changed(RING, "    return x", ""),
        loses=(SUM, LARGE),
        says="without a `return`",
    ),
    Mutant(
        "ring_all_reduce",
        "a root gathers, adds and sends back",
        """
def ring_all_reduce(comm, x):
    if comm.rank > 0:
        comm.send(x, 0)
        x[...] = comm.recv(0)
        return x
    for rank in range(1, comm.size):
        x += comm.recv(rank)
    for rank in range(1, comm.size):
        comm.send(x, rank)
    return x
""",
        loses=(ROUND,),
        says="Everything goes through rank 0",
    ),
    Mutant(
        "ring_all_reduce",
        "whole vectors twice round, as in a published course",
        """
def ring_all_reduce(comm, x):
    p, right, left = comm.size, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    passing = x.copy()
    for step in range(p - 1):
        passing = comm.sendrecv(passing, right, left)
        x += passing
    for step in range(p - 1):
        x[...] = comm.sendrecv(x, right, left)
    return x
""",
        loses=(ROUND,),
        says="The whole vector goes out in each step",
    ),
    Mutant(
        "ring_all_reduce",
        "uses comm.all_reduce",
        "def ring_all_reduce(comm, x):\n    return comm.all_reduce(x)",
        loses=(SUM, IN_PLACE, ROUND, LARGE),
        says="called comm.all_reduce",
    ),
    Mutant(
        "ring_all_reduce",
        "uses comm.all_reduce's own ring",
        "def ring_all_reduce(comm, x):\n    return comm.all_reduce(x, algorithm='ring')",
        loses=(SUM, IN_PLACE, ROUND, LARGE),
        says="called comm.all_reduce",
    ),
    Mutant(
        "ring_all_reduce",
        "works only for p | n",
        changed(RING, "np.array_split", "np.split"),
        loses=(SUM, IN_PLACE, ROUND),
        says="equal division",
        status=Status.RAISED,
    ),
    Mutant(
        "ring_all_reduce",
        "leaves out the last n % p elements",
        changed(
            RING,
            "np.array_split(x, comm.size)",
            "[x[i * (len(x) // comm.size) : (i + 1) * (len(x) // comm.size)] for i in range(comm.size)]",
        ),
        loses=(SUM, IN_PLACE, ROUND),
        says="The last n % p elements were left out",
    ),
    Mutant(
        "ring_all_reduce",
        "everybody sends before receiving",
        """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    places = np.array_split(x, p)
    for step in range(2 * (p - 1)):
        comm.send(places[(me - step) % p], (me + 1) % p)
        incoming = comm.recv((me - 1) % p)
        place = places[(me - step - 1) % p]
        place[...] = place + incoming if step < p - 1 else incoming
    return x
""",
        loses=(LARGE,),
        says="deadlock: ranks 0",
        status=Status.STUCK,
    ),
    Mutant(
        "ring_all_reduce",
        "no all-gather",
        """
def ring_all_reduce(comm, x):
    places = np.array_split(x, comm.size)
    places[comm.rank][...] = ring_reduce_scatter(comm, places)
    return x
""",
        loses=(SUM, IN_PLACE, ROUND, LARGE),
        says="the all-gather is missing",
    ),
    Mutant(
        "ring_all_reduce",
        "mean instead of sum",
        changed(RING, "place[...] = chunk", "place[...] = chunk / comm.size"),
        loses=(SUM, IN_PLACE, LARGE),
        says="This is the mean",
    ),
    Mutant(
        "ring_all_reduce",
        "recursive doubling instead",
        "def ring_all_reduce(comm, x):\n    x[...] = recursive_doubling(comm, x)\n    return x",
        loses=(ROUND,),
        says="one neighbour is asked",
    ),
]

STEPS = """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    places = np.array_split(x, p)
    for step in range(p - 1):
        places[(me - step - 1) % p][...] += comm.sendrecv(places[(me - step) % p], right, left)
    for step in range(p - 1):
        places[(me - step) % p][...] = comm.sendrecv(places[(me - step + 1) % p], right, left)
    return x
"""
CUT = "np.array_split(x, comm.size)"

MUTANTS += [
    Mutant(
        "ring_all_reduce",
        "the last chunk has the rest",
        changed(
            RING, CUT, "[x[i * (len(x) // p) : (i + 1) * (len(x) // p) if i < p - 1 else len(x)] for i in range(p)]"
        ).replace("comm, x):", "comm, x):\n    p = comm.size"),
        loses=(ROUND,),
        says="not as even as they can be",
    ),
    Mutant(
        "ring_all_reduce",
        "n // p + 1 elements a chunk, whatever n is",
        changed(RING, CUT, "[x[i * (len(x) // p + 1) : (i + 1) * (len(x) // p + 1)] for i in range(p)]").replace(
            "comm, x):", "comm, x):\n    p = comm.size"
        ),
        loses=(ROUND,),
        says="not as even as they can be",
    ),
    Mutant(
        "ring_all_reduce",
        "the all-gather adds, too",
        changed(STEPS, "% p][...] = comm", "% p][...] += comm"),
        loses=(SUM, IN_PLACE, LARGE),
        says="Look at chunk 0 of np.array_split(x,",
    ),
    Mutant(
        "ring_all_reduce",
        "the all-gather begins with the wrong chunk",
        changed(STEPS, "places[(me - step) % p][...] =", "places[(me - step - 1) % p][...] =", "step + 1", "step"),
        loses=(SUM, IN_PLACE, LARGE),
        says="Look at chunk 0 of np.array_split(x,",
    ),
    Mutant(
        "ring_all_reduce",
        "puts what came into the list, not into x",
        changed(STEPS, "% p][...] = comm", "% p] = comm"),
        loses=(SUM, IN_PLACE, LARGE),
        says="Look at chunk 0 of np.array_split(x,",
    ),
    Mutant(
        "ring_all_reduce",
        "to the right and back to the left",
        """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    places = np.array_split(x, p)
    for step in range(p - 1):
        places[(me - step - 2) % p][...] += comm.sendrecv(places[(me - step - 1) % p], right, left)
    for step in range(p - 1):
        places[(me + step + 1) % p][...] = comm.sendrecv(places[(me + step) % p], left, right)
    return x
""",
        loses=(ROUND,),
        says="That is to its left and to its right",
    ),
    Mutant(
        "ring_all_reduce",
        "whole vectors, p - 1 times round",
        """
def ring_all_reduce(comm, x):
    passing = x.copy()
    for step in range(comm.size - 1):
        passing = comm.sendrecv(passing, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size)
        x += passing
    return x
""",
        loses=(ROUND,),
        says="The whole vector goes out",
    ),
]

MUTANTS += [
    Mutant(
        "ring_all_reduce",
        "float32 on the way",
        changed(
            STEPS,
            "comm.sendrecv(places[(me - step) % p], right",
            "comm.sendrecv(places[(me - step) % p].astype(np.float32), right",
        ),
        loses=(SUM, IN_PLACE, ROUND, LARGE),
        says="rounded on the way, to float32 perhaps",
    ),
    Mutant(
        "ring_all_reduce",
        "float32 in the all-gather only",
        changed(
            STEPS,
            "comm.sendrecv(places[(me - step + 1) % p], right",
            "comm.sendrecv(places[(me - step + 1) % p].astype(np.float32), right",
        ),
        loses=(SUM, IN_PLACE, ROUND, LARGE),
        says="rounded on the way, to float32 perhaps",
    ),
    Mutant(
        "ring_all_reduce",
        "padded by one element a chunk, always",
        """
def ring_all_reduce(comm, x):
    p, n = comm.size, len(x)
    places = np.split(np.append(x, np.zeros((n // p + 1) * p - n)), p)
    mine = ring_reduce_scatter(comm, places)
    x[...] = np.concatenate(ring_all_gather(comm, mine))[:n]
    return x
""",
        loses=(ROUND,),
        says="The message holds more numbers than the chunk has",
    ),
    Mutant(
        "ring_all_reduce",
        "whole vectors: added up along the ring, and handed out along the ring",
        """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    if p == 1:
        return x
    if me > 0:
        x += comm.recv(left)
    comm.send(x, right)
    if me == 0:
        x[...] = comm.recv(left)
        if p > 2:
            comm.send(x, right)
    elif me < p - 1:
        x[...] = comm.recv(left)
        if me < p - 2:
            comm.send(x, right)
    return x
""",
        loses=(ROUND,),
        says="The whole vector goes out",
    ),
    Mutant(
        "ring_all_reduce",
        "n // p elements a chunk, and nothing for n less than p",
        """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    if len(x) < p:
        return x
    places = np.array_split(x, p)
    mine = ring_reduce_scatter(comm, places)
    for place, chunk in zip(places, ring_all_gather(comm, mine)):
        place[...] = chunk
    return x
""",
        loses=(SUM, IN_PLACE),
        says="nothing was added",
    ),
    Mutant(
        "ring_all_reduce",
        "half of the vector one way round, half the other way",
        """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    for half, way in zip(np.array_split(x, 2), (1, -1)):
        places = np.array_split(half, p)
        for step in range(2 * (p - 1)):
            incoming = comm.sendrecv(places[(me - way * step) % p], (me + way) % p, (me - way) % p)
            place = places[(me - way * (step + 1)) % p]
            place[...] = place + incoming if step < p - 1 else incoming
    return x
""",
        loses=(ROUND,),
        says="That is to its left and to its right",
    ),
    Mutant(
        "ring_all_reduce",
        "every chunk in two messages",
        """
def ring_all_reduce(comm, x):
    for half in np.array_split(x, 2):
        mine = ring_reduce_scatter(comm, np.array_split(half, comm.size))
        half[...] = np.concatenate(ring_all_gather(comm, mine))
    return x
""",
        loses=(ROUND,),
        says="messages, ",
    ),
    Mutant(
        "ring_all_reduce",
        "does nothing",
        "def ring_all_reduce(comm, x):\n    return x",
        loses=(SUM, IN_PLACE, ROUND, LARGE),
        says="nothing was added",
    ),
    Mutant(
        "ring_all_reduce",
        "padded, and the padded vector returned",
        """
def ring_all_reduce(comm, x):
    p, n = comm.size, len(x)
    padded = np.append(x, np.zeros(-n % p))
    mine = ring_reduce_scatter(comm, np.split(padded, p))
    padded = np.concatenate(ring_all_gather(comm, mine))
    x[...] = padded[:n]
    return padded
""",
        loses=(SUM,),
        says="got shape",
    ),
    Mutant(
        "ring_all_reduce",
        "what came is cleaned of infinity",
        changed(
            STEPS,
            "] += comm.sendrecv(places[(me - step) % p], right, left)",
            "] += np.nan_to_num(comm.sendrecv(places[(me - step) % p], right, left))",
        ),
        loses=(SUM, IN_PLACE),
        says="expected inf",
    ),
]

ALTERNATIVES = [
    Alternative(
        "ring_all_reduce",
        "in one loop; chunk r + 1 is complete on rank r first",
        """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    places = np.array_split(x, p)
    for step in range(2 * (p - 1)):
        incoming = comm.sendrecv(places[(me - step) % p], (me + 1) % p, (me - 1) % p)
        place = places[(me - step - 1) % p]
        place[...] = place + incoming if step < p - 1 else incoming
    return x
""",
    ),
    Alternative(
        "ring_all_reduce",
        "to the left, with isend and slices",
        """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    edges = [i * (len(x) // p) + min(i, len(x) % p) for i in range(p + 1)]
    def part(i):
        return slice(edges[i % p], edges[i % p + 1])
    for step in range(2 * p - 2):
        work = comm.isend(x[part(me + step)], (me - 1) % p)
        incoming = comm.recv((me + 1) % p)
        work.wait()
        if step < p - 1:
            x[part(me + step + 1)] += incoming
        else:
            x[part(me + step + 1)] = incoming
    return x
""",
    ),
    Alternative(
        "ring_all_reduce",
        "chunks of ceil(n/p) elements, the last ones shorter or empty",
        changed(
            RING,
            CUT,
            "[x[i * size : (i + 1) * size] for i in range(comm.size)]",
            "    places",
            "    size = math.ceil(len(x) / comm.size)\n    places",
        ),
    ),
    Alternative(
        "ring_all_reduce",
        "padded with zeros to p equal chunks",
        """
def ring_all_reduce(comm, x):
    p, me, n = comm.size, comm.rank, len(x)
    table = np.pad(x, (0, -n % p)).reshape(p, -1)
    for step in range(2 * (p - 1)):
        incoming = comm.sendrecv(table[(me - step) % p], (me + 1) % p, (me - 1) % p)
        if step < p - 1:
            table[(me - step - 1) % p] += incoming
        else:
            table[(me - step - 1) % p] = incoming
    x[...] = table.ravel()[:n]
    return x
""",
    ),
    Alternative(
        "ring_all_reduce",
        "rank 0 sends to 2, that to 1, that to 3, that to 0, and so on",
        """
def ring_all_reduce(comm, x):
    p = comm.size
    order = list(range(p))
    order[1:3] = order[2:0:-1] if p > 2 else order[1:3]
    me = order.index(comm.rank)
    places = np.array_split(x, p)
    for step in range(2 * (p - 1)):
        incoming = comm.sendrecv(places[(me - step) % p], order[(me + 1) % p], order[me - 1])
        place = places[(me - step - 1) % p]
        place[...] = place + incoming if step < p - 1 else incoming
    return x.copy()
""",
    ),
    Alternative(
        "ring_all_reduce",
        "chunk i is every p-th element from i on",
        """
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    for step in range(2 * p - 2):
        came = comm.sendrecv(x[(me - step) % p :: p], (me + 1) % p, (me - 1) % p)
        here = slice((me - step - 1) % p, None, p)
        x[here] = came + x[here] if step + 1 < p else came
    return x
""",
    ),
]
