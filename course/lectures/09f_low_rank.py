# %% [markdown]
# # 09f. Can a matrix travel as two thin ones?
#
# *Read [09e](09e_sign_and_memory.ipynb) first. Reading time: about 25 minutes. Figures are* measured, simulated *or
# come from a* formula.
#
# ## The question
#
# So far a gradient was a list of $n$ numbers. But the gradient of a layer is a *matrix*, and a matrix has a shape of
# its own. Here is that of a layer with 64 inputs and 128 outputs, at three steps of training. Its *singular values*
# $\sigma_1 \ge \sigma_2 \ge \dots$ say how much of it lies in its first, second, ... direction: $M = \sum_i \sigma_i\,
# u_i v_i^T$ with orthonormal columns $u_i$ and $v_i$, and $\sum_i \sigma_i^2 = \lVert M\rVert^2$.

# %%
import numpy as np

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, compress, data, manual_seed, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
INPUTS, OUTPUTS, MINIBATCH = 64, 128, 64
digits = data.digits().train


def minibatch_gradient(model, rng):
    """The gradient of the first layer's weights on a random minibatch."""
    chosen = rng.integers(0, len(digits), MINIBATCH)
    model.zero_grad()
    F.cross_entropy(model(Tensor(digits.x[chosen])), digits.y[chosen]).backward()
    return next(iter(model.parameters())).grad.copy()


def gradients_on_the_way(steps, nodes):
    """The gradient in each step of SGD, and those of so many nodes, on a minibatch each, with the last weights."""
    manual_seed(0)
    model, rng, found = nn.models.MLP(INPUTS, OUTPUTS, 10), np.random.default_rng(0), []
    rule = optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(steps):
        found.append(minibatch_gradient(model, rng))
        rule.step()
    return found, [minibatch_gradient(model, rng) for _ in range(nodes)]


on_the_way, _ = gradients_on_the_way(steps=200, nodes=0)

# %%
guess_share = guess(f"Of {min(INPUTS, OUTPUTS)} directions: which share of the squared norm do the first 4 hold?",
                    ["about 6 %, as they are 4 of 64", "about 25 %", "over 50 %"])  # fmt: skip


# %%
def held(matrix):
    """The share of the squared norm that the first 1, 2, 3, ... directions hold."""
    squares = np.linalg.svd(matrix, compute_uv=False) ** 2
    return np.cumsum(squares) / squares.sum()


directions = np.arange(1, INPUTS + 1)
random_matrix = np.random.default_rng(0).standard_normal((OUTPUTS, INPUTS))
curves = {f"step {step}": held(on_the_way[step]) for step in (0, 20, 199)} | {"random numbers": held(random_matrix)}
panel = lines.Panel([lines.Line(name, directions, share) for name, share in curves.items()],
                    "directions kept", "share of the squared norm")  # fmt: skip
see(lines.draw([panel], source="measured", title=f"The gradient of {OUTPUTS} x {INPUTS} weights"),
    "the gradients' curves rise steeply and then flatten; that of random numbers bends far less.")  # fmt: skip
first_4 = {name: share[3] for name, share in curves.items()}
say(f"Four of 64 directions hold {', '.join(f'{100 * share:.0f} % ({name})' for name, share in first_4.items())}; "
    f"your guess: {guess_share}.")  # fmt: skip

# %% [markdown]
# Four directions are $4\,(128 + 64)$ numbers instead of $128 \cdot 64$. Why are so few enough?
#
# ## A gradient is a sum of as many products as there are samples
#
# For one sample with input $v$, and gradient $u$ of the loss with respect to the layer's output, the gradient of the
# weights is $u v^T$ (chapter 01). For a minibatch it is the sum over its samples. So *its rank is at most the number of
# samples*, and less if samples resemble each other. The vectors $u$ and $v$ are called *sufficient factors* (Xie et al.
# 2015): who has them has the gradient, exactly.

