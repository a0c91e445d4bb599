# %% [markdown]
# # 10a. How do two machines compute one layer, and what must they tell each other?
#
# *Read [05a](05a_data_parallelism.ipynb) first: data parallelism, all-reduce;
# [04b](04b_collectives.ipynb) has the other collectives. Reading time: about 24 minutes. Figures are* measured *on the
# computer that ran this page,* simulated, *or come from a* formula.
#
# ## The question
#
# Data parallelism needs a copy of the model on every machine. What if not even one layer fits? The two large layers of
# a GPT block have $h \times 4h$ and $4h \times h$ weights, where $h$ is the number of features (the *width*). Training
# with Adam in float32 keeps four numbers for each weight: the weight, its gradient and two moments.

# %%
from course.interaction import explore, guess, warm_up

warm_up()

# %% source_hidden=true
import copy
import time
from functools import partial

import numpy as np

from course.figures import divided_layers
from course.figures.page import say, see, table
from minidl import Tensor, cluster, data, manual_seed, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import tensor
from minidl.plots import lines

WIDTHS = {"GPT-2 small": 768, "GPT-3": 12_288, "a model of 10¹² weights": 25_600}
table(
    ["", "h", *(f"on {p}" for p in (1, 2, 8))],
    [[name, f"{h:,}", *(f"{16 * 8 * h * h / p / 1e9:.2f} GB" for p in (1, 2, 8))] for name, h in WIDTHS.items()],
    "formula: bytes on each machine in training, if p machines each keep a p-th; activations come on top",
)

# %% [markdown]
# In the last row, two layers alone exceed the 80 GB of a large GPU, and the model has 128 such blocks. A cut *between*
# layers cannot help here. Each layer itself has to be divided. This is *tensor parallelism*. All machines work on the
# same samples at the same time, and need each other's numbers in the middle of the computation.
#
# ## Two ways to divide a product
#
# A linear layer computes $y = xA$: $n$ samples (rows of $x$) times a matrix. Two machines can divide $A$ by its columns
# or by its rows:
#
# $$y = x\,[A_0,\ A_1] = [xA_0,\ xA_1] \qquad\qquad y = [x_0,\ x_1] \begin{bmatrix} A_0 \\ A_1 \end{bmatrix} =
# x_0A_0 + x_1A_1.$$

# %%
guess_free = guess(
    "Every machine has all of x. After which layer is a message needed in forward so that they have all of y?",
    ["columns", "rows", "both", "neither"],
)

# %%
x, A = np.random.default_rng(0).normal(size=(3, 4)), np.random.default_rng(1).normal(size=(4, 6))
by_columns = [x @ share for share in np.split(A, 2, axis=1)]
by_rows = [x_i @ A_i for x_i, A_i in zip(np.split(x, 2, axis=1), np.split(A, 2, axis=0), strict=True)]
joined, added = np.concatenate(by_columns, axis=1), by_rows[0] + by_rows[1]

# %% source_hidden=true
table(
    ["A is divided by", "each machine gets", "all of y by", "operation", "off by at most"],
    [["columns", by_columns[0].shape, "joining", "all-gather", f"{np.abs(joined - x @ A).max():.0e}"],
     ["rows", by_rows[0].shape, "adding", "all-reduce", f"{np.abs(added - x @ A).max():.0e}"]],
    f"measured; y has shape {(x @ A).shape}; your guess: {guess_free.against('both')}",
)  # fmt: skip

# %% [markdown]
# **By columns**, each machine computes some of the neurons. It needs *all* inputs and gets a *slice* of the outputs.
# **By rows**, each machine reads some of the inputs. It needs only a *slice* of the inputs and gets a summand of every
# output: the machines together have *sums* that nobody has added up yet.
#
# Both need a message if everybody is to have *all* of $y$. But must everybody? After a division by columns a machine
# has finished outputs, only not all. If the next layer is content with a slice, no message is needed at all. After a
# division by rows nobody has a finished output, and a message cannot be avoided.
#
# ## What must be sent: has and needs
#
# So an activation is on the machines in one of three states: *whole* (each has all of it), *slices* (each has some
# features), or *sums* (each has a summand of all features). What has to be sent follows from the state that one layer
# makes and the state that the next one needs:


