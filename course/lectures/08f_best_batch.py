# %% [markdown]
# # 08f. Which minibatch is the fastest on this network?
#
# *Read [08d](08d_steps_to_target.ipynb) (steps against the minibatch) and [05c](05c_scaling.ipynb) (seconds of a step)
# first. Reading time: about 30 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Eight nodes with 10 Gbit/s Ethernet train a network whose gradient has 100 MB. One sample takes a node 5 ms, as in
# 05c. (Whether it should be eight comes later.) How many samples should a minibatch have?
#
# First the facts from 08d: how many steps of plain SGD until the training loss is at most 0.3, with the best rate for
# each minibatch $B$? The small net on digits stands in for the large one. Three rates around 08d's best ones, five
# seeds.

# %%
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

import minidl
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, data, nn, no_grad, optim, parallel
from minidl import functional as F
from minidl.cluster import cost
from minidl.plots import style
from minidl.plots.style import time_text

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
TRAIN = data.digits().train
N = len(TRAIN)  # samples
TARGET, SEEDS, SIZES = 0.3, range(5), (8, 16, 32, 64, 128, 256, 512, 1024)


def loss_of(model):
    """The loss on the whole training set."""
    with no_grad():
        return F.cross_entropy(model(TRAIN.x), TRAIN.y).item()


def new_model(seed):
    minidl.manual_seed(seed)
    return nn.models.MLP(64, 32, 10)


def minibatch(B, step, seed):
    """The samples of one step."""
    return np.random.default_rng((seed, step)).choice(N, B, replace=False)


def gradient(model, chosen):
    """Leave the gradient of the chosen samples in the model."""
    model.zero_grad()
    F.cross_entropy(model(TRAIN.x[chosen]), TRAIN.y[chosen]).backward()


def steps_to_target(B, rate, seed, most=300):
    model = new_model(seed)
    sgd = optim.SGD(model.parameters(), lr=rate)
    for step in range(most):
        gradient(model, minibatch(B, step, seed))
        sgd.step()
        if loss_of(model) <= TARGET:
            return step + 1
    return np.inf


def tuned(B):
    """The fewest steps (median of the seeds), and the rate that needs them."""
    rates = min(B / 8, 4) * np.array([0.7, 1, 1.4])
    return min((np.median([steps_to_target(B, rate, seed) for seed in SEEDS]), rate) for rate in rates)


# %%
steps, rate = {}, {}
for B in bar(SIZES, "training to the target"):
    steps[B], rate[B] = tuned(B)

NETWORKS = {"1 GbE": "1gbe", "10 GbE": "10gbe", "InfiniBand": "infiniband"}
NETWORK = {name: cluster.Network.preset(preset) for name, preset in NETWORKS.items()}
GRADIENT, SECONDS_PER_SAMPLE, NODES = 100_000_000, 5e-3, 8  # bytes; seconds; p


def one_step(comm, samples, seconds_per_sample):
    """One training step of a node, without its numbers: compute, then add up the gradient."""
    comm.compute(seconds=samples * seconds_per_sample)
    comm.all_reduce(cluster.Phantom(GRADIENT), algorithm="ring")


def simulated(B, network, p=NODES, c=SECONDS_PER_SAMPLE):
    """Seconds of one step with minibatch B on p nodes that need c seconds for a sample."""
    return cluster.launch(one_step, (B / p, c), p, cluster.Simulation(trace="ledger"), NETWORK[network]).seconds


shown = (8, 32, 128, 512, 1024)
table(["minibatch B", *map(str, shown)],
      [["steps to the target", *(f"{steps[B]:.0f}" for B in shown)],
       ["samples/second", *(f"{B / simulated(B, '10 GbE'):,.0f}" for B in shown)]],
      "steps measured, median of 5 seeds; samples/second simulated: 8 nodes, 10 GbE")  # fmt: skip

# %% [markdown]
# Read both rows: the larger the minibatch, the fewer steps (until that ends); the larger the minibatch, the more
# samples a second. Both rows favour a large minibatch.

