# %% [markdown]
# # 14a. Can a network know more without computing more for each token?
#
# *Read [05a](05a_data_parallelism.ipynb) first: data parallelism; and [04a](04a_messages.ipynb): messages and their
# cost. Reading time: about 23 minutes. Figures are* measured *on the computer that ran this page,* simulated, *or come
# from a* formula.
#
# ## The question
#
# There are 64 subjects and 64 relations. Each of the 4,096 pairs has an answer, one of 64 things, drawn by chance.
# These are *facts*: no rule leads from one to another, so a network that answers them has to keep them in its weights.
# Ours adds an embedding of the subject to one of the relation, and passes the sum through a feed-forward network with a
# skip connection around it, as in a block of a GPT. We call an input, a subject and a relation, a *token*.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %%
import math
from functools import partial

import numpy as np

from minidl import Tensor, cluster, data, nn, optim, parallel, random
from minidl import functional as F
from minidl.functional.added_loss import with_loss
from minidl.nn.experts import load_balancing_loss, route
from minidl.parallel.experts import ExpertParallel, dispatched_bytes

N, WIDTH = 64, 32
pairs = np.stack(np.divmod(np.arange(N * N), N), axis=1)  # all pairs of a subject and a relation
FACTS = data.Dataset(pairs, np.random.default_rng(0).integers(N, size=N * N))


class Read(nn.Module):
    def __init__(self):
        self.subject, self.relation = nn.Embedding(N, WIDTH), nn.Embedding(N, WIDTH)

    def forward(self, x):
        return self.subject(x[:, 0]) + self.relation(x[:, 1])


class Skip(nn.Module):
    def __init__(self, middle):
        self.norm, self.middle = nn.LayerNorm(WIDTH), middle

    def forward(self, x):
        return x + self.middle(self.norm(x))


def dense(hidden):
    return nn.Sequential(nn.Linear(WIDTH, hidden), nn.GELU(), nn.Linear(hidden, WIDTH))


# %% source_hidden=true
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from minidl.plots import lines, style

one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
SEEDS, EPOCHS, BATCH, RATE, OTHER_RATE = range(3), 25, 1024, 0.05, 0.08


def network(middle):
    return nn.Sequential(Read(), Skip(middle()), nn.Linear(WIDTH, N))


def job(middle, seed=0, epochs=EPOCHS, rate=RATE):
    def cosine(optimizer, steps):
        return optim.CosineAnnealingLR(optimizer, epochs * steps)

    return parallel.Job(partial(network, middle), data.Splits(FACTS, FACTS), partial(optim.Adam, lr=rate),
                        batch_size=BATCH, epochs=epochs, seed=seed, schedule=cosine)  # fmt: skip


def learn(middle, epochs=EPOCHS, strategy=None, rate=RATE):
    """A report of each seed."""
    strategy = strategy or parallel.Serial()
    return [parallel.train(job(middle, seed, epochs, rate), strategy, on="simulation")
            for seed in bar(SEEDS, "training")]  # fmt: skip


def known(reports):
    """The share of the facts that is answered right after training: mean and standard deviation over the seeds."""
    return spread([report.accuracy for report in reports])


def spread(shares):
    return f"{100 * np.mean(shares):.0f} ± {100 * np.std(shares, ddof=1):.0f}"


def size(middle):
    """The weights of the feed-forward networks and a gate, and their multiply-adds for a token."""
    layer = middle()
    return sum(p.size for p in layer.parameters()), nn.count(layer, (BATCH, WIDTH)).multiply_adds / BATCH


runs = {"small": learn(partial(dense, 32)), "small, 4 times as long": learn(partial(dense, 32), 4 * EPOCHS),
        "large": learn(partial(dense, 256))}  # fmt: skip
small, large = size(partial(dense, 32)), size(partial(dense, 256))
table(["feed-forward network", "hidden units", "weights", "multiply-adds a token", "facts known (%)"],
      [["small", 32, f"{small[0]:,}", f"{small[1]:,.0f}", known(runs["small"])],
       ["small, 4 times as long", 32, f"{small[0]:,}", f"{small[1]:,.0f}", known(runs["small, 4 times as long"])],
       ["large", 256, f"{large[0]:,}", f"{large[1]:,.0f}", known(runs["large"])]],
      f"measured: mean and standard deviation of {len(SEEDS)} seeds; {EPOCHS} passes over the facts, and "
      f"{4 * EPOCHS} in the second row; Adam, learning rate {RATE}, minibatches of {BATCH:,}")  # fmt: skip
