# %% [markdown]
# # Gradient compression: exercises
#
# The lectures: [09a](../../notebooks/09a_top_k.ipynb), few entries and a memory;
# [09b](../../notebooks/09b_momentum.ipynb), momentum; [09c](../../notebooks/09c_sparse_sums.ipynb), sums of sparse
# vectors; [09d](../../notebooks/09d_few_bits.ipynb), few bits; and [09g](../../notebooks/09g_when_it_pays.ipynb), when
# compression pays. In this notebook you send few entries of a gradient and keep the rest to the bit. You train with
# them on several ranks. You bring momentum to where it belongs, round numbers at random so that they are right on
# average, and add up sparse vectors that fill up on the way.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("sparsify")` prints a hint; the same call again prints the next one. Functions with an argument `comm` run
# on simulated ranks, in processes of their own. For grading, the same checks are made with other numbers. There are 20
# points in all. The exercises can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import gradient_compression as check

# %% [markdown]
# In this notebook n is the number of entries of a gradient, k that of the entries that are sent, and p the number of
# ranks. All arrays have one axis. Your functions leave their arguments, and what they have returned before, unchanged,
# unless the exercise says otherwise.
#
# A message of k entries has their indices and their values, in *one* array: 4 bytes an index and 4 bytes a value, so 8
# bytes an entry. These two functions make and read such messages:


# %% given="pairs"
def pairs(indices, values):
    """Return a message of k entries: an int32 array of shape (2, k), 8 k bytes, from indices and float32 values."""
    return np.stack([np.asarray(indices, np.int32), np.asarray(values, np.float32).view(np.int32)])


def unpacked(message):
    """Return the indices (int32) and the values (float32) of a message of entries."""
    return message[0], message[1].view(np.float32)


# %% [markdown]
# ## 1. A threshold and a memory (3 points)
# Send what is large. Keep what is small, and add it to the next gradient, until it is large. What is kept is called the
# *residual*. Nothing may be lost on the way: not even the last bit.


# %% solution="sparsify"
def sparsify(gradient, residual, threshold):
    """Return the entries to send as (indices, values), and keep the others in `residual`.

    gradient: a float32 array of n numbers, n from 0 on.
    residual: a float32 array of n numbers: what earlier calls have kept. It is written: after the call it
        holds what this call keeps. It stays the same array object.
    threshold: a number from 0 on.
    With total = gradient + residual, rounded to float32 once: the entries with |total| > threshold are
    sent, all others are kept.
    Returns: (indices, values): the indices of the sent entries in ascending order, an array of integers,
        and their total, a float32 array. Either may be empty.
    To the bit: each entry of total is either in values or in the new residual, as it is; the residual is 0
        where an entry was sent.

    Example: gradient [0.5, -2., 0.25], residual [0.75, 0., 0.], threshold 1.: total is [1.25, -2., 0.25].
        So ([0, 1], [1.25, -2.]) is returned, and residual becomes [0., 0., 0.25].
    """
    ### BEGIN SOLUTION
    residual += gradient
    indices = np.flatnonzero(np.abs(residual) > threshold)
    values = residual[indices]
    residual[indices] = 0
    return indices, values
    ### END SOLUTION


# %% test="sparsify" points=3
check.sparsify(sparsify)
### BEGIN HIDDEN TESTS
check.sparsify(sparsify, sizes=(6, 33, 2, 1200), steps=7, seed=31)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Top-k with error feedback, on p ranks (5 points)
# A threshold sends as many entries as there happen to be. *Top-k* sends exactly k: those of the largest magnitude. Each
# rank has a residual of its own, and chooses entries of its own. So nobody can add up on the way: each rank gets the
# entries of all others.