# %%
guess_best = guess("8 nodes on 10 GbE: which minibatch reaches the target first?", list(map(str, SIZES)))

# %% [markdown]
# ## Steps times seconds

# %%
seconds = {(network, B): simulated(B, network) for network in NETWORK for B in SIZES}
to_target = {(network, B): steps[B] * seconds[network, B] for network, B in seconds}
fastest = {network: min(SIZES, key=lambda B: to_target[network, B]) for network in NETWORK}
cell = "**{:.2f} s**", "{:.2f} s"
table(["time to the target", *(f"B = {B}" for B in SIZES)],
      [[network, *(cell[fastest[network] != B].format(to_target[network, B]) for B in SIZES)] for network in NETWORK],
      f"measured steps x simulated seconds, 8 nodes; bold: the fastest; your guess, 10 GbE: {guess_best}")  # fmt: skip
most = SIZES[-1]
loser = to_target["10 GbE", most] / to_target["10 GbE", fastest["10 GbE"]]
fewest = min(steps.values())
say(f"On 10 GbE B = {fastest['10 GbE']} is the first. B = {most:,} reads the most samples a second and makes "
    f"{steps[most]:.0f} steps; the fewest of all B are {fewest:.0f}. Still it takes **{loser:.1f} times** as "
    "long.")  # fmt: skip

# %% [markdown]
# Why not the largest? Neither row of the first table is what it looks like. Few steps are worth little if each is long.
# Many samples a second are worth little if each teaches little. One row of each kind makes sense: learning/second =
# learning/sample x samples/second (05c). Learning is here an arrival at the target, so that learning/sample is
# $1/(BS)$, with $S$ steps:

# %%
product_of = parallel.learning_speed.LearningSpeed
speed = {(network, B): product_of(1 / (B * steps[B]), B / took) for (network, B), took in seconds.items()}


def factors():
    with style.applied():
        figure, (left, middle, right) = style.new_figure(9.5, 3.3, columns=3)
        left.plot(SIZES, [1000 / (B * steps[B]) for B in SIZES], "o-", color=style.SERIES[6], markersize=4)
        left.set(title="learning per sample", ylabel="targets per 1,000 samples")
        for i, network in enumerate(NETWORK):
            look = {"color": style.SERIES[i], "linestyle": style.DASHES[i], "marker": "os^"[i], "markersize": 4}
            middle.plot(SIZES, [speed[network, B].samples_per_second for B in SIZES], **look)
            product = [speed[network, B].learning_per_second for B in SIZES]
            right.plot(SIZES, product, label=network, **look)
            right.plot(fastest[network], max(product), "o", color=style.SERIES[i], markersize=12, fillstyle="none")
        middle.set(title="samples per second", ylabel="samples per second")
        right.set(title="learning per second", ylabel="targets per second")
        figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8)
        for axes in (left, middle, right):
            axes.set(xscale="log", yscale="log", xlabel="minibatch B (samples)")
            axes.set_xticks([8, 32, 128, 512], [8, 32, 128, 512])
            axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        for axes, ticks in ((left, (0.1, 0.2, 0.5, 1, 2)), (middle, (10, 100, 1000)), (right, (0.1, 1))):
            axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
        style.label_source(figure, ("measured", "simulated"), "8 nodes")
    return figure


see(
    factors(),
    "left, each sample teaches less in a larger minibatch. Middle, a larger one hides the network. Right, the product "
    "has its top (circle) between the two: the slower the network, the further to the right.",
)

