# %% [markdown]
# # Memory shared out: exercises
#
# The lectures: [13a](../../notebooks/13a_shared_state.ipynb), optimizer state, gradients and weights divided among the
# ranks; and [13b](../../notebooks/13b_small_card.ipynb), recomputation and offload. In this notebook you compute what a
# rank keeps and sends in each of ZeRO's stages. You write a training step whose optimizer state is divided among the
# ranks. You choose checkpoints and compute gradients with them. Then you schedule the transfers of a model that is
# larger than the device that trains it.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("shard_optimizer")` prints a hint; the same call again prints the next one. Functions with an argument
# `comm` run on simulated ranks, in processes of their own. Lists and arrays that a function is given stay as they are.
# For grading, the same checks are made with other numbers. There are 20 points in all. The exercises can be done in any
# order.

# %% given="setup"
import numpy as np

from course.checks import memory as check

# %% [markdown]
# ## 1. Bytes and traffic (3 points)
# N ranks train a model of P weights by synchronous data parallelism with Adam. Without sharding, every rank keeps all
# optimizer state, all gradients and all weights: N copies of the same numbers. ZeRO (Rajbhandari et al.,
# arXiv:1910.02054) divides them. The P weights are one long vector, cut into N consecutive *ranges*: as equal as
# possible, whole numbers of weights, the longer ranges first, as `np.array_split` does. Rank r keeps:
#
# | stage | optimizer state | gradients | weights |
# |---|---|---|---|
# | 0 | of all weights | of all weights | all |
# | 1 | of range r | of all weights | all |
# | 2 | of range r | of range r | all |
# | 3 | of range r | of range r | range r |
#
# Every stage makes two passes over a ring: a *reduce-scatter* of the gradients, after which rank r has the sum of range
# r, and an *all-gather* of the weights. (In stage 0 the all-gather is of the sums; both together are an all-reduce.)
# Stage 3 makes a third pass. It does not keep the weights, so it gathers them twice, before forward and before
# backward.


