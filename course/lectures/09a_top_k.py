# %% [markdown]
# # 09a. Who needs 99.9 % of the gradient?
#
# *Read [05a](05a_data_parallelism.ipynb) first: nodes that add up their gradients in every step. Reading time: about 23
# minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# In chapter 05 every node sends its whole gradient in every step, and waits for the network. Do the other nodes need
# all of it? That is the question of this whole chapter: *who needs 99.9 % of the gradient, and when does it pay to
# leave it out?* This lecture sends the largest entries; 09b to 09f improve on that or send something else;
# [09g](09g_when_it_pays.ipynb) asks when it pays.
#
# Here is the gradient of a network with 64 inputs, 128 hidden units and 10 outputs, on 16 of the 8x8 digits. It has
# one number for each weight, $n$ in all. Sort them by magnitude: how much do the largest $k$ of them hold? "How much"
# is the share of the squared length $\sum_i g_i^2$, because that is what a small step along the gradient gains. The
# share of the numbers, $d = k/n$, is called the **density**.

# %% source_hidden=true
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, compress, data, manual_seed, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
train_set, _ = data.digits()
images, labels = train_set[:]

# %%
guess_share = guess("What share of the squared length is in the largest 1 % of the numbers?", unit="%")

# %%
manual_seed(0)
model = nn.models.MLP(64, 128, 10)
optimizer, rng = optim.SGD(model.parameters(), lr=0.5), np.random.default_rng(0)


def gradient_of(samples):
    """The gradient of the mean loss of some samples, as one vector."""
    optimizer.zero_grad()
    F.cross_entropy(model(Tensor(images[samples])), labels[samples]).backward()
    return np.concatenate([parameter.grad.ravel() for parameter in model.parameters()])


def held(vector):
    """The share of the squared length in the largest 1, 2, ..., n entries."""
    squares = np.sort(vector**2)[::-1].cumsum()
    return squares / squares[-1]


# %% source_hidden=true
gradients = {}
for step in range(201):
    gradient = gradient_of(rng.choice(len(images), 16, replace=False))
    if step in (0, 200):
        gradients[f"step {step}"] = gradient
    optimizer.step()
n = len(gradient)
gradients["n normal random numbers"] = rng.standard_normal(n)

# %% source_hidden=true
shares = 100 * np.arange(1, n + 1) / n
curves = [lines.Line(name, shares, 100 * held(vector)) for name, vector in gradients.items()]
panel = lines.Panel(curves, "largest entries (% of n)", "share of squared length (%)", log="x", xlim=(0.01, 100))
see(lines.draw([panel], source="measured", title="A few numbers hold most of a gradient", height=3.6),
    "a gradient is not like random numbers of one size: its curve rises much earlier.")  # fmt: skip
first, last = (held(gradients[f"step {step}"]) for step in (0, 200))
one, tenth = round(0.01 * n), round(0.1 * n)
say(f"Of n = {n:,} numbers, the largest 1 % hold **{100 * first[one - 1]:.0f} %** of the squared length at the first "
    f"step, {100 * last[one - 1]:.0f} % after 200 steps; the largest 10 % hold {100 * first[tenth - 1]:.0f} % and "
    f"{100 * last[tenth - 1]:.0f} %. Your guess for 1 %: {guess_share.against(100 * first[one - 1])}.")  # fmt: skip

# %% [markdown]
# That is a reason to try: send the largest 1 % and forget the rest.
#
# ## Build: two ways to choose, and a memory
#
# A **compressor** turns a gradient into something shorter. Two ways to choose entries: all above a **threshold** $\tau$
# in magnitude, or the $k$ of largest magnitude, **top-k**. Both send indices and values; all other entries count as
# zero.


# %%
def threshold(gradient, tau):
    return np.where(np.abs(gradient) > tau, gradient, 0)


def top_k(gradient, k):
    chosen = np.argpartition(np.abs(gradient), -k)[-k:]
    sent = np.zeros_like(gradient)
    sent[chosen] = gradient[chosen]
    return sent


small = np.array([0.1, -5.0, 3.0, 0.5])
print("given          ", small)
print("threshold 0.4  ", threshold(small, 0.4))
print("top-k, k = 1   ", top_k(small, 1))

# %% [markdown]
# What happens to the rest? Either it is dropped, or the node keeps it as a **residual** $e$ and adds it to its next
# gradient. This is **error feedback**:
#
# $$a = g + e, \qquad \text{sent} = \text{top-k}(a), \qquad e \leftarrow a - \text{sent}.$$
#
# Here it is, for $p$ nodes. The model has no hidden layer, so that the gradient is one line: 640 weights. A row of
# `gradients` and of `residual` belongs to a node.


