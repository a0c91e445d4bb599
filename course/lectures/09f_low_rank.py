# %% [markdown]
# # 09f. Can a matrix travel as two vectors?
#
# *Read [09e](09e_sign_and_memory.ipynb) first: error feedback. Reading time: about 20 minutes. Figures are* measured,
# simulated *or come from a* formula.
#
# ## The question
#
# The gradient of a layer's weights is a matrix $A$ with $M$ rows and $N$ columns, $n = MN$ numbers. The product
# $u v^T$ of two vectors is an $M \times N$ matrix, too, but it needs only $M + N$ numbers. If $A$ were such a product
# we could send the two vectors. Is it?
#
# Any matrix is a sum of such products. The **singular value decomposition** finds the best ones:
# $A = \sigma_1 u_1 v_1^T + \sigma_2 u_2 v_2^T + \dots$ with vectors of length 1 and coefficients
# $\sigma_1 \ge \sigma_2 \ge \dots \ge 0$, the **singular values**. The number of singular values that are not 0 is the
# matrix's **rank**. The first $r$ terms are the closest matrix of rank $r$, and they hold the share
# $(\sigma_1^2 + \dots + \sigma_r^2)/(\sigma_1^2 + \sigma_2^2 + \dots)$ of the matrix's **square**, the sum of the
# squares of its entries. Here are 8x8 digits and the first layer of a network 64-128-10, hence $M = 128$ outputs and
# $N = 64$ inputs.

# %% source_hidden=true
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, compress, data, nn, optim, parallel, random
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
guess_share = guess("64 singular values: what share of the square do the first 4 hold?", unit="%")


# %%
def gradients(steps, batch=64, seed=0):
    """The gradients of the first layer's weights in successive steps of training."""
    random.manual_seed(seed)
    model, training = nn.models.MLP(64, 128, 10), data.digits().train
    optimizer, rng, found = optim.SGD(model.parameters(), lr=0.1, momentum=0.9), np.random.default_rng(seed), []
    for _ in range(steps):
        images, labels = training[rng.choice(len(training), batch, replace=False)]
        optimizer.zero_grad()
        F.cross_entropy(model(Tensor(images)), labels).backward()
        found.append(model.layers[0].weight.grad.astype(np.float64))
        optimizer.step()
    return found


course_of = gradients(60)
A = course_of[-1]
M, N = A.shape


# %%
def shares(matrix):
    """The share of the matrix's square in its first r singular values, for r = 1, 2, ..."""
    squares = np.linalg.svd(matrix, compute_uv=False) ** 2
    return np.cumsum(squares) / squares.sum()


# %% source_hidden=true
noise = np.random.default_rng(0).standard_normal((M, N))
ranks = range(1, N + 1)
panel = lines.Panel([lines.Line("gradient, first step", ranks, 100 * shares(course_of[0]), tone=0),
                     lines.Line("gradient, step 60", ranks, 100 * shares(A), tone=2),
                     lines.Line("random numbers", ranks, 100 * shares(noise), tone=1)],
                    "rank r", "share of the square (%)", ylim=(0, 102))  # fmt: skip
see(
    lines.draw([panel], source="measured", height=3.4),
    "how much of the matrix the best matrix of rank r holds. A gradient bends to the top left: a few products hold "
    "most of it. Random numbers of the same shape need nearly all 64.",
)
say(f"The first 4 of {N} hold **{shares(A)[3]:.0%}** of the square of the gradient in step 60, "
    f"{shares(course_of[0])[3]:.0%} in the first step, and {shares(noise)[3]:.0%} of that of random numbers "
    f"(measured). Your guess: {guess_share.against(100 * shares(A)[3])}.")  # fmt: skip

# %% [markdown]
# A gradient is far from random. It is a sum over samples of one product each (we come back to that), and samples of
# the same class look alike.
#
# ## Build: one step of the power iteration
#
# A singular value decomposition in every step would be expensive. **PowerSGD** (Vogels et al., 2019) needs two
# products. Multiply any matrix $Q$ ($N \times r$) by $A$, then by $A^T$: directions with large singular values grow
# most. That is the **power iteration**. In between, make the columns **orthonormal** (perpendicular to each other, of
# length 1):


# %%
def power_step(A, Q):
    """P (M x r) and Q (N x r), so that P Q^T is close to A."""
    P = A @ Q
    P, _ = np.linalg.qr(P)  # the same space, orthonormal columns
    return P, A.T @ P