# %%
def hand_over(a, made, needed, comm):
    """Turn an activation (or a gradient) from the state that it has into the one that is needed."""
    match made, needed:
        case "slices", "whole":
            return np.concatenate(comm.all_gather(a), axis=1)
        case "sums", "whole":
            return comm.all_reduce(a.copy())
        case "sums", "slices":
            return comm.reduce_scatter(np.ascontiguousarray(a.T)).T
        case "whole", "slices":
            return np.split(a, comm.size, axis=1)[comm.rank]  # everybody has it: no message
        case same, also if same == also:
            return a


# %% [markdown]
# Backward obeys the same table. Write $\bar y$ for the gradient of the loss with respect to $y$. Then $\bar x = \bar y
# A^\top$: the transpose of columns are rows. A machine with columns $A_0$ needs only its slice of $\bar y$, and its
# $\bar y_0 A_0^\top$ is a summand of $\bar x$. A machine with rows needs all of $\bar y$ and gets a slice of $\bar x$.
# The gradient of the weights, $x^\top \bar y$, is computed where the weights are. *In backward the two roles swap*:

# %%
NEEDS = {"columns": {"forward": "whole", "backward": "slices"}, "rows": {"forward": "slices", "backward": "whole"}}
MAKES = {"columns": {"forward": "slices", "backward": "sums"}, "rows": {"forward": "sums", "backward": "slices"}}

# %% source_hidden=true
table(
    ["A is divided by", "forward needs", "forward makes", "backward needs", "backward makes"],
    [[way, *(each[way][direction] for direction in ("forward", "backward") for each in (NEEDS, MAKES))]
     for way in NEEDS],
    "the state of the activations in forward, of their gradients in backward",
)  # fmt: skip

# %% [markdown]
# ## Build: two layers with GELU between them
#
# The feed-forward network of a GPT block is $y = uB$ with $u = \mathrm{GELU}(xA)$. With this table we can divide it in
# all four ways. The input and the output, and their gradients, shall be whole on every machine.


# %%
def divided_mlp(comm, x, matrices, ways, gradient):
    """Forward and backward on one of the machines; returns y, the gradient of x, and those of its own weights."""
    own = [np.split(A, comm.size, axis=1 if way == "columns" else 0)[comm.rank]
           for A, way in zip(matrices, ways, strict=True)]  # fmt: skip
    state, a, kept = "whole", x, []
    for A, way in zip(own, ways, strict=True):
        z = Tensor(hand_over(a, state, NEEDS[way]["forward"], comm), requires_grad=True)
        u = F.gelu(z) if kept else z  # before every layer but the first
        kept.append((z, u))
        a, state = u.numpy() @ A, MAKES[way]["forward"]
    y = hand_over(a, state, "whole", comm)

    state, weight_gradients = "whole", []
    for A, way, (z, u) in reversed(list(zip(own, ways, kept, strict=True))):
        gradient = hand_over(gradient, state, NEEDS[way]["backward"], comm)
        weight_gradients.insert(0, u.numpy().T @ gradient)
        (u * Tensor(gradient @ A.T)).sum().backward()  # GELU's derivative, by the tape
        gradient, state = z.grad, MAKES[way]["backward"]
    return y, hand_over(gradient, state, "whole", comm), weight_gradients


# %%
guess_order = guess("Which division of A and B needs the fewest bytes?",
                    ["columns, columns", "columns, rows", "rows, columns", "rows, rows"])  # fmt: skip

# %% source_hidden=true
FREE = cluster.Simulation(cluster.Network(alpha=0, beta=1e-9))  # messages cost bytes only
ORDERS = [(first, second) for first in NEEDS for second in NEEDS]
MESSAGE = {("slices", "whole"): "all-gather", ("sums", "whole"): "all-reduce", ("sums", "slices"): "reduce-scatter"}


