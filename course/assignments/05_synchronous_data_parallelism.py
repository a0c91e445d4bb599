# %% [markdown]
# # Synchronous data parallelism: exercises
#
# The lectures: [05a](../../notebooks/05a_data_parallelism.ipynb), when several machines train exactly like one,
# [05b](../../notebooks/05b_overlap.ipynb), communication hidden behind backward, and
# [05c](../../notebooks/05c_scaling.ipynb), how far this scales. In this notebook you write the parts of a
# data-parallel trainer: the sampler, the step, and the all-reduce in buckets. Then you predict its scaling
# efficiency, and the time that a barrier costs.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("sharded_sampler")` prints a hint; the same call again prints the next one. Functions with an argument
# `comm` run on simulated ranks with a virtual clock, in processes of their own. For grading, the same checks are made
# with other sizes. There are 20 points in all. The exercises can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import synchronous_data_parallelism as check

# %% [markdown]
# In this notebook p is the number of ranks (`comm.size`), d the number of weights, and n the number of training
# samples. All arrays of numbers are float64, 8 bytes an element. Your functions leave their arguments unchanged.
#
# ## 1. A sharded sampler (4 points)
# One machine shuffles the n samples once an epoch and cuts this order into minibatches. Its epochs are the *serial
# run*. p machines train exactly like it if all of them together read the same minibatches, one after the other. Each
# rank takes its *shard* of every minibatch.
#
# Frameworks often do something else: they repeat samples until all shards are equally long, or drop the last
# minibatch. Then the result depends on the number of machines.
#
# The shuffle is given. It depends on the seed and the epoch alone.


# %% given="epoch_order"
def epoch_order(n, seed, epoch):
    """The order in which the serial run reads the n samples in this epoch."""
    return np.random.default_rng((seed, epoch)).permutation(n)


# %% solution="sharded_sampler"
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    """Return the samples that a rank reads in an epoch: its shard of every minibatch.

    n: number of samples (may be 0). batch_size: samples in a minibatch, over all ranks together.
        p: ranks. rank: this one, 0 to p - 1. seed, epoch: of the shuffle.
    Returns: a list of arrays of sample numbers, on every rank one for each minibatch of the serial
        run. Minibatch k of the serial run is
        epoch_order(n, seed, epoch)[k * batch_size : (k + 1) * batch_size]; the last one has the
        rest and may be shorter. The arrays k of all ranks together have exactly the samples of
        minibatch k. Their lengths differ by at most 1, so an array may be empty. Which rank reads
        which sample of a minibatch is up to you.

    Example: with n = 5, batch_size = 3 and p = 2, both ranks return two arrays. If the order is
        4, 0, 2, 1, 3, then rank 0 may return [[4, 0], [1]] and rank 1 [[2], [3]].
    """
    ### BEGIN SOLUTION
    order = epoch_order(n, seed, epoch)
    minibatches = [order[start : start + batch_size] for start in range(0, n, batch_size)]
    return [np.array_split(minibatch, p)[rank] for minibatch in minibatches]
    ### END SOLUTION


