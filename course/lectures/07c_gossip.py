# %% [markdown]
# # 07c. Gossip: who has to hear from whom?
#
# *Read [05a](05a_data_parallelism.ipynb) and [07b](07b_elastic_averaging.ipynb) first: all-reduce, a conserved total.
# Reading time: about 22 minutes. Figures are* simulated *or come from a* formula.
#
# ## The question
#
# In an all-reduce every machine's gradient reaches every other machine, in every step. Here are 16 machines on Gigabit
# Ethernet that learn to read digits. To make it hard, the samples are sorted by label before they are dealt: each
# machine has one or two of the ten digits. The model that counts is the mean of all 16 models. Two extremes: the
# machines add up their gradients in each step, or they never talk.

# %% source_hidden=true
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.neighbours import draw_exchange, on_circle, on_grid
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import PartialAllReduce, mixing
from minidl.plots import lines, style
from minidl.plots.style import time_text

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
N, EPOCHS, SEEDS, LR = 16, 8, range(8), 0.3  # N: machines
images, tests = data.digits()
DIGITS = data.Splits(data.Dataset(*images[:1408]), tests)
ETHERNET = cluster.Simulation(cluster.Network.preset("1gbe"), cluster.Node(1e9, 1e10), trace="ledger")


def make_job(shards="by_label", seed=0, epochs=EPOCHS):
    model, sgd = partial(nn.models.MLP, 64, 64, 10), partial(optim.SGD, lr=LR)
    return parallel.Job(model, DIGITS, sgd, batch_size=4 * N, epochs=epochs, seed=seed, shards=shards)


def strategy_of(topology):
    return parallel.Synchronous() if topology == "all-reduce" else parallel.Gossip(topology)


@cache
def step_time(topology):
    """Simulated seconds of a step, in the second epoch."""
    history = parallel.train(make_job(epochs=2), strategy_of(topology), N, ETHERNET).history
    return (history[1]["seconds"] - history[0]["seconds"]) / 22


def layers(w):
    """Weight matrices and biases of a network, from vectors along the last axis."""
    ends = np.cumsum([64 * 64, 64, 10 * 64])
    first, b, second, c = np.split(w, ends, axis=-1)
    return first.reshape(*w.shape[:-1], 64, 64), b, second.reshape(*w.shape[:-1], 10, 64), c


def gradients(w, samples):
    """The gradient of each machine's mean loss, at its own weights."""
    parameters = [Tensor(each, requires_grad=True) for each in layers(w)]
    first, b, second, c = parameters
    x = Tensor(DIGITS.train.x[samples].reshape(*samples.shape, 64))
    h = F.relu(x @ first.transpose(0, 1, 3, 2) + b.reshape(*b.shape[:2], 1, 64))
    h = h @ second.transpose(0, 1, 3, 2) + c.reshape(*c.shape[:2], 1, 10)
    loss = F.cross_entropy(h.reshape(-1, 10), DIGITS.train.y[samples].reshape(-1)) * (w.shape[0] * w.shape[1])
    loss.backward()  # the sum over seeds and machines of their mean losses
    return np.concatenate([each.grad.reshape(*w.shape[:2], -1) for each in parameters], axis=2)


def evaluate(w):
    """Test loss, and test error in percent, of each network."""
    first, b, second, c = layers(w)
    h = np.maximum(DIGITS.test.x.reshape(1, -1, 64) @ first.transpose(0, 2, 1) + b[:, None], 0)
    h = h @ second.transpose(0, 2, 1) + c[:, None]
    losses = [F.cross_entropy(Tensor(each), DIGITS.test.y).item() for each in h]
    return losses, 100 * (h.argmax(axis=2) != DIGITS.test.y).mean(axis=1)


def spread(values, form=".1f"):
    return f"{np.mean(values):{form}} ± {np.std(values, ddof=1):{form}}"