# %% [markdown]
# ## The best minibatch in one line
#
# Both factors have a formula. Steps: 08d's $S = S_{\min}(1 + B_c/B)$. Seconds of a step on $p$ nodes: each computes
# $B/p$ samples of $c$ seconds (`seconds_per_sample`), then the all-reduce takes $t$, whatever $B$ is. (Nothing overlaps
# here; with overlap, 05b, part of $t$ is hidden.) A ring that adds up $n$ bytes takes
# $t = 2(p-1)\alpha + 2\frac{p-1}{p}n\beta$, with $\alpha$ seconds a message and $\beta$ seconds a byte (04b). The
# product of the two:
#
# $$T(B) = S_{\min}\Big(1 + \frac{B_c}{B}\Big)\Big(t + \frac{Bc}{p}\Big)
# = S_{\min}\Big(t + \frac{B_c\,c}{p} + \frac{B_c\,t}{B} + \frac{Bc}{p}\Big).$$
#
# The first two terms do not contain $B$. The last two are a falling and a rising one; their sum is least where they are
# equal:
#
# $$\boxed{B^* = \sqrt{\frac{B_c\,t\,p}{c}}} \qquad
# T(B^*) = S_{\min}\Big(\sqrt t + \sqrt{B_c\,c/p}\Big)^2 .$$
#
# The best minibatch is the geometric mean of two others. $B_c$ is what the *gradient's noise* asks for. $tp/c$ is the
# minibatch whose computing takes as long as its all-reduce: what the *network* asks for.


# %%
def fit(steps):
    """S_min and B_c, by least squares of the relative errors: a line in 1/B, as in 08d."""
    B, S = np.array(list(steps), float), np.array(list(steps.values()), float)
    e_min, s_min = np.polyfit(1 / B, S, 1, w=1 / S)
    return s_min, e_min / s_min


s_min, b_c = fit(steps)


def all_reduce(network, p):
    """t: seconds of a ring all-reduce of the gradient."""
    return cost.all_reduce("ring", p, GRADIENT, NETWORK[network].alpha, NETWORK[network].beta)


def best_minibatch(network, p=NODES, c=SECONDS_PER_SAMPLE, b_c=b_c):
    """B*; not less than p, since a node needs a sample."""
    return max(np.sqrt(b_c * all_reduce(network, p) * p / c), p)


def time_to_target(B, network, p=NODES, c=SECONDS_PER_SAMPLE, b_c=b_c):
    """T(B), in seconds."""
    return s_min * (1 + b_c / B) * (all_reduce(network, p) + B * c / p)


rows = []
for network in NETWORK:
    star = best_minibatch(network)
    every = range(NODES, 2000)
    searched = min(every, key=lambda B: time_to_target(B, network))
    worst = max(abs(time_to_target(B, network) / to_target[network, B] - 1) for B in SIZES)
    rows.append([network, time_text(all_reduce(network, NODES)),
                 f"{all_reduce(network, NODES) * NODES / SECONDS_PER_SAMPLE:.0f}", f"**{star:.0f}**", searched,
                 fastest[network], f"{1e-6 * 2 * (NODES - 1) / NODES * GRADIENT / star:.1f} MB",
                 f"{100 * worst:.0f} %"])  # fmt: skip
table(["network", "t", "the network asks for tp/c", "B*, formula", "best of all B, searched", "best of eight, measured",
       "bytes per sample at B*", "T(B) against measured steps x simulated seconds"], rows,
      f"8 nodes, S_min = {s_min:.1f}, B_c = {b_c:.0f} (fitted); bytes per sample: 2(p-1)/p n/B; last column: "
      "largest difference")  # fmt: skip

# %% [markdown]
# The searched optimum is the formula's, rounded. The measured steps are whole numbers, so neighbours are exchanged
# easily: the top is flat. How flat? At $B = x B^*$ the last two terms become $(x + 1/x)/2$ times as large,
# and they are at most half of $T(B^*)$. (By the arithmetic and the geometric mean: the first two are at least as much.)
# So twice or half the best minibatch costs at most 12.5 %, a factor of four at most 56 %.

# %%
say("Twice the best minibatch costs " + ", ".join(
    f"{100 * (time_to_target(2 * best_minibatch(n), n) / time_to_target(best_minibatch(n), n) - 1):.0f} % on {n}"
    for n in NETWORK) + " (formula).")  # fmt: skip

# %% [markdown]
# Now turn the cluster: the network, the cost of a sample, the number of nodes.


