# %% [markdown]
# # 06d. Synchronous or asynchronous: who wins?
#
# *Read [06a](06a_staleness.ipynb) (what a stale gradient does), [06b](06b_servers.ipynb) (servers and their queues) and
# [06c](06c_bounded_staleness.ipynb) (the bound) first. Reading time: about 16 minutes. Figures are* simulated *or come
# from a* formula.
#
# ## The question
#
# Dean et al. (2012) train on hundreds of machines without waiting: every worker pushes its gradient when it is ready.
# Goyal et al. (2017) train on 256 GPUs in lockstep: after every minibatch each waits for all. Both train well. They had
# other models, other networks, other machines, so their reports do not decide which is better. We let both train the
# same model on the same nine clusters.
#
# The net is small (digits, 64-32-10), so that every cell runs in seconds. It stands in for a large one: its gradient
# travels as long as 100 MB, and takes 0.12 s to compute, about the figures that Goyal et al. (section 4) give for 25
# million weights. Times below are virtual times of that large net; losses are those of the small one.

# %% source_hidden=true
from functools import partial
from itertools import pairwise

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, data, nn, optim, parallel
from minidl.cluster import cost
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
images, tests = data.digits()

# %%
WORKERS, SERVERS, SAMPLES, EPOCHS = 8, 4, 16, 5  # SAMPLES: of one gradient
GRADIENT_BYTES, GRADIENT_SECONDS = 100e6, 0.12
METHODS = {
    "synchronous": parallel.Synchronous(algorithm="ring"),
    "bounded, s = 3": parallel.ParameterServer(servers=SERVERS, staleness=3),
    "asynchronous": parallel.ParameterServer(servers=SERVERS),
}

DIGITS = data.Splits(data.Dataset(*images[:1408]), tests)  # 88 gradients an epoch


def job(lr, batch_size=SAMPLES, epochs=EPOCHS, seed=0):
    model, optimizer = partial(nn.models.MLP, 64, 32, 10), partial(optim.SGD, lr=lr)
    return parallel.Job(model, DIGITS, optimizer, batch_size=batch_size, epochs=epochs, seed=seed)


# %% source_hidden=true

weights = sum(parameter.size for parameter in job(0.1).build_model().parameters())
one_flop_a_second = cluster.Simulation(node=cluster.Node(1.0, np.inf))
flops = parallel.train(job(0.1, epochs=1), on=one_flop_a_second).history[-1]["seconds"] / 88  # of a gradient
node = partial(cluster.Node, flops / GRADIENT_SECONDS, np.inf)


def as_if_large(name):
    preset = cluster.Network.preset(name)
    return cluster.Network(preset.alpha, preset.beta * GRADIENT_BYTES / (4 * weights))


# %%
NODES = {
    "equal": node(),
    "random": node(jitter=1.0),  # every computation times a log-normal factor of mean 1
    "one slow": node(speeds={0: 0.4}),  # worker 0 always takes 2.5 times as long
}
NETWORKS = {name: as_if_large(preset) for name, preset in
            {"1 GbE": "1gbe", "10 GbE": "10gbe", "InfiniBand": "infiniband"}.items()}  # fmt: skip


def train(method, lr, network="10 GbE", nodes="equal", seed=0):
    """Rows, one an epoch; none for a run that diverged."""
    size = WORKERS * SAMPLES if method == "synchronous" else SAMPLES  # Synchronous cuts its minibatch into shares
    simulation = cluster.Simulation(NETWORKS[network], NODES[nodes], trace="ledger")
    try:
        return parallel.train(job(lr, size, seed=seed), METHODS[method], WORKERS, simulation).history
    except parallel.NonFiniteLoss:
        return []


# %% source_hidden=true
first = {name: train(name, 0.1, "InfiniBand", "random")[-1]["seconds"] for name in ("synchronous", "asynchronous")}
say(f"8 workers on InfiniBand whose computing times vary at random, {EPOCHS} epochs: synchronous "
    f"**{first['synchronous']:.1f} s**, asynchronous **{first['asynchronous']:.1f} s** (simulated). Without waiting "
    f"the samples are read **{first['synchronous'] / first['asynchronous']:.1f} times** as fast.")  # fmt: skip

# %% [markdown]
# Is the model then trained as many times as fast? Only if a stale gradient teaches as much as a fresh one.
#
# ## Fair means: each with its own learning rate
#
# The synchronous method averages 8 gradients in an update; the others update 8 times as often, with stale gradients. So
# each gets the best of a grid of learning rates: the one that brings the test loss to 0.25 with the fewest samples, on
# equal nodes with 10 GbE. There the bound never acts, so one grid serves both methods with servers.