# %%
p, steps, rate = 4, 300, 1.0
pixels, targets = images.reshape(len(images), 64).astype(float), np.eye(10)[labels]


def node_gradients(w, samples):
    """One gradient a node, each of its own share of the samples."""
    rows = []
    for share in np.split(samples, p):
        scores = np.exp(pixels[share] @ w.reshape(64, 10))
        wrong = scores / scores.sum(axis=1, keepdims=True) - targets[share]
        rows.append((pixels[share].T @ wrong).ravel() / len(share))
    return np.array(rows)


def train_by_hand(k, memory, seed=0):
    """The loss on all training samples after the steps of p nodes."""
    rng, w, residual = np.random.default_rng(seed), np.zeros(640), np.zeros((p, 640))
    for _ in range(steps):
        gradients = node_gradients(w, rng.choice(len(pixels), 64, replace=False))
        accumulated = gradients + residual
        sent = np.array([top_k(row, k) for row in accumulated])
        residual = memory * (accumulated - sent)  # memory: 1 or 0
        w = w - rate * sent.mean(axis=0)
    scores = pixels @ w.reshape(64, 10)
    return np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(labels)), labels])


# %% source_hidden=true
SEEDS = range(3)
rows = []
for k in (640, 6, 1):
    losses = [[train_by_hand(k, memory, seed) for seed in SEEDS] for memory in (False, True)]
    rows.append(
        [k, f"{100 * k / 640:.1f} %", *(f"{np.mean(of):.3f} ({min(of):.3f} to {max(of):.3f})" for of in losses)]
    )
table(["k of 640", "density", "rest dropped", "rest kept"], rows,
      f"measured: training loss after {steps} steps, mean (range) of {len(SEEDS)} seeds")  # fmt: skip

# %% [markdown]
# The largest entry of 640 is enough here, *if what is left out is kept*. In minidl, the same is
# `ErrorFeedback(TopK(density))`. It agrees with the three lines above to the bit:

# %% source_hidden=true
ours, theirs, residual = [], [], np.zeros(n, np.float32)
minidls = compress.ErrorFeedback(compress.TopK(0.01))
for _ in range(50):
    gradient = rng.standard_normal(n).astype(np.float32)
    accumulated = gradient + residual
    ours.append(top_k(accumulated, int(np.ceil(0.01 * n))))
    residual = accumulated - ours[-1]
    theirs.append(minidls.decode(minidls.encode(gradient)))
assert np.array_equal(ours, theirs)
assert np.array_equal(residual, minidls.residual)
print("50 messages and the residual are equal to the bit")

# %% [markdown]
# ### Nothing is lost
#
# In one step, sent + kept = given, to the bit: each entry of $a$ is either sent or kept, and none is changed. Over many
# steps, everything that was sent plus the last residual is the sum of all gradients, but for rounding. Float32 rounds
# $(e + g_1) + g_2$ in another order than a plain sum does:

# %%
guess_equal = guess("After 50 steps in float32: how many of the n sums differ from sent + kept?", unit="%")

# %% source_hidden=true
rng, keeper, given, sent = np.random.default_rng(1), compress.ErrorFeedback(compress.TopK(0.01)), 0.0, 0.0
one_step = True
for _ in range(50):
    gradient = rng.standard_normal(n).astype(np.float32)
    before = np.zeros(n, np.float32) if keeper.residual is None else keeper.residual.copy()
    message = keeper.decode(keeper.encode(gradient))
    one_step &= np.array_equal(message + keeper.residual, gradient + before)
    given, sent = given + gradient, sent + message
differs, error = given != sent + keeper.residual, np.abs(given - sent - keeper.residual).max()
say(f"Each single step: equal to the bit: {one_step}. After 50 steps {100 * differs.mean():.0f} % of the sums differ, "
    f"by at most {error:.0e}, where the largest sum is {np.abs(given).max():.0f} (measured). Your guess: "
    f"{guess_equal.against(100 * differs.mean())}.")  # fmt: skip

# %% [markdown]
# *What* is conserved depends on what is kept. minidl keeps gradients, so they count with the learning rate of the step
# in which they are *sent*. Some texts keep $\eta g$, the learning rate $\eta$ times the gradient: then it is the
# learning rate of the step in which they were *computed*. While $\eta$ is constant there is no difference. Let an entry
# with gradient 1 wait for 10 steps, and let $\eta$ fall from 0.1 to 0.01 after 5 of them:

