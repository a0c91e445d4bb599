"""How do p ranks add up a long vector without a boss?

Every rank calls the function with its own x, of n bytes. Time: for p ranks; lg is to base 2, and p divides len(x).
"""

import numpy as np


def broadcast(comm, x):
    """Everybody gets rank 0's x, along a tree: each round doubles who has it. Time: ceil(lg p) (alpha + n beta)."""
    have = 1
    while have < comm.size:
        if comm.rank < have and comm.rank + have < comm.size:
            comm.send(x, comm.rank + have)
        elif have <= comm.rank < 2 * have:
            x = comm.recv(comm.rank - have)
        have *= 2
    return x


def reduce_scatter(comm, x):
    """Rank i gets chunk i of the sum of all x; it grows on its way round a ring. Time: (p - 1) (alpha + beta n/p)."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    chunks = np.array_split(x, comm.size)
    growing = chunks[left]  # it ends its way at rank `left`, so it begins here
    for step in range(1, comm.size):
        growing = comm.sendrecv(growing, dst=right, src=left) + chunks[(left - step) % comm.size]  # the same chunk
    return growing


def all_gather(comm, x):
    """Everybody gets all x; each goes round a ring. Time, for n bytes together: (p - 1) (alpha + beta n/p)."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    items = [x] * comm.size  # all but its own are replaced
    for step in range(1, comm.size):
        x = items[(comm.rank - step) % comm.size] = comm.sendrecv(x, dst=right, src=left)  # pass on what came last
    return items


def all_reduce(comm, x):
    """Everybody gets the sum of all x; a rank sends 2 n (p - 1)/p bytes. Time: 2 (p - 1) (alpha + beta n/p)."""
    return np.concatenate(all_gather(comm, reduce_scatter(comm, x)))


def all_reduce_doubling(comm, x):
    """The same if p is a power of two: swap with the rank at distance 1, then 2, 4... Time: lg p (alpha + n beta)."""
    distance = 1
    while distance < comm.size:
        x = x + comm.sendrecv(x, comm.rank ^ distance, comm.rank ^ distance)  # ^ flips one bit
        distance *= 2
    return x


# The workshop: minidl/cluster/collectives (six more all-reduces, all of MPI), minidl/cluster/cost. Lectures 04b, 04c.