# %% [markdown]
# A third way: put the machines on a ring. In each step a machine *averages its weights with its two neighbours'*, and
# then steps by its own gradient. This is **gossip**, or D-PSGD (Lian et al., 2017). In one line for all machines:
# $x \leftarrow W x - \eta\, g$. Row $i$ of the **mixing matrix** $W$ has the weights with which machine $i$ averages;
# on the ring $W_{ij} = \frac13$ for $j = i$ and its neighbours, 0 for all others. `gradients` and `evaluate`
# (collapsed) take the weights of all machines, with all seeds, at once:


# %%
@cache  # some runs are shown twice
def train(topology, shards="by_label"):
    """Gossip of all machines with all seeds; test loss and error (%) of the mean, by epoch and seed."""
    jobs, history = [make_job(shards, seed) for seed in SEEDS], []
    starts = np.array([np.concatenate([w.numpy().ravel() for w in job.build_model().parameters()]) for job in jobs])
    x, step = np.repeat(starts[:, None], N, axis=1), 0  # seeds, machines, weights
    orders = [job.order(DIGITS.train, N, job.batch_size) for job in jobs]
    for epoch in range(EPOCHS):
        in_steps = np.array([order(epoch) for order in orders]).reshape(len(jobs), -1, 4, N)
        for samples in np.moveaxis(in_steps, 1, 0).transpose(0, 1, 3, 2):  # seeds, machines, 4 samples
            g = gradients(x, samples)
            if topology == "all-reduce":
                x -= LR * g.mean(axis=1, keepdims=True)
            else:
                W = np.array([parallel.Gossip(topology).mixing_matrix(N, step, seed) for seed in SEEDS])
                x = W.astype(x.dtype) @ x - LR * g
            step += 1
        history.append(evaluate(x.mean(axis=1)))
    return np.moveaxis(history, 1, 0)


# %% source_hidden=true
ends = {topology: train(topology)[1, -1] for topology in bar(("all-reduce", "none"), "training")}
say(f"The all-reduce of gradients ends with a test error of {spread(ends['all-reduce'])} % and takes "
    f"{time_text(step_time('all-reduce'))} a step; machines that never talk end with {spread(ends['none'])} % and "
    f"take {time_text(step_time('none'))} (simulated: {EPOCHS} epochs, mean and standard deviation of {len(SEEDS)} "
    "seeds).")  # fmt: skip

# %%
guess_error = guess("Sorted shards, the ring, two messages a step: what test error?", unit="%")

# %% source_hidden=true
ring = train("ring")[:, -1]
minidls = parallel.train(make_job(), parallel.Gossip("ring"), N, ETHERNET).history[-1]["test_loss"]
assert np.isclose(minidls, ring[0, 0], rtol=1e-3)
say(f"The ring ends with {spread(ring[1])} % and takes {time_text(step_time('ring'))} a step. Your guess: "
    f"{guess_error.against(ring[1].mean())}.")  # fmt: skip

# %% [markdown]
# Each machine hears from two others only, and yet the mean model reads all ten digits. Who has to hear from whom, and
# how often? That is a question about averages alone, so forget training for a while.
#
# ## Build: averages with neighbours
#
# Machine $i$ has a number $x_i$. In each step everybody takes the mean of its own number and its two neighbours':


# %%
def average_with_neighbours(comm, x, steps):
    """Gossip on a ring; returns this machine's number after each step."""
    before, after, path = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size, [x[comm.rank]]
    for _ in range(steps):
        sends = [comm.isend(path[-1], neighbour) for neighbour in (before, after)]
        path.append((comm.recv(before) + path[-1] + comm.recv(after)) / 3)
        for send in sends:
            send.wait()
    return path


