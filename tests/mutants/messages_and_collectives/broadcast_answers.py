"""Answers to `broadcast_tree`."""

from __future__ import annotations

from course.judging import Status
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
        says="No message came to this rank",
    ),
    Mutant(
        "broadcast_tree",
        "works only for powers of two",
        changed(TREE, " and comm.rank + have < comm.size", ""),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="dst must be from 0 to",
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
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="called comm.broadcast",
    ),
    Mutant(
        "broadcast_tree",
        "forgets to return",
        changed(TREE, "    return x", ""),
        loses=(ARRAY,),
        says="without a `return`",
    ),
    Mutant(
        "broadcast_tree",
        "what came is not kept",
        changed(TREE, "x = comm.recv", "comm.recv"),
        loses=(ARRAY,),
        says="the array that comm.recv returns is to be returned here",
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

MUTANTS += [
    Mutant(
        "broadcast_tree",
        "a heap: rank r tells 2r + 1 and 2r + 2",
        """
def broadcast_tree(comm, x):
    if comm.rank > 0:
        x = comm.recv((comm.rank - 1) // 2)
    for child in (2 * comm.rank + 1, 2 * comm.rank + 2):
        if child < comm.size:
            comm.send(x, child)
    return x
""",
        loses=(ROUNDS,),
        says="Rank 0 sends in 2 rounds of 3 only",
    ),
    Mutant(
        "broadcast_tree",
        "one more each round",
        changed(TREE, "have *= 2", "have += 1"),
        loses=(MESSAGES, ROUNDS),
        says="these are more",
    ),
    Mutant(
        "broadcast_tree",
        "who has just received waits once more for the same rank",
        changed(
            TREE,
            "        have *= 2",
            "        if have == 1 and comm.rank == 1:\n            comm.recv(0)\n        have *= 2",
        ),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="rank 1: recv (call 2) waits for rank 0",
        status=Status.STUCK,
    ),
    Mutant(
        "broadcast_tree",
        "receives from the rank before, as in a chain",
        changed(TREE, "comm.recv(comm.rank - have)", "comm.recv(comm.rank - 1)"),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="rank 2: recv (call 1) waits for rank 1",
        status=Status.STUCK,
    ),
    Mutant(
        "broadcast_tree",
        "irecv without wait",
        changed(TREE, "comm.recv", "comm.irecv"),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="its wait() returns what came",
        status=Status.RAISED,
    ),
    Mutant(
        "broadcast_tree",
        "all receive from the rank before, rank 0 too",
        changed(TREE, "    have = 1", "    x = comm.recv(comm.rank - 1)\n    have = 1"),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="any rank (src -1)",
        status=Status.STUCK,
    ),
    Mutant(
        "broadcast_tree",
        "sends a list",
        changed(TREE, "comm.send(x,", "comm.send(list(x),"),
        loses=(ARRAY,),
        says="got a list of",
    ),
]

MUTANTS += [
    Mutant(
        "broadcast_tree",
        "float32 on the way",
        changed(TREE, "comm.send(x,", "comm.send(x.astype(np.float32),"),
        loses=(ARRAY,),
        says="rounded on the way, to float32 perhaps",
    ),
    Mutant(
        "broadcast_tree",
        "what came is cleaned of NaN and infinity",
        changed(TREE, "x = comm.recv(comm.rank - have)", "x = np.nan_to_num(comm.recv(comm.rank - have))"),
        loses=(ARRAY,),
        says="expected nan",
    ),
    Mutant(
        "broadcast_tree",
        "what came is added to zeros",
        changed(TREE, "x = comm.recv(comm.rank - have)", "x = 0.0 + comm.recv(comm.rank - have)"),
        loses=(ARRAY,),
        says="expected -0",
    ),
    Mutant(
        "broadcast_tree",
        "six decimals",
        changed(TREE, "return x", "return np.round(x, 6)"),
        loses=(ARRAY,),
        says="expected ",
    ),
    Mutant(
        "broadcast_tree",
        "rank 0 clears its array",
        changed(TREE, "    return x", "    result = x.copy()\n    x[...] = 0.0\n    return result"),
        loses=(ARRAY,),
        says="changed its argument x at [0]",
    ),
    Mutant(
        "broadcast_tree",
        "a new axis",
        changed(TREE, "return x", "return np.array([x])"),
        loses=(ARRAY,),
        says="got shape (1, ",
    ),
    Mutant(
        "broadcast_tree",
        "all from rank 0 at once",
        """
def broadcast_tree(comm, x):
    if comm.rank > 0:
        return comm.recv(0)
    begun = [comm.isend(x, rank) for rank in range(1, comm.size)]
    for work in begun:
        work.wait()
    return x
""",
        loses=(ROUNDS,),
        says="Rank 0 sends to everyone itself",
    ),
    Mutant(
        "broadcast_tree",
        "everything twice, to be safe",
        changed(
            TREE,
            "            comm.send(x, comm.rank + have)",
            "            comm.send(x, comm.rank + have)\n            comm.send(x, comm.rank + have)",
            "x = comm.recv(comm.rank - have)",
            "x = comm.recv(comm.rank - have)\n            x = comm.recv(comm.rank - have)",
        ),
        loses=(MESSAGES, ROUNDS),
        says="these are more",
    ),
    Mutant(
        "broadcast_tree",
        "an empty array is not sent",
        changed(TREE, "    have = 1", "    if comm.rank == 0 and len(x) == 0:\n        return x\n    have = 1"),
        loses=(ARRAY, MESSAGES),
        says="recv",
        status=Status.STUCK,
    ),
    Mutant(
        "broadcast_tree",
        "rank 0 returns nothing",
        changed(TREE, "return x", "return x if comm.rank else None"),
        loses=(ARRAY,),
        says="without a `return`",
    ),
    Mutant(
        "broadcast_tree",
        "three times as many each round",
        changed(TREE, "have *= 2", "have *= 3"),
        loses=(ARRAY, MESSAGES, ROUNDS),
        says="No message came to this rank",
    ),
]

ALTERNATIVES = [
    Alternative(
        "broadcast_tree",
        "isends to all children, the farthest first",
        """
def broadcast_tree(comm, x):
    p, me = comm.size, comm.rank
    span = 1 << (p - 1).bit_length()
    if me > 0:
        span = me & -me
        x = comm.recv(me - span)
    begun = []
    while span > 1:
        span //= 2
        if me + span < p:
            begun.append(comm.isend(x, me + span))
    for work in begun:
        work.wait()
    return x
""",
    ),
    Alternative(
        "broadcast_tree",
        "halves of an interval, by recursion",
        """
def broadcast_tree(comm, x):
    def within(first, end, x):
        if end - first < 2:
            return x
        middle = (first + end + 1) // 2
        if comm.rank == first:
            comm.send(x, middle)
        if comm.rank == middle:
            x = comm.recv(first)
        return within(first, middle, x) if comm.rank < middle else within(middle, end, x)
    return within(0, comm.size, x)
""",
    ),
    Alternative(
        "broadcast_tree",
        "a tree to the left, isends to be waited for at the end",
        """
def broadcast_tree(comm, x):
    p, me = comm.size, -comm.rank % comm.size
    k = me.bit_length()
    if me > 0:
        x = comm.irecv(-(me - (1 << (k - 1))) % p).wait()
    begun = []
    while me + (1 << k) < p:
        begun.append(comm.isend(x, -(me + (1 << k)) % p))
        k += 1
    for work in begun:
        work.wait()
    return x
""",
    ),
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
    Alternative(
        "broadcast_tree",
        "a tree that begins at the far end, with ranks as numpy has them",
        """
def broadcast_tree(comm, x):
    spans = 2 ** np.arange(int(np.ceil(np.log2(comm.size))))[::-1]
    for span in spans:
        if comm.rank % (2 * span) == 0 and comm.rank + span < comm.size:
            comm.send(x, int(comm.rank + span))
        if comm.rank % (2 * span) == span:
            x = comm.recv(int(comm.rank - span))
    return x.copy()
""",
    ),
    Alternative(
        "broadcast_tree",
        "thirds, in uneven halves",
        """
def broadcast_tree(comm, x):
    ranks = list(range(comm.size))
    while len(ranks) > 1:
        half = 1 << ((len(ranks) - 1).bit_length() - 1)
        near, far = ranks[:half], ranks[half:]
        if comm.rank == near[0]:
            comm.send(x, far[0])
        if comm.rank == far[0]:
            x = comm.recv(near[0])
        ranks = near if comm.rank in near else far
    return x
""",
    ),
]
