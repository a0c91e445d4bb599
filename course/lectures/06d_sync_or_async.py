# %% [markdown]
# # 06d. Synchronous or asynchronous: who wins?
#
# *Read [06a](06a_staleness.ipynb) (what a stale gradient does) and [06b](06b_servers.ipynb) (servers and their
# queues) first. Reading time: about 35 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Dean et al. (2012) train on hundreds of machines without waiting: every worker pushes its gradient when it is ready.
# Goyal et al. (2017) train on 256 GPUs in lockstep: after every minibatch everyone waits for everyone. Both train well.
# They had other models, other networks, other machines. Nobody can decide by quotation who is right. We let both train
# the same model on the same nine clusters.
#
# Here is one of them: 8 workers on InfiniBand whose computing times vary at random.

# %%
from functools import partial
from itertools import pairwise

import numpy as np

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, data, nn, optim, parallel
from minidl.cluster import cost
from minidl.plots import style
from minidl.plots.style import time_text

warm_up()

# %% [markdown]
# The net is small (digits, 64-32-10), so that every cell runs in seconds. It stands in for a big one: its gradient
# travels as long as 100 MB, and takes 0.12 s to compute; about the figures that Goyal et al. (section 4) give for 25
# million weights. Times below are virtual times of that big net; losses are those of the small one.

# %%
WORKERS, SERVERS, SAMPLES, EPOCHS = 8, 4, 16, 5  # SAMPLES: of one gradient
GRADIENT_BYTES, GRADIENT_SECONDS = 100e6, 0.12
images, tests = data.digits()
DIGITS = data.Splits(data.Dataset(*images[:1408]), tests)  # 88 gradients an epoch


def job(lr, batch_size=SAMPLES, epochs=EPOCHS, seed=0):
    model, optimizer = partial(nn.models.MLP, 64, 32, 10), partial(optim.SGD, lr=lr)
    return parallel.Job(model, DIGITS, optimizer, batch_size=batch_size, epochs=epochs, seed=seed)


weights = sum(parameter.size for parameter in job(0.1).build_model().parameters())
one_flop_a_second = cluster.Simulation(node=cluster.Node(1.0, np.inf))
flops = parallel.train(job(0.1, epochs=1), on=one_flop_a_second).history[-1]["seconds"] / 88  # of a gradient
node = partial(cluster.Node, flops / GRADIENT_SECONDS, np.inf)
NODES = {
    "equal": node(),
    "random": node(jitter=1.0),  # every computation times a log-normal factor of mean 1
    "one slow": node(speeds={0: 0.4}),  # worker 0 always takes 2.5 times as long
}


def as_if_large(name):
    preset = cluster.Network.preset(name)
    return cluster.Network(preset.alpha, preset.beta * GRADIENT_BYTES / (4 * weights))


NETWORKS = {name: as_if_large(preset) for name, preset in
            {"1 GbE": "1gbe", "10 GbE": "10gbe", "InfiniBand": "infiniband"}.items()}  # fmt: skip
server, downpour = partial(parallel.ParameterServer, servers=SERVERS), partial(parallel.Downpour, servers=SERVERS)
METHODS = {
    "synchronous": parallel.Synchronous(algorithm="ring"),
    "bounded, s = 3": server(staleness=3),
    "asynchronous": server(),
    "Downpour, k = 2": downpour(fetch_every=2, push_every=2),
}


def train(method, lr, network="10 GbE", nodes="equal", seed=0):
    """Rows, one an epoch; of a run that diverged until the loss was no number: none."""
    size = WORKERS * SAMPLES if method == "synchronous" else SAMPLES  # Synchronous cuts its minibatch into shares
    simulation = cluster.Simulation(NETWORKS[network], NODES[nodes], trace="ledger")
    try:
        return parallel.train(job(lr, size, seed=seed), METHODS[method], WORKERS, simulation).history
    except parallel.NonFiniteLoss:
        return []


# %%
first = {name: train(name, lr, "InfiniBand", "random")[-1]["seconds"]
         for name, lr in {"synchronous": 1.6, "asynchronous": 0.2}.items()}  # fmt: skip
say(f"{EPOCHS} epochs: synchronous **{first['synchronous']:.1f} s**, asynchronous **{first['asynchronous']:.1f} s** "
    f"(simulated). Without waiting the samples are read "
    f"**{first['synchronous'] / first['asynchronous']:.1f} times** as fast.")  # fmt: skip

