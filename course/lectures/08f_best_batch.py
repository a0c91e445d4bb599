# %% [markdown]
# # 08f. Which minibatch is the fastest on this network?
#
# *Read [08d](08d_steps_to_target.ipynb) (steps against the minibatch) and [05c](05c_scaling.ipynb) (seconds of a step)
# first. Reading time: about 21 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Eight nodes with 10 Gbit/s Ethernet train a network whose gradient has 100 MB. One sample takes a node 5 ms, as in
# 05c. (Whether it should be eight comes later.) How many samples should a minibatch have?
#
# First the facts from 08d: how many steps of plain SGD until the training loss is at most 0.3, with the best learning
# rate for each minibatch $B$? The small net on digits stands in for the large one. We try three learning rates around
# the best ones of 08d, with five seeds each.

# %% source_hidden=true
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

# %%
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


# %%
def steps_to_target(B, rate, seed, most=300):
    model = new_model(seed)
    sgd = optim.SGD(model.parameters(), lr=rate)
    for step in range(most):
        gradient(model, minibatch(B, step, seed))
        sgd.step()
        if loss_of(model) <= TARGET:
            return step + 1
    return np.inf


BEST_OF_08D = dict(zip(SIZES, (1.4, 2, 2.8, 2.8, 4, 4, 4, 4), strict=True)) | {2: 0.35}


def tuned(B):
    """The fewest steps, by seed, and the learning rate that needs them (the lowest median)."""
    tried = {rate: np.array([steps_to_target(B, rate, seed) for seed in SEEDS])
             for rate in BEST_OF_08D[B] * np.array([0.7, 1, 1.4])}  # fmt: skip
    rate = min(tried, key=lambda rate: np.median(tried[rate]))
    return tried[rate], rate


by_seed, rate = {}, {}
for B in bar(SIZES, "training to the target"):
    by_seed[B], rate[B] = tuned(B)
steps = {B: np.median(counts) for B, counts in by_seed.items()}

# %% source_hidden=true
NETWORKS = {"1 GbE": "1gbe", "10 GbE": "10gbe", "InfiniBand": "infiniband"}
NETWORK = {name: cluster.Network.preset(preset) for name, preset in NETWORKS.items()}

# %%
GRADIENT, SECONDS_PER_SAMPLE, NODES = 100_000_000, 5e-3, 8  # bytes; seconds; p


def one_step(comm, samples, seconds_per_sample):
    """One training step of a node, without its numbers: compute, then add up the gradient."""
    comm.compute(seconds=samples * seconds_per_sample)
    comm.all_reduce(cluster.Phantom(GRADIENT), algorithm="ring")


def simulated(B, network, p=NODES, c=SECONDS_PER_SAMPLE):
    """Seconds of one step with minibatch B on p nodes that need c seconds for a sample."""
    return cluster.launch(one_step, (B / p, c), p, cluster.Simulation(trace="ledger"), NETWORK[network]).seconds


# %% source_hidden=true
shown = (8, 32, 128, 512, 1024)
table(["minibatch B", *map(str, shown)],
      [["steps to the target", *(f"{steps[B]:.0f} ({min(by_seed[B])} to {max(by_seed[B])})" for B in shown)],
       ["samples/second", *(f"{B / simulated(B, '10 GbE'):,.0f}" for B in shown)]],
      "steps measured, median (range) of 5 seeds, with the best of three learning rates (the middle one for "
      f"{sum(rate[B] == BEST_OF_08D[B] for B in SIZES)} of {len(SIZES)}); samples/second: simulated")  # fmt: skip

# %% [markdown]
# Both rows favour a large minibatch: fewer steps (until that ends), and more samples a second.

# %%
guess_best = guess("8 nodes on 10 GbE: which minibatch reaches the target first?", list(map(str, SIZES)))

# %% [markdown]
# ## Steps times seconds

# %% source_hidden=true
seconds = {(network, B): simulated(B, network) for network in NETWORK for B in SIZES}
to_target = {(network, B): steps[B] * seconds[network, B] for network, B in seconds}
fastest = {network: min(SIZES, key=lambda B: to_target[network, B]) for network in NETWORK}
ahead = {network: {min(SIZES, key=lambda B: by_seed[B][seed] * seconds[network, B]) for seed in SEEDS}
         for network in NETWORK}  # fmt: skip
table(["time to the target (s)", *(f"B = {B}" for B in SIZES)],
      [[network, *(f"**{text}**" if B in ahead[network] else text
                   for B in SIZES for text in [f"{to_target[network, B]:.3g}"])] for network in NETWORK],
      f"measured steps (median) x simulated seconds, 8 nodes; bold: the fastest with at least one of {len(SEEDS)} "
      f"seeds; your guess, 10 GbE: {guess_best.against(str(fastest['10 GbE']))}")  # fmt: skip