def messages(first, second):
    """What is sent: (direction, activation, operation); from the table of states, without a run."""
    steps = [("forward", "x", "whole", NEEDS[first]["forward"]),
             ("forward", "u", MAKES[first]["forward"], NEEDS[second]["forward"]),
             ("forward", "y", MAKES[second]["forward"], "whole"),
             ("backward", "y", "whole", NEEDS[second]["backward"]),
             ("backward", "u", MAKES[second]["backward"], NEEDS[first]["backward"]),
             ("backward", "x", MAKES[first]["backward"], "whole")]  # fmt: skip
    return [(way, what, MESSAGE[made, needed]) for way, what, made, needed in steps if (made, needed) in MESSAGE]


def words(operation, count, p):
    """Numbers that each of p machines sends so that an array of `count` numbers is handed over."""
    return (2 if operation == "all-reduce" else 1) * (p - 1) * count // p


n, width, p = 6, 8, 4
generator = np.random.default_rng(2)
x, gradient = generator.normal(size=(2, n, width))
A, B = generator.normal(size=(width, 4 * width)), generator.normal(size=(4 * width, width))
whole = cluster.launch(divided_mlp, (x, (A, B), ("columns", "rows"), gradient), nodes=1, on=FREE).results[0]
inputs = Tensor(x, requires_grad=True)
(F.gelu(inputs @ Tensor(A)) @ Tensor(B) * Tensor(gradient)).sum().backward()
rows, nbytes = [], {}
for ways in ORDERS:
    run = cluster.launch(divided_mlp, (x, (A, B), ways, gradient), nodes=p, on=FREE)
    off = max(np.abs(result[i] - whole[i]).max() for result in run.results for i in (0, 1))
    for i, way in enumerate(ways):
        shares = [result[2][i] for result in run.results]
        off = max(off, np.abs(np.concatenate(shares, axis=int(way == "columns")) - whole[2][i]).max())
    name = f"{ways[0]}, {ways[1]}"
    nbytes[name] = sum(traffic.nbytes for traffic in run.trace.ledger()[0].values())
    formula = sum(words(operation, n * (4 * width if what == "u" else width), p)
                  for _, what, operation in messages(*ways))  # fmt: skip
    kinds = ", ".join(f"{operation} of {what}" for _, what, operation in messages(*ways))
    rows.append([name, kinds, f"{nbytes[name]:,} ({8 * formula:,})", f"{off:.0e}"])
table(
    ["A, B divided by", "messages: forward, then backward", "bytes a machine, simulated (formula)", "off"],
    rows,
    f"4 machines, float64; off: largest difference of outputs and gradients from one machine's, whose gradient of x is "
    f"the tape's up to {np.abs(whole[1] - inputs.grad).max():.0e}; your guess: "
    f"{guess_order.against(min(nbytes, key=nbytes.get))}",
)

# %% [markdown]
# All four are correct, but *columns, then rows* is by far the cheapest: one all-reduce of $y$ in forward, one of $x$'s
# gradient in backward, each of $n$ times $h$ numbers. Nothing is sent in the wide middle, since what the first layer
# makes is what the second one needs. This is the division of Megatron-LM (Shoeybi et al., arXiv:1909.08053). It has
# names for the two ends: $f$, where the divided part begins (nothing in forward, an all-reduce in backward), and $g$,
# where it ends (an all-reduce in forward, nothing in backward). Here it is for 2,048 samples, which are positions of a
# text in a GPT:


# %% source_hidden=true
def turn(axes, machines, features, first, second):
    sliced = {"slices": "columns", "whole": ""}
    split = {
        "x": sliced[NEEDS[first]["forward"]],
        "A": first,
        "u": sliced[NEEDS[second]["forward"]],
        "B": second,
        "y": "",
    }
    sent = messages(first, second)
    numbers = sum(
        words(operation, 2048 * features * (4 if what == "u" else 1), machines) for _, what, operation in sent
    )
    text = (f"{len(sent)} messages; each machine sends {numbers / 1e6:,.1f} million numbers\n"
            f"and keeps {32 * features**2 / machines / 1e6:,.1f} MB of weights (float32)")  # fmt: skip
    divided_layers.draw(axes, machines, split, sent, text)