# %% source_hidden=true
etas = np.array([0.1] * 5 + [0.01] * 5)
say(f"The weight moves by {etas.sum():.2f} if nothing waits, by {10 * etas[-1]:.2f} if $g$ is kept and sent with "
    f"the last learning rate, by {etas.sum():.2f} if $\\eta g$ is kept (formula).")  # fmt: skip

# %% [markdown]
# ## Measure: the largest, the random, the kept
#
# Now the network from above, on 4 simulated nodes, with plain SGD. (Momentum is the question of
# [09b](09b_momentum.ipynb).) minidl compresses each layer's weights and biases by themselves and sends at least one
# entry of each. For comparison, **random-k** sends $k$ entries that each node draws blindly.

# %%
EPOCHS, RATE, HIGH, NODES = 12, 0.5, 4.0, 4


@cache  # some runs are shown twice
def train(compressor, seed=0, epochs=EPOCHS, rate=RATE, schedule=None):
    job = parallel.Job(partial(nn.models.MLP, 64, 128, 10), data.digits, partial(optim.SGD, lr=rate), schedule,
                       epochs=epochs, seed=seed)  # fmt: skip
    strategy = parallel.Synchronous(compressor=compressor and COMPRESSORS[compressor](), algorithm="ring")
    return parallel.train(job, strategy, NODES, cluster.Simulation(trace="ledger"))


def random_k(density):
    return compress.RandomK(density, seed=None)


COMPRESSORS = {}
for density in (0.1, 0.01, 0.001):
    for name, kind in {"top-k": compress.TopK, "random-k": random_k}.items():
        COMPRESSORS[name, density, "dropped"] = partial(kind, density)
        COMPRESSORS[name, density, "kept"] = lambda kind=kind, density=density: compress.ErrorFeedback(kind(density))


# %% source_hidden=true
def errors(compressor, **settings):
    """The test errors in percent, one for each seed."""
    return [100 - 100 * train(compressor, seed, **settings).accuracy for seed in SEEDS]


def losses_of(compressor, **settings):
    return [train(compressor, seed, **settings).history[-1]["loss"] for seed in SEEDS]


def bytes_of_a_step(compressor, **settings):
    last = train(compressor, **settings).history[-1]
    return last["bytes"] / last["steps"]


def row(name, compressor, **settings):
    found, ends = errors(compressor, **settings), losses_of(compressor, **settings)
    return [name, f"{np.mean(found):.1f} % ({min(found):.1f} to {max(found):.1f})",
            f"{np.mean(ends):.3f} ({min(ends):.3f} to {max(ends):.3f})",
            f"{bytes_of_a_step(compressor, **settings):,.0f}"]  # fmt: skip


# %% source_hidden=true
say(f"With learning rate {RATE}, dense training ends with {np.mean(errors(None)):.1f} % test error, the mean of "
    f"{len(SEEDS)} seeds (simulated).")  # fmt: skip

# %%
guess_error = guess("Its test error with the largest 0.1 %, rest dropped?", unit="%")

# %%
guess_random = guess("Random 1 %, rest kept: compared with the largest 1 %, rest dropped, the loss is",
                     ["lower", "the same", "higher"])  # fmt: skip

# %% source_hidden=true
cases = [None, ("top-k", 0.01, "dropped"), ("random-k", 0.01, "dropped"), ("top-k", 0.01, "kept"),
         ("random-k", 0.01, "kept"), ("top-k", 0.001, "dropped"), ("top-k", 0.001, "kept")]  # fmt: skip
rows = []
for case in bar(cases, "training seven ways, two learning rates, three seeds"):
    *low, traffic = row(f"{case[0]}, {100 * case[1]:g} %, rest {case[2]}" if case else "dense", case)
    high = losses_of(case, rate=HIGH)
    rows.append([*low, f"{np.mean(high):.3f} ({min(high):.3f} to {max(high):.3f})", traffic])
kept, dropped = losses_of(("random-k", 0.01, "kept")), losses_of(("top-k", 0.01, "dropped"))
answer = "lower" if max(kept) < min(dropped) else "higher" if min(kept) > max(dropped) else "the same"
table(["", "test error", "training loss", f"learning rate {HIGH:g}: training loss", "bytes a step and node"], rows,
      f"simulated: {EPOCHS} epochs, learning rate {RATE}, mean (range) of {len(SEEDS)} seeds; your guesses: "
      f"{guess_error.against(np.mean(errors(cases[-2])))}; {guess_random.against(answer)}")  # fmt: skip

