# %% [markdown]
# # Asynchrony and parameter servers: exercises
#
# The lectures: [06a](../../notebooks/06a_staleness.ipynb), stale gradients; [06b](../../notebooks/06b_servers.ipynb),
# parameter servers; [06d](../../notebooks/06d_sync_or_async.ipynb), synchronous or asynchronous;
# [06g](../../notebooks/06g_old_gradients_cured.ipynb), Downpour; and
# [06c](../../notebooks/06c_bounded_staleness.ipynb), the gate. At the end of this
# notebook you will have written a parameter server that waits for nobody, a worker that asks it seldom, and a gate
# that lets workers run ahead, but not too far. You will have counted the updates that a missing lock loses. And you
# will be able to say, for a given cluster, whether asynchronous training pays.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code, run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what came, and gives points for parts.
# `check.hint("serve")` prints a hint; the same call again prints the next one. Your code runs on simulated ranks with
# a virtual clock, in a process of its own: a deadlock is found at once, and an endless loop is ended. When the work is
# graded, the same checks are made with other sizes. There are 20 points in all.

# %% given="setup"
import numpy as np

from course.checks import asynchrony as check
from minidl.cluster import ANY

# %% [markdown]
# ## Workers, servers and requests
# In exercises 1 to 3, ranks 0, 1, … are *workers*, and the ranks after them are *servers*. You write one side; the
# check plays the other one. A server keeps weights. A worker sends it *requests*. A request is an array of float64: its
# first number is the kind, and the values follow.
#
# - GET: the worker asks for the values, and waits for one message with them. *Pull* and *fetch* are other words for it.
# - PUT: from now on the values are those of this request. There is no reply.
# - ADD: the values of this request are added to those of the server. There is no reply. *Push* is another word for it.
# - DONE: the worker's last request. There is no reply.
# - CLOCK: only for exercise 3.
#
# You need `comm.send(x, dst)`, which here never waits, and `comm.recv(src)`, which waits for the next array from rank
# src. `comm.recv(ANY)` takes the array that comes first, from any rank; then `comm.last_source` is the rank that sent
# it. All arrays are float64. What is passed to your function stays as it is. The exercises can be done in any order.

# %% given="requests"
GET, PUT, ADD, DONE, CLOCK = 0.0, 1.0, 2.0, 3.0, 4.0


def request(kind, values=()):
    """The array for a request: request(ADD, [5., 7.]) is [2., 5., 7.], and request(GET) is [0.]."""
    return np.concatenate([[kind], values])


# %% [markdown]
# ## 1. A sharded server (5 points)
# ### 1a. The server (3 points)
# Addition commutes. So if every update is an ADD, the server can handle requests in any order: the sum is the same.
# That is why it need not wait for anybody, and takes each request when it comes.


# %% solution="serve"
def serve(comm, shard, workers):
    """Serve the requests of all workers, until each of them has sent DONE.

    This rank is a server, and ranks 0 to workers - 1 are the workers. There may be more servers.

    shard: the initial values, an array of one axis, float64, of any length, also 0. It stays as it is.
    workers: number of workers, from 1 on.
    Requests: GET, PUT, ADD and DONE, from any worker at any time. ADD and PUT have as many values as
        the shard. After its DONE a worker sends nothing.
    Returns: the values after all requests, an array.
    Order: requests are handled in order of arrival, one after the other. The server never waits for a
        particular worker.
    Cost: one message for each GET, to the worker that sent it: the array of values at that moment,
        8 bytes a value. No other message.

    Example: shard [1., 2.], one worker sends ADD [10., 10.], GET, PUT [5., 5.] and DONE: the reply to
        GET is [11., 12.], and the function returns [5., 5.].
    """
    ### BEGIN SOLUTION
    values, at_work = shard.copy(), workers
    while at_work:
        kind, *given = comm.recv(ANY)
        if kind == GET:
            comm.send(values, comm.last_source)
        elif kind == PUT:
            values = np.array(given, dtype=float)
        elif kind == ADD:
            values = values + np.array(given, dtype=float)
        else:
            at_work -= 1
    return values
    ### END SOLUTION