say(f"The large network knows more, at {large[1] / small[1]:.0f} times the multiply-adds *for each token*. Training "
    "the small one for longer helps less.")  # fmt: skip

# %% [markdown]
# A dense network uses all of its weights for every token, so what it can know and what a token costs grow together. But
# a single fact needs few of the weights. Could a token use only those that it needs?
#
# ## Build it: a gate and eight experts
#
# Take eight small networks, the *experts*, and let each token pass through one of them. Which one? A *gate*, a linear
# layer and a softmax, gives each expert a probability, and the token goes to the likeliest one. Its output is
# multiplied by this probability. This is a *mixture of experts* with *top-1* routing.
#
# Each expert has a fixed number of *slots* for the tokens of a forward pass, its *capacity*: $\lceil c\,n / E \rceil$
# for $n$ tokens, $E$ experts and the *capacity factor* $c$. Tokens that find no free slot are *dropped*: the layer adds
# nothing to them, and they go on by the skip connection. (The last two lines of `forward` are explained later.)


# %%
class Switch(nn.Module):
    """A mixture of experts with top-1 routing."""

    def __init__(self, hidden, experts, capacity_factor=1.25, balance=0.01, weigh=True):
        self.gate = nn.Linear(WIDTH, experts, bias=False)
        self.experts = nn.ModuleList(dense(hidden) for _ in range(experts))
        self.capacity_factor, self.balance, self.weigh = capacity_factor, balance, weigh

    def forward(self, x):
        n, E = len(x), len(self.experts)
        p = F.softmax(self.gate(x), axis=1)
        chosen = p.numpy().argmax(axis=1)
        capacity = math.ceil(self.capacity_factor * n / E) if self.training else n
        read = [np.flatnonzero(chosen == e)[:capacity] for e in range(E)]  # the tokens of each expert
        dropped = np.setdiff1d(np.arange(n), np.concatenate(read))
        y = [self.experts[e](x[t]) * (p[t, e].reshape(-1, 1) if self.weigh else 1) for e, t in enumerate(read)]
        y = F.cat([*y, Tensor(np.zeros((len(dropped), WIDTH), x.dtype))])
        y = y[np.argsort(np.concatenate([*read, dropped]))]  # in the order of the tokens again
        share = np.bincount(chosen, minlength=E) / n
        return with_loss(y, self.balance * E * (p.mean(axis=0) * share.astype(p.dtype)).sum())


# %% source_hidden=true
random.manual_seed(1)
theirs = nn.MixtureOfExperts(WIDTH, 32, experts=8, capacity_factor=1.0).double()
ours = Switch(32, 8, capacity_factor=1.0).double()
for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
    own.copy_(other.numpy())
noise = np.random.default_rng(1).normal(size=(2, 301, WIDTH))
results = []
for layer in (ours, theirs):
    x = Tensor(noise[0], requires_grad=True)
    y = layer(x)
    y.backward(noise[1])
    results.append([y.numpy(), x.grad, *(p.grad for p in layer.parameters())])
off = max(np.abs(a - b).max() for a, b in zip(*results, strict=True))
say(f"`nn.MixtureOfExperts` has the same outputs and gradients as our `Switch`, up to {off:.0e}: 301 tokens, of which "
    f"{theirs.counts.dropped} are dropped.")  # fmt: skip

# %% [markdown]
# Now teach the facts to eight experts of 32 hidden units each, at the same learning rate, for as many steps:

# %%
guess_known = guess("How many of the facts do eight small experts know?", unit="%")

# %%
mixture = partial(partial, nn.MixtureOfExperts, WIDTH, 32)
runs |= {f"{E} experts": learn(mixture(E)) for E in (8, 16)}