explore(
    turn,
    "a colour for each machine, grey where every machine has all of it. Forward messages stand above, backward ones "
    "below. Only columns, then rows send nothing for the wide u in the middle. More machines divide the weights "
    "further, but what each of them sends does not fall.",
    machines=[2, 3, 4, 8],
    features=[1024, 256, 4096, 12_288],
    first=["columns", "rows"],
    second=["rows", "columns"],
    multiples=[{}, {"first": "rows", "second": "columns"}, {"second": "columns"}, {"first": "rows"}],
    height=3.6,
    source="formula",
)

# %% [markdown]
# ## Why not rows first?
#
# Rows, then columns look symmetric: if GELU were left out, the sums could wait until the end. But GELU comes between
# the layers, and *the GELU of a sum is not the sum of the GELUs*. Here two machines leave out the message before
# GELU, with the $x$, $A$ and $B$ of the table above:

# %%
shares = [x_i @ A_i for x_i, A_i in zip(np.split(x, 2, axis=1), np.split(A, 2, axis=0), strict=True)]
too_early = sum(F.gelu(Tensor(share)).numpy() @ B for share in shares)  # y without a message before B

# %% source_hidden=true
a, b = 2.0, -1.0
gelu = {value: float(F.gelu(Tensor(np.array([value]))).numpy()[0]) for value in (a, b, a + b)}
say(f"GELU({a:g}) + GELU({b:g}) = {gelu[a] + gelu[b]:.3f}, but GELU({a + b:g}) = {gelu[a + b]:.3f}. The largest error "
    f"of y is {np.abs(too_early - whole[0]).max():.3g} (largest output: {np.abs(whole[0]).max():.3g}); without GELU, "
    f"{np.abs(sum(shares) @ B - x @ A @ B).max():.0e}.")  # fmt: skip

# %% [markdown]
# A layer by columns gives every machine *finished* values of its neurons. Any function of one neuron can follow: GELU,
# tanh, dropout. The bias of a layer by columns is divided with the neurons. The bias of a layer by rows is added once,
# after the all-reduce. If all $p$ machines added it to their summands, it would count $p$ times.
#
# `minidl.parallel.tensor` has both layers, with biases. A *layout* says which layer of a model is divided how, such as
# `{"0": ColumnLinear, "2": RowLinear}`.
#
# ## A whole GPT
#
# **Attention.** Each *head* computes queries, keys and values from $x$, and then attends without the other heads. So
# the three matrices are divided by columns, whole heads to each machine. The heads' outputs are slices, which is what
# a projection by rows needs. Again one all-reduce each way. Norms, dropout and the sums around the blocks are computed
# by every machine from whole activations.
#
# **Embedding.** The table of vectors is divided by its rows, the symbols. A machine looks up the symbols that it has,
# takes zeros for all others, and an all-reduce adds up.
#
# **Loss.** The last layer has an output, a *logit*, for each of $V$ symbols. Divided by columns, the logits of a
# position are slices. They need not be joined: cross entropy needs only three numbers a position, the largest logit,
# the sum of the exponentials, and the logit of the right symbol. These are all-reduced.
#
# `parallel.Hybrid(tp=2)` divides a GPT like this and trains it, here on two simulated machines. Ours learns to add: it
# reads texts such as `37+48=085`.


# %% source_hidden=true
def sums(count, seed):
    a, b = np.random.default_rng(seed).integers(100, size=(2, count))
    texts = [f"{i:02}+{j:02}={i + j:03}" for i, j in zip(a, b, strict=True)]
    tokens = np.array([["0123456789+=".index(symbol) for symbol in text] for text in texts])
    return data.Dataset(tokens[:, :-1], tokens[:, 1:])


def job(steps=40, layers=2, batch=16):
    """A GPT of width 64 with 4 heads, in float64, to see small differences."""
    splits, adam = data.Splits(sums(steps * batch, 0), sums(16, 1)), partial(optim.AdamW, lr=3e-3)
    gpt = partial(nn.models.GPT, 12, block_size=8, n_layer=layers, n_head=4, n_embd=64)
    return parallel.Job(lambda: gpt().double(), splits, adam, batch_size=batch, epochs=1, seed=0)


def train(strategy, p=2, on=FREE, **settings):
    return parallel.train(job(**settings), strategy, p, on=on)


