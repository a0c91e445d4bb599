"""Answers to `ring_all_reduce`."""

from __future__ import annotations

from course.checking import Status
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
]