# %% source_hidden=true
sizes = {"small": small, "large": large, "8 experts": size(mixture(8)), "16 experts": size(mixture(16))}
shares = {way: [100 * report.accuracy for report in runs[way]] for way in sizes}
say(f"Facts known by eight experts: **{known(runs['8 experts'])} %** (measured; your guess: "
    f"{guess_known.against(round(np.mean(shares['8 experts']), 1))}). Multiply-adds for a token: "
    f"{sizes['8 experts'][1] / small[1]:.2f} times those of the small network. The excess is the gate, and empty "
    "slots, which are computed, too.")  # fmt: skip


def points(number):
    return [lines.Line(way, [sizes[way][number]] * len(SEEDS), shares[way], "points") for way in sizes]


see(
    lines.draw([lines.Panel(points(1), "multiply-adds a token", "facts known (%)", "cost", "x", ylim=(0, 105)),
                lines.Panel(points(0), "weights", "facts known (%)", "size", "x", ylim=(0, 105))],
               source="measured"),
    "one point a seed; weights and multiply-adds of the middle layer. Left: the experts cost far "
    "less than the large network; eight know most of what it knows, sixteen as much. Right: eight experts have about "
    "as many weights as the large network, sixteen twice as many.",
)  # fmt: skip

# %% [markdown]
# What experts can know grows with *all* their weights; what a token costs, with those that it *meets*. So the answer
# seems to be yes. But there are three prices: tokens that are dropped, messages, and training that can go wrong without
# a sign.
#
# ## First price: dropped tokens
#
# Suppose the gate is perfectly even: each token goes to each of the eight experts with probability 1/8. With $c = 1$
# there is a slot for each of 1,024 tokens.

# %%
guess_dropped = guess("How many of the tokens are dropped all the same?", unit="%")


# %%
def dropped_by_chance(tokens, experts, capacity_factor, top=1):
    """The expected share of dropped choices if all experts are equally likely: a load is binomial."""
    capacity = nn.MixtureOfExperts(1, 1, experts, top, capacity_factor).capacity(tokens)
    p, k = top / experts, np.arange(tokens + 1)
    logs = np.array([math.lgamma(tokens + 1) - math.lgamma(i + 1) - math.lgamma(tokens - i + 1) for i in k])
    loads = np.exp(logs + k * np.log(p) + (tokens - k) * np.log1p(-p)) if p < 1 else k == tokens
    return np.sum(loads * np.maximum(k - capacity, 0)) * experts / (tokens * top)


# %% source_hidden=true
chance = 100 * dropped_by_chance(BATCH, 8, 1.0)
say(f"{chance:.1f} % (formula; your guess: {guess_dropped.against(round(chance, 1))}). Chance alone overfills some "
    "experts and leaves slots of others empty. With $c = 1.1$ it is "
    f"{100 * dropped_by_chance(BATCH, 8, 1.1):.1f} %.")  # fmt: skip

# %% [markdown]
# A trained gate need not be even. An expert that reads more tokens learns faster, so the gate prefers it even more.
# Against this, training adds a *load-balancing loss* to the loss (Switch Transformers, equation 4):
#
# $$\alpha\, E \sum_{i=1}^{E} f_i P_i$$
#
# Here $f_i$ is the share of the tokens that chose expert $i$, and $P_i$ the mean of its probabilities. It is $\alpha$
# if all experts are used alike, and larger if those that get many tokens are also the likelier ones. $f_i$ is a count
# and has no gradient, but $P_i$ has: descent lowers the probability of busy experts. These are the last two lines of
# `Switch`, with $\alpha$ = `balance`; `with_loss` returns `y`, and backward adds the gradient of the second argument.
# How much does it help with $c = 1$?

# %%
balanced = {alpha: learn(mixture(8, capacity_factor=1.0, balance=alpha)) for alpha in (0, 0.01, 0.1)}


# %% source_hidden=true
def dropped(report, epoch):
    counts = next(iter(report.routing[epoch].values()))
    return counts.dropped / counts.load.sum()


def load_of(report):
    """The share of the facts that each expert reads after training, the largest first."""
    read, skip, _ = report.model()
    logits = skip.middle.gate(skip.norm(read(pairs))).numpy()
    return np.sort(np.bincount(logits.argmax(axis=1), minlength=len(skip.middle.experts)) / len(pairs))[::-1]


