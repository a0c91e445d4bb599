# %% [markdown]
# # 13a. Must every machine keep a copy of everything?
#
# *Read [05a](05a_data_parallelism.ipynb) first: data parallelism, all-reduce; and
# [04b](04b_collectives.ipynb): reduce-scatter, all-gather. Reading time: about 20 minutes. Figures are* measured *on the
# computer that ran this page,* simulated, *or come from a* formula.
#
# ## The question
#
# A GPT of 7.5 billion weights is trained by data parallelism on 64 nodes, each of them a GPU card with 80 GB of memory.
# What does a node keep?
#
# Large models are trained in *16 bits*: forward and backward use weights and gradients of 2 bytes each. In 16 bits a
# small step of the optimizer would be rounded away, so the optimizer keeps the weights in float32, too (the *master
# weights*), beside Adam's two moments. These three are the *optimizer's state*. After an update the master weights are
# rounded to the 16-bit ones.

# %%
from course.interaction import explore, guess, warm_up

warm_up()

# %% source_hidden=true
from functools import partial

import numpy as np

from course.figures import gathered_units
from course.figures.page import say, see, table
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import style

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
# (Training in float32 needs 16 bytes a weight as well: 4 for the weight, 4 for its gradient, 8 for the two moments.
# There is no second copy of the weights then.)
#
# More nodes do not help: each gets fewer samples, but as many weights. Does every node *need* all of this?
#
# ## Who needs what?
#
# Three quarters of the bytes are the optimizer's state. It is used once a step, in the update. The update is
# elementwise: a weight's new value depends on this weight's gradient and this weight's state. So 64 nodes could divide
# the update among themselves. Let node $r$ keep the state of the $r$-th of 64 equal ranges of the weights, and nothing
# of the others.

# %%
guess_left = guess("Each node keeps the state of its range alone, and all else as before. What is left on a node?",
                   unit="GB")  # fmt: skip

# %%
left = WEIGHTS * (2 + 2 + 12 / NODES) / 1e9

# %% source_hidden=true
say(f"{left:.1f} GB of {everything:g} (formula; your guess: {guess_left.against(left)}), and it fits.")

# %% [markdown]
# ## Build it
#
# Call all weights of the model, as one vector, $w$. The step of data parallelism, with an optimizer that is a function
# of arrays:


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
table(
    ["nodes", "moments, all alike", "shared out", "sent, all alike", "shared out", "sent, formula", "same weights"],
    rows,
    f"numbers for each weight, on the node that has most, counted in a simulated run; your guess: "
    f"{guess_sent.against('the same' if all(row[3] == row[4] for row in rows) else 'less than in all_alike')}",
)  # fmt: skip

# %% [markdown]
# Sharing out the state costs nothing. A ring all-reduce consists of a reduce-scatter and an all-gather
# ([04b](04b_collectives.ipynb)), and each sends $(N-1)/N$ numbers for each weight on $N$ nodes. `shared_out` does the
# update *between* the two: it gathers new weights where the all-reduce gathers gradients. The sums are added in the
# same order, so the weights are those of data parallelism to the bit.
#
# A range may begin in the middle of a layer. The ranges follow from the number of weights alone, so they are equally
# long even if one layer is much larger than the others.
#
# ## Three stages
#
# This idea is called *ZeRO*, zero redundancy optimizer (Rajbhandari et al., arXiv:1910.02054). It has three *stages*,
# and each shares out one thing more:
#
# 1. **The optimizer's state**, as above.
# 2. **The gradients, too.** After the reduce-scatter a node needs only its range of the sum. So backward sends the
#    gradients of a layer as soon as they are complete, in buckets ([05b](05b_overlap.ipynb)), and releases all but its
#    range.
# 3. **The weights, too.** A node keeps its range alone. A layer needs its weights only while it computes. They are
#    gathered just before, from all nodes, and released just after: once in forward, once in backward.

# %%
def bytes_kept(stage, nodes, bytes_of=SIXTEEN):
    """What a node keeps for each weight: of the weights, the gradients, the optimizer's state. Stage 0: all alike."""
    weights, gradients, state = bytes_of
    return [weights / (nodes if stage >= 3 else 1), gradients / (nodes if stage >= 2 else 1),
            state / (nodes if stage >= 1 else 1)]  # fmt: skip


# %% [markdown]
# `parallel.Sharded(stage=…)` has all three. Is it so in a real run? We look into the nodes at each update, before the
# gradients are dropped, and count the bytes of all arrays of weights, gradients and moments. An array that is a view of
# another one counts once:

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

    def gradients(self, session):
        def look():
            own = [p for group in session.optimizer.param_groups for p in group["params"]]
            parameters = [*session.model.parameters(), *own]
            session.record("weights", memory(p.data for p in parameters))
            session.record("gradients", memory(p.grad for p in parameters if p.grad is not None))
            states = [value for state in session.optimizer.state.values() for value in state.values()]
            session.record("optimizer's state", memory(value for value in states if isinstance(value, np.ndarray)))
            session.record("sent", session.comm.bytes_sent)
            session.record("seconds", session.comm.now())

        gradients = super().gradients(session)
        session.optimizer.after_step.insert(0, look)
        return gradients


