# %% [markdown]
# # Tensor parallelism: exercises
#
# The lectures: [10a](../../notebooks/10a_dividing_a_layer.ipynb), how to divide a layer over several ranks;
# [10b](../../notebooks/10b_groups.ipynb), groups of ranks; and [10c](../../notebooks/10c_grids.ipynb), grids. In this
# notebook you divide the layers of a transformer: linear layers, an MLP, attention, the embedding and the loss. You
# multiply matrices on a grid of ranks. You find the groups of ranks that data, pipeline and tensor parallelism need,
# and the grid that sends the fewest words.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("mlp")` prints a hint; the same call again prints the next one. Functions with an argument `comm` run on
# simulated ranks, in processes of their own. Arrays that a function is given stay as they are. For grading, the same
# checks are made with other sizes. There are 20 points in all. The exercises can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import tensor_parallelism as check

# %% [markdown]
# p is the number of ranks (`comm.size`). All arrays of numbers are float64. An element of an array is also called a
# *word*. The samples of a minibatch are the rows of a matrix x. A linear layer computes y = x w + b. g always is the
# gradient of the loss with respect to y. The gradients of a linear layer are gx = g wᵀ, gw = xᵀ g and, for the bias,
# the sum of g's rows.
#
# An array is *whole* if all of it is on the rank, with the same numbers on all ranks. Otherwise it is *divided*: each
# rank has its *shard*, some of the columns or rows. The shards of all ranks together are the array; they may differ in
# size.
#
# A *partial sum* is an array of the right shape that becomes right only when those of all ranks are added up. That is
# done by `comm.all_reduce(array)`, in place. A docstring says how many all-reduces an answer may make, and of how many
# words. A `comm.reduce_scatter` followed by a `comm.all_gather` is an all-reduce, too, and counts as one. Other
# communication is not allowed where a docstring states this cost.
#
# ## 1. Two ways to divide a linear layer (3 points)
# ### 1a. By columns (1.5 points)
# Each rank has some columns of w, so it computes some columns of y.


# %% solution="column_linear"
def column_linear(comm, x, w, b, g):
    """Compute the forward and the backward of a linear layer whose weights are divided by columns.

    x: the input, whole, of shape (B, m). w: this rank's columns of the weights, of shape (m, own): `own` may
        differ from rank to rank. b: the elements of the bias for these columns, of shape (own,).
    g: the gradient of the loss with respect to this rank's columns of y, of shape (B, own).
    Returns: (y, gx, gw, gb), arrays. y: this rank's columns of the output, of shape (B, own). gx: the gradient of
        the loss with respect to x, whole, of shape (B, m). gw, gb: the gradients with respect to w and b, of
        the shapes of these.
    Cost: one all-reduce of B m words.

    Example: on one rank it returns x @ w + b, g @ w.T, x.T @ g and g.sum(axis=0).
    """
    ### BEGIN SOLUTION
    gx = g @ w.T
    comm.all_reduce(gx)  # every rank's columns of y depend on all of x
    return x @ w + b, gx, x.T @ g, g.sum(axis=0)
    ### END SOLUTION


# %% test="column_linear" points=1.5
check.column_linear(column_linear)
### BEGIN HIDDEN TESTS
check.column_linear(
    column_linear, cases=[(2, 5, 3, 6), (3, 4, 6, 7), (1, 3, 4, 5), (4, 6, 3, 9), (2, 30, 50, 7)], seed=61
)
### END HIDDEN TESTS

# %% [markdown]
# ### 1b. By rows (1.5 points)
# Each rank has some rows of w, and needs only the columns of x that these rows are multiplied with.


