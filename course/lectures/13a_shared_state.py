# %% [markdown]
# # 13a. Must every machine keep a copy of everything?
#
# *Read [05a](05a_data_parallelism.ipynb) first: data parallelism; and [04b](04b_collectives.ipynb): reduce-scatter,
# all-gather. Reading time: about 23 minutes. Figures are* measured *on the computer that ran this page,* simulated, *or
# come from a* formula.
#
# ## The question
#
# A GPT of 7.5 billion weights is trained by synchronous data parallelism on 64 nodes. Each node is a GPU card with 80
# GB of memory. What does it keep?
#
# Large models are trained in *16 bits*: forward and backward use weights and gradients of 2 bytes each. A small step of
# the optimizer would be rounded away in such a weight. So the optimizer keeps a copy of the weights in float32, the
# *master weights*, beside Adam's two moments. It updates the master weights and rounds them to the 16-bit weights. The
# three are the *optimizer's state*.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %% source_hidden=true
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures import gathered_units
from course.figures.page import say, see, table
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import style

one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

CARD = 80e9  # bytes
PARTS = ("weights", "gradients", "optimizer's state")
SIXTEEN, FLOAT32 = (2, 2, 12), (4, 4, 8)  # bytes of each part, for each weight
WEIGHTS, NODES = 7.5e9, 64

kept = [("weights", 2), ("gradients", 2), ("master weights", 4), ("first moment", 4), ("second moment", 4)]
everything = sum(nbytes for _, nbytes in kept) * WEIGHTS / 1e9
table(
    ["", *(name for name, _ in kept), "all"],
    [["bytes a weight", *(nbytes for _, nbytes in kept), sum(nbytes for _, nbytes in kept)],
     ["GB on a node", *(f"{nbytes * WEIGHTS / 1e9:g}" for _, nbytes in kept), f"**{everything:g}**"]],
    "formula: what a node keeps of 7.5 billion weights at the moment of the update; activations come on top",
)  # fmt: skip
say(f"A weight takes 2 bytes, and training it takes {sum(nbytes for _, nbytes in kept)}. The model does not fit. All "
    f"{NODES} nodes together keep {NODES * everything:,.0f} GB, and after the all-reduce all of them keep the *same* "
    f"{everything:g} GB.")  # fmt: skip

# %% [markdown]
# (Training in float32 needs 16 bytes a weight as well, without a second copy: 4 for the weight, 4 for its gradient, 8
# for the two moments.)
#
# More nodes do not help. Each of them gets fewer samples, but as many weights. Does every node *need* all of this?
#
# ## Who needs what?
#
# Three quarters of the bytes are the optimizer's state. It is used once a step, in the update. The update is
# elementwise: a weight's new value depends on this weight's gradient and this weight's state. So 64 nodes could divide
# the update among themselves. Cut the weights into 64 equal ranges, and let each node keep the state of one range.

# %%
guess_left = guess("A node keeps its range of the optimizer's state, all weights and all gradients. How much is that?",
                   unit="GB")  # fmt: skip

# %%
left = WEIGHTS * (2 + 2 + 12 / NODES) / 1e9

# %% source_hidden=true
say(f"{left:.1f} GB of {everything:g} (formula; your guess: {guess_left.against(left)}), and it fits.")

# %% [markdown]
# ## Build it
#
# Let $w$ be all weights of the model as one vector. Here are Adam as a function of arrays, the step of data
# parallelism, and the same step with the optimizer's state shared out:


# %%
def adam(w, gradient, state, lr=0.01):
    """One update of some weights, in place; state: their moments, and the number of updates so far."""
    state["t"] += 1
    for name, decay, term in (("m", 0.9, gradient), ("v", 0.999, gradient**2)):
        state[name] = decay * state.setdefault(name, np.zeros_like(w)) + (1 - decay) * term
    m, v = state["m"] / (1 - 0.9 ** state["t"]), state["v"] / (1 - 0.999 ** state["t"])
    w -= lr * m / (np.sqrt(v) + 1e-8)


def all_alike(comm, w, gradient, state, update):
    """A step of synchronous data parallelism: every node does the same update."""
    total = comm.all_reduce(gradient, algorithm="ring")
    update(w, total / comm.size, state)