# %%
def valley(axes, network, ms_per_sample, nodes):
    """Time to the target against the minibatch, and the two parts that depend on it."""
    c, t = ms_per_sample / 1e3, all_reduce(network, nodes)
    B = np.geomspace(nodes, 20_000, 300)
    axes.plot(B, s_min * (1 + b_c / B) * B * c / nodes, "--", color=style.ACTIVITY["compute"], label="computing")
    axes.plot(B, s_min * (1 + b_c / B) * t, "-.", color=style.ACTIVITY["send"], label="all-reduce")
    axes.plot(B, time_to_target(B, network, nodes, c), color="black", label="together")
    star = best_minibatch(network, nodes, c)
    axes.plot(star, time_to_target(star, network, nodes, c), "D", color=style.SERIES[3], markersize=8,
              label=f"B* = {star:.0f}")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="minibatch B (samples)", ylabel="time to the target (s)",
             ylim=(0.02, 3000))  # fmt: skip
    axes.legend(fontsize=7, ncols=2, loc="upper center")


explore(valley,
        "blue, the computing, rises with B: samples are wasted. Vermilion, the all-reduce, falls: fewer steps. The "
        "diamond is the best minibatch. A faster network moves it to the left; faster nodes (less time for a sample) "
        "move it to the right, and so do more nodes.",
        network=["10 GbE", "1 GbE", "InfiniBand"], ms_per_sample=[5, 0.05, 0.5, 50], nodes=[8, 2, 4, 32, 128],
        multiples=[{}, {"network": "InfiniBand"}, {"ms_per_sample": 0.5}, {"nodes": 128}], height=3.8,
        source="formula")  # fmt: skip

# %% [markdown]
# ## Is it true? A race
#
# The formula multiplies two models. Does a training run agree? Here is synchronous training (05a) as a program: every
# node computes the gradient of its share, the all-reduce adds up, all make the same step. The nodes are simulated,
# and their small gradient travels as long as 100 MB. Three minibatches on 10 GbE: the smallest, the predicted best,
# and a large one, with seeds that no rate was tuned on.


# %%
def train(comm, B, rate, seed, seconds_per_sample):
    """Train until the target; rows (time, loss on the training set), one a step."""
    model, rows, loss = new_model(seed), [], np.inf
    parameters = list(model.parameters())
    sgd, borders = optim.SGD(parameters, lr=rate), np.cumsum([parameter.size for parameter in parameters])[:-1]
    while loss > TARGET:
        mine = minibatch(B, len(rows), seed)[comm.rank :: comm.size]
        gradient(model, mine)
        comm.compute(seconds=len(mine) * seconds_per_sample)
        together = np.concatenate([len(mine) / B * parameter.grad.ravel() for parameter in parameters])
        comm.all_reduce(together, algorithm="ring")
        for parameter, total in zip(parameters, np.split(together, borders), strict=True):
            parameter.grad = total.reshape(parameter.shape)
        sgd.step()
        loss = loss_of(model)
        rows.append((comm.now(), loss))
    return rows


weights = sum(parameter.size for parameter in new_model(0).parameters())
as_if_large = cluster.Network(NETWORK["10 GbE"].alpha, NETWORK["10 GbE"].beta * GRADIENT / (4 * weights))
middle = min(SIZES, key=lambda B: abs(np.log(B / best_minibatch("10 GbE"))))
RACERS, FRESH = (SIZES[0], middle, 512), range(5, 10)

# %%
guess_race = guess(f"B = {RACERS[0]}, {RACERS[1]} or {RACERS[2]}: how many times as long does the slowest need?",
                   unit="times")  # fmt: skip

# %%
races = {}
for B, seed in bar([(B, seed) for B in RACERS for seed in FRESH], "training on eight simulated nodes"):
    args = (B, rate[B], seed, SECONDS_PER_SAMPLE)
    races[B, seed] = cluster.launch(train, args, NODES, cluster.Simulation(trace="ledger"), as_if_large).results[0]
