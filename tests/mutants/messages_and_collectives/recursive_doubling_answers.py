"""Answers to `recursive_doubling`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

DOUBLING = """
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    distance = 1
    while comm.rank < first and distance < first:
        partner = comm.rank ^ distance
        total = total + comm.sendrecv(total, partner, partner)
        distance *= 2
    return fold_out(comm, first, total)
"""
SUM, ROUNDS, KEPT, LARGE = (
    "every rank returns the sum, for any p",
    "log2 p messages of n elements a rank, in as many rounds, and the fold's",
    "x stays as it is",
    "no deadlock with more than 64 KiB",
)
NO_FOLD = """
def recursive_doubling(comm, x):
    total = x
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        total = total + comm.sendrecv(total, partner, partner)
        distance *= 2
    return total
"""

MUTANTS = [
    Mutant(
        "recursive_doubling",
        "works only for powers of two",
        NO_FOLD,
        loses=(SUM, ROUNDS, KEPT),
        says="must be from 0 to",
        status=Status.RAISED,
    ),
    Mutant(
        "recursive_doubling",
        "partners that are not there are left out, instead of the fold",
        changed(NO_FOLD, "total = total +", "if partner < comm.size:\n            total = total +"),
        loses=(SUM, ROUNDS, KEPT),
        says="Missing in this sum",
    ),
    Mutant(
        "recursive_doubling",
        "forgets to hand the result back",
        changed(DOUBLING, "fold_out(comm, first, total)", "total"),
        loses=(SUM, ROUNDS, KEPT),
        says="got None",
    ),
    Mutant(
        "recursive_doubling",
        "one round missing",
        changed(DOUBLING, "distance < first", "2 * distance < first"),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="Missing in this sum",
    ),
    Mutant(
        "recursive_doubling",
        "everybody sends before receiving",
        changed(
            DOUBLING,
            "total = total + comm.sendrecv(total, partner, partner)",
            "comm.send(total, partner)\n        total = total + comm.recv(partner)",
        ),
        loses=(LARGE,),
        says="deadlock: ranks 0",
        status=Status.STUCK,
    ),
    Mutant(
        "recursive_doubling",
        "works in the caller's array",
        changed(
            DOUBLING,
            "    distance = 1",
            "    if comm.rank < first:\n        x[...] = total\n        total = x\n    distance = 1",
            "total = total + comm",
            "total += comm",
        ),
        loses=(KEPT,),
        says="write into the array that a names",
    ),
    Mutant(
        "recursive_doubling",
        "uses comm.all_reduce",
        "def recursive_doubling(comm, x):\n    return comm.all_reduce(x.copy())",
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="called comm.all_reduce",
    ),
    Mutant(
        "recursive_doubling",
        "a ring instead",
        "def recursive_doubling(comm, x):\n    return ring_all_reduce(comm, x.copy())",
        loses=(ROUNDS,),
        says="messages",
    ),
    Mutant(
        "recursive_doubling",
        "distances 1, 2, 3 instead of 1, 2, 4",
        changed(DOUBLING, "distance *= 2", "distance += 1"),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="Added more than once",
    ),
    Mutant(
        "recursive_doubling",
        "the partner is the rank further on: nobody is anybody's partner",
        changed(DOUBLING, "comm.rank ^ distance", "(comm.rank + distance) % first"),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="deadlock: ranks 0",
        status=Status.STUCK,
    ),
    Mutant(
        "recursive_doubling",
        "everyone sends to everyone",
        """
def recursive_doubling(comm, x):
    p, me = comm.size, comm.rank
    total = x.copy()
    for step in range(1, p):
        total += comm.sendrecv(x, (me + step) % p, (me - step) % p)
    return total
