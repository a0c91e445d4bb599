# %% [markdown]
# # Messages and collectives: exercises
#
# The lectures: [04a](../../notebooks/04a_messages.ipynb), messages between ranks,
# [04b](../../notebooks/04b_collectives.ipynb), collectives made of them, and
# [04c](../../notebooks/04c_choosing.ipynb), which one to use when. At the end of this notebook you will have
# written a broadcast, and the two all-reduces that most systems use, out of `send` and `recv`; you will know what
# they cost, and from which size on which of them is the faster one; and you will be able to tell from a list of
# messages whether a program that gives the right sum does what its name says.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code, run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what came, and gives points for parts;
# `check.hint("ring_all_reduce")` tells a hint, the same call again the next one. Your code runs on simulated ranks
# with a virtual clock, in a process of its own: a deadlock is found at once, and an endless loop is ended. When the
# work is graded, the same checks are made with other sizes. There are 20 points in all.

# %% given="setup"
import math

import numpy as np

from course.checks import messages_and_collectives as check

# %% [markdown]
# ## What you may use
# A rank's program gets a communicator `comm` and has `comm.rank` (0 to p - 1), `comm.size` (p), and:
#
# - `comm.send(x, dst)` sends the array x to rank dst;
# - `comm.recv(src)` returns the next array from rank src;
# - `comm.sendrecv(x, dst, src)` does both at the same time, and returns what came;
# - `comm.isend(x, dst)` and `comm.irecv(src)` only begin, and return at once; `.wait()` of what they return ends
#   it, and after an irecv gives the array. Whatever a function begins it has to end before it returns.
#
# A send of up to 64 KiB returns at once; a larger one returns when the receiver has the array. `comm.all_reduce`
# and the other collectives are not allowed: they are what you are about to write. All arrays are float64, 8 bytes
# an element, and results are float64, too. What is passed to your function stays as it is, unless the exercise says
# otherwise.
#
# *Rounds* are counted on a simulated network on which a message takes one second however long it is, and a rank can
# send one message and receive one at a time. So the rounds are the messages that come one after the other.
#
# The exercises can be done in any order, but 2c is easiest with the functions of 2a and 2b.

# %% [markdown]
# ## 1. A broadcast along a tree (2 points)
# Rank 0 has an array, and all ranks shall have it. If rank 0 sends it to one after the other, the last one gets it
# after p - 1 rounds. If everyone who has it sends it on, ceil(log2 p) rounds are enough, and still p - 1 messages
# in all.


# %% solution="broadcast_tree"
def broadcast_tree(comm, x):
    """Give every rank the array of rank 0.

    x: on rank 0 an array of one axis and any length, also 0; on all other ranks None.
    Returns: on every rank an array equal to that of rank 0, to the bit.
    Cost: p - 1 messages in all, ceil(log2 p) rounds; p = comm.size is any number from 1 on.

    Example: with x = [1., 2.] on rank 0 of 3 ranks, all three return [1., 2.], after 2 messages
        in 2 rounds.
    """
    ### BEGIN SOLUTION
    have = 1  # ranks 0 ... have - 1 have the array
    while have < comm.size:
        if comm.rank < have and comm.rank + have < comm.size:
            comm.send(x, comm.rank + have)
        elif have <= comm.rank < 2 * have:
            x = comm.recv(comm.rank - have)
        have *= 2
    return x
    ### END SOLUTION


# %% test="broadcast_tree" points=2
check.broadcast_tree(broadcast_tree)
### BEGIN HIDDEN TESTS
check.broadcast_tree(broadcast_tree, sizes=[(1, 2), (3, 1), (7, 0), (13, 9), (37, 37)], seed=11)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A ring all-reduce (8 points)
# Every rank has a vector of n elements, and all shall have the sum of all vectors. Nobody is a boss: the ranks
# stand in a ring, in any order, each vector is cut into p chunks, and in every step every rank sends one chunk to the
# next one.
# After p - 1 steps (the *reduce-scatter*) each rank has one chunk of the sum; after p - 1 more (the *all-gather*)
# everyone has all of them. A rank sends 2(p - 1)/p n elements, and fewer will not do (Patarasuk and Yuan, JPDC
# 69(2), 2009).
#
# It is easy to get the right sum and still lose what the ring is for: by sending whole vectors, say. So the checks
# look at the messages, too.
#
# ### 2a. Reduce-scatter (3 points)