table(["load-balancing loss", "dropped, all passes (%)", "dropped, last pass (%)", "busiest expert (% of the facts)",
       "facts known (%)"],
      [[f"$\\alpha$ = {alpha}" if alpha else "none",
        *(f"{100 * np.mean(each):.1f} ± {100 * np.std(each, ddof=1):.1f}" for each in (
            [np.mean([dropped(report, epoch) for epoch in range(EPOCHS)]) for report in reports],
            [dropped(report, -1) for report in reports], [load_of(report)[0] for report in reports])),
        known(reports)] for alpha, reports in balanced.items()]
      + [["even gate (formula)", f"{chance:.1f}", f"{chance:.1f}", f"{100 / 8:.1f}", ""]],
      f"measured: 8 experts, capacity factor 1; mean and standard deviation of {len(SEEDS)} seeds")  # fmt: skip
see(
    lines.draw([
        lines.Panel([lines.Line(f"$\\alpha$ = {alpha}", range(1, EPOCHS + 1),
                                [100 * np.mean([dropped(report, epoch) for report in reports])
                                 for epoch in range(EPOCHS)]) for alpha, reports in balanced.items()]
                    + [lines.Line("even gate (formula)", [1, EPOCHS], [chance] * 2)],
                    "pass over the facts", "dropped tokens (%)", ylim=(0, None)),
        lines.Panel([lines.Line(f"$\\alpha$ = {alpha}", range(1, 9),
                                100 * np.mean([load_of(report) for report in reports], axis=0), "both")
                     for alpha, reports in balanced.items()],
                    "experts, the busiest first", "facts that it reads (%)", ylim=(0, None))],
        source=("measured", "formula")),
    "means over the seeds. Left: most is dropped at the beginning; with the load-balancing loss the share comes near "
    "that of an even gate. Right: the load of the experts after training.",
)  # fmt: skip

# %% [markdown]
# With $c = 1$ the load-balancing loss does no better than chance, which drops a share of about $0.4 \sqrt{E/n}$: fewer
# if there are more tokens. (Without this loss our gate becomes uneven, but it does not collapse. Shazeer et al. report
# gates that always chose the same few experts.) What remains is the choice of the capacity. Larger factors drop fewer
# tokens, but empty slots are computed and, as we shall see, sent. Try some factors. With $k = 2$ (*top-2*), each token
# goes to its two likeliest experts, and there are twice as many slots. The logits of the uneven gate are one draw for
# each expert, with standard deviation 0.7, and noise for each token.

# %% source_hidden=true
FACTORS = (0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3)


def shares_dropped(experts, top, gate, tokens=BATCH):
    """For each capacity factor, by routing tokens whose scores are drawn by chance."""
    rng = np.random.default_rng(3)
    likes = rng.normal(size=experts) * (0 if gate == "even" else 0.7)
    choices = [np.argsort(-likes - rng.gumbel(size=(tokens, experts)), axis=1)[:, :top] for _ in range(20)]
    layers = [nn.MixtureOfExperts(1, 1, experts, top, factor) for factor in FACTORS]
    return [100 * np.mean([route(each, experts, layer.capacity(tokens)).dropped for each in choices]) / tokens / top
            for layer in layers]  # fmt: skip


def trade(axes, experts, capacity_factor, k, gate):
    if gate == "even":
        axes.plot(FACTORS, [100 * dropped_by_chance(BATCH, experts, factor, k) for factor in FACTORS],
                  color=style.SERIES[0], label="formula")  # fmt: skip
    drawn = shares_dropped(experts, k, gate)
    axes.plot(FACTORS, drawn, color=style.SERIES[1], marker="o", markersize=4, linestyle="--", label="simulated")
    share = drawn[FACTORS.index(capacity_factor)]
    slots = nn.MixtureOfExperts(1, 1, experts, k, capacity_factor).capacity(BATCH)
    sent = dispatched_bytes(4, experts, slots, WIDTH) / 1e3
    axes.plot(capacity_factor, share, marker="o", markersize=12, markerfacecolor="none", color="black")
    axes.text(0.97, 0.3, f"circle: {share:.1f} % dropped,\n{sent:.0f} kB to the experts\nfrom each of 4 ranks",
              ha="right", transform=axes.transAxes, fontsize=8)  # fmt: skip
    axes.set(xlabel="capacity factor", ylabel="dropped choices (%)", ylim=(-2, 75))
    axes.legend(fontsize=8, loc="upper right")