def shared_out(comm, w, gradient, state, update):
    """The same step; a node keeps the state of its range of w alone."""
    mine = np.array_split(w, comm.size)[comm.rank]  # a view: this node's range of w
    total = comm.reduce_scatter(gradient)  # the sum over all nodes, of this range alone
    update(mine, total / comm.size, state)
    np.concatenate(comm.all_gather(mine), out=w)  # the ranges of all nodes


# %%
guess_sent = guess("How much does a node send in a step of shared_out?",
                   ["less than in all_alike", "the same", "half as much again", "twice as much"])  # fmt: skip

# %% source_hidden=true
digits = data.digits().train[np.arange(1200)]
X, Y = digits[0].reshape(1200, -1), digits[1]


def gradient_of(w, x, y):
    """Of the mean cross entropy of a linear layer: 64 pixels times 10 digits."""
    scores = x @ w.reshape(64, 10)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return (x.T @ p).reshape(-1) / len(y)


def loss_of(w):
    """The mean cross entropy of all samples."""
    scores = X @ w.reshape(64, 10)
    return np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(Y)), Y])


def learn(comm, step, update, steps=40, batch=120):
    """Train on all nodes; return this node's weights, the numbers of its state, and the bytes that it sent."""
    w, state = np.zeros(640, X.dtype), {"t": 0}
    for i in range(steps):
        ours = np.arange(i * batch, (i + 1) * batch) % len(X)
        own = np.array_split(ours, comm.size)[comm.rank]
        step(comm, w, gradient_of(w, X[own], Y[own]), state, update)
    return w, sum(array.size for array in state.values() if isinstance(array, np.ndarray)), comm.bytes_sent / steps


def learned(step, nodes, update=adam):
    return cluster.launch(partial(learn, step=step, update=update), (), nodes, "simulation", "10gbe").results


# %%
alike, shared = ({n: learned(step, n) for n in (2, 3, 5)} for step in (all_alike, shared_out))

# %% source_hidden=true
rows = []
for n in alike:
    same = all((w == alike[n][0][0]).all() for w, *_ in [*alike[n], *shared[n]])
    sent = [max(nbytes for _, _, nbytes in runs[n]) / X.itemsize / 640 for runs in (alike, shared)]
    states = [max(count for _, count, _ in runs[n]) / 640 for runs in (alike, shared)]
    rows.append([n, *(f"{count:.2f}" for count in states), *(f"{each:.2f}" for each in sent),
                 f"{2 * (n - 1) / n:.2f}", "to the bit" if same else "no"])  # fmt: skip
ratio = max(float(row[4]) / float(row[3]) for row in rows)
answer = next(words for words, least in (("twice as much", 1.75), ("half as much again", 1.25), ("the same", 0.99),
                                         ("less than in all_alike", 0)) if ratio >= least)  # fmt: skip
table(
    ["nodes", "moments, all alike", "moments, shared out", "sent, all alike", "sent, shared out", "sent, formula",
     "same weights"],
    rows,
    f"numbers for each weight, on the node that has most, counted in a simulated run; your guess: "
    f"{guess_sent.against(answer)}",
)  # fmt: skip

# %% [markdown]
# Sharing out the state sends nothing more. A ring all-reduce consists of a reduce-scatter and an all-gather
# ([04b](04b_collectives.ipynb)). In each of the two, a node sends $(N-1)/N$ numbers for each weight if there are $N$
# nodes. `shared_out` does the update *between* the two: it gathers new weights where the all-reduce gathers sums of
# gradients. The sums are added in the same order, so the weights are those of data parallelism to the bit.
#
# A range may begin in the middle of a layer. So the ranges are equally long (up to one number) even if one layer is
# much larger than the others.
#
# ## Three stages
#
# This idea is called *ZeRO*, the zero redundancy optimizer (Rajbhandari et al., arXiv:1910.02054). It has three
# *stages*. Each shares out one thing more:
#
# 1. **The optimizer's state**, as above.
# 2. **The gradients, too.** After the reduce-scatter a node needs only its range of the sum. So backward sends
#    gradients in buckets as soon as they are complete ([05b](05b_overlap.ipynb)), and keeps only the node's range.
# 3. **The weights, too.** A layer needs its weights only while it computes. They are gathered from all nodes just
#    before, and released just after, once in forward and once in backward.
#
# So this is what a node keeps for each weight:


# %%
def bytes_kept(stage, nodes, bytes_of=SIXTEEN):
    """What a node keeps for each weight: of the weights, the gradients, the optimizer's state. Stage 0: all alike."""
    weights, gradients, state = bytes_of
    return [weights / (nodes if stage >= 3 else 1), gradients / (nodes if stage >= 2 else 1),
            state / (nodes if stage >= 1 else 1)]  # fmt: skip


# %% [markdown]
# `parallel.Sharded(stage=…)` has all three, and `Job(precision="bfloat16")` trains in 16 bits with master weights
# (bfloat16 is the format bf16 of [09d](09d_few_bits.ipynb)). Do its nodes keep what the formula says? We look into them
# at each update, before the gradients are dropped, and count the bytes of their arrays. Views of one array count once:


# %%
def memory(arrays):
    """The bytes of these arrays and of those that they are views of."""
    owners = {}
    for array in arrays:
        while isinstance(array.base, np.ndarray):
            array = array.base
        owners[id(array)] = array.nbytes
    return sum(owners.values())


class Counting:
    """Counts a node's arrays at each update; notes the time, and the bytes sent so far."""

    def gradients(self, session):  # called once, before the first step
        def look():
            own = [p for group in session.optimizer.param_groups for p in group["params"]]  # ZeRO: this node's ranges
            parameters = [*session.model.parameters(), *own]
            session.record("weights", memory(p.data for p in parameters))
            session.record("gradients", memory(p.grad for p in parameters if p.grad is not None))
            states = [value for state in session.optimizer.state.values() for value in state.values()]
            session.record("optimizer's state", memory(value for value in states if isinstance(value, np.ndarray)))
            session.record("sent", session.comm.bytes_sent)
            session.record("seconds", session.comm.now())

        gradients = super().gradients(session)
        session.optimizer.after_step.insert(0, look)  # called at the end of each update
        return gradients


class AllAlike(Counting, parallel.Synchronous): ...


class Shared(Counting, parallel.Sharded): ...


# %% source_hidden=true
WIDTH, LAYERS, SAMPLES = 256, 8, 96  # samples: of a node
network = partial(nn.models.MLP, *[WIDTH] * (LAYERS + 1), 10)
SIZE = sum(p.size for p in network().parameters())
STRATEGIES = {"all alike": AllAlike, **{f"stage {stage}": partial(Shared, stage) for stage in (1, 2, 3)}}


def train(way, nodes, precision="bfloat16", network_name="10gbe", overlap=True, in_order=False, steps=2):
    """Train a perceptron on noise, by Adam, on simulated nodes."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(steps * SAMPLES * nodes, WIDTH)).astype(np.float32)
    y = generator.integers(10, size=len(x))
    job = parallel.Job(network, data.Splits(data.Dataset(x, y), data.Dataset(x[:nodes], y[:nodes])),
                       partial(optim.Adam, lr=1e-3), batch_size=SAMPLES * nodes, epochs=1, seed=0,
                       precision=precision)  # fmt: skip
    algorithm = "ordered" if in_order else "ring" if way == "all alike" else "auto"
    strategy = STRATEGIES[way](algorithm=algorithm, overlap=overlap, bucket_mb=0.14)  # a bucket for each layer
    engine = cluster.Simulation(network_name, cluster.Node(1e11, np.inf), trace="ledger")
    return parallel.train(job, strategy, nodes, engine)


def bars(axes, values, unit, limit=None, formula=None, words=lambda total: ""):
    """A bar for each way, made of its parts; a line at each formula's value."""
    left = np.zeros(len(STRATEGIES))
    for number, part in enumerate(PARTS):
        widths = np.array([each[number] for each in values])
        axes.barh(list(STRATEGIES), widths, left=left, color=style.SERIES[number], label=part, **style.BORDER)
        left += widths
    for row, total in enumerate(left):
        if formula is not None:
            axes.plot([formula[row]] * 2, [row - 0.47, row + 0.47], color="black", linewidth=1.6,
                      label="formula" if row == 0 else None)  # fmt: skip
        number = f"{total:.3g}" if total < 1000 else f"{total:,.0f}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # above the dashed line
        axes.text(total + 0.02 * left[0], row, number + words(total), va="center", fontsize=8, bbox=box)
    if limit:
        axes.axvline(limit, color="0.2", linestyle="--", linewidth=1, label=f"{limit:g} {unit.split()[0]} card")
    axes.set(xlabel=unit, ylim=(3.5, -0.5), xlim=(0, 1.45 * left[0]))
    axes.legend(fontsize=7, loc="lower right")