# %% [markdown]
# Is the model then trained as many times as fast? Only if a stale gradient teaches as much as a fresh one.
#
# ## One rule for all of them
#
# Synchronous and asynchronous are the two ends of one rule with one number, $s$: *a worker that has made $c$ updates
# begins the next one when every other worker has made at least $c - s$.* With $s = 0$ all march in lockstep; without
# a bound nobody waits; in between lies *bounded staleness* (Ho et al. 2013), the gate of
# [06c](06c_bounded_staleness.ipynb). In numbers: `took[w, c]` is how long worker $w$ computes on its update $c$.


# %%
def ends(took, s):
    """When each worker ends each update, without a network; s: the bound, or None."""
    end = np.zeros((took.shape[0], took.shape[1] + 1))
    for c in range(took.shape[1]):
        begin = end[:, c] if s is None else np.maximum(end[:, c], end[:, max(c - s, 0)].max())
        end[:, c + 1] = begin + took[:, c]
    return end[:, 1:]


# %%
slow = np.full((WORKERS, 400), GRADIENT_SECONDS)
slow[0] /= 0.4
uneven = GRADIENT_SECONDS * np.random.default_rng(0).lognormal(-0.5, 1.0, (WORKERS, 400))
rows = []
for s in (0, 1, 3, 10, None):
    strategy = parallel.ParameterServer(staleness=s)
    run = parallel.train(job(0.1), strategy, WORKERS, cluster.Simulation(node=NODES["one slow"], trace="ledger"))
    ours, randomly = (np.sort(ends(took, s).ravel())[88 * EPOCHS - 1] for took in (slow, uneven))
    rows.append(["no bound" if s is None else s, f"{ours:.1f} s", f"{run.history[-1]['seconds']:.1f} s",
                 f"{randomly:.1f} s"])  # fmt: skip
table(["s", "one slow worker, our rule", "the same, minidl", "random times, our rule"], rows,
      f"{88 * EPOCHS} gradients on {WORKERS} workers, no network; our rule: formula, minidl: simulated")  # fmt: skip

# %% [markdown]
# minidl is up to 2 % faster than our rule, because our 0.12 s of a worker contain the update of the weights. In minidl
# the server makes the update.
#
# A bound helps against times that change: today's slow worker is fast tomorrow. Against a worker that is *always* slow
# it only helps until the lead is used up; then everyone again waits for it.
#
# The ends of the rule are exact, and so is Downpour's. *Downpour* (Dean et al.) is asynchronous training that talks
# less: a worker pushes the sum of its last $k$ gradients, then fetches the weights; in between it steps its own copy.
# (The paper has two numbers, `n_push` and `n_fetch`; here both are $k$.)


# %%
def apart(one, other):
    """The largest difference between two runs' weights."""
    pairs = zip(one.checkpoint.model.values(), other.checkpoint.model.values(), strict=True)
    return max(float(np.abs(x - y).max()) for x, y in pairs)


lockstep = parallel.train(job(0.1, epochs=1), server(staleness=0), WORKERS, "simulation")
joint = parallel.train(job(0.8, 128, epochs=1), METHODS["synchronous"], WORKERS, "simulation")
alone = parallel.train(job(0.1, epochs=1), server(), 1, "simulation")
serial = parallel.train(job(0.1, epochs=1))
table(["", "", "largest difference of a weight"],
      [["bounded, s = 0, rate 0.1", "synchronous, 8 times the minibatch, rate 0.8", f"{apart(lockstep, joint):.0e}"],
       ["one Downpour worker, k = 1", "plain SGD", f"{apart(alone, serial):g}"]],
      "after an epoch; float32, so the first two differ by rounding")  # fmt: skip

# %% [markdown]
# ## Fair means: each with its own rate
#
# The four methods need different learning rates. The synchronous one averages 8 gradients an update; the others
# update 8 times as often, with stale gradients, and 06a says how small their rate must be. So each gets the best of
# *the same* rates: the one that brings the test loss to 0.25 with the fewest samples (equal nodes, 10 GbE, seed 0).

# %%
guess_rate = guess("Compared with the best rate of the synchronous method, the best of the asynchronous one will be",
                   ["higher", "the same", "half of it", "a tenth or less"])  # fmt: skip

# %%
TARGET, RATES = 0.25, (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)


def to_target(rows, name):
    """Samples or seconds until the test loss is TARGET: between two epochs the logarithm of the loss falls evenly."""
    for before, row in pairwise(rows):
        if row["test_loss"] <= TARGET:
            part = np.log(before["test_loss"] / TARGET) / np.log(before["test_loss"] / row["test_loss"])
            return before[name] + part * (row[name] - before[name])
    return np.inf