# %% [markdown]
# Read the table from below. With one entry in a thousand and the rest dropped, training stays far behind. The same
# density with a memory loses little. **So nobody needs the other 99.9 % at once, if each node keeps it.**
#
# With learning rate 0.5, *random* entries with a memory reach a lower loss than the *largest* entries without one.
# With 4 it is the other way round. So both matter, the memory and the choice of entries. (We tried these two learning
# rates only.)
#
# The dense bytes are those of the ring (04b): $2\frac{p-1}{p}n$ numbers of 4 bytes. A compressed gradient is $k$
# indices and $k$ values, 8 bytes a pair, and each node must get the message of each other one, in an all-gather:
# $(p-1)\,8k$ bytes.

# %% source_hidden=true
layers = [parameter.size for parameter in nn.models.MLP(64, 128, 10).parameters()]
rows = [["dense", f"{2 * (NODES - 1) / NODES * 4 * n:,.0f}", f"{bytes_of_a_step(None):,.0f}"]]
for density in (0.01, 0.001):
    pairs = sum(int(np.ceil(density * size)) for size in layers)
    rows.append([f"top-k, {100 * density:g} %: k = {pairs}", f"{(NODES - 1) * 8 * pairs:,.0f}",
                 f"{bytes_of_a_step(('top-k', density, 'kept')):,.0f}"])  # fmt: skip
table(["", "formula: bytes a step and node", "simulated (all messages, those of checks and evaluation too)"], rows,
      f"{NODES} nodes, {len(layers)} parameter arrays")  # fmt: skip

# %% [markdown]
# An index doubles a message, and with $p$ nodes the all-gather grows where the ring does not. Both are the subject of
# [09c](09c_sparse_sums.ipynb). Turn the density, and switch the memory off and on:


# %% source_hidden=true
def learning_curve(axes, density, rest):
    for name, case, tone in (("dense", None, 6), (f"top-k, rest {rest}", ("top-k", density, rest), rest == "kept")):
        curves = np.array([[each["loss"] for each in train(case, seed).history] for seed in SEEDS])
        look = {"color": style.SERIES[tone], "linestyle": style.DASHES[tone], "label": name}
        axes.plot(range(1, EPOCHS + 1), curves.mean(axis=0), **look)
        axes.fill_between(range(1, EPOCHS + 1), curves.min(axis=0), curves.max(axis=0), color=style.SERIES[tone],
                          alpha=0.2, linewidth=0)  # fmt: skip
    axes.set(yscale="log", ylim=(0.03, 3), xlim=(1, EPOCHS), xlabel="epoch", ylabel="training loss")
    axes.set_yticks([0.1, 1], ["0.1", "1"])
    axes.minorticks_off()
    axes.legend()


explore(learning_curve,
        "rest dropped: the lower the density, the more the sparse curve falls behind the dense one. Rest kept: with "
        "few entries the sparse curve starts late and comes close all the same. Shaded: the range of the seeds.",
        density=[0.001, 0.01, 0.1], rest=["dropped", "kept"], height=2.6, source="simulated",
        multiples=[{"density": d, "rest": r} for r in ("dropped", "kept") for d in (0.1, 0.01, 0.001)])  # fmt: skip

# %% [markdown]
# ## Why it works: an entry waits until it is large
#
# A small entry is not lost. It grows in the residual, step by step, until it is among the largest. If it points the
# same way each time, its sum arrives late and complete; if it changes its sign, it cancels without ever being sent. So
# how long does it wait? On average each of $n$ entries is sent every $1/d$ steps, since $k$ are sent in each step. The
# average says little:

# %%
guess_wait = guess("At density 1 %: what share of all waits is shorter than 10 steps?", unit="%")

# %%
manual_seed(0)
model = nn.models.MLP(64, 128, 10)
optimizer, rng = optim.SGD(model.parameters(), lr=RATE), np.random.default_rng(0)
cuts = np.cumsum([parameter.size for parameter in model.parameters()])[:-1]
residual, last_sent, waits, used = np.zeros((NODES, n)), np.full(n, -1), [], np.zeros(n, bool)
STEPS, k = 1000, int(np.ceil(0.01 * n))
for step in bar(range(STEPS), "waiting"):
    shares = np.split(rng.choice(len(images), 64, replace=False), NODES)
    gradients = np.array([gradient_of(share) for share in shares])
    sent = np.array([top_k(row, k) for row in gradients + residual])
    residual += gradients - sent
    [of_node_0] = np.nonzero(sent[0])
    waits.extend(step - last_sent[of_node_0])
    last_sent[of_node_0] = step
    used |= gradients[0] != 0
    for parameter, part in zip(model.parameters(), np.split(sent.mean(axis=0), cuts), strict=True):
        parameter.grad = part.reshape(parameter.shape).astype(np.float32)
    optimizer.step()
