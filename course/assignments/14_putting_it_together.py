# %% [markdown]
# # Putting it together: exercises
#
# The lectures: [14a](../../notebooks/14a_experts.ipynb), mixtures of experts;
# [14b](../../notebooks/14b_which_go_together.ipynb), which ways of sharing go together; and
# [14c](../../notebooks/14c_the_planner.ipynb), the planner. In this notebook you route tokens to experts. You write a
# training step whose experts are divided among the ranks. You compute how long a step takes with data, pipeline and
# tensor parallelism at once. Then you search for the best plan of a model on a cluster.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("moe_step")` prints a hint; the same call again prints the next one. Functions with an argument `comm`
# run on simulated ranks, in processes of their own. Arrays that a function is given stay as they are. For grading,
# the same checks are made with other numbers. There are 20 points in all. The exercises can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import putting_it_together as check

# %% [markdown]
# ## 1. Which expert reads which token (5 points)
# A *mixture of experts* has E feed-forward networks in place of one, its experts. A *gate* gives each token a score
# for each expert, and the token goes to the k experts of its highest scores: its first choice, its second choice, ...
# So the layer has the weights of E networks, and the arithmetic of k.
#
# An expert has a fixed number of *slots*, its *capacity*: how many tokens it can read. What exceeds that is
# *dropped*: this expert adds nothing for this token. Slots are given away as in GShard (Lepikhin et al.,
# arXiv:2006.16668, algorithm 1): first to the first choices of all tokens, in the order of the tokens; then to the
# second choices of all tokens; and so on.
#
# Nothing in the model's own loss keeps a gate from sending all tokens to one expert. The *load-balancing loss* does
# (Fedus et al., arXiv:2101.03961, equation 4, here without its factor alpha).


# %% solution="route"
def route(scores, k, capacity):
    """Return the slots of the tokens, their gates, and the load-balancing loss: (slots, gates, loss).

    scores: float64, of shape (T, E), T and E from 1 on: the gate's scores of T tokens for E experts. They may be
        large, such as 1000. The probabilities p are the softmax of each row.
    k: experts that a token chooses, from 1 to E. Choice 0 is the expert of its highest score, choice 1 that of the
        next one, ... Among equal scores, the expert of the lower number comes first.
    capacity: slots of each expert, from 1 on. Expert e has the slots e * capacity to e * capacity + capacity - 1.
    slots: integers, of shape (T, k): the slot of each choice, or -1 where it is dropped. Each expert gives away its
        slots in ascending order: choice 0 of all tokens comes before choice 1 of any token; within the same choice,
        the token of the lower number comes first.
    gates: float64, of shape (T, k): with k = 1, p of the chosen expert. With more, p divided by the sum of the p of
        the token's k choices, dropped ones included. Where a choice is dropped, its gate is 0.
    loss: E times the sum over all experts i of f_i P_i. f_i: the share of the T tokens whose choice 0 is expert i,
        dropped ones included. P_i: the mean of p_i over all tokens.

    Example: scores = np.log([[.7, .2, .1], [.6, .3, .1], [.5, .1, .4]]) are of three tokens. With k = 1 and
        capacity 2, slots is [[0], [1], [-1]], gates is [[.7], [.6], [0]], and the loss is 3 · 1 · .6 = 1.8. With
        k = 2, token 2 still has slot 4 at its second choice, expert 2, with the gate .4 / .9.
    """
    ### BEGIN SOLUTION
    T, E = scores.shape
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    choices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    slots, taken = np.full((T, k), -1), np.zeros(E, int)
    for j in range(k):
        for t, e in enumerate(choices[:, j]):
            if taken[e] < capacity:
                slots[t, j] = e * capacity + taken[e]
                taken[e] += 1
    gates = np.take_along_axis(p, choices, axis=1)
    if k > 1:
        gates /= gates.sum(axis=1, keepdims=True)
    f = np.bincount(choices[:, 0], minlength=E) / T
    return slots, np.where(slots >= 0, gates, 0.0), E * float(f @ p.mean(axis=0))
    ### END SOLUTION