""",
        loses=(ROUNDS,),
        says="messages",
    ),
    Mutant(
        "recursive_doubling",
        "partners send in turn",
        changed(
            DOUBLING,
            "        total = total + comm.sendrecv(total, partner, partner)",
            """
        if comm.rank < partner:
            comm.send(total, partner)
            theirs = comm.recv(partner)
        else:
            theirs = comm.recv(partner)
            comm.send(total, partner)
        total = total + theirs""",
        ),
        loses=(ROUNDS,),
        says="Both partners can send at once",
    ),
    Mutant(
        "recursive_doubling",
        "sends its own vector in every round",
        changed(DOUBLING, "distance = 1", "own, distance = total, 1", "sendrecv(total", "sendrecv(own"),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="Missing in this sum",
    ),
]

MUTANTS += [
    Mutant(
        "recursive_doubling",
        "distances 1, 2, 3: bits are no numbers",
        changed(
            DOUBLING,
            "distance < first",
            "distance < first.bit_length()",
            "distance *= 2",
            "distance += 1",
        ),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="Missing in this sum: what ranks 4, 5, 6 and 7 had",
    ),
    Mutant(
        "recursive_doubling",
        "what fold_in gives is not used",
        changed(DOUBLING, "    distance = 1", "    total = x\n    distance = 1"),
        loses=(SUM, ROUNDS, KEPT),
        says="Missing in this sum: what rank",
    ),
    Mutant(
        "recursive_doubling",
        "all ranks take part",
        changed(DOUBLING, "comm.rank < first and ", ""),
        loses=(SUM, ROUNDS, KEPT),
        says="recursive_doubling raised",
        status=Status.RAISED,
    ),
    Mutant(
        "recursive_doubling",
        "hands back before the rounds",
        changed(DOUBLING, "    distance = 1", "    total = fold_out(comm, first, total)\n    distance = 1").replace(
            "return fold_out(comm, first, total)", "return total"
        ),
        loses=(SUM, ROUNDS, KEPT),
        says="Missing in this sum: what rank",
    ),
    Mutant(
        "recursive_doubling",
        "hands back, but does not return it",
        changed(DOUBLING, "return fold_out(comm, first, total)", "fold_out(comm, first, total)\n    return total"),
        loses=(SUM, ROUNDS, KEPT),
        says="Rank 0 returned something",
    ),
    Mutant(
        "recursive_doubling",
        "only those who hand over take part in handing back",
        changed(
            DOUBLING,
            "return fold_out(comm, first, total)",
            "return total if total is not None else fold_out(comm, first, total)",
        ),
        loses=(SUM, ROUNDS, KEPT),
        says="recv (call 2) waits for rank 0",
        status=Status.STUCK,
    ),
    Mutant(
        "recursive_doubling",
        "the lower partner only receives",
        changed(
            DOUBLING,
            "total = total + comm.sendrecv(total, partner, partner)",
            "total = total + comm.recv(partner) if comm.rank < partner else comm.send(total, partner) or total",
        ),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="on rank 1 of ",
    ),
    Mutant(
        "recursive_doubling",
        "gathers all vectors, and adds in the end",
        """
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    known, distance = [total], 1
    while comm.rank < first and distance < first:
        known = known + comm.sendrecv(known, comm.rank ^ distance, comm.rank ^ distance)
        distance *= 2
    return fold_out(comm, first, None if total is None else sum(known))
""",
        loses=(ROUNDS,),
        says="send the array itself",
    ),
]

MUTANTS += [
    Mutant(
        "recursive_doubling",
        "float32 on the way",
        changed(DOUBLING, "sendrecv(total,", "sendrecv(total.astype(np.float32),"),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="rounded on the way, to float32 perhaps",
    ),
    Mutant(
        "recursive_doubling",
        "float32 in the end",
        changed(
            DOUBLING, "return fold_out(comm, first, total)", "return fold_out(comm, first, total).astype(np.float32)"
        ),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="expected an array of float64, got one of float32",
    ),
    Mutant(
        "recursive_doubling",
        "reduced along a tree, and only rank 0 has the sum",
        """
def recursive_doubling(comm, x):
    total, distance = x.copy(), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.send(total, comm.rank - distance)
            break
        if comm.rank + distance < comm.size:
            total += comm.recv(comm.rank + distance)
        distance *= 2
    return total
""",
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="nothing was added",
    ),
    Mutant(
        "recursive_doubling",
        "reduced along a tree, and broadcast along it",
        """
def recursive_doubling(comm, x):
    total, distance = x.copy(), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.send(total, comm.rank - distance)
            break
        if comm.rank + distance < comm.size:
            total += comm.recv(comm.rank + distance)
        distance *= 2
    return broadcast_tree(comm, total if comm.rank == 0 else None)