def relative_error(A, close):
    return np.sum((A - close) ** 2) / np.sum(A**2)


# %% source_hidden=true
r, theirs = 2, compress.PowerSGD(rank=2)
first = theirs.encode(A)
Q = first.data.view(np.float64).reshape(M + N, r)[M:]  # the message is P, then Q
P, Q = power_step(A, Q)
second = theirs.decode(theirs.encode(A))
assert np.allclose(P @ Q.T, second)
table(["", "numbers sent", "relative squared error"],
      [["the matrix itself", M * N, 0],
       ["PowerSGD, rank 2, first step", first.nbytes // 8, f"{relative_error(A, theirs.decode(first)):.3f}"],
       ["second step, ours and minidl's", r * (M + N), f"{relative_error(A, P @ Q.T):.3f}"],
       ["the best of rank 2", r * (M + N), f"{1 - shares(A)[r - 1]:.3f}"]],
      "measured; squared error: relative to the square of A; "
      f"ours and minidl's second step agree: {np.allclose(P @ Q.T, second)}")  # fmt: skip

# %% [markdown]
# $P Q^T = P P^T A$ is $A$ projected onto the columns of $P$. So what is left out, $A - PP^TA$, is never larger than
# $A$. And if the rank of $A$ is at most $r$, nothing is left out at all (for nearly every $Q$):

# %% source_hidden=true
thin = np.random.default_rng(1).standard_normal((M, 3)) @ np.random.default_rng(2).standard_normal((3, N))
exactness = {rank: relative_error(thin, (c := compress.PowerSGD(rank)).decode(c.encode(thin))) for rank in (2, 3, 4)}
assert exactness[3] < 1e-12
assert exactness[4] < 1e-12
say("A matrix of rank 3: " + "; ".join(f"PowerSGD of rank {rank} leaves out {error:.0e}"
    for rank, error in exactness.items()) + " of its square (measured).")  # fmt: skip

# %% [markdown]
# ### Start where the last step ended
#
# One power step from a random $Q$ is crude. But the next gradient may resemble this one. So PowerSGD begins with the
# $Q$ of the last training step, a **warm start**. The iterations then add up over the training steps. We try it on one
# fixed matrix, and on successive gradients of a training, with minibatches of 512 and of 64 samples.

# %%
guess_warm = guess("Where does the warm start help most?", ["one matrix", "minibatches of 512", "minibatches of 64"])


# %%
def errors(matrices, **settings):
    compressor = compress.PowerSGD(2, **settings)
    return [relative_error(matrix, compressor.decode(compressor.encode(matrix))) for matrix in matrices]


# %% source_hidden=true
panels, rows, gained, steps = [], [], {}, range(1, 61)
for title, runs in (("one matrix", [[gradients(60, 64, seed)[-1]] * 60 for seed in range(3)]),
                    *((f"minibatches of {batch}", [gradients(60, batch, seed) for seed in range(3)])
                      for batch in (512, 64))):  # fmt: skip
    found = {"new random start": [errors(matrices, warm_start=False) for matrices in runs],
             "warm start": [errors(matrices) for matrices in runs],
             "best of rank 2": [[1 - shares(matrix)[1] for matrix in matrices] for matrices in runs]}  # fmt: skip
    panels.append(lines.Panel([lines.Line(name, steps, each[0], tone=tone)
                               for tone, (name, each) in zip((1, 2, 0), found.items(), strict=True)],
                              "step", "relative squared error", title, ylim=(0, 1)))  # fmt: skip
    late = {name: np.mean(each, axis=1, where=np.arange(60) >= 40) for name, each in found.items()}
    gained[title] = np.mean(late["new random start"] - late["warm start"])
    rows.append([title, *(f"{each.mean():.2f} ({each.min():.2f} to {each.max():.2f})" for each in late.values())])
see(lines.draw(panels, source="measured", height=3.4),
    "the first seed. Left: on one matrix the warm start reaches the best possible error within a few steps; no new "
    "random start does. Middle and right: real gradients turn from step to step, so the last Q fits the new matrix "
    "less well; the warm start is nearer to the best early than late.")  # fmt: skip
table(["", *found], rows, "relative squared error of steps 41 to 60, measured: mean (range) of three seeds; your "
      f"guess: {guess_warm.against(max(gained, key=gained.get))}")  # fmt: skip

# %% [markdown]
# ## Sums: why PowerSGD may use an all-reduce
#
# Every node $i$ has a gradient $A_i$, and all want $\sum A_i$. With the same $Q$ everywhere,
#
# $$\sum_i (A_i Q) = \Bigl(\sum_i A_i\Bigr) Q, \qquad \sum_i (A_i^T P) = \Bigl(\sum_i A_i\Bigr)^T P .$$
#
# Both steps of the power iteration are *linear*. So the nodes all-reduce $P$, make it orthonormal, all-reduce $Q$, and
# have what one node with the whole sum would have. So the sum is compressed once, and has one error. Top-k (09a) is not
# linear: the largest entries of a sum are not the sum of the largest entries. So the messages of all nodes must be
# gathered, and the bytes grow with the nodes.


# %%
def add_up(comm, parts, Q):
    """The sum of all nodes' matrices, nearly, and what this node's own left out."""
    A_i = parts[comm.rank]
    P = A_i @ Q
    comm.all_reduce(P, algorithm="ring")
    P, _ = np.linalg.qr(P)
    own = A_i.T @ P
    Q = own.copy()
    comm.all_reduce(Q, algorithm="ring")
    return P @ Q.T, A_i - P @ own.T


# %% source_hidden=true
def by_minidl(comm, parts, compressor):
    return compressor.begin_all_reduce(parts[comm.rank], comm, algorithm="ring")()


rows = []
for p in (2, 4, 16):
    parts, sent = course_of[:p], {}
    start = np.random.default_rng(0).standard_normal((N, 2))
    for name, program, given in (("PowerSGD", add_up, (parts, start)),
                                 ("minidl", by_minidl, (parts, compress.PowerSGD(2))),
                                 ("top-k", by_minidl, (parts, compress.TopK((M + N) / (M * N))))):  # fmt: skip
        run = cluster.launch(program, given, nodes=p, on="simulation")
        sent[name] = sum(kind.nbytes for kind in run.trace.ledger()[0].values())
        if name == "PowerSGD":
            P, Q = power_step(sum(parts), start)
            assert np.allclose(run.results[0][0], P @ Q.T)
    assert sent["PowerSGD"] == sent["minidl"]
    assert sent["PowerSGD"] == 8 * 2 * (p - 1) * 2 * (M + N) // p
    rows.append([p, f"{8 * 2 * (p - 1) * M * N // p:,}", f"{sent['PowerSGD']:,}", f"{sent['top-k']:,}"])
table(["nodes", "ring of A, formula", "PowerSGD, rank 2", f"top-k, k = {M + N}"], rows,
      "bytes that node 0 sends, float64; simulated where it is not formula; PowerSGD sends "
      "$2\\frac{p-1}{p}\\,r(M + N)$ numbers, ours and minidl's; its sum is that of one node with the sum of the "
      "gradients")  # fmt: skip

# %% [markdown]
# ## Train with one vector pair
#
# PowerSGD is biased: it leaves out what lies outside of its $r$ directions. With the memory of 09e each node keeps what
# its own $A_i$ left out, $A_i - P P^T A_i$, as its residual.

# %%
guess_rank = guess("Rank 1 on digits, without and with memory: which reaches the training loss of exact gradients?",
                   ["neither", "with memory", "both"])  # fmt: skip

# %%
WAYS = {"exact gradients": None, "rank 1": compress.PowerSGD(1),
        "rank 1 with memory": compress.ErrorFeedback(compress.PowerSGD(1)),
        "rank 4": compress.PowerSGD(4)}  # fmt: skip
SEEDS, EPOCHS = range(5), 15


def train(compressor, seed):
    model, optimizer = partial(nn.models.MLP, 64, 128, 10), partial(optim.SGD, lr=0.1, momentum=0.9)
    job = parallel.Job(model, data.digits, optimizer, batch_size=64, epochs=EPOCHS, seed=seed)
    return parallel.train(job, parallel.Synchronous(compressor=compressor), 2, cluster.Simulation(trace="ledger"))


# %% source_hidden=true
runs = {name: [train(c, seed) for seed in SEEDS] for name, c in bar(WAYS.items(), "training")}
full = runs["exact gradients"][0].history[-1]["bytes"]
last = {name: [run.history[-1]["loss"] for run in of] for name, of in runs.items()}
tests = {name: [100 - 100 * run.accuracy for run in of] for name, of in runs.items()}
reaches = [np.mean(last[name]) < 1.1 * np.mean(last["exact gradients"]) for name in ("rank 1", "rank 1 with memory")]
answer = "both" if all(reaches) else "with memory" if reaches[1] else "neither"
table(["", "bytes sent", "training loss, last epoch", "test error (%)"],
      [[name, f"1/{full / of[0].history[-1]['bytes']:.1f}",
        f"{np.mean(last[name]):.3f} ({min(last[name]):.3f} to {max(last[name]):.3f})",
        f"{np.mean(tests[name]):.1f} ({min(tests[name]):.1f} to {max(tests[name]):.1f})"] for name, of in runs.items()],
      f"simulated: two nodes, {EPOCHS} epochs, mean (range) of {len(SEEDS)} seeds; your guess: "
      f"{guess_rank.against(answer)}")  # fmt: skip

# %% [markdown]
# So a matrix can travel as two vectors: with a memory, training reaches the loss of exact gradients. Rank 4 without
# memory does not reach it. (One learning rate for all. Four nodes, 30 epochs:
# `benchmarks/reproductions/quantized_training.py`.)
#
# ## Or send the vectors that it is made of
#
# Now another pair of vectors. For one sample, a layer gets an input $v$ ($N$ numbers) and backward brings the gradient
# $u$ of its output ($M$ numbers). The gradient of the weights is $u v^T$: a matrix of rank 1, *exactly*. For $K$
# samples it is
#
# $$A = u_1 v_1^T + u_2 v_2^T + \dots + u_K v_K^T .$$
#
# The pairs are called the **sufficient factors** of the gradient (Xie et al., 2016). A node that sends its $K$ pairs to
# the $p - 1$ others sends $K(p-1)(M+N)$ numbers; a ring all-reduce of the matrix $2\frac{p-1}{p}MN$. Check the first
# claim with minidl, with 5 samples:

# %%
random.manual_seed(0)
layer, (images, labels) = nn.Linear(N, M, bias=False), data.digits().train[np.arange(5)]
images = images.reshape(5, N)
outputs = layer(Tensor(images))
inner = Tensor(outputs.numpy(), requires_grad=True)
F.cross_entropy(inner, labels).backward()
F.cross_entropy(outputs, labels).backward()
built = sum(np.outer(u, v) for u, v in zip(inner.grad, images, strict=True))

# %% source_hidden=true
assert np.allclose(built, layer.weight.grad, atol=1e-7)
say(f"Sum of 5 products against minidl's gradient: at most {np.abs(built - layer.weight.grad).max():.0e} apart "
    f"(float32); its rank: {np.linalg.matrix_rank(layer.weight.grad)} (measured).")  # fmt: skip

# %% [markdown]
# Which sends less? The factors grow with the samples, the matrix does not. Set both equal:
#
# $$K(p-1)(M+N) = 2\tfrac{p-1}{p}MN \quad\Longleftrightarrow\quad K p = \frac{2MN}{M+N}.$$
#
# $Kp$ is the minibatch of all nodes together. The number of nodes drops out.

# %%
guess_cross = guess("A layer of 128 x 256: up to which minibatch do factors send less?", unit="samples")

# %% source_hidden=true
OUT, IN, STEPS = 128, 256, 2


def samples(count):
    made = data.Dataset(np.random.default_rng(0).standard_normal((count, IN), np.float32), np.arange(count) % OUT)
    return data.Splits(made, made)


def trained(strategy, minibatch, nodes):
    job = parallel.Job(partial(nn.Linear, IN, OUT, bias=False), partial(samples, STEPS * minibatch),
                       partial(optim.SGD, lr=0.1), batch_size=minibatch, epochs=1)  # fmt: skip
    report = parallel.train(job, strategy, nodes, cluster.Simulation(trace="ledger"))
    initial = report.trace.ledger()[0]["broadcast"].nbytes  # the initial weights
    return (report.history[-1]["bytes"] - initial) / STEPS, report.checkpoint.model["weight"]


crossover, tried, apart, curves = 2 * OUT * IN / (OUT + IN), (16, 64, 168, 176, 512), 0.0, []
for i, p in enumerate((2, 8)):
    by_factors, by_ring = [], []
    for minibatch in tried:
        factors, w1 = trained(parallel.SufficientFactors(), minibatch, p)
        ring, w2 = trained(parallel.Synchronous(algorithm="ring"), minibatch, p)
        apart = max(apart, np.abs(w1 - w2).max())
        assert factors == 4 * minibatch // p * (p - 1) * (OUT + IN)
        assert (factors < ring) == (minibatch < crossover)
        by_factors.append(factors / 1e3)
        by_ring.append(ring / 1e3)
    exact = [4e-3 * each / p * (p - 1) * (OUT + IN) for each in tried]
    flat = [8e-3 * (p - 1) / p * OUT * IN] * len(tried)
    curves += [lines.Line(f"{p} nodes, formulas", tried, exact, tone=i), lines.Line("", tried, flat, tone=i),
               lines.Line(f"{p} nodes, ledger", tried, by_factors, "points", i),
               lines.Line("", tried, by_ring, "points", i)]  # fmt: skip
picture = lines.draw(
    [lines.Panel(curves, "samples of a minibatch, all nodes together", "kB a node and step", log="xy")],
    source=("simulated", "formula"), height=3.8,
)  # fmt: skip
[axes] = picture.axes
axes.axvline(crossover, color="0.5", linewidth=1)
axes.text(crossover * 1.05, 12, f"2MN/(M + N)\n= {crossover:.1f}", color="0.3", fontsize=9)
axes.set_xticks(tried[:3] + tried[4:], tried[:3] + tried[4:])
axes.minorticks_off()
see(
    picture,
    "bytes against the minibatch, on logarithmic axes; rising lines: factors, level lines: ring all-reduce of the "
    f"matrix. They cross at {crossover:.1f} samples for 2 nodes and for 8 alike (your guess: "
    f"{guess_cross.against(crossover)}). Points: "
    f"counted in the run; lines: formula. The trained weights of both ways differ by at most {apart:.0e}.",
)

# %% [markdown]
# Here are both ideas and the ring, side by side:
#
# | | numbers a node sends | with more nodes | with more samples | loses |
# |---|---|---|---|---|
# | ring all-reduce of $A$ | $2\frac{p-1}{p} MN$ | at most twice | the same | nothing |
# | sufficient factors | $K (p-1)(M+N)$ | more ($K = B/p$: at most twice) | more | nothing |
# | PowerSGD | $2\frac{p-1}{p} r (M+N)$ | at most twice | the same | what exceeds rank $r$; a memory sends it later |
#
# ("At most twice": as much as on two nodes. $B$: samples of a minibatch over all nodes.) Factors are one pair for each
# sample; PowerSGD sends $r$ pairs for all samples together. Turn the layer, the nodes and the rank:

# %% source_hidden=true
SHAPES = {"128 x 64": (128, 64), "1000 x 4096": (1000, 4096), "4096 x 25088": (4096, 25088)}


def three_ways(axes, layer, nodes, rank):
    rows, columns = SHAPES[layer]
    batch = 2.0 ** np.arange(np.log2(nodes), 14)
    share = (nodes - 1) / nodes
    for i, (name, numbers) in enumerate({
        "ring all-reduce": 2 * share * rows * columns + 0 * batch,
        "sufficient factors": batch * share * (rows + columns),
        "PowerSGD": 2 * share * rank * (rows + columns) + 0 * batch,
    }.items()):  # fmt: skip
        axes.loglog(batch, numbers, style.DASHES[i], color=style.SERIES[i], label=name)
    axes.axvline(2 * rows * columns / (rows + columns), color="0.6", linewidth=0.8)
    axes.set(xlabel="samples of a minibatch", ylabel="numbers a node sends")
    axes.legend(fontsize=7)


explore(
    three_ways,
    "numbers that a node sends for one layer. Left of the grey line the factors stay below the ring; the larger the "
    "layer, the further right it is. PowerSGD is below the factors, unless a minibatch has fewer than 2 r samples.",
    layer=list(SHAPES), nodes=[8, 2, 32], rank=[2, 1, 4, 16],
    multiples=[{"layer": name} for name in SHAPES], source="formula",
)  # fmt: skip

# %% [markdown]
# ## Break it: the mean of the factors
#
# Two mistakes. First: every node makes its own $P_i$ and $Q_i$, and then $P$ and $Q$ are averaged, "like any weights".
# But the mean of products is not the product of means. To see it at its plainest, give 16 nodes the *same* gradient,
# and let each iterate ten times with minidl, with a seed of its own:

# %%
own = []
for node in range(16):
    compressor = compress.PowerSGD(2, seed=node)
    for _ in range(10):
        message = compressor.encode(A)
    both = message.data.view(np.float64).reshape(M + N, 2)
    own.append((both[:M], both[M:]))
products = sum(P @ Q.T for P, Q in own) / 16
of_means = sum(P for P, _ in own) / 16 @ (sum(Q for _, Q in own) / 16).T

# %% source_hidden=true
table(["16 nodes with one gradient, rank 2", "relative squared error"],
      [["each node's $P Q^T$", f"{relative_error(A, own[0][0] @ own[0][1].T):.2f}"],
       ["the mean of the products", f"{relative_error(A, products):.2f}"],
       ["the product of the means", f"{relative_error(A, of_means):.2f}"],
       ["sending nothing", f"{relative_error(A, 0 * A):.2f}"]], "measured")  # fmt: skip

# %% [markdown]
# All have found the same two directions, but some write them with the other sign. The means of the columns cancel. The
# all-reduce of PowerSGD adds up *before* the columns are chosen. Second mistake: forget to make $P$ orthonormal. Then
# $P Q^T = A Q_0 Q_0^T A^T A$, with the first $Q_0$: its scale depends on that of $A$ and of $Q_0$.


# %%
def careless(A, Q):
    P = A @ Q
    return P, A.T @ P


# %% source_hidden=true
def over_steps(step, matrix):
    """The relative squared error in steps 1, 2 and 3, each with the last Q."""
    Q_, found = np.random.default_rng(0).standard_normal((N, 2)), []
    for _ in range(3):
        P, Q_ = step(matrix, Q_)
        found.append(f"{relative_error(matrix, P @ Q_.T):.3g}")
    return found


rows = [[f"{name}, gradient {words}", *over_steps(how, factor * A)]
        for name, how in (("orthonormal P", power_step), ("P as it is", careless))
        for factor, words in ((1, "as it is"), (1000, "x 1,000"))]  # fmt: skip
table(
    ["", "step 1", "step 2", "step 3"],
    rows,
    f"relative squared error, measured; the norm of A is {np.linalg.norm(A):.2f}",
)

# %% [markdown]
# The message has the right size and the right type, and no error is raised. A small gradient arrives as 0, a large one
# explodes. You find the mistake when you multiply the gradient by 1,000: the relative error must stay what it was.
#
# ## What the papers report
#
# **Vogels et al. (2019)**, *PowerSGD* (arXiv:1905.13727), compare compressors by the clock, not by the bytes. In their
# tests only PowerSGD was consistently faster than plain SGD with a well-tuned all-reduce: it needs few operations,
# its messages can be added up on the way, and its test accuracy is that of SGD. **Xie et al. (2016)**, *Distributed
# machine learning via sufficient factor broadcasting* (arXiv:1511.08486), send the factors; **Zhang et al. (2017)**,
# *Poseidon* (USENIX ATC), choose for each layer what is less, which is `SufficientFactors(hybrid=True)` here. By the
# formula, with a ring:

# %% source_hidden=true
rows = [
    [f"{N_:,} x {M_:,}", K, p_, f"{2 * M_ * N_ / (K * p_ * (M_ + N_)):.1f}"]
    for N_, M_, K, p_ in ((4096, 4096, 32, 8), (25088, 4096, 32, 8), (25088, 4096, 256, 8), (4096, 1000, 32, 32))
]
table(["layer", "samples a node K", "nodes p", "numbers of the ring / of the factors"], rows,
      "formula; above 1 the factors send less; layers of the sizes of AlexNet's and VGG's")  # fmt: skip

# %% [markdown]
# ## To the exercises
#
# [Exercises of chapter 09](../exercises/09_gradient_compression/09_gradient_compression.ipynb): error feedback, which
# PowerSGD needs, around another contraction.
#
# **Three questions to argue about**
#
# 1. A convolution's gradient has a product for every sample *and every place of the image*. What does that do to
#    sufficient factors? And to PowerSGD?
# 2. In 09d a gathered sum of quantised shares had $p$ errors, a ring $p(p+1)/2$. How many has PowerSGD, and why?
# 3. A bias vector is sent whole by PowerSGD. Why is that no loss, and when would it be?
#
# Next: [09g](09g_when_it_pays.ipynb) brings all compressors of this chapter to the clock.