# %%
manual_seed(0)
layer, b = nn.Linear(INPUTS, OUTPUTS, bias=False), 16
inputs = digits.x[:b].reshape(b, INPUTS)
outputs = layer(Tensor(inputs))
F.cross_entropy(outputs, digits.y[:b]).backward()
odds = np.exp(outputs.numpy() - outputs.numpy().max(axis=1, keepdims=True))
us = (odds / odds.sum(axis=1, keepdims=True) - np.eye(OUTPUTS)[digits.y[:b]]) / b  # softmax minus one-hot: chapter 02
from_factors = sum(np.outer(u, v) for u, v in zip(us, inputs, strict=True))
gradient = layer.weight.grad
say(f"Largest difference between the sum of {b} products and the tape's gradient: "
    f"{np.abs(from_factors - gradient).max():.0e}. Rank of this gradient of {OUTPUTS} x {INPUTS} numbers: "
    f"**{np.linalg.matrix_rank(gradient)}**.")  # fmt: skip

# %% [markdown]
# So a node with $b$ samples can send $b\,(\text{rows} + \text{columns})$ numbers in place of $\text{rows} \cdot
# \text{columns}$, and nothing is lost. But factors cannot be added up on the way: everyone needs everyone's. Each of
# $p$ nodes sends its own to $p - 1$ others, which is $b\,(p-1)(\text{rows}+\text{columns})$ numbers, against
# $2\frac{p-1}{p}\,\text{rows}\cdot\text{columns}$ in a ring. The two are equal when the minibatch of all nodes has
# $p\,b = 2\,\text{rows}\cdot\text{columns}/(\text{rows}+\text{columns})$ samples.

# %%
guess_crossover = guess(f"For {OUTPUTS} x {INPUTS}: up to how many samples of all nodes do factors send less?",
                        unit="samples")  # fmt: skip

# %%
NODES, SIZES = (2, 8), (16, 32, 64, 80, 96, 128, 256)
crossover = 2 * OUTPUTS * INPUTS / (OUTPUTS + INPUTS)


def bytes_a_step(strategy, minibatch, p):
    """Bytes that node 0 sends in a step of training one layer, from the ledger of a simulated run."""
    few = data.Dataset(digits.x[: 2 * minibatch].reshape(-1, INPUTS), digits.y[: 2 * minibatch])
    job = parallel.Job(lambda: nn.Linear(INPUTS, OUTPUTS, bias=False), data.Splits(few, few),
                       lambda w: optim.SGD(w, 0.1), batch_size=minibatch, epochs=1)  # fmt: skip
    run = parallel.train(job, strategy, p, "simulation")
    start = run.trace.ledger()[0]["broadcast"].nbytes  # the first weights
    return (run.history[-1]["bytes"] - start) / 2


factors, ring = parallel.SufficientFactors(), parallel.Synchronous(algorithm="ring")
counted = {p: [(bytes_a_step(factors, each, p), bytes_a_step(ring, each, p)) for each in SIZES]
           for p in bar(NODES, "counting bytes")}  # fmt: skip
panels = []
for p in NODES:
    of_factors, of_ring = zip(*counted[p], strict=True)
    smooth = np.linspace(SIZES[0], SIZES[-1], 50)
    panels.append(lines.Panel(
        [lines.Line("factors, simulated", SIZES, np.array(of_factors) / 1e3, "points", 0),
         lines.Line("factors, formula", smooth, 4e-3 * smooth / p * (p - 1) * (OUTPUTS + INPUTS), tone=0),
         lines.Line("ring, simulated", SIZES, np.array(of_ring) / 1e3, "points", 1),
         lines.Line("ring, formula", smooth, np.full(50, 8e-3 * (p - 1) / p * OUTPUTS * INPUTS), tone=1),
         lines.Line("crossover", [crossover] * 2, [0, 2 * max(of_ring) / 1e3], tone=5)],
        "samples of all nodes, p b", "kB that a node sends in a step", f"{p} nodes"))  # fmt: skip
see(lines.draw(panels, source=["simulated", "formula"]), "the factors' bytes grow with the samples, the ring's do not; "
    "both panels cross at the same number of samples.")  # fmt: skip
say(f"The crossover is at **{crossover:.1f}** samples whatever $p$ (formula; your guess: {guess_crossover}).")

# %% [markdown]
# `parallel.SufficientFactors(hybrid=True)` makes this choice for each layer. Wide layers and few samples are its place,
# for example (a node's minibatch of $b$ samples, `formula`):