# %% solution="top_k_step"
def top_k_step(comm, w, gradient, residual, k, lr):
    """Make a step of SGD with the k largest entries of each rank; return the new weights.

    w: the weights, a float64 array of n numbers, the same on all ranks.
    gradient: this rank's gradient, a float32 array of n numbers.
    residual: what this rank has kept so far, a float32 array of n numbers. It is written: after the call it
        holds what this rank keeps now. It stays the same array object.
    k: entries that each rank sends, from 1 to n. lr: the learning rate.
    With total = gradient + residual, rounded to float32 once, this rank sends the k entries with the largest
    |total|; of equal magnitudes, that with the lower index comes first. The others stay in the residual, to
    the bit.
    Returns: w - lr * mean, a float64 array, the same on all ranks to the bit. mean is the sum of what all
        ranks have sent, divided by p; an entry that several ranks have sent is added up.
    Cost: one comm.all_gather of a message of k entries, 8 k bytes (see `pairs`), and no other communication.
        comm.all_gather(x) returns the list of the x of all ranks.

    Example: two ranks, w = [1., 1.], k = 1, lr = 0.5, residuals zero, gradients [3., 1.] and [1., -2.]: rank 0
        sends entry 0, rank 1 entry 1. mean is [1.5, -1.], so both return [0.25, 1.5]. The residuals become
        [0., 1.] and [1., 0.].
    """
    ### BEGIN SOLUTION
    residual += gradient
    chosen = np.argsort(-np.abs(residual), kind="stable")[:k]
    message = pairs(chosen, residual[chosen])
    residual[chosen] = 0
    total = np.zeros_like(w)
    for each in comm.all_gather(message):
        indices, values = unpacked(each)
        total[indices] += values
    return w - lr * total / comm.size
    ### END SOLUTION


# %% test="top_k_step" points=5
check.top_k_step(top_k_step)
### BEGIN HIDDEN TESTS
check.top_k_step(top_k_step, cases=[(3, 11, 2), (4, 6, 1), (2, 9, 9), (1, 5, 3), (2, 1200, 25)], steps=4, seed=32)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Momentum where the gradient waits (3 points)
# With dense gradients, SGD with momentum moves the weights by
#
# $$v \leftarrow m\,v + g, \qquad w \leftarrow w - \eta\,v .$$
#
# If an entry is sent only every ten steps, and momentum comes *after* that, the entry misses the momentum of the nine
# steps in which it waited. *Momentum correction* (Lin et al., arXiv:1712.01887, section 3.2) puts momentum *before* the
# choice: each node has a velocity v of its own, and what waits is the sum of its velocities.


# %% solution="corrected_entries"
def corrected_entries(gradient, velocity, waiting, m, k, masking):
    """Return the k entries to send as (indices, values), with momentum correction.

    gradient: a float64 array of n numbers. m: the momentum coefficient, from 0 to below 1.
    velocity: v, a float64 array of n numbers; written: v <- m v + g.
    waiting: the sum of the velocities that were not yet sent, a float64 array of n numbers; written: the new
        v is added to it.
    k: entries to send, from 0 to n: those with the largest |waiting|, the new v included; of equal
        magnitudes, that with the lower index comes first.
    masking: True: v is set to 0 in the entries that are sent ("momentum factor masking"); False: v stays.
    Returns: (indices, values): the k indices, an array of integers in any order, and their `waiting`, a
        float64 array in the same order. In these entries `waiting` is 0 afterwards.
    velocity and waiting stay the same array objects.

    Example: gradient [1., 3.], velocity [2., 0.], waiting [2., 0.], m = 0.5, k = 1: v becomes [2., 3.] and
        waiting [4., 3.]. So ([0], [4.]) is returned, and waiting is [0., 3.]. velocity is [2., 3.], with
        masking [0., 3.].
    """
    ### BEGIN SOLUTION
    velocity *= m
    velocity += gradient
    waiting += velocity
    indices = np.argsort(-np.abs(waiting), kind="stable")[:k]
    values = waiting[indices]
    waiting[indices] = 0
    if masking:
        velocity[indices] = 0
    return indices, values
    ### END SOLUTION


