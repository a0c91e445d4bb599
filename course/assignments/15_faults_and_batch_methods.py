# %% [markdown]
# # Faults and batch methods: exercises
#
# The lectures: [15a](../../notebooks/15a_what_dies_and_what_survives.ipynb), what dies and what survives;
# [15b](../../notebooks/15b_how_often_to_save.ipynb), how often to save; and
# [15c](../../notebooks/15c_batch_methods.ipynb), batch methods. In this notebook you compute the direction of L-BFGS
# from vectors that never leave their servers. You hand out the portions of a batch to workers, some of which are slow
# and some of which never return. You find the best interval between checkpoints. Then you write a training loop that
# can be killed at any moment.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("run_portions")` prints a hint; the same call again prints the next one. Arrays that a function is given
# stay as they are. For grading, the same checks are made with other numbers. There are 20 points in all. The exercises
# can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import faults_and_batch_methods as check

# %% [markdown]
# ## 1. L-BFGS on a sharded store (6 points)
# Sandblaster (Dean et al., 2012, section 4.2) runs L-BFGS on models that fit on no single machine. Weights, gradient
# and history are divided among the shards of a store. A *coordinator* has none of them: it sends commands, and each
# shard carries them out on its own elements. Only scalars come back.
#
# L-BFGS keeps the last m *pairs*: s, a step of the weights, and y, how the gradient changed in this step. From them
# and the gradient g, two loops (Nocedal & Wright, *Numerical Optimization*, algorithm 7.4) compute d = -H g. H is an
# estimate of the inverse of the matrix of second derivatives, which itself is never there:
#
# > d = g\
# > for each pair, from the newest to the oldest: α = s·d / s·y, and d = d - α y\
# > d = (s·y / y·y) d, with the newest pair\
# > for each pair, from the oldest to the newest: β = y·d / s·y, and d = d + (α - β) s, with its α from the first loop\
# > d = -d
#
# A pair with s·y ≤ 0 says that the loss is not convex along s. It would spoil H, so it is left out.


# %% solution="lbfgs_direction"
def lbfgs_direction(shards, m):
    """Compute the direction d of L-BFGS in the store; return nothing.

    shards: a list of one shard or more. Each has some elements of every vector, perhaps none, and knows these commands:
        shard.dot(x, y)      returns the inner product of its elements of x and y: a number
        shard.axpy(a, x, y)  y += a x, on its elements; a is a number
        shard.scale(a, x)    x *= a
        shard.copy(x, y)     y = x
        shard.get(x)         sends its elements of x over the network
        shard.put(x, array)  replaces them
        x and y are names of vectors.
    m: pairs in the history, from 0 on.
    Vectors: "g", the gradient; "s0" and "y0", the oldest pair, to s and y of the newest one, m - 1; "d", which has the
        direction in the end, and anything before. All but "d" stay as they are.
    Pairs: if s·y is 0 or less, the pair is left out as if it were not in the history. Without any pair, d = -g.
    Messages: no vector is sent, so neither get nor put is needed. Each shard gets at most m + 4 k + 5 commands, if k
        pairs are used: s·y of each pair, 4 commands for each pair that is used, and 5 others.

    Example: two shards have g = (2, 0, 1), s0 = (1, 0, 1) and y0 = (2, 0, 0), the first one two elements of each.
        s·y = 2 and y·y = 4. So α = 3 / 2, d = (2, 0, 1) - α y = (-1, 0, 1), times 1 / 2; β = -1 / 2, d = (-.5, 0, .5)
        + 2 s = (1.5, 0, 2.5). In the end, "d" is (-1.5, 0) on the first shard and (-2.5) on the second one.
    To try it: `from course.probes.faults_and_batch_methods import Shard`; Shard(g=[2, 0], s0=[1, 0], y0=[2, 0], d=[9,
        9]) is the first of these two, and its attribute vectors has what it keeps.
    """
    ### BEGIN SOLUTION
    sy, alpha = {}, {}

    def dot(x, y):
        return sum(shard.dot(x, y) for shard in shards)

    def each(command, *arguments):
        for shard in shards:
            getattr(shard, command)(*arguments)

    each("copy", "g", "d")
    for i in reversed(range(m)):
        curvature = dot(f"s{i}", f"y{i}")
        if curvature > 0:
            sy[i] = curvature
            alpha[i] = dot(f"s{i}", "d") / curvature
            each("axpy", -alpha[i], f"y{i}", "d")
    if sy:
        newest = max(sy)
        each("scale", sy[newest] / dot(f"y{newest}", f"y{newest}"), "d")
    for i in sorted(sy):
        beta = dot(f"y{i}", "d") / sy[i]
        each("axpy", alpha[i] - beta, f"s{i}", "d")
    each("scale", -1.0, "d")
    ### END SOLUTION