# %% test="route" points=5
check.route(route)
### BEGIN HIDDEN TESTS
check.route(
    route,
    single=[(12, 5, 1, 3), (25, 7, 1, 5), (9, 3, 1, 9), (1, 5, 1, 1), (13, 1, 1, 7)],
    several=[(11, 3, 2, 6), (25, 5, 2, 9), (17, 7, 3, 6), (9, 3, 3, 5), (1, 7, 2, 1)],
    ties=[(27, 7, 1, 5), (22, 5, 2, 7)],
    long=(1207, 9, 2, 230),
    seed=71,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A step with experts on several ranks (6 points)
# p ranks train the same layer of experts by data parallelism: each has tokens of its own, and routes them. The
# experts are divided: rank r has the n experts r n to r n + n - 1, E = p n in all. So a token has to travel to the
# rank of its expert, and the output has to travel back. With `comm.all_to_all`, each rank sends each other rank
# something else, in one collective. Every rank has its own slots for each expert, `capacity` of them, so that no rank
# has to know how the others have routed.
#
# Around the layer is a skip connection: y = x + the sum over the token's choices of gate · expert(x). A token whose
# choices are all dropped passes unchanged.
#
# An expert is a layer with tanh here; its last row of weights is the bias. It is given, with its gradients.


# %% given="expert"
def expert(w, x):
    """The outputs of an expert with weights w, of shape (d + 1, d), for rows x, of shape (rows, d)."""
    return np.tanh(x @ w[:-1] + w[-1])


def expert_gradients(w, x, g):
    """The gradients of x and of w, the latter summed over the rows; g: that of `expert(w, x)`."""
    inner = g * (1 - expert(w, x) ** 2)
    return inner @ w[:-1].T, np.concatenate([x.T @ inner, inner.sum(axis=0, keepdims=True)])


# %% solution="moe_step"
def moe_step(comm, x, slots, gates, experts, capacity, target):
    """Do forward and backward of a layer of experts on rank comm.rank, and return (y, gx, ggates, gw).

    x: this rank's tokens, float64, of shape (T, d). Ranks may have different T, also 0.
    slots, gates: of shape (T, k), as in exercise 1, for the tokens of this rank and all E experts. Choice j of token
        t has slot slots[t, j] of this rank's slots, which is of expert slots[t, j] // capacity; or -1: it is dropped,
        and gates[t, j] is 0.
    experts: the weights of this rank's n experts, float64, of shape (n, d + 1, d). All ranks have the same n.
    capacity: slots that each expert has for each rank. It is the same on all ranks.
    target: like x. The loss is half the sum of the squares of y - target over all tokens of all ranks, so the
        gradient with respect to y is y - target.
    y: like x. y[t] = x[t] + the sum over the choices j that are not dropped of gates[t, j] * expert(w, x[t]). w: the
        weights of the expert of choice j.
    gx: the gradient of the loss with respect to x, with slots and gates as given. ggates: that with respect to gates;
        of dropped choices it is 0.
    gw: the gradient of the loss with respect to the weights of this rank's experts, of the same shape as experts. The
        tokens of all ranks contribute to it.
    Messages: four comm.all_to_all and nothing else: the tokens to their experts, the outputs back; the gradients of
        the experts' outputs there, those of their inputs back. In each, a rank sends every other rank all slots of n
        experts, n * capacity * d float64 numbers; empty slots are sent, too.
        comm.all_to_all(parts) sends parts[i], an array, to rank i, and returns the list of what came, item i from
        rank i.

    Example: on two ranks with n = 1 and capacity = 3, and with slots = [[4], [-1], [0]] on rank 1, the slots of its
        tokens 0 and 2 are number 1 of expert 1 and number 0 of expert 0. Rank 1 sends to rank 0 three rows: x[2] and
        two of zeros.
    """
    ### BEGIN SOLUTION
    p, n, d = comm.size, len(experts), x.shape[1]
    kept = slots >= 0
    tokens, places, weights = np.nonzero(kept)[0], slots[kept], gates[kept][:, None]

    def to_experts(rows):
        buffer = np.zeros((p * n * capacity, d))
        buffer[places] = rows
        return np.concatenate(comm.all_to_all(list(buffer.reshape(p, n, capacity, d))), axis=1)

    def to_tokens(rows):
        shares = [np.ascontiguousarray(share) for share in np.split(rows, p, axis=1)]
        return np.concatenate(comm.all_to_all(shares)).reshape(-1, d)[places]

    read = to_experts(x[tokens])
    outputs = to_tokens(np.stack([expert(w, rows) for w, rows in zip(experts, read, strict=True)]))
    y = x.copy()
    np.add.at(y, tokens, weights * outputs)

    g = y - target
    ggates = np.zeros(gates.shape)
    ggates[kept] = (g[tokens] * outputs).sum(axis=1)
    came = to_experts(weights * g[tokens])
    both = [expert_gradients(w, rows, back) for w, rows, back in zip(experts, read, came, strict=True)]
    gx = g.copy()
    np.add.at(gx, tokens, to_tokens(np.stack([of_rows for of_rows, _ in both])))
    return y, gx, ggates, np.stack([of_weights for _, of_weights in both])
    ### END SOLUTION


# %% test="moe_step" points=6
check.moe_step(moe_step)
### BEGIN HIDDEN TESTS
check.moe_step(
    moe_step,
    cases=[
        (2, 1, 3, 5, 1, 7),
        (4, 2, 2, 3, 1, 10),
        (3, 1, 4, 6, 2, 7),
        (3, 3, 3, 5, 2, 2),
        (1, 5, 2, 3, 2, 7),
        (5, 2, 3, 2, 3, 9),
        (2, 1, 1, 1, 1, 2),
        (2, 1, 35, 33, 1, 47),
    ],
    seed=72,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. How long a step takes (4 points)
# A transformer of L layers of width h is trained on a cluster by three ways at once: dp *replicas*; in each a
# pipeline of pp *stages*; in each stage tp *shards* of every layer. A rank is one accelerator; a node has several.
# Ranks are numbered as in chapter 10: from one rank to the next, the shard changes first, then the stage, then the
# replica. So the ranks of a tp group are neighbours, those of a pipeline are tp apart, and those of a dp group are
# tp · pp apart.
#
# What each rank does in a step (as in Narayanan et al., arXiv:2104.04473, simplified):
#
# - A minibatch has `batch` samples of s tokens. Each replica computes its share in m *micro-batches* of b samples:
#   batch = dp · m · b.
# - A layer has 12 h h weights. A stage has L / pp layers, and a shard 1 / tp of each. Forward takes 2 operations for
#   each weight of the rank and each token, backward 4.
# - *tp*: for each micro-batch, every layer of the stage makes two all-reduces in forward and two in backward over the
#   tp ranks, each of the activations of the micro-batch: h numbers for each token.
# - *pp*: for each micro-batch, a stage sends these activations to the next stage, one message, and their gradients to
#   the one before, one message. This is counted alike for all stages. Each of the tp ranks sends all of them.
# - The *bubble*: a stage waits as long as pp - 1 micro-batches take it, with all-reduces and hand-over.
# - *dp*: at the end of the step, one all-reduce over the dp replicas of the gradients that a rank has.
#
# Nothing overlaps: these times add up. A number has 2 bytes. A message of n bytes takes alpha + n · beta. An
# all-reduce of n bytes over q ranks goes round a ring: 2 (q - 1) messages of n / q bytes, one after the other.
#
# To try your function on the example, write `from course.probes.putting_it_together import Cluster, Model`. The fields
# of both are in the order of the docstring: `Model(12, 1024, 16, 512)`.


# %% solution="step_time"
def step_time(plan, batch, model, cluster):
    """Return how long each part of a training step takes, in seconds: (compute, tensor, handover, bubble, data).

    plan: (dp, pp, tp, b), whole numbers from 1 on; b: samples of a micro-batch. pp divides the layers, tp the heads
        and so the width, dp * b the batch, and dp * pp * tp is cluster.ranks.
    batch: samples of a minibatch, of all replicas.
    model: has the attributes layers (L), width (h), heads, context (s).
    cluster: has the attributes ranks; per_node, the ranks of a node; flops, operations that a rank makes in a second;
        memory; and inside and between, two pairs (alpha, beta) in seconds and seconds a byte.
    Links: a group of q ranks that are a apart uses the link inside if a * q divides per_node: then it is within a
        node. Otherwise it uses the link between.
    compute: forward and backward of m micro-batches. tensor: the all-reduces over tp of all m. handover: the messages
        between stages for all m, 0 if pp is 1. bubble: as above. data: the all-reduce over dp.

    Example: 12 layers of width 1024 with 16 heads, 512 tokens, on 16 ranks of 1e14 operations a second, 8 on a node,
        with inside = (3e-6, 5e-12) and between = (2e-5, 1e-10). With the plan (2, 2, 4, 2) and a batch of 24, m is 6.
        The result is (0.00695785, 0.00485692, 0.000161829, 0.0019961, 0.00381487): tensor and handover stay within a
        node, data does not.
    """
    ### BEGIN SOLUTION
    dp, pp, tp, b = plan
    m, layers = batch // (dp * b), model.layers // pp
    weights = layers * 12 * model.width**2 / tp
    nbytes = 2 * b * model.context * model.width

    def link(apart, q):
        return cluster.inside if cluster.per_node % (apart * q) == 0 else cluster.between

    def ring(q, nbytes, alpha, beta):
        return 2 * (q - 1) * (alpha + nbytes / q * beta)

    compute = m * 6 * weights * b * model.context / cluster.flops
    tensor = m * layers * 4 * ring(tp, nbytes, *link(1, tp))
    alpha, beta = link(tp, pp)
    handover = m * 2 * (alpha + nbytes * beta) if pp > 1 else 0.0
    bubble = (pp - 1) * (compute + tensor + handover) / m
    return compute, tensor, handover, bubble, ring(dp, 2 * weights, *link(tp * pp, dp))
    ### END SOLUTION


# %% test="step_time" points=4
check.step_time(step_time)
### BEGIN HIDDEN TESTS
check.step_time(
    step_time,
    pure=[
        (1, 1, 1, 2, 6, 5, 3, 8),
        (7, 1, 1, 3, 2, 6, 5, 7),
        (1, 6, 1, 2, 5, 3, 7, 6),
        (1, 1, 5, 3, 2, 7, 1, 5),
        (5, 1, 1, 3, 1, 2, 6, 1),
        (1, 5, 1, 1, 1, 2, 3, 1),
        (1, 1, 3, 5, 2, 6, 2, 1),
    ],
    mixed=[(5, 2, 3, 3, 7, 2, 5, 30), (2, 5, 3, 1, 6, 2, 3, 1), (3, 2, 7, 5, 1, 3, 2, 42)],
    links=[
        (4, 3, 2, 2, 5, 3, 2, 6),
        (3, 7, 2, 3, 5, 2, 3, 2),
        (2, 5, 3, 1, 6, 4, 2, 8),
        (2, 2, 4, 5, 3, 2, 3, 16),
        (5, 1, 2, 3, 2, 3, 4, 10),
        (3, 4, 1, 2, 5, 2, 3, 6),
    ],
    seed=73,
)
# kept: pure, mixed, links
### END HIDDEN TESTS

# %% [markdown]
# ## 4. The best plan (3 points)
# Once the time of each plan is known, the best one is found by trying all. But a plan must fit. A rank keeps 16 bytes
# for each of its weights: in 16 bits with Adam these are the weight, its gradient and the optimizer's state. And it
# keeps activations, 34 bytes for each number that enters a layer (Korthikanti et al., arXiv:2205.05198, equation 4,
# without the matrices of attention), of all micro-batches in flight. With the schedule 1F1B of chapter 11, these are at
# most pp, on the first stage.


# %% solution="best_plan"
def best_plan(model, cluster, batch, seconds):
    """Return the plan (dp, pp, tp, b) of the fastest step that fits in memory, or None if no plan fits.

    model, cluster, batch: as in exercise 3.
    seconds: seconds(dp, pp, tp, b) returns the seconds of a step, as in exercise 3. It raises ValueError for what is
        no plan. A call takes much longer than arithmetic does: call it for plans that fit.
    Plans: dp, pp, tp and b are whole numbers from 1 on. dp * pp * tp is cluster.ranks, all of them are used. pp
        divides model.layers, tp divides model.heads, and dp * b divides batch; m = batch / (dp b) is the number of
        micro-batches.
    Memory: a rank has L / pp layers, and 1 / tp of each. It needs 16 bytes for each of its weights, 12 h h a layer.
        For each micro-batch in flight, it needs 34 bytes for each number of the activations of its layers, b s h / tp
        numbers a layer. min(pp, m) micro-batches are in flight. A plan fits if this is at most cluster.memory bytes.
        All these are whole numbers.
    Returns: four whole numbers, or None. If several plans that fit are equally fast, any of them is right.

    Example: on 2 ranks, 2 layers with h = 320, 4 heads and s = 100 are trained with a batch of 4. (2, 1, 1, 1) needs
        16 · 2 · 12 · 320² + 34 · 2 · 100 · 320 = 41 497 600 bytes. (1, 2, 1, 1) needs half of the first summand, and
        as much as the second one for 2 micro-batches of one layer: 21 836 800 bytes. If these are more than
        cluster.memory, and so are those of the six other plans, the result is None.
    """
    ### BEGIN SOLUTION
    best, least = None, np.inf
    for pp in range(1, cluster.ranks + 1):
        for tp in range(1, cluster.ranks // pp + 1):
            dp = cluster.ranks // (pp * tp)
            if dp * pp * tp != cluster.ranks or model.layers % pp or model.heads % tp or batch % dp:
                continue
            layers = model.layers // pp
            state = 16 * layers * 12 * model.width**2 // tp
            for b in range(1, batch // dp + 1):
                if batch % (dp * b):
                    continue
                kept = 34 * layers * b * model.context * model.width // tp
                if state + min(pp, batch // (dp * b)) * kept > cluster.memory:
                    continue
                took = seconds(dp, pp, tp, b)
                if took < least:
                    best, least = (dp, pp, tp, b), took
    return best
    ### END SOLUTION


# %% test="best_plan" points=3
check.best_plan(best_plan)
### BEGIN HIDDEN TESTS
check.best_plan(best_plan, seed=74)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. In a few sentences (2 points, graded by hand)
# A model is trained on 64 ranks, 8 on a node, with dp = 2, pp = 4, tp = 8 and m = 8 micro-batches. You get 64 ranks
# more; the minibatch stays. A colleague wants to double dp, another pp, a third tp. For each, say which terms of the
# step's time shrink, which do not, and what a rank needs in memory. Then a fourth colleague replaces the feed-forward
# network of each layer by 16 experts with k = 1, divided among the replicas. What does this change in the weights, in
# the arithmetic and in the messages? What happens if all tokens choose the same expert?

# %% [markdown] manual="twice_as_many" points=2
# Doubled dp: m is halved, and compute, tensor and handover with it. The bubble is as long as before, so its share
# grows. The all-reduce over dp has as many bytes, and takes half as long again, since (dp - 1) / dp grows from 1/2 to
# 3/4. A rank needs as much memory as before. Doubled pp: compute and tensor are halved, handover is not. The bubble
# has 7 micro-batches instead of 3, each of about half the time, so it takes even longer. The weights of a rank and
# its gradients are halved; its activations are not, since 8 micro-batches of half the layers are in flight. Doubled
# tp: compute is halved, weights and activations too, but tp = 16 leaves the node: four all-reduces for each layer and
# micro-batch go over the slow link, so tensor grows, and the bubble with it (1 point).
#
# Experts: the feed-forward networks have 16 times as many weights, of which a rank keeps 8 networks instead of one.
# The arithmetic is the same (and a little for the gate), since a token meets one expert. New are four all-to-alls for
# each layer and micro-batch between the replicas. Their experts' gradients need no sum over these two replicas. If
# all tokens choose one expert, its slots are taken at once and most tokens are dropped: they pass through the skip
# connection alone, and the other experts learn nothing. The load-balancing loss pushes the gate away from that (1
# point).