def of_a_block(strategy, axis="tp", p=2, batch=16):
    """What rank 0 does in a step for each block more: calls and bytes by operation."""
    counts = {}
    for sign, steps, layers in ((1, 2, 2), (-1, 2, 1), (-1, 1, 2), (1, 1, 1)):  # differences in steps and in layers
        for name, traffic in train(strategy, p, steps=steps, layers=layers, batch=batch).trace.ledger(axis)[0].items():
            counts[name] = counts.get(name, 0) + sign * np.array([traffic.calls, traffic.nbytes])
    return {name: count for name, count in counts.items() if count.any() and name != "recv"}


# %%
guess_calls = guess("How many all-reduces does a block of GPT need in a step, forward and backward together?")

# %%
divided = partial(parallel.Hybrid, tp=2, micro_batches=1)
one_node = train(parallel.Serial(), p=1)
ways = {"divided": divided(), "forward computed again": divided(recompute=True), "with slices": divided(sequence=True)}
runs = {name: train(strategy) for name, strategy in ways.items()}

# %% source_hidden=true
blocks = {name: of_a_block(strategy) for name, strategy in ways.items()}
rows = []
for name, run in runs.items():
    calls = ", ".join(f"{count[0]} {operation}" for operation, count in blocks[name].items() if count[0])
    off = abs(run.history[-1]["loss"] - one_node.history[-1]["loss"])
    rows.append([name, f"{off:.0e}", calls, f"{sum(count[1] for count in blocks[name].values()):,}"])
table(["two machines", "loss off one node's by", "calls a block and step", "bytes a block, step and machine"], rows,
      f"simulated messages, real training: {one_node.history[-1]['steps']} steps; one node's loss: "
      f"{one_node.history[-1]['loss']:.6f}; your guess: "
      f"{guess_calls.against(int(blocks['divided']['all_reduce'][0]))}")  # fmt: skip

# %% [markdown]
# Two all-reduces in forward and two in backward, one each for attention and for the feed-forward network. If forward
# is computed again in backward to save memory, its two are sent again: $4 + 2$.
#
# The last row is *sequence parallelism* (Korthikanti et al., arXiv:2205.05198). Between the divided layers all machines
# compute the same norms and dropouts, and keep the same activations. But these work on each position separately. So let
# each machine have a slice of the *positions* there. The sum at $g$ is then needed only in slices: a reduce-scatter.
# At $f$, before the next layer by columns, the slices are joined by an all-gather. An all-reduce consists of just these
# two ([04b](04b_collectives.ipynb)), so these send nothing more. (The gradients of norms and biases, of which each
# machine has seen only some positions, are added up once a step: $6h$ numbers a block.) But less is kept:


# %% source_hidden=true
def kept_by(comm, sequence):
    model = nn.models.GPT(16, block_size=32, n_layer=1, n_head=8, n_embd=64, dropout=0.1)
    tensor.split_layers(model, comm, tensor.layout_of(model, sequence))
    tokens = np.random.default_rng(0).integers(16, size=(4, 32))
    return nn.stage_costs(model.train(), tokens)[1].kept  # stage 0 is the embedding, stage 1 a block


alone_keeps = cluster.launch(kept_by, (False,), nodes=1, on=FREE).results[0]
kept = [cluster.launch(kept_by, (sequence,), nodes=8, on=FREE).results[0] / alone_keeps for sequence in (False, True)]
say(f"Activations that one of 8 machines keeps of a block, measured, relative to one machine alone: {kept[0]:.0%} with "
    f"divided layers, {kept[1]:.0%} with slices of the positions as well. An eighth would be {1 / 8:.1%}.")  # fmt: skip

# %% [markdown]
# ## What does it cost?
#
# **Small products.** A machine with a $p$-th of $N$ outputs multiplies narrow matrices. Does its processor stay fast?