most = SIZES[-1]
loser = to_target["10 GbE", most] / to_target["10 GbE", fastest["10 GbE"]]
say(f"On 10 GbE B = {fastest['10 GbE']} is the first by its median. B = {most:,} reads the most samples a second and "
    f"makes {steps[most]:.0f} steps, where the fewest of all B are {min(steps.values()):.0f}. Still it takes "
    f"**{loser:.1f} times** as long.")  # fmt: skip

# %% [markdown]
# Why not the largest? Few steps are worth little if each is long. Many samples a second are worth little if each
# teaches little. What counts is learning/second = learning/sample x samples/second (05c). Learning is here an arrival
# at the target, so that learning/sample is $1/(BS)$, with $S$ steps:

# %% source_hidden=true
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


# %% source_hidden=true
rows, off = [], []
for network in NETWORK:
    star = best_minibatch(network)
    searched = min(range(NODES, 2000), key=lambda B: time_to_target(B, network))
    assert abs(star - searched) < 1
    off += [abs(time_to_target(B, network) / to_target[network, B] - 1) for B in SIZES]
    rows.append([network, time_text(all_reduce(network, NODES)),
                 f"{all_reduce(network, NODES) * NODES / SECONDS_PER_SAMPLE:.0f}", f"**{star:.0f}**",
                 ", ".join(map(str, sorted(ahead[network])))])  # fmt: skip
table(["network", "t", "the network asks for tp/c", "B*, formula", "fastest of eight, measured"], rows,
      f"8 nodes, $S_{{\\min}}$ = {s_min:.1f}, $B_c$ = {b_c:.0f} (fitted)")  # fmt: skip
say("T(B) is off the measured steps x simulated seconds by at most " f"{max(off):.0%}. Twice the best minibatch costs "
    + ", ".join(f"{time_to_target(2 * best_minibatch(n), n) / time_to_target(best_minibatch(n), n) - 1:.0%} on {n}"
                for n in NETWORK) + " (formula).")  # fmt: skip

# %% [markdown]
# A search over all $B$ finds the formula's optimum, rounded. The measured steps vary from seed to seed, so neighbours
# are exchanged easily: the valley is flat. At $B = x B^*$ the last two terms become $(x + 1/x)/2$ times as large, and
# they are at most half of $T(B^*)$. (By the arithmetic and the geometric mean: the first two are at least as much.) So
# twice or half the best minibatch costs at most 12.5 %, a factor of four at most 56 %.

# %% [markdown]
# Now turn the cluster: the network, the cost of a sample, the number of nodes.


# %% source_hidden=true
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
# and a large one, with seeds on which no learning rate was tuned.


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


# %% source_hidden=true
weights = sum(parameter.size for parameter in new_model(0).parameters())
as_if_large = cluster.Network(NETWORK["10 GbE"].alpha, NETWORK["10 GbE"].beta * GRADIENT / (4 * weights))
middle = min(SIZES, key=lambda B: abs(np.log(B / best_minibatch("10 GbE"))))
RACERS, FRESH = (SIZES[0], middle, 512), range(5, 10)

# %%
guess_race = guess(f"B = {RACERS[0]}, {RACERS[1]} or {RACERS[2]}: how many times as long does the slowest need?",
                   unit="times")  # fmt: skip

# %% source_hidden=true
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
slowest = max(RACERS, key=lambda B: np.median(ends[B]))
longer = np.median(ends[slowest]) / min(np.median(ends[B]) for B in RACERS)
say(f"B = {middle} wins with {winners.count(middle)} of {len(FRESH)} seeds. The slowest, B = {slowest}, needs "
    f"{longer:.1f} times as long as the fastest (medians); your guess: {guess_race.against(longer)}.")  # fmt: skip


# %% source_hidden=true
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
    "against steps the largest minibatch needs the fewest. Against time the middle one wins: the small one waits for "
    "the network in each of its many steps, the large one computes many samples for few steps saved.",
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

# %% source_hidden=true
LARGE = 10_000
COUNTS = [2**k for k in range(11)]


# %%
def fastest_with(p, network, b_c):
    """The time to the target with the best minibatch on p nodes."""
    return time_to_target(best_minibatch(network, p, b_c=b_c), network, p, b_c=b_c)


# %% source_hidden=true
rows = []
for critical in (b_c, LARGE):
    for network in NETWORK:
        times = {p: fastest_with(p, network, critical) for p in range(1, 1025)}
        p = min(times, key=times.get)
        half = min(q for q in times if times[1] / times[q] >= times[1] / times[p] / 2)
        its = best_minibatch(network, p, b_c=critical)
        name = f"**{p:,}**" + " or more" * (p == 1024)
        if (critical, network) == (b_c, "10 GbE"):
            fastest_p = p
        rows.append([f"{critical:,.0f}", network, name, f"{its:,.0f}", f"{times[1] / times[p]:.1f}", half])
table(["$B_c$", "network", "fastest p", "its B", "times as fast as one node", "nodes for half of that"], rows,
      f"formula; {1e3 * SECONDS_PER_SAMPLE:g} ms a sample; your guess for 10 GbE: "
      f"{guess_nodes.against(fastest_p)}")  # fmt: skip
