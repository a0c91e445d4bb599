# %% [markdown]
# # Pipelines: exercises
#
# The lectures: [11a](../../notebooks/11a_pipelines.ipynb), layers over nodes, micro-batches and memory; and
# [11b](../../notebooks/11b_no_bubble.ipynb), smaller bubbles and stale weights. In this notebook you write GPipe and
# 1F1B as lists of actions. You write the program that executes such a list on one stage. You cut a model into stages
# that take equally long. You find out who waits for whom in schedules that deadlock, and how many versions of its
# weights a stage has to keep.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("gpipe")` prints a hint; the same call again prints the next one. Functions with an argument `comm` run on
# simulated ranks, in processes of their own. Lists and arrays that a function is given stay as they are. For grading,
# the same checks are made with other numbers. There are 20 points in all. The exercises can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import pipelines as check

# %% [markdown]
# K is the number of stages, M the number of micro-batches of a minibatch. Stages and micro-batches are numbered from 0:
# s and m. Stage 0 has the first layers of the model, stage K - 1 the last ones and the loss.
#
# An *action* is a string. A stage does its actions one after the other:
#
# - `"F3"`: the forward of micro-batch 3. Stage s > 0 needs the activations from `"F3"` of stage s - 1.
# - `"B3"`: the backward of micro-batch 3. It needs `"F3"` of the same stage. Stage s < K - 1 also needs the gradient
#   from `"B3"` of stage s + 1.
# - `"U0"`: the update of the stage's weights, with the gradient of the whole minibatch.
#
# A stage that needs something waits for it. A forward takes $t_F$ seconds on every stage, a backward $t_B$. Updates and
# messages take no time here. From its forward to its backward, a micro-batch occupies memory on a stage: its
# activations are kept. The *bubble* is the time in which a stage is idle, between the first forward and the last
# backward of the pipeline.
#
# ## 1. Two schedules as lists (5 points)
# ### 1a. GPipe (2 points)
# All forwards, then all backwards, then the update (Huang et al., arXiv:1811.06965).


# %% solution="gpipe"
def gpipe(K, M, s):
    """Return the actions of stage s in GPipe's schedule, a list of strings.

    K, M: from 1 on. s: from 0 to K - 1.
    The list has "F0" to f"F{M - 1}" in ascending order, then "B0" to f"B{M - 1}" in an order that is the
        same on all stages, then one "U0".
    Time: a minibatch takes (M + K - 1) (t_F + t_B) seconds, from the first forward to the last backward.

    Example: gpipe(2, 2, 0) is ["F0", "F1", "B0", "B1", "U0"], and so is gpipe(2, 2, 1).
    """
    ### BEGIN SOLUTION
    return [f"F{m}" for m in range(M)] + [f"B{m}" for m in range(M)] + ["U0"]
    ### END SOLUTION


# %% test="gpipe" points=2
check.gpipe(gpipe)
### BEGIN HIDDEN TESTS
check.gpipe(gpipe, cases=[(3, 5), (5, 2), (1, 3), (4, 1), (3, 120)])
### END HIDDEN TESTS

# %% [markdown]
# ### 1b. 1F1B (3 points)
# A stage of GPipe keeps the activations of all M micro-batches. *1F1B* has the same bubble with less memory: a stage
# begins with a few forwards, the *warm-up*. Then it does one forward and one backward in turn, until all forwards are
# done. Then come the remaining backwards. How many forwards are in the warm-up of stage s? One too few, and stages wait
# longer. One too many, and a stage keeps more than it has to.


# %% solution="one_f_one_b"
def one_f_one_b(K, M, s):
    """Return the actions of stage s in the schedule 1F1B, a list of strings.

    K, M: from 1 on; M may be less than K. s: from 0 to K - 1.
    The list has each of "F0" to f"F{M - 1}" once, in ascending order, and each of "B0" to f"B{M - 1}" once, in
        ascending order. The last action is one "U0".
    Memory: stage s keeps the activations of at most min(M, K - s) micro-batches at a time.
    Time: a minibatch takes (M + K - 1) (t_F + t_B) seconds, from the first forward to the last backward,
        whatever t_F and t_B are.

    Example: one_f_one_b(2, 3, 0) is ["F0", "F1", "B0", "F2", "B1", "B2", "U0"], and one_f_one_b(2, 3, 1) is
        ["F0", "B0", "F1", "B1", "F2", "B2", "U0"].
    """
    ### BEGIN SOLUTION
    warm_up = min(M, K - 1 - s)
    actions = [f"F{m}" for m in range(warm_up)]
    for m in range(M - warm_up):
        actions += [f"F{warm_up + m}", f"B{m}"]
    return actions + [f"B{m}" for m in range(M - warm_up, M)] + ["U0"]
    ### END SOLUTION