# %% test="lbfgs_direction" points=6
check.lbfgs_direction(lbfgs_direction)
### BEGIN HIDDEN TESTS
check.lbfgs_direction(
    lbfgs_direction,
    empty=[((7,), ""), ((0, 5, 3), "")],
    one=[((5,), "+"), ((3, 1, 0, 6), "+")],
    several=[((11,), "++"), ((0, 9, 4), "+++++"), ((1, 35, 1, 1), "+++++++")],
    rejected=[((5, 7), "+-"), ((0, 4, 7), "o+-++-+"), ((3, 4), "--o"), ((6,), "-")],
    seed=81,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Portions and copies (5 points)
# A batch method needs the gradient of the whole batch, and so it waits for the slowest worker. Sandblaster cuts the
# batch into many more portions than there are workers, and hands out the next one whenever a worker is free. So fast
# workers compute more of them. When all are handed out, free workers compute copies (*backups*) of those that are
# not finished, and the first result wins. Otherwise one slow machine, or one that died, would hold up all others.


# %% solution="run_portions"
def run_portions(n, workers, give, wait):
    """Have workers compute the gradients of all portions of a batch, and return their sum.

    n: portions, from 1 on, with the numbers 0 to n - 1. workers: their number, from 1 on; they are 0 to workers - 1.
    give: give(w, i) hands portion i to worker w, which must be free.
    wait: wait() waits until a worker has finished, and returns (w, i, gradient): worker w is free, and its portion was
        i. A worker may be slow, and it may never return. Then nothing says so, and wait() returns what others finish.
        When no worker will ever return, it raises RuntimeError.
    Order: at first every worker gets a portion, worker 0 first, then 1, ... Later each worker that has finished gets
        another one at once, as long as a portion is unfinished. It is always the unfinished portion that was handed
        out least often so far; if there are several, the one of the lowest number. So all portions are handed out
        once, then those still unfinished a second time, a third time, and so on. If there are more workers than
        portions, the others compute copies from the start.
    End: when every portion has been finished once. Workers that still compute are not waited for.
    Returns: the sum of the gradients of all portions, each counted once, an array like one gradient. It has the same
        bits whichever worker was first. Two copies of a portion give the same gradient, to the bit.

    Example: with n = 3 and two workers, worker 1 very slow, the calls are give(0, 0), give(1, 1); wait() returns (0,
        0, ...), give(0, 2); (0, 2, ...), give(0, 1); (0, 1, ...). That is all: worker 1 still computes portion 1.
    To try it: `from course.probes.faults_and_batch_methods import Workers`; with w = Workers([[1, 1, 1], [9, 9, 9]],
        [np.ones(2)] * 3), run_portions(3, 2, w.give, w.wait) returns [3, 3], and w.clock is 3 then.
    """
    ### BEGIN SOLUTION
    times, gradients = [0] * n, [None] * n

    def hand_out(w):
        i = min((i for i in range(n) if gradients[i] is None), key=lambda i: times[i])
        times[i] += 1
        give(w, i)

    for w in range(workers):
        hand_out(w)
    left = n
    while left:
        w, i, gradient = wait()
        if gradients[i] is None:
            gradients[i] = gradient
            left -= 1
        if left:
            hand_out(w)
    return sum(gradients)
    ### END SOLUTION


# %% test="run_portions" points=5
check.run_portions(run_portions)
### BEGIN HIDDEN TESTS
check.run_portions(
    run_portions,
    cases=[(1, 1, 0), (7, 1, 0), (19, 5, 0), (26, 7, 0), (3, 5, 0), (7, 7, 0)],
    stopping=[(1, 5, 3), (17, 3, 1), (23, 6, 5), (4, 9, 7)],
    seed=82,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. How often to save (3 points)
# A job runs on `nodes` machines and fails as soon as one of them does. It computes for an *interval*, then writes a
# checkpoint, and so on. After a failure it restarts from the last complete checkpoint. If it saves seldom, it loses
# much work; if it saves often, it does little else. Its *goodput* is the share of the time that is spent on work which
# is not lost.
#
# Young (1974) found the interval $\sqrt{2 \cdot \text{write} \cdot M}$, with $M$ the job's mean time between failures.
# This holds as long as writing takes much less time than M, which it no longer does on thousands of machines.


# %% solution="best_interval"
def best_interval(nodes, mtbf, write, restart):
    """Return the best interval between checkpoints, and the goodput with it: (interval, goodput).

    nodes: machines of the job, from 1 on.
    mtbf: mean time between failures of one machine, in seconds. Failures are independent of each other and of what
        happened before: the time to the next one is exponentially distributed.
    write: seconds for which the job stands still to write a checkpoint. A failure in this time loses the interval,
        too. Writing may take longer than the mean time between two failures of the job.
    restart: seconds from a failure until the job computes again, 0 or more. If there is a failure in this time, the
        restart begins again.
    interval: seconds of work between two checkpoints, more than 0. With it, the job may take at most 0.2 % longer
        on average than with the best interval. Any way to find it will do, a search too.
    goodput: of this interval: the interval divided by the average time for it, with writing, failures and restarts.
        Here all digits count.

    Example: for a job on 4 machines with mtbf = 4000, write = 100 and restart = 50, an interval of 380 s is nearly the
        best one. On average it takes 647.66 s, so the goodput is 0.586727. For an interval of 900 s it is 0.498234.
    """
    ### BEGIN SOLUTION
    M = mtbf / nodes

    def goodput(tau):
        return tau / (M * np.exp(restart / M) * np.expm1((tau + write) / M))

    intervals = np.linspace(0, M, 100_001)[1:]
    best = intervals[np.argmax(goodput(intervals))]
    return best, goodput(best)
    ### END SOLUTION


# %% test="best_interval" points=3
check.best_interval(best_interval)
### BEGIN HIDDEN TESTS
check.best_interval(
    best_interval,
    fast=[(12_288, 0.002, 0.03), (12_288, 0.0006, 0.4), (1, 0.00008, 0.002), (300, 0.0009, 0.0)],
    slow=[(700, 0.17, 0.2), (53, 0.4, 0.6), (3072, 1.2, 0.25), (7, 2.1, 1.4)],
    seed=83,
)
# kept: fast, slow
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Killed at any moment (4 points)
# A training loop saves its state every k steps. Its process can be killed at any moment: in a step, between two
# operations, or in the middle of a write, which leaves an incomplete file. Then the same program is started again. It
# must go on where it was, and end with the same bits as if nothing had happened.


# %% solution="train_with_checkpoints"
def train_with_checkpoints(state, step, steps, k, storage):
    """Train, or go on training after a kill; return the state after all steps.

    state: the initial state, float64, an array with one axis. It is the same at every start of the program.
    step: step(state, t) returns the state after step t; t is 0 in the first step. It depends on nothing else.
    steps: the number of steps, from 1 on. k: steps from one checkpoint to the next, from 1 on.
    storage: keeps files. It is empty at the very first start, and has the files of earlier starts later on.
        storage.names()             returns a list of the names of all files
        storage.write(name, value)  writes a file. A value is made of numbers, text, arrays, lists, tuples and dicts.
        storage.rename(old, new)    gives a file another name. If there is a file of the new name, it is replaced.
        storage.read(name)          returns what was written. It raises FileNotFoundError if there is no such file, and
                                    ValueError if it is incomplete.
    Kills: a kill in the middle of a write leaves an incomplete file, whatever the file was before. Everything else is
        atomic: it has happened, or it has not. The process has no other memory than the storage. It may be killed
        several times, also while it goes on after a kill. In the check, a kill is an error: the operation raises it,
        and so does every later one of this process.
    Files: at most steps // k + 2 calls of write in a run without kills.
    Steps: after a kill, at most k of the steps that were complete are made again.
    Returns: the state after all steps, with the bits of a run that nothing has killed.

    Example: with steps = 7 and k = 3, a process is killed in step 5. The next one goes on with step(state, 3), where
        state is as it was after three steps.
    To try it: `from course.probes.faults_and_batch_methods import Storage`; Storage() keeps files in memory, in its
        attribute files.
    """
    ### BEGIN SOLUTION
    t = 0
    if "checkpoint" in storage.names():
        t, state = storage.read("checkpoint")
    while t < steps:
        state = step(state, t)
        t += 1
        if t % k == 0:
            storage.write("next", (t, state))
            storage.rename("next", "checkpoint")
    return state
    ### END SOLUTION


# %% test="train_with_checkpoints" points=4
check.train_with_checkpoints(train_with_checkpoints)
### BEGIN HIDDEN TESTS
check.train_with_checkpoints(train_with_checkpoints, cases=[(9, 3, 6), (7, 2, 3), (4, 7, 5), (3, 1, 4)], seed=84)
# kept: cases
### END HIDDEN TESTS

# %% [markdown]
# ## 5. In a few sentences (2 points, graded by hand)
# 1,000 machines train a model synchronously; each of them fails once a month. First, a colleague doubles the number of
# machines. What does this do to the mean time between failures, to Young's interval and to the share of time that is
# lost? What changes if a checkpoint is written in the background while training goes on? Second, why can a batch
# method hand a portion to two workers and take the first result, while a parameter server that gets the same gradient
# twice has a wrong update? And why did L-BFGS suit thousands of machines on a slow network, but hardly anybody trains
# with it today?

# %% [markdown] manual="more_machines" points=2
# The job fails twice as often: every 22 minutes instead of 43. The interval $\sqrt{2 \cdot \text{write} \cdot M}$
# shrinks by $\sqrt 2$, and the share that is lost, about $\sqrt{2 \cdot \text{write} / M}$, grows by $\sqrt 2$, if
# writing takes as long as before. If checkpoints are written in the background, only the time for which training stands
# still counts in `write`: a copy in memory takes much less, so the interval may be shorter, and less is lost. But a
# checkpoint cannot be used before it is complete, so a failure loses the interval that is being written, too (1 point).
#
# The gradient of a portion depends on the weights of this iteration and on the data alone, so both copies are the same,
# and the coordinator counts each portion once. A server adds whatever comes: a second copy is a second update, and it
# was computed from older weights. L-BFGS needs one round of messages for a whole batch, so long computing stands
# against few messages, and its batch can be cut into any number of portions. But a pass over all data is one update,
# where SGD makes thousands; with minibatches, y is the difference of noisy gradients and spoils the pairs; and networks
# became fast enough for SGD with all-reduce (1 point).