# %% source_hidden=true
# measured: differs from run to run
N, inner = 1024, 512
left, right = (generator.normal(size=size).astype(np.float32) for size in ((256, inner), (inner, N)))
columns, speeds = [N // p for p in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)], []
for count in columns:
    share, seconds, product = np.ascontiguousarray(right[:, :count]), [], np.empty((256, count), np.float32)
    for _ in range(15):
        begun = time.perf_counter()
        np.matmul(left, share, out=product)
        seconds.append(time.perf_counter() - begun)
    speeds.append(2 * 256 * inner * count / min(seconds) / 1e9)
see(
    lines.draw([lines.Panel([lines.Line("one machine's product", columns, speeds, "both")],
                            "outputs on a machine, N/p", "GFLOP/s", f"(256, {inner}) times ({inner}, N/p)", log="x",
                            ylim=(0, 1.1 * max(speeds)))], source="measured"),
    "from right to left the same layer is divided among more machines.",
)  # fmt: skip
say(f"With {columns[-1]} columns: {speeds[-1] / max(speeds):.0%} of the highest speed.")

# %% [markdown]
# **Words.** In a step, a block of width $h$ all-reduces $4 n t h$ numbers, for $n$ texts of $t$ positions. Data
# parallelism all-reduces the block's $12 h^2 + 13 h$ gradients (and for each of its 12 parameters a number that says
# whether it has any). A ring sends $2 (p - 1)/p$ times as much from each
# machine, in both.

# %% source_hidden=true
rows = []
for batch in (8, 64):
    bytes_of = {axis: sum(count[1] for count in of_a_block(
        parallel.Hybrid(tp=2 if axis == "tp" else 1, micro_batches=1), axis, batch=batch).values())
        for axis in ("tp", "dp")}  # fmt: skip
    rows.append([8 * batch, f"{bytes_of['tp']:,} ({8 * 4 * 8 * batch * 64:,})",
                 f"{bytes_of['dp']:,} ({8 * (12 * 64**2 + 13 * 64 + 12):,})"])  # fmt: skip
table(["positions n t", "tensor, simulated (formula)", "data, simulated (formula)"], rows,
      "bytes a block, step and machine; h = 64, 2 machines, float64")  # fmt: skip
equal = [3 * h + 13 / 4 for h in (64, 12_288)]  # where 4 n t h = 12 h² + 13 h
say(f"With h = 64 both send equally much at n t = 3 h + 13/4 = **{equal[0]:.0f}** positions. For GPT-3 that is "
    f"{equal[1]:,.0f} positions: {equal[1] / 2048:.0f} texts of 2,048.")  # fmt: skip

# %% [markdown]
# It also matters *when* something is sent. The all-reduces of a divided layer lie between two products: nobody can go
# on without them. Gradients are needed only at the end of the step, so their messages can overlap with backward
# ([05b](05b_overlap.ipynb)).
#
# ## The largest useful tp
#
# Let a machine do $S$ operations a second, and a byte take $\beta$ seconds. Without the products of attention, which
# are few in a wide block, forward and backward take $72\,n t h^2$ operations, so $p$ machines compute for
# $72\,n t h^2/(pS)$ seconds. In 16 bits, each of the block's 4 all-reduces adds up $2 n t h$ bytes, which takes a ring
# $2\,\frac{p - 1}{p} \cdot 2 n t h \beta$. Machines compute for at least
# half of the time if the messages take no longer than the products:
#
# $$16\,\tfrac{p - 1}{p}\,n t h \beta \le \frac{72\,n t h^2}{p S} \quad\Longleftrightarrow\quad
# p \le 1 + \frac{9h}{2 \beta S}.$$
#
# The number of positions cancels: it makes products and messages larger alike. A latency of $\alpha$ seconds for each
# of a ring's $2(p - 1)$ messages makes the largest $p$ smaller, all the more with few positions:
#
# $$p \le \frac{\alpha - c + \sqrt{(c - \alpha)^2 + 4\alpha(c + f)}}{2\alpha},
# \qquad c = 2nth\beta, \quad f = 9nth^2/S.$$
#
# Take a block of GPT-3 ($h$ = 12,288, $nt$ = 2,048) on machines of 450 TFLOP/s, which is about what Megatron-Core
# reports for an H100:

# %%
guess_tp = guess("InfiniBand takes 0.04 ns a byte. On how many machines at most does each compute half of the time?")

# %%
GPU = cluster.Node(flops_per_s=450e12, bytes_per_s=np.inf)


def block(comm, h=12_288, t=2048):
    """A step of a block of GPT on one text, in 16 bits."""
    for _ in range(4):
        comm.compute(flops=18 * t * h**2 / comm.size)
        comm.all_reduce(cluster.Phantom(2 * t * h), algorithm="ring")


def milliseconds(network, p):
    return 1e3 * cluster.launch(block, nodes=p, on=cluster.Simulation(network, GPU)).seconds


# %% source_hidden=true
MACHINES = [1, 2, 4, 8, 16, 32]


def largest_tp(network, h=12_288, positions=2048, speed=450e12):
    """Without and with latency."""
    net = cluster.Network.preset(network)
    c, f, alpha = 2 * positions * h * net.beta, 9 * positions * h**2 / speed, net.alpha
    with_latency = (alpha - c + ((c - alpha) ** 2 + 4 * alpha * (c + f)) ** 0.5) / 2 / alpha
    return 1 + 9 * h / (2 * net.beta * speed), with_latency


largest = {name: largest_tp(name) for name in ("nvlink", "infiniband", "10gbe")}
times = {name: [milliseconds(name, p) for p in MACHINES] for name in largest}
see(
    lines.draw(
        [lines.Panel([*(lines.Line(name, MACHINES, each, "both") for name, each in times.items()),
                      lines.Line("a p-th", MACHINES, [times["nvlink"][0] / p for p in MACHINES])],
                     "machines that divide the block, tp", "step of a block (ms)", "h = 12,288", log="xy")],
        source=("simulated", "formula"),
    ),
    "the farther a line is above that of a p-th, the larger the messages' part of the time.",
)  # fmt: skip
rows = []
for name, (without, most) in largest.items():
    shares = [f"{milliseconds(name, 1) / p / milliseconds(name, p):.1%}" for p in (int(most), int(most) + 1)]
    rows.append([name, f"{without:.1f}", f"{most:.1f}", *shares])
table(["network", "largest tp without latency", "with latency", "computing with that tp", "with one more"], rows,
      "formula; last two: share of the time, simulated, with the third column rounded down and one more; your guess "
      f"for InfiniBand: {guess_tp.against(int(largest['infiniband'][1]))}")  # fmt: skip

# %% [markdown]
# Therefore a layer is divided *within* a server, whose GPUs have fast links between them. What goes between servers is
# the subject of [10b](10b_groups.ipynb).
#
# ## Find the bug
#
# A programmer writes a layer by columns of their own. "By columns, no message is needed." The loss falls.


# %%
class MyColumns(tensor.ColumnLinear):
    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


# %%
guess_bug = guess("What is wrong on each machine in the first step?",
                  ["the output", "gradients of this layer", "gradients below this layer", "nothing"])  # fmt: skip


# %% source_hidden=true
def run_divided(comm, layout):
    """Output and gradient of x of two layers whose loss is the sum of the squared outputs."""
    two = tensor.split_layers(copy.deepcopy(net), comm, layout)
    inputs = Tensor(x, requires_grad=True)
    y = two(inputs)
    (y * y).sum().backward()
    return y.numpy(), inputs.grad


class Copies(parallel.Hybrid):
    """Records the weights of the first norm, of which every machine has a copy."""

    def run(self, session):
        super().run(session)
        session.record("copy", session.model.transformer.h[0].ln_1.weight.numpy().copy())


manual_seed(0)
net = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).double()
BOTH = {"0": tensor.ColumnLinear, "2": tensor.RowLinear}
alone = cluster.launch(run_divided, ({},), nodes=1, on=FREE).results[0]
one_step = [cluster.launch(run_divided, (layout,), nodes=2, on=FREE).results[0]
            for layout in (BOTH, BOTH | {"0": MyColumns})]  # fmt: skip