cases = [(method, lr) for method in METHODS for lr in RATES]
tuning = {case: train(*case) for case in bar(cases, "tuning four methods")}
samples = {case: to_target(rows, "samples") for case, rows in tuning.items()}
best = {method: min(RATES, key=lambda lr: samples[method, lr]) for method in METHODS}
table(["samples to the target, rate", *map(str, RATES)],
      [[method, *("never" if samples[method, lr] == np.inf else
                  f"**{samples[method, lr]:,.0f}**" if lr == best[method] else f"{samples[method, lr]:,.0f}"
                  for lr in RATES)] for method in METHODS],
      f"simulated; test loss {TARGET} within {EPOCHS} epochs of {len(DIGITS.train):,} samples; bold: used from here "
      f"on; best asynchronous rate / best synchronous: 1/{best['synchronous'] / best['asynchronous']:.0f}; "
      f"your guess: {guess_rate}")  # fmt: skip

# %% [markdown]
# No best rate lies at the border of the grid. That matters: had the grid ended at 0.8, the synchronous method would
# have lost by our choice of rates alone.
#
# ## The race
#
# Nine clusters, four methods, each with its rate from the table, and a fresh seed.

# %%
guess_winner = guess("10 GbE, equal nodes: who reaches the target first?", list(METHODS))

# %%
guess_flip = guess("Now worker 0 is slow, always. How many times as long does synchronous need?", unit="times")

# %%
cells = [(network, nodes) for nodes in NODES for network in NETWORKS]
runs = {(method, network, nodes, 1): train(method, best[method], network, nodes, seed=1)
        for method, (network, nodes) in bar([(m, cell) for m in METHODS for cell in cells], "racing")}  # fmt: skip