# %%
guess_rate = guess("The best learning rate of the asynchronous method, compared with that of the synchronous one?",
                   ["the same", "half of it", "an eighth", "a fiftieth"])  # fmt: skip

# %%
TARGET, TUNING_SEEDS, SEEDS = 0.25, (0, 1, 2), (3, 4, 5)
RATES = {"synchronous": (1.6, 2.3, 3.2, 4.5, 6.4, 9.1), "asynchronous": (0.14, 0.2, 0.28, 0.4, 0.57, 0.8)}


def to_target(rows, name):
    """Samples or seconds until the test loss is TARGET: between two epochs the logarithm of the loss falls evenly."""
    for before, row in pairwise(rows):
        if row["test_loss"] <= TARGET:
            part = np.log(before["test_loss"] / TARGET) / np.log(before["test_loss"] / row["test_loss"])
            return before[name] + part * (row[name] - before[name])
    return np.inf


# %% source_hidden=true
cases = [(method, lr, seed) for method, rates in RATES.items() for lr in rates for seed in TUNING_SEEDS]
tuning = {case: train(*case[:2], seed=case[2]) for case in bar(cases, f"tuning: {len(cases)} runs")}
samples = {(method, lr): [to_target(tuning[method, lr, seed], "samples") for seed in TUNING_SEEDS]
           for method, rates in RATES.items() for lr in rates}  # fmt: skip
best = {method: min(rates, key=lambda lr: np.mean(samples[method, lr])) for method, rates in RATES.items()}
best["bounded, s = 3"] = best["asynchronous"]


def with_range(values, form=",.0f", unit=""):
    if np.isinf(values).any():
        return f"{np.isinf(values).sum()} of {len(values)} do not reach it"
    return f"{np.mean(values):{form}}{unit} ({min(values):{form}} to {max(values):{form}})"


rows = []
for pair in zip(*(rates for rates in RATES.values()), strict=True):
    row = []
    for method, lr in zip(RATES, pair, strict=True):
        bold = "**" if lr == best[method] else ""
        row += [f"{bold}{lr}{bold}", f"{bold}{with_range(samples[method, lr])}{bold}"]
    rows.append(row)
table(["learning rate", "synchronous: samples to the target", "learning rate", "asynchronous: samples to the target"],
      rows, f"simulated; test loss {TARGET} within {EPOCHS} epochs of {len(DIGITS.train):,} samples; mean (range) of "
      f"{len(TUNING_SEEDS)} seeds; bold: used from here on")  # fmt: skip
ratio = best["asynchronous"] / best["synchronous"]
nearest = min({"the same": 1, "half of it": 1 / 2, "an eighth": 1 / 8, "a fiftieth": 1 / 50}.items(),
              key=lambda choice: abs(np.log(ratio / choice[1])))[0]  # fmt: skip
say(f"The best asynchronous learning rate is 1/{1 / ratio:.1f} of the best synchronous one; your guess: "
    f"{guess_rate.against(nearest)}.")  # fmt: skip
assert all(rates[0] < best[method] < rates[-1] for method, rates in RATES.items())

# %% [markdown]
# Eight updates by single gradients take the place of one update by their mean. So a fair asynchronous learning rate is
# about an eighth: then a sample moves the weights as far. Neither best one lies at the border of its
# grid. The seeds do not separate it from the next smaller one.
#
# ## The race
#
# Nine clusters, three methods, each with its learning rate from the table, and three fresh seeds.

# %%
guess_winner = guess("10 GbE, equal nodes: who reaches the target first?",
                     ["synchronous", "asynchronous", "three seeds do not tell"])  # fmt: skip

# %%
guess_flip = guess("10 GbE, worker 0 always slow: synchronous needs how many times as long as on equal nodes?")

# %% source_hidden=true
CLUSTERS = [(network, nodes) for nodes in NODES for network in NETWORKS]
cases = [(method, *cell, seed) for method in METHODS for cell in CLUSTERS for seed in SEEDS
         if not (method.startswith("bounded") and cell[1] == "equal")]  # fmt: skip
runs = {case: train(case[0], best[case[0]], *case[1:]) for case in bar(cases, f"racing: {len(cases)} runs")}
for network in NETWORKS:  # equal nodes keep in step, so the bound does nothing: tested by the one run here
    runs |= {("bounded, s = 3", network, "equal", s): runs["asynchronous", network, "equal", s] for s in SEEDS}