# %% solution="memory_and_traffic"
def memory_and_traffic(P, N, stage, is_mixed, r):
    """Return what rank r keeps at the update and what it sends in a step, a pair (nbytes, sent).

    P: number of weights, from 1 on. N: number of ranks, from 1 on, perhaps more than P. stage: 0, 1, 2 or 3.
    r: from 0 to N - 1.
    is_mixed: if True, a weight has 2 bytes and its gradient 2; Adam's state has a 32-bit copy of the weight, a momentum
        and a variance, 4 bytes each. If False, a weight has 4 bytes and its gradient 4; Adam's state is momentum and
        variance, 4 bytes each.
    nbytes: bytes of the state, the gradients and the weights that rank r keeps. Ranges have whole numbers of weights.
        What is there for a moment only, such as gathered weights, does not count.
    sent: how many numbers, not bytes, rank r sends in a step. In a reduce-scatter round the ring it sends every range
        once but its own. In an all-gather it sends every range once but that of the next rank; after rank N - 1 comes
        rank 0.

    Example: memory_and_traffic(7_500_000_000, 64, stage, True, 0) has 120.0, 31.4, 16.6 and 1.88 GB for the stages 0
        to 3. It is (1_875_000_000, 22_148_437_500) for stage 3.
    """
    ### BEGIN SOLUTION
    share, after = (P // N + (rank < P % N) for rank in (r, (r + 1) % N))
    nbytes = 0
    for place, size in enumerate((12, 2, 2) if is_mixed else (8, 4, 4)):
        nbytes += size * (share if stage > place else P)
    gathers = 2 if stage == 3 else 1
    return nbytes, P - share + gathers * (P - after)
    ### END SOLUTION


# %% test="memory_and_traffic" points=3
check.memory_and_traffic(memory_and_traffic)
### BEGIN HIDDEN TESTS
check.memory_and_traffic(
    memory_and_traffic,
    even=[(6_400_000_000, 32), (3_000_000, 12), (35, 5), (1_300_000, 1)],
    ragged=[(2_000_003, 7), (23, 6), (3_100_000_001, 9), (5, 8), (1, 3)],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A step with sharded optimizer state (6 points)
# This is stage 1 as a program. Each rank has all weights, and its gradient of every parameter. It gets the sum of one
# range from a reduce-scatter, updates this range with the state of this range, and gets the other ranges of the new
# weights from an all-gather. A range may begin and end inside a parameter.
#
# One thing needs all ranges: clipping. No rank has the whole gradient, but all need its norm.


# %% solution="shard_optimizer"
def shard_optimizer(comm, weights, gradients, state, update, max_norm):
    """Do one step of training on rank comm.rank, and return the new weights and this rank's state.

    weights: the parameters, a list of float64 arrays of any shapes, the same on all ranks. Some may have no number or
        no axis. All together have P numbers, from 1 on, perhaps fewer than there are ranks.
    gradients: a list of arrays like these, the gradient of this rank's samples. All ranks have as many samples, so the
        gradient of the step is the mean over the ranks.
    state: None in the first step, then what this function returned as the state on this rank.
    update: update(w, g, state) returns (new_w, new_state). w: some of the weights, an array with one axis. g: their
        gradient, an array like it. state: None in the first step, then what update returned for the same weights.
        new_w: the new weights, an array like w. The arrays w and g may be empty.
    max_norm: None, or a number > 0. Then a gradient (the mean, all parameters together) whose norm is larger is
        multiplied by max_norm / norm. The norm is the root of the sum of all squares; it may be 0.
    Returns: a pair (weights, state): the new weights, a list of float64 arrays in the shapes of the old ones, equal on
        all ranks; and whatever this rank needs as its state in the next step.
    Ranges: all parameters in the order of the list, each row by row, are one vector of P numbers. Rank r updates chunk
        r of np.array_split(vector, comm.size), which may be empty, and calls update for no other weights.
    Messages: one comm.reduce_scatter and one comm.all_gather; with max_norm also one comm.all_reduce of one number.
        Nothing else. In each of the first two a rank sends all P float64 numbers except those of one range.
        comm.reduce_scatter(x) returns chunk comm.rank of np.array_split(sum of all x, comm.size), a new array.
        comm.all_gather(x) returns the list of the arrays x of all ranks; they may have different lengths.
        comm.all_reduce(x) returns the sum of the numbers x of all ranks.
    Memory: the state has what update returned for this rank's range, and no other array. It may be None, numbers,
        arrays, and lists, tuples and dictionaries of these; between two steps it leaves the rank's process.

    Example: on one rank, with weights of the shapes (2, 3) and (4,), update is called once, with 10 weights.
    """
    ### BEGIN SOLUTION
    g = comm.reduce_scatter(np.concatenate([each.ravel() for each in gradients])) / comm.size
    if max_norm is not None:
        norm = np.sqrt(comm.all_reduce(float(g @ g)))
        if norm > max_norm:
            g *= max_norm / norm
    own = np.array_split(np.concatenate([each.ravel() for each in weights]), comm.size)[comm.rank]
    own, state = update(own, g, state)
    vector = np.concatenate(comm.all_gather(own))
    parts = np.split(vector, np.cumsum([each.size for each in weights])[:-1])
    return [part.reshape(each.shape) for part, each in zip(parts, weights, strict=True)], state
    ### END SOLUTION


# %% test="shard_optimizer" points=6
check.shard_optimizer(shard_optimizer)
### BEGIN HIDDEN TESTS
check.shard_optimizer(
    shard_optimizer,
    even=[(3, "Adam", 33), (4, "momentum", 1072), (1, "momentum", 11)],
    ragged=[(5, "Adam", 47), (6, "momentum", 4), (3, "Adam", 1)],
    clipped=[(4, "Adam", 37), (3, "momentum", 1024), (5, "Adam", 3)],
    costs=[(3, "momentum", 44), (6, "Adam", 31)],
    rooms=[(4, "momentum", 35), (3, "Adam", 28), (6, "Adam", 5)],
    seed=61,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Recomputation (5 points)
# ### 3a. Which inputs to keep (2 points)
# Backward of a layer needs the layer's input. With *checkpoints* (Chen et al., arXiv:1604.06174), forward keeps the
# inputs of a few layers only. They cut the model into *segments*: each begins with a layer whose input is kept. Before
# a segment's backward, the inputs of its layers are computed again from the kept one.
#
# Memory has all kept inputs, and the inputs of one segment. With k kept inputs of n layers, all equally large, these
# are k + ceil(n / k): about 2 sqrt(n) for the best k. Real layers are not equally large.


# %% solution="checkpoints"
def checkpoints(sizes):
    """Return the layers whose inputs are kept so that the peak is as small as possible.

    sizes: the bytes of the inputs of layers 0 to n - 1, a list of n whole numbers from 1 on. n: from 1 to 40.
    Returns: a list of numbers of layers in ascending order. The first is 0.
    Peak: the bytes of all inputs that are kept, and the bytes of the inputs of the largest segment, its kept one
        included (this one is counted twice, as in k + ceil(n / k)). A segment is a layer in the list and those behind
        it, up to the next one in the list. Among several lists with the smallest peak any is right.

    Example: checkpoints([10] * 9) may be [0, 3, 6]: 3 + 3 inputs of 10 bytes. checkpoints([1, 5, 5, 1, 5, 5]) is
        [0, 3]: 2 bytes are kept, and a segment has 11. For n = 40, all lists are too many to try: there are 2^39.
    """
    ### BEGIN SOLUTION
    n = len(sizes)
    before = [sum(sizes[:b]) for b in range(n + 1)]
    found = []
    for bound in {before[b] - before[a] for a in range(n) for b in range(a + 1, n + 1)}:
        best = [(0, [])]  # best[b]: the fewest kept bytes for the first b layers, and the list
        for b in range(1, n + 1):
            fitting = [a for a in range(b) if before[b] - before[a] <= bound]
            choices = [(best[a][0] + sizes[a], a) for a in fitting if best[a]]
            least, a = min(choices, default=(0, None))
            best.append((least, [*best[a][1], a]) if choices else None)
        if best[n]:
            found.append((best[n][0] + bound, best[n][1]))
    return min(found)[1]
    ### END SOLUTION


# %% test="checkpoints" points=2
check.checkpoints(checkpoints)
### BEGIN HIDDEN TESTS
check.checkpoints(
    checkpoints, equal=[(25, 3), (16, 1), (11, 7), (1, 6), (2, 3), (5, 1)], drawn=[6, 11, 19, 25], seed=62
)
### END HIDDEN TESTS

# %% [markdown]
# ### 3b. Backward with recomputation (3 points)
# The price is at most one more forward. Without checkpoints, every input would be computed again from the start of the
# model, which takes about n / 2 forwards in all. The gradients are the same to the bit.


# %% solution="recomputed_gradients"
def recomputed_gradients(forward, backward, n, keep, x):
    """Return the loss and the gradients of a model of n layers that keeps only some inputs, (loss, gradients).

    n: number of layers, from 1 on. keep: the layers whose inputs are kept, a list in ascending order that begins
        with 0. x: the input of layer 0, a matrix.
    forward: forward(i, x) returns the output of layer i for its input x: the input of layer i + 1, a new matrix.
        The output of layer n - 1 is the loss, a number.
    backward: backward(i, x, g) returns (gx, gw) for layer i with input x. g: the gradient of the loss with respect to
        the output of layer i, a matrix like this output; for layer n - 1 it is 1.0. gx: the gradient with respect
        to x. gw: the gradient with respect to the layer's weights.
    Returns: the loss, and the list of the n gradients gw, layer 0's first.
    Memory: at most k + m inputs are alive at a time, k = len(keep), m the number of layers of the longest segment.
        x counts, and whatever forward has returned (but the loss), as long as a variable, list or dictionary refers
        to it. So do copies, in any form. Gradients gw do not count. A gx is released once the next backward is done.
    Calls: the first forward calls forward(i, ...) once for each layer. After it, backward is called once for each
        layer, and forward at most once more for each layer whose output is neither kept nor the loss.

    Example: with n = 4 and keep = [0, 2], forward is called for the layers 0, 1, 2, 3, then 2; backward for 3 and 2;
        then forward for 0; and backward for 1 and 0.
    """
    ### BEGIN SOLUTION
    kept, gradients, g = {}, [None] * n, 1.0
    for i in range(n):
        if i in keep:
            kept[i] = x
        x = forward(i, x)
    loss, end = x, n
    for start in reversed(keep):
        inputs = [kept[start]]
        for i in range(start, end - 1):
            inputs.append(forward(i, inputs[-1]))
        for i in reversed(range(start, end)):
            g, gradients[i] = backward(i, inputs.pop(), g)
        end = start
    return loss, gradients
    ### END SOLUTION


# %% test="recomputed_gradients" points=3
check.recomputed_gradients(recomputed_gradients)
### BEGIN HIDDEN TESTS
check.recomputed_gradients(
    recomputed_gradients,
    runs=[
        (12, (4, 8)),
        (11, (1, 3, 9)),
        (1, ()),
        (6, (1, 2, 3, 4, 5)),
        (9, ()),
        (25, (5, 12, 17, 21)),
        (350, (90, 210)),
    ],
    measured=(60, (9, 18, 27, 36, 45, 54)),
    seed=63,
)
# kept: measured
### END HIDDEN TESTS

# %% [markdown]
# ## 4. A model larger than its device (4 points)
# The host has the weights of all units of a model (a *unit* may be a layer, or a few). The device computes, and holds a
# few units at a time. A link between them transfers a unit in either direction, in both at the same time. A schedule is
# a list of actions with the units 0 to n - 1:
#
# - `"+3"`: the device fetches the weights of unit 3. From its beginning on, unit 3 takes a place on the device.
# - `"F3"`, `"B3"`: the device computes the forward or the backward of unit 3. It needs the unit's weights. After the
#   backward, the gradient is in their place.
# - `"-3"`: unit 3 is evicted: its weights are dropped (the host has them), and its place is free.
# - `"G3"`: the gradient of unit 3 is sent to the host. At the end its place is free.
#
# Every action begins as soon as it may, whatever is behind it in the list. It waits only for actions before it in the
# list:
#
# - a fetch for all earlier fetches, and for all earlier `-` and `G`;
# - a forward or a backward for all earlier forwards and backwards, and for the fetch of its unit;
# - `-` for the last action with its unit;
# - `G` for the backward of its unit, and for all earlier `G`.
#
# So `"+0", "+1", "F0", "-0", "+2", "F1"` fetches unit 2 while unit 1 computes, if two units fit. A fetch and a
# send-back take as long as the link needs for a unit, an eviction takes no time.


# %% solution="fetch_schedule"
def fetch_schedule(n, size, room):
    """Return the schedule of a training step as a list of strings.

    n: number of units, from 1 on. size: bytes of a unit's weights, and of its gradient. room: bytes that the device has
        for units, at least size, perhaps enough for all. At the beginning the device is empty.
    The list has "F0" to f"F{n - 1}", then f"B{n - 1}" to "B0", each once and in this order, and each of "G0" to
        f"G{n - 1}" once. Units that are not on the device are fetched before they compute. The device never has more
        units, weights and gradients, than fit.
    Fetches: as few as possible. Some units can stay from forward to backward.
    Time: from the first fetch to the last send-back as few seconds as possible, whatever a transfer and the forward and
        the backward of each unit take.

    Example: fetch_schedule(2, 5, 5) is ["+0", "F0", "-0", "+1", "F1", "B1", "G1", "+0", "B0", "G0"]. With room for
        both units, fetch_schedule(2, 5, 12) is ["+0", "+1", "F0", "F1", "B1", "G1", "B0", "G0"].
    """
    ### BEGIN SOLUTION
    places = min(n, room // size)
    actions = [f"+{i}" for i in range(places)]
    for i in range(n):
        actions.append(f"F{i}")
        if i + places < n:
            actions += [f"-{i}", f"+{i + places}"]
    for i in reversed(range(n)):
        actions += [f"B{i}", f"G{i}"]
        if i >= places:
            actions.append(f"+{i - places}")
    return actions
    ### END SOLUTION


# %% test="fetch_schedule" points=4
check.fetch_schedule(fetch_schedule)
### BEGIN HIDDEN TESTS
check.fetch_schedule(
    fetch_schedule,
    cases=[(7, 12, 29), (4, 5, 15), (6, 3, 3), (5, 6, 30), (2, 1, 7), (1, 8, 9), (11, 30, 130), (110, 7, 33)],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. In a few sentences (2 points, graded by hand)
# A model of 7.5 billion weights is trained on 64 GPUs of 40 GB, in mixed precision with Adam: without sharding it needs
# 120 GB a GPU. Activations need up to 12 GB. A colleague wants stage 3 "because it needs the least memory", another
# wants checkpoints instead of any stage. Which stage do you take, and what does it cost in traffic compared with stage
# 0 and with stage 3? Then say what checkpoints can and cannot do here.

# %% [markdown] manual="which_stage" points=2
# Stage 2 (1 point with the traffic). It needs 16.6 GB and 12 GB of activations, 28.6 GB in all. Stage 1 needs 31.4 GB
# and 12 GB, 43.4 GB, which is too much. Stage 2 sends as many numbers as stage 0, about 2 P a rank, since an all-reduce
# is a reduce-scatter and an all-gather. Stage 3 fits as well, but sends 3 P, half as much again, and its all-gathers
# delay forward and backward unless they overlap with them.
#
# Checkpoints save activations only, for one more forward, about a third more computing (1 point). Without a stage, the
# 120 GB of weights, gradients and state do not fit, however few activations are kept. Together with stage 1 they can
# help: 31.4 GB leave 8.6 GB, and checkpoints may bring the 12 GB below that.