ends = {B: np.array([races[B, seed][-1][0] for seed in FRESH]) for B in RACERS}
table(["B", "predicted, T(B)", *(f"seed {seed}" for seed in FRESH), "samples/second"],
      [[B, f"{time_to_target(B, '10 GbE'):.1f} s", *(f"{end:.1f} s" for end in ends[B]),
        f"{B * len(races[B, FRESH[0]]) / ends[B][0]:,.0f}"] for B in RACERS],
      "formula; simulated nodes that really train: 10 GbE, 8 nodes")  # fmt: skip
winners = [min(RACERS, key=lambda B: ends[B][place]) for place in range(len(FRESH))]
say(f"B = {middle} wins with {winners.count(middle)} of {len(FRESH)} seeds. The slowest, B = "
    f"{max(RACERS, key=lambda B: np.median(ends[B]))}, needs "
    f"{max(np.median(ends[B]) for B in RACERS) / np.median(ends[middle]):.1f} times as long (medians); your guess: "
    f"{guess_race}.")  # fmt: skip


# %%
def race_picture():
    with style.applied():
        figure, (left, right) = style.new_figure(9.5, 3.3, columns=2, sharey=True)
        for i, B in enumerate(RACERS):
            for seed in FRESH:
                time, loss = np.array(races[B, seed]).T
                label = f"B = {B}" if seed == FRESH[0] else ""
                look = {"color": style.SERIES[i], "linestyle": style.DASHES[i], "linewidth": 1.2, "label": label}
                left.plot(np.arange(1, len(loss) + 1), loss, **look)
                right.plot(time, loss, **look)
        left.set(xlabel="steps", ylabel="training loss", title="against steps", yscale="log")
        right.set(xlabel="virtual time (s)", title="against time")
        for axes in (left, right):
            axes.axhline(TARGET, color="0.4", linewidth=0.8, linestyle=":")
        left.set_yticks([0.3, 0.5, 1, 2], [0.3, 0.5, 1, 2])
        left.minorticks_off()
        right.legend(fontsize=8)
        style.label_source(figure, "simulated", "8 nodes, 10 GbE, five fresh seeds each; dotted: the target")
    return figure


see(
    race_picture(),
    "against steps the largest minibatch wins. Against time the middle one does: the small one waits for the network "
    "in each of its many steps, the large one computes samples that teach nearly nothing.",
)

# %% [markdown]
# ## And how many nodes?
#
# Put the best minibatch for each $p$ into $T$: $S_{\min}(\sqrt t + \sqrt{B_c\,c/p})^2$. More nodes shrink the second
# root only; the first one even grows, since a ring has $2(p-1)$ rounds. And each node needs a sample: where $B^* < p$,
# further nodes only force the minibatch up. One node has nothing to add up ($t = 0$), so $B = 1$ is its best:
# $T = S_{\min}(1 + B_c)\,c$.

# %%
guess_nodes = guess("Digits on 10 GbE, up to 1,024 nodes, each number with its best minibatch: which is the fastest?",
                    unit="nodes")  # fmt: skip

# %% [markdown]
# We ask for our digits, and for a task with more noise, $B_c = 10{,}000$: McCandlish et al. (08d) put ImageNet at tens
# of thousands.

# %%
LARGE = 10_000
COUNTS = [2**k for k in range(11)]


def fastest_with(p, network, b_c):
    """The time to the target with the best minibatch on p nodes."""
    return time_to_target(best_minibatch(network, p, b_c=b_c), network, p, b_c=b_c)


rows = []
for critical in (b_c, LARGE):
    for network in NETWORK:
        times = {p: fastest_with(p, network, critical) for p in range(1, 1025)}
        p = min(times, key=times.get)
        half = min(q for q in times if times[1] / times[q] >= times[1] / times[p] / 2)
        its = best_minibatch(network, p, b_c=critical)
        name = f"**{p:,}**" + " or more" * (p == 1024)
        rows.append([f"{critical:,.0f}", network, name, f"{its:,.0f}", f"{times[1] / times[p]:.1f}", half])
table(["B_c", "network", "fastest p", "its B", "times as fast as one node", "nodes for half of that"], rows,
      f"formula; {1e3 * SECONDS_PER_SAMPLE:g} ms a sample; your guess for 10 GbE: {guess_nodes}")  # fmt: skip