# %% source_hidden=true
start = np.random.default_rng(0).standard_normal(N)
paths = np.array(cluster.launch(average_with_neighbours, (start, 40), N, "simulation").results)  # machines, steps
W = mixing.matrix(mixing.ring(N))
by_matrix = np.array([np.linalg.matrix_power(W, step) @ start for step in range(41)]).T
say(f"Largest difference between the program and the powers of minidl's matrix: {np.abs(paths - by_matrix).max():.0e}. "
    f"The mean of all machines has moved by at most {np.abs(paths.mean(axis=0) - start.mean()).max():.0e} in 40 "
    f"steps.")  # fmt: skip

# %% [markdown]
# Two properties matter. Each **row** sums to 1: every machine takes an average. Each **column** sums to 1: what
# machine $j$ gives away, in all, is one $x_j$. So the mean of all machines is **conserved**. With both, $W$ is called
# *doubly stochastic*.
#
# ## How fast do they agree?
#
# On a ring, try a wave: $x_j = e^{\mathrm i\theta j}$ with $\theta = 2\pi k/n$. Mixing gives
#
# $$\tfrac13\bigl(e^{\mathrm i\theta(j-1)} + e^{\mathrm i\theta j} + e^{\mathrm i\theta(j+1)}\bigr)
# = \frac{1 + 2\cos\theta}{3}\; x_j .$$
#
# (Its real and imaginary part are a cosine and a sine wave.) So waves are the eigenvectors, and
# $\lambda_k = \frac13(1 + 2\cos\frac{2\pi k}n)$ are the eigenvalues. $\lambda_0 = 1$ belongs to the mean, which stays.
# Everything else shrinks, slowest the longest wave, $k = 1$. The **consensus factor** is the second largest
# $|\lambda|$; $1 - |\lambda|$ is the **spectral gap**. minidl trains a model whose weights begin apart, with learning
# rate 0, and records the distance to the mean:


# %% source_hidden=true
@dataclass(frozen=True)
class Apart(parallel.Gossip):
    """Nodes begin with random weights; weights and gradients are recorded."""

    def run(self, session):
        session.set_weights(np.random.default_rng((0, session.comm.rank)).normal(size=session.weights().shape))
        session.record("weights", session.weights())
        update = session.update

        def recorded():
            session.record("gradients", session.gradient())
            update()
            session.record("weights", session.weights())

        session.update = recorded
        super().run(session)


def mixed(topology, n, steps, lr=0.0):
    """Weights and gradients of all machines in each step: arrays (machines, steps, weights)."""
    rng = np.random.default_rng(0)
    samples = data.Dataset(rng.standard_normal((n * steps, 4)), rng.integers(3, size=n * steps))
    job = parallel.Job(lambda: nn.Linear(4, 3).double(), data.Splits(samples, data.Dataset(*samples[:1])),
                       partial(optim.SGD, lr=lr), batch_size=n, epochs=1)  # fmt: skip
    recorded = parallel.train(job, Apart(topology), n, cluster.Simulation(trace="ledger")).recorded
    return np.array(recorded["weights"]), np.array(recorded["gradients"])


def distances(topology, n, steps):
    """The norm of all machines' distances to their mean, after each step, relative to the first."""
    weights, _ = mixed(topology, n, steps)
    distance = np.linalg.norm(weights - weights.mean(axis=0), axis=(0, 2))
    return distance / distance[0]


# %%
guess_twice = guess(
    "32 machines instead of 16: how many times the steps until the distance is a hundredth?", unit="times"
)

# %% source_hidden=true
rows, factors = [], {}
for n, steps in bar([(4, 12), (8, 60), (16, 80), (32, 300)], "mixing on four rings"):
    measured = distances("ring", n, steps)
    factors[n] = (1 + 2 * np.cos(2 * np.pi / n)) / 3
    eigenvalue = 1 - mixing.spectral_gap(mixing.matrix(mixing.ring(n)))
    rows.append([n, f"{measured[-1] / measured[-2]:.6f}", f"{eigenvalue:.6f}", f"{factors[n]:.6f}",
                 f"{np.log(0.01) / np.log(factors[n]):.0f}"])  # fmt: skip