""",
        loses=(ROUNDS,),
        says="recursive_doubling",
    ),
    Mutant(
        "recursive_doubling",
        "log2 p is rounded up",
        changed(
            DOUBLING, "while comm.rank < first and distance < first", "while comm.rank < first and distance < comm.size"
        ),
        loses=(SUM, ROUNDS, KEPT),
        says="recursive_doubling",
        status=Status.RAISED,
    ),
    Mutant(
        "recursive_doubling",
        "what came is added twice",
        changed(
            DOUBLING,
            "total = total + comm.sendrecv(total, partner, partner)",
            "came = comm.sendrecv(total, partner, partner)\n        total = total + came + came",
        ),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="Added more than once",
    ),
    Mutant(
        "recursive_doubling",
        "does nothing",
        "def recursive_doubling(comm, x):\n    return x",
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="nothing was added",
    ),
    Mutant(
        "recursive_doubling",
        "the mean",
        changed(DOUBLING, "return fold_out(comm, first, total)", "return fold_out(comm, first, total) / comm.size"),
        loses=(SUM, ROUNDS, KEPT, LARGE),
        says="This is the mean",
    ),
    Mutant(
        "recursive_doubling",
        "the result is written into x, too",
        changed(DOUBLING, "return fold_out(comm, first, total)", "x[...] = fold_out(comm, first, total)\n    return x"),
        loses=(KEPT,),
        says="write into the array that a names",
    ),
    Mutant(
        "recursive_doubling",
        "what came is cleaned of infinity",
        changed(
            DOUBLING, "comm.sendrecv(total, partner, partner)", "np.nan_to_num(comm.sendrecv(total, partner, partner))"
        ),
        loses=(SUM, ROUNDS, KEPT),
        says="expected inf",
    ),
]

ALTERNATIVES = [
    Alternative(
        "recursive_doubling",
        "the odd ones of the first ranks fold into the even ones",
        """
def recursive_doubling(comm, x):
    p, me = comm.size, comm.rank
    first = 1 << (p.bit_length() - 1)
    pairs = p - first
    total = x.copy()
    if me < 2 * pairs and me % 2:
        comm.send(total, me - 1)
        return comm.recv(me - 1)
    if me < 2 * pairs:
        total += comm.recv(me + 1)
    number = me // 2 if me < 2 * pairs else me - pairs
    distance = 1
    while distance < first:
        other = number ^ distance
        partner = 2 * other if other < pairs else other + pairs
        total = total + comm.sendrecv(total, partner, partner)
        distance *= 2
    if me < 2 * pairs:
        comm.send(total, me + 1)
    return total
""",
    ),
    Alternative(
        "recursive_doubling",
        "partners stand as in a mirror",
        """
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    group = 2
    while total is not None and group <= first:
        partner = comm.rank // group * group + group - 1 - comm.rank % group
        total = total + comm.sendrecv(total, partner, partner)
        group *= 2
    return fold_out(comm, first, total)
""",
    ),
    Alternative(
        "recursive_doubling",
        "the farthest partner first, isend and recv",
        """
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    if comm.rank < first:
        distance = first // 2
        while distance:
            partner = comm.rank ^ distance
            work = comm.isend(total, partner)
            theirs = comm.recv(partner)
            work.wait()
            total += theirs
            distance //= 2
    return fold_out(comm, first, total)
""",
    ),
    Alternative(
        "recursive_doubling",
        "partners by blocks, and a fold of its own",
        """
def recursive_doubling(comm, x):
    p, me = comm.size, comm.rank
    rounds = int(np.log2(p))
    first = 2**rounds
    if me >= first:
        comm.send(x, me - first)
        return comm.recv(me - first)
    total = np.array(x)
    if me + first < p:
        total = comm.recv(me + first) + total
    for k in range(rounds):
        partner = me + 2**k if me // 2**k % 2 == 0 else me - 2**k
        total = comm.sendrecv(total, partner, partner) + total
    if me + first < p:
        comm.send(total, me + first)
    return total
""",
    ),
    Alternative(
        "recursive_doubling",
        "everybody to the rank further on: windows that double",
        """
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    distance = 1
    while comm.rank < first and distance < first:
        further, back = (comm.rank + distance) % first, (comm.rank - distance) % first
        total = total + comm.sendrecv(total, further, back)
        distance += distance
    return fold_out(comm, first, total)
""",
    ),
    Alternative(
        "recursive_doubling",
        "adds into the copy that fold_in made",
        """
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    if total is not None:
        for k in range(first.bit_length() - 1):
            total += comm.sendrecv(total, comm.rank ^ (1 << k), comm.rank ^ (1 << k))
    return fold_out(comm, first, total)
""",
    ),
]