# %% test="corrected_entries" points=3
check.corrected_entries(corrected_entries)
### BEGIN HIDDEN TESTS
check.corrected_entries(
    corrected_entries,
    constant=[(0.8, 7, 2), (0.99, 12, 1), (0.0, 3, 3)],
    waits=[(5, 9, 2, 0.7), (4, 6, 1, 0.9), (1200, 2, 30, 0.8)],
    masked=[(6, 8, 2, 0.6), (3, 5, 1, 0.9)],
    seed=33,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Few bits, right on average (3 points)
# QSGD (Alistarh et al., arXiv:1610.02132) sends one norm for all numbers, and a small whole number for each: its
# *level*, from -s to s. Between two levels it rounds at random, so that the mean of many roundings is the number.
# Here the random numbers are given, so that everyone can compute the result.


# %% solution="qsgd"
def qsgd(gradient, s, uniform):
    """Return (norm, levels): the numbers norm * levels / s stand for the gradient.

    gradient: a float64 array of n numbers, n from 1 on; it may be all zeros. s: from 1 to 100.
    uniform: a float64 array of n random numbers, above 0 and below 1, one for each entry.
    norm: the Euclidean norm of the gradient, a number.
    levels: an int8 array of n numbers. For the entry x, a = s |x| / norm lies between two whole numbers. The
        level is the upper one if the entry's random number is below a - floor(a), else the lower one, with
        the sign of x. If norm is 0, all levels are 0; no NaN is made an int8, which differs between machines.

    Example: gradient [3., -4.], s = 2, uniform [0.3, 0.3]: norm = 5, a is [1.2, 1.6]. The first random number
        is not below 0.2, the second is below 0.6: levels [1, -2], which stand for [2.5, -5.].
    """
    ### BEGIN SOLUTION
    norm = np.linalg.norm(gradient)
    if norm == 0:
        return 0.0, np.zeros(len(gradient), np.int8)
    a = s * np.abs(gradient) / norm
    lower = np.floor(a)
    levels = lower + (uniform < a - lower)
    return norm, (np.sign(gradient) * levels).astype(np.int8)
    ### END SOLUTION


# %% test="qsgd" points=3
check.qsgd(qsgd)
### BEGIN HIDDEN TESTS
check.qsgd(qsgd, cases=[(30, 60), (7, 3), (2, 9), (12, 1), (1200, 90)], seed=34)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. A sparse sum that fills up (4 points)
# p ranks have k entries each, and all need the sum. With recursive doubling, each rank exchanges its partial sum with
# another one in each round. The partial sums fill up: two sparse vectors make a less sparse one. As soon as pairs would
# take as many bytes as the whole vector, the whole vector is sent (Renggli et al., SparCML, SC'19).


# %% solution="sparse_sum"
def sparse_sum(comm, indices, values, n):
    """Return the sum of all ranks' sparse vectors of n entries, as a float32 array of n numbers.

    indices: the entries that this rank has: an array of different integers in any order, perhaps empty.
    values: their values, a float32 array. No value and no sum of values is 0.
    comm.size is a power of two, from 1 on. The result is the same on all ranks to the bit.
    Cost: log2(p) rounds. In round number i, from 0 on, each rank exchanges one message with the rank
        comm.rank ^ 2**i: comm.sendrecv(message, partner, partner) sends the message and returns the
        partner's. (comm.send waits for the receiver if a message has more than 64 KiB.) The message holds the
        sum of what this rank has so far. With j different entries it is
        - a message of j entries, 8 j bytes (see `pairs`), if 8 j < 4 n;
        - else the float32 array of all n entries, 4 n bytes.
        The two kinds can be told apart by their dtype.

    Example: two ranks, n = 5, rank 0 has entry 1 with 2., rank 1 entries 1 and 3 with 1. and 4.: they send 8
        and 16 bytes, and both return [0., 3., 0., 4., 0.].
    """
    ### BEGIN SOLUTION
    total = np.zeros(n, np.float32)
    total[indices] = values
    distance = 1
    while distance < comm.size:
        held = np.flatnonzero(total)
        message = pairs(held, total[held]) if 8 * len(held) < 4 * n else total
        partner = comm.rank ^ distance
        came = comm.sendrecv(message, partner, partner)
        if came.dtype == np.int32:
            more, those = unpacked(came)
            total[more] += those
        else:
            total = total + came
        distance *= 2
    return total
    ### END SOLUTION


# %% test="sparse_sum" points=4
check.sparse_sum(sparse_sum)
### BEGIN HIDDEN TESTS
check.sparse_sum(
    sparse_sum,
    sums=[(4, 17, 3), (2, 6, 1), (1, 5, 2), (2, 24_000, 9_500)],
    sparse=[(4, 90, 5), (8, 120, 4)],
    filling=[(4, 24, 6), (4, 30, 13), (8, 30, 3), (2, 12, 9)],
    seed=35,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 6. In a few sentences (2 points, graded by hand)
# A vendor sends the largest 1 % of each gradient, as 4-byte indices and 4-byte values, gathered by all 16 nodes. "One
# hundredth of the bytes, so up to 100 times faster." Before, a dense ring all-reduce of float32 took 40 % of each step,
# and nothing overlapped. Compute how many times fewer bytes a node sends now, and how many times faster a step becomes
# at most. Which time of the vendor's method is missing even in that number?

# %% [markdown] manual="vendor" points=2
# A gather sends (p - 1) times 8 bytes for each of 0.01 n entries: 15 * 0.08 n = 1.2 n bytes. The ring sends
# 2 (p - 1) / p * 4 n = 7.5 n bytes. So it is 6.25 times fewer, not 100 (1 point). Computing stays: the step takes at
# least 0.6 + 0.4 / 6.25 = 0.664 of what it took, so it is at most 1.5 times as fast; and even with no bytes at all it
# were 1 / 0.6 = 1.67 times. Missing is the time to choose the entries, and to add up those of 16 nodes; also, overlap
# would have hidden part of the 40 %, so that less could be saved (1 point for the factor and one of these).
#
# **The lectures' questions to argue about, for the teacher**
#
# *09a.* 1. Yes: the entry grows in every node's residual, by its own share, until it is among the largest there. It
# arrives late, and on all nodes at about the same time. 2. The residual of that node: all gradients that it had
# computed and not sent. The others' are kept, so training goes on a little behind. Saving residuals with the
# checkpoint avoids it. 3. When p k is near n or above it, so that a gather costs as much as a dense sum; or when
# choosing the largest takes longer than the bytes that it saves.
#
# *09b.* 1. Both: the weight gets what belongs to it, but from a velocity as old as the wait. It costs nothing while
# the gradient changes slowly, and makes steps unstable when it does not. 2. The same memory: two arrays of n numbers.
# With Adam on top each node would need four; and Adam divides by an average of the squares of gradients, which sparse
# sums do not give. 3. The old method with the warm-up, and the new one without.
#
# *09c.* 1. For example by a sum of the magnitudes of few samples, or the indices of one node in turn. It costs a
# message before the message, and saves all indices and the fill-in: the sum has k entries. What is lost are entries
# that are large on other nodes; with error feedback they come later. 2. What is left out of partial sums belongs to
# several nodes. The rank that drops it has to keep it in its own residual, or it is lost. 3. Gathering is out, as p d
# grows 16 times: split, or a d of a sixteenth. A larger minibatch has fewer steps, and so fewer sums, up to $B_c$.
#
# *09d.* 1. A power of two changes the exponent alone: scaling and unscaling are exact, as long as nothing overflows.
# 2. Each number is then its own norm, sent in 32 bits: nothing is saved. 3. The mean of means with unequal shards
# (05a), the mean of the ratios (08d), a rate tuned on too few values (08d), the sign (09e): averaging does not remove
# a bias.
#
# *09e.* 1. For those whose magnitudes are all equal: the mean magnitude is each one's. Then nothing is left out, and
# error feedback is SGD. 2. In minidl the rate at which they are sent, with Karimireddy et al. that at which they were
# computed. It matters for what waits while the rate falls: one residual's worth, seldom visible, as in 09a. 3. The
# delay is bounded by the residual's norm, and rate times residual is small next to the scale on which the gradient
# changes. It is not when the rate is high or the compressor's delta is tiny: then the place of the gradient is wrong
# by much.
#
# *09f.* 1. Each sample then has as many products as the image has places: sufficient factors send more than the
# matrix. PowerSGD does not count products, so nothing changes; only the shape of the matrix matters. 2. None of that
# kind: it sends sums of exact products, so all nodes have the same sum, and what is lost is lost once, in P. 3. A
# vector of rows numbers is as long as P with r = 1. It would be a loss in a network whose biases are most of its
# weights.
#
# *09g.* 1. All marks move right by a factor of 10, as coding takes a tenth of the seconds; computing shrinks too, so
# less is hidden, and there is more to win. 2. Coding leaves the node's own time, but a message is still coded before
# it is sent: coding counts where the network would otherwise be idle, as in a pipeline. 3. One whose best learning rate
# lies between two of the five, or outside of them. Look whether the best is at the border, try some between, and see
# whether the order changes.