waits, never = np.array(waits), last_sent < 0

# %% source_hidden=true
with style.applied():
    figure, [axes] = style.new_figure(6.5, 3.2)
    share = np.full(len(waits), 100 / len(waits))
    axes.hist(waits, [0.5, *(2**i + 0.5 for i in range(11))], weights=share, color=style.SERIES[5], **style.BORDER)
    axes.axvline(100, color=style.SERIES[1], label="1/d, formula")
    axes.set(xscale="log", xlabel="steps that an entry waited until it was sent", ylabel="share of what was sent (%)")
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axes.legend()
    style.label_source(figure, ("measured", "formula"), f"density 1 %, node 0 of {NODES}")
see(figure, "each bar covers as many numbers of steps as all bars to its left. "
    f"{100 * (waits < 1 / 0.01).mean():.0f} % of the waits are shorter than 1/d; the long ones, and the entries that "
    "are never sent, make up the average.")  # fmt: skip
say(f"{100 * (waits < 10).mean():.0f} % of what was sent had waited less than 10 steps (your guess: "
    f"{guess_wait.against(100 * (waits < 10).mean())}), "
    f"{100 * (waits > 300).mean():.0f} % more than 300. In {STEPS:,} steps {100 * never.mean():.0f} % of the entries "
    f"were never sent; for {100 * (~used).mean():.0f} % the gradient was always 0, as for the weights of pixels that "
    "are black in every image.")  # fmt: skip

# %% [markdown]
# A wait is staleness, as in chapter 06, but of single entries. There training diverged when the learning rate was too
# high for the staleness. [09b](09b_momentum.ipynb) looks for the same effect here.
#
# ## Skip small updates
#
# So far a node compares *gradients* with $\tau$. It can also compare the *change of the weight* that a gradient would
# cause: it sends $\eta a$ when $|\eta a| > \tau$. The residual then holds changes, sums of $\eta g$, and the
# optimizer's own learning rate is 1. With a constant learning rate this is the threshold again. So let it fall to a
# tenth after half of the epochs.


# %%
def falls(epoch):
    return 1.0 if epoch < EPOCHS // 2 else 0.1


@dataclass
class SkipSmallChanges(compress.Threshold):
    """Sends changes of weights above tau, and keeps the others for later."""

    is_stateful, keeps_errors = True, True  # tells minidl that what is left out is sent later

    def begin_run(self, seed, name, rank):
        self.kept = 0.0

    def begin_epoch(self, epoch):
        self.rate = np.float32(RATE * falls(epoch))

    def encode(self, array):
        change = self.rate * array + self.kept
        message = super().encode(change)
        self.kept = change - self.decode(message)
        return message