say(f"For our digits on 10 GbE the eight nodes of this page, at their best, take "
    f"{fastest_with(8, '10 GbE', b_c):.1f} s, **one node alone {fastest_with(1, '10 GbE', b_c):.1f} s** (formula; with "
    f"the steps counted: {min(to_target['10 GbE', B] for B in SIZES):.1f} s and, with B = 2, "
    f"{tuned(2)[0] * 2 * SECONDS_PER_SAMPLE:.1f} s).")  # fmt: skip

# %% [markdown]
# Why? For many nodes only $\sqrt t$ is left, against $\sqrt{B_c\,c}$ of one node. So parallelism pays if $t$ is well
# below $B_c\,c$: *one all-reduce must be faster than computing a critical minibatch on one node*. That is why noisy
# tasks scale. Our little $B_c$ needs InfiniBand. And half of the speed takes fewer than half of the nodes: who pays for
# nodes stops earlier than who only counts seconds.
#
# ## Break it: a constant share for each node
#
# The classic habit is weak scaling: "32 samples a node, always." Then $B = 32p$, from two nodes on throughput rises
# with every node, and the report looks wonderful.

# %%
SHARE = 32
MEASURES = {
    "samples per second": lambda p, network: p * SHARE * SECONDS_PER_SAMPLE / simulated(SHARE * p, network, p),
    f"time to the target, $B_c$ = {b_c:.0f}":
        lambda p, network: fastest_with(1, network, b_c) / time_to_target(SHARE * p, network, p),
    f"time to the target, $B_c$ = {LARGE:,}":
        lambda p, network: fastest_with(1, network, LARGE) / time_to_target(SHARE * p, network, p, b_c=LARGE),
}  # fmt: skip


def trap():
    with style.applied():
        figure, places = style.new_figure(9.5, 3.6, columns=3, sharey=True)
        for axes, (title, measure), critical in zip(places, MEASURES.items(), (None, b_c, LARGE), strict=True):
            for i, network in enumerate(NETWORK):
                counts = COUNTS[:8] if critical is None else COUNTS
                axes.plot(counts, [measure(p, network) for p in counts], color=style.SERIES[i],
                          linestyle=style.DASHES[i], marker="os^"[i], markersize=4, label=network)  # fmt: skip
                if critical:
                    ideal = [fastest_with(1, network, critical) / fastest_with(p, network, critical) for p in COUNTS]
                    axes.plot(COUNTS, ideal, color=style.SERIES[i], linewidth=4, alpha=0.3,
                              label=f"{network}, best B")  # fmt: skip
            axes.axhline(1, color="0.4", linewidth=0.8, linestyle=":")
            axes.set(title=title, xscale="log", yscale="log", xlabel="nodes p")
            axes.set_xticks([1, 4, 16, 64, 256, 1024], [1, 4, 16, 64, 256, 1024])
            axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        places[0].set_ylabel("times as fast as one node")
        places[0].set_yticks([0.1, 1, 10, 100], [0.1, 1, 10, 100])
        figure.legend(*places[1].get_legend_handles_labels(), loc="outside upper center", ncols=6, fontsize=7)
        style.label_source(figure, ("simulated", "formula"), "left simulated, with 32 samples a node; dotted: one node")
    return figure


see(
    trap(),
    "marks: 32 samples a node. Left, from two nodes on throughput grows without end. Middle, our digits: more nodes "
    "bring next to nothing, and no number of them is faster than one node with its best minibatch (dotted). Broad and "
    "pale: the same nodes with the best minibatch; on InfiniBand they gain. Right, a task with more noise: the same 32 "
    "samples are too few for some nodes on a slow network, and too many for a thousand nodes on a fast one.",
)