# %% solution="row_linear"
def row_linear(comm, x, w, b, g):
    """Compute the forward and the backward of a linear layer whose weights are divided by rows.

    x: this rank's columns of the input, of shape (B, own): `own` may differ from rank to rank. w: this rank's
        rows of the weights, of shape (own, n). b: the bias, whole, of shape (n,).
    g: the gradient of the loss with respect to y, whole, of shape (B, n).
    Returns: (y, gx, gw, gb), arrays. y: the output, whole, of shape (B, n). gx: the gradient with respect to this
        rank's columns of x, of shape (B, own). gw, gb: the gradients with respect to w and b, of the shapes
        of these.
    Cost: one all-reduce of B n words.

    Example: on one rank it returns x @ w + b, g @ w.T, x.T @ g and g.sum(axis=0).
    """
    ### BEGIN SOLUTION
    y = x @ w
    comm.all_reduce(y)
    return y + b, g @ w.T, x.T @ g, g.sum(axis=0)
    ### END SOLUTION


# %% test="row_linear" points=1.5
check.row_linear(row_linear)
### BEGIN HIDDEN TESTS
check.row_linear(row_linear, cases=[(2, 5, 6, 3), (3, 4, 7, 6), (1, 3, 5, 4), (4, 6, 9, 3), (2, 30, 7, 50)], seed=62)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. An MLP (3 points)
# An MLP of a transformer has two linear layers with a GELU between them: it computes y = gelu(x w1 + b1) w2 + b2. Its
# h *hidden units* are the columns of w1 and the rows of w2. Divide both weights over the ranks so that the fewest words
# are sent (Shoeybi et al., arXiv:1909.08053, section 3).
#
# From here on, large weights are not on the ranks at the beginning: they are in a file that all ranks can read. The
# argument `w1` is the file's array: `w1.shape` is its shape, and `w1[rows, columns]` reads elements of it and returns a
# numpy array. The index is that of numpy: slices such as `w1[:, 3:5]` and lists of indices such as `w1[:, [0, 4]]`.
# Each rank has room for its shard only.


# %% given="gelu"
def gelu(z):
    """The GELU of each element."""
    return 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))


def gelu_slope(z):
    """The derivative of gelu at each element of z."""
    t = np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))
    return 0.5 * (1 + t) + 0.5 * z * (1 - t**2) * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * z**2)


# %% solution="mlp"
def mlp(comm, x, w1, b1, w2, b2, g):
    """Compute the forward and the backward of an MLP whose hidden units are divided over the ranks.

    x: the input, whole, of shape (B, d). w1: the file's array of shape (d, h). b1: the first bias, whole, of shape
        (h,). w2: the file's array of shape (h, d). b2: the second bias, whole, of shape (d,).
    g: the gradient of the loss with respect to y, whole, of shape (B, d).
    Division: this rank has the hidden units np.array_split(np.arange(h), comm.size)[comm.rank], of which there are
        `own`. h is at least p, and need not be divisible by p.
    Returns: (y, gx, gw1, gb1, gw2, gb2), arrays. y: the output, whole. gx: the gradient with respect to x, whole.
        gw1, gb1, gw2: the gradients with respect to what of w1, b1 and w2 belongs to this rank's hidden
        units, of shapes (d, own), (own,) and (own, d). gb2: the gradient with respect to b2, of shape (d,).
    Cost: one all-reduce of B d words in the forward and one in the backward. This rank reads its d own elements
        of w1, and its own d elements of w2, each once.

    Example: on one rank nothing is divided, and y is gelu(x @ w1[:, :] + b1) @ w2[:, :] + b2.
    """
    ### BEGIN SOLUTION
    units = np.array_split(np.arange(len(b1)), comm.size)[comm.rank]
    v1, v2 = w1[:, units], w2[units, :]
    z = x @ v1 + b1[units]
    a = gelu(z)
    y = a @ v2
    comm.all_reduce(y)
    gz = g @ v2.T * gelu_slope(z)
    gx = gz @ v1.T
    comm.all_reduce(gx)
    return y + b2, gx, x.T @ gz, gz.sum(axis=0), a.T @ g, g.sum(axis=0)
    ### END SOLUTION