# %% test="serve" points=3
check.serve(serve)
### BEGIN HIDDEN TESTS
check.serve(
    serve,
    alone=[(1, 5, 10), (1, 0, 3), (1, 2, 0)],
    sums=[(4, 3, 6), (2, 0, 4), (3, 5, 3)],
    mixed=[(4, 3, 5), (2, 5, 7), (6, 1, 3)],
    seed=21,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 1b. The worker's side of several servers (2 points)
# One server carries the traffic of all workers, and is soon the bottleneck. So the weights are divided among S
# servers, each with a *shard*. A worker sends each server only what is for it, and asks all of them at the same time.


# %% solution="push_pull"
def push_pull(comm, delta, servers):
    """Add delta to the weights on the servers, and return the weights after that.

    delta: the change of all weights, an array of one axis, float64, of n elements; n may be 0, less than
        the number of servers, or not divisible by it. It stays as it is.
    servers: the list of the S ranks that are servers, in any order, S from 1 on. servers[k] keeps part k of
        np.array_split(weights, S), and does what exercise 1a asks.
    Returns: an array of n elements, the weights, delta included. (Other workers may add theirs at any
        time.)
    Cost: two messages to each server, an ADD and a GET, also to one with an empty shard: in all
        8 n bytes of values, and 8 bytes for the kind of each request.
    Time: that of the slowest server. If messages take no time, and each server takes one second for its
        reply, a lone worker has all replies after one second, and not after S.

    Example: delta [1., 2., 3.], servers [4, 5], weights of zeros: rank 4 is sent ADD [1., 2.] and GET,
        rank 5 is sent ADD [3.] and GET, and the result is [1., 2., 3.].
    """
    ### BEGIN SOLUTION
    for server, part in zip(servers, np.array_split(delta, len(servers)), strict=True):
        comm.send(request(ADD, part), server)
        comm.send(request(GET), server)
    return np.concatenate([comm.recv(server) for server in servers])
    ### END SOLUTION


# %% test="push_pull" points=2
check.push_pull(push_pull)
### BEGIN HIDDEN TESTS
check.push_pull(
    push_pull,
    sizes=[(1, 1, 5), (3, 3, 8), (2, 4, 1011), (1, 5, 3), (2, 3, 0)],
    lone=[(5, 12), (1, 4), (3, 7)],
    seed=22,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A Downpour worker (3 points)
# A worker that asks the server in every step spends its time on messages. In Downpour SGD (Dean et al., NIPS 2012,
# section 4.1) it fetches the weights every `n_fetch` steps, and pushes what it has accumulated every `n_push` steps. In
# between it makes its own steps on its own copy.


# %% solution="downpour_worker"
def downpour_worker(comm, gradient, steps, lr, n_fetch, n_push, server):
    """Train for `steps` steps, with the weights on a server.

    gradient: a function; gradient(weights, step) is the gradient of this step's minibatch, an array like
        the weights.
    steps: from 1 on; they are numbered 0 to steps - 1. lr: the learning rate.
    n_fetch, n_push: periods in steps, from 1 on; either may be longer than `steps`.
    server: the rank that has the weights, and does what exercise 1a asks.
    Each step, in this order:
        1. If the number of the step is divisible by n_fetch: GET. The worker's weights are now the
           server's; steps that were not pushed yet are pushed later all the same.
        2. One gradient, at the worker's weights. These change by -lr * gradient.
        3. After every n_push steps (so first after step n_push - 1): ADD the sum of the changes since the
           last ADD.
    In the end: ADD the changes that are left, if any step was not pushed; then DONE.
    Returns: the worker's weights after the last step.
    Cost: ceil(steps / n_fetch) GETs, ceil(steps / n_push) ADDs, one DONE, no other message.

    Example: steps = 5, n_fetch = 2, n_push = 3: GET, (step 0, step 1,) GET, (step 2,) ADD, (step 3,) GET,
        (step 4,) ADD, DONE. The second ADD has the changes of steps 3 and 4.
    """
    ### BEGIN SOLUTION
    for step in range(steps):
        if step % n_fetch == 0:
            comm.send(request(GET), server)
            weights = comm.recv(server)
        if step % n_push == 0:
            accumulated = np.zeros_like(weights)
        change = -lr * gradient(weights, step)
        weights = weights + change
        accumulated += change
        if (step + 1) % n_push == 0 or step + 1 == steps:
            comm.send(request(ADD, accumulated), server)
    comm.send(request(DONE), server)
    return weights
    ### END SOLUTION


# %% test="downpour_worker" points=3
check.downpour_worker(downpour_worker)
### BEGIN HIDDEN TESTS
check.downpour_worker(
    downpour_worker,
    serial=[(4, 5), (1, 1), (3, 9)],
    periods=[(1, 11, 4, 3), (2, 10, 3, 5), (3, 7, 5, 3), (2, 4, 1, 6), (1, 1, 1, 2)],
    seed=23,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. The gate of bounded staleness (4 points)
# Between a barrier in every step and no waiting at all lies a bound: a worker may be ahead of the slowest one, but by
# no more than s steps (*stale synchronous parallel*, Ho et al., NIPS 2013). A server keeps the *clocks*: the number of
# steps that each worker has finished. A worker that wants to begin a step asks the server, and waits until it may.
#
# Two mistakes are easy. A gate that lets somebody too far ahead breaks the bound. A gate that waits longer than
# necessary is a barrier by another name. The check looks for both: the workers must begin each step exactly when
# the rule allows it.


# %% solution="ssp_gate"
def ssp_gate(comm, workers, bound):
    """Let each worker begin its next step when it is at most `bound` steps ahead of the slowest one.

    This rank is the server, and ranks 0 to workers - 1 are the workers (from 1 on). There may be other ranks.

    bound: s, an integer from 0 on.
    Requests, in order of arrival:
        CLOCK  this worker has finished a step, and waits for a message before it begins another one
        DONE   this worker has finished its last step; it waits for nothing. Workers may have different
               numbers of steps.
    Every clock begins at 0; no worker asks before its first step.
    Rule: a worker that has finished c steps may begin another one as soon as c - (the smallest clock of
        all workers that have not sent DONE) is at most s. With s = 0 that is a barrier.
    Returns: nothing, when every worker has sent DONE.
    Cost: one message for each CLOCK, an empty array, np.zeros(0), sent as soon as the rule allows. No
        other message.

    Example: two workers, s = 1. Worker 0 sends CLOCK: its clock is 1, that of worker 1 is 0, so it may go
        on at once. It sends CLOCK again: now it is 2 ahead, and waits. When worker 1 sends its first
        CLOCK, both may go on.
    """
    ### BEGIN SOLUTION
    clocks = dict.fromkeys(range(workers), 0)
    waiting = []
    while clocks:
        (kind,) = comm.recv(ANY)
        worker = comm.last_source
        if kind == DONE:
            del clocks[worker]
        else:
            clocks[worker] += 1
            waiting.append(worker)
        for other in list(waiting):
            if clocks[other] - min(clocks.values()) <= bound:
                waiting.remove(other)
                comm.send(np.zeros(0), other)
    ### END SOLUTION


# %% test="ssp_gate" points=4
check.ssp_gate(ssp_gate)
### BEGIN HIDDEN TESTS
# kept: ahead
check.ssp_gate(
    ssp_gate,
    random=[(4, 9, 2), (3, 7, 1), (9, 5, 0), (1, 4, 0)],
    persistent=[(4, 9, 2), (3, 8, 1), (2, 7, 3)],
    ahead=[(2, 140, 130)],
    leaving=[(4, 9, 1), (2, 7, 0)],
    seed=24,
)
### END HIDDEN TESTS

# %% [markdown]
# Once it works, look at it: when do the workers compute, and when do they wait? Try other bounds. (Simulated.)

# %%
check.timeline(ssp_gate, bounds=(0, 1, 3))

# %% [markdown]
# ## 4. Lost updates (3 points)
# Without servers, workers of one machine can share an array. To add 1 to a cell takes three things: read it, add, write
# it. If another worker writes in between, its update is lost.
#
# ### 4a. Counted (1 point)


# %% solution="lost_updates"
def lost_updates(events):
    """Return how many increments are lost.

    events: what several workers did to counters in shared memory, in order of time: a list of tuples
        (worker, action, cell). Workers and cells are any whole numbers from 0 on. "read": the worker reads
        the counter. "write": the worker writes the value that it read last from this cell, plus one. Before
        every write a worker has read the cell anew. All counters begin at 0.
    Returns: an integer: the number of writes, less the sum of all counters in the end.

    Example: [(0, "read", 5), (1, "read", 5), (0, "write", 5), (1, "write", 5)]: both write 1, so one of
        two increments is lost. If worker 1 reads cell 6 and writes cell 6 instead, none is lost.
    """
    ### BEGIN SOLUTION
    counters, seen, writes = {}, {}, 0
    for worker, action, cell in events:
        if action == "read":
            seen[worker, cell] = counters.get(cell, 0)
        else:
            counters[cell] = seen[worker, cell] + 1
            writes += 1
    return writes - sum(counters.values())
    ### END SOLUTION


# %% test="lost_updates" points=1
check.lost_updates(lost_updates)
### BEGIN HIDDEN TESTS
check.lost_updates(
    lost_updates,
    harmless=[("locked", 4, 5, 3), ("apart", 4, 3, 4), ("locked", 1, 3, 1)],
    racing=[("at_once", 3, 4, 1), ("late", 4, 3, 1), ("racing", 4, 6, 2), ("all_cells", 3, 4, 2), ("falling", 3, 3, 1)],
    seed=25,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 4b. Avoided (2 points)
# A lock helps, if it is held around the right lines. Too few, and updates are lost. Too many, and the workers compute
# one after the other. The check plays the other workers: *whenever the lock is free*, they add 1 to every weight.


# %% solution="locked_step"
def locked_step(shared, lock, gradient, lr):
    """Make one step of asynchronous SGD on weights in shared memory.

    shared: shared.read() returns a copy of the weights as they are now, an array of float64;
        shared.write(values) replaces them. Both can be called at any time; nothing else is possible.
    lock: `with lock:` begins when no other worker has the lock, and excludes all others until it ends;
        lock.acquire() and lock.release() do the same by hand. The others change the weights only while
        they have the lock.
    gradient: gradient(weights) returns the gradient, and takes long. lr: the learning rate.
    Afterwards: the weights have changed by -lr * gradient(weights that were read at any time before), and
        no update of the others is lost.
    Returns: nothing.
    Cost: one gradient. The lock is acquired once, and held for one read and one write only.

    Example: weights [1.], lr = 0.5, gradient(w) = w. This worker reads [1.] and computes; meanwhile others
        make the weights [3.]; this worker then makes them [2.5].
    """
    ### BEGIN SOLUTION
    slope = gradient(shared.read())  # of weights that may be stale by now
    with lock:
        shared.write(shared.read() - lr * slope)
    ### END SOLUTION


# %% test="locked_step" points=2
check.locked_step(locked_step)
### BEGIN HIDDEN TESTS
check.locked_step(locked_step, sizes=[4, 1], seed=26)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. Synchronous or asynchronous? (3 points)
# Asynchronous training makes more steps a second, and learns less from each. Which one reaches the target first depends
# on the cluster. Write a function that predicts both times and decides. The model of both is this one:
#
# - The target takes `gradients` gradients if none of them is stale.
# - `seconds` is the time of one gradient. With probability `slow_share`, each time anew, it takes `slow_factor` times
#   as long. Worker 0 always takes `slowest` times as long as the others. (A cluster of the check has at most one of
#   the two kinds of stragglers.)
# - *Synchronous*: in each step each of the p workers computes one gradient; when the last one is ready, a ring
#   all-reduce follows, 2 (p - 1) (alpha + nbytes / p · beta) seconds. A step uses p gradients.
# - *Asynchronous*: each worker computes a gradient, then exchanges with the one server: a push and a pull of `nbytes`
#   each, 2 (alpha + nbytes · beta) seconds. Meanwhile the server serves nobody else; others wait in a queue. Each
#   gradient misses the p - 1 others, on average, so 1 + `penalty` · (p - 1) times as many gradients are needed.
#
# Each of your two times may be 5 % off: either the server is busy all the time, or nobody has to wait in its queue.
# Your choice may take at most 10 % longer to the target than the better one: its *regret* is at most 10 %.


# %% solution="choose"
def choose(cluster):
    """Predict the seconds to the target of both trainings, and choose one.

    cluster has these attributes, the numbers of the text above:
        cluster.gradients      gradients to the target if none is stale
        cluster.workers        p, from 2 on
        cluster.seconds        of one gradient that nothing delays
        cluster.slow_share     probability that a gradient is delayed; 0.0 if none is
        cluster.slow_factor    a delayed gradient takes slow_factor times as long; 1.0 if none is delayed
        cluster.slowest        worker 0 takes `slowest` times as long; 1.0 if it is as fast as the others
        cluster.nbytes         bytes of a gradient, and of the weights
        cluster.alpha          seconds a message
        cluster.beta           seconds a byte
        cluster.penalty        staleness penalty
    Returns: (synchronous, asynchronous, choice): the expected seconds of both until the target is reached,
        and "synchronous" or "asynchronous".

    Example: 4 workers, 100 gradients of 1 s, no delays, no time for messages and no penalty: the result is
        (25.0, 25.0, "synchronous"), or "asynchronous".
    """
    ### BEGIN SOLUTION
    p, share, slowest = cluster.workers, cluster.slow_share, cluster.slowest
    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
    exchange = 2 * (cluster.alpha + cluster.nbytes * cluster.beta)
    mean = cluster.seconds * (1 + share * (cluster.slow_factor - 1))
    delayed = 1 - (1 - share) ** p  # the probability that at least one of p gradients is
    longest = cluster.seconds * max(slowest, 1 + delayed * (cluster.slow_factor - 1))
    synchronous = cluster.gradients / p * (longest + ring)
    rate = (p - 1) / (mean + exchange) + 1 / (mean * slowest + exchange)
    rate = min(rate, 1 / exchange) if exchange else rate  # the server makes one exchange at a time
    asynchronous = cluster.gradients * (1 + cluster.penalty * (p - 1)) / rate
    return synchronous, asynchronous, "synchronous" if synchronous < asynchronous else "asynchronous"
    ### END SOLUTION


# %% test="choose" points=3
check.choose(choose)
### BEGIN HIDDEN TESTS
check.choose(choose, seed=27)
### END HIDDEN TESTS

# %% [markdown]
# ## 6. In a few sentences (2 points, graded by hand)
# On your 32 machines, a colleague replaces synchronous by asynchronous training, with the same learning rate. The
# cluster now processes three times as many samples a second, and the colleague reports "three times faster". The loss,
# however, goes up after a while. Say what was not measured, why the loss may go up, and name one thing to do about it.

# %% [markdown] manual="three_times_faster" points=2
# Speed of training is learning a second: learning a sample times samples a second. Only the second factor was measured;
# the first one fell, so loss against time has to be compared (1 point). With 32 workers each gradient misses about 31
# updates of the others. On a quadratic of curvature h, steps with gradients that are tau steps old are stable only for
# lr · h < 2 sin(pi / (2 (2 tau + 1))): 2 without staleness, about 0.05 with tau = 31. The old learning rate is beyond
# that. Remedies: a smaller learning rate, or one divided by the staleness; Adagrad; a bound on staleness (SSP); fewer
# workers, or groups of them that are synchronous inside (1 point for the reason and one remedy).