def falling(optimizer, steps_per_epoch):
    return optim.LambdaLR(optimizer, lambda step: falls(step // steps_per_epoch))


# %% source_hidden=true
COMPRESSORS["by gradient"] = lambda: compress.ErrorFeedback(compress.Threshold(0.02))
COMPRESSORS["by change"] = lambda: SkipSmallChanges(0.02 * RATE)
settings = {None: {"schedule": falling}, "by gradient": {"schedule": falling}, "by change": {"rate": 1.0}}
rows = []
for name, setting in bar(settings.items(), "three ways, three seeds"):
    history, found = train(name, **setting).history, row(name or "dense", name, **setting)
    half = history[EPOCHS // 2 - 1]
    late = (history[-1]["bytes"] - half["bytes"]) / (history[-1]["steps"] - half["steps"])
    rows.append([*found[:3], f"{half['bytes'] / half['steps']:,.0f}", f"{late:,.0f}"])
table(["threshold on", "test error", "training loss", "bytes a step, first half", "second half"], rows,
      f"simulated: {EPOCHS} epochs, learning rate falling to a tenth; tau: 0.02 gradients, 0.01 changes")  # fmt: skip

# %% [markdown]
# The difference is in the second half: where the learning rate is a tenth, a change of the weight reaches its threshold
# ten times as late, so less is sent. A threshold on the gradient does not notice the learning rate. Neither knows in
# advance how much it will send; top-k does.
#
# ## Break it
#
# **Without the absolute value.** A common misprint: "send the elements *greater than* the threshold", $g > \tau$
# instead of $|g| > \tau$. Only positive entries travel, so every weight can only fall.


# %%
@dataclass
class Misprinted(compress.Threshold):
    def choose(self, flat):
        return np.flatnonzero(flat > self.tau)


# %% source_hidden=true
COMPRESSORS["g > tau"] = lambda: compress.ErrorFeedback(Misprinted(0.02))
rows = [row("magnitude of g > tau", "by gradient"), row("g > tau", "g > tau")]
table(["sent, the rest is kept", "test error", "training loss", "bytes a step and node"], rows,
      f"simulated: {EPOCHS} epochs, {len(SEEDS)} seeds, tau = 0.02")  # fmt: skip
keeper, given, sent = compress.ErrorFeedback(Misprinted(1.0)), 0.0, 0.0
for _ in range(200):
    gradient = rng.standard_normal(1000)
    given, sent = given + gradient.mean(), sent + keeper.decode(keeper.encode(gradient)).mean()
say(f"After 200 random gradients of mean zero, the mean entry has received {given:+.2f}, and **{sent:+.2f}** was sent; "
    f"the residual holds the other {keeper.residual.mean():+.2f} (measured).")  # fmt: skip

# %% [markdown]
# The dangerous part is that training does not fail. Adding one number to the scores of all ten classes does not change
# which class a network prefers, so it can learn even if weights only fall. It learns less, and what is negative is
# not sent: the residual grows and grows. You recognise it by a residual whose mean drifts.
#
# **The gradients of all nodes in every residual.** Another misprint: the sum over *all* nodes is added to each node's
# residual. Then each of the $p$ nodes sends all gradients, and each gradient is counted $p$ times.


# %%
def counted(whose, nodes, k=6):
    """(Sent + kept) / given, over 100 steps of several nodes."""
    rng = np.random.default_rng(0)
    residual, given, sent = np.zeros((nodes, 640)), np.zeros(640), np.zeros(640)
    for _ in range(100):
        gradients = 1 + rng.standard_normal((nodes, 640))
        accumulated = residual + (gradients if whose == "own" else gradients.sum(axis=0))
        messages = np.array([top_k(each, k) for each in accumulated])
        residual, given, sent = accumulated - messages, given + gradients.sum(axis=0), sent + messages.sum(axis=0)
    return np.mean(sent + residual.sum(axis=0)) / np.mean(given)


# %% source_hidden=true
table(["nodes", "own gradient in the residual", "the sum of all"],
      [[nodes, f"{counted('own', nodes):.3f}", f"{counted('all', nodes):.3f}"] for nodes in (1, 2, 4, 16)],
      "measured: (sent + kept) / given")  # fmt: skip

# %% [markdown]
# The mistake is a learning rate that is $p$ times as high, so on one node it is invisible. "Sent + kept = given" finds
# it in one step.
#
# ## What the papers report
#
# **Strom (2015)**, *Scalable distributed DNN training using commodity GPU cloud computing* (Interspeech): a threshold
# with a residual. **Aji and Heafield (2017)**, *Sparse communication for distributed gradient descent*
# (arXiv:1704.05021): the largest entries with a residual, "gradient dropping". **Stich, Cordonnier and Jaggi (2018)**,
# *Sparsified SGD with memory* (arXiv:1809.07599), treat top-k and random-k alike, as our table does. **Lin et al.
# (2018)**, *Deep gradient compression* (arXiv:1712.01887), send 0.1 %; there most parameters are sent every 600 to
# 1,000 iterations. The formula's average is $1/d$ = 1,000.
#
# For minutes instead of seconds, with momentum and more methods:
# `benchmarks/reproductions/deep_gradient_compression.py`.
#
# ## To the exercises
#
# [Exercises of chapter 09](../exercises/09_gradient_compression/09_gradient_compression.ipynb): a threshold with a
# residual (the check adds up sent and kept, to the bit), and top-k with error feedback.
#
# **Three questions to argue about**
#
# 1. Every node picks its own top-k. The entry that is largest in the *sum* may be small on every node. Does error
#    feedback help it?
# 2. A node dies and is replaced. Its weights come from a checkpoint. What is lost?
# 3. Random-k with a common seed needs no indices, and its messages can be summed on the way. When is it the better
#    choice?
#
# Next: [09b](09b_momentum.ipynb) asks what becomes of momentum when most of the gradient waits.