# %% [markdown]
# Far beyond $B_c$ a further sample in the minibatch saves no step. With 32 samples a node the time cannot fall below
# $S_{\min}(t + 32c)$, however many nodes there are. You recognise the trap by its axis: samples per second, or
# efficiency in weak scaling, and no target anywhere.
#
# ## What the papers report
#
# - **Goyal et al. (2017)** (arXiv:1706.02677): ResNet-50 on ImageNet in one hour, 256 GPUs of 32 images, $B = 8192$,
#   about 90 % efficiency from 8 to 256. An iteration takes 12 % longer at $B = 11{,}264$ than at 256. That is weak
#   scaling, and it was no trap: McCandlish et al. (08d) put ImageNet's noise scale at tens of thousands of samples, so
#   8,192 lies before the bend. On our digits the same habit is wasted from a few nodes on.
# - They also train on five times the images (ImageNet-5k): from $B = 256$ to 8,192 the error goes from 25.83 % to
#   26.09 %. Five times the data hardly change the usable minibatch. Neither did half of our digits (08a):
#   the noise scale is made of the noise of one sample, in which the number of samples does not occur.
# - **fast.ai (2018, blog)**: 93 % accuracy on ImageNet in 18 minutes, 16 machines with 8 GPUs each, about 40 dollars.
#   Among other things they begin with small images. In our letters: a smaller $c$, then the best minibatch is larger,
#   by the square root.
#
# With rates tuned more finely, and the net's own FLOPs and bytes: `benchmarks/reproductions/learning_per_second.py`.
#
# ## Why can't we just use a batch of 64,000?
#
# The question of the chapter. 08a began with 4,000 nodes of 16 samples. Here they are, on each network, with the best
# minibatch of the same nodes beside them: for our digits' $B_c$, and for the noisier task's 10,000. Every minibatch
# has its best rate, to which 08b and 08c help. (Below 1 time as fast is slower than one node.)

# %%
CROWD, HUGE, rows = 4000, 64_000, []
for critical in (b_c, LARGE):
    for network in NETWORK:
        star, one = best_minibatch(network, CROWD, b_c=critical), fastest_with(1, network, critical)
        used = 1 + HUGE / critical  # E / E_min
        times = [time_to_target(B, network, CROWD, b_c=critical) for B in (HUGE, star)]
        rows.append([f"{critical:,.0f}", network, f"{used:,.0f}", f"{one / times[0]:.3g}",
                     f"{star:,.0f}", f"{one / times[1]:.3g}"])  # fmt: skip
table(["B_c", "network", "samples used / E_min", "times as fast as one node", "B* of these nodes", "times as fast, B*"],
      rows, f"formula: {CROWD:,} nodes, B = {HUGE:,}, {1e3 * SECONDS_PER_SAMPLE:g} ms a sample")  # fmt: skip

# %% [markdown]
# **We can, if the gradient is noisy enough; else nearly all of the samples are wasted.** The lectures in one line each:
#
# - 08a: in a fixed number of epochs 64,000 samples make few steps. The rate has to make up for it, and cannot grow
#   without end.
# - 08b: at the start the curvature does not allow the high rate: warm up.
# - 08c: a rate for every layer saves tuning, and moves the limit up.
# - 08d: beyond $B_c$ no rate helps, since the gradient is exact enough. A much larger minibatch saves no steps.
# - 08e: with equal updates we saw no harm in a large minibatch. It fits late in training, when the noise scale is
#   large.
# - 08f: the network decides between fewer samples and fewer all-reduces: $B^* = \sqrt{B_c\,t\,p/c}$.
#
# ## To the exercises
#
# [Exercises of chapter 08](../exercises/08_large_minibatches/08_large_minibatches.ipynb): `best_batch` asks for a
# minibatch within 2 % of the best time, on clusters that you have not seen.
#
# **Three questions to argue about**
#
# 1. With overlap (05b) the all-reduce hides behind backward. Which way does the best minibatch move?
# 2. The network becomes four times as fast, the nodes become four times as fast. What happens to $B^*$?
# 3. Nodes are rented by the second. Which $p$ and $B$ cost the least money, and how long does that take?
#
# [Chapter 09](09a_top_k.ipynb) makes the other factor smaller: the seconds $t$ of the all-reduce, by sending less.