explore(
    trade,
    f"{BATCH:,} tokens on each rank. With an even gate, the simulated shares agree with the formula. More "
    "experts mean fewer slots each, and chance drops more. This uneven gate drops tokens even at a capacity factor of "
    "2. Top-2 sends twice as much.",
    experts=[8, 4, 16, 64],
    capacity_factor=[1, 0.5, 1.25, 1.5, 2, 3],
    k=[1, 2],
    gate=["even", "uneven"],
    multiples=[{}, {"experts": 64}, {"gate": "uneven", "capacity_factor": 2}, {"k": 2}],
    height=2.9,
    source=("simulated", "formula"),
)

# %% [markdown]
# ## Second price: messages
#
# The point of experts is to have very many of them, more than one node can hold. So divide the *experts* over the
# ranks: rank $r$ of $P$ has $E/P$ of them. This is *expert parallelism*. The ranks also divide the *samples*, as in
# data parallelism: each has tokens of its own, and a copy of all other weights, gate included. Each rank sends every
# other rank the tokens for its experts, and every other rank does the same. This collective is an *all-to-all*. The
# outputs go back by a second one.
#
# Below are our eight trained experts on four ranks, with 90 facts each.

# %%
guess_times = guess("How many all-to-alls does the layer make in a step of training?", unit="all-to-alls")


# %%
def there_and_back(comm, layer, tokens):
    """Forward and backward of this rank's tokens: their outputs, and the bytes sent."""
    divided = ExpertParallel(layer, comm)  # this rank has 1 / comm.size of the experts
    x = Tensor(np.array_split(tokens, comm.size)[comm.rank], requires_grad=True)
    y = divided(x)
    y.backward(np.ones_like(y.numpy()))
    return y.numpy(), comm.bytes_sent


# %% source_hidden=true
read, skip, _ = runs["8 experts"][0].model()
some = np.random.default_rng(2).permutation(len(pairs))[:360]
tokens, trained = skip.norm(read(pairs[some])).numpy(), skip.middle
engine = cluster.Simulation("10gbe", cluster.Node(2e9, np.inf))
rows, differences = [], []
for P in (2, 4):
    for factor in (1.0, 1.25):
        layer = nn.MixtureOfExperts(WIDTH, 32, 8, capacity_factor=factor)
        layer.load_state_dict(trained.state_dict())
        measured, simulated = (cluster.launch(there_and_back, (layer, tokens), P, on) for on in ("processes", engine))
        whole = [layer(own).numpy() for own in np.array_split(tokens, P)]
        differences += [np.abs(y - alone).max() for run in (measured, simulated)
                        for (y, _), alone in zip(run.results, whole, strict=True)]  # fmt: skip
        own = len(tokens) // P
        each = dispatched_bytes(P, 8, layer.capacity(own), WIDTH)
        rows.append([P, factor, layer.capacity(own), f"{each:,}", f"{4 * each:,}",
                     *(f"{max(sent for _, sent in run.results):,}" for run in (measured, simulated)),
                     f"{own * WIDTH * 4 * (P - 1) // P:,}"])  # fmt: skip
        all_to_alls = measured.results[0][1] / each