def curve(axes, network, nodes, against, methods=METHODS, runs=runs):
    for number, method in enumerate(METHODS):
        if method in methods:
            rows = runs[method, network, nodes, 1]
            axes.plot([row[against] for row in rows], [row["test_loss"] for row in rows], style.DASHES[number],
                      color=style.SERIES[number], marker="os^D"[number], markersize=3, label=method)  # fmt: skip
    axes.axhline(TARGET, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set(yscale="log", ylim=(0.09, 3))
    axes.set_yticks([0.1, 0.25, 1], ["0.1", "0.25", "1"])
    axes.minorticks_off()


def race():
    with style.applied():
        figure, places = style.new_figure(9.5, 7.2, columns=3, heights=(1, 1, 1), sharex="col", sharey=True)
        for axes, (network, nodes) in zip(places, cells, strict=True):
            curve(axes, network, nodes, "seconds")
            axes.set_title(f"{network}, {nodes}")
            last = max(rows[-1]["seconds"] for (_, at, *_), rows in runs.items() if at == network)
            axes.set_xlim(0, 1.05 * last)
        for axes in places[6:]:
            axes.set_xlabel("virtual time (s)")
        for axes in places[::3]:
            axes.set_ylabel("test loss")
        figure.legend(*places[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        style.label_source(figure, "simulated", "8 workers, 5 epochs; dotted: the target")
    return figure


see(
    race(),
    "in the top row the curves lie close together; below, the synchronous curve falls behind, the further right "
    "(the faster the network) the more; on 1 GbE, on the left, Downpour is done first. A point is the end of an epoch.",
)

# %%
seconds = {key: to_target(rows, "seconds") for key, rows in runs.items()}
least = {cell: min(seconds[m, *cell, 1] for m in METHODS) for cell in cells}
leaders = {cell: [m for m in METHODS if seconds[m, *cell, 1] == least[cell]] for cell in cells}
slowdown = seconds["synchronous", "10 GbE", "one slow", 1] / seconds["synchronous", "10 GbE", "equal", 1]
say(f"First on 10 GbE with equal nodes: {' = '.join(leaders['10 GbE', 'equal'])} (your guess: {guess_winner}). "
    f"With one slow node synchronous needs {slowdown:.1f} times as long (your guess: {guess_flip}).")  # fmt: skip

# %% [markdown]
# The first row is nearly a tie. In the rows below it the lockstep pays for its slowest worker, most of all where the
# network is fast: on 1 GbE everyone waits for the network anyway. The bound helps against random delays and hardly
# against the worker that stays slow. On 10 GbE it even reads fewer samples a second than the lockstep there: each push
# of the slow worker releases the seven others, and their fetches are served before its own. On equal nodes the bound
# never bites: its curve is the asynchronous one's. Downpour learns less from a sample and sends half of the bytes.
#
# ## Why: learning per second
#
# 05c introduced the measure: learning/second = learning/sample x samples/second. The first factor is statistics (how
# stale?), the second is hardware (who waits?). One seed is no evidence, so three seeds measure the first:

# %%
SEEDS = (1, 2, 3)
more = [(method, "10 GbE", nodes, seed) for method in METHODS for nodes in NODES for seed in SEEDS[1:]]
runs |= {case: train(case[0], best[case[0]], *case[1:]) for case in bar(more, "two more seeds")}


def over_seeds(measure, method, nodes, seeds=SEEDS):
    """Mean and standard deviation over the seeds."""
    values = np.array([measure(runs[method, "10 GbE", nodes, seed]) for seed in seeds])
    return values.mean(), values.std(ddof=min(1, len(seeds) - 1))


needed = {(m, nodes): over_seeds(partial(to_target, name="samples"), m, nodes) for m in METHODS for nodes in NODES}
error = {(m, nodes): over_seeds(lambda rows: 100 - 100 * rows[-1]["accuracy"], m, nodes)
         for m in METHODS for nodes in NODES}  # fmt: skip
table(["nodes", *METHODS],
      [[nodes, *("{:,.0f} ± {:,.0f}; {:.1f} ± {:.1f} %".format(*needed[m, nodes], *error[m, nodes]) for m in METHODS)]
       for nodes in NODES],
      f"samples to the target; test error after {EPOCHS} epochs; mean ± standard deviation over {len(SEEDS)} seeds, "
      "simulated on 10 GbE")  # fmt: skip

# %% [markdown]
# The second factor is measured on every cluster. The first one we take from 10 GbE for all networks, though the network
# also decides who is how stale. Their product is an answer for every cluster, with its uncertainty:


# %%
def rate(method, network, nodes):
    """Samples a second, of all workers."""
    last = runs[method, network, nodes, 1][-1]
    return last["samples"] / last["seconds"]


rows, winners = [], {}
for network, nodes in cells:
    product = {}
    for method in METHODS:
        mean, spread = needed[method, nodes]
        per_second = parallel.learning_speed.LearningSpeed(1 / mean, rate(method, network, nodes)).learning_per_second
        product[method] = (1 / per_second, spread / rate(method, network, nodes))
    first, off = min(product.values())
    winners[network, nodes] = [m for m, (mean, std) in product.items() if mean - first <= np.hypot(std, off)]
    texts = []
    for method, (mean, std) in product.items():
        bold = "**" if method in winners[network, nodes] else ""
        texts.append(f"{rate(method, network, nodes):,.0f}/s: {bold}{mean:.1f} ± {std:.1f} s{bold}")
    rows.append([network, nodes, *texts])
table(["network", "nodes", *METHODS], rows,
      "samples/second, and the time to the target = 1 / (learning/sample x samples/second), mean ± standard deviation, "
      "simulated; bold: the first, and all within a standard deviation of the difference")  # fmt: skip

# %%
tied = [f"{network}, {nodes}" for (network, nodes), who in winners.items() if "synchronous" in who]
fooled = [f"{network}, {nodes}: {leaders[network, nodes][0]}" for network, nodes in cells
          if not set(leaders[network, nodes]) & set(winners[network, nodes])]  # fmt: skip
off = max(abs(over_seeds(partial(to_target, name="samples"), m, nodes, SEEDS[:1])[0] / rate(m, network, nodes)
              / seconds[m, network, nodes, 1] - 1) for m in METHODS for network, nodes in cells)  # fmt: skip
say(
    f"Synchronous is among the first in {len(tied)} of {len(cells)} clusters ({'; '.join(tied)}). Seed 1 alone named a "
    f"winner that three seeds do not confirm in {len(fooled)} ({'; '.join(fooled)})."
)
lowest = {nodes: min(METHODS, key=lambda m: error[m, nodes][0]) for nodes in NODES}
spread = max(std / mean for mean, std in needed.values())
say("Lowest mean test error: " + "; ".join(f"{nodes}, {method}" for nodes, method in lowest.items()) + ". How good is "
    f"the product? For seed 1 it differs from the race itself by at most {100 * off:.0f} %; the seeds differ by up to "
    f"{100 * spread:.0f} % (standard deviation).")  # fmt: skip

# %% [markdown]
# **Where it flips.** Without stragglers the hardware factor is a formula. Let $t$ be the time of a gradient, $n$ its
# bytes, $\beta$ the seconds a byte travels, $p$ workers, $S$ servers. A lockstep of the ring takes
# $t + 2\frac{p-1}{p}n\beta$ (latency left out). Servers answer at most $S/(n\beta)$ gradients a second, and a worker
# that does not queue needs
# $t + (1 + \frac1S)\,n\beta$ for its round: minidl's pulls from the first server while it still pushes to the others.
# (06b's worker pulled after its last push, hence $t + 2n\beta$ there.)


# %%
def formula(method, beta):
    if method == "synchronous":
        return WORKERS * SAMPLES / (GRADIENT_SECONDS + cost.all_reduce("ring", WORKERS, GRADIENT_BYTES, 0, beta))
    k, travel = (2 if method.startswith("Downpour") else 1), GRADIENT_BYTES * beta
    a_round = k * GRADIENT_SECONDS + (1 + 1 / SERVERS) * travel
    return k * SAMPLES * min(WORKERS / a_round, SERVERS / travel)


presets = {"1 GbE": 8e-9, "10 GbE": 8e-10, "InfiniBand": 4e-11}
table(["samples/second, equal nodes", *presets],
      [[method, *(f"{formula(method, beta):,.0f}, {rate(method, network, 'equal'):,.0f}"
                  for network, beta in presets.items())] for method in METHODS if "bounded" not in method],
      "formula, simulated")  # fmt: skip
border = GRADIENT_SECONDS / (WORKERS / SERVERS - 2 * (WORKERS - 1) / WORKERS) / GRADIENT_BYTES
say(f"Below {8 / border / 1e9:.1f} Gbit/s the lockstep reads *more* samples a second than asynchronous workers with "
    f"{SERVERS} servers (formula): **asynchrony saves waiting, not bytes.** Fewer messages (Downpour, or compression "
    "in chapter 09) save bytes.")  # fmt: skip

# %% [markdown]
# Turn it yourself: any cluster, against time or against samples.


# %%
def one_cluster(axes, network, nodes, against):
    curve(axes, network, nodes, against)
    axes.set(xlabel={"seconds": "virtual time (s)", "samples": "samples"}[against], ylabel="test loss")
    axes.legend(fontsize=7)


explore(one_cluster,
        "against samples the methods differ little, and Downpour is last: what they differ in is time. "
        "Dotted: the target.",
        network=["10 GbE", "1 GbE", "InfiniBand"], nodes=list(NODES), against=["samples", "seconds"],
        multiples=[*({"nodes": nodes} for nodes in NODES), {"network": "1 GbE", "nodes": "random"}],
        height=2.8, source="simulated")  # fmt: skip

# %% [markdown]
# ## Break it: one rate for all
#
# The classic mistake: "to be fair, both methods use the same learning rate". Whose?

# %%
UNFAIR = {"both at 0.4": (0.4, 0.4), "both at 3.2": (3.2, 3.2), "each at its own": tuple(best.values())[::2]}


def same_rates():
    with style.applied():
        figure, places = style.new_figure(9.5, 3.0, columns=3, sharex=True, sharey=True)
        for axes, (title, rates) in zip(places, UNFAIR.items(), strict=True):
            pair = dict(zip(("synchronous", "asynchronous"), rates, strict=True))
            at = {(method, "10 GbE", "equal", 1): tuning[method, lr] for method, lr in pair.items()}
            curve(axes, "10 GbE", "equal", "seconds", pair, at)
            axes.set(title=title, xlabel="virtual time (s)", xlim=(0, None), ylim=(0.09, 9))
        places[0].set_ylabel("test loss")
        places[0].legend()
        style.label_source(figure, "simulated", "10 GbE, equal nodes, seed 0; dotted: the target")
    return figure


see(same_rates(), "with one rate for both, either method wins by far, as you like; each with its own, they are close.")

# %% [markdown]
# Two convincing papers, one per panel, and both wrong. The same trick works with any setting that suits one side: the
# minibatch, the warm-up, the number of servers. (We gave four servers to one side: machines that the other lacks.)
#
# ## How rarely may one talk?
#
# Downpour with a larger $k$ sends even less. A push then carries $k$ gradients and finds weights that changed by 7
# other pushes: a delay of about $8k$ gradients. 06a's stability limit says: the rate must fall like $1/k$.

# %%
every = {(k, lr): parallel.train(job(lr), downpour(fetch_every=k, push_every=k), WORKERS,
                                 cluster.Simulation(NETWORKS["1 GbE"], NODES["equal"], trace="ledger"))
         for k, lr in bar([(k, lr) for k in (1, 2, 4, 8) for lr in (0.1, 0.2, 0.4)], "talking less")}  # fmt: skip
table(["k", "bytes a gradient", "5 epochs take", *(f"test error, rate {lr}" for lr in (0.1, 0.2, 0.4))],
      [[k, f"{2 / k:g} n", time_text(every[k, 0.1].history[-1]["seconds"]),
        *(f"{100 - 100 * every[k, lr].accuracy:.1f} %" for lr in (0.1, 0.2, 0.4))] for k in (1, 2, 4, 8)],
      "simulated, 1 GbE, equal nodes; n: the bytes of the weights")  # fmt: skip

# %% [markdown]
# Time falls with $k$, and at the higher rates learning collapses. (With $k$ up to 64 for minutes:
# `benchmarks/reproductions/elastic_averaging.py`, beside chapter 07's cure, which lets each worker keep a model of its
# own.)
#
# ## What the papers report
#
# **Ho et al. (2013)**: bounded staleness is faster than lockstep and than no bound. Ours: faster than lockstep with
# random delays, never clearly faster than no bound. Our staleness is harmless at the tuned rate; where it is not, the
# bound is worth more. **Goyal et al. (2017)**: about 90 % scaling efficiency from 8 to 256 GPUs, in lockstep. Their
# machines are our first row: equal nodes, a fast network. **Chen et al. (2016)** (arXiv:1604.00981) reconcile both
# sides: keep the lockstep, but drop the last gradients of each step. Their result: faster and better models than
# asynchronous training. Ours, with the first 8 of 10, on InfiniBand with random times:

# %%
lr, simulation = best["synchronous"], cluster.Simulation(NETWORKS["InfiniBand"], NODES["random"], trace="ledger")
rows = []
for name, abandon in (("first 8 of 10", False), ("the same, late ones abandoned", True)):
    strategy = parallel.BackupWorkers(2, abandon)
    history = [parallel.train(job(lr, seed=seed), strategy, 10, simulation).history for seed in SEEDS]
    rows.append([name, 10, np.mean([to_target(h, "seconds") for h in history]),
                 np.std([to_target(h, "seconds") for h in history], ddof=1),
                 100 - 100 * np.mean([h[-1]["accuracy"] for h in history])])  # fmt: skip
for method in ("synchronous", "asynchronous"):
    mean, spread = (x / rate(method, "InfiniBand", "random") for x in needed[method, "random"])
    rows.append([method, WORKERS, mean, spread, error[method, "random"][0]])
table(["", "workers", "time to the target", "test error after 5 epochs"],
      [[name, workers, f"{mean:.1f} ± {spread:.1f} s", f"{miss:.1f} %"] for name, workers, mean, spread, miss in rows],
      "simulated, InfiniBand, random times, three seeds")  # fmt: skip
saved = 1 - rows[1][2] / rows[2][2]
say(f"Two backups save {100 * saved:.0f} % of the lockstep's time. Their models are as good as the lockstep's within "
    f"the spread of its seeds (± {error['synchronous', 'random'][1]:.1f} %), and on average better than asynchronous "
    "ones, as in the paper, though three seeds do not prove it. Unlike there, asynchronous training stays the faster "
    "one here.")  # fmt: skip

# %% [markdown]
# ## Who wins?
#
# Nobody everywhere. Equal nodes: the lockstep is among the first, repeats to the bit (04c) and needs no servers.
# Stragglers and a fast network: asynchronous, or lockstep with backups. A slow network: not to wait gains little, to
# send less gains most. The two papers had different clusters before their eyes.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): the Downpour worker, the gate of bounded
# staleness, and `choose(cluster)`, which decides this page's question for clusters that you have not seen.
#
# **Three questions to argue about**
#
# 1. We tuned on equal nodes with 10 GbE and raced on nine clusters. Whom may that have favoured?
# 2. All computers become 10 times as fast, the network stays. Which way does each cell of the race move?
# 3. Your lockstep run takes 2.5 times as long since Monday. Before you change the method: what do you look at?
#
# Next: [06e](06e_without_locks.ipynb), where nobody even waits to write, and [06f](06f_actors_and_learners.ipynb),
# where staleness meets reinforcement learning.