table(["machines", "factor a step, simulated by minidl", "eigenvalue of W", "formula", "steps to a hundredth at "
                                                                                       "it"], rows,
      f"your guess for 32 against 16: {guess_twice.against(np.log(factors[16]) / np.log(factors[32]))}")  # fmt: skip

# %% [markdown]
# Twice the machines, four times the steps: for small angles $1 - \lambda_1 \approx \frac{4\pi^2}{3n^2}$. A number
# spreads along a ring as a random walk does: $s$ steps carry it only about $\sqrt s$ machines far.
#
# ## Other neighbours
#
# - **Torus**: a grid whose edges are joined; four neighbours.
# - **Random pairs**: a new shuffle in every step, the same on all machines; one message.
# - **Exponential graph** (Assran et al., 2019): in step $k$, machine $i$ sends to machine $i + 2^k$, and takes the mean
#   of its own and what comes from $i - 2^k$; $k$ runs through $0, 1, \dots, \lg n - 1$, again and again. One message.
# - **Full**: everybody with everybody; an all-reduce of the weights.

# %%
guess_exponential = guess("After how many steps do 16 machines agree exactly on the exponential graph?", unit="steps")

# %% source_hidden=true
MESSAGES = {"ring": 2, "torus": 4, "random": 1, "exponential": 1}
drawn, rows, exactly = [], [], None
for tone, (topology, messages) in enumerate(MESSAGES.items()):
    path = distances(topology, N, 100)
    seen = int(np.argmax(path < 1e-12)) if path.min() < 1e-12 else len(path)
    if topology == "exponential":
        exactly = seen
    drawn.append(lines.Line(topology, range(min(seen, 41)), path[: min(seen, 41)],
                            "both" if topology == "exponential" else "line", tone))  # fmt: skip
    hundredth = int(np.argmax(path < 0.01))
    rows.append([topology, messages, hundredth, messages * hundredth])
see(lines.draw([lines.Panel(drawn, "step", "distance to the mean (relative)", "16 machines", "y")], source="simulated",
               height=3.6),
    "the distance of the machines to their mean. Ring and torus become straight lines: a constant factor a step. "
    "Random pairs waver about one. The exponential graph (diamonds) has no such line: it ends, and nothing is left to "
    "draw.")  # fmt: skip
table(["neighbours", "messages a machine and step", "steps to a hundredth", "messages until then"], rows,
      "simulated by minidl, 16 machines; your guess for the exponential graph: "
      f"{guess_exponential.against(exactly)}")  # fmt: skip

# %% [markdown]
# In $\lg 16 = 4$ steps of one message: after step $k$ each machine has the mean of $2^{k+1}$ machines. It is like the
# recursive doubling of [04b](04b_collectives.ipynb), one round at a time, with training steps in between. Turn it: rank
# 0 begins with 16, all others with 0.


# %% source_hidden=true
def spreading(axes, neighbours, after_step):
    """The messages of this step, and each machine's number after it."""
    x = np.zeros(N)
    x[0] = N  # so that the mean is 1
    for step in range(after_step):
        w = parallel.Gossip(neighbours).mixing_matrix(N, step)
        x = w @ x
    draw_exchange(axes, w, on_grid(4) if neighbours == "torus" else on_circle(N), x, highest=4)


explore(
    spreading,
    "arrows: who sends its number to whom in this step; in the circles: each machine's number after it (the darker, "
    "the higher; the mean is 1). On the ring the news goes one machine further in a step, to both sides; on the "
    "torus, in four directions. Random pairs are uneven: some meet the news by luck. On the exponential graph the "
    "arrows double their length from step to step, and after four steps all have 1.",
    neighbours=["exponential", "ring", "torus", "random", "full"], after_step=[4, 1, 2, 3, 5, 6, 8, 12, 24],
    source="formula", width=4, height=4,
    multiples=[*({"neighbours": name} for name in ("ring", "torus", "random")),
               *({"after_step": step} for step in (1, 2, 4))],
)  # fmt: skip