say(f"For our digits on 10 GbE the eight nodes of this page, at their best, take "
    f"{fastest_with(8, '10 GbE', b_c):.1f} s, **one node alone {fastest_with(1, '10 GbE', b_c):.1f} s** (formula; with "
    f"the steps counted: {min(to_target['10 GbE', B] for B in SIZES):.1f} s and, with B = 2, "
    f"{np.median(tuned(2)[0]) * 2 * SECONDS_PER_SAMPLE:.1f} s).")  # fmt: skip

# %% [markdown]
# Why? For many nodes only $\sqrt t$ is left, against $\sqrt{B_c\,c}$ of one node. So parallelism pays if $t$ is well
# below $B_c\,c$: *one all-reduce must be faster than computing a critical minibatch on one node*. That is why noisy
# tasks scale. Our little $B_c$ needs InfiniBand. The last column shows where half of the speed takes far fewer than
# half of the nodes: if nodes cost money, stop there.
#
# ## Break it: a constant share for each node
#
# The classic habit is weak scaling: "32 samples a node, always." Then $B = 32p$, and from two nodes on throughput rises
# with the nodes.

# %% source_hidden=true
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
    "marks: 32 samples a node. Left, from two nodes on throughput grows. Middle, our digits: no number of nodes is "
    "faster than one node with its best minibatch (dotted). Broad and pale: the same nodes with the best minibatch; on "
    "InfiniBand they gain. Right, a task with more noise: the same 32 samples are too few for some nodes on a slow "
    "network, and too many for a thousand nodes on a fast one.",
)

# %% [markdown]
# Far beyond $B_c$ a further sample in the minibatch saves next to no step. With 32 samples a node the time cannot fall
# below $S_{\min}(t + 32c)$, however many nodes there are. You recognise the trap by its axis: samples per second, or
# efficiency in weak scaling, and no target anywhere.
#
# ## What the papers report
#
# - **Goyal et al. (2017)** (arXiv:1706.02677): ResNet-50 on ImageNet in one hour, 256 GPUs of 32 images, $B = 8192$,
#   about 90 % efficiency from 8 to 256. An iteration takes 12 % longer at $B = 11{,}264$ than at 256. That is weak
#   scaling, and it was no trap: McCandlish et al. (08d) put ImageNet's noise scale at tens of thousands of samples, so
#   8,192 lies before the bend.
# - They also train on five times the images (ImageNet-5k): from $B = 256$ to 8,192 the error goes from 25.83 % to
#   26.09 %. With five times the data the same minibatch is still usable: the noise scale is made of the noise of one
#   sample, in which the number of samples does not occur.
# - **fast.ai (2018, blog)**: 93 % accuracy on ImageNet in 18 minutes, 16 machines with 8 GPUs each, about 40 dollars.
#   Among other things they begin with small images. In our letters: a smaller $c$, then the best minibatch is larger,
#   by the square root.
#
# With learning rates tuned more finely, and the net's own FLOPs and bytes:
# `benchmarks/reproductions/learning_per_second.py`.
#
# ## Why can't we just use a batch of 64,000?
#
# The question of the chapter. 08a began with 4,000 nodes of 16 samples. Here they are, on each network, with the best
# minibatch of the same nodes beside them: for our digits' $B_c$, and for the noisier task's 10,000. Every minibatch
# has its best learning rate, to which 08b and 08c help. (Below 1: slower than one node.)

# %% source_hidden=true
CROWD, HUGE, rows = 4000, 64_000, []
for critical in (b_c, LARGE):
    for network in NETWORK:
        star, one = best_minibatch(network, CROWD, b_c=critical), fastest_with(1, network, critical)
        used = 1 + HUGE / critical  # E / E_min
        times = [time_to_target(B, network, CROWD, b_c=critical) for B in (HUGE, star)]
        rows.append([f"{critical:,.0f}", network, f"{used:,.0f}", f"{one / times[0]:.3g}",
                     f"{star:,.0f}", f"{one / times[1]:.3g}"])  # fmt: skip
table(["$B_c$", "network", r"samples used / $E_{\min}$", "times as fast as one node", "$B^*$ of these nodes",
       "times as fast, $B^*$"],
      rows, f"formula: {CROWD:,} nodes, B = {HUGE:,}, {1e3 * SECONDS_PER_SAMPLE:g} ms a sample")  # fmt: skip

# %% [markdown]
# **We can, if the gradient is noisy enough; else nearly all of the samples are wasted.** The lectures in one line each:
#
# - 08a: in a fixed number of epochs 64,000 samples make few steps. The learning rate has to make up for it, and cannot
#   grow without end.
# - 08b: at the start the curvature does not allow the high learning rate: warm up.
# - 08c: a learning rate for every layer.
# - 08d: far beyond $B_c$ a larger minibatch saves next to no steps, since the gradient is exact enough.
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
