# %% [markdown]
# # Averaging instead of agreeing: exercises
#
# The lectures: [07a](../../notebooks/07a_local_sgd.ipynb), local SGD;
# [07b](../../notebooks/07b_elastic_averaging.ipynb), elastic averaging; [07c](../../notebooks/07c_gossip.ipynb), gossip
# and partial sums; and [07d](../../notebooks/07d_ensembles.ipynb), averaging once. In this notebook machines train with
# weights of their own. You pull them towards a centre, and find out how strong the pull may be. You let them train
# alone between rounds, and count what they send. You average over a graph, and add up the gradients of those machines
# that are ready.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("elastic")` prints a hint; the same call again prints the next one. Functions with an argument `comm` run
# on simulated ranks, in processes of their own. Arrays that a function is given stay as they are. For grading, the same
# checks are made with other sizes. There are 20 points in all. The exercises can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import averaging as check

# %% [markdown]
# p is the number of ranks (`comm.size`), and each rank is a machine. All arrays of numbers are float64. An element of
# an array is also called a *word*. A machine has n weights, an array x of shape (n,).
#
# `comm.all_reduce(array)` adds up the arrays of all ranks, in place. A docstring says how many all-reduces an answer
# makes, and of how many words. A `comm.reduce_scatter` followed by a `comm.all_gather` is an all-reduce, too, and
# counts as one. Other communication is not allowed where a docstring states this cost.
#
# In exercises 1a and 2a, `gradient(x, step)` is the gradient of this machine's own loss at the weights x, an array of
# shape (n,). Steps are counted from 0. Call it once for each step, in order.
#
# ## 1. Elastic averaging (5 points)
# ### 1a. Workers and a centre (3 points)
# Each worker has weights of its own, $x_i$, and all workers know the centre $c$. In some steps a pull ties them
# together:
#
# $$x_i \leftarrow x_i - \eta\, g_i(x_i) - \alpha\,(x_i - c), \qquad c \leftarrow c + \alpha \sum_i (x_i - c),$$
#
# with old values on all right sides. In all other steps a worker makes a plain step of SGD, and the centre stays.


# %% solution="elastic"
def elastic(comm, x, centre, gradient, lr, alpha, period, steps):
    """Train a worker with synchronous elastic averaging.

    x: this worker's weights, of shape (n,). They differ from worker to worker. centre: the same on all ranks, of
        shape (n,).
    gradient: see above. lr: learning rate. alpha: moving rate.
    period: steps 0, period, 2 period, … have a pull. steps: number of steps.
    Returns: (x, centre) after the last step, two arrays of shape (n,). The centre is the same on all ranks, up to
        rounding.
    Cost: one all-reduce of n words in each step that has a pull.

    Example: one worker, x = [1.], centre = [0.], lr = 0.5, alpha = 0.25, gradient(x, step) = x: after a step with a
        pull, x is [0.25] and the centre is [0.25].
    """
    ### BEGIN SOLUTION
    x, centre = x.copy(), centre.copy()
    for step in range(steps):
        slope = gradient(x, step)
        if step % period == 0:
            pull = alpha * (x - centre)
            x -= pull
            comm.all_reduce(pull)
            centre += pull
        x -= lr * slope
    return x, centre
    ### END SOLUTION