class AllAlike(Counting, parallel.Synchronous): ...


class Shared(Counting, parallel.Sharded): ...


# %% source_hidden=true
WIDTH, LAYERS, SAMPLES = 256, 8, 96  # samples: of a node
network = partial(nn.models.MLP, *[WIDTH] * (LAYERS + 1), 10)
SIZE = sum(p.size for p in network().parameters())
STRATEGIES = {"all alike": AllAlike, **{f"stage {stage}": partial(Shared, stage) for stage in (1, 2, 3)}}


def train(way, nodes, network_name="10gbe", overlap=True, steps=3):
    """Train a perceptron on noise, by Adam in float32, on simulated nodes."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(steps * SAMPLES * nodes, WIDTH)).astype(np.float32)
    y = generator.integers(10, size=len(x))
    job = parallel.Job(network, data.Splits(data.Dataset(x, y), data.Dataset(x[:nodes], y[:nodes])),
                       partial(optim.Adam, lr=1e-3), batch_size=SAMPLES * nodes, epochs=1, seed=0)  # fmt: skip
    strategy = STRATEGIES[way](algorithm="ordered" if network_name is None else "auto", overlap=overlap)
    engine = cluster.Simulation(network_name or "10gbe", cluster.Node(50e9, np.inf), trace="ledger")
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
        axes.text(total, row, f" {total:,.3g}{words(total)}", va="center", fontsize=8)
    if limit:
        axes.axvline(limit, color="0.2", linestyle="--", linewidth=1, label=f"{limit:g} {unit.split()[0]} card")
    axes.set(xlabel=unit, ylim=(3.5, -0.5), xlim=(0, 1.45 * left[0]))
    axes.legend(fontsize=7, loc="lower right")


# %%
runs = {(way, n): train(way, n) for way in STRATEGIES for n in (2, 3, 5)}

# %% source_hidden=true
measured = {key: [max(map(max, run.recorded[part])) / SIZE for part in PARTS] for key, run in runs.items()}
by_formula = {(way, n): sum(bytes_kept(stage, n, FLOAT32)) for stage, way in enumerate(STRATEGIES) for n in (2, 3, 5)}
with style.applied():
    figure, places = style.new_figure(9.5, 2.7, columns=3, sharey=True)
    for axes, n in zip(places, (2, 3, 5), strict=True):
        bars(axes, [measured[way, n] for way in STRATEGIES], "bytes for each weight",
             formula=[by_formula[way, n] for way in STRATEGIES])  # fmt: skip
        axes.set_title(f"{n} nodes")
        if n != 5:
            axes.get_legend().remove()
    style.label_source(figure, ("measured", "formula"), "Adam in float32, on the node that has most")
see(figure, "ZeRO's three bars below that of data parallelism. The state shrinks with every stage, the gradients from "
            "stage 2 on, the weights in stage 3. The black lines of the formula stand at the ends of the bars.")  # fmt: skip
off = max(abs(sum(measured[key]) / by_formula[key] - 1) for key in runs)
digests = {run.digests[0] for run in (train(way, 3, None) for way in STRATEGIES)}
say(f"The counts differ from the formula by at most {off:.2%}. With sums in the order of the nodes, the weights that "
    f"the four ways end with on 3 nodes are {'the same to the bit' if len(digests) == 1 else 'not the same'}.")  # fmt: skip

# %% [markdown]
# With $N$ nodes, a node keeps $8 + 8/N$, $4 + 12/N$ and $16/N$ bytes for each weight in float32. In 16 bits with master
# weights these are $4 + 12/N$, $2 + 14/N$ and $16/N$. Only stage 3 shrinks without a limit as nodes are added. Turn
# it:


# %% source_hidden=true
def turn(axes, nodes, billions, numbers):
    of = SIXTEEN if numbers == "16 bits" else FLOAT32
    bars(axes, [[part * billions for part in bytes_kept(stage, nodes, of)] for stage in range(4)], "GB on a node",
         CARD / 1e9, words=lambda total: " GB, fits" if total <= CARD / 1e9 else " GB")  # fmt: skip


explore(
    turn,
    "a bar that ends left of the dashed line fits on the card, if activations find room beside it. The more nodes there "
    "are, the more stage 3 gains over the others. In the stages 1 and 2 the whole 16-bit weights set a limit to the "
    "size of the model, however many nodes there are.",
    nodes=[64, 1, 2, 4, 8, 16, 256, 1024],
    billions=[7.5, 0.125, 1.5, 20, 70, 175, 1000],
    numbers=["16 bits", "float32"],
    multiples=[{}, {"nodes": 4}, {"billions": 175}, {"billions": 1000, "nodes": 1024}],
    height=2.6,
    shared=False,
    source="formula",
)