bounded = train("bounded, s = 3", best["bounded, s = 3"], "10 GbE", "equal", SEEDS[0])
assert [row["test_loss"] for row in bounded] == [
    row["test_loss"] for row in runs["asynchronous", "10 GbE", "equal", SEEDS[0]]
]


def curves(axes, network, nodes, against):
    """A line for each seed."""
    for number, method in enumerate(METHODS):
        for seed in SEEDS:
            rows = runs[method, network, nodes, seed]
            axes.plot([row[against] for row in rows], [row["test_loss"] for row in rows], style.DASHES[number],
                      color=style.SERIES[number], marker="os^"[number], markersize=3, linewidth=0.9,
                      label=method if seed == SEEDS[0] else None)  # fmt: skip
    axes.axhline(TARGET, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set(yscale="log", ylim=(0.09, 3))
    axes.set_yticks([0.1, 0.25, 1], ["0.1", "0.25", "1"])
    axes.minorticks_off()


def race():
    with style.applied():
        figure, places = style.new_figure(9.5, 7.2, columns=3, heights=(1, 1, 1), sharex="col", sharey=True)
        for axes, (network, nodes) in zip(places, CLUSTERS, strict=True):
            curves(axes, network, nodes, "seconds")
            axes.set_title(f"{network}, {nodes}")
            last = max(rows[-1]["seconds"] for (_, at, *_), rows in runs.items() if at == network)
            axes.set_xlim(0, 1.05 * last)
        for axes in places[6:]:
            axes.set_xlabel("virtual time (s)")
        for axes in places[::3]:
            axes.set_ylabel("test loss")
        figure.legend(*places[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        style.label_source(figure, "simulated", "8 workers, 5 epochs, 3 seeds; dotted: the target")
    return figure


see(
    race(),
    "three lines, one a seed, for each method; a point is the end of an epoch. On equal nodes (top row) and on 1 GbE "
    "(left) the methods' lines mingle. Elsewhere the synchronous lines fall behind the asynchronous ones.",
)

# %% source_hidden=true
seconds = {(m, *cell): [to_target(runs[m, *cell, s], "seconds") for s in SEEDS] for m in METHODS for cell in CLUSTERS}
speed = {(m, *cell): np.mean([runs[m, *cell, s][-1]["samples"] / runs[m, *cell, s][-1]["seconds"] for s in SEEDS])
         for m in METHODS for cell in CLUSTERS}  # fmt: skip
rows, leaders = [], {}
for cell in CLUSTERS:
    quickest = min(METHODS, key=lambda m: np.mean(seconds[m, *cell]))
    leaders[cell] = [m for m in METHODS if min(seconds[m, *cell]) <= max(seconds[quickest, *cell])]
    row = list(cell)
    for m in METHODS:
        bold, of = "**" if m in leaders[cell] else "", seconds[m, *cell]
        row.append(f"{speed[m, *cell]:,.0f}/s; {bold}{np.mean(of):.1f} s{bold} ({min(of):.1f} to {max(of):.1f})")
    rows.append(row)
table(["network", "nodes", *METHODS], rows,
      "simulated; samples a second; time to the target, mean (range) of 3 seeds; bold: the least mean, and all "
      "whose range overlaps that of the least mean")  # fmt: skip
here = leaders["10 GbE", "equal"]
winner = here[0] if len(here) == 1 else "asynchronous" if "synchronous" not in here else "three seeds do not tell"
slowdown = np.mean(seconds["synchronous", "10 GbE", "one slow"]) / np.mean(seconds["synchronous", "10 GbE", "equal"])
tied = [", ".join(cell) for cell in CLUSTERS if "synchronous" in leaders[cell]]
say(f"First on 10 GbE with equal nodes: {winner}; your guess: {guess_winner.against(winner)}. With one slow node "
    f"there, synchronous needs {slowdown:.1f} times as long; your guess: {guess_flip.against(slowdown)}. It is "
    f"among the first on {len(tied)} of {len(CLUSTERS)} clusters: {'; '.join(tied)}.")  # fmt: skip

# %% [markdown]
# ## Why: learning per second
#
# 05c introduced the measure: learning/second = learning/sample x samples/second. The first factor is statistics (how
# stale?), the second is hardware (which worker waits?).

# %% source_hidden=true
needed = {m: [to_target(runs[m, *cell, s], "samples") for cell in CLUSTERS for s in SEEDS] for m in METHODS}
error = {m: [100 - 100 * runs[m, *cell, s][-1]["accuracy"] for cell in CLUSTERS for s in SEEDS] for m in METHODS}
table(["", "samples to the target", f"test error after {EPOCHS} epochs", "samples a second, least and most"],
      [[m, with_range(needed[m]), with_range(error[m], ".1f", " %"),
        "{:,.0f} to {:,.0f}".format(*np.sort([speed[m, *cell] for cell in CLUSTERS])[[0, -1]])] for m in METHODS],
      f"simulated; mean (range) over {len(CLUSTERS)} clusters and {len(SEEDS)} seeds")  # fmt: skip

# %% [markdown]
# At the tuned learning rates a sample teaches about as much with every method: the ranges overlap. So the second factor
# decides. Lockstep pays for its slowest worker, most of all where the network is fast; on 1 GbE all wait for the
# network anyway. The bound helps against random delays, and little against a worker that stays slow: each push of the
# slow worker releases the seven others, and all wait for it again.
#
# **Without stragglers** the hardware factor is a formula. Let $t$ be the time of a gradient, $n$ its bytes, $\beta$ the
# seconds a byte travels, $p$ workers, $S$ servers. A lockstep of the ring takes $t + 2\frac{p-1}{p}n\beta$ (latency
# left out). Servers answer at most $S/(n\beta)$ gradients a second, and a worker that does not queue needs $t + (1 +
# \frac1S)\,n\beta$ for its round: minidl's pulls from the first server while it still pushes to the others. (06b's
# worker pulled after its last push, hence $t + 2n\beta$ there.)


# %%
def formula(method, beta):
    """Samples a second of all workers."""
    travel = GRADIENT_BYTES * beta
    if method == "synchronous":
        return WORKERS * SAMPLES / (GRADIENT_SECONDS + cost.all_reduce("ring", WORKERS, GRADIENT_BYTES, 0, beta))
    return SAMPLES * min(WORKERS / (GRADIENT_SECONDS + (1 + 1 / SERVERS) * travel), SERVERS / travel)


# %% source_hidden=true
gbits, presets = np.geomspace(0.5, 300, 60), {"1 GbE": 1, "10 GbE": 10, "InfiniBand": 200}
series = []
for tone, method in ((0, "synchronous"), (2, "asynchronous")):
    series.append(lines.Line(f"{method}, formula", gbits, [formula(method, 8e-9 / g) for g in gbits], tone=tone))
    for nodes, shown in (("equal", "equal nodes"), ("one slow", "one slow node")):
        points = [speed[method, network, nodes] for network in presets]
        look = "points" if nodes == "equal" else "both"
        series.append(lines.Line(f"{method}, {shown}, simulated", list(presets.values()), points, look=look,
                                 tone=tone if nodes == "equal" else tone + 1))  # fmt: skip
see(
    lines.draw([lines.Panel(series, "bandwidth (Gbit/s)", "samples a second", log="xy")],
               source=("simulated", "formula"), height=3.6),
    "samples a second against the bandwidth. On equal nodes the two formulas lie close together, and cross. One slow "
    "node costs the lockstep more, the faster the network; it costs asynchronous workers little.",
)  # fmt: skip
border = GRADIENT_SECONDS / (WORKERS / SERVERS - 2 * (WORKERS - 1) / WORKERS) / GRADIENT_BYTES
say(f"Below {8 / border / 1e9:.1f} Gbit/s the lockstep reads *more* samples a second than asynchronous workers with "
    f"{SERVERS} servers (formula, equal nodes): **asynchrony saves waiting, not bytes.** To send less, talk less often "
    "(Downpour, [06g](06g_old_gradients_cured.ipynb)) or compress (chapter 09).")  # fmt: skip


# %% source_hidden=true
def one_cluster(axes, network, nodes, against):
    curves(axes, network, nodes, against)
    axes.set(xlabel={"seconds": "virtual time (s)", "samples": "samples"}[against], ylabel="test loss")
    axes.legend(fontsize=7)


explore(one_cluster,
        "the same race, one cluster at a time, three seeds of each method. Against samples the lines lie close "
        "together; against seconds they part where workers are late and the network is fast. Dotted: the target.",
        network=["10 GbE", "1 GbE", "InfiniBand"], nodes=["one slow", "equal", "random"],
        against=["samples", "seconds"], multiples=[{"against": "samples"}, {"against": "seconds"}],
        shared=False, height=2.8, source="simulated")  # fmt: skip

# %% [markdown]
# ## Break it: one learning rate for all
#
# The classic mistake: "to be fair, both methods use the same learning rate". Whose?

# %% source_hidden=true
same = {}
for title, lr in {"both at the asynchronous best": best["asynchronous"],
                  "both at the synchronous best": best["synchronous"]}.items():  # fmt: skip
    for method in RATES:
        of = [tuning.get((method, lr, seed)) or train(method, lr, seed=seed) for seed in TUNING_SEEDS]
        same[title, method] = with_range([to_target(rows, "seconds") for rows in of], ".1f", " s")
own = {method: [to_target(tuning[method, best[method], seed], "seconds") for seed in TUNING_SEEDS] for method in RATES}
same |= {("each at its own", method): with_range(own[method], ".1f", " s") for method in RATES}
titles = dict.fromkeys(title for title, _ in same)
table(["", *RATES], [[title, *(same[title, method] for method in RATES)] for title in titles],
      f"simulated, 10 GbE, equal nodes, {len(TUNING_SEEDS)} seeds: time to the target")  # fmt: skip

# %% [markdown]
# With one learning rate for both, either method can be made to win by far: two convincing papers, both wrong.
# The same trick works with any setting that suits one side: the minibatch, the warm-up, the number of servers. (We gave
# four servers to one side: machines that the other lacks.)
#
# ## What the papers report
#
# **Ho et al. (2013)**: bounded staleness is faster than lockstep and than no bound. Ours is faster than lockstep with
# random delays, and not faster than no bound: staleness is harmless here at the tuned learning rate; where it is not,
# the bound is worth more. **Goyal et al. (2017)**: about 90 % scaling efficiency from 8 to 256 GPUs, in lockstep. Their
# machines are our first row: equal nodes, a fast network. **Chen et al. (2016)** (arXiv:1604.00981) reconcile both
# sides: keep the lockstep, but drop the last gradients of each step. They report faster and better models than
# asynchronous training. Ours, with the first 8 of 10, on InfiniBand with random times:

# %% source_hidden=true
simulation = cluster.Simulation(NETWORKS["InfiniBand"], NODES["random"], trace="ledger")
backup = [parallel.train(job(best["synchronous"], seed=seed), parallel.BackupWorkers(2), 10,
                         simulation).history for seed in SEEDS]  # fmt: skip
cell = ("InfiniBand", "random")
found = {"first 8 of 10": (10, backup),
         **{m: (WORKERS, [runs[m, *cell, s] for s in SEEDS]) for m in ("synchronous", "asynchronous")}}  # fmt: skip
rows = []
for name, (workers, histories) in found.items():
    times = [to_target(history, "seconds") for history in histories]
    misses = [100 - 100 * history[-1]["accuracy"] for history in histories]
    rows.append([name, workers, with_range(times, ".1f", " s"), with_range(misses, ".1f", " %")])
table(["", "workers", "time to the target", f"test error after {EPOCHS} epochs"], rows,
      "simulated, InfiniBand, random times; mean (range) of 3 seeds")  # fmt: skip

# %% [markdown]
# Two backups recover part of what lockstep loses, for two more machines. Three seeds do not show better models than the
# asynchronous ones, which the paper reports.
#
# ## Who wins?
#
# Neither everywhere. On equal nodes the seeds do not separate the two; the lockstep repeats to the bit (04c) and needs
# no servers. With stragglers and a fast network asynchronous wins; backups give lockstep a part of that back. On a
# slow network all methods wait for the bytes, so it helps to send fewer of them. This holds for 8 workers at a
# staleness that the learning rate can bear; 06a says where that ends. We tuned on one cluster only, so a method's best
# learning rate on each of the nine is not covered.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): `choose(cluster)` decides this page's
# question for clusters that you have not seen.
#
# **Three questions to argue about**
#
# 1. We tuned on equal nodes with 10 GbE and raced on nine clusters. Which method may that have favoured?
# 2. All computers become 10 times as fast, the network stays. Which way does each cell of the race move?
# 3. Your lockstep run takes 2.5 times as long since Monday. Before you change the method: what do you look at?
#
# Next: [06e](06e_without_locks.ipynb), where nothing waits even to write, and [06f](06f_actors_and_learners.ipynb),
# where staleness meets reinforcement learning.