# %% test="mlp" points=3
check.mlp(mlp)
### BEGIN HIDDEN TESTS
check.mlp(mlp, cases=[(2, 5, 3, 6), (3, 4, 6, 7), (1, 3, 4, 5), (4, 6, 3, 9), (2, 30, 50, 7)], seed=63)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Attention by heads (3 points)
# Heads of attention do not depend on each other, so each rank computes some of them. Q, K and V are often computed by
# one product: the weights `wqkv` have the columns of Q, then those of K, then those of V. In each of the three, head 0
# has the first columns, then comes head 1, and so on. A head is given.


# %% given="one_head"
def one_head(q, k, v):
    """The output of one head of attention, without a mask. q, k, v and the output have a row for each token."""
    scores = q @ k.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


# %% solution="attention"
def attention(comm, x, wqkv, wo, heads):
    """Compute the forward of attention whose heads are divided over the ranks.

    x: T tokens, whole, of shape (T, d). wqkv: a file's array of shape (d, 3 d), with the columns of Q, K and V. wo: a
        file's array of shape (d, d). heads: number of heads; it divides d. Head i has columns i d / heads to
        (i + 1) d / heads - 1 of Q, of K and of V.
    On one node: the outputs of all heads, side by side in their order, are an array a of shape (T, d), and
        y = a wo. There are no biases.
    Division: rank r has heads r heads / p to (r + 1) heads / p - 1.
    Returns: y, whole, of shape (T, d).
    Cost: one all-reduce of T d words. This rank reads the 3 d d / p elements of wqkv and the d d / p of wo
        that its heads need, each once.
    Raises: ValueError if p does not divide heads, with a message that has both numbers, before anything is sent.

    Example: d = 4, heads = 2, p = 2: rank 1 has head 1, with columns 2 and 3 of wqkv for Q, 6 and 7 for K, and 10
        and 11 for V.
    """
    ### BEGIN SOLUTION
    p, d = comm.size, x.shape[1]
    if heads % p:
        raise ValueError(f"{heads} heads cannot be divided equally over {p} ranks")
    width = d // heads
    parts = []
    for i in range(comm.rank * heads // p, (comm.rank + 1) * heads // p):
        own = slice(i * width, (i + 1) * width)
        q, k, v = (x @ wqkv[:, start + own.start : start + own.stop] for start in (0, d, 2 * d))
        parts.append(one_head(q, k, v) @ wo[own, :])
    y = sum(parts)
    comm.all_reduce(y)
    return y
    ### END SOLUTION


# %% test="attention" points=3
check.attention(attention)
### BEGIN HIDDEN TESTS
check.attention(
    attention,
    cases=[(2, 5, 6, 2), (3, 4, 12, 6), (1, 3, 6, 3), (2, 90, 12, 4)],
    uneven=[(3, 4), (4, 6), (2, 5)],
    seed=64,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. A divided vocabulary (4 points)
# ### 4a. The embedding (2 points)
# The embedding of a language model is a table with a row for each of the V tokens of the vocabulary. It is divided by
# rows: each rank has some consecutive rows. A minibatch has tokens of all ranks.


# %% solution="embedding"
def embedding(comm, ids, table, start, g):
    """Compute the forward and the backward of an embedding whose table is divided by rows.

    ids: n tokens, whole, an array of integers from 0 to V - 1; a token may be there several times. table: this rank's
        rows of the table, of shape (own, d), from row `start` on: row 0 of `table` is that of token `start`.
        `own`, from 1 on, may differ from rank to rank.
    g: the gradient of the loss with respect to y, whole, of shape (n, d).
    Returns: (y, gtable), arrays. y: the rows of the tokens, whole, of shape (n, d). gtable: the gradient with
        respect to `table`, of its shape.
    Cost: one all-reduce of n d words.

    Example: V = 4 on two ranks, ids = [3, 0, 3]: rank 0 has the rows of tokens 0 and 1, so its gtable has g[1] in row
        0, and zeros in row 1. Rank 1 has start = 2; row 1 of its gtable is g[0] + g[2].
    """
    ### BEGIN SOLUTION
    here = (ids >= start) & (ids < start + len(table))
    y = np.zeros((len(ids), table.shape[1]))
    y[here] = table[ids[here] - start]
    comm.all_reduce(y)
    gtable = np.zeros_like(table)
    np.add.at(gtable, ids[here] - start, g[here])
    return y, gtable
    ### END SOLUTION


# %% test="embedding" points=2
check.embedding(embedding)
### BEGIN HIDDEN TESTS
check.embedding(embedding, cases=[(2, 9, 6, 3), (3, 14, 7, 5), (1, 5, 3, 3), (4, 12, 10, 3), (2, 150, 400, 8)], seed=65)
### END HIDDEN TESTS

# %% [markdown]
# ### 4b. The loss (2 points)
# The last layer of a language model has an output for each token of the vocabulary. Divided by columns, each rank has
# some columns of the logits. To gather them would send n V words for n samples. The loss and its gradient need far
# less.


# %% solution="cross_entropy"
def cross_entropy(comm, logits, targets, start):
    """Compute the cross entropy of logits that are divided by columns, and its gradient.

    logits: this rank's columns of the logits of n samples, of shape (n, own), from column `start` on: column 0 of
        `logits` is that of token `start`. `own`, from 1 on, may differ from rank to rank. Logits may be as large as
        2000, and as small as -2000.
    targets: the right token of each sample, whole, an array of n integers from 0 to V - 1.
    Returns: (loss, glogits). loss: the mean over the n samples of log(sum_j exp(l_j)) - l_t, where l is the row of all
        V logits of the sample and t its target; a number. glogits: the gradient of the loss with respect to `logits`,
        of its shape.
    Cost: at most three all-reduces, of at most 3 n words together. `comm.all_reduce(array, op="max")` computes the
        maximum of each element.

    Example: n = 1, V = 2 on two ranks with one logit each, 1.0 and 3.0, and the target 1: the loss is log(e + e³) - 3,
        about 0.1269. glogits is [[0.1192]] on rank 0 and [[-0.1192]] on rank 1.
    """
    ### BEGIN SOLUTION
    n, own = logits.shape
    rows = np.flatnonzero((targets >= start) & (targets < start + own))
    largest = logits.max(axis=1)
    comm.all_reduce(largest, op="max")
    shifted = logits - largest[:, None]
    sums = np.zeros((2, n))  # of the exponentials, and the logit of the target
    sums[0] = np.exp(shifted).sum(axis=1)
    sums[1, rows] = shifted[rows, targets[rows] - start]
    comm.all_reduce(sums)
    glogits = np.exp(shifted) / sums[0][:, None]
    glogits[rows, targets[rows] - start] -= 1
    return float(np.mean(np.log(sums[0]) - sums[1])), glogits / n
    ### END SOLUTION


# %% test="cross_entropy" points=2
check.cross_entropy(cross_entropy)
### BEGIN HIDDEN TESTS
check.cross_entropy(cross_entropy, cases=[(2, 6, 7), (3, 5, 11), (1, 3, 5), (4, 6, 9), (2, 70, 60)], seed=66)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. A product on a grid (3 points)
# SUMMA computes C = A B on a grid of pr times pc ranks, in *panels*. A panel is a few columns of A, or a few rows of B.
# So a rank need not hold more of A and B than its blocks and two panels. For one panel after the other: in each row of
# the grid, the rank that has this panel of A broadcasts its part of it. In each column of the grid, the rank that has
# this panel of B broadcasts its part. Each rank multiplies the two, and adds the product to its block of C.
#
# Rank r is in row r // pc and column r % pc of the grid. `comm.mesh` makes communicators for these groups of ranks.


# %% given="row_and_column"
def row_and_column(comm, pr, pc):
    """Return the communicators of this rank's row of the grid, with pc ranks, and of its column, with pr ranks.

    In `row`, the rank is its column of the grid: row.rank == comm.rank % pc. In `column`, the rank is its row of the
    grid. row.broadcast(array, src) sends the array of rank src of this row to all ranks of the row, and returns it.
    """
    mesh = comm.mesh((pr, pc), ("i", "j"))
    return mesh["j"], mesh["i"]


# %% solution="summa"
def summa(comm, pr, pc, width, a, b):
    """Compute this rank's block of C = A B on a grid of pr times pc ranks.

    A has shape (m, k), B has shape (k, n). a: this rank's block of A, of shape (m / pr, k / pc): in row i and
        column j of the grid, rows i m / pr to (i + 1) m / pr - 1 and columns j k / pc to (j + 1) k / pc - 1.
        b: this rank's block of B, of shape (k / pr, n / pc), in the same way.
    width: columns of A in a panel, and rows of B. pr divides m, pc divides n, and pr width and pc width divide k:
        so each panel lies in one block.
    Returns: the block of C, an array of shape (m / pr, n / pc).
    Cost: in all its calls together, a rank receives (m / pr) k (1 - 1 / pc) + k (n / pc) (1 - 1 / pr) words. No
        message has more words than this rank's part of a panel: (m / pr) width of A, width (n / pc) of B. What
        row_and_column sends does not count. It is called once at most.

    Example: on a grid of 1 times 1 it returns a @ b. On a grid of 1 times 2 with k = 4 and width = 1, rank 0 broadcasts
        columns 0 and 1 of A, then rank 1 columns 2 and 3; of B nothing is sent, since each rank has all rows of its
        columns.
    """
    ### BEGIN SOLUTION
    row, column = row_and_column(comm, pr, pc)
    of_a, of_b = a.shape[1], b.shape[0]  # columns of A and rows of B in a block
    c = np.zeros((a.shape[0], b.shape[1]))
    for t in range(0, of_a * pc, width):
        i, j = t // of_b, t // of_a
        panel_a = a[:, t - j * of_a :][:, :width].copy() if row.rank == j else None
        panel_b = b[t - i * of_b :][:width].copy() if column.rank == i else None
        c += row.broadcast(panel_a, src=j) @ column.broadcast(panel_b, src=i)
    return c
    ### END SOLUTION


# %% test="summa" points=3
check.summa(summa)
### BEGIN HIDDEN TESTS
# kept: cases
check.summa(
    summa,
    cases=[
        (2, 3, 1, 6, 12, 6),
        (3, 1, 2, 6, 12, 5),
        (1, 3, 2, 5, 12, 6),
        (2, 2, 3, 4, 12, 6),
        (1, 3, 4, 5, 12, 6),
        (1, 1, 1, 3, 4, 5),
        (1, 2, 5, 40, 20, 60),
    ],
    seed=67,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 6. Ranks on a mesh (2 points)
# ### 6a. The groups (1 point)
# Large models are trained with data, pipeline and tensor parallelism together. Each rank is in three groups: one for
# each of the three. Tensor parallelism sends the most, so its groups have consecutive ranks: these are in the same
# node, or near each other.


# %% solution="mesh_groups"
def mesh_groups(dp, pp, tp):
    """Return the groups of ranks of a mesh of dp times pp times tp ranks.

    dp: replicas of the model. pp: stages of the pipeline. tp: ranks that divide each layer. All are from 1 on.
    Each rank has three coordinates: its replica, from 0 to dp - 1, its stage, from 0 to pp - 1, and its number among
        the tp ranks that divide a layer. From one rank to the next, the tensor coordinate changes first, then the
        stage, and the replica last.
    A group of "tp" has the ranks that differ from each other in the tensor coordinate only; a group of "pp" and one of
        "dp" likewise.
    Returns: a dictionary with the keys "dp", "pp" and "tp". Each value is a list of groups, in any order, and a
        group is the list of its ranks in ascending order. Each rank is in one group of each kind. A group may have
        one rank.

    Example: mesh_groups(1, 2, 2) is {"dp": [[0], [1], [2], [3]], "pp": [[0, 2], [1, 3]], "tp": [[0, 1], [2, 3]]}.
    """
    ### BEGIN SOLUTION
    ranks = np.arange(dp * pp * tp).reshape(dp, pp, tp)
    return {
        name: np.moveaxis(ranks, axis, -1).reshape(-1, ranks.shape[axis]).tolist()
        for axis, name in enumerate(("dp", "pp", "tp"))
    }
    ### END SOLUTION


# %% test="mesh_groups" points=1
check.mesh_groups(mesh_groups)
### BEGIN HIDDEN TESTS
check.mesh_groups(mesh_groups, cases=[(3, 2, 5), (2, 4, 3), (1, 3, 1), (6, 1, 2), (2, 3, 4), (6, 5, 10)])
### END HIDDEN TESTS

# %% [markdown]
# ### 6b. The cheapest grid (1 point)
# The MLP of exercise 2 is trained on p ranks, arranged as a grid of dp times tp: the minibatch is divided over dp
# replicas, the hidden units of each replica over tp ranks. With tp = 1 this is data parallelism, with dp = 1 tensor
# parallelism. Neither need be the cheapest.


# %% solution="best_grid"
def best_grid(p, B, d, h):
    """Return the grid of dp times tp = p ranks on which a rank sends the fewest words, and this number.

    p: ranks. B: samples of the minibatch of all replicas; a replica has B / dp of them. d, h: width and hidden units
        of the MLP. p divides B and h.
    Words: in one step, each rank takes part in the two all-reduces of exercise 2 over the tp ranks of its replica,
        each of as many words as its replica's x has. Then the gradients of this rank's shards of both weights are
        all-reduced over dp ranks. Biases do not count. In an all-reduce of n words over q ranks, a rank sends
        2 (q - 1) / q n words.
    Returns: (dp, tp, words): two integers and a number. If several grids send the fewest words, any of them is right.

    Example: best_grid(2, 4, 8, 16): data parallelism sends 256 words, all gradients; tensor parallelism sends 64, two
        times 4 · 8. So the result is (1, 2, 64.0).
    """

    ### BEGIN SOLUTION
    def words(dp, tp):
        activations = 2 * (tp - 1) / tp * (B / dp) * d
        gradients = 2 * (dp - 1) / dp * (2 * d * h / tp)
        return 2 * activations + gradients

    grids = [(p // tp, tp) for tp in range(1, p + 1) if p % tp == 0]
    dp, tp = min(grids, key=lambda grid: words(*grid))
    return dp, tp, words(dp, tp)
    ### END SOLUTION


# %% test="best_grid" points=1
check.best_grid(best_grid)
### BEGIN HIDDEN TESTS
# kept: cases
check.best_grid(
    best_grid,
    cases=[
        (12, 24, 6, 96),
        (12, 960, 10, 12),
        (6, 12, 4, 60),
        (36, 144, 5, 72),
        (1, 4, 3, 5),
        (8, 64, 6, 32),
        (8, 48, 3, 208),
        (16, 32, 5, 512),
        (48, 96_000, 100_019, 10_032),
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 7. In a few sentences (2 points, graded by hand)
# In exercise 2, w1 is divided by columns and w2 by rows. A colleague divides w1 by rows and w2 by columns instead.
# Which communication is needed in the forward then, and what goes wrong without it because of the GELU? Would it go
# wrong without any activation function between the layers? And which forward or backward products of your MLP need no
# communication at all?

# %% [markdown] manual="wrong_order" points=2
# With w1 divided by rows, each rank computes a partial sum of all hidden units. GELU is not linear: the sum of
# gelu(partial sums) is not gelu(sum). So the partial sums, B h words, have to be all-reduced before the GELU. Then each
# rank computes some columns of y, and y has to be gathered, B d words: more words, and two collectives in the forward
# instead of one. Without an activation function, the product would be linear, and partial sums could be multiplied with
# w2 as they are, but with whole w2, not with its columns (1 point).
#
# In the MLP by columns, then rows: x w1 and the GELU need no communication in the forward. In the backward, the
# gradient of the hidden units g w2ᵀ, the slope of the GELU, and the gradients of all weights and biases need none. Only
# the sum of the partial y's in the forward, and that of the partial gx's in the backward, are communicated (1 point).