# %% [markdown]
# ## Push-sum: when messages are not matched
#
# Each matrix so far is doubly stochastic: in each step a machine receives as many messages as it sends. What if some
# machine is not ready to send in some step? Then it keeps all it has, its receiver gets nothing, and rows no longer sum
# to 1. Columns still do: nothing is lost. The cure is to send a second number along, the **weight** $w_i$, which begins
# at 1 and is halved, kept and added up exactly as $x_i$ is. The estimate is $x_i / w_i$. This is **push-sum** (Kempe,
# Dobra and Gehrke, 2003).


# %%
def push(x, w, step, ready):
    """A step on the exponential graph, in which only some machines send half of what they have."""
    n = len(x)
    to = (np.arange(n) + 2 ** (step % (n - 1).bit_length())) % n
    share = np.where(ready, 0.5, 0.0)
    x_new, w_new = (1 - share) * x, (1 - share) * w
    x_new[to] += share * x
    w_new[to] += share * w
    return x_new, w_new


# %% source_hidden=true
rng, x, w, rows = np.random.default_rng(1), start.copy(), np.ones(N), []
for step in range(61):
    if step % 20 == 0:
        rows.append([step, f"{np.abs(x - start.mean()).max():.1e}", f"{np.abs(x / w - start.mean()).max():.1e}",
                     f"{abs(x.sum() - start.sum()):.0e}", f"{abs(w.sum() - N):.0e}"])  # fmt: skip
    x, w = push(x, w, step, ready=rng.random(N) < 0.7)
table(["step", "error of x", "error of x / w", "change of the sum of x", "of w"], rows,
      "simulated: each machine is ready in 70 % of the steps; errors: the largest of 16")  # fmt: skip

# %% [markdown]
# The number $x_i$ alone stays wrong for ever: machines that got many messages have too much. But $w_i$ is too large by
# the same factor.
#
# ## Back to training
#
# Gossip mixes, then steps: $x_i \leftarrow \sum_j W_{ij} x_j - \eta\,g_i$. Sum over $i$: as columns sum to 1,
#
# $$\bar x \leftarrow \bar x - \eta\,\bar g .$$
#
# The mean model does plain SGD, with one difference: each $g_i$ is taken at its own $x_i$.

# %% source_hidden=true
weights, taken = (values.mean(axis=0) for values in mixed("ring", N, 20, lr=0.5))
say("In 20 steps of training by minidl on the ring, the mean differs from this rule by at most "
    f"{np.abs(weights[1:] - (weights[:-1] - 0.5 * taken)).max():.0e} (simulated).")  # fmt: skip

# %% [markdown]
# So gossip is as good as the all-reduce if the machines stay close together. With sorted shards each machine is pulled
# its own way in every step, always the same, and mixing removes a part of what has piled up:


# %%
def piled_up(topology, steps=200):
    """How far apart the machines are at last (variance), if a single pull moves them 1 apart."""
    pull = np.eye(N) - 1 / N  # each machine its own way; the mean does not count
    apart, variances = np.zeros((N, N)), []
    for step in range(steps):
        apart = parallel.Gossip(topology).mixing_matrix(N, step) @ apart + pull
        variances.append((apart**2).sum() / (N - 1))
    return np.mean(variances[-16:])


# %% [markdown]
# Does this number rank the neighbours?

# %%
guess_shards = guess("Random shards: how many times the error of the ring is that of machines that never talk?",
                     unit="times")  # fmt: skip

# %% source_hidden=true
KINDS = ("none", "ring", "torus", "random", "exponential", "full", "all-reduce")
for topology in bar(KINDS, "training"):
    train(topology), train(topology, "fixed")
rows = []
for topology in KINDS:
    (losses, errors), (_, at_random) = train(topology)[:, -1], train(topology, "fixed")[:, -1]
    piled = {"none": "no end", "all-reduce": "0"}.get(topology) or f"{piled_up(topology):.1f}"
    rows.append([topology, piled, spread(losses, ".3f"), spread(errors), spread(at_random),
                 time_text(step_time(topology))])  # fmt: skip