# %%
FORMULAS = {"bfloat16": SIXTEEN, "float32": FLOAT32}
cases = [(way, n, precision) for way in STRATEGIES for n in (2, 3, 5) for precision in FORMULAS]
runs = {case: train(*case) for case in bar(cases, "training")}

# %% source_hidden=true
measured = {key: [max(map(max, run.recorded[part])) / SIZE for part in PARTS] for key, run in runs.items()}
by_formula = {case: sum(bytes_kept(list(STRATEGIES).index(case[0]), case[1], FORMULAS[case[2]])) for case in cases}
with style.applied():
    figure, places = style.new_figure(9.5, 2.7, columns=3, sharey=True)
    for axes, n in zip(places, (2, 3, 5), strict=True):
        bars(axes, [measured[way, n, "bfloat16"] for way in STRATEGIES], "bytes for each weight",
             formula=[by_formula[way, n, "bfloat16"] for way in STRATEGIES])  # fmt: skip
        axes.set_title(f"{n} nodes")
        if n != 5:
            axes.get_legend().remove()
    style.label_source(figure, ("measured", "formula"), "Adam in 16 bits, on the node that has most")
see(figure, "ZeRO's three bars below that of data parallelism, where all nodes are alike. The state is shared out "
            "from stage 1 on, the gradients from stage 2 on, the weights in stage 3. The black lines of the formula "
            "stand at the ends of the bars.")  # fmt: skip
off = max(abs(sum(measured[key]) / by_formula[key] - 1) for key in runs)
digests = {run.digests[0] for run in (train(way, 3, in_order=True) for way in STRATEGIES)}
say(f"In 16 bits and in float32 the counts differ from the formula by at most {off:.2%}. With sums in the order of the "
    "nodes, the weights that the four ways end with on 3 nodes are "
    f"{'the same to the bit' if len(digests) == 1 else 'not the same'}.")  # fmt: skip

# %% [markdown]
# With $N$ nodes, a node keeps $4 + 12/N$, $2 + 14/N$ and $16/N$ bytes for each weight in 16 bits, and in float32
# $8 + 8/N$, $4 + 12/N$ and $16/N$. As nodes are added, only stage 3 shrinks without a limit. Which models fit?


# %% source_hidden=true
def turn(axes, nodes, billion_weights, bits):
    of = SIXTEEN if bits == 16 else FLOAT32
    kept = [[part * billion_weights for part in bytes_kept(stage, nodes, of)] for stage in range(4)]
    bars(axes, kept, "GB on a node", CARD / 1e9,
         words=lambda total: " GB, fits" if total <= CARD / 1e9 else " GB")  # fmt: skip


explore(
    turn,
    "beside a bar stands 'fits' if it is no longer than the 80 GB of the card (dashed line, if it is in the picture); "
    "activations come on top. Twice as many nodes halve what a node keeps in stage 3. In stages 1 and 2 every node "
    "keeps all weights, which sets a limit to the model, however many nodes there are.",
    nodes=[64, 1, 2, 4, 8, 16, 256, 1024],
    billion_weights=[7.5, 0.125, 1.5, 20, 70, 175, 1000],
    bits=[16, 32],
    multiples=[{}, {"nodes": 4}, {"billion_weights": 175}, {"billion_weights": 1000, "nodes": 1024}],
    height=2.6,
    shared=False,
    source="formula",
)

# %% [markdown]
# ## Weights that come and go
#
# In stage 3 a node can compute nothing with what it keeps alone. So the model is cut into *units*, such as the blocks
# of a GPT. The weights of a unit are gathered, the unit computes, and its weights are released. Here is a step of six
# blocks of 208 million weights each (36 of them make up our GPT). Each node computes them for 8,192 positions of text,
# with $10^{14}$ operations a second. Forward takes 2 operations for each weight and position, backward 4.

# %%
UNITS, UNIT_WEIGHTS, POSITIONS, SPEED = 6, 208_000_000, 8192, 1e14