# %%
LAYERS = ((4096, 4096, 32, 8), (4096, 25088, 32, 8), (4096, 25088, 256, 8), (1000, 4096, 32, 32))
rows = [[f"{m:,} x {n:,}", each, p, f"{2 * m * n / (each * p * (m + n)):.1f}"] for m, n, each, p in LAYERS]
table(["layer, rows x columns", "b", "p", "ring's numbers / factors' numbers"], rows, "formula; layers as in VGG-16")

# %% [markdown]
# ## Two thin matrices that *can* be added up
#
# With many samples the factors are too many, but the first picture says that a few directions hold most. The best $r$
# directions come from the singular value decomposition, which costs far more than backward. *PowerSGD* (Vogels et al.
# 2019) makes one step of an old iteration towards them, in three lines. $Q$ has a row for each column of $M$, and $r$
# columns. It starts from random numbers.


# %%
def power_step(matrix, q):
    """Two thin matrices whose product p q^T is about the matrix, from a first guess of q."""
    p, _ = np.linalg.qr(matrix @ q)  # the matrix turns q towards its largest directions; columns made orthonormal
    return p, matrix.T @ p  # the best q for this p


rank = 2
matrix = on_the_way[100]
known = compress.PowerSGD(rank)
before = known.decode(known.encode(matrix))  # of rank 2; PowerSGD keeps its q for the next matrix
q = np.linalg.svd(before)[2][:rank].T  # spans the same directions as that q
p, q = power_step(on_the_way[101], q)
apart = np.abs(p @ q.T - known.decode(known.encode(on_the_way[101]))).max() / np.abs(on_the_way[101]).max()
say(f"Largest difference between our step and `compress.PowerSGD({rank})`: {apart:.0e} of the largest gradient.")

# %% [markdown]
# One step from random numbers is a rough guess. But the gradient of the next minibatch points in much the same
# directions. So PowerSGD keeps $Q$ from one training step to the next: a *warm start*.

# %%
best_left = np.mean([1 - held(matrix)[rank - 1] for matrix in on_the_way])
say(f"The best matrices of rank {rank} leave out {100 * best_left:.0f} % of the squared norm, on average over steps.")

# %%
guess_warm = guess("And PowerSGD, which starts from the Q of the step before?", unit="%")

# %%
warm, random_start = compress.PowerSGD(rank), compress.PowerSGD(rank, warm_start=False)
left_out = {"random start in each step": [], "warm start": [], "the best of rank 2": []}
for matrix in on_the_way:
    squared = (matrix**2).sum()
    for name, compressor in (("random start in each step", random_start), ("warm start", warm)):
        kept = compressor.decode(compressor.encode(matrix))
        left_out[name].append(((matrix - kept) ** 2).sum() / squared)
    left_out["the best of rank 2"].append(1 - held(matrix)[rank - 1])
smoothed = {name: np.convolve(shares, np.full(10, 0.1), "valid") for name, shares in left_out.items()}
panel = lines.Panel([lines.Line(name, np.arange(10, 201), shares) for name, shares in smoothed.items()],
                    "training step", "share of the squared norm left out", ylim=(0, 1))  # fmt: skip
see(lines.draw([panel], source="measured", title=f"What two directions leave out of {OUTPUTS} x {INPUTS} numbers"),
    "means of ten steps. The warm start lies between the random one and the best, and none is zero.")  # fmt: skip
means = {name: np.mean(shares) for name, shares in left_out.items()}
say(f"Left out on average: {', '.join(f'{100 * share:.0f} % ({name})' for name, share in means.items())}; "
    f"your guess for the warm start: {guess_warm}.")  # fmt: skip

# %% [markdown]
# So something is always left out. As in 09e, *error feedback* keeps it: each node adds it to its next gradient.
#
# The step needs only sums of products with the matrix, and sums can be all-reduced. If node $i$ has $M_i$:
#
#     P   = all-reduce of M_i Q          rows x r numbers
#     P   = its columns made orthonormal, the same on every node
#     Q   = all-reduce of M_i^T P        columns x r numbers
#
# Because $\sum_i M_i Q = (\sum_i M_i)\,Q$, this is the step of the *sum*, whatever $p$. Top-k has no such
# law: which entries of the sum are large is not known until it is there.