# %% test="one_f_one_b" points=3
check.one_f_one_b(one_f_one_b)
### BEGIN HIDDEN TESTS
check.one_f_one_b(one_f_one_b, cases=[(3, 7), (5, 9), (6, 4), (1, 4), (4, 1), (12, 110)])
### END HIDDEN TESTS

# %% [markdown]
# ## 2. The program of a stage (5 points)
# Whatever the schedule is, one program can execute it: each rank goes through the list of its stage. Three things are
# easy to get wrong. A backward needs the input of its own micro-batch, and the update the gradients of all of them.
# For a large message, `comm.send` waits until the other rank receives it: if two neighbours send to each other at the
# same time, both wait for ever. And an input must be released after its backward, or it occupies memory until the end.


# %% solution="run_stage"
def run_stage(comm, actions, M, inputs, w, lr, forward, backward):
    """Execute the actions of stage comm.rank, with K = comm.size stages, and return the new weights.

    actions: a list as in exercise 1, of any schedule without deadlock, with each forward and each backward once
        and one "U0" at the end. Forwards are in the same order on all stages, and so are backwards.
    M: number of micro-batches. The loss of the minibatch is the mean of the losses of its micro-batches.
    inputs: on stage 0 the list of the M micro-batches, arrays; None on all other stages. The list stays as it is.
    w: the weights of this stage, an array of float64. lr: the learning rate.
    forward: forward(w, x) returns the output of this stage for its input x, an array of float64; on stage K - 1
        it returns the loss of the micro-batch, a number.
    backward: backward(w, x, g) returns (gx, gw): the gradient with respect to the stage's input x and with
        respect to w, arrays like these. g is the gradient of the minibatch's loss with respect to what
        forward(w, x) returned: an array like it; on stage K - 1 a number.
    Actions: F takes the next input from stage s - 1, calls forward once, and sends the output to stage s + 1 as soon
        as it is computed. B takes the next gradient from stage s + 1, calls backward once, and sends gx to stage
        s - 1 as soon as it is computed. Stages 0 and K - 1 have one neighbour. Nothing else is sent. U computes
        w - lr * (the gradient of the minibatch's loss with respect to w).
    Returns: the weights after "U0", an array. The array w stays as it is.
    Messages: comm.recv(src) waits for the next array from rank src and returns it. comm.send(x, dst) returns at
        once for arrays of at most 64 KiB; for a larger one it waits until rank dst receives it.
        work = comm.isend(x, dst) returns at once for every array; work.wait() waits until it has been
        received. Call it for every isend before the function returns. Arrays may be larger than 64 KiB.
    Memory: on stages s > 0 an input is released once its backward is done, so no list, dictionary or variable may
        refer to it then. Such a stage has room for one input more than its actions need.

    Example: one stage, actions ["F0", "F1", "B0", "B1", "U0"], M = 2: both calls of backward have g = 1 / 2, and
        w - lr * (their gw's sum) is returned. Nothing is sent.
    """
    ### BEGIN SOLUTION
    s, last = comm.rank, comm.size - 1
    kept, sent, gradient = {}, [], np.zeros_like(w)
    for action in actions:
        kind, m = action[0], int(action[1:])
        if kind == "F":
            kept[m] = inputs[m] if s == 0 else comm.recv(s - 1)
            y = forward(w, kept[m])
            if s < last:
                sent.append(comm.isend(y, s + 1))
        elif kind == "B":
            gx, gw = backward(w, kept.pop(m), 1 / M if s == last else comm.recv(s + 1))
            gradient += gw
            if s > 0:
                sent.append(comm.isend(gx, s - 1))
        else:
            w = w - lr * gradient
    for work in sent:
        work.wait()
    return w
    ### END SOLUTION