def unit_by_unit(comm, prefetch, positions=POSITIONS):
    """Forward and backward of stage 3; a Phantom is an array that has a size in bytes and no contents."""
    order = [*range(UNITS), *reversed(range(UNITS))]  # forward, then backward
    sending = []
    for i, unit in enumerate(order):
        if i == 0 or not prefetch:
            arriving = gather_unit(comm)
        arriving.wait()  # the weights of this unit are here
        if prefetch and i + 1 < len(order):
            arriving = gather_unit(comm)  # those of the next one begin to travel
        operations = (2 if i < UNITS else 4) * UNIT_WEIGHTS * positions
        comm.compute(seconds=operations / SPEED, label=f"unit {unit}")  # then they are released
        if i >= UNITS:
            sending.append(comm.reduce_scatter(cluster.Phantom(2 * UNIT_WEIGHTS), async_op=True))
            if not prefetch:
                sending.pop().wait()
    for work in sending:
        work.wait()


def gather_unit(comm):
    return comm.all_gather(cluster.Phantom(2 * UNIT_WEIGHTS // comm.size), async_op=True)  # in 16 bits


def simulate(prefetch, network, positions=POSITIONS):
    return cluster.launch(partial(unit_by_unit, prefetch=prefetch, positions=positions), (), 8, "simulation", network)


plain = simulate(False, "100gbe")

# %% source_hidden=true
say(f"A node computes for {plain.trace.shares(0).compute:.0%} of this step, on 8 nodes with 100 Gbit/s Ethernet "
    "(simulated). For the rest it waits for weights and gradients.")  # fmt: skip

# %% [markdown]
# But the order of the units is the same in every step. So the next unit's weights can travel while this one computes.
# This is called *prefetching*: `prefetch=True`.

# %%
guess_busy = guess("With prefetching: for which share of the step does a node compute?", unit="%")

# %%
prefetched = simulate(True, "100gbe")

# %% source_hidden=true
say(f"{prefetched.trace.shares(0).compute:.0%} (your guess: "
    f"{guess_busy.against(100 * prefetched.trace.shares(0).compute)}); the step takes {prefetched.seconds:.2f} s "
    f"instead of {plain.seconds:.2f} s (simulated).")  # fmt: skip


def timeline(axes, prefetch, network, positions):
    gathered_units.draw(axes, simulate(prefetch == "yes", network, positions).trace, UNITS)


explore(
    timeline,
    "one of 8 nodes; the numbers are those of the units. It computes forward (blue) and backward (green), gathers "
    "weights (orange) and sends gradients (vermilion). Both use the node's link to the network, so that one waits for "
    "the other. The lowest row is as high as the number of units whose weights are there or arrive. With prefetching "
    "it is up to two instead of one.",
    prefetch=["yes", "no"],
    network=["100gbe", "10gbe", "infiniband"],
    positions=[POSITIONS, 1024, 32_768],
    multiples=[{"prefetch": "no"}, {}],
    height=2.9,
    source="simulated",
)

# %% [markdown]
# In the picture with prefetching, only the first gathering and the last sending are exposed
# ([05b](05b_overlap.ipynb)): during the one the node has no weights to compute with, and during the other nothing is
# left to compute. On a slower network, or with fewer positions, units compute for less time than their messages take,
# and the node waits. The price of prefetching is memory, for the weights of *two* units instead of one. ZeRO's bars do
# not show it, since they stand for the moment of the update. Smaller units take less memory, and more messages.
#
# Unit 5 is gathered twice in a row, for the end of forward and for the beginning of backward. Keeping its weights would
# save the second time; neither this program nor `parallel.Sharded` does.
#
# ## The price in messages
#
# What does a node send in a step, if there are $\Psi$ weights? In data parallelism it all-reduces the gradients, and
# sends $2 \Psi (N-1)/N$ numbers. In stages 1 and 2 it reduce-scatters the gradients and all-gathers the weights, and
# sends $2 \Psi (N-1)/N$ as well. And in stage 3?

# %%
guess_traffic = guess("How many times as much as in data parallelism does a node send in stage 3?", unit="times")

# %%
of_a_step = {case: np.diff(run.recorded["sent"], axis=1).max() for case, run in runs.items()}  # bytes
sent = {case: nbytes / FORMULAS[case[2]][0] / SIZE for case, nbytes in of_a_step.items()}

# %% source_hidden=true
more = sent["stage 3", 5, "bfloat16"] / sent["all alike", 5, "bfloat16"]
factors = {"all alike": 2, "stage 1": 2, "stage 2": 2, "stage 3": 3}
table(
    ["nodes", *STRATEGIES],
    [[n, *(f"{sent[way, n, 'bfloat16']:.3f} ({factors[way] * (n - 1) / n:.3f})" for way in STRATEGIES)]
     for n in (2, 3, 5)],
    "numbers that the node that sends most sends in a step, for each weight: from the ledger of the runs above, in "
    f"parentheses by formula; your guess: {guess_traffic.against(more)}",
)  # fmt: skip

# %% [markdown]
# Stage 3 gathers the weights twice, for forward and for backward, and reduce-scatters the gradients once: $3 \Psi
# (N-1)/N$. It gathers nothing after the update. Whether the additional messages cost time depends on the network, and
# on what can overlap. Below are steps of minidl's strategies, with overlap:

# %% source_hidden=true
NETWORKS = ("1gbe", "10gbe", "100gbe", "infiniband")


def step_time(way, network_name, overlap):
    seconds = np.array(train(way, 4, network_name=network_name, overlap=overlap).recorded["seconds"])
    return (seconds[:, -1] - seconds[:, -2]).max()


cases = [(way, name, True) for way in STRATEGIES for name in NETWORKS]
cases += [("stage 3", name, False) for name in NETWORKS]
times = {case: step_time(*case) for case in bar(cases, "simulating")}
table(
    ["", *NETWORKS],
    [[way + ("" if overlap else ", no prefetching"),
      *(f"{times[way, name, overlap] / times['all alike', name, True]:.2f}" for name in NETWORKS)]
     for way, overlap in [*((way, True) for way in STRATEGIES), ("stage 3", False)]],
    f"time of a step, relative to data parallelism on the same network; simulated: 4 nodes of "
    f"100 GFLOP/s with {SAMPLES} samples each, {LAYERS} equal layers, a bucket of gradients for each layer",
)  # fmt: skip

# %% [markdown]
# On the slowest network the messages set the pace, and stage 3 pays for sending more. On the others it takes no longer
# than stages 1 and 2, although it sends most. These gather the new weights after the update, when no node computes.
# Stage 3 gathers them unit by unit while the nodes compute, provided that it prefetches. Without prefetching it is the
# slowest on every network here. (A ratio below 1 is no error: each node also updates only its range.)
#
# ## Break it
#
# Gradients are often clipped: if the norm of the whole gradient exceeds a limit $c$, it is multiplied by $c$ over its
# norm. With ranges, no node sees the whole gradient. The sum of its squares has to be added up over the nodes, by an
# all-reduce of one number. Here are two mistakes that are easily made: to clip by the norm of the node's own range, and
# to forget the all-gather.


# %%
def clipped(comm, w, gradient, state, update, mistake="", limit=0.3):
    """shared_out with clipping, right or with a mistake."""
    mine = np.array_split(w, comm.size)[comm.rank]
    mean = comm.reduce_scatter(gradient) / comm.size
    squares = np.array([np.sum(mean**2)])
    if mistake != "own norm":
        squares = comm.all_reduce(squares)
    update(mine, mean * min(1, limit / np.sqrt(squares[0])), state)
    if mistake != "no gathering":
        np.concatenate(comm.all_gather(mine), out=w)


def sgd(w, gradient, state):
    w -= 0.5 * gradient


# %%
guess_found = guess("After training, all nodes compare their weights. Which mistake is found?",
                    ["own norm", "no gathering", "both", "neither"])  # fmt: skip

# %%
one = learned(clipped, 1, sgd)[0][0]
ends = {(mistake, n): [w for w, *_ in learned(partial(clipped, mistake=mistake), n, sgd)]
        for mistake in ("", "own norm", "no gathering") for n in (2, 3, 5)}  # fmt: skip

# %% source_hidden=true
differ = {key: not all((w == every[0]).all() for w in every) for key, every in ends.items()}
errors = {key: np.linalg.norm(every[0] - one) / np.linalg.norm(one) for key, every in ends.items()}
found = [mistake for mistake in ("own norm", "no gathering") if all(differ[mistake, n] for n in (2, 3, 5))]
table(
    ["", "nodes agree", *(f"off, {n} nodes" for n in (2, 3, 5)), "loss, 5 nodes"],
    [[mistake or "right", "no" if any(differ[mistake, n] for n in (2, 3, 5)) else "yes",
      *(f"{errors[mistake, n]:.2f}" if errors[mistake, n] > 1e-6 else "rounding" for n in (2, 3, 5)),
      f"{loss_of(ends[mistake, 5][0]):.3f}"]
     for mistake in ("", "own norm", "no gathering")],
    "simulated; off: how far node 0's weights are from one node's, relative to these; loss: node 0's, "
    f"{loss_of(np.zeros(640)):.3f} before training; your guess: "
    f"{guess_found.against('both' if len(found) == 2 else [*found, 'neither'][0])}",
)  # fmt: skip
first = gradient_of(np.zeros(640, X.dtype), X[:120], Y[:120])
lengths = {n: np.sqrt(sum(min(0.3, np.linalg.norm(part)) ** 2 for part in np.array_split(first, n))) / 0.3
           for n in (1, 2, 3, 5)}  # fmt: skip
say("Norm of the first clipped gradient if each node clips by the norm of its own range, relative to the limit: "
    + ", ".join(f"{length:.2f} with {n} node{'s' * (n > 1)}" for n, length in lengths.items()) + ".")  # fmt: skip

# %% [markdown]
# Without the all-gather each node changes its own range alone, and the replicas drift apart. A comparison of the nodes
# finds it. The wrong norm is harder to find, since all nodes agree and the loss falls. It even falls faster here,
# because the steps are longer than the limit allows, and the longer the more nodes there are. Each range is also shrunk
# by a factor of its own, which changes the direction of the step. So compare the weights not only between the nodes,
# but also *with a run on one node*. Whatever looks at several weights at once needs a message in ZeRO: clipping, and
# the norms of layers in LARS and LAMB ([08c](08c_layer_rates.ipynb)).
#
# ## What the papers report
#
# **Rajbhandari et al. (2020)** compute the memory of our model on 64 cards:

# %% source_hidden=true
PUBLISHED = (120, 31.4, 16.6, 1.9)  # figure 1
table(["GB on a node", *STRATEGIES],
      [["published", *PUBLISHED],
       ["formula", *(f"{WEIGHTS * sum(bytes_kept(stage, NODES)) / 1e9:.2f}" for stage in range(4))]],
      "7.5 billion weights, 64 nodes, 16 bits")  # fmt: skip

# %% [markdown]
# They trained with stages 1 and 2, and report models of more than 100 billion weights on 400 GPUs (together with tensor
# parallelism), and of up to 13 billion without it. Their speed-up was *more* than linear in the number of GPUs: as
# nodes are added, each keeps less, so it has room for more samples at once, which it computes more efficiently.
#
# **Zhao et al. (2023)**, PyTorch FSDP (arXiv:2304.11277), is stage 3 with units as above.
#
# Tensor parallelism ([10a](10a_dividing_a_layer.ipynb)) and ZeRO go together: the first divides each layer over $p$
# nodes, the second shares out each of these $p$ parts among $N$ replicas, which leaves $16/(pN)$ bytes for each weight:
# `parallel.Hybrid(dp=N, tp=p, shard=3)`.
#
# ## The answer
#
# No. For the update a node needs only its range of the optimizer's state, the gradients and the weights, and it needs a
# layer's weights only while this layer computes. Sharing out state and gradients sends nothing more than data
# parallelism. Sharing out the weights sends half as much again, which prefetching hides behind the computation if the
# units compute for longer than their messages take. The resulting weights are the same.
#
# ## To the exercises
#
# [Exercises of chapter 13](../exercises/13_memory/13_memory.ipynb): after this page you can write `memory_and_traffic`
# and `shard_optimizer`.
#
# **Three questions to argue about**
#
# 1. Your cluster has 8 nodes with fast links between them, and a slow network to the next 8. Over which nodes do you
#    share out weights, and over which only the optimizer's state?
# 2. A node dies. What is lost in data parallelism, and what in stage 1? How often would you write a checkpoint?
# 3. With four micro-batches a step, how often does stage 3 gather the weights? Which of these could be saved, and what
#    would it cost?
#
# What is left are the activations, which forward keeps for backward: every node has those of its own samples, and ZeRO
# does not shrink them. And $N$ may be 1. What if the card is too small then?