# %% test="sharded_sampler" points=4
check.sharded_sampler(sharded_sampler)
### BEGIN HIDDEN TESTS
check.sharded_sampler(
    sharded_sampler,
    even=[(36, 6, 3), (30, 10, 1), (0, 6, 3), (2200, 1100, 1)],
    ragged=[(35, 9, 4), (13, 6, 5), (29, 7, 3), (9, 4, 6), (5, 9, 2)],
    seed=21,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A data-parallel step (4 points)
# Every rank has the same weights and its shard of the minibatch. It computes the gradient of its shard, all gradients
# are all-reduced, and every rank makes the same update. No rank ever sends weights.
#
# Goyal et al. (arXiv:1706.02677, section 3) list how to get this wrong: by weight decay, by momentum, by the
# normalisation, by the shuffle. The check looks for these mistakes. The model is logistic regression; its gradient is
# given.


# %% given="mean_gradient"
def mean_gradient(w, x, y):
    """The gradient of the mean loss over the samples x, a matrix with one row a sample, with labels y.

    There must be at least one sample.
    """
    if len(x) == 0:
        raise ValueError("mean_gradient: no sample, so there is no mean")
    return x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / len(x)


# %% solution="data_parallel_step"
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    """Make one step of SGD with momentum on the minibatch whose shards the ranks have.

    The serial run on the whole minibatch of `total` samples does this:

        g = mean_gradient(w, x, y) + weight_decay * w
        v = momentum * v + g
        w = w - lr * v

    w, v: weights and velocity, arrays of d numbers, the same on all ranks. x, y: this rank's
        shard, of any number of samples; it may have none. total: samples of all shards together.
        lr, momentum, weight_decay: numbers; lr may change from step to step.
    Returns: (w, v) after the step, new arrays: those of the serial run up to rounding, and on all
        ranks the same to the bit.
    Cost: one comm.all_reduce of d float64 numbers. No other communication.

    Example: on one rank it returns what the three lines return.
    """
    ### BEGIN SOLUTION
    share = len(x) / total
    g = share * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
    comm.all_reduce(g)
    v = momentum * v + g + weight_decay * w
    return w - lr * v, v
    ### END SOLUTION


# %% test="data_parallel_step" points=4
check.data_parallel_step(data_parallel_step)
### BEGIN HIDDEN TESTS
check.data_parallel_step(
    data_parallel_step, even=[(3, 12, 1030), (1, 6, 3), (2, 8, 4)], ragged=[(5, 13, 4), (4, 3, 6)], seed=22
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Buckets that are reduced while backward goes on (5 points)
# Backward finishes the last layer's gradient first. So the network can be busy while the other layers are still being
# computed. One all-reduce for each gradient would pay many start-ups; one for all of them could hide nothing.
# *Buckets* are between the two.
#
# `backward` is given: it takes the computing time of each layer on the virtual clock, and yields its gradient as soon
# as it is there. `comm.all_reduce(bucket, async_op=True)` starts an all-reduce and returns at once. `.wait()` of what
# it returns ends it; only then the array has the sum.


# %% given="backward"
def backward(comm, layers):
    """Yield the gradient of every layer, the last layer's first.

    layers: for each layer, from the first to the last, (gradient, seconds that it takes).
    """
    for gradient, seconds in reversed(layers):
        comm.compute(seconds=seconds)
        yield gradient


# %% solution="bucketed_all_reduce"
def bucketed_all_reduce(comm, layers, bucket_bytes):
    """Run backward, and add up the gradients of all ranks in buckets while it goes on.

    layers: the argument of backward; there may be none. The gradients are float64 arrays of one
        axis; a layer's gradient has the same length on all ranks. Use the gradients only as
        backward yields them. bucket_bytes: a bucket is full as soon as it holds bucket_bytes or
        more; 8 bytes an element.
    Returns: a list with one array for each layer, from the first layer to the last: the sum of its
        gradients over all ranks.
    Cost: one comm.all_reduce for each bucket, with async_op=True, and no other communication. A
        bucket takes the gradients in the order in which backward yields them. Its all-reduce
        starts as soon as it is full, and that of the last bucket, which need not be full, when
        backward ends. Nothing waits before backward has ended.

    Example: four layers with gradients of 1, 2, 3 and 4 elements, bucket_bytes = 50: the buckets
        have 7 elements (layers 3 and 2, counted from 0) and 3 elements (layers 1 and 0).
    """
    ### BEGIN SOLUTION
    bucket, in_flight = [], []

    def start():
        joined = np.concatenate(bucket)
        lengths = [len(gradient) for gradient in bucket]
        in_flight.append((comm.all_reduce(joined, async_op=True), joined, lengths))
        bucket.clear()

    for gradient in backward(comm, layers):
        bucket.append(gradient)
        if sum(gradient.nbytes for gradient in bucket) >= bucket_bytes:
            start()
    if bucket:
        start()
    sums = []
    for work, joined, lengths in in_flight:
        work.wait()
        sums += np.split(joined, np.cumsum(lengths)[:-1])
    return sums[::-1]
    ### END SOLUTION


# %% test="bucketed_all_reduce" points=5
check.bucketed_all_reduce(bucketed_all_reduce)
### BEGIN HIDDEN TESTS
check.bucketed_all_reduce(
    bucketed_all_reduce,
    ranks=[2, 1, 3, 5],
    models=[([60, 50, 40, 10, 30], 640), ([40, 30, 20], 80), ([1070, 9], 80_000), ([], 800), ([7, 2, 3], 25)],
    ratios=[0.6, 0.9, 1.7, 2.2],
    seed=23,
)
### END HIDDEN TESTS

# %% [markdown]
# Once it works, look at it: the all-reduces are drawn below the computation of the same rank (simulated, 10 Gbit/s).
# Try other sizes of buckets: a tiny one, and one for everything.

# %%
check.timeline(bucketed_all_reduce, bucket_bytes=2_000_000)

# %% [markdown]
# ## 4. Scaling efficiency (3 points)
# How much faster are p nodes? The *efficiency* compares the samples a second of p nodes with p times those of one
# node: 1 is perfect. With *weak scaling* every node keeps its batch, so the minibatch grows with p. With *strong
# scaling* the minibatch stays, and is shared out.


# %% solution="efficiency"
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    """Predict the efficiency of a synchronous step on p nodes: samples a second / (p x those of one node).

    p: nodes. batch_size: samples in a minibatch, for weak scaling (strong=False) on each node, for
        strong scaling (strong=True) on all nodes together. flops: of a sample, forward and
        backward; backward has two thirds of them. flops_per_s: of a node. nbytes: of all
        gradients. alpha: seconds a message. beta: seconds a byte. buckets: number of equal buckets.
    The step: forward, then backward. In strong scaling the slowest node counts; it has
        batch_size / p samples, rounded up. Bucket i (from 1 to buckets) is full after i / buckets
        of backward. Its ring all-reduce among p nodes then starts if the one before has ended,
        otherwise as soon as it has ended. It takes 2(p - 1) messages of nbytes / buckets / p
        bytes one after the other, and costs the nodes no computing time. The step ends with the
        last all-reduce. The update takes no time.
    Returns: a float. The check compares it with simulated clusters and accepts 10 % difference.

    Example: efficiency(1, 32, 6e9, 1e12, 1e8, 5e-5, 8e-9, buckets=1) is 1.0. On p = 2 nodes it is
        0.194.
    """
    ### BEGIN SOLUTION

    def step(p, samples):
        computing = samples * flops / flops_per_s
        forward, backward = computing / 3, computing * 2 / 3
        reducing = 2 * (p - 1) * (alpha + nbytes / buckets / p * beta)
        slow_backward, slow_network = backward + reducing, backward / buckets + buckets * reducing
        return forward + max(slow_backward, slow_network)

    if strong:
        return step(1, batch_size) / (p * step(p, -(-batch_size // p)))
    return step(1, batch_size) / step(p, batch_size)
    ### END SOLUTION


# %% test="efficiency" points=3
check.efficiency(efficiency)
### BEGIN HIDDEN TESTS
check.efficiency(
    efficiency,
    plain=[
        (2, 32, 5e9, 9e12, 90e6, 4e-5, 0.9e-9),
        (16, 24, 4e9, 7e12, 48e6, 5e-6, 0.1e-9),
        (12, 6, 0.3e9, 4e12, 1.2e6, 3e-5, 0.08e-9),
        (5, 40, 2e9, 3e12, 60e6, 9e-5, 0.7e-9),
    ],
    overlapped=[
        (2, 32, 5e9, 9e12, 90e6, 4e-5, 0.15e-9, 6),
        (16, 24, 4e9, 7e12, 48e6, 5e-6, 0.09e-9, 5),
        (12, 6, 0.9e9, 4e12, 1.2e6, 2e-5, 0.08e-9, 3),
        (7, 20, 3e9, 6e12, 44e6, 3e-5, 0.5e-9, 4),
        (9, 20, 5e9, 8e12, 60e6, 4e-6, 0.045e-9, 6),
        (3, 48, 4e9, 9e12, 90e6, 2e-5, 0.118e-9, 9),
        (5, 24, 5e9, 9e12, 30e6, 6e-6, 0.038e-9, 2),
    ],
    strong=[
        (3, 100, 5e9, 9e12, 160e6, 4e-5, 0.3e-9, 4),
        (12, 40, 50e9, 8e12, 6e6, 5e-6, 0.1e-9, 3),
        (24, 36, 60e9, 6e12, 20e6, 9e-6, 0.2e-9, 5),
        (20, 60, 4e9, 5e12, 0.8e6, 6e-5, 0.1e-9, 1),
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. The time at a barrier (2 points)
# At a barrier the slowest worker counts. If all workers take 1 s on average, the step still takes longer, because one
# of them is late every time.


# %% solution="barrier_time"
def barrier_time(times, p):
    """Return the expected seconds until the last of p workers reaches the barrier.

    The workers' times are independent and have the same distribution.

    times: either one number, the mean of exponentially distributed times, or an array of measured
        seconds in any order: then each worker's time is one of them, all equally likely, drawn
        with replacement. p: workers, from 1 on.
    Returns: a float, the exact expectation up to rounding, not an estimate by random numbers.
    Cost: an array may have 100,000 elements, and p may be 1000: too many to list all cases.

    Example: barrier_time(2.0, 2) is 3.0. barrier_time(np.array([3.0, 1.0]), 2) is 2.5: the last
        one takes 3 s in three of four cases, and 1 s in one.
    """
    ### BEGIN SOLUTION
    if np.ndim(times) == 0:
        return float(times * np.sum(1 / np.arange(1, p + 1)))
    at_most = np.arange(len(times) + 1) / len(times)  # the chance that a worker is among the i fastest times
    return float(np.sum(np.sort(times) * np.diff(at_most**p)))
    ### END SOLUTION


# %% test="barrier_time" points=2
check.barrier_time(barrier_time)
### BEGIN HIDDEN TESTS
check.barrier_time(
    barrier_time,
    exponential=[(0.7, 5), (3.0, 1), (0.02, 900), (1.6, 2), (2, 11)],
    samples=[(6, 3), (9, 2), (5, 4), (1, 3), (7, 1)],
    many=[(30_000, 12), (1200, 900)],
    seed=25,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 6. In a few sentences (2 points, graded by hand)
# A colleague trains on 256 nodes with 32 samples on each. From 8 to 256 nodes the samples a second grew by a factor
# of 28.8. The report says: "90 % scaling efficiency, so training is 28.8 times faster than on 8 nodes." What does the
# 90 % measure here? Which question does the conclusion leave open, and which two numbers would you ask for?

# %% [markdown] manual="ninety_percent" points=2
# 28.8 of 32 times is 90 % weak-scaling efficiency relative to 8 nodes: samples a second with a fixed batch on each
# node. The eight nodes are the base, so what is lost from 1 to 8 nodes is not in it (1 point). Training speed is
# learning a second = learning a sample x samples a second. The minibatch grew from 256 to 8192 samples, so 32 times
# fewer updates are made in an epoch, and a sample may teach less. Ask for the samples (epochs) until the same test
# error with 256 and with 8192 samples a minibatch, or for the seconds until that error, measured on both; and for the
# samples a second on one node (1 point for two of these).