# %% test="run_stage" points=5
check.run_stage(run_stage)
### BEGIN HIDDEN TESTS
check.run_stage(
    run_stage,
    steps=[
        ("1f1b", 3, 5),
        ("gpipe", 4, 2),
        ("naive", 2, 3),
        ("reversed", 3, 4),
        ("1f1b", 1, 4),
        ("1f1b", 5, 3),
        ("1f1b", 1, 102),
    ],
    large=[("1f1b", 4, 5), ("gpipe", 3, 2), ("naive", 3, 4), ("last in bursts", 3, 5)],
    long=[("1f1b", 3, 9), ("naive", 3, 7), ("1f1b", 2, 8)],
    seed=51,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Balanced stages (3 points)
# Each micro-batch passes through every stage, so the slowest stage limits how many of them the pipeline computes in a
# second. Cut a model of n layers into K stages so that the slowest stage is as fast as possible. A model of 200 layers
# has too many cuts to try all.


# %% solution="cut"
def cut(costs, K):
    """Return how many consecutive layers each of K stages has, so that the slowest stage is as fast as possible.

    costs: the times of the n layers, a list of n whole numbers of microseconds, each from 1 on. n: from 1 to 200.
    K: number of stages, from 1 to n.
    Returns: a list of K whole numbers, each from 1 on, n in all: stage 0 has the first layers, stage K - 1 the
        last ones. The largest sum of a stage's costs is as small as possible; among several such cuts any is
        right.
    Operations: for more than 12 layers at most 6 n^2 K additions, subtractions, comparisons and other operations
        with costs and sums of costs. The check's costs are integers that count these operations, and raise an
        error beyond that. They also raise one if they are converted to a type that does not count: int, float,
        or numpy's numbers (dtype=object is none of them).

    Example: cut([5, 1, 1, 1, 4], 3) is [1, 3, 1]: the stages take 5, 3 and 4 microseconds. Equal numbers of layers,
        [2, 2, 1], take 6.
    """
    ### BEGIN SOLUTION
    n = len(costs)
    before = [0]  # before[i]: the cost of the first i layers
    for cost in costs:
        before.append(before[-1] + cost)
    slowest, starts = list(before), []  # slowest[i]: the slowest of k stages with the first i layers, in their best cut
    for k in range(1, K):
        best, start = [0] * (n + 1), [0] * (n + 1)
        for i in range(k + 1, n + 1):
            best[i], start[i] = min((max(slowest[j], before[i] - before[j]), j) for j in range(k, i))
        slowest = best
        starts.append(start)
    layers, end = [], n
    for start in reversed(starts):
        layers.append(end - start[end])
        end = start[end]
    return [end, *reversed(layers)]
    ### END SOLUTION


# %% test="cut" points=3
check.cut(cut)
### BEGIN HIDDEN TESTS
check.cut(cut, small=[(6, 3), (10, 4), (12, 5), (11, 2)], large=[(200, 8), (35, 7), (120, 16)], seed=52)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Who waits for whom? (3 points)
# Somebody wrote a schedule by hand. If the orders of two stages do not fit together, each waits for the other: the run
# hangs, without a message. Write a function that names the stages that wait, and what each of them waits for.


# %% solution="deadlock"
def deadlock(schedule):
    """Return the stages that wait for ever, and what they wait for.

    schedule: a list of K lists of actions, one for each stage, K from 1 on. The lists may be wrong: in any order,
        with missing actions, or empty. No action is in a list twice.
    Each stage does its actions in order. "F3" on stage s > 0 waits until stage s - 1 has done "F3". "B3"
        waits until its own stage has done "F3", and on stage s < K - 1 until stage s + 1 has done "B3". "U0"
        never waits. Nothing else waits: a send takes no time, and does not wait for its receiver.
    Returns: a dictionary with an item for each stage that does not finish its list: its number, and the
        pair (action, stage) of the action before which it waits for ever and the stage for which it waits. A stage
        that has not done its own "F3" waits before "B3" for itself, whether or not stage s + 1 has done "B3". If
        all stages finish, the dictionary is empty.

    Example: with ["F0", "B0", "F1", "B1", "U0"] on stage 0 and ["F1", "B1", "F0", "B0", "U0"] on stage 1, stage 0
        waits for the gradient of micro-batch 0, and stage 1 for the activations of micro-batch 1: the result is
        {0: ("B0", 1), 1: ("F1", 0)}. With ["F0", "F1", "B0", "B1", "U0"] on stage 0 it is {}.
    """
    ### BEGIN SOLUTION
    K, done, position = len(schedule), set(), [0] * len(schedule)

    def awaited(s, action):
        """Return the stage for which stage s waits before this action; None if it need not wait."""
        if action[0] == "F" and s > 0 and (s - 1, action) not in done:
            return s - 1
        if action[0] == "B" and (s, "F" + action[1:]) not in done:
            return s
        if action[0] == "B" and s < K - 1 and (s + 1, action) not in done:
            return s + 1
        return None

    moved = True
    while moved:
        moved = False
        for s, actions in enumerate(schedule):
            while position[s] < len(actions) and awaited(s, actions[position[s]]) is None:
                done.add((s, actions[position[s]]))
                position[s] += 1
                moved = True
    stuck = [s for s in range(K) if position[s] < len(schedule[s])]
    return {s: (schedule[s][position[s]], awaited(s, schedule[s][position[s]])) for s in stuck}
    ### END SOLUTION


# %% test="deadlock" points=3
check.deadlock(deadlock)
### BEGIN HIDDEN TESTS
check.deadlock(deadlock, healthy=[(4, 5), (1, 3), (6, 9), (3, 2), (2, 120)], circles=[(3, 4), (5, 6), (4, 3)], seed=53)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. Two numbers to know (2 points)
# ### 5a. Versions of the weights (1 point)
# PipeDream (Narayanan et al., SOSP'19) does not wait at the end of a minibatch: a stage updates its weights after each
# backward, while other minibatches are still in the pipeline. So that a backward uses the weights of its forward, the
# stage keeps old versions of its weights: it *stashes* them.


# %% solution="weights_to_stash"
def weights_to_stash(actions):
    """Return how many different versions of its weights a stage has to hold at the same time, at most.

    actions: what the stage does, a list of strings: for each micro-batch "F" once and "B" once, later. "U" is there
        any number of times, each with another number.
    A forward uses the newest version. The backward of the same micro-batch uses the version of its forward.
        "U" makes a new version. The stage has to hold the newest version at all times, and each older one as
        long as a backward is still to use it.
    Returns: a whole number, from 1 on.

    Example: ["F0", "F1", "B0", "U0", "F2", "B1", "U1", "B2", "U2"] gives 2: after "U0" the stage has the newest
        version and that of F1, which B1 needs. After "U1" it has the newest one and that of F2.
    """
    ### BEGIN SOLUTION
    newest, used, most = 0, {}, 1
    for action in actions:
        kind, m = action[0], action[1:]
        if kind == "F":
            used[m] = newest
        elif kind == "B":
            del used[m]
        else:
            newest += 1
        most = max(most, len({newest, *used.values()}))
    return most
    ### END SOLUTION


# %% test="weights_to_stash" points=1
check.weights_to_stash(weights_to_stash)
### BEGIN HIDDEN TESTS
check.weights_to_stash(weights_to_stash, straight=[(3, 9), (5, 14), (1, 4), (6, 3)], rare=[(4, 12, 3), (3, 9, 2)])
### END HIDDEN TESTS

# %% [markdown]
# ### 5b. The bubble, twice (1 point)
# Papers give the bubble in two ways, as two different numbers for the same schedule: relative to the time without any
# bubble, the *ideal* time, and relative to the *total* time, bubble included. Always say which one.


# %% solution="bubble"
def bubble(K, M, v):
    """Return the bubble of a schedule as a pair of floats, (of_ideal, of_total).

    K, M: stages and micro-batches, from 1 on. v: chunks of the model that each stage has, from 1 on. With v = 1 the
        schedule is GPipe or 1F1B. With v > 1 it is the interleaved schedule, whose bubble has 1 / v of the
        seconds; M is then a multiple of K.
    of_ideal: seconds that a stage is idle between the first forward and the last backward of the pipeline, divided
        by the seconds in which it computes.
    of_total: the same idle seconds, divided by all seconds from the first forward to the last backward.

    Example: bubble(4, 3, 1) is (1.0, 0.5): a stage computes for 3 (t_F + t_B), and is idle for as long.
    """
    ### BEGIN SOLUTION
    idle = (K - 1) / v  # in units of t_F + t_B of a whole stage
    return idle / M, idle / (M + idle)
    ### END SOLUTION


# %% test="bubble" points=1
check.bubble(bubble)
### BEGIN HIDDEN TESTS
check.bubble(bubble, cases=[(3, 5, 1), (6, 12, 1), (4, 16, 3), (8, 8, 2), (1, 4, 1), (2, 24, 12)])
### END HIDDEN TESTS

# %% [markdown]
# ## 6. In a few sentences (2 points, graded by hand)
# Your model runs on 8 stages with 16 micro-batches in GPipe's schedule. A colleague changes it to 1F1B "to get rid of
# the bubble". Compute the bubble of the total time before and after, and what 1F1B does save on the first and on the
# last stage. Then name two changes that do make the bubble smaller, and the price of each.

# %% [markdown] manual="wrong_cure" points=2
# The bubble is 7 / 23 = 30 % of the total time, before and after: 1F1B changes the order, not the time. It saves
# memory: stage 0 keeps the activations of 8 micro-batches instead of 16, the last stage those of 1 instead of 16
# (1 point).
#
# Changes that make the bubble smaller (1 point for two of them with prices):
#
# - More micro-batches. They are smaller, and less efficient to compute; or the minibatch is larger. With 1F1B the
#   memory for activations does not grow with their number.
# - The interleaved schedule with v chunks a stage. It needs more than v times as many messages, and stage 0 keeps
#   1 + (K - 1) / (K v) times the activations of 1F1B.
# - Zero bubble: the backward is split into the gradient of the input and that of the weights. The code is more
#   complicated. If both take as long as a forward, H1 keeps a third of the bubble in the memory of 1F1B; H2 has no
#   bubble, and up to twice the activations.
# - PipeDream: no wait at the end of a minibatch. The weights of a gradient are stale, and a stage keeps up to K
#   versions of its weights.
# - Fewer stages. Each has more layers, so it needs more memory, and fewer nodes compute.