ratio = train("none", "fixed")[1, -1].mean() / train("ring", "fixed")[1, -1].mean()
table(["neighbours", "piled up", "sorted shards: test loss", "error (%)", "random shards: error (%)", "time a step"],
      rows, f"piled up: formula; all else simulated: {N} machines, {EPOCHS} epochs, {len(SEEDS)} seeds; your guess: "
      f"{guess_shards.against(ratio)}")  # fmt: skip
ordered = sorted(KINDS, key=lambda topology: train(topology)[0, -1].mean())
pairs = [f"{a}, {b}: {sum(train(a)[0, -1] < train(b)[0, -1])} ({sum(train(a)[1, -1] < train(b)[1, -1])})"
         for a, b in pairwise(ordered)]  # fmt: skip
say(f"Sorted shards: with how many of {len(SEEDS)} seeds the first has the lower loss (and the lower error): "
    f"{'; '.join(pairs)}.")  # fmt: skip

# %% [markdown]
# With random shards, all machines learn much the same from their own samples, and the mean of machines that never talk
# is not far behind. With sorted shards the test *loss* has the order of what piles up; the exponential graph and random
# pairs are too close for eight seeds. The *error* on 360 images shows less: torus, random pairs and exponential graph
# differ by less than its spread. (Even *full* is behind the all-reduce of gradients: each machine takes its gradient at
# weights that its own last step has moved away from the mean.) Against the clock:

# %% source_hidden=true
with style.applied():
    figure, [axes] = style.new_figure(7.5, 3.4)
    for tone, topology in enumerate(("all-reduce", "ring", "exponential")):
        errors = train(topology)[1]
        times = 1e3 * step_time(topology) * 22 * np.arange(1, EPOCHS + 1)
        spans = abs(np.array([errors.min(axis=1), errors.max(axis=1)]) - errors.mean(axis=1))
        axes.errorbar(times, errors.mean(axis=1), spans, color=style.SERIES[tone], linestyle=style.DASHES[tone],
                      marker="os^"[tone], markersize=4, capsize=2, label=topology)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="simulated time (ms)", ylabel="test error (%)",
             title="Sorted shards, Gigabit Ethernet")  # fmt: skip
    axes.set_yticks([5, 10, 20, 50], ["5", "10", "20", "50"])
    axes.set_xticks([5, 10, 20, 50, 100], ["5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    style.label_source(figure, "simulated", f"mean, lowest and highest of {len(SEEDS)} seeds; a point is an epoch")
see(figure, "test error against time. The exponential graph is through with its eight epochs before the all-reduce has "
    "made three, and its mean is the lowest until then. The all-reduce takes longest, and ends with the lowest "
    "error.")  # fmt: skip

# %% [markdown]
# ## Waiting for some, not for all
#
# Gossip limits *to whom* a machine talks. A **partial all-reduce** limits *for whom* it waits: it adds up the gradients
# of the machines that are ready, and zeros from all others, whose gradients count in a later round. Let computing a
# gradient take an exponential time of mean $m$ ([05c](05c_scaling.ipynb)). The first of $p$ machines is ready after
# $m/p$, the next $m/(p-1)$ later, and so on; so the $n$-th is ready after
#
# $$m\Bigl(\frac1p + \frac1{p-1} + \dots + \frac1{p-n+1}\Bigr) = m\,(H_p - H_{p-n}).$$
#
# Who counts that $n$ machines are ready? A *coordinator* can. Without one (eager-SGD; Li et al., 2020), some machine
# begins the round as soon as it is ready, and activates the others by empty messages, which spread in $\lceil \lg
# p\rceil$ rounds. With **solo**, any machine may begin. With **majority**, one that all machines draw with the same
# random numbers; on average, half of the others are ready before it. Here are four machines whose gradients take 1,
# 2.2, 3.1 and 1.4 s:


# %%
def rounds(comm, initiator):
    """Partial sums until they contain seven gradients."""
    partial_sums = PartialAllReduce(comm.split(0), limit=7, like=np.zeros(200_000), initiator=initiator)
    while partial_sums.samples < 7:
        comm.compute(seconds=(1.0, 2.2, 3.1, 1.4)[comm.rank], label="gradient")
        partial_sums.contribute(np.ones(200_000), samples=1)


# %% source_hidden=true
drawn_ranks = (3, 1, 2, 0, 1, 3, 2, 0)  # which rank begins the round
runs = [cluster.launch(rounds, (initiator,), 4, "simulation", "1gbe") for initiator in (None, drawn_ranks.__getitem__)]
see(cluster.plot_traces([run.trace for run in runs], titles=["solo", f"majority: ranks {drawn_ranks} begin"],
                        row_height=0.22),
    "each rank has a row for its computing and a row for the messages in the background, in which it takes part also "
    "while it computes. Above, every gradient that is done begins a round at once. Below, a rank that is done waits "
    "(grey) for the rank that is drawn, and a round may hold several gradients.")  # fmt: skip

# %% [markdown]
# A machine that still computes gives zeros, and its gradient, once done, is late by the updates that it missed.

# %%
guess_majority = guess(
    "8 machines, 1 s on average: how long is an update of 'majority' without a coordinator?", unit="s"
)


# %% source_hidden=true
@dataclass(frozen=True)
class Memoryless(parallel.EagerSGD):
    """Computing a gradient takes an exponential time of mean 1 s."""

    def run(self, session):
        loss = session.local_loss

        def timed(batch):
            session.comm.compute(seconds=session.comm.rng.exponential())
            return loss(batch)

        session.local_loss = timed
        super().run(session)


P, CASES = 8, {"all": 8, "half, coordinator": 4, "majority": "majority", "solo": "solo"}
H = [sum(1 / k for k in range(1, n + 1)) for n in range(P + 1)]
EXPECTED = {"all": H[8], "half, coordinator": H[8] - H[4], "majority": 1.0, "solo": 1 / P}
rows, drawn, took = [], [], {}
for tone, (name, quorum) in enumerate(bar(CASES.items(), "training with four quorums")):
    found = []
    for seed in range(3):
        model, sgd = partial(nn.models.MLP, 64, 64, 10), partial(optim.SGD, lr=LR)
        job = parallel.Job(model, DIGITS, sgd, batch_size=8, epochs=EPOCHS, seed=seed)
        strategy = Memoryless(quorum, coordinator=name in ("all", "half, coordinator"))
        report = parallel.train(job, strategy, P, cluster.Simulation(trace="ledger"), timeout=1e6)
        last = report.history[-1]
        count, late = report.staleness.total(), sum(age * n for age, n in report.staleness.items())
        found.append([last["seconds"] / last["steps"], count / last["steps"], late / count, count / last["seconds"],
                      100 * (1 - last["accuracy"])])  # fmt: skip
    update, inside, age, rate, _ = np.mean(found, axis=0)
    rows.append([name, f"{update:.3f} s", f"{EXPECTED[name]:.3f} s", f"{inside:.2f}", f"{age:.2f}", f"{rate:.2f}",
                 f"{spread([each[-1] for each in found])} %"])  # fmt: skip
    drawn.append(lines.Line(name, [row["seconds"] for row in report.history],
                            [row["test_loss"] for row in report.history], "both", tone))  # fmt: skip
    took[name] = update
table(["wait for", "an update, simulated", "formula", "gradients in it", "staleness", "gradients a second", "error"],
      rows, f"8 machines, times of mean 1 s, 3 seeds; staleness: mean; your guess for 'majority': "
      f"{guess_majority.against(took['majority'])}")  # fmt: skip
see(lines.draw([lines.Panel(drawn, "simulated seconds", "test loss", "Eight epochs, one of the seeds", "y")],
               source="simulated", height=3.4),
    "test loss against time; a point is an epoch. All four curves fall by about as much in an epoch; the fewer "
    "machines an update waits for, the sooner an epoch ends.")  # fmt: skip

# %% [markdown]
# The four errors lie within each other's spread. Each update divides its sum by $P$, so after an epoch each variant
# has moved by the same number of gradients, only in larger or smaller steps. At this learning rate their age does no
# harm that shows, so what counts is gradients a second. [06a](06a_staleness.ipynb) says where this ends: at a high
# learning rate old gradients do harm, and solo has the oldest.
#
# ## Break it: the mean that wanders
#
# On a star, rank 0 is everybody's neighbour. "Everybody takes the mean of itself and its neighbours" is the rule of the
# ring, and easily programmed for any graph.

# %%
star = [set(range(1, P)), *({0} for _ in range(1, P))]
naive = np.array([[1 / (1 + len(near)) if j in near | {i} else 0.0 for j in range(P)] for i, near in enumerate(star)])

# %% source_hidden=true
rows, x = [], np.array([8.0] + [0.0] * (P - 1))
for name, w in (("mean of itself and its neighbours", naive), ("minidl's weights", mixing.matrix(star))):
    end = np.linalg.matrix_power(w, 200) @ x
    rows.append([name, *(f"{each.min():.3f} to {each.max():.3f}" for each in (w.sum(axis=1), w.sum(axis=0), end))])
table(["weights", "sums of rows", "sums of columns", "after 200 steps"], rows,
      f"formula: 8 machines; rank 0, in the middle, has 8, all others 0, so the mean is {x.mean():g}")  # fmt: skip
try:
    parallel.Gossip(naive)
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# They agree, and on the wrong number: columns do not sum to 1, and the middle counts for more than its share. A check
# that looks only at whether the machines agree passes. Check the mean. (minidl gives a pair of neighbours the weight
# $1/(1 + n)$, where $n$ is the larger of their numbers of neighbours, and itself the rest.)
#
# ## What the papers report
#
# **Lian et al. (2017)**, D-PSGD (arXiv:1705.09056): decentralized training is up to ten times as fast as with a central
# node, on networks with low bandwidth or high latency. Our ring takes about half of the all-reduce's time a step.
#
# **Assran et al. (2019)**, Stochastic gradient push (arXiv:1811.10792), train by push-sum on the exponential graph.
#
# **Li et al. (2020)**, eager-SGD (arXiv:1908.04207): 2.64 times the speed of asynchronous centralized SGD, and 1.29
# times (ResNet-50) and 1.27 times (LSTM) that of synchronous decentralized SGD, with solo or majority sums, where the
# machines' work is uneven.
#
# Larger versions: `benchmarks/reproductions/gossip.py` (three seeds, a slow node, asynchronous pairs) and
# `benchmarks/reproductions/backup_workers.py`.
#
# ## The answer so far
#
# Nobody has to hear from everybody in every step. What has to hold is that the mean is conserved, and that news spreads
# fast enough. How fast is one number, the second largest eigenvalue; neighbours that change, as on the exponential
# graph, beat the fixed ring with half of its messages. And nobody has to be waited for, as long as late gradients are
# not lost.
#
# ## To the exercises
#
# [Exercises of chapter 07](../exercises/07_averaging/07_averaging.ipynb): the mixing matrix with its consensus factor,
# and the majority all-reduce.
#
# **Three questions to argue about**
#
# 1. The exponential graph mixes as well as an all-reduce in $\lg n$ steps, at one message each. Why does anyone still
#    use an all-reduce?
# 2. Machines on a ring break down now and then. What happens to the mean, and which methods of this page notice?
# 3. In solo rounds a machine that is always slow contributes few gradients. Whose samples does the model see less of,
#    and when does that matter?
#
# Next: [07d](07d_ensembles.ipynb), networks that were trained apart, and averaged once.