# %% source_hidden=true
logits = trained.gate(Tensor(tokens)).numpy().argmax(axis=1).reshape(4, 90)
sent = np.array([np.bincount(own // 2, minlength=4) for own in logits])
with style.applied():
    figure, places = style.new_figure(6.4, 2.7, columns=2)
    ends = [f"the {what} of rank" for what in ("tokens", "experts")]
    for axes, counts, title, (start, end) in zip(places, (sent, sent.T), ("tokens there", "outputs back"),
                                                 (ends, ends[::-1]), strict=True):  # fmt: skip
        axes.imshow(counts, cmap="Blues", vmin=0, vmax=1.6 * sent.max())  # the darkest leaves the numbers readable
        for (row, column), count in np.ndenumerate(counts):
            axes.text(column, row, str(count), ha="center", va="center")
        axes.set(title=title, xlabel=f"to {end}", ylabel=f"from {start}", xticks=range(4), yticks=range(4))  # fmt: skip
    style.label_source(figure, "measured")
see(figure, "how many of a rank's 90 tokens choose the experts of each rank; on the diagonal they stay. Outputs take "
            "the same ways back: the matrix is transposed.")  # fmt: skip
table(["ranks", "capacity factor", "slots of an expert", "one all-to-all, formula", "step, formula", "step, processes",
       "step, simulated", "tokens alone"], rows,
      "bytes that a rank sends; slots that an expert has for the tokens of one rank; tokens alone: what one all-to-all "
      "would send if each token had a slot and no slot were empty")  # fmt: skip
say(f"In a step the layer sends {all_to_alls:g} times what one all-to-all does (your guess: "
    f"{guess_times.against(round(all_to_alls))}). The outputs differ from those of the undivided layer by at most "
    f"{max(differences):.0e}.")  # fmt: skip

# %% [markdown]
# There are four: backward sends gradients of the outputs to the experts, and gradients of the tokens back. *The
# backward of an all-to-all is an all-to-all the other way.* In one of them, a rank with $n$ tokens of $d$ numbers sends
#
# $$E \left\lceil \frac{c\,n}{E} \right\rceil d\, \frac{P-1}{P} \approx c\,n\,d\,\frac{P-1}{P} \text{ numbers.}$$
#
# All slots are sent, empty ones as well, so that messages do not depend on the routing: each rank knows their length
# beforehand. The number of experts does not matter, and neither does their size.

# %% source_hidden=true
see(
    cluster.plot_traces([simulated.trace], row_height=0.26,
                        titles=["forward and backward of a mixture on four ranks (10gbe, 2 GFLOP/s)"]),
    "the ranks route (blue), send tokens, compute their two experts, and send outputs back. Then gradients go the same "
    "way: sent to the experts, computed, sent back. Nobody computes while tokens travel.",
)  # fmt: skip

# %% [markdown]
# In return, the gradients of experts need no all-reduce: an expert is on one rank, and the tokens of all ranks have met
# in it. What data parallelism sends grows with the weights; what expert parallelism sends, with the tokens.
#
# ## What is it worth in time?
#
# Four simulated nodes of 10 GFLOP/s train on our facts: the small and the large network by data parallelism, and
# sixteen experts, which end as high at this learning rate, by `parallel.Hybrid(dp=1, ep=4)`. Each node has four of
# them, about half as many weights as the large network. `Serial(shards=4)` is the same training on one node, with a
# capacity for each quarter of a minibatch.

# %%
guess_network = guess("Who is the first to know 80 % of the facts?",
                      ["experts on every network", "large on every network", "experts on fast networks only",
                       "large on fast networks only"])  # fmt: skip

# %%
WAYS = {"small": (partial(dense, 32), parallel.Synchronous()), "large": (partial(dense, 256), parallel.Synchronous()),
        "16 experts": (mixture(16), parallel.Hybrid(dp=1, ep=4))}  # fmt: skip
learned = {way: runs[way] for way in WAYS} | {"16 experts": learn(mixture(16), strategy=parallel.Serial(shards=4))}

# %% source_hidden=true
NETWORKS = ("1gbe", "10gbe", "infiniband")


def step_time(way, name):
    """Milliseconds."""
    middle, strategy = WAYS[way]
    engine = cluster.Simulation(name, cluster.Node(1e10, np.inf))
    row = parallel.train(job(middle, epochs=1), strategy, 4, engine).history[-1]
    return 1e3 * row["seconds"] / row["steps"]


def steps_until(report, share=0.8):
    return next((row["steps"] for row in report.history if row["accuracy"] >= share), np.nan)


step = {(way, name): step_time(way, name) for way in WAYS for name in NETWORKS}
times = {(way, name): step[way, name] * np.array([steps_until(report) for report in learned[way]])
         for way, name in step}  # fmt: skip
wins = [max(times["16 experts", name]) < min(times["large", name]) for name in NETWORKS]
loses = [min(times["16 experts", name]) > max(times["large", name]) for name in NETWORKS]
answer = ("experts on every network" if all(wins) else "large on every network" if all(loses) else
          "experts on fast networks only" if wins[-1] else "large on fast networks only")  # fmt: skip
see(
    lines.draw([lines.Panel([lines.Line(way, [step[way, name] * row["steps"] for row in learned[way][0].history],
                                        100 * np.mean([[row["accuracy"] for row in report.history]
                                                       for report in learned[way]], axis=0)) for way in WAYS],
                            "time (ms)", "facts known (%)", name, ylim=(0, 105)) for name in NETWORKS],
               source=("measured", "simulated")),
    "means over the seeds; what is known is measured, and the time of a step is simulated on four nodes. The experts "
    "end as high as the large network, and sooner on each of the three networks.",
)  # fmt: skip
table(["", *(f"step, {name} (ms)" for name in NETWORKS), *(f"80 % known, {name} (ms)" for name in NETWORKS)],
      [[way, *(f"{step[way, name]:.2f}" for name in NETWORKS),
        *(f"{np.mean(times[way, name]):.0f}" if np.isfinite(times[way, name]).all() else "never" for name in NETWORKS)]
       for way in WAYS],
      f"simulated times, read after each pass; mean of {len(SEEDS)} seeds; your guess: "
      f"{guess_network.against(answer)}")  # fmt: skip

faster = {way: learn(WAYS[way][0], strategy=how, rate=OTHER_RATE)
          for way, how in (("large", None), ("16 experts", parallel.Serial(shards=4)))}  # fmt: skip
fewest = {way: min(np.mean([steps_until(report) for report in reports]) for reports in (learned[way], faster[way]))
          for way in faster}  # fmt: skip
gains = [step["large", name] * fewest["large"] / (step["16 experts", name] * fewest["16 experts"]) for name in NETWORKS]
say(f"We did not look for the best learning rate of each. At {OTHER_RATE} instead of {RATE} the large "
    f"network knows {known(faster['large'])} % in the end, sixteen experts {known(faster['16 experts'])} % (measured). "
    "If each takes the rate of these two at which it is sooner, the large network still needs "
    f"{min(gains):.1f} to {max(gains):.1f} times as long for 80 % on the three networks.")  # fmt: skip

# %% [markdown]
# A step with experts takes longer than one of the small network: the experts also send tokens, and compute a gate and
# empty slots. It takes less time than a step of the large network, which computes with all its weights, and all-reduces
# all their gradients. The faster the network, the larger the gain. (Tensor parallelism for the large network is not in
# this comparison; [14c](14c_the_planner.ipynb) compares plans.)
#
# ## Break it
#
# Third price: mistakes that nobody sees. The choice of an expert has no gradient. The gate learns because the expert's
# output is *multiplied by its probability*. What if that is forgotten? `weigh=False` in our `Switch`:

# %%
guess_load = guess("Without the factor: how is the load of the experts after training?",
                   ["one expert reads nearly all", "uneven", "as even as before or more"])  # fmt: skip

# %%
broken = {"right": runs["8 experts"], "no factor": learn(partial(Switch, 32, 8, weigh=False)),
          "no factor, no balance": learn(partial(Switch, 32, 8, weigh=False, balance=0.0))}  # fmt: skip

# %% source_hidden=true
busiest = {way: [load_of(report)[0] for report in reports] for way, reports in broken.items()}
means = {way: np.mean(each) for way, each in busiest.items()}
answer = ("one expert reads nearly all" if means["no factor"] > 0.9 else
          "uneven" if means["no factor"] > means["right"] + np.std(busiest["right"]) else
          "as even as before or more")  # fmt: skip
table(["", "busiest expert (% of the facts)", "loss in the last pass", "facts known (%)"],
      [[way, f"{100 * means[way]:.1f} ± {100 * np.std(busiest[way], ddof=1):.1f}",
        f"{np.mean([report.history[-1]['loss'] for report in reports]):.2f}", known(reports)]
       for way, reports in broken.items()],
      f"measured: 8 experts, capacity factor 1.25; mean and standard deviation of {len(SEEDS)} seeds; your guess: "
      f"{guess_load.against(answer)}")  # fmt: skip

# %% [markdown]
# Nothing raises an error, the loss falls, and the load looks perfect. But the load-balancing loss is now all that the
# gate learns from. It moves tokens from one expert to another to even out the counts, whatever the experts have learned
# about them. Without that loss the gate gets no gradient at all and stays as it was drawn. Then the facts are divided
# among the experts by chance, which is better. So look at the load *and* at what is learned, compared with a dense
# network of the same cost.
#
# ## What the papers report
#
# **Shazeer et al. (2017)**, arXiv:1701.06538, begin with what our facts show: the number of weights limits what a
# network can take in. They put mixtures of up to thousands of experts between the layers of a recurrent network, 137
# billion weights in all. Their gate picks the top $k$ after adding noise, and two losses even out the experts.
# **Lepikhin et al. (2020)**, GShard (arXiv:2006.16668), give transformers top-2 gates with a capacity, and train a
# translator of more than 600 billion weights on 2,048 TPU cores in four days.
#
# **Fedus et al. (2021)**, Switch Transformers (arXiv:2101.03961), show that one expert for each token suffices. They
# use $\alpha = 0.01$ and capacity factors from 1 to 2, and typically drop less than 1 % of the tokens. With 64 experts
# they need a seventh of the time of a dense model with as many operations a token, and also less than half the time of
# a dense one with 3.5 times as many.

# %% source_hidden=true
gates = np.array([[0.51, 0.49]] * 3 + [[0.1, 0.9]] * 2)
least = load_balancing_loss(Tensor(gates), gates.argmax(axis=1)).item()
say("The paper says that the load-balancing loss is smallest if all experts are used alike, where it is $\\alpha$. It "
    "can be smaller: if three tokens have the probabilities 0.51 and 0.49, and two have 0.1 and 0.9, it is "
    f"{least:.2f} $\\alpha$.")  # fmt: skip

# %% [markdown]
# This is a GPT-2 with a mixture in each block, counted from shapes:

# %% source_hidden=true
rows = []
for experts in (None, 8, 64):
    settings = {} if experts is None else {"experts": experts, "capacity_factor": 1.0}
    gpt = partial(nn.models.GPT, 50_257, 1024, n_layer=12, n_head=12, n_embd=768, **settings)
    counted = nn.count(gpt, np.zeros((1, 1024), np.int64))
    rows.append((experts or "none", counted.parameters / 1e6, counted.flops / 1024 / 1e6))
table(["experts in a block", "million weights", "million flops a token", "weights, relative", "flops, relative"],
      [[name, f"{weights:,.0f}", f"{flops:.1f}", f"{weights / rows[0][1]:.1f}", f"{flops / rows[0][2]:.3f}"]
       for name, weights, flops in rows],
      "formula: width 768, 12 blocks, context 1,024; forward, capacity factor 1")  # fmt: skip

# %% [markdown]
# What our facts do *not* show: that more knowledge is what a model lacks. Text has rules as well as facts. A small GPT
# with experts, trained for two hundred steps, reads text no better than a dense one
# ([reproduction](../benchmarks/reproductions/mixture_of_experts.py)): each expert sees only its share of the tokens.
#
# ## The answer
#
# Yes, if what it lacks is weights. A gate sends each token to one of many experts; the layer knows what all of them
# know, and computes what one of them computes. The price is a fixed capacity, which drops tokens or computes empty
# slots, four all-to-alls a layer and step, and a gate that has to be kept even.
#
# ## To the exercises
#
# [Exercises of chapter 14](../exercises/14_putting_it_together/14_putting_it_together.ipynb): after this page you can
# write `route` and `moe_step`.
#
# **Three questions to argue about**
#
# 1. Which tokens of a minibatch are dropped depends on the other tokens. What does this mean for a model that answers
#    several people at once?
# 2. You have 8 nodes and 8 experts. When would you rather give each node all experts, and all-reduce their gradients?
# 3. One of four ranks has the two busiest experts. Whom does it delay? Would it help to drop the fixed capacity?
#
# Next: [14b. Which ways of sharing go together?](14b_which_go_together.ipynb)