# %%
def power_all_reduce(comm, matrix, q):
    """P and Q of the sum of all nodes' matrices, from two small all-reduces."""
    p, _ = np.linalg.qr(comm.all_reduce(matrix @ q, algorithm="ring"))
    return p, comm.all_reduce(matrix.T @ p, algorithm="ring")


def repeated(comm, add_up, times):
    """`add_up` on the same gradients again and again, each time from the last q; what it says the sum is, each time."""
    q, sums = np.random.default_rng(1).standard_normal((INPUTS, rank)).astype(np.float32), []
    for _ in range(times):
        p, q = add_up(comm, of_nodes[comm.rank], q)
        sums.append(p @ q.T)
    return sums


NODES, TIMES = 8, 12
_, of_nodes = gradients_on_the_way(steps=60, nodes=NODES)
exact = np.sum(of_nodes, axis=0)
run = cluster.launch(repeated, (power_all_reduce, 1), nodes=NODES, on="simulation")
p, q = power_step(exact, np.random.default_rng(1).standard_normal((INPUTS, rank)).astype(np.float32))
about = run.results[3][0]
say(f"Power step on {NODES} nodes against the power step of the sum: {np.abs(about - p @ q.T).max():.0e} apart. "
    f"Every node ends with the same bits: {all(np.array_equal(each[0], about) for each in run.results)}.")  # fmt: skip

# %% [markdown]
# ## Break it: adding up the factors instead of the products
#
# "All-reduce $P$ and $Q$" can be read in another way: each node makes a step of its own, and then both factors are
# averaged. Small matrices, the same bytes, no error message. To see what comes out, $8$ nodes repeat the step on the
# same gradients: PowerSGD should come near the best matrix of its rank.


# %%
def average_of_factors(comm, matrix, q):
    p, q = power_step(matrix, q)  # of this node's own matrix
    return comm.all_reduce(p, algorithm="ring") / comm.size, comm.all_reduce(q, algorithm="ring")


ways = {"P and Q of the sum": power_all_reduce, "averages of the nodes' own P and Q": average_of_factors}
far = {name: [((exact - each) ** 2).sum() / (exact**2).sum()
              for each in cluster.launch(repeated, (way, TIMES), nodes=NODES, on="simulation").results[0]]
       for name, way in ways.items()}  # fmt: skip
far["the best of rank 2"] = [1 - held(exact)[rank - 1]] * TIMES
panel = lines.Panel([lines.Line(name, range(1, TIMES + 1), shares) for name, shares in far.items()],
                    "repetition", "share of the squared norm left out", ylim=(0, 1.05))  # fmt: skip
see(lines.draw([panel], source="measured", title=f"The sum of {NODES} gradients from {rank} directions"),
    "the right sum comes down to the best of its rank within a few repetitions; the averages stay above.")  # fmt: skip
at_last = ", ".join(f"{100 * each[-1]:.0f} % ({name})" for name, each in far.items())
say(f"Left out after {TIMES} repetitions: {at_last}.")

# %% [markdown]
# The mean of products is not the product of means. Each node's first direction may also have either sign, so that
# the factors of two nodes cancel although their gradients agree.
#
# ## Does it train?

# %%
guess_trains = guess("Rank 1 of 64 with error feedback: how many times dense training's loss after 15 epochs?",
                     unit="times")  # fmt: skip

# %%
POWER, FEEDBACK = compress.PowerSGD, compress.ErrorFeedback
WAYS = {
    "dense": None,
    "rank 1": POWER(1),
    "rank 1, error feedback": FEEDBACK(POWER(1)),
    "rank 1, random start, error feedback": FEEDBACK(POWER(1, warm_start=False)),
    "rank 4": POWER(4),
    "rank 4, error feedback": FEEDBACK(POWER(4)),
}
SEEDS = range(3)
runs = {}
for name in bar(WAYS, "training on 4 nodes"):
    runs[name] = [parallel.train(parallel.Job(lambda: nn.models.MLP(INPUTS, OUTPUTS, 10), data.digits,
                                              lambda w: optim.SGD(w, 0.1, momentum=0.9), batch_size=MINIBATCH,
                                              epochs=15, seed=seed),
                                 parallel.Synchronous(compressor=WAYS[name]), 4, "simulation")
                  for seed in SEEDS]  # fmt: skip