# %% test="elastic" points=3
check.elastic(elastic)
### BEGIN HIDDEN TESTS
check.elastic(
    elastic,
    alone=[(1, 4, 2, 5), (1, 1, 1, 3)],
    cases=[(3, 2, 1, 4), (2, 1005, 3, 5), (4, 3, 2, 6), (3, 2, 4, 13)],
    seed=71,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 1b. How strong may the pull be? (2 points)
# Let the loss of each worker be a parabola, h x²/2, with the *curvature* h. All p workers of exercise 1a have the same
# weight x, and the centre is c. A *round* is a step with a pull, and the period - 1 plain steps after it. It multiplies
# (x, c) by a matrix (07b). Training does not diverge as long as the absolute values of both eigenvalues of this matrix
# are at most 1.


# %% solution="elastic_limit"
def elastic_limit(p, lr, curvature, period):
    """Return the largest alpha at which synchronous elastic averaging on a parabola does not diverge.

    p: workers. lr: learning rate. curvature: h, the second derivative of the loss. period: as in exercise 1a.
        0 < lr · curvature < 1.
    Returns: alpha, a number, with a relative error of at most 1e-6. For any larger alpha, training diverges.

    Example: one worker, lr = 0.5, curvature = 1 and period = 1: the limit is 3 / 3.5, about 0.857143. For any lr at
        curvature 1, one worker and period 1, it is (4 - 2 lr) / (4 - lr).
    """
    ### BEGIN SOLUTION
    plain = 1 - lr * curvature  # a step without a pull multiplies x by this
    q = plain ** (period - 1)
    # The matrix is [[q (plain - alpha), q alpha], [p alpha, 1 - p alpha]]. As alpha grows, its smaller eigenvalue
    # falls to -1. There det(matrix + I) = 0, in which alpha² cancels.
    return 2 * (1 + q * plain) / (2 * q + p * (1 + q * plain))
    ### END SOLUTION


# %% test="elastic_limit" points=2
check.elastic_limit(elastic_limit)
### BEGIN HIDDEN TESTS
check.elastic_limit(
    elastic_limit,
    alone=[(1, 0.25, 1.0, 1), (1, 0.125, 2.0, 1)],
    several=[(3, 0.2, 1.0, 1), (900, 0.05, 4.0, 1)],
    periods=[(2, 0.2, 1.5, 3), (6, 0.1, 1.0, 16), (1, 0.75, 1.0, 2), (5, 0.01, 3.0, 10), (3, 0.008, 1.5, 120)],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Local SGD (4 points)
# ### 2a. Steps and rounds (3 points)
# All machines begin with the same weights. A machine makes some steps of SGD by itself, then there is a *round*: each
# machine replaces its weights by the mean of the weights of all machines. *Post-local* SGD has a round after each step
# at first, and long periods later (Lin et al., arXiv:1808.07217).


# %% solution="local_sgd"
def local_sgd(comm, x, gradient, lr, period, steps, first):
    """Train with local SGD.

    x: the weights of the beginning, the same on all ranks, of shape (n,). gradient: as in exercise 1a, this machine's
        own. lr: learning rate. steps: number of steps, at least 1.
    Rounds: after each of the first `first` steps. From there on, after each further `period` steps, and after the last
        step. So there may be fewer than `period` steps before the last round. `first` may be 0, and may be more than
        `steps`.
    Returns: the weights after the last round, an array of shape (n,), the same on all ranks up to rounding.
    Cost: one all-reduce of n words in each round.

    Example: period = 3, steps = 9, first = 2: there are rounds after steps 0, 1, 4, 7 and 8.
    """
    ### BEGIN SOLUTION
    x = x.copy()
    for step in range(steps):
        x -= lr * gradient(x, step)
        if step < first or (step + 1 - first) % period == 0 or step == steps - 1:
            comm.all_reduce(x)
            x /= comm.size
    return x
    ### END SOLUTION


# %% test="local_sgd" points=3
check.local_sgd(local_sgd)
### BEGIN HIDDEN TESTS
check.local_sgd(
    local_sgd,
    synchronous=[(3, 2, 1, 4, 0), (2, 3, 1, 5, 2)],
    periods=[(2, 4, 3, 8, 0), (4, 3, 2, 6, 0), (3, 2, 6, 5, 0), (1, 3, 2, 5, 0), (2, 1020, 1, 110, 0)],
    post_local=[(2, 3, 4, 10, 2), (3, 2, 2, 7, 2), (2, 2, 3, 4, 6), (2, 2, 3, 5, 4)],
    seed=72,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 2b. Count them (1 point)
# The rounds of local SGD and the words that are sent depend on five numbers only, and not on the weights.


# %% solution="rounds_and_words"
def rounds_and_words(p, n, steps, period, first):
    """Return how many rounds `local_sgd` makes, and how many words a machine sends in them.

    p: machines. n: weights. steps, period, first: as in exercise 2a; steps is at least 1.
    Words: the all-reduce is a ring. In it, a machine sends p - 1 messages of n / p words in the reduce-scatter, and as
        many in the all-gather. n / p need not be an integer here.
    Returns: (rounds, words): an integer, and a number of words of one machine, in all rounds.

    Example: rounds_and_words(4, 10, 9, 3, 2) is (5, 75.0).
    """
    ### BEGIN SOLUTION
    alone = min(first, steps)
    rounds = alone + -(-(steps - alone) // period)
    return rounds, rounds * 2 * (p - 1) * n / p
    ### END SOLUTION


# %% test="rounds_and_words" points=1
check.rounds_and_words(rounds_and_words)
### BEGIN HIDDEN TESTS
check.rounds_and_words(
    rounds_and_words,
    cases=[
        (3, 9, 20, 6, 0),
        (3, 1_234_578, 17, 5, 0),
        (8, 100, 64, 16, 0),
        (5, 7, 11, 4, 3),
        (2, 6, 5, 3, 9),
        (1, 4, 7, 2, 0),
        (4, 3, 10, 9, 1),
        (3, 5, 1, 4, 0),
        (5, 7, 9, 4, 2),
        (12, 6_000_000_007, 3000, 8, 5),
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Gossip (5 points)
# ### 3a. A mixing matrix (2 points)
# Machines on a graph average with their neighbours: in a step, machine $i$ takes $\sum_j W_{ij}\, x_j$. If the
# rows of W sum to 1, each machine takes an average. If the columns sum to 1, the mean of all machines stays as it is.
# On a ring, both are easy. On other graphs, machines have different numbers of neighbours.


# %% solution="mixing_matrix"
def mixing_matrix(neighbours):
    """Return a mixing matrix of a graph.

    neighbours: a list; neighbours[i] is the list of the neighbours of machine i, in any order, of p machines. If j is a
        neighbour of i, i is one of j. Each machine can be reached from each other one. i is no neighbour of
        itself. p is at least 1.
    Returns: W, an array of shape (p, p). W[i, j] is above 0 if i and j are neighbours, and 0 if they are not and i is
        not j. W[i, i] is 0 or more. Each row and each column sums to 1.
    Speed: the second largest absolute value of W's eigenvalues, by which the distance to the mean shrinks in each step,
        is at most that of the matrix with weight 1 / (1 + d) for each pair of neighbours, d being the largest number of
        neighbours that any machine has.

    Example: for two machines, [[1], [0]], [[0.5, 0.5], [0.5, 0.5]] is right.
    """
    ### BEGIN SOLUTION
    p = len(neighbours)
    W = np.zeros((p, p))
    for i, near in enumerate(neighbours):
        for j in near:
            W[i, j] = 1 / (1 + max(len(near), len(neighbours[j])))
        W[i, i] = 1 - W[i].sum()
    return W
    ### END SOLUTION


# %% test="mixing_matrix" points=2
check.mixing_matrix(mixing_matrix)
### BEGIN HIDDEN TESTS
check.mixing_matrix(
    mixing_matrix,
    regular=[("ring", 8), ("ring", 3), ("full", 4)],
    irregular=[("star", 7), ("random", 12), ("path", 2), ("two stars", 9), ("path", 6), ("full", 1)],
    seed=73,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 3b. The consensus factor (1 point)
# How fast do machines agree? W has the eigenvalue 1, which belongs to the mean. The others belong to distances from it.


# %% solution="consensus_factor"
def consensus_factor(W):
    """Return the factor by which a step of gossip multiplies the distance to the mean, in the long run.

    W: a matrix of shape (p, p) whose rows and columns sum to 1, without entries below 0. It need not be symmetric.
    Returns: the second largest absolute value of W's eigenvalues, a number, with an error of at most 1e-6. An
        eigenvalue that occurs twice counts twice. If p is 1, the factor is 0.

    Example: for [[0.75, 0.25], [0.25, 0.75]] it is 0.5.
    """
    ### BEGIN SOLUTION
    if len(W) == 1:
        return 0.0
    return float(np.sort(np.abs(np.linalg.eigvals(W)))[-2])
    ### END SOLUTION


# %% test="consensus_factor" points=1
check.consensus_factor(consensus_factor)
### BEGIN HIDDEN TESTS
check.consensus_factor(
    consensus_factor,
    symmetric=[("ring", 9), ("random", 7), ("full", 3), ("full", 1)],
    others=[
        ("two halves", 4),
        ("directed ring", 5),
        ("no own weight", 6),
        ("two groups", 7),
        ("permutations", 8),
        ("two wheels", 8),
    ],
    seed=74,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 3c. Messages between neighbours (2 points)
# Now machines mix by messages. `comm.isend(array, rank)` sends without waiting, and returns a `work`; `work.wait()`
# returns once the message is taken. `comm.recv(rank)` waits for the next array from a rank.


# %% solution="gossip"
def gossip(comm, x, weights, steps):
    """Average with the neighbours, `steps` times.

    x: this machine's array, of shape (n,). weights: this machine's row of a symmetric mixing matrix, as a dictionary:
        weights[j] is W[r, j], r being this rank. It has this rank and its neighbours, and no other rank. steps: number
        of steps, 0 or more.
    Returns: this machine's row of W multiplied `steps` times with the arrays of all machines, of shape (n,).
    Cost: in each step, one message of n words to each neighbour. All machines send at the same time: nobody waits for a
        message before it sends its own of this step. There is no other communication, and no send is under way when
        the function returns.

    Example: two machines with x = [0.] and [8.], weights[j] = 0.75 for a machine itself, and 0.25 for the other one:
        after one step they have [2.] and [6.], after two steps [3.] and [5.].
    """
    ### BEGIN SOLUTION
    others = [rank for rank in weights if rank != comm.rank]
    for _ in range(steps):
        sends = [comm.isend(x, rank) for rank in others]
        mixed = weights[comm.rank] * x
        for rank in others:
            mixed = mixed + weights[rank] * comm.recv(rank)
        for send in sends:
            send.wait()
        x = mixed
    return x.copy()
    ### END SOLUTION


# %% test="gossip" points=2
check.gossip(gossip)
### BEGIN HIDDEN TESTS
check.gossip(
    gossip,
    once=[(("path", 4), 2, 1), (("star", 4), 3, 0), (("ring", 2), 2, 1)],
    often=[
        (("random", 6), 3, 4),
        (("ring", 4), 2, 7),
        (("two stars", 5), 1, 3),
        (("ring", 7), 2, 9),
        (("path", 3), 8500, 3),
    ],
    together=[(("ring", 11), 1, 1), (("path", 9), 2, 1)],
    seed=75,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Majority all-reduce (4 points)
# An all-reduce waits for the slowest machine. A *majority all-reduce* (Li et al., arXiv:1908.04207) waits for one
# machine, which is drawn. All machines draw with the same random numbers, so they need no coordinator. On average, half
# of the other machines are ready before it: hence the name. Machines that are not ready add zeros, and their gradients
# count in a later round.
#
# So a machine has to communicate while it computes. Here, ranks 0 to p - 1 are the communication of p machines: you
# write it. Ranks p to 2p - 1 are their training, which the check plays. Rank p + i sends its gradients to rank i.


# %% given="tree"
def machines(comm, p):
    """The communicator of ranks 0 to p - 1, for all-reduces among them. To make it costs no message."""
    return comm.first_ranks(p)


def tree(p, root, rank):
    """Return the parent of a rank in a tree of ranks 0 to p - 1, and the list of its children.

    The parent of the root is None. A rank has at most ceil(lg p) children. tree(4, 0, 0) is (None, [2, 1]).
    """
    own, bits = (rank - root) % p, (p - 1).bit_length()
    lowest = next((bit for bit in range(bits) if own >> bit & 1), bits)
    parent = None if rank == root else ((own & own - 1) + root) % p
    return parent, [((own | 1 << bit) + root) % p for bit in reversed(range(lowest)) if own | 1 << bit < p]


# %% [markdown]
# `comm.recv({i, j})` waits for an array from rank i or rank j, and returns the one that comes first. `comm.last_source`
# is the rank that sent it. `comm.send(array, rank)` of an empty array, `np.zeros(0)`, does not wait here.


# %% solution="majority"
def majority(comm, p, n, drawn):
    """Communicate for one of p machines: add up the gradients that are ready, in rounds.

    p: machines. n: words of a gradient. This rank is from 0 to p - 1. Training is on rank p + comm.rank: it sends
        gradients, arrays of shape (n,), each when it is ready, without waiting for the rounds. After the last one it
        sends an empty array.
    drawn: a tuple of machines, one for each round: round r is begun by machine drawn[r].
    Rounds: round r begins as soon as round r - 1 is over and machine drawn[r] receives a gradient that is in no round
        yet; it will receive one. This machine activates the others by empty messages, of which each machine sends at
        most ceil(lg p) in a round. Then all machines make one all-reduce of n words. Each machine adds the gradients
        that it has received before it was activated and that are in no round yet, or zeros if there are none.
    Time: if a message takes a second, and a machine sends one at a time, the last machine is activated within
        3 ceil(lg p) seconds.
    Returns: (sums, left). sums: a list with the sum of each round, of shape (n,). left: the sum of the gradients that
        came from this machine's training after its last round, of shape (n,): receive until the empty array. Each
        gradient is in one round, or in what is left, exactly once.

    Example: two machines, drawn = [0, 1], gradients ready after 1 s and 4 s on machine 0, and after 2 s and 3 s on
        machine 1. Round 0 begins at 1 s with one gradient, round 1 at 2 s with one. Machine 0 has the gradient of 4 s
        left, machine 1 that of 3 s.
    """
    ### BEGIN SOLUTION
    group, training = machines(comm, p), p + comm.rank
    pending, is_done, sums = np.zeros(n), False, []
    for root in drawn:
        parent, children = tree(p, root, comm.rank)
        is_active = False
        while not is_active:
            message = comm.recv({training} if parent is None else {training, parent})
            if comm.last_source == parent:
                is_active = True
            elif message.size:
                pending = pending + message
                is_active = comm.rank == root
            else:
                is_done = True
        for child in children:
            comm.send(np.zeros(0), child)
        group.all_reduce(pending)
        sums.append(pending)
        pending = np.zeros(n)
    while not is_done:
        message = comm.recv(training)
        is_done = not message.size
        pending = pending if is_done else pending + message
    return sums, pending
    ### END SOLUTION


# %% test="majority" points=4
check.majority(majority)
### BEGIN HIDDEN TESTS
# kept: machines
check.majority(
    majority,
    even=[(3, 2, 4), (2, 3, 3), (6, 1, 3)],
    uneven=[(3, 2, 4), (5, 2, 3)],
    same=[(5, 1, 2)],
    machines=18,
    seed=76,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. In a few sentences (2 points, graded by hand)
# Eight hospitals train one network together, and the patients of each differ from those of the others. The network
# between them is slow. Somebody proposes local SGD with a period of 1000 steps, somebody else elastic averaging with
# the same period, a third one gossip on a ring with a step of mixing after each step of training. For each of the
# three: what do the machines, or their mean, converge to, or what keeps them from it? Which would you choose, and which
# measurement would change your mind?

# %% [markdown] manual="hospitals" points=2
# With long periods, each machine in local SGD runs nearly to the minimum of its own loss before a round (client drift).
# The mean then stays between these minima, and not at the minimum of the mean loss, because curvatures and minima both
# differ. With elastic averaging, workers also drift between pulls. The centre slowly follows the mean of their weights,
# and does not diverge, but has the same bias with such a period. In gossip, the mean of the machines makes steps of SGD
# with the mean gradient, but each gradient is taken at its own machine's weights. They stay near each other if the
# spectral gap is not small against the learning rate, so the mean comes near the right minimum (1 point).
#
# In gossip on a ring, each machine sends two messages of all weights in each step. If these take less time than the
# gradient, gossip is a good choice. If they take much longer, local SGD with a much shorter period is better: a period
# that is as long as the loss on all hospitals' data allows. To measure: the time of a message
# against that of a gradient; the loss of the mean model on data of all hospitals, for some periods; how far the
# machines move apart within a period. If the shards turn out to be alike, the long period does no harm (1 point).