layout = dict(tensor.layout_of(job().build_model())) | {"*.mlp.c_fc": MyColumns}
rows = []
for name, result, settings in zip(("ColumnLinear", "MyColumns"), one_step, ({}, {"layout": layout}), strict=True):
    run = train(Copies(tp=2, micro_batches=1, **settings))
    copies = [recorded[0] for recorded in run.recorded["copy"]]
    rows.append([name, *(f"{np.abs(result[i] - alone[i]).max():.1g}" for i in (0, 1)),
                 f"{run.history[0]['loss']:.4f}", f"{np.abs(copies[0] - copies[1]).max():.2g}"])  # fmt: skip
table(["", "output off by", "gradient of x off by", "the GPT's loss", "its two copies of a norm differ by"], rows,
      "the first two: one step of two layers; the others: a GPT after training; simulated messages; your guess: "
      f"{guess_bug.against('gradients below this layer')}")  # fmt: skip

# %% [markdown]
# Forward is right, and so are the gradients of the layer's own weights. But each machine has only its own summand of
# $\bar x$. Everything *below*, such as the norm and the blocks before, learns from a different, incomplete gradient on
# each machine. What should be copies drifts apart, and no error says so. The cure is $f$: an all-reduce of the gradient
# of the replicated input. Tests of outputs and loss curves miss this bug; compare all gradients with one node's.
#
# ## What the papers report
#
# Narayanan et al. (2021, arXiv:2104.04473, table 1) trained GPTs on machines of 8 GPUs (A100, 312 TFLOP/s each). The
# percentage that they print counts *all* operations, also the forward that is computed again. Appendix and table give
# what is needed to take it out, with $s$ = 2,048 positions and $V$ = 51,200 symbols:

# %% source_hidden=true
PUBLISHED = [(1.7, 2304, 24, 1, 137), (3.6, 3072, 30, 2, 138), (7.5, 4096, 36, 4, 142), (18.4, 6144, 40, 8, 135),
             (145.6, 12_288, 80, 8, 148), (1008, 25_600, 128, 8, 163)]  # fmt: skip
rows, net_share = [], []
for billions, h, layers, tp, tera in PUBLISHED:
    executed = 96 * (1 + 2048 / (6 * h) + 51_200 / (16 * layers * h))  # a position, layer and h²
    needed = 72 * (1 + 2048 / (6 * h) + 51_200 / (12 * layers * h))
    net_share.append(tera / 312 * needed / executed)
    rows.append([f"{billions:g}", f"{h:,}", tp, f"{tera / 312:.0%}", f"{net_share[-1]:.0%}"])
table(["10⁹ weights", "h", "tp", "of the peak, printed", "without what is repeated"], rows,
      "published; last column: formula")  # fmt: skip
say(f"In the last row, {PUBLISHED[-1][-1] / 312:.0%} of the peak mean {net_share[-1]:.0%} for the model itself.")

# %% [markdown]
# Larger models have larger tp, up to 8: the GPUs of one server. The two largest of these six have 8 as well, and a
# pipeline of several stages.
#
# Shoeybi et al. (2019) report 76 % of a linear speed-up for 8.3 billion weights on 512 GPUs: 64 replicas, each of 8
# GPUs that divide the layers.
#
# ## The answer so far
#
# Two machines compute one layer by dividing its matrix. By columns they need the whole input and make slices; by rows
# they need slices and make sums; in backward the roles swap. What they must tell each other follows from what they have
# and what they need. Columns, then rows need one all-reduce each way, since a slice of finished neurons is all that
# GELU and the next layer need. A GPT block takes $2 + 2$ all-reduces of activations, in the middle of the
# computation. Machines compute at least half of the time only if at most $1 + 9h/(2\beta S)$ divide a layer. With the
# fast links within a server that is more than its 8 GPUs, between servers less.
#
# ## To the exercises
#
# [Exercises of chapter 10](../exercises/10_tensor_parallelism/10_tensor_parallelism.ipynb): after this page you can
# write layers by columns and by rows, divide attention by heads, and say which division needs no message.
#
# **Three questions to argue about**
#
# 1. A network has *three* linear layers with GELUs between them. How would you divide them, and what is sent?
# 2. Dropout comes after a layer by columns, and another dropout after a layer by rows. Which of the two must draw the
#    same mask on all machines, and which must not?
# 3. A layer fits on one machine, but the step should be faster. Tensor or data parallelism: what decides?
#
# Next: [10b. Which machines talk to which?](10b_groups.ipynb)
