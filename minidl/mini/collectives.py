"""How do p ranks add up a long vector without a boss?

Every rank calls the function with its own x, of n bytes. Each docstring ends with the seconds that p ranks take.
"""

import numpy as np


def broadcast(comm, x):
    """Everybody gets rank 0's x, along a tree: each round doubles the ranks. Time: ceil(lg p) (alpha + n beta)."""
    have = 1
    while have < comm.size:
        if comm.rank < have and comm.rank + have < comm.size:
            comm.send(x, comm.rank + have)
        elif have <= comm.rank < 2 * have:
            x = comm.recv(comm.rank - have)
        have *= 2
    return x


def reduce_scatter(comm, x):
    """Rank i gets chunk i of the sum of all x; it grows on its way round a ring. Time: (p - 1) (alpha + n/p beta)."""
    p, me = comm.size, comm.rank
    chunks = np.array_split(x, p)
    growing = chunks[me - 1]
    for step in range(2, p + 1):
        growing = comm.sendrecv(growing, (me + 1) % p, (me - 1) % p) + chunks[(me - step) % p]
    return growing


def all_gather(comm, x):
    """Everybody gets all x, n bytes together, which go round a ring. Time: (p - 1) (alpha + n/p beta)."""
    p, me = comm.size, comm.rank
    items = [x if rank == me else None for rank in range(p)]
    for step in range(p - 1):
        items[(me - step - 1) % p] = comm.sendrecv(items[(me - step) % p], (me + 1) % p, (me - 1) % p)
    return items


def all_reduce(comm, x):
    """Everybody gets the sum of all x; a rank sends less than 2n bytes. Time: 2 (p - 1) (alpha + n/p beta)."""
    return np.concatenate(all_gather(comm, reduce_scatter(comm, x)))


def all_reduce_doubling(comm, x):
    """The same if p is a power of two: swap with the rank at distance 1, then 2, 4... Time: lg p (alpha + n beta)."""
    distance = 1
    while distance < comm.size:
        x = x + comm.sendrecv(x, comm.rank ^ distance, comm.rank ^ distance)
        distance *= 2
    return x


# The workshop: minidl/cluster/collectives (six more all-reduces, all of MPI), minidl/cluster/cost. Lectures 04b, 04c.