# %% solution="ring_reduce_scatter"
def ring_reduce_scatter(comm, chunks):
    """Add up everyone's chunks; each rank gets the sum of the chunks of its own number.

    chunks: a list of p = comm.size arrays of one axis, float64; the lengths, which may differ
        (and be 0), are the same on all ranks. They stay as they are.
    Returns: on rank r an array, the sum over all ranks of their chunks[r].
    Cost: p - 1 messages a rank, all to one neighbour in the ring, none of them longer than the
        longest chunk; p - 1 rounds. No deadlock, however long the chunks are.

    Example: two ranks, chunks [1.], [2.] on rank 0 and [10.], [20.] on rank 1: rank 0 returns
        [11.], rank 1 [22.].
    """
    ### BEGIN SOLUTION
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    growing = chunks[left].copy()  # chunk i starts on rank i + 1, goes to the right and ends on rank i
    for step in range(p - 1):
        growing = comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]
    return growing
    ### END SOLUTION


# %% test="ring_reduce_scatter" points=3
check.ring_reduce_scatter(ring_reduce_scatter)
### BEGIN HIDDEN TESTS
check.ring_reduce_scatter(
    ring_reduce_scatter,
    sizes=[(1, 3), (3, 33), (2, 9), (3, 2), (5, 13), (7, 30)],
    large=[(2, 40_000), (4, 40_000)],
    seed=12,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 2b. All-gather (2 points)


# %% solution="ring_all_gather"
def ring_all_gather(comm, chunk):
    """Give every rank the chunks of all ranks.

    chunk: this rank's array of one axis, float64; its length may differ from rank to rank (and
        be 0). It stays as it is.
    Returns: on every rank a list of p = comm.size arrays; item i is the chunk of rank i, to the
        bit.
    Cost: p - 1 messages a rank, all to one neighbour in the ring, none of them longer than the
        longest chunk; p - 1 rounds. No deadlock, however long the chunks are.

    Example: three ranks with chunks [1., 2.], [3.] and []: all of them return [[1., 2.], [3.],
        []].
    """
    ### BEGIN SOLUTION
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    chunks = [chunk] * p
    for step in range(p - 1):
        chunk = comm.sendrecv(chunk, right, left)  # what came in one step goes out in the next
        chunks[(me - 1 - step) % p] = chunk
    return chunks
    ### END SOLUTION


# %% test="ring_all_gather" points=2
check.ring_all_gather(ring_all_gather)
### BEGIN HIDDEN TESTS
check.ring_all_gather(
    ring_all_gather,
    sizes=[(1, 3), (3, 9), (2, 9), (3, 2), (5, 13), (7, 30)],
    large=[(2, 40_000), (4, 40_000)],
    seed=13,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 2c. All-reduce (3 points)
# As in PyTorch and MPI, the result is written into the vector that the caller passed. You may use your two
# functions (and need not).


# %% solution="ring_all_reduce"
def ring_all_reduce(comm, x):
    """Make x the sum of everyone's x, in place.

    x: an array of one axis, float64, of n elements on all ranks; n may be 0, less than p =
        comm.size, or not divisible by p.
    Returns: the sum over all ranks: x, or an array equal to it.
    Cost: 2(p - 1) messages a rank, all to one neighbour in the ring, none of them longer than
        ceil(n/p) elements (np.array_split cuts so; a vector that is padded to p equal chunks
        will do, too); 2(p - 1) rounds. No deadlock, however long x is.

    Example: x = [1., 2., 3.] on rank 0 and [10., 20., 30.] on rank 1: on both x is [11., 22.,
        33.] afterwards.
    """
    ### BEGIN SOLUTION
    places = np.array_split(x, comm.size)  # views of x
    mine = ring_reduce_scatter(comm, places)
    for place, chunk in zip(places, ring_all_gather(comm, mine), strict=True):
        place[...] = chunk
    return x
    ### END SOLUTION


# %% test="ring_all_reduce" points=3
check.ring_all_reduce(ring_all_reduce)
### BEGIN HIDDEN TESTS
check.ring_all_reduce(
    ring_all_reduce,
    sizes=[(1, 3), (3, 15), (2, 9), (3, 2), (5, 13), (7, 30)],
    large=[(2, 40_000), (4, 40_000)],
    seed=14,
)
### END HIDDEN TESTS

# %% [markdown]
# Once it works, look at it: who sends and receives when, and how long it takes on 10 Gbit/s Ethernet (simulated).
# Try other p and n, and later `recursive_doubling`. And `python3 -m course result 2` trains a GPT with your function,
# on two processes of this machine, in at most ten minutes.

# %%
check.timeline(ring_all_reduce, p=4, n=400_000)

# %% [markdown]
# ## 3. Recursive doubling (3 points)
# A ring of p ranks has 2(p - 1) steps, and each costs a message's start-up. Where vectors are short that is all the
# time there is. Recursive doubling needs log2 p rounds: in round k partners exchange *all* that they have and both
# add, after which groups of $2^{k + 1}$ ranks agree.
#
# That works where p is a power of two. For other p, the ranks beyond the greatest power of two first fold their
# vectors into those of the others, and get the result in the end. This fold is given.


# %% given="fold"
def fold_in(comm, x):
    """Make the ranks that go on a power of two; x stays as it is.

    Returns (first, total): ranks 0 to first - 1 go on, with the vector total; the others have
        handed x over, and their total is None.
    """
    first = 1 << (comm.size.bit_length() - 1)
    if comm.rank >= first:
        comm.send(x, comm.rank - first)
        return first, None
    total = x.copy()
    if comm.rank + first < comm.size:
        total += comm.recv(comm.rank + first)
    return first, total


def fold_out(comm, first, total):
    """Hand the result to the ranks that did not go on; returns it on every rank."""
    if comm.rank >= first:
        return comm.recv(comm.rank - first)
    if comm.rank + first < comm.size:
        comm.send(total, comm.rank + first)
    return total


# %% solution="recursive_doubling"
def recursive_doubling(comm, x):
    """Return the sum of everyone's x.

    x: an array of one axis, float64, of n elements on all ranks (n may be 0). It stays as it
        is.
    Returns: on every rank an array with the sum over all ranks.
    Cost, for p = comm.size a power of two: log2 p messages of n elements a rank, in log2 p
        rounds. For other p at most what fold_in and fold_out add to that of the greatest power
        of two below: one message of n elements more a rank, and two rounds. No deadlock,
        however long x is.

    Example: x = [1.], [10.], [100.] on three ranks: all of them return [111.].
    """
    ### BEGIN SOLUTION
    first, total = fold_in(comm, x)
    distance = 1
    while comm.rank < first and distance < first:
        partner = comm.rank ^ distance
        total = total + comm.sendrecv(total, partner, partner)
        distance *= 2
    return fold_out(comm, first, total)
    ### END SOLUTION


# %% test="recursive_doubling" points=3
check.recursive_doubling(recursive_doubling)
### BEGIN HIDDEN TESTS
check.recursive_doubling(
    recursive_doubling,
    sizes=[(1, 2), (2, 0), (3, 4), (5, 9), (12, 30), (16, 17)],
    large=[(2, 9_000), (8, 12_344)],
    seed=15,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. What they cost, and where they cross (3 points)
# In the model of the lecture a message of n bytes takes alpha + n beta seconds, adding n bytes to n others takes n
# gamma, and a rank can send and receive at the same time.
#
# ### 4a. The ring (1 point)


# %% solution="ring_seconds"
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    """Return the seconds that the ring all-reduce of exercise 2 takes.

    p: ranks, from 1 on. nbytes: of each rank's whole vector, divisible into p chunks of whole
        elements; it may be 0, and an empty message takes alpha, too. alpha: seconds a message.
        beta: seconds a byte sent. gamma: seconds a byte reduced (added).

    Example: ring_seconds(4, 4_000_000, 50e-6, 8e-9) is 0.0483.
    """
    ### BEGIN SOLUTION
    chunk = nbytes / p
    return (p - 1) * (2 * (alpha + chunk * beta) + chunk * gamma)
    ### END SOLUTION


# %% test="ring_seconds" points=1
check.ring_seconds(ring_seconds)
### BEGIN HIDDEN TESTS
check.ring_seconds(
    ring_seconds,
    cases=[
        (5, 40_000, 30e-6, 2e-9, 0.5e-9),
        (7, 560, 1e-6, 0.1e-9, 0.2e-9),
        (16, 1_280_000, 10e-6, 0.08e-9, 0.1e-9),
        (200, 6_400_004_800, 5e-6, 1e-9, 0.3e-9),
        (1, 8000, 30e-6, 2e-9, 0.5e-9),
        (6, 0, 30e-6, 2e-9, 0.5e-9),
        (11, 2_345_816, 17.3e-6, 0.419e-9, 0.223e-9),
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ### 4b. Recursive doubling (1 point)


# %% solution="recursive_doubling_seconds"
def recursive_doubling_seconds(p, nbytes, alpha, beta, gamma=0.0):
    """Return the seconds that the all-reduce of exercise 3 takes, the fold included if p needs it.

    The arguments are those of ring_seconds; nbytes is any number of bytes.

    Example: recursive_doubling_seconds(4, 4_000_000, 50e-6, 8e-9) is 0.0641, and with p = 5 it
        is 0.1282.
    """
    ### BEGIN SOLUTION
    rounds = p.bit_length() - 1
    fold = 0 if p == 1 << rounds else 1
    return (rounds + 2 * fold) * (alpha + nbytes * beta) + (rounds + fold) * nbytes * gamma
    ### END SOLUTION


# %% test="recursive_doubling_seconds" points=1
check.recursive_doubling_seconds(recursive_doubling_seconds)
### BEGIN HIDDEN TESTS
check.recursive_doubling_seconds(
    recursive_doubling_seconds,
    powers_of_two=[
        (16, 1_280_000, 10e-6, 0.08e-9, 0.1e-9),
        (1024, 64, 5e-6, 1e-9, 0.3e-9),
        (1, 8000, 30e-6, 2e-9, 0.5e-9),
        (4, 0, 30e-6, 2e-9, 0.5e-9),
        (8, 3_456_704, 17.3e-6, 0.419e-9, 0.223e-9),
    ],
    others=[
        (5, 40_000, 30e-6, 2e-9, 0.5e-9),
        (7, 560, 1e-6, 0.1e-9, 0.2e-9),
        (500, 5_000_000_003, 5e-6, 1e-9, 0.3e-9),
        (11, 2_345_819, 17.3e-6, 0.419e-9, 0.223e-9),
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ### 4c. The crossover (1 point)
# A short vector is best doubled, a long one sent round the ring. From which size on?


# %% solution="crossover"
def crossover(p, alpha, beta, gamma=0.0):
    """Return the bytes at which ring and recursive doubling take equally long.

    Above it the ring is the faster one.

    p: ranks, from 2 on, any number; the rest as in ring_seconds. The result is a float (do not
        round it), and math.inf where the ring is never faster.

    Example: crossover(8, 50e-6, 8e-9) is 55000.0, up to rounding; crossover(2, 50e-6, 8e-9) is
        math.inf.
    """
    ### BEGIN SOLUTION
    rounds = p.bit_length() - 1
    fold = 0 if p == 1 << rounds else 1
    share = (p - 1) / p
    later = (2 * (p - 1) - rounds - 2 * fold) * alpha
    gained = (rounds + 2 * fold - 2 * share) * beta + (rounds + fold - share) * gamma
    return later / gained if gained > 0 else math.inf
    ### END SOLUTION


# %% test="crossover" points=1
check.crossover(crossover)
### BEGIN HIDDEN TESTS
check.crossover(crossover, powers_of_two=[16, 4, 1024], others=[5, 7, 700, 2], alpha=1e-6, beta=1.7e-12, gamma=0.6e-12)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. Is it a ring? (2 points)
# The `ring_all_reduce` of a published course gave the right sum and was no ring all-reduce: it sent 2(p - 1) whole
# vectors where 2(p - 1) chunks would do, and for a long time nobody saw it ([how it was
# found](https://github.com/callummcdougall/ARENA_3.0/pull/407)). Write the test that would have seen it.
#
# You get the messages of a run. Whether the sums are right is tested elsewhere; the messages are those of a *ring
# all-reduce* if
#
# 1. every rank sent 2(p - 1) messages;
# 2. every rank sent to one other rank only, and these arrows make one ring through all p ranks (in any order of the
#    ranks, either way round);
# 3. no message was longer than the largest chunk of `np.array_split`.
#
# The check has four groups of traces, of rings and of others. A group gives its points if all of it are judged right:
# to call everything a ring, or nothing, brings none. Some traces miss a condition on one rank only.


# %% solution="is_ring"
def is_ring(sends, p, nbytes):
    """Say whether an all-reduce went round a ring.

    sends: the messages of all ranks in order of time, a list of tuples (source, destination,
        bytes). p: ranks, from 2 on. nbytes: of each rank's vector of float64 (8 bytes an
        element; n = nbytes // 8 need not be divisible by p).
    Returns: True or False.

    Example: is_ring([(0, 1, 8), (1, 0, 8), (0, 1, 8), (1, 0, 8)], 2, 16) is True; with messages
        of 16 bytes it is False, and with the first two messages alone, too.
    """
    ### BEGIN SOLUTION
    next_rank = {}
    count = [0] * p
    longest = -(-(nbytes // 8) // p) * 8
    for source, destination, size in sends:
        count[source] += 1
        if next_rank.setdefault(source, destination) != destination or size > longest:
            return False
    if count != [2 * (p - 1)] * p:
        return False
    rank, seen = 0, set()
    while rank not in seen:
        seen.add(rank)
        rank = next_rank[rank]
    return rank == 0 and len(seen) == p
    ### END SOLUTION


# %% test="is_ring" points=2
check.is_ring(is_ring)
### BEGIN HIDDEN TESTS
check.is_ring(
    is_ring,
    traces=[
        (
            ("ring", 6, 12),
            ("hierarchical", 4, 16),
            ("whole_vectors_twice_round", 6, 12),
            ("chunks_in_halves", 5, 20),
            ("one_chunk_in_two", 5, 14),
            ("one_fewer", 5, 3),
        ),
        (("ring", 5, 11), ("rest_in_one_chunk", 5, 13), ("one_long_message", 5, 12), ("ring", 2, 10), ("ring", 11, 8)),
        (
            ("ring_to_the_left", 4, 8),
            ("rabenseifner", 4, 8),
            ("there_and_back", 3, 9),
            ("last_messages_swapped", 6, 12),
        ),
        (
            ("ring_in_another_order", 6, 12),
            ("one_more_one_fewer", 5, 3),
            ("two_rings", 6, 12),
            ("one_behind_the_ring", 5, 9),
        ),
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 6. In a few sentences (2 points, graded by hand)
# Your cluster has 64 machines. The gradients of the model's many layers are all-reduced one layer at a time; most
# layers have a few thousand numbers. A colleague replaces recursive doubling by the ring, "because it is
# bandwidth-optimal", and training gets slower. Say why, and name two things that you could do about it.

# %% [markdown] manual="why_slower" points=2
# Bandwidth-optimal means that a rank sends the fewest bytes, 2(p - 1)/p n. A vector of a few thousand numbers is
# some ten kilobytes, far below the crossover, so the start-ups count: 126 of them in the ring against 6 with
# recursive doubling (1 point). Remedies (1 point for two of them): put the gradients of many layers together in one
# larger vector (a bucket) before the all-reduce; choose the algorithm by size, as MPI libraries do; Rabenseifner's
# algorithm, which moves the ring's bytes in 2 log2 p rounds; a network with a smaller alpha; rings within and
# between groups of machines, which have fewer steps.