loss = {name: np.array([each.history[-1]["loss"] for each in of]) for name, of in runs.items()}
sent = {name: of[0].history[-1]["bytes"] for name, of in runs.items()}
rows = [[name, f"{sent['dense'] / sent[name]:.1f}", f"{each.mean():.4f} ± {each.std(ddof=1):.4f}",
         f"{each.mean() / loss['dense'].mean():.2f}"] for name, each in loss.items()]  # fmt: skip
table(["sent", "dense bytes / bytes", "training loss", "times dense"], rows,
      f"15 epochs, {MINIBATCH} samples on 4 simulated nodes, mean ± deviation of {len(SEEDS)} seeds; "
      f"your guess: {guess_trains}")  # fmt: skip

# %% [markdown]
# With error feedback, one direction of 64 trains as well as all of them; without, it stays behind. Biases are sent
# whole: a vector has no thin form. The warm start makes no visible difference *here*: what a poor guess leaves out,
# the memory sends later.
#
# ## Which of the three sends least?


# %%
SIDE = 1024


def three_ways(axes, samples, nodes, rank):
    """Numbers that a node sends in a step for a layer of SIDE x SIDE weights, by formula."""
    share = (nodes - 1) / nodes
    numbers = {"ring": 2 * share * SIDE * SIDE, "factors": samples * (nodes - 1) * 2 * SIDE,
               "PowerSGD": 2 * share * rank * 2 * SIDE}  # fmt: skip
    for place, value in enumerate(numbers.values()):
        axes.barh(-place, value, color=style.SERIES[place], **style.BORDER)
        axes.text(value * 1.15, -place, f"{value:,.0f}", va="center", fontsize=8)
    axes.set_yticks([0, -1, -2], list(numbers))
    axes.set(xscale="log", xlim=(1e3, 1e10), xlabel="numbers that a node sends in a step")


explore(three_ways, f"by formula, for {SIDE:,} x {SIDE:,} weights, on a logarithmic axis. PowerSGD's bar is shortest "
        "unless samples and nodes are very few; the factors' grows with samples and with nodes, and passes the ring's.",
        samples=[8, 1, 32, 128], nodes=[8, 2, 32], rank=[2, 1, 4, 16],
        multiples=[{"samples": 1, "nodes": 2}, {"samples": 8}, {"samples": 128, "nodes": 32}], height=2.2)  # fmt: skip

# %% [markdown]
# | | what is sent | loses | can be added up on the way | grows with |
# |---|---|---|---|---|
# | sufficient factors | $b$ pairs of vectors | nothing | no | samples and nodes |
# | PowerSGD | $r$ pairs of vectors | all but $r$ directions; needs error feedback | yes | neither |
#
# ## What the papers report
#
# **Vogels, Karimireddy and Jaggi (2019)**, *PowerSGD* (arXiv:1905.13727): of the methods that they evaluated, the only
# one with consistent wall-clock speed-ups. It is fast to compute, and its factors can be all-reduced. Whether this
# holds on a given network is the question of [09g](09g_when_it_pays.ipynb).
#
# **Xie et al. (2015)** (arXiv:1511.08486) introduce sufficient factor broadcasting; **Zhang et al. (2017)**,
# *Poseidon*, choose for each layer, as `hybrid=True` does. The counts above against the ledger of runs, and training in
# minutes: `benchmarks/reproductions/sufficient_factors.py` and `quantized_training.py`.
#
# ## To the exercises
#
# [Exercises of chapter 09](../exercises/09_gradient_compression/09_gradient_compression.ipynb).
#
# **Three questions to argue about**
#
# 1. A convolution's weights have the shape (channels out, channels in, height, width). Which matrix would you send?
# 2. An embedding's gradient has nonzero rows for the words of the minibatch alone. Factors, PowerSGD, or something
#    else?
# 3. Two nodes have $M$ and $-M$ plus a little noise. What does PowerSGD send, and what does error feedback keep?
#
# [09g](09g_when_it_pays.ipynb): bytes are not seconds. When does compression pay?
